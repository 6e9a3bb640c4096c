"""Everything a person should know before paying: what each tier takes, what it can tell, whether
to begin. No side effects."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from budgets.calibration import forecast
from budgets.following import beginning
from budgets.formatting import counted, duration, in_bytes, plain, table
from budgets.ledger import LedgerCorruptError
from budgets.plan import Devices, Plan, Tier, Window
from budgets.state import ImpossibleEventError
from budgets.stats import power_of
from budgets.tiers import INTENT
from objectives.api import Objective
from objectives.registry import kind
from orchestrator.config import Config
from orchestrator.plan.checks import Item, checklist
from orchestrator.plan.forecast import Forecast, Smallest, forecast_of, smallest_gain
from orchestrator.plan.history import Known, known_knobs
from orchestrator.plan.resolve import Succession, search_plan
from orchestrator.plan.times import Room, Times, in_short, room, times_here, times_lines
from orchestrator.records.planned import spec_of


@dataclass(frozen=True)
class Circumstances:
    """What a page is made under, beside what was asked."""

    devices: Devices
    times: Times
    root: Path  # where runs live
    known: Known
    now: datetime
    succession: Succession | None = None


def circumstances(
    root: Path,
    objective: Objective,
    devices: Devices,
    assumed_seconds: float | None = None,
    succession: Succession | None = None,
) -> tuple[Circumstances, tuple[str, ...]]:
    """What is known of this place and of the knobs; and warnings of what could not be read."""
    times, unread = times_here(root, objective, devices, assumed_seconds), tuple[str, ...]()
    try:
        known = known_knobs(root, objective, devices.kind)
    except (LedgerCorruptError, ImpossibleEventError, ValueError) as error:
        unread = (str(error),)
        known = Known((), (), tuple(knob.name for knob in objective.space.knobs))
    return Circumstances(devices, times, root, known, datetime.now(UTC), succession), unread


@dataclass(frozen=True)
class TierPage:
    """One tier: what it takes, what it can tell, whether to begin."""

    plan: Plan
    forecast: Forecast | None  # None: no times are known
    room: Room
    smallest: Smallest | None  # None: nothing is compared, or no noise is known
    items: tuple[Item, ...]

    @property
    def verdict_evaluations(self) -> int:
        """Beside the search's, at most; the long run after a Go not among them."""
        sizes = {} if self.plan.confirmation is None else self.plan.confirmation.sizes()
        return sum(count for name, (count, _) in sizes.items() if name != "rung")

    @property
    def cost(self) -> float | None:
        """Half of the times no more; None where nobody knows, or device-hours have no price."""
        price = self.plan.price_per_device_hour
        return self.forecast.device_hours_p50 * price if self.forecast and price else None

    def as_dict(self) -> dict[str, Any]:
        own = self.room
        return {
            "plan": self.plan.model_dump(mode="json"),
            "evaluations": self.plan.resolved.evaluations,
            "verdict_evaluations": self.verdict_evaluations,
            "search": _by_the_formula(self.plan),
            "forecast": None if self.forecast is None else self.forecast.as_dict(),
            "cost": self.cost,
            "room": {**asdict(own), "needed": own.needed, "suffices": own.suffices},
            "smallest_gain": None if self.smallest is None else asdict(self.smallest),
            "checklist": [item._asdict() for item in self.items],
        }


def _by_the_formula(plan: Plan) -> dict[str, Any] | None:
    """The search alone, as if all evaluations took the median: with and without the barrier."""
    if plan.calibration is None:
        return None
    seconds, price = plan.calibration.median_seconds, plan.price_per_device_hour
    return asdict(forecast(plan.resolved, seconds, plan.devices.count, price))


