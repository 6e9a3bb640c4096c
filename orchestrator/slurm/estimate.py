"""How long a run would take on its slots, from what was measured: no measurement, no number."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import ceil, log
from pathlib import Path
from typing import Literal, get_args

from budgets.calibration import measure
from budgets.terms import Calibration, Devices
from objectives.api import Objective
from orchestrator.config import Config
from orchestrator.planning.calibrations import CALIBRATION_SEEDS, calibrations_on
from orchestrator.planning.configured import request_of
from orchestrator.planning.history import read_history
from orchestrator.planning.overheads import ASSUMED
from orchestrator.planning.plan import search_plan
from orchestrator.planning.preview import Preview
from orchestrator.planning.priors import Nearness, Prior, nearest
from orchestrator.warm.succession import foreseen

DeviceKind = Literal["cpu", "cuda"]


@dataclass(frozen=True)
class Estimate:
    """What a run would take."""

    seconds: float  # wall clock that 9 in 10 such runs stay within
    device_seconds: float  # expected
    eval_seconds: float  # of one evaluation, which 9 in 10 stay within
    source: str


@dataclass(frozen=True)
class Measured:
    """What is known of one evaluation, and from where."""

    calibration: Calibration
    source: str


def measured(resolved: Config, kind: DeviceKind) -> Measured | None:
    """The time of an evaluation: as the file has it, of the newest calibration, or of a prior run.

    Those on any CPU, or any GPU, count, and are named: where jobs will run nobody knows yet.
    """
    assumed = resolved.evaluation.assume_eval_seconds
    if assumed is not None:
        source = f"assumed, {assumed:g} s an evaluation ({resolved.source(_ASSUMED)})"
        return Measured(Calibration(assumed_seconds=assumed), source)
    root, objective = Path(resolved.runs_dir), resolved.load_objective()
    if (newest := next(_calibrated(root, objective, kind), None)) is not None:
        return newest
    prior = _prior(root, objective, kind)
    return None if prior is None else Measured(prior.calibration(), prior.sentence())


_ASSUMED = "evaluation.assume_eval_seconds"


def _calibrated(root: Path, objective: Objective, kind: DeviceKind) -> Iterator[Measured]:
    """By each calibration with a healthy evaluation, the last made first."""
    for result in calibrations_on(root, objective, kind):
        with suppress(ValueError):
            found, devices = measure(result.state), result.state.plan.devices
            source = (
                f"measured by {result.directory.name} on {devices.count} x {devices.name}, median "
                f"{found.median_seconds:.3g} s an evaluation"
            )
            yield Measured(found, source)


def _prior(root: Path, objective: Objective, kind: DeviceKind) -> Prior | None:
    """The nearest earlier run on any device of the kind."""
    entries = [entry for entry in read_history(root).entries if entry.device_kind == kind]
    places = {(entry.devices, entry.device_name, entry.threads) for entry in entries}
    found = [
        prior
        for count, name, threads in sorted(places)
        if (prior := nearest(entries, objective, _devices(kind, count, name, threads))) is not None
    ]
    order = get_args(Nearness)
    return min(found, key=lambda p: (order.index(p.nearness), abs(log(p.factor))), default=None)


def _devices(kind: DeviceKind, count: int, name: str, threads: int) -> Devices:
    return Devices(count=count, kind=kind, name=name, threads=threads, memory_bytes=1)


def unseen(kind: DeviceKind, count: int, threads: int) -> Devices:
    """So many devices of a kind, of which nobody knows more."""
    return _devices(kind, count, "a device of the cluster", threads)


def of_evaluation(known: Measured | None) -> Estimate | None:
    """One evaluation by itself."""
    if known is None:
        return None
    p90 = known.calibration.p90_seconds
    return Estimate(p90, known.calibration.median_seconds, p90, known.source)


def of_search(
    resolved: Config, known: Measured | None, devices: Devices, root: Path
) -> Estimate | None:
    """A whole search, simulated, with its comparison and rung, and the calibration it begins with.

    A file that assumes a time needs none.
    """
    import numpy as np

    from orchestrator.planning.barrier import SEED, simulate

    if known is None:
        return None
    request = request_of(resolved)
    succession = foreseen(root, request, devices.kind)
    plan = search_plan(request, devices, known.calibration, None, succession)
    found = simulate(plan, known.calibration, ASSUMED, np.random.default_rng(SEED))
    rung = Preview(plan, None).rung
    device_hours = found.device_hours_p50 + (0.0 if rung is None else rung.device_hours)
    calibrates = 0 if resolved.evaluation.assume_eval_seconds is not None else CALIBRATION_SEEDS
    return Estimate(
        3600 * (found.hours_p90 + found.rung_hours_p90)
        + ceil(calibrates / devices.count) * known.calibration.p90_seconds,
        3600 * device_hours + calibrates * known.calibration.median_seconds,
        known.calibration.p90_seconds,
        known.source,
    )
