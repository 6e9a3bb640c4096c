"""From what was asked, on which devices, with which calibration, to the frozen plan of a run."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from budgets.calibration import noise
from budgets.plan import (
    Calibration,
    Caps,
    Confirmation,
    Devices,
    Envelope,
    Limits,
    Parent,
    Phase,
    Plan,
    Rung,
    SearchMethod,
    SearchTerms,
    Source,
    Thresholds,
    Varied,
)
from budgets.words import counted
from objectives.api import Objective
from objectives.settings import shown
from orchestrator.config import RUNG_FACTOR, RUNG_SEEDS, VERDICT_SEEDS, Config, Verdict
from orchestrator.planning.known import read_known
from orchestrator.planning.names import calibration_name, run_name, short_hash
from orchestrator.planning.sizing import most_evaluations, sizing_of
from orchestrator.planning.window import window_of

METHOD: SearchMethod = "guided"
"""How a search proposes its candidates where nobody says how (docs/search.md)."""

SIGMA0: dict[SearchMethod, float] = {"guided": 0.15, "mirrored-orthogonal": 0.15, "plain": 0.2}
"""Of a knob's range: the first step of a search that nothing is known about (docs/search.md)."""

PICKING_SEEDS, CONTROL_SEEDS, LUCKIEST = 3, 5, 2

CALIBRATION_LIMIT_SECONDS = 600.0
"""How long a baseline may take before anything has been measured."""


@dataclass(frozen=True)
class Succession:
    """What a run takes over from the one that it follows, or starts where that one stood."""

    source: Source | None  # of a phase 2
    search: SearchTerms


def search_plan(
    config: Config,
    devices: Devices,
    calibration: Calibration | None,
    parent: Parent | None = None,
    succession: Succession | None = None,
) -> Plan:
    """The plan of a search. Raises ValueError on what cannot be planned, naming the key."""
    sizing = sizing_of(config, devices.count)
    source = None if succession is None else succession.source
    confirmation = confirmation_for(config, source)
    no_go = why_no_go(sizing.resolved, confirmation, config.thresholds)
    return plan_of(
        config,
        devices,
        calibration,
        sizing.resolved,
        phase=config.search.phase,
        run_id=run_name(config),
        tier=config.search.tier or "target",
        nominal=sizing.nominal,
        reasons=(*sizing.reasons, *no_go),
        search=_search_terms(config, sizing.resolved, succession),
        caps=caps_for(config, most_evaluations(config, sizing)),
        parent=parent,
        thresholds=config.thresholds,
        confirmation=confirmation,
        source=source,
    )


def check_beginning(config: Config) -> None:
    """Raises ValueError on what no command could begin, as far as no other run is looked at."""
    space = config.tuned.space
    caps_for(config, evaluations=1)
    if config.campaign is None or config.campaign.cell == "search":
        check_search(config)
    if config.search.known is not None:
        read_known(Path(config.search.known), space)


def check_search(config: Config) -> None:
    """Raises ValueError unless the phase has what it needs of other runs, and no more."""
    search = config.search
    if search.phase == "phase1":
        for key, value in (("from", search.follows), ("variant", search.variant)):
            if value is not None:
                source = config.source(f"search.{key}")
                raise ValueError(
                    f"--{key}: only a phase2 follows a run, got {shown(value)} ({source})"
                )
        return
    if search.follows is None:
        raise ValueError(
            "--from: which phase 1 shall it follow? Give its id or directory (from, in [search])"
        )
    if search.variant is None:
        raise ValueError(
            "--variant: expected robust (the same knobs) or expanded (more of them; in a file "
            "variant, in [search])"
        )
    if search.warm_start is not None:
        raise ValueError(
            "search.warm_start: a phase 2 starts where the run of its --from stood, got "
            f"{shown(search.warm_start)} ({config.source('search.warm_start')})"
        )


