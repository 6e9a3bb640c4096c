"""What a person should know before paying, without side effects: ten lines, or all they rest on."""

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
from objectives.registry import kind
from orchestrator.config import Config
from orchestrator.plan.checks import Item, checklist
from orchestrator.plan.forecast import DetectableGain, Forecast, detectable_gain, forecast_of
from orchestrator.plan.history import Known, known_knobs
from orchestrator.plan.resolve import Succession, search_plan
from orchestrator.plan.times import Disk, Times, disk_of, in_short, times_here, times_lines
from orchestrator.records.recorded import spec_of


@dataclass(frozen=True)
class TierPage:
    """One tier: what it takes, what it can tell, whether to begin."""

    plan: Plan
    forecast: Forecast | None  # None: no times are known
    disk: Disk
    detectable: DetectableGain | None  # None: nothing is compared, or no noise is known
    items: tuple[Item, ...]

    @property
    def verdict_evaluations(self) -> int:
        """Beside the search's, at most; the long run after a Go not among them."""
        sizes = {} if self.plan.confirmation is None else self.plan.confirmation.sizes()
        return sum(count for name, (count, _) in sizes.items() if name != "rung")

    @property
    def cost(self) -> float | None:
        """P50; None where nobody knows, or device-hours have no price."""
        price = self.plan.price_per_device_hour
        return self.forecast.device_hours_p50 * price if self.forecast and price else None

    def as_dict(self) -> dict[str, Any]:
        """The same for a program."""
        plan, own = self.plan, self.disk
        by_formula = None
        if plan.calibration is not None:  # the search alone, as if all took the median
            seconds, price = plan.calibration.median_seconds, plan.price_per_device_hour
            by_formula = asdict(forecast(plan.resolved, seconds, plan.devices.count, price))
        return {
            "plan": plan.model_dump(mode="json"),
            "evaluations": plan.resolved.evaluations,
            "verdict_evaluations": self.verdict_evaluations,
            "search": by_formula,
            "forecast": None if self.forecast is None else self.forecast.as_dict(),
            "cost": self.cost,
            "disk": {**asdict(own), "needed": own.needed, "suffices": own.suffices},
            "detectable_gain": None if self.detectable is None else asdict(self.detectable),
            "checklist": [item._asdict() for item in self.items],
        }


@dataclass(frozen=True)
class Page:
    """The tiers side by side, and what their figures rest on."""

    times: Times
    tiers: tuple[TierPage, ...]
    warnings: tuple[str, ...] = ()  # what could not be read

    def as_dict(self) -> dict[str, Any]:
        """The same for a program."""
        times = self.times
        return {
            "times": {
                "origin": times.origin,
                "prior": None if times.prior is None else times.prior.sentence(),
                "overheads": asdict(times.overheads),
                "measured_at": times.measured_at,
                "drift": times.drift,
            },
            "tiers": [tier.as_dict() for tier in self.tiers],
        }


def page_of(config: Config, devices: Devices, succession: Succession | None = None) -> Page:
    """Return the page of a search, of all tiers where the configuration names none.

    Raises ValueError on what cannot be planned.
    """
    root, objective, assumed = (
        Path(config.runs_dir),
        config.tuned,
        config.evaluation.assume_eval_seconds,
    )
    times, warnings = times_here(root, objective, devices, assumed), tuple[str, ...]()
    try:
        known = known_knobs(root, objective, devices.kind)
    except (LedgerCorruptError, ImpossibleEventError, ValueError) as error:
        warnings = (str(error),)
        known = Known((), (), tuple(knob.name for knob in objective.space.knobs))
    tiers = get_args(Tier) if config.search.tier is None else (config.search.tier,)
    now, pages = datetime.now(UTC), list[TierPage]()
    for tier in tiers:
        one = config.having({"search.tier": tier})
        plan = search_plan(one, devices, times.calibration, None, succession)
        took, disk = forecast_of(plan, times), disk_of(plan, root, times.evaluation_bytes)
        items = checklist(plan, times, took, disk, known, now)
        pages.append(TierPage(plan, took, disk, detectable_gain(plan), items))
    return Page(times, tuple(pages), warnings)


def page_text(page: Page, *, in_full: bool = False) -> str:
    """The tiers side by side, and what speaks against them; `in_full` with all assumptions."""
    plan = page.tiers[0].plan
    devices, name = plan.devices, kind(spec_of(plan))
    parts = (
        [f"# {plan.phase} of {plain(name)} on {devices.count} x {devices.name}", "", *_tiers(page)],
        *(_in_full(page) if in_full else _in_short(page)),
    )
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _tiers(page: Page) -> list[str]:
    """Evaluations are those of the search, and of the verdict."""
    is_priced, rows = bool(page.tiers[0].plan.price_per_device_hour), []
    for tier in page.tiers:
        shape, beside, took = tier.plan.resolved, tier.verdict_evaluations, tier.forecast
        count = f"{shape.evaluations}{f' + {beside}' if beside else ''}"
        times: tuple[str, ...] = ("?",) * (3 + is_priced)
        if took is not None:
            times = (
                duration(3600 * took.hours_p50),
                duration(3600 * took.hours_p90),
                f"{took.device_hours_p50:.3g}",
                *((f"{tier.cost:.2f}",) if is_priced else ()),
            )
        gain = "?" if tier.detectable is None else f"{tier.detectable.gain:.2%}"
        gain = gain if tier.plan.confirmation is not None else "no verdict"
        rows.append((tier.plan.tier, shape.in_words, count, *times, gain))
    priced = (">cost",) if is_priced else ()
    columns = (">evaluations", ">p50", ">p90", ">device-hours", *priced, ">detectable gain")
    return table(("tier", "P x G x S", *columns), rows)


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
    yield [said] if (said := beginning(plan)) else []
    yield times_lines(page.times)
    yield _parts(page)
    yield _what_it_can_tell(page)
    yield _disk(tiers)
    yield ["## What is planned", "", *(f"- **{t.plan.tier}**: {_planned(t.plan)}" for t in tiers)]
    yield [_terms(plan)]
    yield ["## Before you begin", "", *_checklist(page)]


