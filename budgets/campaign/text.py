"""What a campaign found, for a person."""

from collections.abc import Iterator, Sequence

from budgets.blocks import Block, Heading, Items, Table, Text
from budgets.campaign.conditions_text import CAPTION, condition_tables
from budgets.campaign.words import chance_in_words, in_words, moves, name_of, with_level
from budgets.effects import CampaignReport, Effect, telling
from budgets.formatting import first_few, number, plain

MOST_INTERACTIONS = 20
"""Those found are shown however many they are; of the rest the least likely by chance."""

MOST_CLAUSES = 3
"""Of the sentence."""


def campaign_sentence(found: CampaignReport, cells: str = "evaluations") -> str:
    """What was found, claiming no more than chance leaves. `cells`: what it is made of."""
    settled = found.evaluations - found.unsettled
    if not found.is_over:
        return f"{settled} of {found.evaluations} {cells} settled."
    failed = settled - found.statuses.get("ok", 0)
    begins = f"All {settled} {cells} are settled, {failed} of them failed."
    if found.unsettled:
        begins = f"{settled} of {found.evaluations} {cells} are settled, {failed} failed."
    clauses = [*moves(found.found, found.level), *_differing(found)]
    said = first_few(clauses, MOST_CLAUSES)
    return f"{begins} {said}." if said else f"{begins} {_nothing(found)}"


def _differing(found: CampaignReport) -> list[str]:
    """Conditions that differ from a control, where no factor says it; controls always."""
    return [
        f"{row.name} is {with_level(one.difference, found.level)} than {one.control}"
        for row in found.rows
        for one in row.comparisons
        if one.difference.is_found and (row.is_control or not found.effects)
    ]


def _nothing(found: CampaignReport) -> str:
    """Why no effect is named."""
    if not any(row.healthy for row in found.rows):
        return "No condition has a score."
    if len(found.rows) == 1:
        return f"{found.rows[0].name} scores {number(found.rows[0].mean)}."
    if len(found.seeds) == 1:
        return "With one seed no difference can be told from luck."
    own = [e.difference for e in found.effects]
    own += [one.difference for row in found.rows for one in row.comparisons]
    if not own:
        return "There is no control and no factor to compare by."
    if all(one.chance is None for one in own):
        return "No two conditions share two seeds with a score: nothing can be told from luck."
    missed = found.detectable_percent
    power = "" if missed is None else f"; a main effect of {missed:.2g}% is seen 8 times of 10"
    return f"No difference is beyond chance{power}."


def campaign_blocks(found: CampaignReport) -> list[Block]:
    """The conditions against the controls, the effects of the factors, and what they rest on."""
    blocks: list[Block] = [Heading(CAPTION), Text(_basis(found)), *condition_tables(found)]
    if found.effects and any(row.healthy for row in found.rows):
        blocks += [Heading("Effects"), *_effects(found)]
    notes = list(_notes(found))
    return [*blocks, Items(notes)] if notes else blocks


def _basis(found: CampaignReport) -> str:
    seeds = "one seed" if len(found.seeds) == 1 else f"{len(found.seeds)} seeds"
    if len(found.seeds) == 1:
        return (
            f"Lower is better ({plain(found.measure)}). Each condition has one seed, so nothing "
            "here can be told from luck."
        )
    judged = (
        f"**Bold** is beyond chance: of all that is, {found.rate:.0%} at most is expected to be "
        "luck"
    )
    if not found.is_over:
        judged = "Nothing is judged before the last evaluation is settled"
    return (
        f"Lower is better ({plain(found.measure)}). Differences are paired on {seeds} that all "
        f"conditions share, in percent of what is compared with; in brackets where the true one is "
        f"with {1 - found.level:.0%} confidence. {judged}."
    )


def _effects(found: CampaignReport) -> Iterator[Block]:
    mains = [effect for effect in found.effects if not effect.is_interaction]
    others = [effect for effect in found.effects if effect.is_interaction]
    shown = telling(others, MOST_INTERACTIONS)
    yield Text(
        f"Of moving a factor from its first level, averaged over all others; in percent of "
        f"{number(found.reference)}, the mean of {plain(found.reference_of)}."
    )
    yield _table("effect", mains, found)
    if shown:
        yield Text("Together: how much better or worse than what both moves add up to.")
        yield _table("two factors", shown, found)
    if len(shown) < len(others):
        yield Text(f"{len(others) - len(shown)} more of two factors are in effects.json.")


def _table(what: str, effects: Sequence[Effect], found: CampaignReport) -> Table:
    columns = [what, ">on the score", ">seeds", ">chance"]
    return Table("Effects", columns, [_effect_row(effect, found) for effect in effects])


def _effect_row(effect: Effect, found: CampaignReport) -> tuple[object, ...]:
    own = effect.difference
    said = in_words(own) if own.seeds else _why_not(effect, found)
    if own.is_found:
        said = f"**{said}**"
    return plain(name_of(effect)), said, own.seeds, chance_in_words(own)


def _why_not(effect: Effect, found: CampaignReport) -> str:
    """Why it is not estimated."""
    yet = "" if found.is_over else " yet"
    if not effect.averaged:
        return f"not estimated: a condition that it takes has no score{yet}"
    return f"not estimated: no seed has a score of all its conditions{yet}"


def _notes(found: CampaignReport) -> Iterator[str]:
    """What the figures above do not rest on."""
    if found.is_over and found.unsettled:
        yield (
            f"{found.unsettled} of {found.evaluations} evaluations were not made: the figures are "
            "of those that were."
        )
    partial = [e for e in found.effects if 0 < e.averaged < e.combinations]
    if partial:
        few = [f"{plain(name_of(e))} over {e.averaged} of {e.combinations}" for e in partial]
        yield (
            f"Averaged over fewer combinations of the other factors than there are, as a condition "
            f"is missing or mostly failed: {first_few(few, 4)}."
        )
    if found.is_over and len(found.seeds) > 1 and found.detectable_percent is not None:
        yield (
            f"A true main effect of {found.detectable_percent:.2g}% is seen 8 times of 10 with as "
            "many seeds and this noise; a smaller one often is not."
        )
    if any(e.is_interaction for e in found.found):
        yield (
            "Where two factors act together, read the effect of either as an average: it differs "
            "with the other's level."
        )
