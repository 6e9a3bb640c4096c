"""Everything a person should know before paying: what each tier takes, what it can tell, whether
to begin. No side effects."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from budgets.calibration import forecast
from budgets.ledger import LedgerCorruptError
from budgets.plan import Devices, Plan, Tier
from budgets.state import ImpossibleEventError
from objectives.api import Objective
from orchestrator.config import Config
from orchestrator.planning.checklist import Item, checklist
from orchestrator.planning.forecast import Forecast, Smallest, forecast_of, smallest_gain
from orchestrator.planning.known_knobs import Known, known_knobs
from orchestrator.planning.plan import Succession, search_plan
from orchestrator.planning.room import Room, room
from orchestrator.planning.times import Times, times_here


@dataclass(frozen=True)
class Circumstances:
    """What a page is made under, beside what was asked."""

    devices: Devices
    times: Times
    root: Path  # where runs live
    known: Known
    now: datetime
    succession: Succession | None = None


def circumstances(
    root: Path,
    objective: Objective,
    devices: Devices,
    assumed_seconds: float | None = None,
    succession: Succession | None = None,
) -> tuple[Circumstances, tuple[str, ...]]:
    """What is known of this place and of the knobs; and warnings of what could not be read."""
    times, unread = times_here(root, objective, devices, assumed_seconds), tuple[str, ...]()
    try:
        known = known_knobs(root, objective, devices.kind)
    except (LedgerCorruptError, ImpossibleEventError, ValueError) as error:
        unread = (str(error),)
        known = Known((), (), tuple(knob.name for knob in objective.space.knobs))
    return Circumstances(devices, times, root, known, datetime.now(UTC), succession), unread


@dataclass(frozen=True)
class TierPage:
    """One tier: what it takes, what it can tell, whether to begin."""

    plan: Plan
    forecast: Forecast | None  # None: no times are known
    room: Room
    smallest: Smallest | None  # None: nothing is compared, or no noise is known
    items: tuple[Item, ...]

    @property
    def verdict_evaluations(self) -> int:
        """Beside the search's, at most; the long run after a Go not among them."""
        sizes = {} if self.plan.confirmation is None else self.plan.confirmation.sizes()
        return sum(count for name, (count, _) in sizes.items() if name != "rung")

    @property
    def cost(self) -> float | None:
        """Half of the times no more; None where nobody knows, or device-hours have no price."""
        price = self.plan.price_per_device_hour
        return self.forecast.device_hours_p50 * price if self.forecast and price else None

    def as_dict(self) -> dict[str, Any]:
        own = self.room
        return {
            "plan": self.plan.model_dump(mode="json"),
            "evaluations": self.plan.resolved.evaluations,
            "verdict_evaluations": self.verdict_evaluations,
            "search": _by_the_formula(self.plan),
            "forecast": None if self.forecast is None else self.forecast.as_dict(),
            "cost": self.cost,
            "room": {**asdict(own), "needed": own.needed, "suffices": own.suffices},
            "smallest_gain": None if self.smallest is None else asdict(self.smallest),
            "checklist": [item._asdict() for item in self.items],
        }


def _by_the_formula(plan: Plan) -> dict[str, Any] | None:
    """The search alone, as if all evaluations took the median: with and without the barrier."""
    if plan.calibration is None:
        return None
    seconds, price = plan.calibration.median_seconds, plan.price_per_device_hour
    return asdict(forecast(plan.resolved, seconds, plan.devices.count, price))


@dataclass(frozen=True)
class Page:
    """The tiers side by side, and the same on other numbers of devices."""

    times: Times
    tiers: tuple[TierPage, ...]
    elsewhere: tuple[TierPage, ...] = ()  # by number of devices, then by tier

    def as_dict(self) -> dict[str, Any]:
        times = self.times
        return {
            "times": {
                "origin": times.origin,
                "prior": None if times.prior is None else times.prior.sentence(),
                "overheads": asdict(times.overheads),
                "measured_at": times.measured_at,
                "drift": times.drift,
                "own_noise": times.own_noise,
                "notes": times.notes,
            },
            "tiers": [tier.as_dict() for tier in self.tiers],
            "elsewhere": [tier.as_dict() for tier in self.elsewhere],
        }


def page_of(
    config: Config,
    under: Circumstances,
    tiers: Sequence[Tier] = get_args(Tier),
    counts: Sequence[int] = (),
) -> Page:
    """The page of a search, also for these numbers of devices.

    There times are the calibration's: nobody has measured them. Raises ValueError on what
    cannot be planned. Imports numpy.
    """
    elsewhere = [
        page
        for count in counts
        for page in _tiers(config, under, tiers, under.devices.model_copy(update={"count": count}))
    ]
    here = _tiers(config, under, tiers, under.devices)
    return Page(under.times, tuple(here), tuple(elsewhere))


def _tiers(
    config: Config, under: Circumstances, tiers: Sequence[Tier], devices: Devices
) -> list[TierPage]:
    calibration, succession = under.times.calibration, under.succession
    configs = [config.having({"search.tier": tier}) for tier in tiers]
    plans = [search_plan(one, devices, calibration, None, succession) for one in configs]
    return [_tier(plan, under) for plan in plans]


def _tier(plan: Plan, under: Circumstances) -> TierPage:
    times = under.times
    took = forecast_of(plan, times)
    space = room(plan, under.root, times.evaluation_bytes)
    items = checklist(plan, times, took, space, under.known, under.now)
    return TierPage(plan, took, space, smallest_gain(plan), items)
