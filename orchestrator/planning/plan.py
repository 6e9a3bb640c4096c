"""From what was asked, on which devices, with which calibration, to the frozen plan of a run."""

import hashlib
import math
from dataclasses import dataclass
from typing import Any

from budgets.calibration import noise
from budgets.terms import (
    Calibration,
    Caps,
    Confirmation,
    Devices,
    Envelope,
    Limits,
    Parent,
    Plan,
    ProxyTerms,
    Rung,
    SearchTerms,
    Source,
    Thresholds,
    Varied,
)
from budgets.words import counted
from objectives.api import Objective
from orchestrator.config import RUNG_FACTOR, RUNG_SEEDS, VERDICT_SEEDS
from orchestrator.planning.proxy import check_population, proxy_terms, what_leaves_it_out
from orchestrator.planning.request import (
    CONTROL_SEEDS,
    LEAST_SIGMA0,
    LUCKIEST,
    PICKING_SEEDS,
    Confirm,
    Request,
    family_of,
    first_step,
    method_of,
    run_name,
)
from orchestrator.planning.sizing import most_evaluations, sizing_of

CALIBRATION_LIMIT_SECONDS = 600.0
"""How long a baseline may take before anything has been measured."""


@dataclass(frozen=True)
class Succession:
    """What a run takes over from the one that it follows, or starts where that one stood."""

    source: Source | None  # of a phase 2
    search: SearchTerms


def search_plan(
    request: Request,
    devices: Devices,
    calibration: Calibration | None,
    parent: Parent | None = None,
    succession: Succession | None = None,
) -> Plan:
    """The plan of a search. Raises ValueError on what cannot be planned, naming the field."""
    if request.sigma0 is not None and 0 < request.sigma0 < LEAST_SIGMA0:
        raise ValueError(
            f"search.sigma0: expected at least {LEAST_SIGMA0:g} of a knob's range, got "
            f"{request.sigma0}"
        )
    sizing = sizing_of(request, devices.count)
    proxy, no_proxy = proxy_for(request, sizing.resolved, calibration)
    thresholds = Thresholds.model_validate(request.thresholds)
    source = None if succession is None else succession.source
    confirmation = confirmation_for(request, source)
    no_go = why_no_go(sizing.resolved, confirmation, thresholds)
    return plan_of(
        request,
        devices,
        calibration,
        sizing.resolved,
        run_id=run_name(request),
        tier=request.tier,
        nominal=sizing.nominal,
        reasons=(*sizing.reasons, *no_proxy, *no_go),
        search=_search_terms(request, sizing.resolved, succession),
        caps=caps_for(request, most_evaluations(request, sizing)),
        parent=parent,
        thresholds=thresholds,
        confirmation=confirmation,
        proxy=proxy,
        source=source,
    )


def plan_of(
    terms: Request,
    devices: Devices,
    calibration: Calibration | None,
    shape: Envelope,
    **own: Any,
) -> Plan:
    """The plan of a run on these `terms`, with `own` fields.

    Where those do not say else nothing is searched: the run evaluates one generation in this shape
    beside a search, and may evaluate no more.
    """
    objective = terms.objective
    fields: dict[str, Any] = {
        "phase": terms.phase,
        "tier": None,
        "nominal": shape,
        "resolved": shape,
        "reasons": (),
        "search": None,
        "evaluation_seed": terms.evaluation_seed,
        "limits": limits_for(terms.limit_seconds, terms.stall_seconds, devices, calibration),
        "caps": caps_for(terms, shape.evaluations),
        "price_per_device_hour": terms.price_per_device_hour,
        "devices": devices,
        "calibration": calibration,
        "parent": None,
        "objective": objective.spec.model_dump(mode="json"),
        "objective_fingerprint": objective.fingerprint,
        "space": objective.space.model_dump(mode="json"),
        "provenance": dict(objective.provenance),
    }
    return Plan(**(fields | own))


def why_no_go(
    shape: Envelope, confirmation: Confirmation | None, thresholds: Thresholds
) -> tuple[str, ...]:
    """Why a search that is compared with the baseline cannot come to a Go, whatever it finds."""
    if confirmation is None:
        return ()
    reasons = []
    if confirmation.seeds < thresholds.go_seeds:
        reasons.append(
            f"no Go is possible: it needs {thresholds.go_seeds} fresh seeds (go_seeds), the "
            f"comparison has {confirmation.seeds} (verdict.confirm_seeds)"
        )
    if shape.generations < 2:
        reasons.append(
            "no Go is possible: one generation says nothing of what persists, a Go needs two"
        )
    return tuple(reasons)


def no_share(calibration: Calibration | None) -> str:
    """Why a gain is no share of the baseline's score; "" where it is one, for all that is known."""
    measured = None if calibration is None else noise(calibration)
    if measured is None or not measured.is_about_zero:
        return ""
    spread = "" if measured.sd is None else f", sd {measured.sd:.3g}"
    return (
        f"the baseline scores {measured.mean:.3g} on {counted(measured.seeds, 'seed')}{spread}: "
        "that cannot be told from 0, and a gain is a share of it"
    )


