"""What a tier would cost, before anything is spent: no side effects."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from statistics import median
from typing import Any, get_args

from budgets.calibration import (
    Forecast,
    Noise,
    chance_of_pause,
    eval_seconds,
    failures_to_pause,
    forecast,
    noise,
)
from budgets.course import expected
from budgets.following import beginning
from budgets.markdown import duration
from budgets.proxy.certificate import outlook
from budgets.statistics.comparison import percent
from budgets.statistics.detectable import detectable
from budgets.terms import Calibration, Devices, PanelName, Plan, Tier, Window
from budgets.tiers import INTENT
from orchestrator.planning.plan import Succession, search_plan
from orchestrator.planning.request import Request

SMALL_FAILURE_RATES = (0.01, 0.03)
"""Of evaluations whose knobs are not to blame: what a healthy system may have."""


@dataclass(frozen=True)
class Preview:
    """A tier's plan, and what it is expected to take; nothing is expected without a calibration."""

    plan: Plan
    expected: Forecast | None  # of the search

    @property
    def apart(self) -> Forecast | None:
        """What the comparison on fresh seeds is expected to take beside it, without the rung."""
        confirmation, calibration = self.plan.confirmation, self.plan.calibration
        if confirmation is None or calibration is None:
            return None
        return priced(self.plan, calibration, confirmation.sizes(), without="rung")

    @property
    def rung(self) -> Forecast | None:
        """What the rung is expected to take, should the search come to it."""
        confirmation, calibration = self.plan.confirmation, self.plan.calibration
        if confirmation is None or calibration is None or confirmation.rung is None:
            return None
        return priced(self.plan, calibration, {"rung": confirmation.sizes()["rung"]})

    @property
    def comparing(self) -> Forecast | None:
        """What it is expected to take to see how well a proxy and the full evaluation agree."""
        proxy, calibration = self.plan.proxy, self.plan.calibration
        if proxy is None or calibration is None:
            return None
        count = self.compared
        return priced(self.plan, calibration, {"proxy": (count, count * proxy.varied.length)})

    @property
    def compared(self) -> int:
        """How many short evaluations beside full ones are expected."""
        proxy, shape = self.plan.proxy, self.plan.resolved
        paired = 0 if proxy is None else outlook(proxy, shape.generations)[0]
        return paired * shape.per_generation

    def as_dict(self) -> dict[str, Any]:
        parts = {
            "expected": self.expected,
            "expected_apart": self.apart,
            "rung": self.rung,
            "comparing": self.comparing,
        }
        forecasts = {name: None if f is None else asdict(f) for name, f in parts.items()}
        return {"plan": self.plan.model_dump(mode="json"), **forecasts}


def priced(
    plan: Plan,
    calibration: Calibration,
    sizes: Mapping[PanelName, tuple[int, float]],
    without: PanelName | None = None,
) -> Forecast:
    """What panels of these sizes take, one after the other: evaluations, and their length."""
    chosen = [size for name, size in sizes.items() if name != without and size[0]]
    parts = [expected(*size, calibration, plan.devices.count) for size in chosen]
    device_hours = sum(part.device_hours for part in parts)
    return Forecast(
        evaluations=sum(part.evaluations for part in parts),
        eval_seconds=calibration.median_seconds,
        evals_per_hour=3600 / calibration.median_seconds,
        device_hours=device_hours,
        ideal_hours=device_hours / plan.devices.count,
        barrier_hours=sum(part.hours for part in parts),
        cost=device_hours * plan.price_per_device_hour,
    )


def preview_tiers(
    request: Request,
    devices: Devices,
    calibration: Calibration | None,
    tiers: Sequence[Tier] = get_args(Tier),
    succession: Succession | None = None,
) -> list[Preview]:
    """One preview a tier. Raises ValueError on a request that cannot be planned."""
    plans = [
        search_plan(replace(request, tier=t), devices, calibration, None, succession) for t in tiers
    ]
    return [Preview(plan, _expected(plan)) for plan in plans]


def _expected(plan: Plan) -> Forecast | None:
    if plan.calibration is None:
        return None
    seconds = plan.calibration.median_seconds
    return forecast(plan.resolved, seconds, plan.devices.count, plan.price_per_device_hour)


