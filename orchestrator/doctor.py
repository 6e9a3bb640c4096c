"""Whether all that a run needs is here, with the command that fixes what is not. Changes nothing.

Packages are imported by processes of their own: an import that crashes or hangs is a finding.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, get_args

from budgets.formatting import command, counted, in_bytes, plain, shell_word, table
from budgets.ledger import LEAST_FREE_BYTES, LedgerCorruptError
from budgets.plan import Devices
from objectives.api import SetupError
from orchestrator.config import Config, is_installed
from orchestrator.execution.api import EngineError, Slots
from orchestrator.execution.devices import Offer, look_at_gpus, visible_gpus
from orchestrator.execution.engine import Engine, devices_of
from orchestrator.matrix.campaign import campaign_matrix, config_of, terms_of
from orchestrator.plan.phase2 import foreseen
from orchestrator.plan.resolve import engine_of, search_plan
from orchestrator.plan.times import find_calibration
from orchestrator.run.files import check_place

PACKAGES = ("torch", "ray", "cma", "numpy")
IMPORT_SECONDS = 120.0

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

    `quick` leaves out the imports. Raises ValueError if no run can be made of the configuration.
    """
    engine, conditions = engine_of(config), {"": config}
    for condition in () if config.campaign is None else terms_of(config).conditions:
        conditions[condition.name] = config_of(config, condition)
    trains = any("torch" in each.tuned.preload for each in conditions.values())
    offer, slots, devices = _devices(engine)
    packages = [_package(name, quick=quick, trains=trains) for name in PACKAGES]
    has_torch = all(one.state == "ok" for one in packages if one.item == "torch")
    if has_torch and not quick:
        gpus = 0 if offer is None else offer.gpus
        packages.append(_cuda(gpus, is_needed=engine.device != "cpu"))
    data = [found for name, each in conditions.items() for found in _data(name, each)]
    return (
        Section("Devices", devices),
        Section("Packages", (*packages, *map(_tracker, config.track.to))),
        Section("Data", tuple(data)),
        Section("Disk", tuple(_disk(config, slots))),
    )


# Devices


def _devices(engine: Engine) -> tuple[Offer | None, Slots | None, tuple[Finding, ...]]:
    """Return what evaluations would run on: this machine's devices, or those of a cluster."""
    try:
        offer = engine.offer()
    except EngineError as error:
        mend = "ray status (on its head), or give no --address: a run then starts its own Ray"
        return None, None, (Finding("cluster", "missing", str(error), mend),)
    is_here, free = engine.address in (None, "local"), offer.gpus
    where = f", load {os.getloadavg()[0]:.1f}" if is_here else f" in {offer.where}"
    found = [Finding("CPUs", "ok", f"{offer.cpus} x {offer.cpu_name}{where}")]
    if is_here:
        gpus = list(_gpus())
        found += gpus
        free = sum(one.state == "ok" for one in gpus)
    else:
        seen = f"{offer.gpus} x {offer.gpu_name}{where}" if offer.gpus else "none"
        found.append(Finding("GPU", "ok" if offer.gpus else "absent", seen))
    try:
        slots = offer.slots(engine.device, engine.workers, engine.threads)
    except ValueError as error:
        mend = "leave out --device, --workers and backend.threads"
        found.append(Finding("evaluations at once", "missing", str(error), mend))
        return offer, None, tuple(found)
    seen = f"{slots.count} on {slots.device}, each with {counted(slots.threads, 'thread')}"
    if slots.device == "cuda" and not free:
        mend = "say --device cpu, or end what is on one of the GPUs"
        found.append(Finding("evaluations at once", "missing", f"{seen}; no GPU is free", mend))
    else:
        found.append(Finding("evaluations at once", "ok", seen))
    return offer, slots, tuple(found)


