"""A plan's page as Markdown: a table for each question."""

from collections.abc import Iterator, Sequence

from budgets.calibration import Forecast
from budgets.following import beginning
from budgets.plain import plain
from budgets.table import table
from budgets.terms import Plan
from budgets.words import counted, duration, in_bytes
from objectives.registry import kind
from orchestrator.planning.barrier import Simulated
from orchestrator.planning.basis_text import basis_lines
from orchestrator.planning.checklist import Item
from orchestrator.planning.page import Page, TierPage
from orchestrator.planning.plan_text import bad_luck, planned, terms
from orchestrator.planning.power_text import power_lines
from orchestrator.planning.preview import Preview
from orchestrator.planning.room import Room
from orchestrator.records.planned import spec_of

TIMES = (">half end within", ">nine in ten within", ">idle", ">device-hours")


def to_markdown(page: Page) -> str:
    """The tiers side by side, with everything that was assumed."""
    plan = page.tiers[0].plan
    devices, name = plan.devices, kind(spec_of(plan))
    parts = (
        [f"# {plan.phase} of {plain(name)} on {devices.count} x {devices.name}"],
        [f"- **{tier.plan.tier}**: {'; '.join(_in_short(tier))}." for tier in page.tiers],
        _beginning(plan),
        basis_lines(page.basis),
        ["## What it takes", *_costs(page.tiers)],
        _times(page),
        power_lines(page),
        _room(page.tiers),
        _elsewhere(page),
        ["## What is planned", *(f"- **{t.plan.tier}**: {planned(t.plan)}" for t in page.tiers)],
        bad_luck(page.tiers),
        [terms(plan)],
        ["## Before you begin", *_checklist(page.tiers)],
    )
    return "\n\n".join("\n".join(_spaced(part)) for part in parts if part) + "\n"


def _spaced(lines: list[str]) -> Iterator[str]:
    """A heading, and the paragraph or table after it, are apart."""
    for line in lines:
        yield line
        if line.startswith("#"):
            yield ""


def _in_short(tier: TierPage) -> Iterator[str]:
    """What most people want to know of it."""
    plan, times, smallest = tier.plan, tier.simulated, tier.smallest
    confirmation, price = plan.confirmation, plan.price_per_device_hour
    compared = f" and up to {confirmation.evaluations} for the verdict" if confirmation else ""
    yield counted(plan.resolved.evaluations, "evaluation") + compared
    if times is None:
        yield "nobody knows yet how long they take"
    else:
        half, most = duration(3600 * times.hours_p50), duration(3600 * times.hours_p90)
        yield f"half end within {half}, nine in ten within {most}" if most != half else half
        cost = f" for {times.device_hours_p50 * price:.2f}" if price else ""
        yield f"{times.device_hours_p50:.3g} device-hours{cost}"
    if confirmation is None:
        yield "a smoke test without a verdict"
    elif smallest is not None:
        yield f"shows a gain of {smallest.gain:.2%} 8 times of 10"
    if failed := sum(item.verdict == "fail" for item in tier.items):
        yield f"**fails {counted(failed, 'check')} below**"


def _beginning(plan: Plan) -> list[str]:
    """What the search takes over, and is told beforehand."""
    said = beginning(plan)
    if said is None:
        return []
    search = plan.search
    if plan.source is None and (search is None or search.inherited is None):
        return [said]
    learned = (
        "It begins at that one's recommendation, or where its search stood if it has none, with "
        f"the step size and the shape of its end (`{plan.phase}` replays it)."
    )
    return [said, "", learned]


def _costs(tiers: Sequence[TierPage]) -> list[str]:
    columns = ("tier", "P x G x S", ">evaluations", ">device-hours", ">ideal", ">with barrier")
    return table((*columns, ">cost"), (row for tier in tiers for row in _rows(tier.preview)))


def _rows(preview: Preview) -> list[tuple[object, ...]]:
    plan, e = preview.plan, preview.plan.resolved
    rows = [_row(plan, str(plan.tier), e.in_words, e.evaluations, preview.expected)]
    if plan.proxy is not None:
        what = f"and to compare: {plan.proxy.varied.label}"
        rows.append(_row(plan, "", what, preview.compared, preview.comparing))
    if (confirmation := plan.confirmation) is not None:
        sizes = confirmation.sizes()
        count = confirmation.evaluations - sizes.get("rung", (0, 0.0))[0]
        rows.append(_row(plan, "", "and the verdict", count, preview.apart))
        if confirmation.rung is not None:
            what = f"if Go: {confirmation.rung.varied.label}"
            rows.append(_row(plan, "", what, sizes["rung"][0], preview.rung))
    return rows


