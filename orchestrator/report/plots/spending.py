"""What the run took: device-hours by generation, and each currency against its cap."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from budgets.report.model import Balance
from budgets.words import counted
from orchestrator.charts.chart import Axis, Bars, Chart, Line, Mark, Plot, Role
from orchestrator.report.model import Report
from orchestrator.report.plots.candidates import generation_axis, is_search
from orchestrator.report.plots.words import Unit, device_hours_unit, seconds_unit, sentences

PARTS: tuple[tuple[str, Role, str], ...] = (
    ("useful", "useful", "useful"),
    ("wasted", "wasted", "wasted: gave no score"),
    ("idle", "idle", "idle: slots without work"),
    ("reserved", "reserved", "reserved: in flight"),
)
"""Of a bar, from the bottom."""


BESIDE = (
    "What is compared on fresh seeds counts as comparison, also where it ran in slots that a "
    "generation left idle."
)
"""Where the two may have run at one time."""

NO_CAP = "No currency has a cap."


@dataclass(frozen=True)
class Bar:
    """Device-hours of a generation, or of what came beside them."""

    place: float
    name: str
    useful: float
    wasted: float
    idle: float
    reserved: float
    planned: float | None

    def up_to(self, part: str) -> float:
        """The bar's height below that part."""
        names = [name for name, _, _ in PARTS]
        return sum(self.of(name) for name in names[: names.index(part)])

    def of(self, part: str) -> float:
        return float(getattr(self, part))

    @property
    def whole(self) -> float:
        return sum(self.of(name) for name, _, _ in PARTS)


def budget(report: Report) -> Plot | None:
    """Device-hours by generation; None where none were paid or reserved."""
    bars = list(bars_of(report))
    most = max((max(bar.whole, bar.planned or 0.0) for bar in bars), default=0.0)
    if not most:
        return None
    unit, high = device_hours_unit(most), _cut(bars)
    is_planned = any(bar.planned is not None for bar in bars)
    reserved = sum(bar.reserved for bar in bars)
    return Plot(
        name="budget",
        title="Device time by generation" if is_search(report) else "Device time",
        caption=sentences(
            "Useful and wasted time is charged; idle is what slots were there for beyond that: "
            "waiting for the last evaluation of a generation, or starting up.",
            "The dashed line is what the calibration planned." if is_planned else "",
            BESIDE if report.arms else "",
            f"What is reserved, {unit.said(reserved)} in the worst case, reaches beyond the plot."
            if high is not None
            else "",
        ),
        description=_description(bars, unit),
        charts=[_chart(report, bars, unit, high)],
        aspect=0.35,
    )


def bars_of(report: Report) -> Iterator[Bar]:
    """The generations, then what came beside them."""
    last = max((g.number for g in report.generations), default=-1)
    step = _gap(report)
    for g in report.generations:
        yield Bar(
            g.number,
            f"generation {g.number}",
            g.useful_device_hours,
            g.wasted_device_hours,
            g.idle_device_hours,
            g.reserved_device_hours,
            g.planned_device_hours,
        )
    for number, own in enumerate(report.beside, 1):
        yield Bar(
            last + number * step,
            own.name,
            own.useful_device_hours,
            own.wasted_device_hours,
            own.idle_device_hours,
            0.0,
            None,
        )


def _gap(report: Report) -> float:
    """Between the last generations and each bar beside them: room for its name."""
    return max(1.5, len(report.generations) / 5.5)


def _cut(bars: Sequence[Bar]) -> float | None:
    """How high the plot is where a worst case would flatten all that was paid; None: as it is."""
    paid = max(max(bar.whole - bar.reserved, bar.planned or 0.0) for bar in bars)
    return 1.25 * paid if 0 < 2.5 * paid < max(bar.whole for bar in bars) else None


def _chart(report: Report, bars: Sequence[Bar], unit: Unit, cut: float | None) -> Chart:
    axis = generation_axis(report)
    beside = [bar for bar in bars if not bar.name.startswith("generation ")]
    high = max([axis.high or 0.5, *(bar.place + _gap(report) / 2 for bar in beside)])
    ticks = [*axis.ticks, *((bar.place, bar.name) for bar in beside)]
    if not is_search(report):
        ticks = [(bar.place, "evaluations" if bar not in beside else bar.name) for bar in bars]
    label = "generation" if is_search(report) else ""
    x = Axis(label, low=axis.low, high=high, is_whole=True, ticks=ticks)
    marks: list[Mark] = [
        Bars(
            [bar.place for bar in own],
            [unit.of(bar.up_to(part)) for bar in own],
            [unit.of(bar.up_to(part) + bar.of(part)) for bar in own],
            role,
            label,
            tips=[f"{bar.name}: {unit.said(bar.of(part))} {part}" for bar in own],
        )
        for part, role, label in PARTS
        if (own := [bar for bar in bars if bar.of(part) > 0])
    ]
    planned = [bar for bar in bars if bar.planned is not None]
    if planned:
        places = [edge for bar in planned for edge in (bar.place - 0.5, bar.place + 0.5)]
        values = [unit.of(bar.planned or 0.0) for bar in planned for _ in range(2)]
        marks.append(Line(places, values, "limit", "planned"))
    y = Axis(unit.name, has_zero=True, high=None if cut is None else unit.of(cut))
    return Chart(x, y, marks)


