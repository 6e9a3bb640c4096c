"""From a configuration, its devices and a calibration to the frozen plan of a run."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgets.calibration import noise
from budgets.formatting import counted
from budgets.plan import (
    MOST_HOURS,
    Calibration,
    Caps,
    Confirmation,
    Devices,
    Envelope,
    Limits,
    LongRun,
    Phase,
    Plan,
    SearchMethod,
    SearchTerms,
    Source,
    Variant,
    Window,
)
from budgets.tiers import Sizing, size
from objectives.api import Objective
from objectives.api import Variant as ObjectiveVariant
from objectives.registry import short_name
from objectives.settings import shown
from orchestrator.config import (
    LONG_RUN_FACTOR,
    LONG_RUN_SEEDS,
    VERDICT_SEEDS,
    Budget,
    Config,
    Evaluation,
    Verdict,
)
from orchestrator.plan.known import known_points, read_known
from orchestrator.records.runs import RUNS_DIR

if TYPE_CHECKING:
    from orchestrator.capacity import Pacing
    from orchestrator.execution.api import Slots
    from orchestrator.execution.engine import Engine

METHOD: SearchMethod = "guided"
"""The default search method (docs/search.md)."""

SIGMA0: dict[SearchMethod, float] = {"guided": 0.15, "plain": 0.2}
"""The default first step, a share of a knob's range (docs/search.md)."""

PICKING_SEEDS, CONTROL_SEEDS, BEST_CANDIDATES = 3, 5, 2

CALIBRATION_LIMIT_SECONDS = 600.0
"""Limit of an evaluation before anything is measured."""

Overrides = Sequence[tuple[str, str]]
"""Rules to pass, each with the reason."""


# Names


RUN_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def run_name(config: Config) -> str:
    """Return `search.run_id`, or an id of variant, tier, objective and search seed."""
    search = config.search
    name = search.run_id
    if name is None:
        name = f"{search.tier or 'target'}-{short_name(config.tuned.spec)}-s{search.seed}"
        if search.follows is not None:
            name = f"{search.variant}-{name}"
    check_run_id(name)
    return name


def check_run_id(name: str, option: str = "--run-id") -> None:
    """Raise ValueError unless `name` is a plain file name of 1 to 64 safe characters."""
    if not RUN_ID.fullmatch(name):
        raise ValueError(
            f"{option}: expected 1 to 64 of a-z, 0-9, '.', '_', '-', beginning with a letter or "
            f"digit, got {name!r}"
        )


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


def run_directory(root: Path, phase: Phase, run_id: str) -> Path:
    """Return the directory of a run."""
    return root / phase / run_id


def found_as(directory: Path, plan: Plan) -> str:
    """Return the run's id if commands find it by that, else its directory."""
    usual = run_directory(Path(RUNS_DIR), plan.phase, plan.run_id)
    here, own = Path.cwd(), directory.absolute()
    if own == usual.absolute():
        return plan.run_id
    return str(own.relative_to(here) if own.is_relative_to(here) else own)


# Devices


def engine_of(config: Config) -> "Engine":
    """Return the engine that evaluations run on."""
    from orchestrator.execution.engine import Engine

    own = config.backend
    return Engine(own.executor, own.address, own.device, own.workers, own.threads)


def slots_of(config: Config) -> "Slots":
    """Return how many evaluations run at once, and on what devices."""
    return engine_of(config).slots()


def pacing_of(config: Config) -> "Pacing":
    """Return what limits evaluations besides the devices."""
    from orchestrator.capacity import Pacing

    own = config.backend
    directory = None if own.slots_dir is None else Path(own.slots_dir)
    return Pacing(own.max_concurrent, directory, config.backpressure.enabled)


# Windows


_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd])", re.ASCII)
_UNITS = {"s": 1 / 3600, "m": 1 / 60, "h": 1.0, "d": 24.0}


