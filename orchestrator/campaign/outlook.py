"""What a campaign would take, before any of it is paid: by measured times, or no number."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapreplace
from pathlib import Path
from statistics import median
from typing import Any

from budgets.terms import Calibration, CampaignTerms, Condition, Devices
from objectives import registry
from objectives.api import Objective
from orchestrator.planning.calibrations import calibration_here
from orchestrator.planning.times import known_time


@dataclass(frozen=True)
class Expected:
    """One condition, and what an evaluation of it is expected to take."""

    condition: Condition
    seconds: float | None  # None: nobody has measured anything like it
    origin: str  # of that figure, in words


@dataclass(frozen=True)
class Outlook:
    """All evaluations of a campaign on the devices at hand."""

    terms: CampaignTerms
    devices: Devices
    at_once: int  # effective parallelism
    expected: tuple[Expected, ...]  # of each condition
    price_per_device_hour: float

    @property
    def total_runs(self) -> int:
        """conditions * seeds."""
        return self.terms.evaluations

    @property
    def is_known(self) -> bool:
        return all(one.seconds is not None for one in self.expected)

    @property
    def median_seconds(self) -> float | None:
        """Of a run; None unless all are known."""
        return median(self._seconds) if self.is_known else None

    @property
    def _seconds(self) -> list[float]:
        return [one.seconds for one in self.expected if one.seconds is not None]

    @property
    def device_hours(self) -> float | None:
        return len(self.terms.seeds) * sum(self._seconds) / 3600 if self.is_known else None

    @property
    def cost(self) -> float | None:
        hours = self.device_hours
        return None if hours is None else hours * self.price_per_device_hour

    @property
    def rule_of_thumb_hours(self) -> float | None:
        """total_runs * median_seconds / at_once + stagger * (at_once - 1)."""
        if self.median_seconds is None:
            return None
        staggered = self.terms.stagger_seconds * (self.at_once - 1)
        return (self.total_runs * self.median_seconds / self.at_once + staggered) / 3600

    @property
    def hours(self) -> float | None:
        """Wall clock with each evaluation on the device that is free first, in their order."""
        if not self.is_known:
            return None
        stagger = self.terms.stagger_seconds
        free = sorted(worker * stagger for worker in range(self.at_once))
        end = 0.0
        for seconds in self._seconds:
            for _ in self.terms.seeds:
                end = max(end, free[0] + seconds)
                heapreplace(free, free[0] + seconds)
        return end / 3600

    def as_dict(self) -> dict[str, Any]:
        return {
            "total_runs": self.total_runs,
            "effective_parallelism": self.at_once,
            "devices": self.devices.model_dump(),
            "median_seconds": self.median_seconds,
            "device_hours": self.device_hours,
            "cost": self.cost,
            "hours": self.hours,
            "rule_of_thumb_hours": self.rule_of_thumb_hours,
            "conditions": [
                {"name": one.condition.name, "seconds": one.seconds, "origin": one.origin}
                for one in self.expected
            ],
        }


def outlook(  # noqa: PLR0913 - one a thing that decides it
    terms: CampaignTerms,
    objective: Objective,
    devices: Devices,
    root: Path,
    *,
    price_per_device_hour: float = 0.0,
    max_concurrent: int | None = None,
    assumed_seconds: float | None = None,
) -> Outlook:
    """What the campaign would take on such devices, by what was measured in `root`.

    `assumed_seconds` is somebody's word for the configuration that all conditions have in common.
    """
    limits = (terms.evaluations, devices.count, terms.max_workers, max_concurrent)
    return Outlook(
        terms=terms,
        devices=devices,
        at_once=min(limit for limit in limits if limit is not None) if terms.parallel else 1,
        expected=expected_of(terms.conditions, objective, devices, root, assumed_seconds),
        price_per_device_hour=price_per_device_hour,
    )


def expected_of(
    conditions: Sequence[Condition],
    objective: Objective,
    devices: Devices,
    root: Path,
    assumed_seconds: float | None = None,
) -> tuple[Expected, ...]:
    """Each condition with what its evaluation takes: assumed, measured, scaled from a prior, or
    unknown."""
    if assumed_seconds is not None:
        origin = f"assumed: {assumed_seconds:g} s an evaluation, by exact FLOPs of each condition"
        return tuple(Expected(one, assumed_seconds * one.length, origin) for one in conditions)
    common = calibration_here(root, objective, devices)
    return tuple(_expected(one, objective, common, root, devices) for one in conditions)


def _as_loaded(objective: Objective, condition: Condition) -> Objective:
    return registry.load(registry.varied(objective.spec, condition.settings))


def _as_much_work(one: Objective, other: Objective) -> bool:
    """Whether both are known to take the same FLOPs."""
    here, there = one.flops(), other.flops()
    return here is not None and there is not None and here.total == there.total


def _expected(
    condition: Condition,
    objective: Objective,
    common: Calibration | None,
    root: Path,
    devices: Devices,
) -> Expected:
    """`common` is what was measured of the configuration that all conditions have in common."""
    loaded = _as_loaded(objective, condition)
    times = known_time(root, loaded, devices)
    if common is not None and times.origin != "measured" and _as_much_work(loaded, objective):
        return Expected(condition, common.median_seconds, "calibrated, with the same FLOPs")
    if times.calibration is None:
        return Expected(condition, None, "no estimate")
    seconds = times.calibration.median_seconds
    if times.prior is None:
        return Expected(condition, seconds, "calibrated")
    return Expected(condition, seconds, times.prior.sentence())
