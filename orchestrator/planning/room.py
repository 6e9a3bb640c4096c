"""What a run takes of a disk, and what is free there."""

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from budgets.ledger import LEAST_FREE_BYTES
from budgets.plan import Plan

BLOCK = 4096

EVALUATION_BYTES = 6 * BLOCK
"""Assumed of an evaluation: its directory, and five files with something in them."""

LEDGER_BYTES = 930
"""Of an evaluation: its reservation (210) and its settlement (720)."""

GENERATION_BYTES = 490
"""Of a generation asked and told, beside its points."""

NUMBER_BYTES = 21
"""Of one coordinate as a ledger writes it, with its comma."""

RUN_BYTES = 5_500
"""Of a plan, a session and a conclusion."""

REPORT_BYTES = 3_300
"""Of the two reports of a generation."""

EVALUATION_ROW_BYTES = 740
"""Of `progress.csv` (160) and `metrics.jsonl` (580)."""


@dataclass(frozen=True)
class Room:
    """Bytes that a run takes, all its panels and the rung included."""

    evaluations: int  # their directories
    ledger: int
    reports: int  # and the other files beside the ledger
    measured: bool  # an evaluation's directory, by the calibration's; else assumed
    free: int | None  # where the runs live; None where nobody can tell

    @property
    def needed(self) -> int:
        """All of it, with what the ledger keeps free for itself."""
        return self.evaluations + self.ledger + self.reports + LEAST_FREE_BYTES

    @property
    def suffices(self) -> bool | None:
        return None if self.free is None else self.free >= self.needed


def room(plan: Plan, root: Path, evaluation_bytes: int | None) -> Room:
    """What the plan's run would take where the runs live. `root` need not be there yet."""
    shape = plan.resolved
    count = shape.evaluations + plan.apart
    dimension = 0 if plan.search is None else len(plan.search.start)
    asked = shape.population * dimension * NUMBER_BYTES
    files = shape.generations * REPORT_BYTES
    above = shape.generations * (1 + shape.population) * BLOCK  # gen_0000/cand_0000
    each = EVALUATION_BYTES if evaluation_bytes is None else evaluation_bytes
    return Room(
        evaluations=count * each + above,
        ledger=RUN_BYTES + count * LEDGER_BYTES + shape.generations * (GENERATION_BYTES + asked),
        reports=files + count * EVALUATION_ROW_BYTES,
        measured=evaluation_bytes is not None,
        free=free_bytes(root),
    )


def free_bytes(root: Path) -> int | None:
    """What is free where `root` is, or would be made."""
    there = root.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    with suppress(OSError):
        return shutil.disk_usage(there).free
    return None


def bytes_of_evaluations(run: Path) -> int | None:
    """What one evaluation's directory takes on disk, on average; None where there is none.

    Without those above it: the seeds of a calibration share them, candidates have their own.
    """
    total, count = 0, 0
    for place, _, files in os.walk(run / "eval"):
        if any(part.startswith("seed_") for part in Path(place).relative_to(run).parts):
            total += sum(_blocks(Path(place, name)) for name in ("", *files))
            count += Path(place).name.startswith("seed_") and "config.json" in files
    return round(total / count) if count else None


def _blocks(path: Path) -> int:
    with suppress(OSError):
        return path.lstat().st_blocks * 512
    return 0