def _parts(page: Page) -> list[str]:
    """What the times consist of, by tier; nothing where none are known."""
    rows = [
        (
            tier.plan.tier,
            duration(3600 * took.calibrating_hours) if took.calibrating_hours else "-",
            duration(3600 * took.search_hours_p50),
            f"{took.device_hours_p90:.3g}",
            f"{took.idle_share:.0%}",
            duration(3600 * took.long_run_hours_p50) if took.long_run_hours_p50 else "-",
            duration(3600 * took.hours_free),
        )
        for tier in page.tiers
        if (took := tier.forecast) is not None
    ]
    if not rows:
        return []
    columns = (">calibration", ">search", ">device-hours p90", ">idle", ">if Go, longer by")
    return [
        "## How long it takes",
        "",
        *table(("tier", *columns, ">must be free"), rows),
        "",
        _simulation(page.times),
        "",
        "More must be free than a run takes: the last evaluations' whole limits "
        "(evaluation.limit_seconds), so that none is begun that could end too late, and the long "
        "run that follows a Go.",
    ]


def _simulation(times: Times) -> str:
    said = "Simulated evaluation by evaluation, from the wait for the engine on. "
    if times.calibration is None or len(times.calibration.samples) < 2:
        return f"{said}Only one time of an evaluation is known: no spread and no failures."
    return (
        f"{said}Each simulated run resamples the calibration, so that its few samples count as "
        "few. Assumed: candidates take as long as the baseline, independently of each other, on a "
        "machine as busy as it was then; a failed evaluation is repeated once, as often as the "
        "calibration leaves possible."
    )


def _what_it_can_tell(page: Page) -> list[str]:
    """How probably a true gain is seen, by the plan of the largest tier that compares."""
    compared = [tier for tier in page.tiers if tier.plan.confirmation is not None]
    if not compared:
        return []
    plan, gain = compared[-1].plan, compared[-1].detectable
    assert plan.confirmation is not None
    seeds, rules, calibration = plan.confirmation.seeds, plan.thresholds, plan.calibration
    said = (
        f"The best of the finalists meets the baseline on {seeds} fresh seeds; a Go asks for a "
        f"gain of {rules.go_gain:.2g} of its score, and for luck alone to do that "
        f"{rules.go_level:.0%} of the time. "
    )
    sd = None if calibration is None else calibration.sd_score
    mean = None if calibration is None else calibration.mean_score
    if gain is None or not sd or not mean:
        said += "No noise was measured: what it sees is not known."
        return ["## What it can tell", "", said]
    spread = (rules.go_gain, 2**0.5 * sd / abs(mean), seeds, rules.go_level)
    shown, go = power_of(*spread), power_of(*spread, at_least=rules.go_gain)
    said += (
        f"Detectable gain at 80 % power: {gain.gain:.2%} (the calibration leaves {gain.low:.2%} to "
        f"{gain.high:.2%} possible). A gain of {rules.go_gain:.1%} is shown {shown:.0%} of the "
        f"time, and found large enough for a Go {go:.0%} of the time."
    )
    return ["## What it can tell", "", said]


def _disk(tiers: Sequence[TierPage]) -> list[str]:
    measured = "as the calibration's are" if tiers[0].disk.measured else "assumed"
    rows = []
    for tier in tiers:
        own = tier.disk
        sizes = (own.evaluations, own.records, own.needed, own.free)
        rows.append((tier.plan.tier, *("?" if one is None else in_bytes(one) for one in sizes)))
    columns = (f">evaluations ({measured})", ">ledger and reports", ">with what is kept free")
    return ["## What it takes of the disk", "", *table(("tier", *columns, ">free"), rows)]


def _planned(plan: Plan) -> str:
    """What the tier is for, its shape and why it is that."""
    nominal = plan.nominal
    assert plan.tier is not None
    said = [
        f"{INTENT[plan.phase, plan.tier]}",
        f"As written {nominal.in_words} = {nominal.evaluations}",
        *plan.reasons,
    ]
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
    caps = plan.caps
    named = (
        (caps.device_hours, "device-hours"),
        (caps.hours, "wall-clock hours"),
        (caps.cost, "of cost"),
    )
    given = [f"{cap:g} {unit}" for cap, unit in named if cap is not None]
    capped = f"Never more than {', '.join(given)}." if given else "No cap but the evaluations."
    return (
        f"{search}Reserved for each evaluation: {plan.limits.reserve_ms / 1000:.0f} device-seconds "
        f"(limit {plan.limits.wall_seconds:g} s and twice the grace of "
        f"{plan.limits.grace_seconds:g} s). {capped}{_until(caps.window)}"
    )


def _until(window: Window | None) -> str:
    if window is None:
        return ""
    margin = duration(window.margin_seconds)
    if window.until is not None:
        return f" Evaluations are over {margin} before {window.until:%Y-%m-%d %H:%M %Z}."
    return f" Evaluations are over {margin} before {window.hours:g} h have passed since it began."


def _checklist(page: Page) -> list[str]:
    """Every question, with its answer and why."""
    rows, before = [], ""
    for item, which in _answers(page.tiers):
        question, before = "" if item.question == before else item.question, item.question
        verdict = "**fail**" if item.verdict == "fail" else item.verdict
        rows.append((question, which.strip(":"), verdict, plain(item.why)))
    return table(("", "tier", "", "because"), rows)