def plan_of(
    config: Config,
    devices: Devices,
    calibration: Calibration | None,
    shape: Envelope,
    phase: Phase,
    **own: Any,
) -> Plan:
    """The plan of a run of this `phase`, with `own` fields.

    Where those do not say else nothing is searched: the run evaluates one generation in this shape
    beside a search, and may evaluate no more.
    """
    objective, evaluation = config.tuned, config.evaluation
    limits = limits_for(evaluation.limit_seconds, evaluation.stall_seconds, devices, calibration)
    fields: dict[str, Any] = {
        "phase": phase,
        "tier": None,
        "nominal": shape,
        "resolved": shape,
        "reasons": (),
        "search": None,
        "evaluation_seed": evaluation.seed,
        "limits": limits,
        "caps": caps_for(config, shape.evaluations),
        "price_per_device_hour": config.budget.price_per_device_hour,
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


def _search_terms(config: Config, resolved: Envelope, succession: Succession | None) -> SearchTerms:
    """From the baseline or where another run ended; the known settings first."""
    terms = _from_the_baseline(config) if succession is None else succession.search
    known: tuple[tuple[float, ...], ...] = ()
    if config.search.known is not None:
        space = config.tuned.space
        settings = read_known(Path(config.search.known), space)
        known = settings.points(space, terms.start, resolved.population)
    return terms.model_copy(update={"known": known})


def _from_the_baseline(config: Config) -> SearchTerms:
    return SearchTerms(
        method=method_of(config),
        seed=config.search.seed,
        sigma0=first_step(config),
        start=config.tuned.space.baseline,
    )


def method_of(config: Config) -> SearchMethod:
    return config.search.method or METHOD


def first_step(config: Config) -> float:
    """The one that was asked for, or the method's own."""
    return config.search.sigma0 or SIGMA0[method_of(config)]


def confirmation_for(config: Config, source: Source | None = None) -> Confirmation | None:
    """How the verdict will be reached; None for a smoke test, and where nobody wants it.

    The winner of the run that this one follows is compared with the baseline too. Raises ValueError
    on fewer seeds than a comparison needs.
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
    controls = tuple(Varied.model_validate(c.model_dump()) for c in objective.controls())
    return Confirmation(
        seeds=seeds,
        picking_seeds=PICKING_SEEDS,
        luckiest=LUCKIEST,
        control_seeds=min(CONTROL_SEEDS, seeds) if controls else 0,
        controls=controls,
        incumbent=None if source is None else source.point,
        rung=_rung(objective, verdict),
    )


def _rung(objective: Objective, verdict: Verdict) -> Rung | None:
    factor = RUNG_FACTOR if verdict.rung is None else verdict.rung
    seeds = RUNG_SEEDS if verdict.rung_seeds is None else verdict.rung_seeds
    if factor == 0 or seeds == 0:
        return None
    if factor <= 1:
        raise ValueError(f"verdict.rung: expected a factor above 1, or 0 for none, got {factor:g}")
    varied = objective.rung(factor)
    if varied is None:
        return None
    longer = Varied.model_validate(varied.model_dump())
    return Rung(factor=factor, seeds=seeds, varied=longer)


def calibration_plan(config: Config, devices: Devices, repeats: int) -> Plan:
    """The plan of a calibration: one generation that is the baseline on `repeats` seeds.

    It keeps within the limits and caps of what it is made for.
    """
    shape = Envelope(population=1, generations=1, seeds_per_candidate=repeats)
    family = calibration_name(config.tuned, devices)
    plan = plan_of(config, devices, None, shape, "calibration", run_id=family)
    terms = f"{plan.evaluation_seed}/{plan.limits}/{plan.caps}/{plan.price_per_device_hour}"
    return plan.model_copy(update={"run_id": f"{family}-{short_hash(terms)}"})


def caps_for(config: Config, evaluations: int) -> Caps:
    """The budget's caps, with this one on evaluations. Raises ValueError on one without a price."""
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
