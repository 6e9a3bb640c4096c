"""A campaign's outlook as a page."""

from collections.abc import Iterator

from budgets.plain import PROGRAM, plain
from budgets.table import table
from budgets.words import duration
from orchestrator.campaign.outlook import Expected, Outlook


def to_markdown(outlook: Outlook) -> Iterator[str]:
    """Every condition with its time, then what all of them take together."""
    yield from ("## What it would take", "")
    columns = ("condition", "type", ">runs", ">a run", ">device-hours")
    yield from table(columns, (_row(outlook, one) for one in outlook.expected))
    yield from ("", *_together(outlook), "")
    for origin in dict.fromkeys(one.origin for one in outlook.expected):
        if origin not in ("calibrated", "no estimate"):
            yield f"- {plain(origin)}."


def _row(outlook: Outlook, one: Expected) -> tuple[object, ...]:
    runs = len(outlook.terms.seeds)
    takes = ("no estimate", "?")
    if one.seconds is not None:
        takes = (f"{one.seconds:.3g} s", f"{runs * one.seconds / 3600:.3g}")
    kind = "control" if one.condition.control else "run"
    return plain(one.condition.name), kind, runs, *takes


def _together(outlook: Outlook) -> Iterator[str]:
    terms, total = outlook.terms, outlook.total_runs
    yield (
        f"{len(terms.conditions)} conditions x {len(terms.seeds)} seeds = {total} runs, "
        f"{outlook.at_once} at once on {outlook.devices.count} x {plain(outlook.devices.name)}."
    )
    if not outlook.is_known:
        yield (
            f"No estimate of all: nothing like {_unknown(outlook)} was measured here. "
            f"`{PROGRAM} calibrate FILE` measures what all conditions have in common."
        )
        return
    assert outlook.hours is not None
    assert outlook.rule_of_thumb_hours is not None
    yield (
        f"About {duration(3600 * outlook.hours)} of wall clock, {outlook.device_hours:.3g} "
        f"device-hours{_price(outlook)}; by the rule of thumb, {total} runs x "
        f"{outlook.median_seconds:.3g} s / {outlook.at_once}"
        f"{_stagger(outlook)}, {duration(3600 * outlook.rule_of_thumb_hours)}."
    )


def _unknown(outlook: Outlook) -> str:
    names = [plain(one.condition.name) for one in outlook.expected if one.seconds is None]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} others"


def _price(outlook: Outlook) -> str:
    return f" = {outlook.cost:.2f}" if outlook.price_per_device_hour else ""


def _stagger(outlook: Outlook) -> str:
    seconds = outlook.terms.stagger_seconds
    return f" + {seconds:g} s x {outlook.at_once - 1}" if seconds else ""
