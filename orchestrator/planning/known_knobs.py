"""What finished checks have shown about an objective's knobs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from budgets.formatting import PROGRAM
from budgets.liveness import Liveness, liveness
from objectives.api import Objective
from orchestrator.planning.names import family_of
from orchestrator.records.recorded import finished_runs


@dataclass(frozen=True)
class Known:
    """What finished checks have shown about an objective's knobs."""

    alive: tuple[str, ...]
    dead: tuple[str, ...]  # in one check, and alive in none
    neither: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """What a person who is about to search should hear."""
        if self.dead:
            yield (
                f"Warning: {', '.join(self.dead)} did not move the score when checked: a search "
                "wastes budget there."
            )
        if self.neither:
            some = self.alive or self.dead
            which = f"{', '.join(self.neither)} have not" if some else "no knob has"
            yield (
                f"Note: {which} been shown to move the score yet; `{PROGRAM} check knobs` with "
                "the same options finds out."
            )


def known_knobs(root: Path, objective: Objective, kind: str) -> Known:
    """All finished checks of the objective on that kind of device, taken together."""
    runs = finished_runs(root, "check", family_of(objective, kind))
    found = [f for run in runs if (f := liveness(run.state)) is not None]
    return together([knob.name for knob in objective.space.knobs], found)


def together(names: Sequence[str], found: Sequence[Liveness]) -> Known:
    """What several checks have shown about the knobs of these names."""
    alive = {name for f in found for name in f.names("alive")}
    dead = {name for f in found for name in f.names("dead")} - alive
    return Known(
        alive=tuple(n for n in names if n in alive),
        dead=tuple(n for n in names if n in dead),
        neither=tuple(n for n in names if n not in alive | dead),
    )
