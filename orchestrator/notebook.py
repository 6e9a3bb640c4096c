"""A run in a notebook: its report, and its evaluations and generations as lists and as frames."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgets.fold import fold
from budgets.ledger.chain import Record
from budgets.plain import plain, printable
from budgets.report.model import budget_report
from budgets.state import RunState
from budgets.verdict.finalists import recommendation
from objectives.space import SearchSpace
from orchestrator.records.planned import space_of
from orchestrator.records.recommended import best_point
from orchestrator.records.recorded import find_run
from orchestrator.report.answer import answer
from orchestrator.report.collect import recorded, report_of
from orchestrator.report.model import Answer, Evaluation, GenerationView, Report

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]


def load(run: str | Path, *, runs_dir: str | Path = "artifacts/cmaes") -> "LoadedRun":
    """The run in a directory, or with an id among those in `runs_dir`, as it stands now.

    It stays as it was: load it again to see more. Raises ValueError where there is none, and as
    `collect.recorded` does.
    """
    directory = find_run(str(run), Path(runs_dir))
    return LoadedRun(directory, tuple(recorded(directory)))


@dataclass(frozen=True)
class LoadedRun:
    """A run as its ledger told it when it was loaded. Nothing here writes to it."""

    directory: Path
    records: tuple[Record, ...] = field(repr=False)

    @cached_property
    def state(self) -> RunState:
        """What the records amount to."""
        return fold(self.records)

    @cached_property
    def report(self) -> Report:
        """Everything there is to see: with what evaluations left in files, and the search replayed.

        Takes up to two seconds for 2,160 evaluations.
        """
        return report_of(self.directory, self.records)

    @property
    def evaluations(self) -> list[Evaluation]:
        """The attempts that are over, in the order in which they ended."""
        return list(self.report.evaluations)

    @property
    def generations(self) -> list[GenerationView]:
        """The generations that were asked, in order."""
        return list(self.report.generations)

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
        if point is None:
            return None
        return space_of(self.state.plan).decode(point)

    def evaluations_frame(self) -> "pd.DataFrame":
        """A row an attempt, with its knobs as `knob.NAME` and its metrics as `metric.NAME`.

        Raises ImportError without pandas.
        """
        return _frame(Evaluation.model_fields, map(_evaluation_row, self.report.evaluations))

    def generations_frame(self) -> "pd.DataFrame":
        """A row a generation, with the search's favourite knobs as `favourite.NAME`.

        Raises ImportError without pandas.
        """
        space = space_of(self.state.plan)
        rows = (_generation_row(view, space) for view in self.report.generations)
        return _frame(GenerationView.model_fields, rows)

    @cached_property
    def answer(self) -> Answer:
        """What a person asks first: did it find something, how sure, at what cost, what next."""
        return answer(self.state, budget_report(self.state), self.directory)

    def _repr_markdown_(self) -> str:
        lines = [f"**{plain(self.state.plan.run_id)}: {plain(self.answer.title)}.**"]
        lines += [f"- {what}: {plain(text)}" for what, text in self._answers()]
        return "\n".join([f"{lines[0]} {plain(self.answer.sentence)}", "", *lines[1:]])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{escape(what)}</th><td>{_escaped(text)}</td></tr>"
            for what, text in self._answers()
        )
        title = f"{_escaped(self.state.plan.run_id)}: {_escaped(self.answer.title)}."
        sentence = _escaped(self.answer.sentence)
        return f"<p><strong>{title}</strong> {sentence}</p><table>{rows}</table>"

    def _answers(self) -> Iterable[tuple[str, str]]:
        own = self.answer
        if own.but:
            yield "But", own.but
        yield from (("Found", own.found), ("Sure", own.sure), ("Cost", own.cost))
        yield "Next", " ".join((own.next, *own.commands[:1], own.otherwise, *own.commands[1:]))


def _escaped(text: str) -> str:
    return escape(printable(text))


def _evaluation_row(one: Evaluation) -> Row:
    own = one.model_dump(exclude={"point", "knobs", "metrics"})
    own |= {"panel": one.panel or "", "status": str(one.status)}
    own |= {f"knob.{name}": value for name, value in one.knobs.items()}
    return own | {f"metric.{name}": value for name, value in one.metrics.items()}


def _generation_row(view: GenerationView, space: SearchSpace) -> Row:
    own = view.model_dump(exclude={"favourite"})
    found = {} if view.favourite is None else space.decode(view.favourite)
    return own | {f"favourite.{name}": value for name, value in found.items()}


def _frame(fields: Mapping[str, Any], rows: Iterable[Row]) -> "pd.DataFrame":
    """With a model's columns also where there is no row."""
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise ImportError(
            "a frame needs pandas: pip install 'cmaes-orchestrator[frames]'"
        ) from None
    found = list(rows)
    inside = {"point", "knobs", "metrics", "favourite"}
    usual = [name for name in fields if name not in inside]
    columns = dict.fromkeys([*usual, *(name for row in found for name in row)])
    frame: pd.DataFrame = pandas.DataFrame(found, columns=list(columns))
    return frame
