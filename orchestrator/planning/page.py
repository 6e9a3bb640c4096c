"""Everything a person should know before paying: what each tier takes, what it can tell, whether
to begin. No side effects."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import numpy as np

from budgets.terms import Devices, Plan, Tier
from orchestrator.planning.barrier import SEED, Simulated, simulate, spread
from orchestrator.planning.basis import Basis
from orchestrator.planning.checklist import Item, checklist
from orchestrator.planning.facts import facts_of
from orchestrator.planning.gains import Smallest, smallest_gain
from orchestrator.planning.known_knobs import Known
from orchestrator.planning.plan import Succession
from orchestrator.planning.power import GAINS, Assumptions, Power, imagined_power, of_the_comparison
from orchestrator.planning.preview import Preview, preview_tiers
from orchestrator.planning.request import Request
from orchestrator.planning.room import Room, room
from orchestrator.planning.times import Times


@dataclass(frozen=True)
class Compared:
    """How probably the comparison alone shows a winner's true gain, and finds it enough."""

    gain: float
    shown: float
    go: float


@dataclass(frozen=True)
class TierPage:
    """One tier: what it takes, what it can tell, whether to begin."""

    preview: Preview
    simulated: Simulated | None  # None: no times are known
    room: Room
    smallest: Smallest | None
    comparison: tuple[Compared, ...]  # empty: nothing is compared, or no noise is known
    items: tuple[Item, ...]
    power: Power | None = None  # when it was asked for

    @property
    def plan(self) -> Plan:
        return self.preview.plan

    def as_dict(self) -> dict[str, Any]:
        own = self.room
        return {
            **self.preview.as_dict(),
            "simulated": None if self.simulated is None else asdict(self.simulated),
            "room": {**asdict(own), "needed": own.needed, "suffices": own.suffices},
            "smallest_gain": None if self.smallest is None else asdict(self.smallest),
            "comparison": [asdict(one) for one in self.comparison],
            "power": None if self.power is None else _power_as_dict(self.power),
            "checklist": [item._asdict() for item in self.items],
        }


@dataclass(frozen=True)
class Page:
    """The tiers side by side, and the same on other numbers of devices."""

    basis: Basis
    tiers: tuple[TierPage, ...]
    elsewhere: tuple[TierPage, ...] = ()  # by number of devices, then by tier

    def as_dict(self) -> dict[str, Any]:
        basis = asdict(replace(self.basis, calibration=None))
        del basis["calibration"]  # it is in every plan
        return {
            "basis": {**basis, "drift": self.basis.drift, "own_noise": self.basis.own_noise},
            "tiers": [tier.as_dict() for tier in self.tiers],
            "elsewhere": [tier.as_dict() for tier in self.elsewhere],
        }


@dataclass(frozen=True)
class Circumstances:
    """What a page is made under, beside what was asked."""

    devices: Devices
    basis: Basis
    root: Path  # where runs live
    known: Known  # about the knobs
    now: datetime
    succession: Succession | None = None
    times: Times | None = None  # with what delays a run; None: the basis' calibration alone


def page_of(
    request: Request,
    under: Circumstances,
    tiers: Sequence[Tier] = get_args(Tier),
    counts: Sequence[int] = (),
) -> Page:
    """The page of a request, also for these numbers of devices.

    There times are the calibration's: nobody has measured them. Raises ValueError on a request
    that cannot be planned.
    """
    elsewhere = [
        tier
        for count in counts
        for tier in _tiers(request, under, tiers, _so_many(under.devices, count))
    ]
    return Page(under.basis, tuple(_tiers(request, under, tiers, under.devices)), tuple(elsewhere))


def _so_many(devices: Devices, count: int) -> Devices:
    return devices.model_copy(update={"count": count})


def _tiers(
    request: Request, under: Circumstances, tiers: Sequence[Tier], devices: Devices
) -> list[TierPage]:
    previews = preview_tiers(request, devices, under.basis.calibration, tiers, under.succession)
    return [_tier(preview, under) for preview in previews]


def _tier(preview: Preview, under: Circumstances) -> TierPage:
    plan, basis = preview.plan, under.basis
    rng = np.random.default_rng(SEED)
    calibration = basis.calibration
    simulated = None if calibration is None else simulate(plan, calibration, basis.overheads, rng)
    space = room(plan, under.root, basis.evaluation_bytes)
    times = under.times or Times(calibration)
    facts = facts_of(plan, basis, simulated, times, spread, space, under.known, under.now)
    return TierPage(
        preview,
        simulated,
        space,
        smallest_gain(plan),
        _comparison(plan, basis),
        checklist(facts),
    )


def _comparison(plan: Plan, basis: Basis) -> tuple[Compared, ...]:
    own = basis.own_noise
    if plan.confirmation is None or own is None:
        return ()
    return tuple(Compared(gain, *of_the_comparison(plan, gain, own)) for gain in GAINS)


def with_power(
    page: Page,
    known: Known,
    seconds: Callable[[], float],
    progress: Callable[[Tier, int, int], None],
) -> Page:
    """The same with each tier's power, as far as it has a verdict and a noise is known.

    Imports cma, and takes some 30 s a tier.
    """
    from orchestrator.planning.trial import Noise

    basis, share = page.basis, _share_that_matters(known)
    own, shared = basis.own_noise, basis.shared_noise
    if own is None or shared is None:
        return page
    tiers = []
    for tier in page.tiers:
        name = tier.plan.tier
        if tier.plan.confirmation is not None and name is not None:

            def tell(done: int, of: int, name: Tier = name) -> None:
                progress(name, done, of)

            found = imagined_power(tier.plan, Noise(own, shared), seconds, tell, share)
            tier = replace(tier, power=found)  # noqa: PLW2901 - the same tier, with more known
        tiers.append(tier)
    return replace(page, tiers=tuple(tiers))


def _share_that_matters(known: Known) -> Assumptions:
    """As checks have shown, where they have tried every knob."""
    tried = len(known.alive) + len(known.dead)
    if known.neither or not known.alive:
        return Assumptions()
    return Assumptions(knobs_that_matter=len(known.alive) / tried, by_checks=True)


def _power_as_dict(power: Power) -> dict[str, Any]:
    intervals = [
        {"shown_interval": one.shown_interval, "go_interval": one.go_interval}
        for one in power.detected
    ]
    document = asdict(power)
    for own, more in zip(document["detected"], intervals, strict=True):
        own.update(more)
    return document