def to_markdown(previews: Sequence[Preview]) -> str:
    """The previews side by side, with everything that was assumed."""
    plan = previews[0].plan
    devices = plan.devices
    lines = [
        f"# {plan.phase} of {plan.objective['name']} on {devices.count} x {devices.name}",
        "",
        *_beginning(plan),
        *_basis(plan.calibration),
        "",
        "| tier | P x G x S | evaluations | device-hours | ideal | with barrier | cost |",
        "|---|---|--:|--:|--:|--:|--:|",
        *(line for preview in previews for line in _rows(preview)),
        "",
    ]
    for preview in previews:
        plan = preview.plan
        said = (_why(plan), *_proxy(plan), _verdict(plan), _bad_luck(plan))
        lines += [f"**{plan.tier}**: {' '.join(said)}", ""]
    if (search := plan.search) is not None:
        step = f"{search.sigma0:.3g} of each knob's range"
        lines += [f"Search: {search.method}, first step {step}.", ""]
    lines += [
        f"Reserved for each evaluation: {plan.limits.reserve_ms / 1000:.0f} device-seconds "
        f"(limit {plan.limits.wall_seconds:g} s and twice the grace of "
        f"{plan.limits.grace_seconds:g} s). {_caps(plan)}",
        "",
    ]
    return "\n".join(lines)


def _beginning(plan: Plan) -> list[str]:
    """What the search takes over, and is told beforehand."""
    said = beginning(plan)
    if said is None:
        return []
    search = plan.search
    if plan.source is None and (search is None or search.inherited is None):
        return [said, ""]
    learned = (
        "It begins at that one's recommendation, or where its search stood if it has none, with "
        f"the step size and the shape of its end (`{plan.phase}` replays it)."
    )
    return [said, learned, ""]


def _basis(calibration: Calibration | None) -> list[str]:
    if calibration is None:
        return [
            "Not calibrated here, so no times. Measure with `orchestrator calibrate`, or say "
            "`--assume-eval-seconds X`."
        ]
    if calibration.assumed_seconds is not None:
        return [f"Assumed, not measured: {calibration.assumed_seconds:g} s an evaluation."]
    return calibration_lines(calibration)


def calibration_lines(calibration: Calibration) -> list[str]:
    """A measured calibration in words."""
    samples = calibration.samples
    startup = median(s.startup_seconds for s in samples)
    training = median(s.train_seconds for s in samples)
    took = eval_seconds(calibration)
    lines = [
        f"An evaluation takes {took.median:.1f} s (median of {len(samples)}; {took.min:.1f} to "
        f"{took.max:.1f} s, nine in ten within {took.p90:.1f} s): start-up {startup:.2f} s, "
        f"training {training:.1f} s. One device does {3600 / took.median:.0f} an hour."
    ]
    steps = median(s.steps for s in samples)
    if steps:
        rate = median(s.tokens / s.train_seconds for s in samples if s.train_seconds)
        flops = median(s.train_flops for s in samples)
        evaluation = median(s.eval_flops for s in samples)
        memory = max(s.peak_memory_bytes for s in samples)
        lines.append(
            f"It trains {steps:.0f} steps, {rate:,.0f} tokens a second, {flops:.3g} FLOPs "
            f"(and {evaluation:.3g} to score), in {memory / 2**20:.0f} MiB at most."
        )
    measured = noise(calibration)
    assert measured is not None
    return [*lines, _spread(measured), _failures(measured)]


def _spread(of: Noise) -> str:
    if of.sd is None or of.sd_low is None or of.sd_high is None:
        return f"The baseline scores {of.mean:.5g}, on one seed."
    if of.sd == 0:
        return f"The baseline scores {of.mean:.5g} on each of {of.seeds} seeds."
    share, low, high = (sd / abs(of.mean or 1) for sd in (of.sd, of.sd_low, of.sd_high))
    return (
        f"The baseline scores {of.mean:.5g}, sd {of.sd:.3g} over {of.seeds} seeds ({share:.2%}; "
        f"95% interval {low:.2%} to {high:.2%}). So far the seed alone moves a score: two "
        "that differ by no more may be equally good."
    )


def _failures(of: Noise) -> str:
    failed, total = of.failed or "None", of.seeds + of.failed
    return (
        f"{failed} of {total} evaluations of the baseline failed ({of.failure_rate:.1%}; 95% "
        f"interval {of.failure_low:.1%} to {of.failure_high:.1%})."
    )


