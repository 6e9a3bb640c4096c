"""From a configuration, its devices and a calibration to the frozen plan of a run."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from budgets.formatting import listed
from budgets.plan import (
    Calibration,
    Caps,
    Confirmation,
    Devices,
    Envelope,
    Limits,
    Phase,
    Plan,
    SearchMethod,
    SearchPlan,
    Source,
    Window,
)
from budgets.tiers import Sizing, size
from objectives.api import Objective
from objectives.registry import short_name
from objectives.settings import shown
from orchestrator.config import Budget, Config, Evaluation
from orchestrator.execution.devices import Engine

SIGMA0: dict[SearchMethod, float] = {"guided": 0.15, "plain": 0.2}
"""The default first step, a share of a knob's range (docs/search.md)."""

PICKING_SEEDS, CONTROL_SEEDS, BEST_CANDIDATES = 3, 5, 2

CALIBRATION_LIMIT_SECONDS = 600.0  # limit of an evaluation before anything is measured

Overrides = Sequence[tuple[str, str]]
"""Rules to pass, each with the reason."""


# Names


def run_name(config: Config) -> str:
    """Return `search.run_id`, or an id of variant, tier, objective and search seed."""
    search = config.search
    name = f"{search.tier or 'target'}-{short_name(config.tuned.spec)}-s{search.seed}"
    if search.follows is not None:
        name = f"{search.variant}-{name}"
    return search.run_id or name


def family_of(objective: Objective, kind: str) -> str:
    """Return the prefix of the names of all measurements of an objective on a kind of device."""
    return f"{short_name(objective.spec)}-{objective.fingerprint[:10]}-{kind}"


def calibration_name(objective: Objective, devices: Devices) -> str:
    """Return the prefix of the names of calibrations on the same kind and number of devices."""
    facts = f"{devices.kind}/{devices.name}/{devices.count}/{devices.threads}"
    return f"{family_of(objective, devices.kind)}-{short_hash(facts)}"