def parse_hours(flag: str, text: str) -> float:
    """Return hours from `90s`, `45m`, `12h` or `2d`. Raises ValueError, naming the flag."""
    if (found := _DURATION.fullmatch(text.strip())) is None:
        raise ValueError(f"{flag}: expected a duration such as 45m, 12h or 2d, got {text!r}")
    hours = float(found[1]) * _UNITS[found[2]]
    if hours > MOST_HOURS:
        raise ValueError(f"{flag}: expected at most {MOST_HOURS}h, got {text!r}")
    return hours


def window_of(budget: Budget) -> Window | None:
    """Return the budget's window. Raises ValueError if it is malformed."""
    return None if budget.window is None else parse_window(budget.window, budget.safety_margin)


def parse_window(text: str, safety_margin: str) -> Window:
    """Return a window from a duration or a moment (ISO 8601; local time without a zone).

    Raises ValueError, naming the flag.
    """
    margin = 3600 * parse_hours("budget.safety_margin", safety_margin)
    if _DURATION.fullmatch(text.strip()):
        if not (hours := parse_hours("--window", text)):
            raise ValueError(f"--window: expected more than no time, got {text!r}")
        return Window(hours=hours, margin_seconds=margin)
    try:
        until = datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError):  # the first or last day, in another zone
        raise ValueError(
            "--window: expected a duration such as 12h, or a moment such as 2026-11-27T18:00, "
            f"got {text!r}"
        ) from None
    return Window(until=until, margin_seconds=margin)


def refuse_the_past(window: Window | None, now: datetime) -> None:
    """Raise ValueError if the window ends before any evaluation could."""
    if window is None or window.until is None:
        return
    if (window.until - now).total_seconds() <= window.margin_seconds:
        raise ValueError(
            f"--window: expected a moment more than {window.margin_seconds:g} s ahead (the "
            f"budget.safety_margin), got {window.until.isoformat(timespec='minutes')}"
        )


# Sizes


def sizing_of(config: Config, devices: int) -> Sizing:
    """Return P, G and S on so many devices: the tier's, within the configuration's limits.

    Raises ValueError if they do not pay for one generation.
    """
    search, dimension = config.search, config.tuned.space.dimension
    tier, expanded = search.tier or "target", search.variant == "expanded"
    sizing = size(search.phase, tier, dimension, devices, search.population, expanded=expanded)
    shape, reasons = sizing.resolved, list(sizing.reasons)
    seeds, generations = search.seeds_per_candidate or shape.seeds_per_candidate, shape.generations
    if seeds != shape.seeds_per_candidate:
        reasons.append(f"{seeds} instead of {shape.seeds_per_candidate} seeds a candidate")
    each, nominal = shape.population * seeds, sizing.nominal.evaluations
    most = config.budget.max_evals
    for name, cap in (f"the tier's E of {nominal}", nominal), (f"--max-evals {most}", most):
        if cap is None or cap >= generations * each:
            continue
        if cap < each:
            raise ValueError(
                f"{name} does not pay for one generation of {each} evaluations, {shape.population} "
                f"candidates on {seeds} seeds (search.seeds_per_candidate)"
            )
        reasons.append(f"{name} pays for {cap // each} of {generations} generations")
        generations = cap // each
    if search.generations is not None and search.generations < generations:
        reasons.append(f"{search.generations} of {generations} generations were asked for")
        generations = search.generations
    changed = {"seeds_per_candidate": seeds, "generations": generations}
    return Sizing(sizing.nominal, shape.model_copy(update=changed), tuple(reasons))


def most_evaluations(config: Config, sizing: Sizing) -> int:
    """Return the cap on evaluations: the least of the tier's E and the configured limits."""
    limits = [config.budget.max_evals or 2**31, sizing.nominal.evaluations]
    if config.search.generations is not None:  # an amendment that raises it pays for more of them
        limits.append(config.search.generations * sizing.resolved.per_generation)
    return min(limits)