def _description(bars: Sequence[Bar], unit: Unit) -> str:
    generations = [bar for bar in bars if bar.name.startswith("generation ")]
    own = ", ".join(
        f"{unit.said(whole)} {part}"
        for part, _, _ in PARTS
        if (whole := sum(bar.of(part) for bar in bars))
    )
    planned = [bar.planned for bar in bars if bar.planned is not None]
    return sentences(
        f"In {counted(len(generations), 'generation')} and beside them: {own}.",
        f"Planned for the generations: {unit.said(sum(planned))}." if planned else "",
        *(
            f"{bar.name.capitalize()}: {unit.said(bar.whole)}."
            for bar in bars
            if bar not in generations and bar.whole
        ),
    )


def currencies(report: Report) -> Plot | None:
    """The currencies as shares of their caps; None where none counts."""
    own = [balance for balance in report.budget.balances if balance.counts]
    if not own:
        return None
    capped = [(place, b) for place, b in enumerate(own) if b.cap]
    y = Axis("", categories=[_name(b) for b in own])
    x = Axis("share of the cap (%)", low=0.0, high=max([100.0, *map(_whole, own)]))
    return Plot(
        name="currencies",
        title="Budget: spent, reserved and free",
        caption="Nothing is started that might pass a cap in the worst case: what is reserved "
        "is that worst case of what is in flight.",
        description=sentences(*map(_said, own)),
        charts=[Chart(x, y, list(_shares(capped)), empty="" if capped else NO_CAP)],
        aspect=0.04 + 0.035 * len(own),
    )


def _whole(balance: Balance) -> float:
    return 100 * (balance.spent + balance.reserved) / balance.cap if balance.cap else 0.0


def _shares(capped: Sequence[tuple[int, Balance]]) -> Iterator[Bars]:
    base = {place: 0.0 for place, _ in capped}
    parts: tuple[tuple[Role, str, list[float]], ...] = (
        ("useful", "spent", [b.spent for _, b in capped]),
        ("reserved", "reserved", [b.reserved for _, b in capped]),
        ("muted", "free", [max(0.0, b.free or 0.0) for _, b in capped]),
    )
    for role, label, values in parts:
        if not any(values):
            continue
        low = [base[place] for place, _ in capped]
        top = [
            at + 100 * v / (b.cap or 1.0) for at, v, (_, b) in zip(low, values, capped, strict=True)
        ]
        tips = [
            f"{b.label}: {_amount(b, v)} {label}" for (_, b), v in zip(capped, values, strict=True)
        ]
        places = [float(place) for place, _ in capped]
        yield Bars(places, low, top, role, label, width=0.6, is_horizontal=True, tips=tips)
        base = {place: up for (place, _), up in zip(capped, top, strict=True)}


def _name(balance: Balance) -> str:
    if balance.cap is None:
        return f"{balance.label}: {_amount(balance, balance.spent)}, no cap"
    spent, cap = _amount(balance, balance.spent), _amount(balance, balance.cap)
    return f"{balance.label}: {spent} of {cap}"


def _amount(balance: Balance, value: float) -> str:
    """`480`, `41.2 s`, `1.5` of money."""
    if balance.currency.startswith("evaluations"):
        return f"{value:.0f}"
    if balance.currency == "cost":
        return f"{value:.3g}"
    return seconds_unit(3600 * value).said(3600 * value)


def _said(balance: Balance) -> str:
    spent, reserved = _amount(balance, balance.spent), _amount(balance, balance.reserved)
    if balance.cap is None:
        return f"{balance.label.capitalize()}: {spent} spent, {reserved} reserved, no cap."
    return (
        f"{balance.label.capitalize()}: {spent} spent, {reserved} reserved, "
        f"{_amount(balance, balance.free or 0.0)} free of {_amount(balance, balance.cap)}."
    )
