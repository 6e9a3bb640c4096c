"""Whether all that a run needs is here, with the command that mends what is not. Changes nothing.

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
from orchestrator.plan.resolve import engine_of, search_plan
from orchestrator.plan.times import bytes_of_evaluations, free_bytes, known_time, room
from orchestrator.running.place import check_place
from orchestrator.warm_start import foreseen

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
    """One item: its state, the figures that were seen, and the command that mends it."""

    item: str
    state: State
    seen: str
    mend: str = ""


@dataclass(frozen=True)
class Section:
    """Findings about one part of what a run needs."""

    title: str
    findings: tuple[Finding, ...]


def examine(resolved: Config, *, quick: bool = False) -> tuple[Section, ...]:
    """Every finding about the run or campaign that is described, by section.

    `quick` leaves out the imports and waits only seconds for the objective. Raises ValueError on a
    configuration that no run can be made of.
    """
    engine, conditions = engine_of(resolved), _conditions(resolved)
    offer, slots, devices = _devices(engine)
    seconds = QUICK_SECONDS if quick else READ_SECONDS
    with ExitStack() as stack:
        importing = None
        if not quick:
            importing = stack.enter_context(answered(import_all, PACKAGES, seconds=IMPORT_SECONDS))
        planned = None if slots is None else devices_of(slots)
        reading = stack.enter_context(answered(read, conditions, planned, seconds=seconds))
        try:
            found = reading()
            data = tuple(_data(resolved, found["conditions"]))
        except NoAnswerError as error:
            found = {"disk": {"failed": str(error)}}
            data = (Finding("objective", "unknown", str(error), f"{PROGRAM} doctor"),)
        trains = any("torch" in each.tuned.requires for each in conditions.values())
        gpus = 0 if offer is None else offer.gpus
        packages = tuple(_packages(importing, gpus, engine.device, trains=trains))
    return (
        Section("Devices", devices),
        Section("Packages", (*packages, *map(_tracker, resolved.track.to))),
        Section("Data", data),
        Section("Disk", tuple(_disk(resolved, found["disk"]))),
    )


# Devices


def _devices(engine: Engine) -> tuple[Offer | None, Slots | None, tuple[Finding, ...]]:
    """What evaluations would run on: this machine's devices, or those of the cluster to join."""
    try:
        offer = engine.offer()
    except EngineError as error:
        mend = "ray status (on its head), or give no --address: a run then starts its own Ray"
        return None, None, (Finding("cluster", "missing", str(error), mend),)
    is_here = engine.address in (None, "local")
    load = f", load {os.getloadavg()[0]:.1f}" if is_here else f" in {offer.where}"
    found = [Finding("CPUs", "ok", f"{offer.cpus} x {offer.cpu_name}{load}")]
    if not is_here:
        gpus = f"{offer.gpus} x {offer.gpu_name} in {offer.where}" if offer.gpus else "none"
        found.append(Finding("GPU", "ok" if offer.gpus else "absent", gpus))
    busy = _gpus(found) if is_here else 0
    try:
        slots = offer.slots(engine.device, engine.workers, engine.threads)
    except ValueError as error:
        mend = "leave out --device, --workers and backend.threads"
        found.append(Finding("evaluations at once", "missing", str(error), mend))
        return offer, None, tuple(found)
    if is_here:
        found.append(_memory(slots))
    seen = f"{slots.count} on {slots.device}, each with {counted(slots.threads, 'thread')}"
    if slots.device == "cuda" and 0 < offer.gpus == busy:
        mend = "say --device cpu, or end what is on one of the GPUs"
        found.append(Finding("evaluations at once", "missing", f"{seen}; no GPU is free", mend))
    else:
        found.append(Finding("evaluations at once", "ok", seen))
    return offer, slots, tuple(found)


def _gpus(found: list[Finding]) -> int:
    """Add each GPU of this machine and what is on it; return how many are not free."""
    visible, seen = visible_gpus(), look_at_gpus()
    if not visible:
        chosen = "CUDA_VISIBLE_DEVICES" in os.environ and shutil.which("nvidia-smi")
        mend = "unset CUDA_VISIBLE_DEVICES" if chosen else ""
        found.append(Finding("GPU", "absent", "none that nvidia-smi names to this process", mend))
    troubles = {
        device: next((gpu.trouble() for gpu in seen if gpu.is_meant_by(device)), "")
        for device, _ in visible
    }
    free = ",".join(device for device, trouble in troubles.items() if not trouble)
    for device, name in visible:
        trouble = troubles[device]
        state: State = "absent" if trouble else "ok"
        mend = f"export CUDA_VISIBLE_DEVICES={free}" if trouble and free else ""
        found.append(Finding(f"GPU {device}", state, f"{name}: {trouble or 'free'}", mend))
    return len([trouble for trouble in troubles.values() if trouble])


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
    """Import each: why one cannot be, and how many GPUs torch sees."""
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


