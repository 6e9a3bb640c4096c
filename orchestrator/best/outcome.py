"""What a training of a search's best has come to, beside what was known before."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from budgets.accounts import MS_PER_HOUR
from budgets.effects import CampaignReport, ConditionRow, Difference
from budgets.formatting import counted, duration
from budgets.state import RunState
from objectives.api import Variant
from orchestrator.look import text
from orchestrator.look.campaign import difference_in_words
from orchestrator.look.evidence import gain_in_words
from orchestrator.look.run import Run
from orchestrator.records.attempts import attempt_place
from orchestrator.records.recommended import Best
from orchestrator.records.recorded import Result


@dataclass(frozen=True)
class Outcome:
    """A training as it stands, and the search that it is from."""

    best: Best
    result: Result
    variant: Variant  # of the objective, that was trained
    report: CampaignReport

    @property
    def own(self) -> ConditionRow:
        return self.report.rows[0]

    @property
    def failed(self) -> bool:
        """Whether all that was to be trained was, and has no score."""
        return self.result.ruling.decision == "done" and not self.own.healthy

    def places(self) -> dict[int, str]:
        """By seed, where the files of what was trained lie."""
        state = self.result.state
        return dict(_places(state, self.result.directory)) if state.generations else {}

    def as_dict(self) -> dict[str, Any]:
        accounts = self.result.state.accounts
        control = next((row for row in self.report.rows if row.is_control), None)
        return {
            "search": self.best.state.plan.run_id,
            "standing": self.best.standing,
            "headline": self.best.headline,
            "condition": self.own.name,
            "times": self.variant.length,
            "seeds": list(self.report.seeds),
            "scores": list(self.own.scores),
            "score": self.own.mean,
            "baseline_scores": None if control is None else list(control.scores),
            "difference": None if control is None else _difference(self.own),
            "device_hours": accounts.device_ms / MS_PER_HOUR,
            "cost": accounts.cost,
            "files": {str(seed): place for seed, place in self.places().items()},
        }

    def lines(self) -> Iterator[str]:
        """For a terminal: the score, what it compares with, what it took, where it lies."""
        if self.result.ruling.decision != "done":
            yield text.sentence(_run(self.result))
        yield self.best.headline
        yield from self._score()
        yield from self._known_before()
        accounts = self.result.state.accounts
        price = f", cost {accounts.cost:.4g}" if accounts.cost else ""
        yield f"Device time: {duration(accounts.device_ms / 1000)}{price}."
        for seed, place in self.places().items():
            yield f"Files of seed {seed}: {place}"

    def _score(self) -> Iterator[str]:
        own, where = self.own, f"with {self.variant.label}"
        if own.mean is None:
            said = ", ".join(f"{n} {status}" for status, n in own.statuses.items())
            yield f"{own.name} has no score {where}: {said}."
            return
        seeds = f"seed {self.report.seeds[0]}"
        if len(self.report.seeds) > 1:
            failed = len(self.report.seeds) - own.healthy
            seeds = f"seeds (mean of {own.healthy}{f', {failed} failed' if failed else ''})"
        yield f"{own.name} scores {own.mean:.5g} {where} on fresh {seeds}."
        for one in own.comparisons:
            if one.difference.mean is not None:
                said = difference_in_words(one.difference, self.report.level)
                yield f"That is {said} than {one.control}{_luck(one.difference)}."

    def _known_before(self) -> Iterator[str]:
        """What the search had said of it, and of the baseline at this length."""
        evidence = self.best.evidence
        if evidence is not None:
            yield f"In the search, on fresh seeds, it gained {gain_in_words(evidence.gain)}."
            if evidence.rung is not None:
                yield f"With {evidence.rung_label} there: {gain_in_words(evidence.rung)}."
        if not any(row.is_control for row in self.report.rows):
            yield from self._without_a_control()

    def _without_a_control(self) -> Iterator[str]:
        scores = _rung_scores(self.best.state, self.variant.length)
        if scores:
            where = counted(len(scores), "other seed")
            said = f"The baseline scored {fmean(scores):.5g} with {self.variant.label}"
            yield f"{said} in the search, on {where}."
        else:
            yield "Nothing says what the baseline scores there: --compare trains it too."


def outcome_of(best: Best, result: Result, variant: Variant) -> Outcome:
    """The outcome as far as it is known."""
    report = _run(result).campaign
    assert report is not None, "a training is a campaign"
    return Outcome(best, result, variant, report)


def _run(result: Result) -> Run:
    return Run(result.state, datetime.now(UTC), result.directory, result.ruling)


def _rung_scores(search: RunState, factor: float) -> list[float]:
    """The baseline's, where the search had a rung of that length."""
    confirmation, panel = search.plan.confirmation, search.panel("rung")
    rung = None if confirmation is None else confirmation.rung
    if rung is None or rung.factor != factor or panel is None:
        return []
    return list(panel.scores_by_seed(0).values())


def _difference(own: ConditionRow) -> dict[str, Any] | None:
    return next((one.difference.model_dump() for one in own.comparisons), None)


def _luck(own: Difference) -> str:
    if own.is_found:
        return ""
    return ": one seed cannot tell that from luck" if own.seeds == 1 else ": that may be luck"


def _places(state: RunState, directory: Path) -> Iterator[tuple[int, str]]:
    generation = state.generations[0]
    for seed in generation.seeds:
        tries = generation.tries.get((0, seed), ())
        if tries:
            yield seed, str(directory / "eval" / attempt_place(tries[-1].reserved))
