"""What fits into a window, and what each choice costs in quality.

Reduced in this order: generations, the tier, seeds a candidate, training. If much of the window
stays unused, what could be added.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from math import sqrt
from typing import Any, get_args

from budgets.formatting import duration, plain, shell_word, table
from budgets.plan import Devices, Plan, Source, Tier
from budgets.tiers import INTENT
from objectives import registry
from objectives.api import SetupError
from orchestrator.config import FLAGS, Config, Values, assign
from orchestrator.plan.forecast import (
    UNMEASURED,
    Forecast,
    Times,
    detectable_gain,
    forecast_of,
    relative_flops,
    scaled,
)
from orchestrator.plan.page import hours_allowed, times_in_short
from orchestrator.plan.resolve import caps_for, search_plan, why_no_go, window_of

MUCH = 0.5  # of the window: if as much stays unused, more is offered
FACTORS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)  # of the FLOPs, to try


def available(config: Config, now: datetime) -> float:
    """Return the hours for evaluations that a budget leaves. Raises ValueError without a limit."""
    window_of(config.budget, now)  # which may be over
    hours = [own for own in hours_allowed(caps_for(config, 1), now).values() if own is not None]
    if not hours:
        raise ValueError("--fit: needs a limit: --window 12h, a moment, or --max-hours")
    return min(hours)


@dataclass(frozen=True)
class Choice:
    """One way to use the window, and its price."""

    what: str
    changes: Values  # of the configuration by dotted key, and of the objective's settings
    losses: tuple[str, ...]  # what is lost in quality, in words
    plan: Plan
    forecast: Forecast
    fits: bool

    @property
    def price(self) -> str:
        """The price in quality, in words and numbers."""
        gain = detectable_gain(self.plan)
        said = [*self.losses, *why_no_go(self.plan)]
        said += [] if self.plan.confirmation else ["no comparison on fresh seeds, so no Go"]
        return "; ".join([*said, *([f"detectable gain {gain:.2%}"] if gain else [])])

    @property
    def options(self) -> list[str]:
        """The command-line options of this choice, beside the given ones."""
        words = (
            (FLAGS[key].spelling, str(value)) if key in FLAGS else assign(key, value)
            for key, value in self.changes.items()
        )
        return list(chain.from_iterable(words))

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "what": self.what,
            "options": self.options,
            "fits": self.fits,
            **self.plan.resolved.model_dump(),
            "hours": self.forecast.hours_p50,
            "needed_hours": self.forecast.hours_free,
            "price": self.price,
        }


@dataclass(frozen=True)
class Wanted:
    """A search, its devices, its times, and the hours that it must fit into."""

    config: Config
    devices: Devices
    times: Times
    hours: float
    source: Source | None = None

    def choice(self, what: str, changes: Values, *losses: str) -> Choice:
        """Return the choice with these changes of the configuration.

        Raises ValueError without a time, and on a plan that is impossible.
        """
        config = self.config.having(changes)
        plan = search_plan(config, self.devices, self.times.calibration, self.source)
        if (forecast := forecast_of(plan, calibrates=self.times.calibrates)) is None:
            raise ValueError(f"--fit: {times_in_short(self.times)}")
        fits = forecast.hours_free <= self.hours * (1 + 1e-9)  # sums of equal parts may differ
        return Choice(what, changes, losses, plan, forecast, fits)

    def shortened(self, what: str, changes: Values, *losses: str) -> Choice:
        """Return that choice; if it does not fit, with the generations that fit, two at least."""
        whole = self.choice(what, changes, *losses)
        most = whole.plan.resolved.generations
        if whole.fits or most < 3:
            return whole

        def of(generations: int) -> Choice:
            fewer = {**changes, "search.generations": generations}
            said = ", ".join(filter(None, (what, f"{generations} of {most} generations")))
            return self.choice(said, fewer, *losses, "the search ends earlier")

        numbers = range(2, most)
        too_many = bisect_right(numbers, 0, key=lambda number: not of(number).fits)
        return of(numbers[max(0, too_many - 1)])


def choices(wanted: Wanted) -> list[Choice]:
    """Return the search as asked for, then the alternatives: the first that fits is the best.

    Raises ValueError without a time, and on a plan that is impossible.
    """
    asked = wanted.choice("as asked", {})
    found, ways = [asked], _ways(asked.plan, fits=asked.fits)
    if not asked.fits:
        found += [*(wanted.shortened(*way) for way in ways), *_shorter(wanted)]
    elif asked.forecast.hours_free < (1 - MUCH) * wanted.hours:
        found += (one for way in ways if (one := wanted.shortened(*way)).fits)
    different = dict[str, Choice]()  # two ways may lead to the same plan
    for one in found:
        plan = one.plan
        different.setdefault(repr((plan.resolved, plan.confirmation, plan.objective)), one)
    return list(different.values())


def best(found: Sequence[Choice]) -> Choice | None:
    """Return the first choice that fits."""
    return next((choice for choice in found if choice.fits), None)


def _ways(plan: Plan, *, fits: bool) -> Iterator[tuple[Any, ...]]:
    """Yield name, changes and loss of smaller searches; where the plan `fits`, of larger ones."""
    tiers, seeds = get_args(Tier), plan.resolved.seeds_per_candidate
    place = tiers.index(plan.tier)
    if fits:
        yield from ((f"tier {tier}", {"search.tier": tier}) for tier in tiers[place + 1 :])
        if (wanted := plan.confirmation) is not None:
            changes = {"verdict.confirm_seeds": 2 * wanted.seeds}
            yield f"{2 * wanted.seeds} confirmation seeds", changes
        return
    yield "", {}  # but for the number of generations
    for tier in reversed(tiers[:place]):
        yield f"tier {tier}", {"search.tier": tier}, INTENT[plan.phase, tier]
    for fewer in range(seeds - 1, 0, -1):
        loss = f"a candidate's score is {sqrt(seeds / fewer):.2g} times as noisy"
        yield f"{fewer} of {seeds} seeds", {"search.seeds_per_candidate": fewer}, loss


def _shorter(wanted: Wanted) -> list[Choice]:
    """Return the most FLOPs an evaluation that fit; else the least that can be trained."""
    found, objective, times = list[Choice](), wanted.config.tuned, wanted.times
    assert times.calibration is not None, "the search as asked for has a time"
    is_stated = times.prior is None and not times.calibration.samples
    for factor in FACTORS:
        if (varied := objective.scaled(factor)) is None:
            break
        shorter = registry.load(registry.varied(objective.spec, varied.settings))
        try:
            shorter.preflight()
        except SetupError:
            break
        work = relative_flops(shorter, objective) or varied.cost_factor
        time = scaled(times.calibration, work, UNMEASURED if times.prior is None else 1.0)
        own = replace(
            wanted,
            config=wanted.config.with_objective(shorter),
            times=Times(time, None if is_stated else times.prior or "of the whole training"),
        )
        loss = f"{factor:g} x the training: its noise and its best knobs may be others"
        found.append(replace(own.choice(varied.name, {}, loss), changes=dict(varied.settings)))
        if found[-1].fits:
            break
    return found[-1:]


def fit_text(found: Sequence[Choice], hours: float) -> str:
    """Return the choices as a table, the price of each and what was chosen."""
    rows, prices = [], []
    for number, choice in enumerate(found, 1):
        shape, took = choice.plan.resolved, choice.forecast
        p50, free = duration(3600 * took.hours_p50), duration(3600 * took.hours_free)
        p50 += "" if choice.plan.calibration and choice.plan.calibration.samples else ", assumed"
        fits = "yes" if choice.fits else "no"
        rows.append((number, plain(choice.what), shape.in_words, p50, free, fits))
        options = f"`{' '.join(map(shell_word, choice.options))}`" if choice.options else ""
        said = ": ".join(filter(None, (plain(choice.price), options)))
        prices.append(f"{number}. {said or 'what was asked for'}")
    columns = (">", "choice", "P x G x S", ">p50", ">must be free", "fits")
    if (chosen := best(found)) is not None:
        conclusion = f"Choice {found.index(chosen) + 1} fits: {chosen.what}."
    else:
        least = min(found, key=lambda choice: choice.forecast.hours_free)
        needed = duration(3600 * least.forecast.hours_free)
        conclusion = f"Nothing fits: the least, {least.what}, needs {needed}."
    lines = [f"# What fits into {duration(3600 * hours)}", "", *table(columns, rows), ""]
    return "\n".join([*lines, *prices, "", f"**{plain(conclusion)}**"])