def _conditions(resolved: Config) -> dict[str, Config]:
    """What is evaluated, by the name of the condition; the configuration's own has none."""
    found = {"": resolved}
    if resolved.campaign is not None:
        for cell in cells_of(resolved):
            layers = replace(resolved.layers, cell=(cell.name, dict(cell.settings)))
            found[cell.name] = resolve(layers)
    for each in found.values():
        _ = each.tuned  # raises ValueError on what it cannot be
    return found


def read(conditions: Mapping[str, Config], devices: Devices | None) -> dict[str, Any]:
    """What the evaluations of each rest on, or why there can be none; what runs take of a disk."""
    found: dict[str, Any] = {name: _read(resolved) for name, resolved in conditions.items()}
    try:
        disk: dict[str, Any] = {} if devices is None else _needed_bytes(conditions[""], devices)
    except (SetupError, ValueError, OSError, LedgerCorruptError) as error:
        disk = {"failed": str(error)}
    return {"conditions": found, "disk": disk}


def _read(resolved: Config) -> dict[str, Any]:
    try:
        objective = resolved.tuned
        return {
            "warnings": objective.preflight(),
            "provenance": dict(objective.provenance),
            "identity": f"{len(objective.space.knobs)} knobs, sha256 {objective.fingerprint[:16]}",
        }
    except SetupError as error:
        return {"failed": str(error)}


def _needed_bytes(resolved: Config, devices: Devices) -> dict[str, int]:
    """By the name of what is planned: the tier that is described, or each of them."""
    root = Path(resolved.runs_dir)
    measured = known_time(root, resolved.tuned, devices).measured
    each = None if measured is None else bytes_of_evaluations(measured)
    if resolved.campaign is not None:
        plan = campaign_matrix(resolved, terms_of(resolved)).plan(devices, None)
        return {f"campaign {plan.run_id}": room(plan, root, each).needed}
    tier = resolved.search.tier
    tiers: tuple[Tier, ...] = get_args(Tier) if tier is None else (tier,)
    succession = foreseen(root, resolved, devices.kind)
    configs = [resolved.having({"search.tier": tier}) for tier in tiers]
    plans = [search_plan(one, devices, None, None, succession) for one in configs]
    return {f"{p.phase} {p.tier}": room(p, root, each).needed for p in plans}


def _data(resolved: Config, answer: Mapping[str, Any]) -> Iterator[Finding]:
    """What is trained on and scored on; of a condition only what stands in its way."""
    name = resolved.objective
    options = "".join(f" {shell_word(word)}" for word in resolved.layers.words())
    for condition, part in answer.items():
        of = f" of {condition}" if condition else ""
        if "failed" in part:
            yield Finding(
                f"objective{of}", "missing", part["failed"], _mend(part["failed"], name, options)
            )
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


def _disk(resolved: Config, needed: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether runs can be written, and whether what they take is free: of the least, at least."""
    root = Path(resolved.runs_dir).absolute()
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
        check_place(root, allow_network=resolved.backend.allow_network_fs)
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
    """Call the function in a new process from now on; its result is there when it is asked for.

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
    except Exception as error:  # whatever a user's code does: the next process tells of it
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
    """The conclusion, what is to be done, most needed first, and a table for each section."""
    listed = ", ".join(f"{count} {state}" for state, count in _counts(sections).items() if count)
    verdict = "Nothing that a run needs is missing" if nothing_is_missing(sections) else "Not ready"
    lines = ["# Doctor", "", f"{verdict}: {listed}.", ""]
    every = [finding for section in sections for finding in section.findings]
    for title, states in (("To mend", ("missing", "unknown")), ("If you want it", ("absent",))):
        some = [one for state in states for one in every if one.state == state and one.mend]
        if some:
            lines += [f"## {title}", ""]
            lines += [f"- {plain(one.item)} ({one.state}): {plain(one.mend)}" for one in some]
            lines.append("")
    for section in sections:
        rows = ((plain(one.item), _bold(one.state), plain(one.seen)) for one in section.findings)
        lines += [f"## {section.title}", "", *table(("item", "state", "seen"), rows), ""]
    return "\n".join(lines)


def _bold(state: State) -> str:
    return f"**{state}**" if state in ("missing", "unknown") else state
