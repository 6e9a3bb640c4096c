"""What a campaign's conditions and factors do to the score."""

from collections.abc import Iterator

from budgets.campaign.effects import CampaignReport, Comparison, ConditionRow, Effect
from budgets.campaign.words import in_words, name_of
from budgets.plain import command
from budgets.words import first_few, listed
from orchestrator.report.answers.asked import Asked
from orchestrator.report.answers.cost import cost
from orchestrator.report.bars import bars_of
from orchestrator.report.model import Answer

MOST_FACTORS = 3
"""That a title has room for."""


def compared(asked: Asked, found: CampaignReport) -> Answer:
    """The answer of a campaign that is over."""
    is_any = bool(found.found or any(map(_is_far, found.rows)))
    is_compared = bool(bars_of(found))
    return Answer(
        title=_title(found, is_any=is_any) if is_compared else "Scores measured",
        sentence=_sentence(asked, found),
        meaning=(
            "Conditions were evaluated on the same seeds"
            f"{' and compared seed by seed' if is_compared else ''}."
        ),
        found=_effects(found, is_any=is_any),
        sure=_certainty(found, is_compared=is_compared),
        cost=cost(asked),
        next=_next(found, is_any=is_any, is_compared=is_compared),
        commands=(
            f"{command('report', asked.run)} --png {'effects' if is_compared else 'conditions'}",
        ),
        mood="good" if is_any else "open",
    )


def _is_far(row: ConditionRow) -> bool:
    """Whether it is beyond chance from a control."""
    return any(one.difference.is_found for one in row.comparisons)


def _mains(found: CampaignReport) -> list[str]:
    """Factors with an effect, the largest first."""
    return list(dict.fromkeys(e.factors[0] for e in found.found if not e.is_interaction))


def _title(found: CampaignReport, *, is_any: bool) -> str:
    factors = _mains(found)
    if not is_any:
        return "No effect found"
    if not factors or len(factors) > MOST_FACTORS:
        return "Effects found"
    return f"{listed(factors)} {'moves' if len(factors) == 1 else 'move'} the score"


def _sentence(asked: Asked, found: CampaignReport) -> str:
    """What was found; how many evaluations there were only where not all of them gave a score."""
    usual = f"All {found.evaluations} evaluations are settled, 0 of them failed. "
    return asked.report.sentence.removeprefix(usual)


def _effects(found: CampaignReport, *, is_any: bool) -> str:
    said = [*_of_factors(found), *_of_conditions(found)]
    if not said:
        return "There is no control and no factor to compare by: only the scores."
    return f"{'Yes' if is_any else 'No'}: {'; '.join(said)}."


def _of_factors(found: CampaignReport) -> Iterator[str]:
    """The effects with direction and size, then what is none."""
    if own := [f"{_named(e)}: {_size(e)}" for e in found.found]:
        yield first_few(own, 4)
    others = [_named(e) for e in found.effects if not e.difference.is_found]
    if others:
        yield f"no effect is shown of {listed(others, 5)}"


def _named(effect: Effect) -> str:
    """`matrix_lr 0.04 against 0.01`."""
    return name_of(effect).replace(": ", " ", 1)


def _size(effect: Effect) -> str:
    """`2.45% better`: without its interval, which the sentence above has."""
    own = in_words(effect.difference).partition(" (")[0]
    return f"{own} than the two add up to" if effect.is_interaction else own


def _of_conditions(found: CampaignReport) -> Iterator[str]:
    """Which are better, worse, or not told apart from the first control."""
    sides: dict[str, list[str]] = {"better": [], "worse": [], "not shown to differ": []}
    for row in found.rows:
        for one in row.comparisons:
            if one.control == found.controls[0]:
                sides[_side(one)].append(row.name)
    told = [f"{side} {listed(names, 5)}" for side, names in sides.items() if names]
    if told:
        yield f"against {found.controls[0]}: {', '.join(told)}"


def _side(one: Comparison) -> str:
    if not one.difference.is_found or one.difference.mean is None:
        return "not shown to differ"
    return "better" if one.difference.mean < 0 else "worse"


def _certainty(found: CampaignReport, *, is_compared: bool) -> str:
    if len(found.seeds) == 1:
        return "Not at all: with one seed nothing can be told from luck."
    said = f"{1 - found.level:.0%} sure of each range, on {len(found.seeds)} seeds."
    if not is_compared:
        return said
    said += (
        f" Of all that is called an effect here {found.rate:.0%} at most are expected to be luck."
    )
    if found.detectable_percent is None:
        return said
    return f"{said} An effect of {found.detectable_percent:.2g}% would be seen 8 times of 10."


def _next(found: CampaignReport, *, is_any: bool, is_compared: bool) -> str:
    if found.unsettled:
        return "Some conditions are not settled: repeat the command that began it. What there is:"
    if not is_compared:
        return "To show the scores, draw them:"
    if not is_any:
        return "More seeds in its file would show smaller effects. To show these, draw them:"
    levels = [f"{factor} {_level(found, factor)}" for factor in _mains(found)]
    if not levels:
        return "Take the condition with the best score. To show it, draw the effects:"
    apart = "each is the better level, averaged over the other factors"
    if any(effect.is_interaction for effect in found.found):
        apart = "they act together too, so look at the conditions before you mix them"
    return f"Take {listed(levels)}: {apart}. To show it, draw the effects:"


def _level(found: CampaignReport, factor: str) -> str:
    """The level with the lowest score: the first one, unless another is shown to be better."""
    own = [e for e in found.found if e.factors == (factor,) and e.difference.mean is not None]
    best = min(own, key=lambda e: e.difference.mean or 0.0)
    return best.levels[0] if (best.difference.mean or 0.0) < 0 else best.against[0]
