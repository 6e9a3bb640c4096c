"""The recommended next step after a decision, in words."""

from budgets.plain import plain
from budgets.state import RunState
from budgets.statistics.detectable import detectable
from budgets.verdict.gains import average_gain, rung_gain, winner_gain
from budgets.words import percent

MOST_SEEDS = 64
"""No verdict is advised to use more."""


def advice(state: RunState) -> str | None:
    """What to do next, as Markdown; None before the decision."""
    decided = state.decided
    if decided is None:
        return None
    if decided.grade == "no_go":
        return f"Next: {_AFTER[decided.no_go or ''](state)}."
    if state.plan.phase == "phase2":
        return f"Next: train with the recommendation (best.json).{caution(state)}"
    follow = (
        f"`python -m orchestrator phase2 --variant robust --tier min --from "
        f"{plain(state.plan.run_id)}` with the same --objective and --set"
    )
    return f"Next: {follow}.{caution(state)}"


def caution(state: RunState) -> str:
    """What a Go that is not shown to persist leaves open."""
    if state.decided is not None and state.decided.grade == "go_persists":
        return ""
    found = rung_gain(state)
    why = "On more FLOPs too little of the gain was kept"
    if found is None:
        why = "It was not tried on more FLOPs"
    elif found.mean is None:
        why = "Its gain on more FLOPs could not be measured"
    longer = _longer(state)
    return f" {why}: search again with {longer} before you rely on it there."


def _longer(state: RunState) -> str:
    """What more training of each evaluation is called in the settings that were searched."""
    settings = state.plan.objective.get("settings", {})
    known = (name for name in ("target_flops", "budget") if settings.get(name) is not None)
    name = next(known, None)
    return "longer evaluations" if name is None else f"a larger {name}"


def _other_knobs(state: RunState) -> str:
    said = "tune other knobs: `orchestrator space check` shows which of these move the score"
    if "space" not in state.plan.objective.get("settings", {}):
        return said
    return f"{said}, and --set space=GROUP chooses others"


def _more_seeds_or_knobs(state: RunState) -> str:
    """More seeds if they could show the gain that was asked; else something else must change."""
    found, limits = winner_gain(state), state.plan.thresholds
    if found is None or found.upper is None or found.sd is None or found.detectable is None:
        return _other_knobs(state)
    asked = percent(limits.go_gain)
    if _would_have_shown(state):
        return (
            f"a gain of {asked} would have been seen, so more seeds will not help; "
            f"{_other_knobs(state)}"
        )
    seeds = enough_seeds(state)
    if seeds is None:
        return (
            f"the noise hides a gain of {asked}: search with {_longer(state)}, where seeds differ "
            "less, or ask for a larger gain"
        )
    return (
        f"more seeds. On about {seeds}, by the noise of these, a gain of {asked} would be seen: "
        f"--confirm-seeds {seeds} in a run of its own, with another --eval-seed and --run-id, for "
        f"these seeds have been looked at. Or search with {_longer(state)}, where seeds differ less"
    )


def _would_have_shown(state: RunState) -> bool:
    """Whether a gain as large as asked would have been seen on the seeds that there were."""
    found, limits = winner_gain(state), state.plan.thresholds
    if found is None or found.upper is None or found.detectable is None:
        return False
    is_enough = found.pairs >= limits.go_seeds
    return is_enough and min(found.upper, found.detectable) <= limits.go_gain


def enough_seeds(state: RunState) -> int | None:
    """More seeds, on which a gain as large as asked would be seen by the noise of these.

    None where these were enough for that, or no number up to MOST_SEEDS is.
    """
    found, limits = winner_gain(state), state.plan.thresholds
    if found is None or found.sd is None or _would_have_shown(state):
        return None
    counts = range(max(found.pairs + 1, limits.go_seeds), MOST_SEEDS + 1)
    enough = (n for n in counts if detectable(found.sd, n, found.level) <= limits.go_gain)
    return next(enough, None)


def _persistence(state: RunState) -> str:
    """It was lost on the rung, or was never the search's as a whole."""
    found = average_gain(state)
    if found is None or found.mean is None or found.mean <= 0:
        longer = "" if state.plan.tier == "max" else " (--tier max)"
        return (
            f"search longer{longer}, until the distribution's mean is where its best candidate is"
        )
    return (
        f"search with {_longer(state)}, as long as you care about: what wins on a short training "
        "is lost there"
    )


def _look(_: RunState) -> str:
    return (
        "look into the failures (progress.csv, and the stderr.txt of each evaluation), narrow the "
        "ranges that lead there, and search again"
    )


def _too_small(state: RunState) -> str:
    longer = "" if state.plan.tier == "max" else "--tier max, "
    return (
        f"find more with {longer}other knobs or {_longer(state)}. The gain is smaller than "
        "asked; who takes it all the same finds the winner's knobs in best.json"
    )


_AFTER = {
    "dead_space": _other_knobs,
    "below_noise": _more_seeds_or_knobs,
    "too_small": _too_small,
    "does_not_persist": _persistence,
    "pathological": _look,
    "unstable": _look,
    "": _other_knobs,
}
