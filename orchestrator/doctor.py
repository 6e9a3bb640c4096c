"""Whether all that a run needs is here, with the command that fixes what is not."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple

from budgets.formatting import counted, in_bytes, plain, table
from budgets.ledger import LEAST_FREE_BYTES
from budgets.plan import Devices
from objectives.api import SetupError
from orchestrator.config import Config
from orchestrator.execution.api import EngineError
from orchestrator.execution.devices import Engine, visible_gpus
from orchestrator.matrix.campaign import campaign_from, campaign_matrix, config_of
from orchestrator.plan.phase2 import followed
from orchestrator.plan.resolve import engine_of, search_plan

PACKAGES = ("torch", "ray", "cma", "numpy")
IMPORT_SECONDS = 120.0
EVALUATION_BYTES = 32_768  # assumed: five small files, and lines in the ledger and in tables


class Finding(NamedTuple):
    """One item: its state, what was seen, and the command that fixes it."""

    item: str
    state: Literal["ok", "absent", "missing"]  # absent: nothing needs it; missing: something does
    seen: str
    fix: str = ""


def examine(config: Config) -> list[Finding]:
    """Return every finding about the run or campaign that is described.

    Raises ValueError if no run can be made of the configuration.
    """
    conditions = {"": config}
    for condition in () if config.campaign is None else campaign_from(config).conditions:
        conditions[f" of {condition.name}"] = config_of(config, condition)
    trains = any("torch" in each.tuned.preload for each in conditions.values())
    found, slots = _devices(engine_of(config))
    found += (packages := [_package(name, trains=trains) for name in PACKAGES])
    has_torch = packages[0].state == "ok"
    if has_torch and config.backend.device != "cpu" and (gpus := len(visible_gpus())):
        found.append(_cuda(gpus))
    for name, each in conditions.items():
        found += _data(name, each)
    return [*found, *_disk(config, slots)]


def _devices(engine: Engine) -> tuple[list[Finding], Devices | None]:
    """Return what evaluations would run on: this machine's devices, or those of a cluster."""
    try:
        offer = engine.offer()
    except EngineError as error:
        fix = "ray status (on its head), or give no --address: a run then starts its own Ray"
        return [Finding("cluster", "missing", str(error), fix)], None
    is_here = engine.address in (None, "local")
    where = "this machine" if is_here else "the Ray cluster"
    found = [Finding("CPUs", "ok", f"{offer['cpu'].count} x {offer['cpu'].name} in {where}")]
    gpus = visible_gpus() if is_here else {}
    used = {device: gpu.foreign_use() for device, gpu in gpus.items()}
    free = ",".join(device for device, use in used.items() if not use)
    for device, use in used.items():
        fix = f"export CUDA_VISIBLE_DEVICES={free}" if use and free else ""
        seen = f"{gpus[device].name}: {use or 'free'}"
        found.append(Finding(f"GPU {device}", "absent" if use else "ok", seen, fix))
    try:
        slots = engine.slots(offer)
    except ValueError as error:
        fix = "leave out --device, --workers and backend.threads"
        return [*found, Finding("evaluations at once", "missing", str(error), fix)], None
    seen = f"{slots.count} on {slots.kind}, each with {counted(slots.threads, 'thread')}"
    one = Finding("evaluations at once", "ok", seen)
    if slots.kind == "cuda" and is_here and not free:
        fix = "say --device cpu, or end what is on one of the GPUs"
        one = Finding("evaluations at once", "missing", f"{seen}; no GPU is free", fix)
    return [*found, one], slots


def _package(name: str, *, trains: bool) -> Finding:
    """Return whether it is installed; only an objective that `trains` needs torch."""
    with suppress(metadata.PackageNotFoundError):
        return Finding(name, "ok", metadata.version(name))
    if name == "torch" and not trains:
        return Finding(name, "absent", "not installed, and this objective needs none")
    what = "'cmaes-orchestrator[nanochat]'" if name == "torch" else name
    fix = f"{shlex.quote(sys.executable)} -m pip install {what}"
    return Finding(name, "missing", "not installed", fix)