# Plans


@dataclass(frozen=True)
class Succession:
    """What a phase 2 takes over from its phase 1."""

    source: Source
    search: SearchTerms


def search_plan(
    config: Config,
    devices: Devices,
    calibration: Calibration | None,
    succession: Succession | None = None,
) -> Plan:
    """Return the plan of a search. Raises ValueError if it is impossible, naming the key."""
    sizing = sizing_of(config, devices.count)
    source = None if succession is None else succession.source
    plan = plan_of(
        config,
        devices,
        calibration,
        sizing.resolved,
        phase=config.search.phase,
        run_id=run_name(config),
        tier=config.search.tier or "target",
        nominal=sizing.nominal,
        reasons=sizing.reasons,
        search=_search_terms(config, sizing.resolved, succession),
        caps=caps_for(config, most_evaluations(config, sizing)),
        thresholds=config.thresholds,
        confirmation=confirmation_for(config, source),
        source=source,
    )
    return plan.model_copy(update={"reasons": (*plan.reasons, *why_no_go(plan))})


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
        "tier": None,
        "nominal": shape,
        "resolved": shape,
        "reasons": (),
        "search": None,
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


def calibration_plan(config: Config, devices: Devices, repeats: int) -> Plan:
    """Return the plan of a calibration: the baseline on `repeats` seeds, within the caps."""
    shape = Envelope(population=1, generations=1, seeds_per_candidate=repeats)
    family = calibration_name(config.tuned, devices)
    plan = plan_of(config, devices, None, shape, "calibration", run_id=family)
    terms = f"{plan.evaluation_seed}/{plan.limits}/{plan.caps}/{plan.price_per_device_hour}"
    terms += "" if config.direction == "minimize" else f"/{config.direction}"
    return plan.model_copy(update={"run_id": f"{family}-{short_hash(terms)}"})


def check_beginning(config: Config) -> None:
    """Raise ValueError on a configuration that no run can begin with."""
    space = config.tuned.space  # raises on a wrong setting
    caps_for(config, evaluations=1)
    if config.campaign is None:
        _check_phase(config)
    if config.search.known is not None:
        read_known(Path(config.search.known), space)


def _check_phase(config: Config) -> None:
    """Raise ValueError unless a phase 2 follows a run, and a phase 1 follows none."""
    search = config.search
    if search.phase == "phase1":
        for key, value in (("from", search.follows), ("variant", search.variant)):
            if value is not None:
                said = f"{shown(value)} ({config.source(f'search.{key}')})"
                raise ValueError(f"--{key}: only a phase2 follows a run, got {said}")
    elif search.follows is None:
        raise ValueError("--from: which phase 1 shall it follow? Give its id or directory")
    elif search.variant is None:
        raise ValueError("--variant: expected robust (the same knobs) or expanded (more of them)")


def why_no_go(plan: Plan) -> tuple[str, ...]:
    """Return why the plan's comparison with the baseline cannot lead to a Go, if it cannot."""
    reasons = []
    if plan.confirmation is not None and plan.confirmation.seeds < plan.thresholds.go_seeds:
        reasons.append(
            f"no Go is possible: it needs {plan.thresholds.go_seeds} fresh seeds (go_seeds), the "
            f"comparison has {plan.confirmation.seeds} (verdict.confirm_seeds)"
        )
    if plan.confirmation is not None and plan.resolved.generations < 2:
        reasons.append("no Go is possible: it needs two generations, to show that gains persist")
    return tuple(reasons)


def no_share(calibration: Calibration | None) -> str:
    """Return why a gain cannot be relative to the baseline's score; "" if it can."""
    measured = None if calibration is None else noise(calibration)
    if measured is None or not measured.is_about_zero:
        return ""
    spread = "" if measured.sd is None else f", sd {measured.sd:.3g}"
    return (
        f"the baseline scores {measured.mean:.3g} on {counted(measured.seeds, 'seed')}{spread}: "
        "that cannot be told from 0, and a gain is a share of it"
    )