def _search_terms(
    request: Request, resolved: Envelope, succession: Succession | None
) -> SearchTerms:
    """From the baseline or where another run stood; the known settings first."""
    terms = _from_the_baseline(request) if succession is None else succession.search
    known: tuple[tuple[float, ...], ...] = ()
    if request.known is not None:
        known = request.known.points(request.objective.space, terms.start, resolved.population)
    return terms.model_copy(update={"known": known})


def _from_the_baseline(request: Request) -> SearchTerms:
    return SearchTerms(
        method=method_of(request),
        seed=request.search_seed,
        sigma0=first_step(request),
        start=request.objective.space.baseline,
    )


def proxy_for(
    request: Request, resolved: Envelope, calibration: Calibration | None
) -> tuple[ProxyTerms | None, tuple[str, ...]]:
    """The terms of a stand-in for full evaluations, or why there is none though one was asked for.

    Raises ValueError where it cannot be had at all.
    """
    if request.proxy is None:
        return None, ()
    terms = proxy_terms(request.objective, request.proxy, calibration)
    check_population(resolved.population)
    if (why_not := what_leaves_it_out(resolved)) is not None:
        return None, (why_not,)
    return terms, ()


def confirmation_for(request: Request, source: Source | None = None) -> Confirmation | None:
    """How the verdict will be reached; None for a smoke test, and where nobody wants it.

    The winner of the run that this one follows is compared with the baseline too. Raises ValueError
    on fewer seeds than a comparison needs.
    """
    asked, objective = request.confirm, request.objective
    seeds = VERDICT_SEEDS if asked.seeds is None else asked.seeds
    is_smoke_test = request.tier == "min" and source is None
    if is_smoke_test or seeds == 0:
        return None
    if seeds < 2:
        raise ValueError(
            f"verdict.confirm_seeds: expected 2 or more (5 for a Go), or 0 for none, got {seeds}"
        )
    controls = tuple(Varied.model_validate(c.model_dump()) for c in objective.controls())
    return Confirmation(
        seeds=seeds,
        picking_seeds=PICKING_SEEDS,
        luckiest=LUCKIEST,
        control_seeds=min(CONTROL_SEEDS, seeds) if controls else 0,
        controls=controls,
        incumbent=None if source is None else source.point,
        rung=_rung(objective, asked),
    )


def _rung(objective: Objective, asked: Confirm) -> Rung | None:
    factor = RUNG_FACTOR if asked.rung_factor is None else asked.rung_factor
    seeds = RUNG_SEEDS if asked.rung_seeds is None else asked.rung_seeds
    if factor == 0 or seeds == 0:
        return None
    if factor <= 1:
        raise ValueError(f"verdict.rung: expected a factor above 1, or 0 for none, got {factor:g}")
    varied = objective.rung(factor)
    if varied is None:
        return None
    longer = Varied.model_validate(varied.model_dump())
    return Rung(factor=factor, seeds=seeds, varied=longer)


def calibration_plan(
    objective: Objective, devices: Devices, repeats: int, request: Request | None = None
) -> Plan:
    """The plan of a calibration: one generation that is the baseline on `repeats` seeds.

    Made for a `request`, it keeps within that request's limits and caps.
    """
    asked = request or Request("phase1", "min", objective)
    shape = Envelope(population=1, generations=1, seeds_per_candidate=repeats)
    family = calibration_name(objective, devices)
    plan = plan_of(asked, devices, None, shape, run_id=family, phase="calibration")
    terms = f"{plan.evaluation_seed}/{plan.limits}/{plan.caps}/{plan.price_per_device_hour}"
    return plan.model_copy(update={"run_id": f"{family}-{short_hash(terms)}"})


def caps_for(request: Request, evaluations: int) -> Caps:
    """The request's caps, with this one on evaluations."""
    return Caps(
        evaluations=evaluations,
        device_hours=request.max_device_hours,
        hours=request.max_hours,
        cost=request.max_cost,
        window=request.window,
    )


def calibration_name(objective: Objective, devices: Devices) -> str:
    """What all calibrations of an objective on the same kind and number of devices begin with."""
    facts = f"{devices.kind}/{devices.name}/{devices.count}/{devices.threads}"
    return f"{family_of(objective, devices.kind)}-{short_hash(facts)}"


def short_hash(text: str) -> str:
    """Six hex digits that tell runs of one objective apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def limits_for(
    wall_seconds: float | None,
    stall_seconds: float | None,
    devices: Devices,
    calibration: Calibration | None,
) -> Limits:
    """An upper bound, never the estimate: six times the calibrated p90, a minute at least.

    Raises ValueError unless `stall_seconds` is a positive number, or left to the default.
    """
    if stall_seconds is not None and not 0 < stall_seconds < math.inf:
        raise ValueError(
            f"evaluation.stall_seconds: expected a positive number, got {stall_seconds}"
        )
    if wall_seconds is None:
        if calibration is None:
            wall_seconds = CALIBRATION_LIMIT_SECONDS
        else:
            wall_seconds = max(60.0, round(6 * calibration.p90_seconds))
    return Limits(
        wall_seconds=wall_seconds,
        stall_seconds=min(wall_seconds, 120.0 if stall_seconds is None else stall_seconds),
        memory_bytes=devices.memory_bytes,
    )