@dataclass(frozen=True)
class Page:
    """The tiers side by side, and the same on other numbers of devices."""

    times: Times
    tiers: tuple[TierPage, ...]
    elsewhere: tuple[TierPage, ...] = ()  # by number of devices, then by tier

    def as_dict(self) -> dict[str, Any]:
        times = self.times
        return {
            "times": {
                "origin": times.origin,
                "prior": None if times.prior is None else times.prior.sentence(),
                "overheads": asdict(times.overheads),
                "measured_at": times.measured_at,
                "drift": times.drift,
                "own_noise": times.own_noise,
                "notes": times.notes,
            },
            "tiers": [tier.as_dict() for tier in self.tiers],
            "elsewhere": [tier.as_dict() for tier in self.elsewhere],
        }


def page_of(
    config: Config,
    under: Circumstances,
    tiers: Sequence[Tier] = get_args(Tier),
    counts: Sequence[int] = (),
) -> Page:
    """The page of a search, also for these numbers of devices.

    There times are the calibration's: nobody has measured them. Raises ValueError on what
    cannot be planned. Imports numpy.
    """
    elsewhere = [
        page
        for count in counts
        for page in _tiers(config, under, tiers, under.devices.model_copy(update={"count": count}))
    ]
    here = _tiers(config, under, tiers, under.devices)
    return Page(under.times, tuple(here), tuple(elsewhere))


def _tiers(
    config: Config, under: Circumstances, tiers: Sequence[Tier], devices: Devices
) -> list[TierPage]:
    calibration, succession = under.times.calibration, under.succession
    configs = [config.having({"search.tier": tier}) for tier in tiers]
    plans = [search_plan(one, devices, calibration, None, succession) for one in configs]
    return [_tier(plan, under) for plan in plans]


def _tier(plan: Plan, under: Circumstances) -> TierPage:
    times = under.times
    took = forecast_of(plan, times)
    space = room(plan, under.root, times.evaluation_bytes)
    items = checklist(plan, times, took, space, under.known, under.now)
    return TierPage(plan, took, space, smallest_gain(plan), items)


TIMES = (">half end within", ">nine in ten within", ">device-hours")


def page_text(page: Page, *, in_full: bool = False) -> str:
    """The tiers side by side, and what speaks against them; `in_full` with all assumptions."""
    plan = page.tiers[0].plan
    devices, name = plan.devices, kind(spec_of(plan))
    parts = (
        [
            f"# {plan.phase} of {plain(name)} on {devices.count} x {devices.name}",
            *_tiers_table(page),
        ],
        _elsewhere(page),
        *(_in_full(page) if in_full else _in_short(page)),
    )
    return "\n\n".join("\n".join(_spaced(part)) for part in parts if part) + "\n"


def _spaced(lines: list[str]) -> Iterator[str]:
    """A heading, and the paragraph or table after it, are apart."""
    for line in lines:
        yield line
        if line.startswith("#"):
            yield ""


def _tiers_table(page: Page) -> list[str]:
    """Evaluations are those of the search, and of the verdict."""
    rows = []
    for tier in page.tiers:
        shape, beside = tier.plan.resolved, tier.verdict_evaluations
        count = f"{shape.evaluations}{f' + {beside}' if beside else ''}"
        rows.append((tier.plan.tier, shape.in_words, count, *_times(tier), _sees(tier)))
    return table(("tier", "P x G x S", ">evaluations", *_columns(page), ">sees a gain of"), rows)


def _columns(page: Page) -> tuple[str, ...]:
    """Of how long a tier takes, and what it costs where device-hours have a price."""
    return (*TIMES, *((">cost",) if page.tiers[0].plan.price_per_device_hour else ()))


def _times(tier: TierPage) -> tuple[str, ...]:
    took, is_priced = tier.forecast, bool(tier.plan.price_per_device_hour)
    if took is None:
        return ("?",) * (len(TIMES) + is_priced)
    return (
        duration(3600 * took.hours_p50),
        duration(3600 * took.hours_p90),
        f"{took.device_hours_p50:.3g}",
        *((f"{tier.cost:.2f}",) if is_priced else ()),
    )


def _sees(tier: TierPage) -> str:
    if tier.plan.confirmation is None:
        return "no verdict"
    return "?" if tier.smallest is None else f"{tier.smallest.gain:.2%}"


