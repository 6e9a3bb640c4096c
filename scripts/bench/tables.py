"""Figures as tables in Markdown."""

from collections.abc import Iterator, Sequence
from math import inf

from scripts.bench import spend
from scripts.bench.figures import Finals, Row, Wins, groups_of, rows
from scripts.bench.results import Result
from scripts.bench.spend import Ratio


def number(value: float) -> str:
    """Two digits that count."""
    return f"{value:.2g}" if value < 0.001 else f"{value:.3f}"


def spread(own: tuple[float, float, float]) -> str:
    low, middle, high = own
    return f"{number(middle)} [{number(low)}, {number(high)}]"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def regrets(tier: str, results: Sequence[Result], reference: str, against: Finals) -> Iterator[str]:
    """Median and quartiles of a tier's final regrets, by noise, and how they were come by.

    `against` is what the contender named `reference` ended with.
    """
    groups = groups_of(results)
    yield f"**{tier}**: median regret [quartiles] by noise\n"
    yield (
        f"| contender | runs | {' | '.join(groups)} | all | worse than the default | "
        f"wins against {reference} | median against its | failed | idle | CPU s |"
    )
    yield "|---|--:|" + "--:|" * (len(groups) + 7)
    for row in rows(results, against):
        yield regret_row(row, groups)
    yield ""


def regret_row(row: Row, groups: Sequence[str]) -> str:
    cells = [
        row.contender,
        str(row.runs),
        *(spread(row.by_group[g]) if g in row.by_group else "" for g in groups),
        f"**{spread(row.over_all)}**",
        worse(row),
        won(row.wins),
        "" if row.shared_median is None else " / ".join(map(number, row.shared_median)),
        percent(row.failed),
        percent(row.idle),
        f"{row.seconds:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def worse(row: Row) -> str:
    low, high = row.worse_interval
    return f"{percent(row.worse / row.runs)} ({percent(low)} to {percent(high)})"


def won(wins: Wins | None) -> str:
    return "" if wins is None else f"{percent(wins.share)} of {wins.shared}"


def crashes(results: Sequence[Result]) -> Iterator[str]:
    """Contenders that did not finish: counted above with what their users are left with."""
    for row in rows(results, {}):
        if row.errors:
            words = ", ".join(sorted(set(row.errors)))
            yield f"{row.contender} crashed in {len(row.errors)} of {row.runs} runs: {words}"


def spends(tier: str, results: Sequence[Result], reference: str) -> Iterator[str]:
    """What an equal median costs, against the reference, by noise."""
    groups = groups_of(results)
    names = [name for name in dict.fromkeys(r.contender for r in results) if name != reference]
    if reference not in {result.contender for result in results} or not names:
        return
    yield f"**{tier}**: spend for an equal median regret (95 % interval)\n"
    yield (
        f"| contender | {' | '.join(groups)} | all | share of the spend for {reference}'s result |"
    )
    yield "|---|" + "--:|" * (len(groups) + 2)
    for name in names:
        yield spend_row(name, results, reference, groups)
    yield ""


def spend_row(name: str, results: Sequence[Result], reference: str, groups: Sequence[str]) -> str:
    def of(contender: str, group: str | None) -> spend.Curves:
        own = [r for r in results if r.contender == contender]
        return spend.curves([r for r in own if group is None or r.group == group])

    cells = [times(spend.ratio(of(name, g), of(reference, g))) for g in (*groups, None)]
    price = spend.price(of(name, None), of(reference, None))
    return f"| {name} | {' | '.join(cells)} | {times(price)} |"


def times(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    value, low, high = (_bounded(v, ratio.most) for v in (ratio.value, ratio.low, ratio.high))
    return f"{value} ({low} to {high})"


def _bounded(value: float, most: float) -> str:
    return f"> {most:g}" if value == inf else f"{value:.2f}"


def by_function(results: Sequence[Result]) -> Iterator[str]:
    """Median final regret of each contender on each function."""
    contenders = list(dict.fromkeys(result.contender for result in results))
    found: dict[str, dict[str, list[float]]] = {}
    for result in results:
        function = result.problem.split(":")[1]
        found.setdefault(function, {}).setdefault(result.contender, []).append(result.final)
    yield f"| function | {' | '.join(contenders)} |"
    yield "|---|" + "--:|" * len(contenders)
    for function, own in found.items():
        cells = [number(sorted(own[c])[len(own[c]) // 2]) if c in own else "" for c in contenders]
        yield f"| {function} | {' | '.join(cells)} |"
    yield ""
