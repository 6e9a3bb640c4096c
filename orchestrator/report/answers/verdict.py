"""A search that was compared with the baseline and decided: Go, Go that persists, or a No-Go."""

from budgets.events import Decided
from budgets.statistics.comparison import Gain, better
from budgets.verdict.conditions import gain_in_words
from budgets.verdict.findings import Findings, title
from budgets.verdict.gains import winner_means
from budgets.words import counted, percent, quoted, sentence_case, uncapitalized
from orchestrator.records.cautions import cautions, kept
from orchestrator.report.answers.afterwards import afterwards
from orchestrator.report.answers.asked import Asked
from orchestrator.report.answers.cost import cost
from orchestrator.report.answers.words import largest_moves, luck_in_words
from orchestrator.report.measured import measured_in
from orchestrator.report.model import Answer


def decided(asked: Asked, found: Findings) -> Answer:
    """The answer once there is a verdict."""
    own = asked.state.decided
    assert own is not None, "it is asked of a run with a verdict"
    called = title(own.grade, own.no_go)
    after = afterwards(asked, found)
    but = uncapitalized(" ".join(cautions(asked.state)))
    return Answer(
        title=called,
        sentence=_sentence(asked, found, own),
        but=but,
        meaning=f"{quoted(called)} means {_meaning(found, own)}.",
        luck=luck_in_words(found.seemed, found.luck),
        found=_found(asked, own),
        sure=_sure(found),
        cost=cost(asked),
        next=after.said,
        commands=after.commands,
        otherwise=after.otherwise,
        mood="bad" if own.grade == "no_go" else "caution" if but else "good",
    )


def _sentence(asked: Asked, found: Findings, own: Decided) -> str:
    gain = found.gain
    if gain is None:
        return f"{sentence_case(own.evidence)}."
    if own.no_go in ("dead_space", "below_noise") and gain.mean is not None:
        return _no_gain(asked, gain)
    said = f"{sentence_case(gain_in_words(asked.state, gain))}."
    share = kept(found)
    if found.rung is None or share is None or own.grade == "go":
        return said
    held = "the gain is lost" if share <= 0 else f"{percent(share, 3)} of the gain is kept"
    return f"{said} With {found.rung_label} {held} ({counted(found.rung.pairs, 'seed')})."


def _no_gain(asked: Asked, gain: Gain) -> str:
    assert gain.mean is not None, "there is something to say"
    said = gain_in_words(asked.state, gain).partition(", with ")[0]
    chance = ", which may be chance" if gain.upper is None or gain.upper > 0 else ""
    return f"No gain is shown: {said}{chance}."


def _meaning(found: Findings, own: Decided) -> str:
    which: str = own.no_go or own.grade
    is_average_met = all(c.met for c in found.conditions if c.rule == "persistence")
    if which == "does_not_persist" and not is_average_met:
        which = "one_candidate"
    more = found.rung_label or "more training"
    return _MEANING[which].format(asked=percent(found.asked), more=more)


_MEANING = {
    "go_persists": (
        "a gain of {asked} or more that luck does not explain, and most of it stays with {more}"
    ),
    "go": (
        "a gain of {asked} or more that luck does not explain, with as much training as the "
        "search's evaluations had"
    ),
    "dead_space": "that wherever the search set the knobs, scores differ by no more than chance",
    "below_noise": (
        "that no gain can be told from chance, because there is none or because the noise hides it"
    ),
    "too_small": "that there is a gain, but smaller than the {asked} that was asked",
    "does_not_persist": "that the gain is gone with {more}",
    "one_candidate": (
        "that one candidate gained and the search as a whole did not, which looks like its luck"
    ),
    "pathological": (
        "that the winner's own trainings fail, explode or are unstable: it cannot be relied on"
    ),
    "unstable": "that too many evaluations failed for the comparison to mean anything",
}


def _found(asked: Asked, own: Decided) -> str:
    if own.grade != "no_go":
        gain = "" if own.gain is None else f" {better(own.gain)} than the baseline"
        moves = largest_moves(asked.state)
        said = (
            f"Yes: knobs{gain}.",
            _scores(asked),
            f"Largest moves: {moves}." if moves else "",
        )
        return " ".join(filter(None, said))
    if own.no_go == "too_small" and own.gain is not None:
        return f"Too little: {better(own.gain)} than the baseline, which stays. {_scores(asked)}"
    return "No. Nothing is recommended: the baseline stays."


def _scores(asked: Asked) -> str:
    """`Held-out bits per byte, lower is better: 3.1094 against 3.1699.`"""
    means = winner_means(asked.state)
    if means is None:
        return ""
    what = sentence_case(measured_in(asked.state))
    return f"{what} (lower is better): {means[1]:.5g} against the baseline's {means[0]:.5g}."


def _sure(found: Findings) -> str:
    gain = found.gain
    if gain is None or gain.mean is None:
        return "Not at all: there is no seed on which both it and the baseline have a score."
    if gain.lower is None or gain.upper is None:
        return f"Hardly: it was seen on {counted(gain.pairs, 'seed')} only."
    return f"{_bound(gain)} {_best(gain)}{_power(gain)}"


def _bound(gain: Gain) -> str:
    sure = percent(1 - gain.level)
    assert gain.lower is not None, "it has bounds"
    assert gain.upper is not None, "it has bounds"
    if gain.is_shown:
        return f"{sure} sure of {percent(gain.lower, 3)} or more."
    if gain.upper <= 0:
        return f"{sure} sure that there is no gain."
    return "Not sure that there is any gain."


def _best(gain: Gain) -> str:
    assert gain.mean is not None, "it was measured"
    size = percent(gain.mean, 3) if gain.mean >= 0 else better(gain.mean)
    return (
        f"Best estimate {size}, measured on {counted(gain.pairs, 'new seed')} (other random "
        "numbers) that were not used to choose it."
    )


def _power(gain: Gain) -> str:
    """What may have been missed."""
    if gain.is_shown or not gain.detectable:
        return ""
    return f" A true gain of {percent(gain.detectable, 3)} would have been seen 8 times of 10."