def _search_terms(config: Config, resolved: Envelope, succession: Succession | None) -> SearchTerms:
    """Return a search from the baseline or from phase 1's end, known settings first."""
    if succession is not None:
        terms = succession.search
    else:
        terms = SearchTerms(
            method=method_of(config),
            seed=config.search.seed,
            sigma0=config.search.sigma0 or SIGMA0[method_of(config)],
            start=config.tuned.space.baseline,
        )
    if config.search.known is None:
        return terms
    file, space = Path(config.search.known), config.tuned.space
    known = known_points(file, space, terms.start, resolved.population)
    return terms.model_copy(update={"known": known})


def method_of(config: Config) -> SearchMethod:
    """Return the configured search method, or the default."""
    return config.search.method or METHOD


def confirmation_for(config: Config, source: Source | None = None) -> Confirmation | None:
    """Return how the verdict is reached; None for a smoke test and without seeds for it.

    A phase 2 also compares the winner of its phase 1. Raises ValueError on a single seed.
    """
    verdict, objective = config.verdict, config.tuned
    seeds = VERDICT_SEEDS if verdict.confirm_seeds is None else verdict.confirm_seeds
    is_smoke_test = config.search.tier == "min" and source is None
    if is_smoke_test or seeds == 0:
        return None
    if seeds < 2:
        raise ValueError(
            f"verdict.confirm_seeds: expected 2 or more (5 for a Go), or 0 for none, got {seeds}"
        )
    controls = tuple(map(_variant, objective.controls()))
    return Confirmation(
        seeds=seeds,
        picking_seeds=PICKING_SEEDS,
        best_candidates=BEST_CANDIDATES,
        control_seeds=min(CONTROL_SEEDS, seeds) if controls else 0,
        controls=controls,
        incumbent=None if source is None else source.point,
        long_run=_long_run(objective, verdict),
    )


def _variant(own: ObjectiveVariant) -> Variant:
    """Return an objective's variant as a plan holds it."""
    return Variant(label=own.label, settings=own.settings, cost_factor=own.length)


def _long_run(objective: Objective, verdict: Verdict) -> LongRun | None:
    factor = LONG_RUN_FACTOR if verdict.long_run is None else verdict.long_run
    seeds = LONG_RUN_SEEDS if verdict.long_run_seeds is None else verdict.long_run_seeds
    if factor == 0 or seeds == 0:
        return None
    if factor <= 1:
        raise ValueError(
            f"verdict.long_run: expected a factor above 1, or 0 for none, got {factor:g}"
        )
    varied = objective.scaled(factor)
    if varied is None:
        return None
    return LongRun(factor=factor, seeds=seeds, variant=_variant(varied))


def caps_for(config: Config, evaluations: int) -> Caps:
    """Return the budget's caps, with this one on evaluations. Raises ValueError without a price."""
    budget = config.budget
    if budget.max_cost is not None and not budget.price_per_device_hour:
        raise ValueError(
            f"[budget] max_cost {budget.max_cost:g} needs a price_per_device_hour above 0"
        )
    return Caps(
        evaluations=evaluations,
        device_hours=budget.max_device_hours,
        hours=budget.max_hours,
        cost=budget.max_cost,
        window=window_of(budget),
    )


def _limits(own: Evaluation, devices: Devices, calibration: Calibration | None) -> Limits:
    """Return the limits of an attempt: by default six times the calibrated p90, at least 60 s."""
    stall, wall = own.stall_seconds or 120.0, own.limit_seconds
    if wall is None:
        wall = CALIBRATION_LIMIT_SECONDS
        if calibration is not None:
            wall = max(60.0, round(6 * calibration.p90_seconds))
    return Limits(
        wall_seconds=wall,
        stall_seconds=min(wall, stall),
        memory_bytes=devices.memory_bytes,
    )
