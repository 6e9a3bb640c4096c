"""From what was asked, on which devices, with which calibration, to the frozen plan of a run."""

import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

from budgets.terms import (
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
    SearchTerms,
    Tier,
    Varied,
    Window,
)
from budgets.tiers import Sizing, size
from objectives.api import Objective

RUN_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

LEAST_SIGMA0 = 1e-6
"""Of a knob's range: with less, rounding decides which points of a generation differ."""

CALIBRATION_LIMIT_SECONDS = 600.0
"""How long a baseline may take before anything has been measured."""


VERDICT_SEEDS = 8
"""Fresh, paired: a gain of 1.5 sd of the paired differences is then shown 8 times of 10."""

PICKING_SEEDS, CONTROL_SEEDS, LUCKIEST = 3, 5, 2
RUNG_FACTOR, RUNG_SEEDS = 4.0, 2


@dataclass(frozen=True)
class Confirm:
    """How a request wants its verdict reached; the tier min never affords one."""

    seeds: int = VERDICT_SEEDS  # 0: none, and so no Go
    rung_factor: float = RUNG_FACTOR  # 0: no rung
    rung_seeds: int = RUNG_SEEDS


@dataclass(frozen=True)
class Request:
    """What a person asked for; `None` is "decide for me"."""

    phase: Phase
    tier: Tier
    objective: Objective
    run_id: str | None = None
    search_seed: int = 1
    evaluation_seed: int = 123
    sigma0: float = 0.2
    population: int | None = None
    max_evals: int | None = None
    max_device_hours: float | None = None
    max_hours: float | None = None
    max_cost: float | None = None
    window: Window | None = None
    price_per_device_hour: float = 0.0
    limit_seconds: float | None = None
    stall_seconds: float | None = None
    fork: bool = False  # begin another run whose parent is the one of that name
    confirm: Confirm = Confirm()


def run_name(request: Request) -> str:
    """The run's id: the one asked for, or tier, objective and search seed."""
    name = request.run_id
    if name is None:
        name = f"{request.tier}-{request.objective.spec.name}-s{request.search_seed}"
    check_run_id(name)
    return name


def check_run_id(name: str) -> None:
    """Raises ValueError unless `name` is a plain file name of 1 to 64 safe characters."""
    if not RUN_ID.fullmatch(name):
        raise ValueError(
            f"--run-id: expected 1 to 64 of a-z, 0-9, '.', '_', '-', beginning with a letter or "
            f"digit, got {name!r}"
        )


def run_directory(root: Path, phase: Phase, run_id: str) -> Path:
    return root / phase / run_id


def search_plan(
    request: Request,
    devices: Devices,
    calibration: Calibration | None,
    parent: Parent | None = None,
) -> Plan:
    """The plan of a search. Raises ValueError on what cannot be planned, naming the field."""
    objective = request.objective
    if 0 < request.sigma0 < LEAST_SIGMA0:
        raise ValueError(
            f"--sigma0: expected at least {LEAST_SIGMA0:g} of a knob's range, got {request.sigma0}"
        )
    sizing = _sizing(request, devices.count)
    return Plan(
        run_id=run_name(request),
        phase=request.phase,
        tier=request.tier,
        nominal=sizing.nominal,
        resolved=sizing.resolved,
        reasons=sizing.reasons,
        search=SearchTerms(
            seed=request.search_seed, sigma0=request.sigma0, start=objective.space.baseline
        ),
        evaluation_seed=request.evaluation_seed,
        limits=limits_for(request.limit_seconds, request.stall_seconds, devices, calibration),
        caps=caps_for(request, min(sizing.nominal.evaluations, request.max_evals or 2**31)),
        price_per_device_hour=request.price_per_device_hour,
        devices=devices,
        calibration=calibration,
        parent=parent,
        confirmation=confirmation_for(request),
        **described(objective),
    )


def confirmation_for(request: Request) -> Confirmation | None:
    """How the verdict will be reached; None for the tier min, and where nobody wants it.

    Raises ValueError on fewer seeds than a comparison needs.
    """
    asked, objective = request.confirm, request.objective
    if request.tier == "min" or asked.seeds == 0:
        return None
    if asked.seeds < 2:
        raise ValueError(
            f"--confirm-seeds: expected 2 or more (5 for a Go), or 0 for none, got {asked.seeds}"
        )
    controls = tuple(Varied.model_validate(c.model_dump()) for c in objective.controls())
    return Confirmation(
        seeds=asked.seeds,
        picking_seeds=PICKING_SEEDS,
        luckiest=LUCKIEST,
        control_seeds=min(CONTROL_SEEDS, asked.seeds) if controls else 0,
        controls=controls,
        rung=_rung(objective, asked),
    )


def _rung(objective: Objective, asked: Confirm) -> Rung | None:
    if asked.rung_factor == 0 or asked.rung_seeds == 0:
        return None
    if asked.rung_factor <= 1:
        raise ValueError(
            f"--rung: expected a factor above 1, or 0 for none, got {asked.rung_factor:g}"
        )
    varied = objective.rung(asked.rung_factor)
    if varied is None:
        return None
    longer = Varied.model_validate(varied.model_dump())
    return Rung(factor=asked.rung_factor, seeds=asked.rung_seeds, varied=longer)


