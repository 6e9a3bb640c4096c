"""The recommended next step after a decision: decided here once, told by every report."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from budgets.formatting import PROGRAM, percent, plain
from budgets.plan import Thresholds
from budgets.state import RunState
from budgets.stats import Gain, detectable
from budgets.verdict.decision import rung
from budgets.verdict.gains import average_gain, control_gains, rung_gain, winner_gain

MOST_SEEDS = 64
"""No verdict is advised to use more."""

StepKind = Literal[
    "use",  # train with what was found
    "follow",  # a phase 2 from here
    "longer_evaluations",  # the same search with more training in each evaluation
    "more_seeds",  # the same comparison with less noise
    "longer_search",  # more evaluations
    "other_knobs",
    "control",  # the simpler thing is better
    "failures",  # to be looked into first
]


class Step(NamedTuple):
    """What to do next."""

    kind: StepKind
    why: str = ""
    seeds: int | None = None  # of `more_seeds`: that are enough by the noise there was
    instead: str = ""  # of `control`: what is better


def advised(state: RunState) -> Step | None:
    """What to do after the decision; None before it."""
    own = state.decided
    if own is None:
        return None
    if own.no_go not in ("pathological", "unstable") and (named := _better_control(state)):
        return Step("control", instead=named)
    if own.grade == "go_persists":
        return Step("use" if state.plan.phase == "phase2" else "follow")
    if own.grade == "go":
        return Step("longer_evaluations", _not_shown_to_last(state))
    return _AFTER_A_NO_GO.get(own.no_go or "", _anything_else)(state)


def advice(state: RunState) -> str | None:
    """That as Markdown; None before the decision."""
    step = advised(state)
    if step is None:
        return None
    stop = "" if step.kind == "follow" else "."  # a command to be copied ends with its line
    return f"Next: {_IN_WORDS[step.kind](step, state)}{stop}"


def _use(_: Step, __: RunState) -> str:
    return "train with the recommendation (best.json)"


def _follow(_: Step, state: RunState) -> str:
    return f"`{PROGRAM} phase2 --variant robust --tier min --from {plain(state.plan.run_id)}`"


def _longer_evaluations(step: Step, state: RunState) -> str:
    if is_rung_uncertain(state):
        return f"train the winner and the baseline longer, on more seeds: {step.why}"
    return f"search with {_more_training(state)}: {step.why}"


def _more_seeds(step: Step, state: RunState) -> str:
    return (
        f"more seeds: {step.why}. verdict.confirm_seeds = {step.seeds} in a run of its own, with "
        "another evaluation.seed and --run-id, for these seeds have been looked at. Or search with "
        f"{_more_training(state)}, where seeds differ less"
    )


def _longer_search(step: Step, state: RunState) -> str:
    tier = "" if state.plan.tier == "max" else " (--tier max)"
    return f"search longer{tier}: {step.why}"


def _other_knobs(step: Step, state: RunState) -> str:
    check = f"`{PROGRAM} check knobs` shows which move the score"
    groups = "space" in state.plan.objective.get("settings", {})
    others = ", and --set space=GROUP chooses others" if groups else ""
    return f"{step.why}{'; ' if step.why else ''}tune other knobs: {check}{others}"


def _control(step: Step, _: RunState) -> str:
    return (
        f"use {plain(step.instead)}, which is simpler and better than the winner; or tune knobs "
        "that it has as well"
    )


def _failures(_: Step, __: RunState) -> str:
    return (
        "look into the failures (progress.csv, and the stderr.txt of each evaluation), narrow the "
        "ranges that lead there, and search again"
    )


_IN_WORDS: dict[StepKind, Callable[[Step, RunState], str]] = {
    "use": _use,
    "follow": _follow,
    "longer_evaluations": _longer_evaluations,
    "more_seeds": _more_seeds,
    "longer_search": _longer_search,
    "other_knobs": _other_knobs,
    "control": _control,
    "failures": _failures,
}


def _not_shown_to_last(state: RunState) -> str:
    """Why a Go is not to be relied on yet with more training."""
    found = rung_gain(state)
    if found is None:
        return "the gain was not tried on more FLOPs"
    if found.mean is None:
        return "the gain on more FLOPs could not be measured"
    if is_rung_uncertain(state):
        return "what was kept of the gain on more FLOPs may be chance"
    return "on more FLOPs too little of the gain was kept"


def is_rung_uncertain(state: RunState) -> bool:
    """Whether enough of the gain was kept on more FLOPs, and only more seeds can show it."""
    kept = rung(state)
    if kept is None or kept.met or kept.observed is None or kept.limit is None:
        return False
    return kept.observed >= kept.limit


def _better_control(state: RunState) -> str:
    """The one that the winner is shown to be worse than by most; empty: there is none."""
    found = [(over.mean or 0.0, name) for name, _, over in control_gains(state) if over.is_loss]
    return min(found)[1] if found else ""


def _more_training(state: RunState) -> str:
    """What more training of each evaluation is called in the settings that were searched."""
    settings = state.plan.objective.get("settings", {})
    known = (name for name in ("target_flops", "budget") if settings.get(name) is not None)
    name = next(known, None)
    return "longer evaluations" if name is None else f"a larger {name}"


def _below_noise(state: RunState) -> Step:
    """More seeds if they could show the gain that was asked; else something else must change."""
    found, limits = winner_gain(state), state.plan.thresholds
    if found is None or found.sd is None:
        return Step("other_knobs")
    asked = percent(limits.go_gain)
    if _would_have_shown(found, limits):
        why = f"a gain of {asked} would have been seen, so more seeds will not help"
        return Step("other_knobs", why)
    seeds = enough_seeds(state)
    if seeds is None:
        why = f"the noise hides a gain of {asked}, and seeds differ less there"
        return Step("longer_evaluations", why)
    why = f"on about {seeds}, by the noise of these, a gain of {asked} would be seen"
    return Step("more_seeds", why, seeds)


def _would_have_shown(found: Gain, limits: Thresholds) -> bool:
    """Whether a gain as large as asked would have been seen on the seeds that there were."""
    assert found.upper is not None, "it is known wherever the spread is"
    assert found.detectable is not None, "so is this"
    is_enough = found.pairs >= limits.go_seeds
    return is_enough and min(found.upper, found.detectable) <= limits.go_gain


def enough_seeds(state: RunState) -> int | None:
    """More seeds, on which a gain as large as asked would be seen by the noise of these.

    None where these were enough for that, or no number up to MOST_SEEDS is.
    """
    found, limits = winner_gain(state), state.plan.thresholds
    if found is None or found.sd is None or _would_have_shown(found, limits):
        return None
    counts = range(max(found.pairs + 1, limits.go_seeds), MOST_SEEDS + 1)
    enough = (n for n in counts if detectable(found.sd, n, found.level) <= limits.go_gain)
    return next(enough, None)


def _too_small(state: RunState) -> Step:
    """The gain is there, and who wants it all the same takes it."""
    taken = (
        "the gain is smaller than asked; who takes it all the same finds the winner's knobs in "
        "best.json"
    )
    return Step("other_knobs" if state.plan.tier == "max" else "longer_search", taken)


def _does_not_persist(state: RunState) -> Step:
    """It was lost with more training, or was never the search's as a whole."""
    found = average_gain(state)
    if found is None or found.mean is None or found.mean <= 0:
        why = "the distribution's mean did not get better than the baseline, one candidate did"
        return Step("longer_search", why)
    return Step("longer_evaluations", "what wins on a short training is lost there")


def _look(_: RunState) -> Step:
    return Step("failures")


def _anything_else(_: RunState) -> Step:
    return Step("other_knobs")


_AFTER_A_NO_GO: dict[str, Callable[[RunState], Step]] = {
    "below_noise": _below_noise,
    "too_small": _too_small,
    "does_not_persist": _does_not_persist,
    "pathological": _look,
    "unstable": _look,
}
