"""What fits into a window, and what each choice costs in quality.

Given up in this order: generations, the tier, seeds a candidate, training. If much of the window
stays unused, what could be added.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import floor, sqrt
from typing import Any, get_args

from budgets.formatting import PROGRAM, duration, plain, sentence_case, shell_word, table
from budgets.plan import Devices, Plan, Tier
from budgets.tiers import INTENT
from objectives import registry
from objectives.api import Objective, SetupError
from orchestrator.config import VERDICT_SEEDS, Config, Values, format_value
from orchestrator.plan.checks import hours_allowed
from orchestrator.plan.forecast import Forecast, detectable_gain, forecast_of
from orchestrator.plan.resolve import (
    Succession,
    caps_for,
    refuse_the_past,
    search_plan,
    why_no_go,
)
from orchestrator.plan.times import Times

MUCH = 0.5
"""Share of the window: if as much stays unused, more is offered."""

FACTORS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
"""Shares of the FLOPs to try."""

MORE_CONFIRM_SEEDS = (32, 24, 16, 12)

AS_ASKED = "as asked"


def available(config: Config, now: datetime) -> float:
    """Return the hours for evaluations that a budget leaves. Raises ValueError without a limit."""
    caps = caps_for(config, 1)
    refuse_the_past(caps.window, now)
    if (hours := hours_allowed(caps, now)) is None:
        raise ValueError("--fit: into what? Give --window 12h, a moment, or --max-hours")
    return hours


@dataclass(frozen=True)
class Wanted:
    """A search, its devices, its times, and the hours that it must fit into."""

    config: Config
    devices: Devices
    times: Times
    hours: float
    succession: Succession | None = None


@dataclass(frozen=True)
class Choice:
    """One way to use the window, and its price."""

    what: str
    changes: Values  # of the configuration, by dotted key
    settings: Values  # of the objective
    losses: tuple[str, ...]  # of quality, in words
    plan: Plan
    forecast: Forecast
    fits: bool
    detectable: float | None  # gain that its verdict shows with 80 % power
    is_more: bool = False  # than was asked for
    fewer: int = 0  # evaluations than asked for; negative: more

    @property
    def is_assumed(self) -> bool:
        """Whether its times are not measured."""
        return self.plan.calibration is None or not self.plan.calibration.samples

    @property
    def price(self) -> tuple[str, ...]:
        """The price in quality, in words and numbers."""
        return (
            *((f"{self.fewer} evaluations fewer",) if self.fewer > 0 else ()),
            *self.losses,
            *((f"{-self.fewer} evaluations more",) if self.fewer < 0 else ()),
            *(() if self.plan.confirmation else ("no comparison on fresh seeds, so no Go",)),
            *((f"detectable gain {self.detectable:.2%}",) if self.detectable else ()),
            *why_no_go(self.plan),
        )

    @property
    def options(self) -> tuple[str, ...]:
        """The command-line options of this choice, beside the given ones."""
        words: list[str] = []
        for key, value in {**self.changes, **self.settings}.items():
            is_tier = key == "search.tier"
            words += ["--tier", value] if is_tier else ["--set", f"{key}={format_value(value)}"]
        return tuple(words)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        shape = self.plan.resolved
        return {
            "what": self.what,
            "options": list(self.options),
            "fits": self.fits,
            **shape.model_dump(),
            "evaluations": shape.evaluations,
            "evaluations_fewer": self.fewer,
            "settings": dict(self.settings),
            "hours": self.forecast.hours_p50,
            "needed_hours": self.forecast.hours_free,
            "price": list(self.price),
            "detectable_gain": self.detectable,
        }


def choices(wanted: Wanted) -> list[Choice]:
    """Return the search as asked for, then the alternatives: the first that fits is the best.

    Raises ValueError without a time, and on a plan that is impossible.
    """
    asked = _choice(wanted, AS_ASKED, {})
    if asked.fits:
        is_short = asked.forecast.hours_free < (1 - MUCH) * wanted.hours
        found = [asked, *(_more(wanted, asked) if is_short else ())]
    else:
        different: dict[tuple[object, ...], Choice] = {}  # two levers may lead to the same plan
        for choice in (asked, _fewer(wanted, asked), *_lower(wanted, asked), *_shorter(wanted)):
            key = (choice.plan.resolved, repr(choice.plan.confirmation), repr(choice.settings))
            different.setdefault(key, choice)
        found = list(different.values())
    most = asked.plan.resolved.evaluations
    return [replace(one, fewer=most - one.plan.resolved.evaluations) for one in found]


def best(found: Sequence[Choice]) -> Choice | None:
    """Return the first choice that fits and adds nothing."""
    return next((choice for choice in found if choice.fits and not choice.is_more), None)


def _fewer(wanted: Wanted, whole: Choice) -> Choice:
    """Return `whole`, or with as many of its generations as fit, at least two."""
    most, took, fewer = whole.plan.resolved.generations, whole.forecast, whole
    left = wanted.hours - (took.hours_free - took.search_hours_p50)
    generations = min(most - 1, max(2, floor(left * most / took.search_hours_p50 + 1e-9)))
    while not fewer.fits and generations >= 2:
        what = f"{generations} of {most} generations"
        what = what if whole.what == AS_ASKED else f"{whole.what}, {what}"
        changes = {**whole.changes, "search.generations": generations}
        losses = (*whole.losses, "the search goes less far")
        fewer = _choice(wanted, what, changes, losses)
        generations -= 1
    return fewer


def _lower(wanted: Wanted, asked: Choice) -> Iterator[Choice]:
    """Yield lower tiers, then fewer seeds a candidate, each with the generations that fit."""
    tiers = get_args(Tier)
    for tier in reversed(tiers[: tiers.index(asked.plan.tier)]):
        losses = (INTENT[asked.plan.phase, tier],)
        yield _fewer(wanted, _choice(wanted, f"tier {tier}", {"search.tier": tier}, losses))
    most = asked.plan.resolved.seeds_per_candidate
    for seeds in range(most - 1, 0, -1):
        losses = (f"a candidate's score is {sqrt(most / seeds):.2g} times as noisy",)
        what, changes = f"{seeds} of {most} seeds", {"search.seeds_per_candidate": seeds}
        yield _fewer(wanted, _choice(wanted, what, changes, losses))


def _shorter(wanted: Wanted) -> Iterator[Choice]:
    """Yield the most FLOPs an evaluation that fit; else the least that can be trained."""
    last, objective = None, wanted.config.tuned
    for factor in FACTORS:
        if (varied := objective.scaled(factor)) is None:
            break
        shorter = registry.load(registry.varied(objective.spec, varied.settings))
        try:
            shorter.preflight()
        except SetupError:
            break
        before, after = objective.flops(), shorter.flops()
        work = after.total / before.total if before and after else varied.length
        losses = (
            f"{factor:g} x the training: the best knobs of a short training may differ",
            "its noise is not known before it is calibrated",
        )
        training = (shorter, varied.settings, work)
        last = _choice(wanted, varied.label, {}, losses, training)
        if last.fits:
            break
    if last is not None:
        yield last


def _more(wanted: Wanted, asked: Choice) -> Iterator[Choice]:
    """Yield the next tiers, whole or in part, and more seeds for the verdict."""
    tiers = get_args(Tier)
    for tier in tiers[tiers.index(asked.plan.tier) + 1 :]:
        higher = {"search.tier": tier}
        if wanted.config.search.generations is not None:
            higher["search.generations"] = None
        above = _fewer(wanted, _choice(wanted, f"tier {tier}", higher))
        if above.fits and above.plan.resolved.evaluations > asked.plan.resolved.evaluations:
            yield replace(above, is_more=True)
    planned = wanted.config.verdict.confirm_seeds or VERDICT_SEEDS
    for seeds in MORE_CONFIRM_SEEDS if asked.plan.confirmation is not None else ():
        changes, what = {"verdict.confirm_seeds": seeds}, f"{seeds} confirmation seeds"
        found = _choice(wanted, what, changes)
        if seeds > planned and found.fits:
            yield replace(found, is_more=True)
            return


def _choice(
    wanted: Wanted,
    what: str,
    changes: Values,
    losses: tuple[str, ...] = (),
    shorter: tuple[Objective, Values, float] | None = None,
) -> Choice:
    """Return the choice with these changes; perhaps of a `shorter` objective, its settings and its
    share of the FLOPs. Raises ValueError without a time, and on a plan that is impossible."""
    settings: Values = {}
    config, calibration = wanted.config.having(changes), wanted.times.calibration
    if shorter is not None:
        objective, settings, work = shorter
        config, calibration = config.with_objective(objective), wanted.times.for_work(work)
    plan = search_plan(config, wanted.devices, calibration, wanted.succession)
    forecast, gain = forecast_of(plan, wanted.times), detectable_gain(plan)
    if forecast is None:
        raise ValueError(
            "--fit: nothing says how long an evaluation takes here: there is no calibration, and "
            f"none to scale from. Measure with `{PROGRAM} calibrate` and the same --objective and "
            "--set, or say --assume-eval-seconds X"
        )
    return Choice(
        what=what,
        changes=changes,
        settings=settings,
        losses=losses,
        plan=plan,
        forecast=forecast,
        fits=forecast.hours_free <= wanted.hours * (1 + 1e-9),  # sums of equal parts may differ
        detectable=None if gain is None else gain.gain,
    )


def fit_text(found: Sequence[Choice], hours: float) -> str:
    """Return the choices as a ranked table, their prices and options, and the conclusion."""
    columns = (">", "choice", "P x G x S", ">evaluations", ">p50", ">must be free", "fits")
    rows, prices = [], []
    for number, choice in enumerate(found, 1):
        shape, took = choice.plan.resolved, choice.forecast
        p50 = duration(3600 * took.hours_p50) + ", assumed" * choice.is_assumed
        free, fits = duration(3600 * took.hours_free), "yes" if choice.fits else "no"
        figures = (shape.in_words, shape.evaluations, p50, free, fits)
        rows.append((number, plain(choice.what), *figures))
        price = plain("; ".join(choice.price) or "what was asked for")
        options = " ".join(map(shell_word, choice.options))
        prices.append(f"{number}. {price}" + (f": with `{options}`" if options else "."))
    return "\n".join(
        [
            f"# What fits into {duration(3600 * hours)}",
            "",
            *table(columns, rows),
            "",
            *prices,
            "",
            f"**{plain(_conclusion(found, hours))}**",
            "",
            "*Must be free* is the p90, the whole limit of the last evaluations (so that none "
            "starts that could end too late) and the long run after a Go.",
        ]
    )


def _conclusion(found: Sequence[Choice], hours: float) -> str:
    chosen = best(found)
    if chosen is None:
        return f"{sentence_case(too_short(found, hours))}."
    said = f"Choice {found.index(chosen) + 1} fits: {chosen.what}."
    if any(choice.is_more for choice in found):
        said += f" {duration(3600 * (hours - chosen.forecast.hours_free))} stay unused."
    return said


def too_short(found: Sequence[Choice], hours: float) -> str:
    """Return that nothing fits, and the least that would."""
    least = min(found, key=lambda choice: choice.forecast.hours_free)
    return (
        f"nothing fits into {duration(3600 * hours)}: the least, {least.what}, needs "
        f"{duration(3600 * least.forecast.hours_free)}. Give a longer --window or --max-hours"
    )