def _elsewhere(page: Page) -> list[str]:
    if not page.elsewhere:
        return []
    rows = (
        (tier.plan.tier, tier.plan.devices.count, tier.plan.resolved.in_words, *_times(tier))
        for name in dict.fromkeys(tier.plan.tier for tier in page.tiers)
        for tier in page.elsewhere
        if tier.plan.tier == name
    )
    return [
        "## On other numbers of devices",
        *table(("tier", ">devices", "P x G x S", *_columns(page)), rows),
        "",
        f"Times are those of {page.tiers[0].plan.devices.count} devices: assumed for other "
        "numbers, where evaluations may get in each other's way.",
    ]


def _in_short(page: Page) -> Iterator[list[str]]:
    """Where the times come from, and what is not in order."""
    yield [in_short(page.times)]
    if said := beginning(page.tiers[0].plan):
        yield [said]
    answers = list(_answers(page.tiers))
    failed: dict[str, list[str]] = {}
    for item, which in answers:
        if item.verdict == "fail":
            failed.setdefault(item.question, []).append(f"{which} {plain(item.why)}".strip())
    unknown = dict.fromkeys(item.question for item, _ in answers if item.verdict == "unknown")
    lines = [f"- **fail**: {question} {'; '.join(why)}." for question, why in failed.items()]
    if unknown:
        lines.append(f"- **not known yet**: {' '.join(unknown)}")
    yield lines or ["Nothing speaks against beginning."]
    yield ["`--verbose` says why, and shows all that the figures rest on."]


def _answers(tiers: Sequence[TierPage]) -> Iterator[tuple[Item, str]]:
    """Each answer once, and of which tiers it is unless of all."""
    for answers in zip(*(tier.items for tier in tiers), strict=True):
        by_answer: dict[Item, list[str]] = {}
        for tier, item in zip(tiers, answers, strict=True):
            by_answer.setdefault(item, []).append(str(tier.plan.tier))
        for item, names in by_answer.items():
            yield item, "" if len(names) == len(tiers) else f"{', '.join(names)}:"


def _in_full(page: Page) -> Iterator[list[str]]:
    tiers, plan = page.tiers, page.tiers[0].plan
    yield _beginning(plan)
    yield times_lines(page.times)
    yield _parts(page)
    yield _what_it_can_tell(page)
    yield _room(tiers)
    yield ["## What is planned", *(f"- **{t.plan.tier}**: {_planned(t.plan)}" for t in tiers)]
    yield [_terms(plan)]
    yield ["## Before you begin", *_checklist(page)]


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


def _parts(page: Page) -> list[str]:
    """What the times consist of, by tier; nothing where none are known."""
    rows = list(filter(None, map(_parts_row, page.tiers)))
    if not rows:
        return []
    columns = (">calibration", ">search", ">nine in ten pay", ">idle", ">if Go, longer by")
    return [
        "## How long it takes",
        *table(("tier", *columns, ">must be free"), rows),
        "",
        _simulation(page),
        "",
        "More must be free than a run takes: the last evaluations' whole limits "
        "(evaluation.limit_seconds), so that none is begun that could end too late, and the long "
        "run that follows a Go.",
    ]


def _parts_row(tier: TierPage) -> tuple[object, ...]:
    took = tier.forecast
    if took is None:
        return ()
    longer = took.long_run_hours_p50
    return (
        tier.plan.tier,
        duration(3600 * took.calibrating_hours) if took.calibrating_hours else "-",
        duration(3600 * took.search_hours_p50),
        f"{took.device_hours_p90:.3g} device-hours",
        f"{took.idle_share:.0%}",
        duration(3600 * longer) if longer else "-",
        duration(3600 * took.hours_free),
    )


def _simulation(page: Page) -> str:
    first, calibration = page.tiers[0].forecast, page.times.calibration
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