def calibration_plan(
    objective: Objective, devices: Devices, repeats: int, request: Request | None = None
) -> Plan:
    """The plan of a calibration: one generation that is the baseline on `repeats` seeds.

    Made for a `request`, it keeps within that request's limits and caps.
    """
    asked = request or Request("phase1", "min", objective)
    envelope = Envelope(population=1, generations=1, seeds_per_candidate=repeats)
    limits, caps = (
        limits_for(asked.limit_seconds, asked.stall_seconds, devices, None),
        caps_for(asked, repeats),
    )
    terms = f"{asked.evaluation_seed}/{limits}/{caps}/{asked.price_per_device_hour}"
    return Plan(
        run_id=f"{calibration_name(objective, devices)}-{short_hash(terms)}",
        phase="calibration",
        tier=None,
        nominal=envelope,
        resolved=envelope,
        reasons=(),
        search=None,
        evaluation_seed=asked.evaluation_seed,
        limits=limits,
        caps=caps,
        price_per_device_hour=asked.price_per_device_hour,
        devices=devices,
        calibration=None,
        parent=None,
        **described(objective),
    )


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
    return f"{objective.spec.name}-{objective.fingerprint[:10]}-{devices.kind}-{short_hash(facts)}"


def short_hash(text: str) -> str:
    """Six hex digits that tell runs of one objective apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def described(objective: Objective) -> dict[str, Any]:
    """A plan's fields that say what is evaluated."""
    return {
        "objective": objective.spec.model_dump(mode="json"),
        "objective_fingerprint": objective.fingerprint,
        "space": objective.space.model_dump(mode="json"),
        "provenance": dict(objective.provenance),
    }


def _sizing(request: Request, devices: int) -> Sizing:
    dimension = request.objective.space.dimension
    sizing = size(request.phase, request.tier, dimension, devices, request.population)
    resolved, most = sizing.resolved, request.max_evals
    if most is None or resolved.evaluations <= most:
        return sizing
    generations = most // resolved.per_generation
    if generations < 1:
        raise ValueError(
            f"--max-evals {most} does not pay for one generation of "
            f"{resolved.per_generation} evaluations"
        )
    fewer = resolved.model_copy(update={"generations": generations})
    reason = f"--max-evals {most} pays for {generations} of {resolved.generations} generations"
    return Sizing(sizing.nominal, fewer, (*sizing.reasons, reason))


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
        raise ValueError(f"--stall-seconds: expected a positive number, got {stall_seconds}")
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


def evaluation_seeds(plan: Plan, generation: int) -> tuple[int, ...]:
    """S seeds that all candidates of the generation share, fresh in every generation.

    Phases draw from different streams, so no search scores on the seeds it was calibrated with.
    """
    return tuple(
        _seed(f"{plan.evaluation_seed}/{plan.phase}/{generation}/{repeat}")
        for repeat in range(plan.resolved.seeds_per_candidate)
    )


@dataclass(frozen=True)
class ConfirmationSeeds:
    """Fresh seeds: none of the search's or the calibration's, none of one for another."""

    picking: tuple[int, ...]
    verdict: tuple[int, ...]
    rung: tuple[int, ...]


def confirmation_seeds(plan: Plan) -> ConfirmationSeeds:
    """The seeds of a plan's confirmation, which it has."""
    wanted = plan.confirmation
    assert wanted is not None
    generations = max(plan.resolved.generations, plan.nominal.generations)
    used = {seed for number in range(generations) for seed in evaluation_seeds(plan, number)}
    if plan.calibration is not None:
        used |= {sample.seed for sample in plan.calibration.samples}
    seeds = _fresh(plan, used)
    rung = 0 if wanted.rung is None else wanted.rung.seeds
    counts = (wanted.picking_seeds, wanted.seeds, rung)
    return ConfirmationSeeds(*(tuple(islice(seeds, number)) for number in counts))


def _fresh(plan: Plan, used: set[int]) -> Iterator[int]:
    """Seeds for a confirmation without end, none twice and none of those `used`."""
    for number in count():
        seed = _seed(f"{plan.evaluation_seed}/{plan.phase}/confirm/{number}")
        if seed not in used:
            used.add(seed)
            yield seed


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) % (2**31 - 1) + 1


def differences(recorded: Plan, wanted: Plan) -> list[str]:
    """Where two plans differ, as `field: recorded value -> wanted value`.

    The reasons are left out: the envelopes say that they differ, and a run keeps its first reason.
    """
    plans = (plan.model_dump(mode="json", exclude={"reasons"}) for plan in (recorded, wanted))
    return list(_differences("", *plans))


def _differences(name: str, recorded: Any, wanted: Any) -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(wanted, dict):
        for key in {**recorded, **wanted}:
            inner = f"{name}.{key}" if name else key
            yield from _differences(inner, recorded.get(key), wanted.get(key))
    elif recorded != wanted:
        yield f"{name}: {recorded} -> {wanted}"
