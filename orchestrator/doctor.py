"""Whether all that a run needs is here, with the command that fixes what is not. Changes nothing.

What imports, reads a whole text or runs a user's code is done by a process of its own, with a
limit: `examine` starts it, `Finding`s say what it found.
"""

import importlib
import os
import re
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, get_args

from budgets.formatting import PROGRAM, counted, in_bytes, plain, shell_word, table
from budgets.ledger import LedgerCorruptError
from budgets.plan import Devices, Tier
from objectives.api import SetupError
from objectives.process import memory_bytes
from orchestrator.config import Config, is_installed, resolve
from orchestrator.execution.api import EngineError, Slots
from orchestrator.execution.devices import Offer, look_at_gpus, visible_gpus
from orchestrator.execution.engine import Engine, devices_of
from orchestrator.matrix.campaign import campaign_matrix, cells_of, terms_of
from orchestrator.plan.phase2 import foreseen
from orchestrator.plan.resolve import engine_of, search_plan
from orchestrator.plan.times import disk_of, free_bytes, times_here
from orchestrator.run.files import check_place

PACKAGES = ("torch", "ray", "cma", "numpy")
EXTRAS = {"torch": '"cmaes-orchestrator[nanochat]"'}
"""How a package is installed that an extra brings."""
LEAST_MEMORY_BYTES = 512 << 20  # of an evaluation: torch imported takes some 300 MiB
IMPORT_SECONDS = 120.0
READ_SECONDS, QUICK_SECONDS = 24 * 3600.0, 15.0  # a large text may take hours, once
GRACE_SECONDS = 2.0  # to clean up after an interrupt
_INSTALL = re.compile(r"pip install ((?:--[\w-]+ )*(?:[\"'][^\"']+[\"']|[\w\[\]-]+))")

State = Literal["ok", "absent", "missing", "unknown"]
"""`absent`: nothing needs it. `missing`: something does. `unknown`: it could not be found out."""


@dataclass(frozen=True)
class Finding:
    """One item: its state, the figures that were seen, and the command that fixes it."""

    item: str
    state: State
    seen: str
    mend: str = ""


@dataclass(frozen=True)
class Section:
    """Findings about one part of what a run needs."""

    title: str
    findings: tuple[Finding, ...]


def examine(config: Config, *, quick: bool = False) -> tuple[Section, ...]:
    """Return every finding about the run or campaign that is described, by section.

    `quick` leaves out the imports and waits only seconds for the objective. Raises ValueError on a
    configuration that no run can be made of.
    """
    engine, conditions = engine_of(config), {"": config}
    for cell in () if config.campaign is None else cells_of(config):
        layers = replace(config.layers, cell=(cell.name, dict(cell.settings)))
        conditions[cell.name] = resolve(layers)
    for each in conditions.values():
        _ = each.tuned  # raises ValueError on what it cannot be
    offer, slots, devices = _devices(engine)
    planned = None if slots is None else devices_of(slots)
    seconds = QUICK_SECONDS if quick else READ_SECONDS
    with ExitStack() as stack:
        importing = None
        if not quick:
            importing = stack.enter_context(answered(import_all, PACKAGES, seconds=IMPORT_SECONDS))
        reading = stack.enter_context(answered(read, conditions, planned, seconds=seconds))
        try:
            found = reading()
            data = tuple(_data(config, found["conditions"]))
        except NoAnswerError as error:
            found = {"disk": {"failed": str(error)}}
            data = (Finding("objective", "unknown", str(error), f"{PROGRAM} doctor"),)
        trains = any("torch" in each.tuned.requires for each in conditions.values())
        gpus = 0 if offer is None else offer.gpus
        packages = tuple(_packages(importing, gpus, engine.device, trains=trains))
    return (
        Section("Devices", devices),
        Section("Packages", (*packages, *map(_tracker, config.track.to))),
        Section("Data", data),
        Section("Disk", tuple(_disk(config, found["disk"]))),
    )


# Devices


