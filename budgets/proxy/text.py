"""What a shorter evaluation is worth, for a person."""

from collections.abc import Iterator

from budgets.blocks import Block, Heading, Items, Met, Table, Text
from budgets.proxy.certificate import LEAST_CANDIDATES, Certificate
from budgets.proxy.report import Comparison, ProxyReport
from budgets.words import number


def proxy_sentence(found: ProxyReport) -> str:
    """What a finished check amounts to."""
    if not found.comparisons:
        return f"{found.label}: nothing was compared."
    own, enough = found.comparisons[-1].certificate, found.comparisons[-1].holds
    verdict = "good enough to stand in for" if enough else "not good enough to stand in for"
    return (
        f"{found.label} is {verdict} the full evaluation: over {own.compared} candidates on the "
        f"same seeds Kendall's tau-b is {in_words(own)} (asked of the lower bound: {own.asked:g}, "
        f"over {LEAST_CANDIDATES} or more)."
    )


def in_words(own: Certificate) -> str:
    """`0.79, 0.57 to 0.94 with 90% confidence`."""
    if own.tau is None or own.lower is None or own.upper is None:
        return "none: one of the two tells no candidates apart"
    sure = f"{own.lower:.2f} to {own.upper:.2f} with {1 - own.level:.0%} confidence"
    return f"{own.tau:.2f}, {sure}"


def proxy_blocks(found: ProxyReport) -> Iterator[Block]:
    """The section on a plan's proxy."""
    yield Heading("Proxy")
    yield Text(_basis(found))
    if found.comparisons:
        yield _table(found)
    if not found.is_check:
        yield Items(list(_use(found)))


def _basis(found: ProxyReport) -> str:
    if found.is_check:
        return (
            f"{found.label}, a run of its own with its own schedule, beside the full evaluation of "
            "the same candidates on the same seeds. Scores of the two are never ranked together."
        )
    return (
        f"{found.label} stands in for the full evaluation of whole generations, as long as the "
        "lower bound of Kendall's tau-b between the two, over a generation evaluated at both "
        f"lengths, was {found.asked:g} or more. Scores of the two are never ranked together."
    )


def _table(found: ProxyReport) -> Table:
    caption = "Generations evaluated at both lengths"
    if found.is_check:
        caption = "Short and full evaluations of the same candidates"
    ranks = [">generation", ">tau-b", "interval", "agree"]
    shares = [">top half", ">top quarter", ">mean error", ">healthy", ">time"]
    return Table(caption, [*ranks, *shares], list(map(_row, found.comparisons)))


def _row(one: Comparison) -> tuple[object, ...]:
    own = one.certificate
    interval = "-" if own.lower is None else f"{own.lower:.2f} to {own.upper:.2f}"
    return (
        str(own.generation),
        "-" if own.tau is None else f"{own.tau:.2f}",
        interval,
        Met(one.holds),
        "-" if own.top_half is None else f"{own.top_half:.0%}",
        "-" if own.top_quarter is None else f"{own.top_quarter:.0%}",
        number(own.error, 3),
        f"{own.healthy} of {own.candidates}",
        "-" if own.seconds_ratio is None else f"{own.seconds_ratio:.0%}",
    )


def _use(found: ProxyReport) -> Iterator[str]:
    """Which generations were short and why no more of them, one comparison a point."""
    for one in found.comparisons:
        number = one.certificate.generation
        if not one.holds:
            yield f"Generation {number} did not show agreement: full evaluations."
            continue
        said = f"Generation {number} showed agreement: {_listed(one.short)} short"
        yield f"{said}." if one.over is None else f"{said}; then {one.over}."
    yield _savings(found)


def _listed(numbers: tuple[int, ...]) -> str:
    if not numbers:
        return "none yet"
    if len(numbers) == 1:
        return f"generation {numbers[0]}"
    return f"generations {numbers[0]} to {numbers[-1]}"


def _savings(found: ProxyReport) -> str:
    spent = f"Comparing took {found.comparing_seconds:,.1f} device-seconds"
    if found.saved_seconds is None:
        return f"{spent}; nothing is saved yet."
    what = "saved" if found.saved_seconds >= 0 else "lost"
    return (
        f"{spent}. In all {abs(found.saved_seconds):,.1f} device-seconds are {what} against full "
        "evaluations of the same candidates."
    )
