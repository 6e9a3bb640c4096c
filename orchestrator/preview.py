"""What a tier would cost, before anything is spent: no side effects."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any, get_args

from budgets.calibration import Forecast, forecast
from budgets.following import in_words
from budgets.markdown import duration
from budgets.terms import Calibration, Devices, Plan, Tier, Window
from budgets.tiers import INTENT
from orchestrator.plan import Request, Succession, search_plan


@dataclass(frozen=True)
class Preview:
    """A tier's plan, and what it is expected to take; nothing is expected without a calibration."""

    plan: Plan
    expected: Forecast | None

    def as_dict(self) -> dict[str, Any]:
        expected = None if self.expected is None else asdict(self.expected)
        return {"plan": self.plan.model_dump(mode="json"), "expected": expected}


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
        *(_row(preview) for preview in previews),
        "",
    ]
    for preview in previews:
        lines += [f"**{preview.plan.tier}**: {_why(preview.plan)}", ""]
    lines += [
        f"Reserved for each evaluation: {plan.limits.reserve_ms / 1000:.0f} device-seconds "
        f"(limit {plan.limits.wall_seconds:g} s and twice the grace of "
        f"{plan.limits.grace_seconds:g} s). {_caps(plan)}",
        "",
    ]
    return "\n".join(lines)


def _beginning(plan: Plan) -> list[str]:
    """What a phase 2 takes over."""
    if plan.source is None:
        return []
    learned = (
        "It begins at that one's recommendation, with the step size and the shape that its search "
        "had in the end (`phase2` replays it)."
    )
    return [in_words(plan.source), learned, ""]


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
    lines = [
        f"An evaluation takes {calibration.median_seconds:.1f} s (median of {len(samples)}, "
        f"p90 {calibration.p90_seconds:.1f} s): start-up {startup:.2f} s, training "
        f"{training:.1f} s. One device does {3600 / calibration.median_seconds:.0f} an hour."
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
    mean, sd = calibration.mean_score, calibration.sd_score
    if mean is not None:
        noise = "" if sd is None else f", sd {sd:.4g} over seeds ({sd / abs(mean or 1):.2%})"
        lines.append(f"The baseline scores {mean:.5g}{noise}.")
    if calibration.failed:
        lines.append(f"{calibration.failed} evaluations of the baseline failed.")
    return lines


def _row(preview: Preview) -> str:
    e, expected = preview.plan.resolved, preview.expected
    shape = f"{e.population} x {e.generations} x {e.seeds_per_candidate}"
    if expected is None:
        return f"| {preview.plan.tier} | {shape} | {e.evaluations} | ? | ? | ? | ? |"
    cost = f"{expected.cost:.2f}" if preview.plan.price_per_device_hour else "-"
    return (
        f"| {preview.plan.tier} | {shape} | {e.evaluations} | {expected.device_hours:.3g} | "
        f"{duration(3600 * expected.ideal_hours)} | {duration(3600 * expected.barrier_hours)} | "
        f"{cost} |"
    )


def _why(plan: Plan) -> str:
    nominal = plan.nominal
    written = f"{nominal.population} x {nominal.generations} x {nominal.seeds_per_candidate}"
    assert plan.tier is not None
    reasons = "".join(f" {reason}." for reason in plan.reasons)
    return (
        f"{INTENT[plan.phase, plan.tier]}. As written {written} = {nominal.evaluations}.{reasons}"
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