def _devices(engine: Engine) -> tuple[Offer | None, Slots | None, tuple[Finding, ...]]:
    """What evaluations would run on: this machine's devices, or those of the cluster to join."""
    try:
        offer = engine.offer()
    except EngineError as error:
        mend = "ray status (on its head), or give no --address: a run then starts its own Ray"
        return None, None, (Finding("cluster", "missing", str(error), mend),)
    is_here, free = engine.address in (None, "local"), offer.gpus
    load = f", load {os.getloadavg()[0]:.1f}" if is_here else f" in {offer.where}"
    found = [Finding("CPUs", "ok", f"{offer.cpus} x {offer.cpu_name}{load}")]
    if is_here:
        gpus = list(_gpus())
        found += gpus
        free = sum(one.state == "ok" for one in gpus)
    else:
        seen = f"{offer.gpus} x {offer.gpu_name} in {offer.where}" if offer.gpus else "none"
        found.append(Finding("GPU", "ok" if offer.gpus else "absent", seen))
    try:
        slots = offer.slots(engine.device, engine.workers, engine.threads)
    except ValueError as error:
        mend = "leave out --device, --workers and backend.threads"
        found.append(Finding("evaluations at once", "missing", str(error), mend))
        return offer, None, tuple(found)
    if is_here:
        found.append(_memory(slots))
    seen = f"{slots.count} on {slots.device}, each with {counted(slots.threads, 'thread')}"
    if slots.device == "cuda" and not free:
        mend = "say --device cpu, or end what is on one of the GPUs"
        found.append(Finding("evaluations at once", "missing", f"{seen}; no GPU is free", mend))
    else:
        found.append(Finding("evaluations at once", "ok", seen))
    return offer, slots, tuple(found)


def _gpus() -> Iterator[Finding]:
    """Each GPU of this machine and what is on it."""
    visible, seen = visible_gpus(), look_at_gpus()
    if not visible:
        chosen = "CUDA_VISIBLE_DEVICES" in os.environ and shutil.which("nvidia-smi")
        mend = "unset CUDA_VISIBLE_DEVICES" if chosen else ""
        yield Finding("GPU", "absent", "none that nvidia-smi names to this process", mend)
    troubles = {
        device: next((gpu.trouble() for gpu in seen if gpu.is_meant_by(device)), "")
        for device, _ in visible
    }
    free = ",".join(device for device, trouble in troubles.items() if not trouble)
    for device, name in visible:
        trouble = troubles[device]
        mend = f"export CUDA_VISIBLE_DEVICES={free}" if trouble and free else ""
        state: State = "absent" if trouble else "ok"
        yield Finding(f"GPU {device}", state, f"{name}: {trouble or 'free'}", mend)


def _memory(slots: Slots) -> Finding:
    total, available = memory_bytes()
    seen = f"{in_bytes(available)} of {in_bytes(total)} available"
    fits = available // LEAST_MEMORY_BYTES
    if fits >= slots.count:
        return Finding("memory", "ok", seen)
    mend = f"--workers {fits}" if fits else "end what uses it: ps aux --sort=-rss | head"
    seen += f", {in_bytes(LEAST_MEMORY_BYTES)} assumed for each of {slots.count} evaluations"
    return Finding("memory", "missing", seen, mend)


# Packages


