"""All checks, on this machine: facts in, findings out. What takes long is asked in the meantime."""

import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from budgets.plain import PROGRAM
from objectives.programs.environment import MARK
from objectives.programs.kernel import memory_bytes
from objectives.registry import kind
from orchestrator.config import is_installed
from orchestrator.doctor import (
    clock,
    data,
    devices,
    disk,
    isolation,
    locks,
    machine,
    runs,
    sockets,
    versions,
)
from orchestrator.doctor.asking import Ask, Asked
from orchestrator.doctor.finding import Finding, Section
from orchestrator.doctor.subject import Subject
from orchestrator.execution import processes, ray_access
from orchestrator.execution.devices import Offer, cpu_name, usable_cpus
from orchestrator.execution.engine import Engine
from orchestrator.execution.evaluate import Slots
from orchestrator.execution.occupancy import process_name
from orchestrator.execution.server import EngineError
from orchestrator.planning.configured import Conduct

IMPORT_SECONDS, TREE_SECONDS = 120.0, 30.0
DATA_SECONDS = 24 * 3600.0  # a large text is prepared once, however long that takes
QUICK_DATA_SECONDS = 5.0  # one that is prepared takes half a second of a free CPU
LEFT_OUT = Finding("imports", "unknown", "left out by --quick", f"{PROGRAM} doctor")


@dataclass(frozen=True)
class Questions:
    """What other processes are asked."""

    data: Ask
    tree: Ask
    imports: Ask | None


def examine(subject: Subject) -> tuple[Section, ...]:
    """Every finding, by section. Starts processes and ends them, leaves nothing behind."""
    before, times = machine.reading(), machine.cpu_times()
    with _asked(subject) as questions:
        graphics = machine.graphics(os.environ)
        runs_ = runs.run_directories(subject.conduct.root)
        room = Section("Disk", _disk(subject, runs_))
        heard = Section("Sockets", _sockets(subject.conduct.engine))
        name = kind(subject.objective.spec)
        checkout = str(machine.CHECKOUT.parent) if machine.requirements_of_checkout() else ""
        text = Section("Data", data.data(name, questions.data, subject.options, checkout))
        apart = Section("Isolation", _isolation(questions.tree))
        found = _versions(questions.imports, len(graphics.visible), subject.conduct)
    after = machine.reading()
    seconds = after.monotonic - before.monotonic
    busy = devices.busy(times, machine.cpu_times(), seconds)
    return (
        Section("Devices", _devices(subject, graphics, runs_, busy)),
        Section("Versions", found),
        text,
        room,
        heard,
        apart,
        Section("Clock", _clock(before, after, runs_)),
    )


@contextmanager
def _asked(subject: Subject) -> Iterator[Questions]:
    """The questions, all of them being answered at once."""
    here, quick = "orchestrator.doctor", subject.quick
    specs = {name: one.spec.model_dump() for name, one in subject.objectives.items()}
    mark = {MARK: f"doctor-{os.getpid()}"}
    with ExitStack() as stack:

        def ask(module: str, *arguments: str, limit_seconds: float, **more: Any) -> Ask:
            asked = Asked(f"{here}.{module}", *arguments, limit_seconds=limit_seconds, **more)
            return stack.enter_context(asked)

        tree = ask("orphaning", limit_seconds=TREE_SECONDS, environment=mark)
        patience = QUICK_DATA_SECONDS if quick else DATA_SECONDS
        text = ask("reading", said=specs, limit_seconds=patience)
        slow = None
        if not quick:
            slow = ask("importing", *versions.NAMED, limit_seconds=IMPORT_SECONDS)
        yield Questions(text, tree, slow)


def _devices(
    subject: Subject, graphics: devices.Graphics, runs_: list[Path], busy: tuple[devices.Busy, ...]
) -> tuple[Finding, ...]:
    engine = subject.conduct.engine
    live = runs.live(runs_, platform.node())
    if engine.address not in (None, "local"):
        return (*_devices_of_cluster(engine), *live)
    names = sorted({name for _, name in graphics.visible})
    offer = Offer(usable_cpus(), cpu_name(), len(graphics.visible), " + ".join(names))
    asked = _slots(offer, engine)
    return (
        devices.cpus(offer, machine.load(), busy),
        devices.memory(*memory_bytes(), asked if isinstance(asked, Slots) else None),
        *devices.gpus(graphics, process_name),
        devices.slots(asked, graphics),
        *live,
    )


def _devices_of_cluster(engine: Engine) -> tuple[Finding, ...]:
    """Those of the Ray that a run is told to join, as the run itself would ask for them."""
    try:
        offer = engine.offer()
    except EngineError as error:
        return (Finding("evaluations at once", "missing", str(error), sockets.NO_CLUSTER),)
    return devices.of_cluster(offer, _slots(offer, engine))


def _slots(offer: Offer, engine: Engine) -> Slots | str:
    """What would run at once on these devices, or why they do not suffice."""
    try:
        return offer.slots(engine.device, engine.workers, engine.threads)
    except ValueError as error:
        return str(error)


def _versions(imports: Ask | None, gpus: int, conduct: Conduct) -> tuple[Finding, ...]:
    now, known = machine.requirements_of_checkout(), machine.requirements_on_record()
    checkout = str(machine.CHECKOUT.parent)
    slow = (
        (LEFT_OUT,) if imports is None else versions.imports(imports, gpus, conduct.engine.device)
    )
    return (
        versions.python(platform.python_version(), machine.python_bound(), checkout),
        *versions.packages(now or known or (), machine.installed),
        versions.metadata(known, now, checkout),
        *versions.trackers(conduct.trackers, is_installed, checkout if now else ""),
        *slow,
    )


def _disk(subject: Subject, runs_: list[Path]) -> tuple[Finding, ...]:
    root = subject.conduct.root
    parent, each = machine.nearest(root), runs.footprint(runs_)
    room = machine.room(parent)
    return (
        disk.disk(parent, room, disk.needs(subject.evaluations, each), each),
        disk.writable(root.absolute(), parent, room, machine.in_the_way(root)),
        locks.place(root, allow_network=subject.conduct.allow_network_fs),
        locks.locks(parent),
    )


def _sockets(engine: Engine) -> tuple[Finding, ...]:
    environment, uid = os.environ, os.getuid()
    address = engine.address or environment.get("RAY_ADDRESS") if engine.kind == "ray" else None
    reach: Callable[[str], None] = ray_access.check_address
    joined = address not in (None, "local")  # then no Ray of ours is started
    return (
        *sockets.listening(machine.listeners(uid), joined=joined),
        *(() if joined else (sockets.private_ray(environment),)),
        sockets.cluster(address, reach),
        sockets.token(ray_access.token_path(), uid, environment),
    )


def _isolation(tree: Ask) -> tuple[Finding, ...]:
    found = isolation.tree(tree, sys.platform)
    return (isolation.level(found), *found)


def _clock(before: clock.Reading, after: clock.Reading, runs_: list[Path]) -> tuple[Finding, ...]:
    return (
        clock.agree(before, after),
        clock.date(after.wall, runs.newest_change(runs_)),
        clock.boot(processes.boot_id),
    )