def short_hash(text: str) -> str:
    """Return six hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:6]


# Devices


def engine_of(config: Config) -> Engine:
    """Return the engine that evaluations run on."""
    own = config.backend
    return Engine(own.executor, own.address, own.device, own.workers, own.threads)


def slots_of(config: Config) -> Devices:
    """Return how many evaluations run at once, and on what devices."""
    return engine_of(config).slots()


# Windows


_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd])", re.ASCII)
_UNITS = {"s": 1 / 3600, "m": 1 / 60, "h": 1.0, "d": 24.0}
MOST_HOURS = 100_000  # eleven years


def parse_hours(flag: str, text: str) -> float:
    """Return hours from `90s`, `45m`, `12h` or `2d`. Raises ValueError, naming the flag."""
    if (found := _DURATION.fullmatch(text.strip())) is None:
        raise ValueError(f"{flag}: expected a duration such as 45m, 12h or 2d, got {text!r}")
    hours = float(found[1]) * _UNITS[found[2]]
    if hours > MOST_HOURS:
        raise ValueError(f"{flag}: expected at most {MOST_HOURS}h, got {text!r}")
    return hours


def window_of(budget: Budget, now: datetime | None = None) -> Window | None:
    """Return the budget's window: a duration, or a moment (ISO 8601; local time without a zone).

    Raises ValueError, naming the flag; of a run that begins `now`, also if it is too near.
    """
    if (text := budget.window) is None:
        return None
    margin = 3600 * parse_hours("budget.safety_margin", budget.safety_margin)
    if _DURATION.fullmatch(text.strip()):
        if 3600 * (hours := parse_hours("--window", text)) <= margin:
            raise ValueError(
                f"--window: expected longer than the safety margin of {margin:g} s "
                f"(budget.safety_margin), got {text!r}"
            )
        return Window(hours=hours, margin_seconds=margin)
    try:
        until = datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError):  # the first or last day, in another zone
        raise ValueError(
            "--window: expected a duration such as 12h, or a moment such as 2026-11-27T18:00, "
            f"got {text!r}"
        ) from None
    if now is not None and (until - now).total_seconds() <= margin:
        raise ValueError(
            f"--window: expected a moment more than {margin:g} s ahead (the budget.safety_margin), "
            f"got {until}"
        )
    return Window(until=until, margin_seconds=margin)


# Sizes


def sizing_of(config: Config, devices: int) -> tuple[Sizing, int]:
    """Return P, G and S on so many devices, and the cap on evaluations that they fit under.

    They are the tier's, within the configuration's limits. Raises ValueError if these do not pay
    for one generation.
    """
    search, dimension = config.search, config.tuned.space.dimension
    tier, expanded = search.tier or "target", search.variant == "expanded"
    sizing = size(search.phase, tier, dimension, devices, search.population, expanded=expanded)
    shape, reasons = sizing.resolved, list(sizing.reasons)
    seeds, generations = search.seeds_per_candidate or shape.seeds_per_candidate, shape.generations
    if seeds != shape.seeds_per_candidate:
        reasons.append(f"{seeds} instead of {shape.seeds_per_candidate} seeds a candidate")
    most, each = sizing.nominal.evaluations, shape.population * seeds
    cap = min(config.budget.max_evals or most, most)
    if cap < each:
        raise ValueError(
            f"at most {cap} evaluations (the tier's, or --max-evals) do not pay for one generation "
            f"of {each}, {shape.population} candidates on {seeds} seeds"
        )
    wanted = search.generations or generations
    limits = {f"{cap} evaluations pay for": cap // each, "the configuration asks for": wanted}
    for why, number in limits.items():
        if number < generations:
            reasons.append(f"{why} {number} of {generations} generations")
            generations = number
    changed = {"seeds_per_candidate": seeds, "generations": generations}
    if search.generations is not None:  # an amendment that raises it pays for more of them
        cap = min(cap, search.generations * each)
    return Sizing(sizing.nominal, shape.model_copy(update=changed), tuple(reasons)), cap


# Plans


def search_plan(
    config: Config,
    devices: Devices,
    calibration: Calibration | None,
    source: Source | None = None,
) -> Plan:
    """Return the plan of a search. Raises ValueError if it is impossible, naming the key."""
    search, (sizing, cap) = config.search, sizing_of(config, devices.count)
    start, sigma0 = config.tuned.space.baseline, SIGMA0[search.method]
    if source is not None:
        start = source.point
        sigma0 *= 1.0 if source.added else 0.5  # nearer to where phase 1 ended than new knobs are
    sigma0 = search.sigma0 or sigma0
    plan = plan_of(
        config,
        devices,
        calibration,
        sizing.resolved,
        phase=search.phase,
        run_id=run_name(config),
        tier=search.tier or "target",
        nominal=sizing.nominal,
        search=SearchPlan(method=search.method, seed=search.seed, sigma0=sigma0, start=start),
        caps=caps_for(config, cap),
        thresholds=config.thresholds,
        confirmation=confirmation_for(config, source),
        source=source,
    )
    return plan.model_copy(update={"reasons": (*sizing.reasons, *why_no_go(plan))})


def plan_of(
    config: Config,
    devices: Devices,
    calibration: Calibration | None,
    shape: Envelope,
    phase: Phase,
    **own: Any,
) -> Plan:
    """Return the plan of a run of this `phase`, with `own` fields.

    By default it evaluates one generation of this shape, and searches nothing.
    """
    objective, evaluation = config.tuned, config.evaluation
    fields: dict[str, Any] = {
        "phase": phase,
        "nominal": shape,
        "resolved": shape,
        "reasons": (),
        "evaluation_seed": evaluation.seed,
        "limits": _limits(evaluation, devices, calibration),
        "caps": caps_for(config, shape.evaluations),
        "price_per_device_hour": config.budget.price_per_device_hour,
        "devices": devices,
        "calibration": calibration,
        "objective": objective.spec.model_dump(mode="json"),
        "objective_fingerprint": objective.fingerprint,
        "direction": config.direction,
        "space": objective.space.model_dump(mode="json"),
        "provenance": dict(objective.provenance),
    }
    return Plan.model_validate(fields | own)


def why_no_go(plan: Plan) -> tuple[str, ...]:
    """Return why the plan's comparison with the baseline cannot lead to a Go, if it cannot."""
    wanted, least = plan.confirmation, plan.thresholds.go_seeds
    if wanted is not None and wanted.seeds < least:
        return (f"no Go is possible on {wanted.seeds} fresh seeds: it needs {least}",)
    if wanted is not None and plan.resolved.generations < 2:
        return ("no Go is possible: it needs two generations, to show that gains persist",)
    return ()


