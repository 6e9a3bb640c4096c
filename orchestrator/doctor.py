"""Whether all that a run needs is here, with the command that fixes what is not."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.filesize import decimal

from budgets.formatting import counted, plain, table
from budgets.ledger import LEAST_FREE_BYTES
from objectives.api import SetupError
from orchestrator.config import Config
from orchestrator.execution.api import EngineError
from orchestrator.execution.devices import Engine, visible_gpus
from orchestrator.matrix.campaign import campaign_from, campaign_matrix, config_of
from orchestrator.plan.phase2 import followed
from orchestrator.plan.resolve import engine_of, search_plan, slots_of

IMPORT_SECONDS = 120.0
EVALUATION_BYTES = 32_768  # assumed: five small files, and lines in the ledger and in tables

REASONS = (EngineError, SetupError, ImportError, OSError, ValueError, subprocess.TimeoutExpired)


class Finding(NamedTuple):
    """One item: its state, what was seen, and the command that fixes it."""

    item: str
    state: Literal["ok", "missing"]
    seen: str
    fix: str = ""


def examine(config: Config) -> list[Finding]:
    """Return every finding about the run or campaign that is described.

    Raises ValueError if no run can be made of the configuration.
    """
    conditions = {"": config}
    for condition in () if config.campaign is None else campaign_from(config).conditions:
        conditions[f" of {condition.name}"] = config_of(config, condition)
    found = [*_devices(engine_of(config))]
    if any("torch" in each.tuned.preload for each in conditions.values()):
        what = f"{shlex.quote(sys.executable)} -m pip install 'cmaes-orchestrator[nanochat]'"
        fix = f"{what}, with a torch for the driver's CUDA (nvidia-smi), or say --device cpu"
        found.append(_tried("torch", fix, _torch, config))
    for of, each in conditions.items():
        found.append(
            _tried(f"objective{of}", "repair that, and repeat this command", _objective, each)
        )
    if all(one.state == "ok" for one in found):  # otherwise it is not known what a run needs
        found.append(_tried("disk", "repair that, and repeat this command", _disk, config))
    return found


def _tried(item: str, fix: str, look: Callable[[Any], str], at: Any) -> Finding:
    """Return what was seen, or why it is missing."""
    try:
        return Finding(item, "ok", look(at))
    except REASONS as error:
        return Finding(item, "missing", str(error), fix)


def _devices(engine: Engine) -> Iterator[Finding]:
    """Yield what evaluations would run on: this machine's devices, or those of a cluster."""
    gpus = visible_gpus() if engine.address in (None, "local") else {}
    used = {device: gpu.foreign_use() for device, gpu in gpus.items()}
    free = ",".join(device for device, use in used.items() if not use)
    for device, use in used.items():
        fix = f"export CUDA_VISIBLE_DEVICES={free}" if use and free else ""
        yield Finding(f"GPU {device}", "ok", f"{gpus[device].name}: {use or 'free'}", fix)

    def at_once(engine: Engine) -> str:
        slots = engine.slots()
        if slots.kind == "cuda" and gpus and not free:
            raise ValueError("no GPU is free")
        each = f"each with {counted(slots.threads, 'thread')}"
        return f"{slots.count} on {slots.kind} ({slots.name}), {each}"

    fix = "leave out --device, --workers, --address and backend.threads, or say --device cpu"
    yield _tried("evaluations at once", fix, at_once, engine)


def _torch(config: Config) -> str:
    """Return torch's version. Raises unless it sees, in a process of its own, the GPUs here."""
    version, gpus = metadata.version("torch"), len(visible_gpus())
    if config.backend.device == "cpu" or not gpus:
        return version
    words = [sys.executable, "-P", "-c", "import torch; print(torch.cuda.device_count())"]
    ended = subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=IMPORT_SECONDS
    )
    seen = f"{version}, sees {ended.stdout.strip() or 'none'} of {gpus} GPUs"
    if ended.stdout.strip() != str(gpus):
        raise ValueError(". ".join([seen, *ended.stderr.splitlines()[-1:]]))
    return seen


def _objective(config: Config) -> str:
    """Return what is tuned and on what data. Raises if it cannot be evaluated."""
    objective, name = config.tuned, config.objective
    warnings = [f"Warning: {warning}" for warning in objective.preflight()]
    data = [f"{key} {value}" for key, value in objective.provenance.items()]
    return ". ".join([f"{name}, {counted(len(objective.space.knobs), 'knob')}", *data, *warnings])


def _disk(config: Config) -> str:
    """Return what is free.

    Raises ValueError if there is no plan, or its run cannot be written there or does not fit. Of a
    search without a tier the smallest is meant.
    """
    root = Path(config.runs_dir).absolute()
    parent = next(path for path in (root, *root.parents) if os.path.lexists(path))
    if not (parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)):
        raise ValueError(f"{parent} takes no files of yours: name another --runs-dir")
    slots = slots_of(config)
    if config.campaign is not None:
        plan = campaign_matrix(config, campaign_from(config)).plan(slots, None)
    else:
        smallest = config.having({"search.tier": config.search.tier or "min"})
        plan = search_plan(smallest, slots, None, followed(root, config, slots.kind))
    count, free = plan.resolved.evaluations + plan.comparison_evaluations, shutil.disk_usage(parent)
    needed = count * EVALUATION_BYTES + LEAST_FREE_BYTES
    seen = f"{decimal(free.free)} free; the run takes {decimal(needed)}"
    if free.free < needed:
        raise ValueError(f"{seen}: make room, or name another --runs-dir")
    return seen


def told(found: list[Finding]) -> tuple[dict[str, Any], str]:
    """Return all of it as JSON and as Markdown: the conclusion, a table and what to do."""
    ready = all(one.state == "ok" for one in found)
    verdict = "Nothing that a run needs is missing" if ready else "Not ready"
    rows = [(plain(one.item), one.state, plain(one.seen)) for one in found]
    fixes = [f"- {plain(one.item)}: {plain(one.fix)}" for one in found if one.fix]
    lines = ["# Doctor", "", f"{verdict}.", "", *table(("item", "state", "seen"), rows)]
    document = {"ready": ready, "findings": [one._asdict() for one in found]}
    return document, "\n".join([*lines, "", *fixes])
