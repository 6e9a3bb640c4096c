"""What a search found, as Markdown for a person."""

from collections.abc import Iterator

from budgets.comparison import Gain
from budgets.findings import Findings


def finding_lines(found: Findings) -> list[str]:
    """The verdict's evidence: gains on fresh seeds, controls, conditions, luck, what to do next."""
    lines = ["## Verdict", ""]
    lines += _gain_lines(found)
    if found.conditions:
        lines += ["", "| a Go needs | | observed |", "|---|---|---|"]
        lines += [
            f"| {c.rule} | {'yes' if c.met else '**no**'} | {c.evidence} |"
            for c in found.conditions
        ]
    lines += [*_finalist_table(found), *_control_table(found)]
    lines += ["", *luck_lines(found)]
    if found.advice:
        lines += ["", found.advice]
    return lines


def _gain_lines(found: Findings) -> Iterator[str]:
    if found.gain is None:
        yield "Nothing has been compared with the baseline on fresh seeds yet."
    else:
        yield f"Gain over the baseline on fresh seeds: {in_words(found.gain)}. {bar(found.gain)}"
        if found.gain.detectable is not None:
            yield (
                f"With this noise {found.gain.pairs} seeds show a true gain of "
                f"{found.gain.detectable:.2%} or more (8 times of 10); asked: {found.asked:.2%}."
            )
    if found.rung is not None:
        yield f"At {found.rung_label}: {in_words(found.rung)}."
    if found.incumbent is not None:
        yield _of_the_incumbent(found.incumbent, found.over_incumbent)


def _of_the_incumbent(own: Gain, over: Gain | None) -> str:
    survives = "survives" if own.is_shown else "does not survive"
    line = f"The winner of phase 1 {survives}: {in_words(own)} over the baseline."
    if over is None or over.mean is None:
        return line
    return f"{line} The recommendation's gain over that winner is {in_words(over)}."


def in_words(gain: Gain) -> str:
    """`+1.59% (at least +0.42%, 8 seeds)`."""
    if gain.mean is None:
        return f"not measurable ({gain.pairs} seeds)"
    if gain.lower is None:
        return f"{gain.mean:+.2%} ({gain.pairs} seed)"
    sure = f"at least {gain.lower:+.2%} with {1 - gain.level:.0%} confidence"
    return f"{gain.mean:+.2%} ({sure}, {gain.pairs} seeds)"


def bar(gain: Gain, width: int = 21) -> str:
    """The mean and its bounds on a line around 0: `·····│··├──●──┤······`."""
    if gain.mean is None or gain.lower is None or gain.upper is None:
        return ""
    reach = max(abs(gain.lower), abs(gain.upper)) or 1.0

    def place(value: float) -> int:
        return round((value / reach + 1) / 2 * (width - 1))

    cells = ["·"] * width
    low, high = place(gain.lower), place(gain.upper)
    cells[low : high + 1] = ["─"] * (high - low + 1)
    cells[place(0.0)] = "│"
    cells[low], cells[high], cells[place(gain.mean)] = "├", "┤", "●"
    return "".join(cells)


def _finalist_table(found: Findings) -> list[str]:
    if not found.finalists:
        return []
    lines = ["", "| finalist | gain on the picking seeds | |", "|---|---|---|"]
    for one in found.finalists:
        mean = "-" if one.gain.mean is None else f"{one.gain.mean:+.2%}"
        picked = "goes on" if one.is_winner else ""
        lines.append(f"| {one.name} | {mean} ({one.gain.pairs} seeds) | {picked} |")
    return lines


def _control_table(found: Findings) -> list[str]:
    if not found.controls:
        return []
    lines = [
        "",
        "| control | its gain over the baseline | the winner's gain over it |",
        "|---|---|---|",
    ]
    for one in found.controls:
        over = "-" if one.winner_gain.mean is None else in_words(one.winner_gain)
        lines.append(f"| {one.name} | {in_words(one.gain)} | {over} |")
    return lines


def luck_lines(found: Findings) -> Iterator[str]:
    """What the best score of the search is worth as evidence: nothing, and how nothing looks."""
    if found.seemed is None:
        return
    line = f"The search's luckiest score seemed {found.seemed:+.2%} better than the baseline."
    if found.luck is not None:
        line += (
            f" The luckiest of as many baselines would seem {found.luck:+.2%} better: a best score "
            "is no evidence."
        )
    yield line