def _cuda(gpus: int) -> Finding:
    """Return whether torch, imported in a process of its own, sees the GPUs of this machine."""
    words = [sys.executable, "-P", "-c", "import torch; print(torch.cuda.device_count())"]
    try:
        ended = subprocess.run(
            words, capture_output=True, text=True, check=True, timeout=IMPORT_SECONDS
        )
        seen = int(ended.stdout.split()[-1])
        text = f"torch sees {seen} of {gpus} GPUs"
        if seen >= gpus:
            return Finding("CUDA", "ok", text)
    except subprocess.CalledProcessError as error:
        text = "".join(error.stderr.strip().splitlines()[-1:]) or str(error)
    except subprocess.TimeoutExpired as error:
        text = str(error)
    fix = "install a torch built for the driver's CUDA (nvidia-smi), or say --device cpu"
    return Finding("CUDA", "missing", text, fix)


def _data(of: str, config: Config) -> Iterator[Finding]:
    """Yield what is trained on and scored on; of a condition only what is missing."""
    objective = config.tuned
    try:
        warnings, provenance = objective.preflight(), dict(objective.provenance)
    except (SetupError, ValueError, OSError) as error:
        yield Finding(f"objective{of}", "missing", str(error), "fix that, and repeat this command")
        return
    if not of:
        identity = f"{len(objective.space.knobs)} knobs, sha256 {objective.fingerprint[:16]}"
        seen = ", ".join(f"{key} {value}" for key, value in provenance.items())
        yield Finding("objective", "ok", f"{config.objective}, {identity}")
        yield Finding("data", "ok", seen or f"{config.objective} needs none")
    for warning in warnings:
        yield Finding(f"warning{of}", "ok", warning)


def _disk(config: Config, slots: Devices | None) -> Iterator[Finding]:
    """Yield whether runs can be written, and whether the smallest of them fits."""
    root = Path(config.runs_dir).absolute()
    parent = next(path for path in (root, *root.parents) if os.path.lexists(path))
    elsewhere = "name another --runs-dir"
    if not (parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)):
        yield Finding("disk", "missing", f"{parent} takes no files of yours", elsewhere)
    elif slots is not None:
        free = shutil.disk_usage(parent).free
        try:
            size = _needed_bytes(config, slots) + LEAST_FREE_BYTES
        except SetupError:  # of the objective, which has a finding of its own
            return
        except ValueError as error:  # such as a phase 1 that is missing
            yield Finding("plan", "missing", str(error), "fix that, and repeat this command")
            return
        seen, is_enough = f"{in_bytes(free)} free; the run takes {in_bytes(size)}", free >= size
        fix = "" if is_enough else f"make room, or {elsewhere}"
        yield Finding("disk", "ok" if is_enough else "missing", seen, fix)


def _needed_bytes(config: Config, slots: Devices) -> int:
    """Return what the campaign or the search takes; of a search without a tier, the smallest."""
    if config.campaign is not None:
        plan = campaign_matrix(config, campaign_from(config)).plan(slots, None)
    else:
        config = config.having({"search.tier": config.search.tier or "min"})
        source = followed(Path(config.runs_dir), config, slots.kind)
        plan = search_plan(config, slots, None, source)
    return (plan.resolved.evaluations + plan.comparison_evaluations) * EVALUATION_BYTES


def as_dict(found: list[Finding]) -> dict[str, Any]:
    """Return all of it as a JSON document."""
    ready = all(one.state != "missing" for one in found)
    return {"ready": ready, "findings": [one._asdict() for one in found]}


def to_markdown(found: list[Finding]) -> str:
    """Return the conclusion, a table and what to do."""
    ready = as_dict(found)["ready"]
    verdict = "Nothing that a run needs is missing" if ready else "Not ready"
    rows = [(plain(one.item), one.state, plain(one.seen)) for one in found]
    fixes = [f"- {plain(one.item)}: {plain(one.fix)}" for one in found if one.fix]
    lines = ["# Doctor", "", f"{verdict}.", "", *table(("item", "state", "seen"), rows)]
    return "\n".join([*lines, "", *fixes])
