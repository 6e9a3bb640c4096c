"""What a shorter evaluation is worth, for a person."""

from collections.abc import Iterator

from budgets.blocks import Block, Heading, Met, Table, Text
from budgets.formatting import number
from budgets.proxy.certificate import LEAST_CANDIDATES, Certificate
from budgets.proxy.report import ProxyReport


def proxy_sentence(found: ProxyReport) -> str:
    """What a finished check amounts to."""
    own = found.certificate
    if own is None:
        return f"{found.label}: nothing was compared."
    verdict = "good enough to stand in for" if found.holds else "not good enough to stand in for"
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
    """What was compared, and how far it agrees."""
    yield Heading("Proxy")
    yield Text(
        f"{found.label}, a run of its own with its own schedule, beside the full evaluation of "
        "the same candidates on the same seeds. Scores of the two are never ranked together."
    )
    if found.certificate is not None:
        yield _table(found.certificate)


def _table(own: Certificate) -> Table:
    caption = "Short and full evaluations of the same candidates"
    columns = [">tau-b", "interval", "agree", ">top half", ">top quarter", ">mean error"]
    interval = "-" if own.lower is None else f"{own.lower:.2f} to {own.upper:.2f}"
    row = (
        "-" if own.tau is None else f"{own.tau:.2f}",
        interval,
        Met(own.holds),
        "-" if own.top_half is None else f"{own.top_half:.0%}",
        "-" if own.top_quarter is None else f"{own.top_quarter:.0%}",
        number(own.error, 3),
        f"{own.healthy} of {own.candidates}",
        "-" if own.seconds_ratio is None else f"{own.seconds_ratio:.0%}",
    )
    return Table(caption, [*columns, ">healthy", ">time"], [row])