def _gpus() -> Iterator[Finding]:
    """Yield each GPU of this machine, and what uses it."""
    visible, gpus = visible_gpus(), look_at_gpus()
    used = {
        device: next((gpu.foreign_use() for gpu in gpus if gpu.is_meant_by(device)), "")
        for device, _ in visible
    }
    free = ",".join(device for device, trouble in used.items() if not trouble)
    for device, name in visible:
        if trouble := used[device]:
            mend = f"export CUDA_VISIBLE_DEVICES={free}" if free else ""
            yield Finding(f"GPU {device}", "absent", f"{name}: {trouble}", mend)
        else:
            yield Finding(f"GPU {device}", "ok", f"{name}: free")
    if not visible:
        hides = "CUDA_VISIBLE_DEVICES" in os.environ and shutil.which("nvidia-smi")
        mend = "unset CUDA_VISIBLE_DEVICES" if hides else ""
        yield Finding("GPU", "absent", "none that nvidia-smi names to this process", mend)


# Packages


def _package(name: str, *, quick: bool, trains: bool) -> Finding:
    """Return whether it is installed and, unless `quick`, can be imported.

    torch may be absent unless an objective `trains` with it in the orchestrator's environment.
    """
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        if name == "torch" and not trains:
            return Finding(name, "absent", "not installed, and this objective needs none")
        what = '"cmaes-orchestrator[nanochat]"' if name == "torch" else name
        return Finding(name, "missing", "not installed", _pip(what))
    _, why = ("", "") if quick else _python(f"import {name}")
    if why:
        return Finding(name, "missing", f"{version}: {why}", _pip(f"--force-reinstall {name}"))
    return Finding(name, "ok", version)


def _cuda(gpus: int, *, is_needed: bool) -> Finding:
    """Return whether torch sees the GPUs that the machine or the cluster has."""
    seen, why = _python("import torch; print(torch.cuda.device_count())")
    text = f"torch sees {why or seen} of {gpus} GPUs"
    if not why and int(seen) >= gpus:
        return Finding("CUDA", "ok" if gpus else "absent", text)
    mend = "install a torch built for the driver's CUDA (nvidia-smi), or say --device cpu"
    return Finding("CUDA", "missing" if is_needed else "absent", text, mend)


def _python(code: str) -> tuple[str, str]:
    """Return the last line that the code prints in a new interpreter, and why it failed, if so."""
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-c", code], stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", check=False, timeout=IMPORT_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "", f"no answer within {IMPORT_SECONDS:g} s"
    *_, last = ["", *(ended.stderr if ended.returncode else ended.stdout).strip().splitlines()]
    if ended.returncode:
        return "", last or f"python -c {shlex.quote(code)} ended with {ended.returncode}"
    return last, ""


def _tracker(name: str) -> Finding:
    if is_installed(name):
        return Finding(f"tracker {name}", "ok", "its library is installed")
    mend = _pip(f'"cmaes-orchestrator[{name}]"')
    return Finding(f"tracker {name}", "missing", "[track] names it, and it is not installed", mend)


def _pip(arguments: str) -> str:
    """Return the command that installs into this interpreter's environment."""
    return f"{shlex.quote(sys.executable)} -m pip install {arguments}"


# Data and disk

EVALUATION_BYTES = 24_576  # assumed: a directory with five small files, in blocks of 4 KiB
RECORD_BYTES = 8_000  # of an evaluation: in the ledger, tables and reports


def _data(condition: str, config: Config) -> Iterator[Finding]:
    """Yield what is trained on and scored on; of a condition only what is missing."""
    of = f" of {condition}" if condition else ""
    objective = config.tuned
    try:
        warnings, provenance = objective.preflight(), dict(objective.provenance)
    except (SetupError, ValueError, OSError) as error:
        again = command("doctor", *config.layers.words())
        yield Finding(f"objective{of}", "missing", str(error), f"mend that, then: {again}")
        return
    if not condition:
        identity = f"{len(objective.space.knobs)} knobs, sha256 {objective.fingerprint[:16]}"
        seen = ", ".join(f"{key} {value}" for key, value in provenance.items())
        yield Finding("objective", "ok", f"{config.objective}, {identity}")
        yield Finding("data", "ok", seen or f"{config.objective} needs none")
    for warning in warnings:
        yield Finding(f"warning{of}", "ok", warning)