def import_all(names: tuple[str, ...]) -> dict[str, Any]:
    """Import each; return why one cannot be, and how many GPUs torch sees."""
    failed = {}
    for name in names:
        try:
            importlib.import_module(name)
        except (ImportError, OSError, RuntimeError, AttributeError, ValueError) as error:
            failed[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    torch: Any = sys.modules.get("torch")
    gpus = torch.cuda.device_count() if torch and "torch" not in failed else 0
    return {"failed": failed, "gpus": gpus}


def _packages(
    importing: "Answer | None", gpus: int, device: str, *, trains: bool
) -> Iterator[Finding]:
    """Whether each package is installed and can be imported, and whether torch sees `gpus`.

    torch may be absent unless an objective `trains` with it in the orchestrator's environment.
    """
    absent = set()
    for name in PACKAGES:
        try:
            yield Finding(name, "ok", metadata.version(name))
        except metadata.PackageNotFoundError:
            absent.add(name)
            if name == "torch" and not trains:
                yield Finding(name, "absent", "not installed, and this objective needs none")
            else:
                yield Finding(name, "missing", "not installed", _pip(EXTRAS.get(name, name)))
    if importing is None:
        return
    try:
        answer = importing()
    except NoAnswerError as error:
        mend = f'{shlex.quote(sys.executable)} -c "import {", ".join(PACKAGES)}"'
        yield Finding("imports", "unknown", str(error), mend)
        return
    for name, why in answer["failed"].items():
        if name not in absent:
            yield Finding(f"import {name}", "missing", why, _pip(f"--force-reinstall {name}"))
    seen = f"torch sees {answer['gpus']} of {gpus} GPUs"
    if answer["gpus"] >= gpus:
        yield Finding("CUDA", "ok" if gpus else "absent", seen)
    else:
        mend = "install a torch built for the driver's CUDA (nvidia-smi), or say --device cpu"
        is_needed = device != "cpu" and ("torch" not in absent or trains)
        yield Finding("CUDA", "missing" if is_needed else "absent", seen, mend)


def _tracker(name: str) -> Finding:
    if is_installed(name):
        return Finding(f"tracker {name}", "ok", "its library is installed")
    mend = _pip(f'"cmaes-orchestrator[{name}]"')
    return Finding(f"tracker {name}", "missing", "[track] names it, and it is not installed", mend)


def _pip(arguments: str) -> str:
    """The command that installs into the environment of this very interpreter.

    In a checkout the project's extras are installed from there.
    """
    checkout = Path(__file__).parents[1]
    if (checkout / "pyproject.toml").exists():
        pattern = r"[\"']?cmaes-orchestrator(\[[\w,-]+\])[\"']?"
        arguments = re.sub(pattern, lambda found: f'-e "{checkout}{found[1]}"', arguments)
    return f"{shlex.quote(sys.executable)} -m pip install {arguments}"


# Data and disk


def read(conditions: Mapping[str, Config], devices: Devices | None) -> dict[str, Any]:
    """Return what the evaluations of each rest on, or why there can be none; what runs take of a
    disk, by what is planned."""
    found: dict[str, Any] = {}
    for name, config in conditions.items():
        try:
            objective = config.tuned
            found[name] = {
                "warnings": objective.preflight(),
                "provenance": dict(objective.provenance),
                "identity": (
                    f"{len(objective.space.knobs)} knobs, sha256 {objective.fingerprint[:16]}"
                ),
            }
        except SetupError as error:
            found[name] = {"failed": str(error)}
    try:
        disk: dict[str, Any] = {} if devices is None else _needed_bytes(conditions[""], devices)
    except (SetupError, ValueError, OSError, LedgerCorruptError) as error:
        disk = {"failed": str(error)}
    return {"conditions": found, "disk": disk}


def _needed_bytes(config: Config, devices: Devices) -> dict[str, int]:
    """By the name of what is planned: the tier that is described, or each of them."""
    root, tier = Path(config.runs_dir), config.search.tier
    each = times_here(root, config.tuned, devices).evaluation_bytes
    if config.campaign is not None:
        plan = campaign_matrix(config, terms_of(config)).plan(devices, None)
        return {f"campaign {plan.run_id}": disk_of(plan, root, each).needed}
    succession = foreseen(root, config, devices.kind)
    configs = [config.having({"search.tier": one}) for one in ((tier,) if tier else get_args(Tier))]
    plans = [search_plan(one, devices, None, None, succession) for one in configs]
    return {f"{plan.phase} {plan.tier}": disk_of(plan, root, each).needed for plan in plans}


def _data(config: Config, answer: Mapping[str, Any]) -> Iterator[Finding]:
    """What is trained on and scored on; of a condition only what stands in its way."""
    name = config.objective
    options = "".join(f" {shell_word(word)}" for word in config.layers.words())
    for condition, part in answer.items():
        of = f" of {condition}" if condition else ""
        if "failed" in part:
            mend = _mend(part["failed"], name, options)
            yield Finding(f"objective{of}", "missing", part["failed"], mend)
            continue
        if not condition:
            seen = ", ".join(f"{key} {value}" for key, value in part["provenance"].items())
            yield Finding("objective", "ok", f"{name}, {part['identity']}")
            yield Finding("data", "ok", seen or f"{name} needs none")
        for warning in part["warnings"]:
            yield Finding(f"warning{of}", "ok", warning)


def _mend(complaint: str, name: str, options: str) -> str:
    """The command in an objective's own words, or how to name something else."""
    if install := _INSTALL.search(complaint):
        return _pip(install[1])
    if name == "nanochat":
        return f"{PROGRAM} doctor --set data=PATH, with a PATH that is there"
    return f"mend that, then {PROGRAM} doctor{options}"


def _disk(config: Config, needed: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether runs can be written, and whether what they take is free: of the least, at least."""
    root = Path(config.runs_dir).absolute()
    there = next(path for path in (root, *root.parents) if os.path.lexists(path))
    look, elsewhere = f"ls -ld {shell_word(str(there))}", "name another --runs-dir"
    would = "" if there == root else f" ({root} would be made in it)"
    if not there.is_dir():
        yield Finding("writable", "missing", f"{there} is no directory", f"{look}, or {elsewhere}")
    elif os.access(there, os.W_OK | os.X_OK):
        yield Finding("writable", "ok", f"{there}{would}")
    else:
        seen = f"{there} takes no files of yours{would}"
        yield Finding("writable", "missing", seen, f"{look}, or {elsewhere}")
    try:
        check_place(root, allow_network=config.backend.allow_network_fs)
    except ValueError as error:
        yield Finding("file system", "missing", str(error), elsewhere)
    free, df = free_bytes(root), f"df -h {shell_word(str(there))}"
    if free is None or "failed" in needed or not needed:
        why = needed.get("failed", f"{there} cannot be looked at" if free is None else "no devices")
        yield Finding("disk", "unknown", f"what a run takes is not known: {why}", df)
        return
    seen = ", ".join(f"{name} takes {in_bytes(size)}" for name, size in needed.items())
    fits = free >= min(needed.values())
    mend = "" if fits else f"make room ({df}), or {elsewhere}"
    yield Finding("disk", "ok" if fits else "missing", f"{in_bytes(free)} free; {seen}", mend)


# Answers of other processes


class NoAnswerError(Exception):
    """The process ended without an answer, or took too long; the message says which."""


Answer = Callable[[], Any]


@contextmanager
def answered(function: Callable[..., Any], *arguments: Any, seconds: float) -> Iterator[Answer]:
    """Call the function in a new process; its result is there when it is asked for.

    The answer raises NoAnswerError. On leaving, the process is interrupted, then killed, with all
    of its group; what it prints is dropped.
    """
    context, began = get_context("spawn"), time.monotonic()
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(theirs, function, arguments))
    process.start()
    theirs.close()

    def answer() -> Any:
        if not ours.poll(max(0.0, began + seconds - time.monotonic())):
            raise NoAnswerError(f"no answer within {seconds:g} s")
        try:
            found = ours.recv()
        except EOFError:
            process.join(GRACE_SECONDS)
            raise NoAnswerError(f"ended with {process.exitcode} and no answer") from None
        if isinstance(found, NoAnswerError):
            raise found
        return found

    try:
        yield answer
    finally:
        for signum in (signal.SIGINT, signal.SIGKILL):
            if process.is_alive():
                with suppress(ProcessLookupError):
                    os.killpg(process.pid or 0, signum)
                process.join(GRACE_SECONDS)
        process.kill()
        ours.close()


def _answer(theirs: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    try:
        theirs.send(function(*arguments))
    except Exception as error:  # whatever a user's code does: the other process reports it
        theirs.send(NoAnswerError(f"{type(error).__name__}: {error}"))


# As people and programs read it


def nothing_is_missing(sections: tuple[Section, ...]) -> bool:
    """Whether all that is needed is there, as far as it could be found out."""
    return _counts(sections)["missing"] == 0


def _counts(sections: tuple[Section, ...]) -> dict[State, int]:
    states = [finding.state for section in sections for finding in section.findings]
    return {state: states.count(state) for state in get_args(State)}


def as_dict(sections: tuple[Section, ...]) -> dict[str, Any]:
    """All of it as a JSON document."""
    return {
        "ready": nothing_is_missing(sections),
        "counts": _counts(sections),
        "sections": [asdict(section) for section in sections],
    }


def to_markdown(sections: tuple[Section, ...]) -> str:
    """The conclusion, what is to be done, and a table for each section."""
    listed = ", ".join(f"{count} {state}" for state, count in _counts(sections).items() if count)
    verdict = "Nothing that a run needs is missing" if nothing_is_missing(sections) else "Not ready"
    lines = ["# Doctor", "", f"{verdict}: {listed}.", ""]
    for section in sections:
        rows = [
            (
                plain(one.item),
                f"**{one.state}**" if one.state in ("missing", "unknown") else one.state,
                plain(one.seen),
            )
            for one in section.findings
        ]
        fixes = [f"- {plain(one.item)}: {plain(one.mend)}" for one in section.findings if one.mend]
        lines += [f"## {section.title}", "", *table(("item", "state", "seen"), rows), "", *fixes]
        lines += [""] * bool(fixes)
    return "\n".join(lines)
