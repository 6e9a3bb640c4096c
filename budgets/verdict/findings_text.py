"""What a search found, for a person."""

from collections.abc import Iterator

from budgets.blocks import Block, Met, Table, Text
from budgets.formatting import counted, percent, plain
from budgets.stats import Gain, better, sd_interval
from budgets.verdict.finalists import IN_WORDS
from budgets.verdict.findings import Finalist, Findings, beating, unbeaten


def judged(found: Findings) -> Iterator[Block]:
    """What a Go needs, who was compared, and the controls: of each what there is yet."""
    yield from _conditions(found)
    yield from _finalists(found)
    yield from _controls(found)


def gain_lines(found: Findings, *, is_drawn: bool = True) -> Iterator[str]:
    """Every gain with its range, what could have been seen, and luck; `is_drawn`: with a bar.

    Before anything was compared, that it was not.
    """
    if found.gain is None:
        yield _nothing_compared(found)
    else:
        yield f"The search's winner over the baseline: {in_words(found.gain)}."
        yield from bar(found.gain) if is_drawn else ()
        yield from _detectable_line(found.gain, found.asked)
    if found.rung is not None:
        yield f"The same with {plain(found.rung_label or '')}: {in_words(found.rung)}."
    if found.incumbent is not None:
        yield incumbent_line(found.incumbent)
    if found.over_incumbent is not None and found.over_incumbent.mean is not None:
        yield f"This search's winner over that one: {in_words(found.over_incumbent)}."
    yield from luck_lines(found)
    if found.gain is not None:
        yield (
            "A gain is a share of the other's score, on seeds that both have. The true one is "
            "above the lower end of its range, and below the upper, each with "
            f"{percent(1 - found.gain.level)} confidence."
        )


def _nothing_compared(found: Findings) -> str:
    if found.grade is not None:
        return "No finalist has a score on fresh seeds: nothing was compared with the baseline."
    if found.finalists:
        return "The winner has not been compared with the baseline on fresh seeds yet."
    return "Nothing has been compared with the baseline on fresh seeds yet."


def _detectable_line(gain: Gain, asked: float) -> Iterator[str]:
    """The smallest gain to be seen; and as it rests on few pairs, how well it is known itself."""
    if gain.detectable is None or gain.sd is None:
        return
    if gain.sd == 0:
        yield f"The pairs do not differ, so any gain would show. A Go asks for {percent(asked)}."
        return
    low, high = (gain.detectable * sd / gain.sd for sd in sd_interval(gain.sd, gain.pairs))
    yield (
        f"Smallest gain that {gain.pairs} pairs show 8 times of 10: {gain.detectable:.2%}, by the "
        f"noise of these pairs; so few leave {low:.2%} to {high:.2%} possible (95%). A Go asks for "
        f"{percent(asked)}."
    )


def incumbent_line(own: Gain) -> str:
    """Whether the winner of the run that a phase 2 follows is better than the baseline there."""
    survives = "survives" if own.is_shown else "does not survive"
    return f"The winner of phase 1 {survives}: {in_words(own)} over the baseline."


def in_words(gain: Gain) -> str:
    """`+1.59% (+0.42% to +2.76%, 8 seeds)`."""
    if gain.mean is None:
        return f"not measurable ({counted(gain.pairs, 'seed')})"
    sure = ""
    if gain.lower is not None and gain.upper is not None:
        sure = f"{gain.lower:+.2%} to {gain.upper:+.2%}, "
    return f"{gain.mean:+.2%} ({sure}{counted(gain.pairs, 'seed')})"


def bar(gain: Gain, width: int = 25) -> Iterator[str]:
    """The mean and its range on a line around 0: worse `·····│··├──●──┤······` better."""
    if gain.mean is None or gain.lower is None or gain.upper is None:
        return
    reach = 1.1 * max(abs(gain.lower), abs(gain.upper)) or 1.0

    def place(value: float) -> int:
        return round((value / reach + 1) / 2 * (width - 1))

    cells = ["·"] * width
    low, high = place(gain.lower), place(gain.upper)
    cells[low : high + 1] = ["─"] * (high - low + 1)
    cells[place(0.0)] = "│"
    cells[low], cells[high], cells[place(gain.mean)] = "├", "┤", "●"
    yield f"worse `{''.join(cells)}` better"


def _conditions(found: Findings) -> Iterator[Block]:
    if found.conditions:
        rows = [
            (
                "long run, to persist" if one.rule == "rung" else one.rule,
                Met(one.met),
                plain(one.evidence),
            )
            for one in found.conditions
        ]
        columns = ["a Go needs", "met", "observed"]
        yield Table("What a Go needs, and what was observed", columns, rows)


def _finalists(found: Findings) -> Iterator[Block]:
    if found.finalists:
        yield Table(
            "Who was compared to become the winner",
            ["finalist", "what it is", ">gain on the picking seeds", "goes on"],
            list(map(_finalist, found.finalists)),
        )


def _finalist(one: Finalist) -> tuple[object, ...]:
    mean = "-" if one.gain.mean is None else f"{one.gain.mean:+.2%}"
    what = IN_WORDS.get(one.name.split()[0], "")
    seen = f"{mean} ({counted(one.gain.pairs, 'seed')})"
    return plain(one.name), what, seen, Met(is_met=True) if one.is_winner else ""


def _controls(found: Findings) -> Iterator[Block]:
    if found.controls:
        rows = [
            (
                plain(one.name),
                in_words(one.gain),
                "-" if one.winner_gain.mean is None else in_words(one.winner_gain),
            )
            for one in found.controls
        ]
        columns = ["control", "its gain over the baseline", "the winner's gain over it"]
        caption = "Controls: with something switched off, at the baseline's knobs"
        yield Table(caption, columns, rows)
    for one in beating(found):
        sure = percent(1 - one.winner_gain.level)
        yield Text(f"The winner is worse than {plain(one.name)}, with {sure} confidence.")
    unsure = [plain(one.name) for one in unbeaten(found) if not one.winner_gain.is_loss]
    if equal := ", ".join(unsure):  # or the gain is only repair
        yield Text(
            f"The winner is not shown to be better than {equal}: what was tuned is not shown to be "
            "worth having."
        )


def luck_lines(found: Findings) -> Iterator[str]:
    """What the best score of the search is worth as evidence: nothing, and how nothing looks."""
    if found.seemed is None:
        return
    luck = "what luck alone would show is not known, for nobody measured the noise"
    if found.luck is not None:
        luck = (
            "the best of as many baselines, each on seeds of its own, would seem "
            f"{better(found.luck)}"
        )
    yield (
        f"The best score of the search seemed {better(found.seemed)} than the baseline; {luck}. "
        "A best score is no evidence."
    )