def _disk(config: Config, slots: Slots | None) -> Iterator[Finding]:
    """Yield whether runs can be written, and whether the smallest of them fits."""
    root = Path(config.runs_dir).absolute()
    parent = next(path for path in (root, *root.parents) if os.path.lexists(path))
    elsewhere = "name another --runs-dir"
    would = "" if parent == root else f" ({root} would be made in it)"
    if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
        yield Finding("writable", "ok", f"{parent}{would}")
    else:
        seen = f"{parent} is no directory, or takes no files of yours{would}"
        mend = f"ls -ld {shell_word(str(parent))}, or {elsewhere}"
        yield Finding("writable", "missing", seen, mend)
    try:
        check_place(root, allow_network=config.backend.allow_network_fs)
    except ValueError as error:
        yield Finding("file system", "missing", str(error), elsewhere)
    df = f"df -h {shell_word(str(parent))}"
    try:
        if slots is None:
            raise OSError("no devices")
        free = shutil.disk_usage(parent).free
        name, size = _needed_bytes(config, devices_of(slots))
    except (SetupError, ValueError, OSError, LedgerCorruptError) as error:
        yield Finding("disk", "unknown", f"what a run takes is not known: {error}", df)
        return
    seen = f"{in_bytes(free)} free; {name} takes {in_bytes(size + LEAST_FREE_BYTES)}"
    if free < size + LEAST_FREE_BYTES:
        yield Finding("disk", "missing", seen, f"make room ({df}), or {elsewhere}")
    else:
        yield Finding("disk", "ok", seen)


def _needed_bytes(config: Config, devices: Devices) -> tuple[str, int]:
    """Return the campaign or the tier, by default the smallest, and the bytes that it takes."""
    root = Path(config.runs_dir)
    if config.campaign is not None:
        plan = campaign_matrix(config, terms_of(config)).plan(devices, None)
    else:
        config = config.having({"search.tier": config.search.tier or "min"})
        plan = search_plan(config, devices, None, foreseen(root, config, devices.kind))
    found = find_calibration(root, config.tuned, devices)
    each = EVALUATION_BYTES if found is None else _bytes_of_evaluation(found.directory)
    count = plan.resolved.evaluations + plan.comparison_evaluations
    return f"{plan.phase} {plan.tier or plan.run_id}", count * (each + RECORD_BYTES)


def _bytes_of_evaluation(run: Path) -> int:
    """Return the mean size on disk of an evaluation's directory."""
    places = list(run.glob("eval/*/*/seed_*"))
    files = (path for place in places for path in (place, *place.rglob("*")))
    taken = sum(path.lstat().st_blocks * 512 for path in files)
    return taken // len(places) if places else EVALUATION_BYTES


# As people and programs read it


def nothing_is_missing(sections: tuple[Section, ...]) -> bool:
    """Return whether everything that is needed is there, as far as it could be found out."""
    return _counts(sections)["missing"] == 0


def _counts(sections: tuple[Section, ...]) -> dict[State, int]:
    states = [finding.state for section in sections for finding in section.findings]
    return {state: states.count(state) for state in get_args(State)}


def as_dict(sections: tuple[Section, ...]) -> dict[str, Any]:
    """Return all of it as a JSON document."""
    return {
        "ready": nothing_is_missing(sections),
        "counts": _counts(sections),
        "sections": [asdict(section) for section in sections],
    }


def to_markdown(sections: tuple[Section, ...]) -> str:
    """Return the conclusion, and for each section a table and what to do."""
    listed = ", ".join(f"{count} {state}" for state, count in _counts(sections).items() if count)
    verdict = "Nothing that a run needs is missing" if nothing_is_missing(sections) else "Not ready"
    lines = ["# Doctor", "", f"{verdict}: {listed}.", ""]
    for section in sections:
        rows = [(plain(one.item), _state(one), plain(one.seen)) for one in section.findings]
        fixes = [f"- {plain(one.item)}: {plain(one.mend)}" for one in section.findings if one.mend]
        lines += [f"## {section.title}", "", *table(("item", "state", "seen"), rows), "", *fixes]
        lines += [""] * bool(fixes)
    return "\n".join(lines)


def _state(finding: Finding) -> str:
    return f"**{finding.state}**" if finding.state in ("missing", "unknown") else finding.state