def confirmation_for(config: Config, source: Source | None = None) -> Confirmation | None:
    """Return how the verdict is reached; None for a smoke test and without seeds for it.

    A phase 2 also compares the winner of its phase 1.
    """
    verdict, objective = config.verdict, config.tuned
    is_smoke_test = config.search.tier == "min" and source is None
    if is_smoke_test or verdict.confirm_seeds == 0:
        return None
    controls, seeds = objective.controls(), verdict.long_run_seeds
    longer = objective.scaled(verdict.long_run) if verdict.long_run > 1 and seeds else None
    return Confirmation(
        seeds=verdict.confirm_seeds,
        picking_seeds=PICKING_SEEDS,
        best_candidates=BEST_CANDIDATES,
        control_seeds=min(CONTROL_SEEDS, verdict.confirm_seeds) if controls else 0,
        controls=controls,
        incumbent=None if source is None else source.point,
        long_run=longer,
        long_run_seeds=0 if longer is None else seeds,
    )


def caps_for(config: Config, evaluations: int) -> Caps:
    """Return the budget's caps, with this one on evaluations."""
    budget = config.budget
    return Caps(
        evaluations=evaluations,
        device_hours=budget.max_device_hours,
        hours=budget.max_hours,
        cost=budget.max_cost,
        window=window_of(budget),
    )


def _limits(own: Evaluation, devices: Devices, calibration: Calibration | None) -> Limits:
    """Return the limits of an attempt: by default six times the calibrated p90, at least 60 s."""
    wall = own.limit_seconds or CALIBRATION_LIMIT_SECONDS
    if own.limit_seconds is None and calibration is not None:
        wall = max(60.0, round(6 * calibration.p90_seconds))
    stall = min(wall, own.stall_seconds or 120.0)
    return Limits(wall_seconds=wall, stall_seconds=stall, memory_bytes=devices.memory_bytes)


# Where two plans differ

DERIVED = ("objective_fingerprint:", "space.", "search.start", "nominal.", "resolved.")
"""Fields that follow from others: shown only if nothing else differs."""


def differences(recorded: Plan, wanted: Plan) -> list[str]:
    """Return where two plans differ, as `field: recorded value -> wanted value`.

    Reasons are left out: the envelopes differ too.
    """
    plans = (plan.model_dump(mode="json", exclude={"reasons"}) for plan in (recorded, wanted))
    return list(differing("", *plans))


def differing(name: str, recorded: Any, wanted: Any) -> Iterator[str]:
    """Yield where two JSON values called `name` differ."""
    if isinstance(recorded, list) and isinstance(wanted, list) and len(recorded) == len(wanted):
        recorded, wanted = dict(enumerate(recorded)), dict(enumerate(wanted))
    if isinstance(recorded, dict) and isinstance(wanted, dict):
        for key in recorded | wanted:
            inner = f"{name}.{key}".lstrip(".")
            yield from differing(inner, recorded.get(key), wanted.get(key))
    elif recorded != wanted:
        yield f"{name}: {shown(recorded)} -> {shown(wanted)}"


def in_short(changed: Sequence[str]) -> str:
    """Return the first few differences, without those that follow from others."""
    return listed([one for one in changed if not one.startswith(DERIVED)] or changed, 5)
