"""How long a run would take on its slots, from what was measured: no measurement, no number."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import ceil, log
from pathlib import Path
from typing import Literal, get_args

from budgets.calibration import measure
from budgets.chain import LEDGER
from budgets.terms import Calibration, Devices
from objectives.api import Objective
from orchestrator.calibrations import CALIBRATION_SEEDS
from orchestrator.config.asked import request_of
from orchestrator.config.resolve import Resolved
from orchestrator.follow import follow
from orchestrator.follow import foreseen as following
from orchestrator.planning.history import read_history
from orchestrator.planning.page import Preview, preview_tiers
from orchestrator.planning.plan import Succession
from orchestrator.planning.priors import Nearness, Prior, nearest
from orchestrator.planning.request import Request
from orchestrator.recorded import finished_runs
from orchestrator.warm import start as warm

DeviceKind = Literal["cpu", "cuda"]


@dataclass(frozen=True)
class Estimate:
    """What a run would take."""

    seconds: float  # wall clock, if every evaluation took what 9 of 10 stay below
    device_seconds: float  # expected
    source: str


@dataclass(frozen=True)
class Measured:
    """What is known of one evaluation, and from where."""

    calibration: Calibration
    source: str

    @property
    def slow(self) -> Calibration:
        """As if every evaluation took what 9 of 10 stay below."""
        return Calibration(assumed_seconds=self.calibration.p90_seconds)


def measured(resolved: Resolved, kind: DeviceKind) -> Measured | None:
    """The time of an evaluation: as the file has it, of the newest calibration, or of a prior run.

    Those on any CPU, or any GPU, count, and are named: where jobs will run nobody knows yet.
    """
    assumed = resolved.evaluation.assume_eval_seconds
    if assumed is not None:
        source = f"assumed, {assumed:g} s an evaluation ({resolved.source(_ASSUMED)})"
        return Measured(Calibration(assumed_seconds=assumed), source)
    root, objective = Path(resolved.top.runs_dir), resolved.objective
    newest = max(_calibrated(root, objective, kind), key=lambda pair: pair[0], default=None)
    if newest is not None:
        return newest[1]
    prior = _prior(root, objective, kind)
    return None if prior is None else Measured(prior.calibration(), prior.sentence())


_ASSUMED = "evaluation.assume_eval_seconds"


def _calibrated(
    root: Path, objective: Objective, kind: DeviceKind
) -> Iterator[tuple[float, Measured]]:
    """Each calibration with a healthy evaluation, and when it was last written to."""
    family = f"{objective.spec.name}-{objective.fingerprint[:10]}-{kind}"
    for result in finished_runs(root, "calibration", family):
        with suppress(ValueError):
            found, devices = measure(result.state), result.state.plan.devices
            source = (
                f"measured by {result.directory.name} on {devices.count} x {devices.name}, median "
                f"{found.median_seconds:.3g} s an evaluation"
            )
            yield (result.directory / LEDGER).stat().st_mtime, Measured(found, source)


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
    return Estimate(known.calibration.p90_seconds, known.calibration.median_seconds, known.source)


def of_search(
    resolved: Resolved, known: Measured | None, devices: Devices, root: Path
) -> Estimate | None:
    """A whole search with its comparison and rung; without a time in the file it calibrates too."""
    if known is None:
        return None
    request = request_of(resolved)
    succession = _succession(request, devices.kind, root)
    expected, slow = (
        _seconds(
            preview_tiers(request, devices, calibration, (request.tier,), succession)[0],
            calibration,
            devices.count,
            calibrates=resolved.evaluation.assume_eval_seconds is None,
        )
        for calibration in (known.calibration, known.slow)
    )
    return Estimate(slow[0], expected[1], known.source)


def _seconds(
    preview: Preview, calibration: Calibration, slots: int, *, calibrates: bool
) -> tuple[float, float]:
    """Wall clock and device time of all parts."""
    parts = [preview.expected, preview.apart, preview.rung, preview.comparing]
    hours = sum(part.barrier_hours for part in parts if part is not None)
    device_hours = sum(part.device_hours for part in parts if part is not None)
    first = calibration.median_seconds * calibrates
    return (
        3600 * hours + ceil(CALIBRATION_SEEDS / slots) * first,
        3600 * device_hours + CALIBRATION_SEEDS * first,
    )


def _succession(request: Request, kind: DeviceKind, root: Path) -> Succession | None:
    if request.follows is not None:
        return following(follow(root, request, kind), request)
    if request.warm_start is not None:
        return warm.foreseen(warm.find_start(root, request), request)
    return None
