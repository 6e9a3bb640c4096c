"""A run in Python and in a notebook: its verdict, its recommendation, tables, plots, report."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from budgets.events import Settled
from budgets.formatting import printable
from budgets.stats import interval
from budgets.verdict import best_point, recommendation, winner_scores
from orchestrator.look.answer import answer
from orchestrator.look.plots import Drawing, drawings
from orchestrator.look.reports import columns_of, export_rows
from orchestrator.look.run import Run
from orchestrator.look.text import cautions
from orchestrator.records import runs
from orchestrator.records.runs import find_run, load_state

if TYPE_CHECKING:
    import pandas as pd

    from orchestrator.look.page import Page


class Estimate(NamedTuple):
    """A mean over seeds, and the interval that holds the true one with 95 % confidence."""

    mean: float
    low: float | None  # None: of one seed
    high: float | None
    seeds: int


@dataclass(frozen=True, repr=False)
class Result:
    """A run as its ledger had it at one moment. Nothing here writes to it."""

    run: Run  # every number that a report, JSON and a page have
    notes: tuple[str, ...] = ()  # about the request

    @property
    def directory(self) -> Path:
        """Where its ledger and the files of its evaluations are."""
        return Path(self.run.directory or "")

    @property
    def verdict(self) -> str:
        """`Go`, `Go that persists`, `No-Go, below noise`; or how the run stands without one."""
        return answer(self.run).title

    @property
    def is_go(self) -> bool:
        """Whether a gain was shown on fresh seeds, above the noise."""
        decided = self.run.state.decided
        return decided is not None and decided.grade != "no_go"

    @property
    def recommendation(self) -> dict[str, float] | None:
        """The knobs that are recommended; None before a generation is told, and after a No-Go."""
        point = recommendation(self.run.state)
        return self.run.plan.space.decode(point) if point else None

    @property
    def best(self) -> dict[str, float] | None:
        """The recommended knobs; after a No-Go those of the candidate that was compared.

        Never those of the best score that was seen, which is selected for its noise.
        """
        point = best_point(self.run.state)
        return self.run.plan.space.decode(point) if point else None

    @property
    def value(self) -> Estimate | None:
        """The mean score of `best` on fresh seeds; None where it was not evaluated on any."""
        scores = list(winner_scores(self.run.state).values())
        if not scores:
            return None
        low, high = interval(scores, 0.05) or (None, None)
        return Estimate(sum(scores) / len(scores), low, high, len(scores))

    @property
    def cautions(self) -> tuple[str, ...]:
        """What speaks against the recommendation, the gravest first; then notes on the request."""
        return (*cautions(self.run), *self.notes)

    @property
    def evaluations(self) -> list[Settled]:
        """The attempts that are over, as the ledger has them: the search's, then comparisons'."""
        return list(self.run.state.ends())

    def table(self) -> "pd.DataFrame":
        """Return a row an attempt, with its knobs as `knob.NAME`, its metrics as `metric.NAME`.

        `comparison` is empty for the search. Raises ImportError without pandas (extra `[frames]`).
        """
        import pandas as pd

        rows = export_rows(self.run.state)
        return pd.DataFrame(rows, columns=columns_of(rows))

    def generations(self) -> "pd.DataFrame":
        """Return a row a generation. Raises ImportError without pandas."""
        import pandas as pd

        return pd.DataFrame(map(asdict, self.run.generations))

    def report(self) -> "Page":
        """Return the whole report, which shows itself in a notebook; `save(path)` writes it."""
        from orchestrator.look.sections import page_of

        return page_of(self.run)

    def plot(self, name: str = "scores") -> Drawing:
        """Return a plot; `save(path)` writes SVG, PNG or PDF. Raises ValueError if unknown."""
        every = drawings(self.run)
        if name not in every:
            raise ValueError(f"plot: expected one of {', '.join(every)}, got {name!r}")
        return every[name]

    def __repr__(self) -> str:
        return printable("\n".join([self.run.plan.run_id, *answer(self.run).lines()]))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def load(run: str | Path, *, runs_dir: str | Path = runs.RUNS_DIR) -> Result:
    """Return the run in a directory, or with an id among those in `runs_dir`, as it stands now.

    Load it again to see more of a run that goes on. Raises ValueError where there is none, and
    LedgerCorruptError where its ledger is damaged.
    """
    directory = find_run(str(run), Path(runs_dir))
    return Result(Run(load_state(directory), datetime.now(UTC), directory))