def _what_it_can_tell(page: Page) -> list[str]:
    """How probably a true gain is seen, by the plan of the largest tier that compares."""
    compared = [tier for tier in page.tiers if tier.plan.confirmation is not None]
    if not compared:
        return []
    plan, smallest, own = compared[-1].plan, compared[-1].smallest, page.times.own_noise
    confirmation, rules = plan.confirmation, plan.thresholds
    assert confirmation is not None
    said = (
        f"The best of the finalists meets the baseline on {confirmation.seeds} fresh seeds; a Go "
        f"asks for a gain of {rules.go_gain:.2g} of its score, and that luck alone does that "
        f"{rules.go_level:.0%} of the time. "
    )
    if smallest is None or own is None:
        return ["## What it can tell", f"{said}No noise was measured: what it sees is not known."]
    spread = (rules.go_gain, 2**0.5 * own, confirmation.seeds, rules.go_level)
    shown, go = power_of(*spread), power_of(*spread, at_least=rules.go_gain)
    return [
        "## What it can tell",
        f"{said}It sees a true gain of {smallest.gain:.2%} 8 times of 10 (the calibration leaves "
        f"{smallest.low:.2%} to {smallest.high:.2%} possible); one of {rules.go_gain:.1%} is shown "
        f"{shown:.0%} of the time, and found large enough for a Go {go:.0%} of the time.",
    ]


def _room(tiers: Sequence[TierPage]) -> list[str]:
    measured = "as the calibration's are" if tiers[0].room.measured else "assumed"
    columns = (f">evaluations ({measured})", ">ledger", ">reports", ">with what is kept free")
    rows = ((tier.plan.tier, *_disk(tier)) for tier in tiers)
    return ["## What it takes of the disk", *table(("tier", *columns, ">free"), rows)]


def _disk(tier: TierPage) -> Iterator[str]:
    own = tier.room
    for size in (own.evaluations, own.ledger, own.reports, own.needed, own.free):
        yield "?" if size is None else in_bytes(size)


def _planned(plan: Plan) -> str:
    """What the tier is for, its shape and why it is that."""
    nominal = plan.nominal
    assert plan.tier is not None
    said = [
        f"{INTENT[plan.phase, plan.tier]}",
        f"As written {nominal.in_words} = {nominal.evaluations}",
    ]
    said += plan.reasons
    if plan.confirmation is not None and plan.confirmation.rung is not None:
        longer = plan.confirmation.rung
        said.append(
            f"After a Go: {counted(2 * longer.seeds, 'evaluation')}, {longer.variant.label}"
        )
    return " ".join(f"{one}." for one in said)


def _terms(plan: Plan) -> str:
    search = ""
    if plan.search is not None:
        step = f"{plan.search.sigma0:.3g} of each knob's range"
        search = f"Search: {plan.search.method}, first step {step}. "
    return (
        f"{search}Reserved for each evaluation: {plan.limits.reserve_ms / 1000:.0f} device-seconds "
        f"(limit {plan.limits.wall_seconds:g} s and twice the grace of "
        f"{plan.limits.grace_seconds:g} s). {_caps(plan)}"
    )


def _caps(plan: Plan) -> str:
    caps = plan.caps
    named = (
        (caps.device_hours, "device-hours"),
        (caps.hours, "hours open"),
        (caps.cost, "of cost"),
    )
    given = [f"{cap:g} {unit}" for cap, unit in named if cap is not None]
    said = f"Never more than {', '.join(given)}." if given else "No cap but the evaluations."
    return said if caps.window is None else f"{said} {_until(caps.window)}"


def _until(window: Window) -> str:
    margin = duration(window.margin_seconds)
    if window.until is not None:
        return f"Evaluations are over {margin} before {window.until:%Y-%m-%d %H:%M %Z}."
    return f"Evaluations are over {margin} before {window.hours:g} h have passed since it began."


def _checklist(page: Page) -> list[str]:
    """Every question, with its answer and why."""
    rows, before = [], ""
    for item, which in _answers(page.tiers):
        question, before = "" if item.question == before else item.question, item.question
        verdict = "**fail**" if item.verdict == "fail" else item.verdict
        rows.append((question, which.strip(":"), verdict, plain(item.why)))
    return table(("", "tier", "", "because"), rows)
