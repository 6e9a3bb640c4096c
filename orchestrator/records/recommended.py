"""What a search recommends as its ledger stands, and how far that is confirmed."""

from dataclasses import dataclass
from typing import Literal

from budgets.state import RunState
from budgets.stats import Gain
from budgets.verdict import findings, recommendation, stood_for, title, winner, winner_means
from objectives.space import SearchSpace
from orchestrator.records.planned import space_of

Point = tuple[float, ...]

Certainty = Literal["confirmed", "unconfirmed", "no_go"]
"""A Go confirms; after a No-Go the baseline is what is recommended; else nobody has compared."""


@dataclass(frozen=True)
class Evidence:
    """What the candidate gains over the baseline, on fresh seeds."""

    gain: Gain
    baseline_score: float | None  # mean over the seeds that both have
    score: float | None
    rung: Gain | None  # on more FLOPs
    rung_label: str | None


@dataclass(frozen=True)
class Best:
    """What a search has come to."""

    state: RunState
    standing: Certainty
    candidate: Point  # the best there is, recommended or not
    headline: str
    evidence: Evidence | None

    @property
    def space(self) -> SearchSpace:
        return space_of(self.state.plan)

    @property
    def recommended(self) -> Point:
        """The candidate; after a No-Go the baseline."""
        return self.space.baseline if self.standing == "no_go" else self.candidate


def best_of(state: RunState) -> Best:
    """Raises ValueError on a run that searched nothing, or has learned nothing yet."""
    plan, decided = state.plan, state.decided
    if plan.search is None:
        raise ValueError(
            f"{plan.run_id} is a {plan.phase} run: expected a search, which has something to "
            "recommend"
        )
    candidate = best_point(state, compared=True)
    if candidate is None:
        raise ValueError(
            f"{plan.run_id} recommends nothing yet: none of its {plan.resolved.generations} "
            "generations is told. Repeat the command that began it to go on"
        )
    standing: Certainty = "unconfirmed"
    if decided is not None:
        standing = "no_go" if decided.grade == "no_go" else "confirmed"
    evidence = _evidence(state, candidate)
    return Best(state, standing, candidate, _headline(state, evidence), evidence)


def best_point(state: RunState, *, compared: bool = False) -> Point | None:
    """The best that the search has: what is recommended. None before a generation is told.

    After a No-Go nothing is, and "the best" depends on what it is for. To go on searching from
    there, or to look around it (phase 2, warm start), it is what the search stood for at
    last: all its scores put it there, and the comparison says only that this was no sure gain. To
    train or to show that run's one configuration all the same (`best`) it is the winner among the
    finalists, which was `compared`: of no other point is a gain known.
    """
    if (point := recommendation(state)) is not None:
        return point
    arm = winner(state) if compared else None
    return stood_for(state) if arm is None else arm.point


def _headline(state: RunState, evidence: Evidence | None) -> str:
    """What a reader must know first."""
    decided = state.decided
    if decided is None:
        return f"Not confirmed: {_why_unconfirmed(state)}."
    said = title(decided.grade, decided.no_go)
    if decided.grade == "no_go":
        return f"{said}: the baseline is what is recommended."
    seeds = 0 if evidence is None else evidence.gain.pairs
    return f"Confirmed: {said}, by {seeds} fresh seeds."


def _why_unconfirmed(state: RunState) -> str:
    plan = state.plan
    if state.concluded is None and state.finished < plan.resolved.generations:
        done = f"{state.finished} of {plan.resolved.generations} generations"
        return f"the search is not over, {done} are told"
    if plan.confirmation is None:
        tier = " of tier min" if plan.tier == "min" else " with verdict.confirm_seeds = 0"
        return f"a search{tier} is not compared with the baseline on fresh seeds"
    if state.concluded is None:
        return "its winner is still to be compared with the baseline on fresh seeds"
    return "the run ended before its winner was compared with the baseline on fresh seeds"


def _evidence(state: RunState, candidate: Point) -> Evidence | None:
    """None where it is not the candidate that was compared, or nothing was."""
    compared, found = winner(state), findings(state)
    if compared is None or compared.point != candidate or found is None or found.gain is None:
        return None
    means = winner_means(state)
    return Evidence(
        gain=found.gain,
        baseline_score=None if means is None else means[0],
        score=None if means is None else means[1],
        rung=found.rung,
        rung_label=found.rung_label,
    )
