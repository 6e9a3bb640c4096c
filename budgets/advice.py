"""The recommended next step after a decision, in words."""

from budgets.detectable import detectable
from budgets.gains import rung_gain, winner_gain
from budgets.state import RunState

MOST_SEEDS = 64
"""No verdict is advised to use more."""


def advice(state: RunState) -> str | None:
    """What to do next; None before the decision."""
    decided = state.decided
    if decided is None:
        return None
    plan = state.plan
    proceed = (
        f"python -m orchestrator phase2 --variant robust --tier min --from {plan.run_id} and the "
        "same --objective and --set"
    )
    match decided.grade:
        case "go_persists":
            return _after_go(state, f"proceed with {proceed}")
        case "go":
            return _after_go(
                state,
                f"{_on_more_flops(state)}, so search again at a larger target_flops before you "
                f"rely on it there; or proceed at this budget with {proceed}",
            )
        case "no_go":
            return f"Next: {_AFTER[decided.no_go or ''](state)}"


def _on_more_flops(state: RunState) -> str:
    if rung_gain(state) is None:
        return "it was not tried on more FLOPs"
    return "on more FLOPs too little of it was kept"


def _after_go(state: RunState, otherwise: str) -> str:
    if state.plan.phase == "phase2":
        return "Next: train with the recommendation (best.json)."
    return f"Next: {otherwise}."


def _other_knobs(_: RunState) -> str:
    return (
        "tune other knobs: `orchestrator space check` shows which move the score, and --set "
        "space=... chooses another group."
    )


def _more_seeds_or_knobs(state: RunState) -> str:
    """More seeds if they could show the gain that was asked; else something else must change."""
    found, limits = winner_gain(state), state.plan.thresholds
    if found is None or not found.sd or found.detectable is None:
        return _other_knobs(state)
    if found.detectable <= limits.go_gain:
        return (
            f"a gain of {limits.go_gain:.2%} would have been seen, so more seeds will not help: "
            f"{_other_knobs(state)}"
        )
    counts = range(found.pairs + 1, MOST_SEEDS + 1)
    enough = (n for n in counts if detectable(found.sd or 0.0, n, found.level) <= limits.go_gain)
    seeds = next(enough, None)
    if seeds is None:
        return (
            "the noise hides a gain of the size asked for: raise target_flops, where seeds differ "
            "less, or ask for a larger gain."
        )
    return (
        f"more seeds: on {seeds} a gain of {limits.go_gain:.2%} would be seen (--confirm-seeds "
        f"{seeds}, in a run of its own); or a larger target_flops."
    )


def _larger_flops(_: RunState) -> str:
    return "search at the target_flops that you care about: what wins at a small one is lost there."


def _look(_: RunState) -> str:
    return (
        "look into the failures (progress.csv, eval/*/*/*/stderr.txt), narrow the ranges that lead "
        "there, and search again."
    )


def _too_small(_: RunState) -> str:
    return (
        "the gain is smaller than asked, so the baseline stays the recommendation. To take it all "
        "the same: best.json has the winner's knobs. To find more: --tier max, other knobs, or a "
        "larger target_flops."
    )


_AFTER = {
    "dead_space": _other_knobs,
    "below_noise": _more_seeds_or_knobs,
    "too_small": _too_small,
    "does_not_persist": _larger_flops,
    "pathological": _look,
    "unstable": _look,
    "": _other_knobs,
}
