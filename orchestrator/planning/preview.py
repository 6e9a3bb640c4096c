"""A tier's plan, and what it is expected to take: no side effects."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

from budgets.calibration import Forecast, forecast
from budgets.course import expected
from budgets.proxy.certificate import outlook
from budgets.terms import Calibration, Devices, PanelName, Plan, Tier
from orchestrator.planning.plan import Succession, search_plan
from orchestrator.planning.request import Request


@dataclass(frozen=True)
class Preview:
    """A tier's plan, and what it is expected to take; nothing is expected without a calibration."""

    plan: Plan
    expected: Forecast | None  # of the search

    @property
    def apart(self) -> Forecast | None:
        """What the comparison on fresh seeds is expected to take beside it, without the rung."""
        confirmation, calibration = self.plan.confirmation, self.plan.calibration
        if confirmation is None or calibration is None:
            return None
        return priced(self.plan, calibration, confirmation.sizes(), without="rung")

    @property
    def rung(self) -> Forecast | None:
        """What the rung is expected to take, should the search come to it."""
        confirmation, calibration = self.plan.confirmation, self.plan.calibration
        if confirmation is None or calibration is None or confirmation.rung is None:
            return None
        return priced(self.plan, calibration, {"rung": confirmation.sizes()["rung"]})

    @property
    def comparing(self) -> Forecast | None:
        """What it is expected to take to see how well a proxy and the full evaluation agree."""
        proxy, calibration = self.plan.proxy, self.plan.calibration
        if proxy is None or calibration is None:
            return None
        count = self.compared
        return priced(self.plan, calibration, {"proxy": (count, count * proxy.varied.length)})

    @property
    def compared(self) -> int:
        """How many short evaluations beside full ones are expected."""
        proxy, shape = self.plan.proxy, self.plan.resolved
        paired = 0 if proxy is None else outlook(proxy, shape.generations)[0]
        return paired * shape.per_generation

    def as_dict(self) -> dict[str, Any]:
        parts = {
            "expected": self.expected,
            "expected_apart": self.apart,
            "rung": self.rung,
            "comparing": self.comparing,
        }
        forecasts = {name: None if f is None else asdict(f) for name, f in parts.items()}
        return {"plan": self.plan.model_dump(mode="json"), **forecasts}


def priced(
    plan: Plan,
    calibration: Calibration,
    sizes: Mapping[PanelName, tuple[int, float]],
    without: PanelName | None = None,
) -> Forecast:
    """What panels of these sizes take, one after the other: evaluations, and their length."""
    chosen = [size for name, size in sizes.items() if name != without and size[0]]
    parts = [expected(*size, calibration, plan.devices.count) for size in chosen]
    device_hours = sum(part.device_hours for part in parts)
    return Forecast(
        evaluations=sum(part.evaluations for part in parts),
        eval_seconds=calibration.median_seconds,
        evals_per_hour=3600 / calibration.median_seconds,
        device_hours=device_hours,
        ideal_hours=device_hours / plan.devices.count,
        barrier_hours=sum(part.hours for part in parts),
        cost=device_hours * plan.price_per_device_hour,
    )


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
