"""A search that was compared with the baseline and decided: Go, Go that persists, or a No-Go."""

from collections.abc import Callable

from budgets.events import Decided
from budgets.statistics.comparison import Gain, better, percent
from budgets.verdict.advice import advice, caution, enough_seeds
from budgets.verdict.conditions import gain_in_words
from budgets.verdict.findings import Findings, title
from budgets.verdict.findings_text import in_words, seeds, unbeaten
from budgets.verdict.gains import winner_means
from orchestrator.report.answers.asked import Asked, command
from orchestrator.report.answers.cost import cost
from orchestrator.report.answers.words import luck_in_words, sentence_case
from orchestrator.report.model import Answer
from orchestrator.report.prose import unmarked


def decided(asked: Asked, found: Findings) -> Answer:
    """The answer once there is a verdict."""
    own = asked.state.decided
    assert own is not None, "it is asked of a run with a verdict"
    said, lines = _next(asked, own)
    return Answer(
        title=title(own.grade, own.no_go),
        sentence=_sentence(asked, found, own),
        meaning=_MEANING[own.no_go or own.grade](found),
        luck=luck_in_words(found.seemed, found.luck),
        found=_found(asked, found, own),
        sure=_sure(found),
        cost=cost(asked),
        next=said,
        commands=lines,
        mood="bad" if own.grade == "no_go" else "good",
    )


def _sentence(asked: Asked, found: Findings, own: Decided) -> str:
    if found.gain is None:
        return f"{sentence_case(own.evidence)}."
    said = f"{sentence_case(gain_in_words(asked.state, found.gain))}."
    kept = next((c.observed for c in found.conditions if c.rule == "rung"), None)
    if found.rung is None or kept is None:
        return said
    share = "nothing" if kept <= 0 else f"{100 * kept:.3g}%"
    return f"{said} With {found.rung_label} {share} of the gain is kept."


def _go_persists(found: Findings) -> str:
    return (
        f"a gain of {percent(found.asked)} or more that luck does not explain, and most of it "
        f"stays with {found.rung_label}"
    )


def _go(found: Findings) -> str:
    said = (
        f"a gain of {percent(found.asked)} or more that luck does not explain, with as much "
        "training as the search's evaluations had"
    )
    if found.rung is None:
        return f"{said}; more was not tried"
    if found.rung.mean is None:
        return f"{said}; with {found.rung_label} it could not be measured"
    return f"{said}; with {found.rung_label} too little of it is kept"


def _dead_space(_: Findings) -> str:
    return "wherever the search set the knobs, scores differ by no more than chance"


def _below_noise(_: Findings) -> str:
    return "no gain can be told from chance, because there is none or because the noise hides it"


def _too_small(found: Findings) -> str:
    return f"there is a gain, but it is smaller than the {percent(found.asked)} that was asked"


def _does_not_persist(found: Findings) -> str:
    average = next((c for c in found.conditions if c.rule == "persistence"), None)
    if average is not None and not average.met:
        return "one candidate gained, the search as a whole did not: that looks like its luck"
    return f"the gain is gone with {found.rung_label or 'more training'}"


def _pathological(_: Findings) -> str:
    return "the winner's own trainings fail, explode or are unstable: nobody could rely on it"


def _unstable(_: Findings) -> str:
    return "too many evaluations failed for the comparison to mean anything"


_MEANING: dict[str, Callable[[Findings], str]] = {
    "go_persists": _go_persists,
    "go": _go,
    "dead_space": _dead_space,
    "below_noise": _below_noise,
    "too_small": _too_small,
    "does_not_persist": _does_not_persist,
    "pathological": _pathological,
    "unstable": _unstable,
}


def _found(asked: Asked, found: Findings, own: Decided) -> str:
    if own.grade != "no_go":
        gain = "" if own.gain is None else f" {better(own.gain)} than the baseline"
        said = f"Yes: settings{gain}{_scores(asked)}. The baseline is what nobody tuned."
        return f"{said} {unbeaten(found)}".strip()
    if own.no_go == "too_small" and own.gain is not None:
        return f"Too little: settings {better(own.gain)} than the baseline. The baseline stays."
    return "No. Nothing is recommended: the baseline, which nobody tuned, stays."


def _scores(asked: Asked) -> str:
    means = winner_means(asked.state)
    return "" if means is None else f" (a score of {means[1]:.4g} against {means[0]:.4g})"


def _sure(found: Findings) -> str:
    gain = found.gain
    if gain is None or gain.mean is None:
        return "Not at all: there is no seed on which both it and the baseline have a score."
    if gain.lower is None or gain.upper is None:
        return f"Hardly: it was seen on {seeds(gain)} only."
    return f"{_range(gain)} {_FRESH}{_power(gain)}"


_FRESH = "A seed is a new throw of the dice for both; on these nobody was picked."


def _range(gain: Gain) -> str:
    assert gain.lower is not None, "it has a range"
    sure = percent(1 - gain.level)
    if gain.is_shown:
        return f"{sure} sure that the gain is {100 * gain.lower:.3g}% or more: {in_words(gain)}."
    return f"Zero is within what {seeds(gain)} leave possible: {in_words(gain)}."


def _power(gain: Gain) -> str:
    """What may have been missed."""
    if gain.is_shown or not gain.detectable:
        return ""
    return f" A true gain of {gain.detectable:.2%} would have shown 8 times of 10."


def _next(asked: Asked, own: Decided) -> tuple[str, tuple[str, ...]]:
    """What to do, and the commands for it."""
    if own.grade == "no_go":
        said = sentence_case(unmarked(advice(asked.state) or "").removeprefix("Next: "))
        return said, (_after_a_no_go(asked, own),)
    see, careful = command("best", asked.run), caution(asked.state)
    if asked.state.plan.phase == "phase2":
        return f"Train with what it recommends.{careful}", (see,)
    words = ("phase2", "--variant", "robust", "--tier", "min", "--from", asked.run)
    said = f"See what it recommends; search on from there with three seeds a candidate.{careful}"
    return said, (see, asked.of_objective(*words))


def _after_a_no_go(asked: Asked, own: Decided) -> str:
    plan = asked.state.plan
    if own.no_go in ("pathological", "unstable"):
        return command("ledger", "export", asked.run)
    if own.no_go in ("too_small", "does_not_persist"):
        return command("best", asked.run)
    count = enough_seeds(asked.state) if own.no_go == "below_noise" else None
    if count is not None and plan.phase == "phase1" and plan.tier is not None:
        again = ("--confirm-seeds", str(count), "--eval-seed", str(plan.evaluation_seed + 1))
        name = ("--run-id", f"{plan.run_id}-{count}-seeds")
        return asked.of_objective("phase1", "--tier", plan.tier, *again, *name)
    return asked.of_objective("space", "check")