def _row(
    plan: Plan, tier: str, shape: str, count: int, expected: Forecast | None
) -> tuple[object, ...]:
    if expected is None:
        return tier, shape, count, *"????"
    return (
        tier,
        shape,
        count,
        f"{expected.device_hours:.3g}",
        duration(3600 * expected.ideal_hours),
        duration(3600 * expected.barrier_hours),
        f"{expected.cost:.2f}" if plan.price_per_device_hour else "-",
    )


def _times(page: Page) -> list[str]:
    """How long all of it takes, simulated; nothing where no times are known."""
    rows = [_time(tier) for tier in page.tiers if tier.simulated is not None]
    if not rows or page.tiers[0].simulated is None:
        return []
    columns = ("tier", *TIMES, ">nine in ten", ">cost", ">if Go, longer by")
    title = "## How long it takes, verdict included"
    return [title, *table(columns, rows), "", _simulation(page)]


def _simulation(page: Page) -> str:
    first, calibration = page.tiers[0].simulated, page.basis.calibration
    assert first is not None
    said = "Evaluation by evaluation, from the first one's wait for the engine on. "
    if calibration is None or len(calibration.samples) < 2:
        return (
            f"{said}One time of an evaluation is known, and nothing of its spread: as if all took "
            "as long, and none failed."
        )
    return (
        f"{said}From {first.runs} simulated runs of each tier. Each believes another resample of "
        "the calibration, so that its few samples count as few. Assumed: candidates take as long "
        "as the baseline does, independently of each other, on a machine that is as busy as it was "
        "then; one that fails, as often as the calibration leaves possible, is evaluated once more."
    )


def _time(tier: TierPage) -> tuple[object, ...]:
    own = tier.simulated
    assert own is not None
    more = duration(3600 * own.rung_hours_p50) if own.rung_hours_p50 else "-"
    *times, cost = _simulated(tier.plan, own)
    return tier.plan.tier, *times, f"{own.device_hours_p90:.3g}", cost, more


def _simulated(plan: Plan, own: Simulated) -> tuple[str, ...]:
    price = plan.price_per_device_hour
    return (
        duration(3600 * own.hours_p50),
        duration(3600 * own.hours_p90),
        f"{own.idle_share:.0%}",
        f"{own.device_hours_p50:.3g}",
        f"{own.device_hours_p50 * price:.2f}" if price else "-",
    )


def _room(tiers: Sequence[TierPage]) -> list[str]:
    measured = "as the calibration's are" if tiers[0].room.measured else "assumed"
    columns = (f">evaluations ({measured})", ">ledger", ">reports", ">with what is kept free")
    rows = ((tier.plan.tier, *_disk(tier.room)) for tier in tiers)
    return ["## What it takes of the disk", *table(("tier", *columns, ">free"), rows)]


def _disk(room: Room) -> Iterator[str]:
    for size in (room.evaluations, room.ledger, room.reports, room.needed, room.free):
        yield "?" if size is None else in_bytes(size)


def _elsewhere(page: Page) -> list[str]:
    if not page.elsewhere:
        return []
    rows = (
        _elsewhere_row(tier)
        for name in dict.fromkeys(tier.plan.tier for tier in page.tiers)
        for tier in page.elsewhere
        if tier.plan.tier == name
    )
    return [
        "## On other numbers of devices",
        *table(("tier", ">devices", "P x G x S", *TIMES, ">cost"), rows),
        "",
        f"Times are those of {page.tiers[0].plan.devices.count} devices: assumed for other "
        "numbers, where evaluations may get in each other's way.",
    ]


def _elsewhere_row(tier: TierPage) -> tuple[object, ...]:
    own = "?????" if tier.simulated is None else _simulated(tier.plan, tier.simulated)
    return tier.plan.tier, tier.plan.devices.count, tier.plan.resolved.in_words, *own


def _checklist(tiers: Sequence[TierPage]) -> list[str]:
    """Tiers with the same answer for the same reason share a row."""
    rows = []
    for answers in zip(*(tier.items for tier in tiers), strict=True):
        by_answer: dict[Item, list[str]] = {}
        for tier, item in zip(tiers, answers, strict=True):
            by_answer.setdefault(item, []).append(str(tier.plan.tier))
        for place, (item, names) in enumerate(by_answer.items()):
            question = "" if place else item.question
            which = "all" if len(names) == len(tiers) > 1 else ", ".join(names)
            verdict = "**fail**" if item.verdict == "fail" else item.verdict
            rows.append((question, which, verdict, plain(item.why)))
    return table(("", "tier", "", "because"), rows)
