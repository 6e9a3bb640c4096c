"""The rule about a search that no longer gets better."""

from statistics import fmean, median

from budgets.rules.table import PATIENCE, Reading
from budgets.state import Generation, RunState
from budgets.words import counted


def patience(state: RunState) -> Reading:
    """The search got hardly better over the last N = `patience_generations` generations.

    Compared are medians, over generations, of the mean score of the healthy candidates: over the
    last N told, and over the N before them, or as many as there are. A generation's seeds are
    shared by all its candidates and fresh in every one, so its mean moves up and down with them:
    one lucky generation shall neither set a bar nor count as an improvement. For the same reason it
    is not the best mean so far that is compared with. Scores are divided by the baseline's, or
    without one by the first mean; those of a proxy are compared with its own only.

    It speaks between generations, and not when there is nothing left to save. An override starts
    the count anew: the N generations that it speaks of come after.
    """
    limits, number = state.plan.thresholds, len(state.told) - 1
    count, limit = limits.patience_generations, limits.patience_improve

    def quiet(why: str, observed: float | None = None) -> Reading:
        shown = None if count is None else limit
        return PATIENCE.reads(max(number, 0), observed, shown, why, fires=False)

    if count is None:
        return quiet("no patience is set: the search goes on to its last generation")
    comparable = _comparable(state)
    means = [fmean(g.healthy) for g in comparable]
    if len(means) <= count:
        return quiet(f"{len(means)} generations can be compared, it takes more than {count}")
    before, after = median(means[-2 * count : -count]), median(means[-count:])
    gain = (before - after) / (abs(_reference(state, comparable, means[0])) or 1.0)
    evidence = (
        f"the mean score got {gain:.3%} better over {counted(count, 'generation')}, to "
        f"{after:.5g} from {before:.5g} (medians over generations; {limit:.3%} or less is no "
        "improvement)"
    )
    if gain > limit or not _may_speak(state, comparable[-count].number - 1):
        return quiet(evidence, gain)
    return PATIENCE.reads(number, gain, limit, evidence, fires=True)


def _comparable(state: RunState) -> list[Generation]:
    """The generations told that were evaluated as the last one was, in order."""
    return [g for g in state.told if g.changed == state.told[-1].changed and g.healthy]


def _reference(state: RunState, comparable: list[Generation], first: float) -> float:
    """The score that an improvement is relative to."""
    calibration = state.plan.calibration
    baseline = None if calibration is None else calibration.mean_score
    return first if baseline is None or comparable[0].changed else baseline


def _may_speak(state: RunState, before: int) -> bool:
    """Whether a generation could be saved, and none after `before` was let through."""
    is_between = state.current is None and state.finished < state.plan.resolved.generations
    passed = (o.generation for o in state.overridden if o.rule == PATIENCE.name)
    # that of the latest generation is waived by whoever judges it
    return is_between and all(n <= before or n == len(state.told) - 1 for n in passed)
