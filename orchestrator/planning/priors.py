"""Times from earlier runs: the nearest one, scaled by exact FLOPs. No prior, no number."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log
from typing import Any, Literal, get_args

from budgets.plan import Calibration, Devices
from objectives.api import Objective, ObjectiveSpec
from objectives.registry import kind
from orchestrator.planning.history import Entry, on_such

UNMEASURED = 0.7
"""Of a throughput that was measured elsewhere or otherwise: what is counted on."""

BUDGET = frozenset({"target_flops", "num_batches", "num_epochs"})
"""Settings that say how long to train, and nothing of what."""

Nearness = Literal["the same objective", "the same model", "the same kind of objective"]
_NEAREST_FIRST: tuple[Nearness, ...] = get_args(Nearness)


@dataclass(frozen=True)
class Prior:
    """An earlier run, and what it says of an evaluation here."""

    entry: Entry
    nearness: Nearness
    factor: float  # FLOPs of an evaluation here over one there, training and scoring
    is_assumed: bool  # scaled, or measured with another number of devices

    @property
    def eval_seconds(self) -> float:
        """Start-up as it was, the rest by the FLOPs; an assumed throughput counts 0.7 of it."""
        there = self.entry.evaluation
        assert there is not None, "a run without a healthy evaluation is no prior"
        return scaled_seconds(
            there.seconds, there.startup_seconds, self.factor, is_assumed=self.is_assumed
        )

    def calibration(self) -> Calibration:
        """To plan with until something is measured here."""
        return Calibration(assumed_seconds=self.eval_seconds)

    def sentence(self) -> str:
        """The prior by name, with its figures, the factor and what comes of it."""
        entry, there = self.entry, self.entry.evaluation
        assert there is not None
        flops = there.train_flops + there.eval_flops
        work = f", {flops:.3g} FLOPs" if flops else ""
        scaled = "" if self.factor == 1 else f", {self.factor:.3g} x its FLOPs"
        how = "assumed, throughput x 0.7" if self.is_assumed else "measured"
        return (
            f"times from {entry.phase} {entry.run_id} of {entry.ended_at:%Y-%m-%d} on "
            f"{entry.devices} x {entry.device_name} ({self.nearness}; median "
            f"{there.seconds:.3g} s of {there.samples}, start-up {there.startup_seconds:.2g} s"
            f"{work}){scaled}: {self.eval_seconds:.3g} s an evaluation, {how}"
        )


def scaled_seconds(
    seconds: float, startup_seconds: float, factor: float, *, is_assumed: bool
) -> float:
    """startup + (seconds - startup) * factor, the latter over 0.7 where it is not measured."""
    work = max(0.0, seconds - startup_seconds) * factor
    return startup_seconds + (work / UNMEASURED if is_assumed else work)


def nearest(history: Iterable[Entry], objective: Objective, devices: Devices) -> Prior | None:
    """The run that says most of an evaluation of `objective` on such devices, if any does.

    The same objective before the same model trained for longer or shorter, that before any other
    of its name; the nearest in FLOPs before the newest. Never one on another kind of device.
    """
    found = [
        prior
        for entry in history
        if on_such(entry, devices) and (prior := _as_prior(entry, objective, devices)) is not None
    ]
    return min(found, key=lambda prior: _distance(prior, devices), default=None)


def _distance(prior: Prior, devices: Devices) -> tuple[int, bool, float, float]:
    return (
        _NEAREST_FIRST.index(prior.nearness),
        prior.entry.devices != devices.count,
        abs(log(prior.factor)),
        -prior.entry.ended_at.timestamp(),
    )


def _as_prior(entry: Entry, objective: Objective, devices: Devices) -> Prior | None:
    """None where it says nothing: another objective, or one whose FLOPs nobody counts."""
    there = entry.evaluation
    spec = ObjectiveSpec(name=entry.objective, settings=entry.settings)
    if there is None or kind(spec) != kind(objective.spec):
        return None
    same_number = entry.devices == devices.count <= there.samples  # else they were not all busy
    if entry.fingerprint == objective.fingerprint:
        return Prior(entry, "the same objective", 1.0, is_assumed=not same_number)
    here, flops_there = objective.flops(), there.train_flops + there.eval_flops
    if here is None or not here.total or not flops_there:
        return None
    is_model = _model(entry.settings) == _model(objective.spec.settings)
    nearness: Nearness = "the same model" if is_model else "the same kind of objective"
    return Prior(entry, nearness, here.total / flops_there, is_assumed=True)


def _model(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in BUDGET}