def _rows(preview: Preview) -> list[str]:
    plan, e = preview.plan, preview.plan.resolved
    shape = f"{e.population} x {e.generations} x {e.seeds_per_candidate}"
    rows = [_row(plan, str(plan.tier), shape, e.evaluations, preview.expected)]
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


def _row(plan: Plan, tier: str, shape: str, count: int, expected: Forecast | None) -> str:
    if expected is None:
        return f"| {tier} | {shape} | {count} | ? | ? | ? | ? |"
    cost = f"{expected.cost:.2f}" if plan.price_per_device_hour else "-"
    return (
        f"| {tier} | {shape} | {count} | {expected.device_hours:.3g} | "
        f"{duration(3600 * expected.ideal_hours)} | {duration(3600 * expected.barrier_hours)} | "
        f"{cost} |"
    )


def _verdict(plan: Plan) -> str:
    """How the tier's verdict comes about, and what gain it can see."""
    confirmation, limits = plan.confirmation, plan.thresholds
    if confirmation is None:
        return "No comparison on fresh seeds, so it can say that the plumbing works, and no more."
    said = (
        f"Then the best of {2 + confirmation.luckiest} finalists meets the baseline on "
        f"{confirmation.seeds} fresh seeds. A Go asks for a gain of {percent(limits.go_gain)}"
    )
    measured = noise(plan.calibration) if plan.calibration is not None else None
    if measured is None or measured.sd is None or not measured.mean:
        return f"{said}."
    if measured.sd == 0:
        return f"{said}; the calibrated scores do not differ, so any would be seen."
    sds = (measured.sd, measured.sd_low or 0.0, measured.sd_high or 0.0)
    paired = (sqrt(2) * sd / abs(measured.mean) for sd in sds)
    least, low, high = (detectable(sd, confirmation.seeds, limits.go_level) for sd in paired)
    return (
        f"{said}; one of {least:.2%} would be seen 8 times of 10 with the noise that was "
        f"calibrated. {measured.seeds} seeds leave {low:.2%} to {high:.2%} possible, and less "
        "where a seed moves both scores alike."
    )


def _proxy(plan: Plan) -> Iterator[str]:
    """What a proxy can save, and what it costs where it is not good enough."""
    if plan.proxy is None:
        return
    shape, length = plan.resolved, plan.proxy.varied.length
    paired, short = outlook(plan.proxy, shape.generations)
    compared, saved = paired * length, short * (1 - length)
    net, extra = (x / shape.generations for x in (saved - compared, compared))
    yield (
        f"{plan.proxy.varied.label} takes {length:.0%} of an evaluation's time. Where it agrees "
        f"with the full one whenever they are compared, and the mean moves little, {short} of "
        f"{shape.generations} generations are short and {net:.0%} of the search's time is saved; "
        f"where it never does, comparing costs {extra:.0%} more."
    )


def _why(plan: Plan) -> str:
    nominal = plan.nominal
    written = f"{nominal.population} x {nominal.generations} x {nominal.seeds_per_candidate}"
    assert plan.tier is not None
    reasons = "".join(f" {reason}." for reason in plan.reasons)
    return (
        f"{INTENT[plan.phase, plan.tier]}. As written {written} = {nominal.evaluations}.{reasons}"
    )


def _bad_luck(plan: Plan) -> str:
    """How often the crash rule pauses a run that nothing ails but a small rate of failures."""
    rule, per_generation = plan.thresholds, plan.resolved.per_generation
    terms = (rule.crash_rate_pause, rule.crash_count_pause)
    count = failures_to_pause(per_generation, *terms)
    if count is None:
        return "No number of failures pauses it."
    generations = plan.resolved.generations
    chances = (
        f"{chance_of_pause(per_generation, rate, *terms, generations):.1%} of runs "
        f"({chance_of_pause(per_generation, rate, *terms):.1%} of generations) where {rate:.0%} of "
        "all evaluations fail"
        for rate in SMALL_FAILURE_RATES
    )
    return (
        f"It pauses when {count} of a generation's {per_generation} evaluations fail; luck alone "
        f"does that in {', in '.join(chances)}."
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
