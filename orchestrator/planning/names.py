"""What runs are called, and where they live."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from budgets.plan import Devices, Phase, Plan
from objectives.api import Objective
from objectives.registry import short_name
from orchestrator.config import RUNS_DIR, Config

Overrides = Sequence[tuple[str, str]]
"""Rules that shall not hold a run up, each with the reason."""

RUN_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def run_name(config: Config) -> str:
    """The run's id: the one asked for, or variant, tier, objective and search seed."""
    search = config.search
    name = search.run_id
    if name is None:
        name = f"{search.tier or 'target'}-{short_name(config.tuned.spec)}-s{search.seed}"
        if search.follows is not None:
            name = f"{search.variant}-{name}"
    check_run_id(name)
    return name


def check_run_id(name: str, whose: str = "--run-id") -> None:
    """Raises ValueError unless `name` is a plain file name of 1 to 64 safe characters."""
    if not RUN_ID.fullmatch(name):
        raise ValueError(
            f"{whose}: expected 1 to 64 of a-z, 0-9, '.', '_', '-', beginning with a letter or "
            f"digit, got {name!r}"
        )


def family_of(objective: Objective, kind: str) -> str:
    """What the names of all that is measured of an objective on a kind of device begin with."""
    return f"{short_name(objective.spec)}-{objective.fingerprint[:10]}-{kind}"


def calibration_name(objective: Objective, devices: Devices) -> str:
    """What all calibrations of an objective on the same kind and number of devices begin with."""
    facts = f"{devices.kind}/{devices.name}/{devices.count}/{devices.threads}"
    return f"{family_of(objective, devices.kind)}-{short_hash(facts)}"


def short_hash(text: str) -> str:
    """Six hex digits that tell runs of one objective apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def run_directory(root: Path, phase: Phase, run_id: str) -> Path:
    return root / phase / run_id


def found_as(directory: Path, plan: Plan) -> str:
    """The run's id where commands find it by that, or else its directory."""
    usual = run_directory(Path(RUNS_DIR), plan.phase, plan.run_id)
    here, own = Path.cwd(), directory.absolute()
    if own == usual.absolute():
        return plan.run_id
    return str(own.relative_to(here) if own.is_relative_to(here) else own)
