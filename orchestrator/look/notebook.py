"""A run in a notebook: everything people are shown of it, and its tables as data frames."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from budgets.plain import printable
from budgets.state import RunState
from budgets.terms import PanelName
from budgets.verdict.finalists import recommendation
from orchestrator.look.rows import Attempt, Generation
from orchestrator.look.run import Run, comparison_name
from orchestrator.records.recommended import best_point
from orchestrator.records.recorded import find_run, load_state

if TYPE_CHECKING:
    import pandas as pd

    from orchestrator.look.blocks import Answer

Row = dict[str, Any]

_PANELS = {comparison_name(panel): panel for panel in get_args(PanelName)}


def load(run: str | Path, *, runs_dir: str | Path = "artifacts/cmaes") -> "LoadedRun":
    """Return the run in a directory, or with an id among those in `runs_dir`, as it stands now.

    It stays as it was: load it again to see more. Raises ValueError where there is none, and
    LedgerCorruptError where its ledger is damaged.
    """
    directory = find_run(str(run), Path(runs_dir))
    return LoadedRun(directory, Run(load_state(directory), datetime.now(UTC), directory))


@dataclass(frozen=True)
class LoadedRun:
    """A run as its ledger had it when it was loaded. Nothing here writes to it."""

    directory: Path
    run: Run = field(repr=False)  # every number that a report, JSON or a page has

    @property
    def state(self) -> RunState:
        """What the ledger's records amount to."""
        return self.run.state

    @property
    def evaluations(self) -> list[Attempt]:
        """The attempts that are over, in the order in which they ended."""
        return self.run.ended

    @property
    def generations(self) -> list[Generation]:
        """The generations that were asked, in order."""
        return list(self.run.generations)

    @property
    def recommendation(self) -> dict[str, float] | None:
        """The knobs that are recommended; None before a generation is told, and after a No-Go."""
        return self._knobs(recommendation(self.state))

    @property
    def best(self) -> dict[str, float] | None:
        """The knobs of the best there is: what is recommended, or was compared before a No-Go.

        Never those of the best score that was seen: that is luck more than anything.
        """
        return self._knobs(best_point(self.state, compared=True))

    def _knobs(self, point: tuple[float, ...] | None) -> dict[str, float] | None:
        return None if point is None else self.run.space.decode(point)

    @cached_property
    def answer(self) -> "Answer":
        """What a person asks first: did it find something, how sure, at what cost, what next."""
        from orchestrator.look.answer import answer

        return answer(self.run)

    def evaluations_frame(self) -> "pd.DataFrame":
        """Return a row an attempt, with its knobs as `knob.NAME`, its metrics as `metric.NAME`.

        `panel` is the ledger's name of a comparison, empty for the search. Raises ImportError
        without pandas.
        """
        inside = ("comparison", "point", "knobs", "metrics")
        rows = [
            {
                "panel": _PANELS.get(one.comparison, ""),
                **{name: getattr(one, name) for name in _names(Attempt, inside)},
                "status": str(one.status),
                **{f"knob.{name}": value for name, value in one.knobs.items()},
                **{f"metric.{name}": value for name, value in one.metrics.items()},
            }
            for one in self.evaluations
        ]
        return _frame(["panel", *_names(Attempt, inside)], Attempt, rows)

    def generations_frame(self) -> "pd.DataFrame":
        """Return a row a generation, with the mean of the search distribution as `mean_point.NAME`.

        Raises ImportError without pandas.
        """
        names = _names(Generation, ["mean_point"])
        rows = [
            {
                **{name: getattr(one, name) for name in names},
                **{f"mean_point.{k}": x for k, x in (self._knobs(one.mean_point) or {}).items()},
            }
            for one in self.generations
        ]
        return _frame(names, Generation, rows)

    def _repr_html_(self) -> str:
        own = self.answer
        found = [("But", own.but)] if own.but else []
        found += [("Found", own.found), ("How sure", own.sure), ("Cost", own.cost)]
        found.append(("Next", " ".join([own.next, *own.commands[:1]])))
        rows = "".join(f"<tr><th>{_safe(what)}</th><td>{_safe(said)}</td></tr>"
                       for what, said in found)  # fmt: skip
        title = f"{self.state.plan.run_id}: {own.title}."
        return f"<p><strong>{_safe(title)}</strong> {_safe(own.sentence)}</p><table>{rows}</table>"


def _safe(said: str) -> str:
    return escape(printable(said))


def _names(kind: type[Attempt | Generation], inside: Sequence[str]) -> list[str]:
    return [one.name for one in fields(kind) if one.name not in inside]


def _frame(
    names: Sequence[str], kind: type[Attempt | Generation], rows: Sequence[Row]
) -> "pd.DataFrame":
    """With the columns, and numbers as numbers, also where there is no row or no value."""
    try:
        import pandas
    except ImportError:
        raise ImportError(
            "a frame needs pandas: pip install 'cmaes-orchestrator[frames]'"
        ) from None
    columns = dict.fromkeys([*names, *(name for row in rows for name in row)])
    frame = pandas.DataFrame(rows, columns=list(columns))
    real = [one.name for one in fields(kind) if one.type in (float, float | None)]
    return frame.astype({name: "float64" for name in real if name in columns})
