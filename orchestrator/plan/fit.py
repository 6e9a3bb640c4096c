"""What fits into a window, in the order in which one would give something up; and what it costs.

Fewer generations before a lower tier, that before fewer seeds a candidate, that before less to
train. Where a lot of the window would stay unused: what could be had besides.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from math import floor, sqrt
from typing import Any, Literal, get_args

from budgets.formatting import PROGRAM, duration, plain, sentence_case, shell_word, table
from budgets.plan import Calibration, Devices, Plan, Tier
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

A_LOT = 0.5
"""Share of the window: with so much unused, more could be had."""

FACTORS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
"""Of the FLOPs, that are tried."""

MORE_CONFIRM_SEEDS = (32, 24, 16, 12)

Lever = Literal["as asked", "generations", "tier", "seeds", "flops", "all of these", "more"]


def available(config: Config, now: datetime) -> float:
    """Return the hours that a budget leaves for evaluations. Raises ValueError where none is."""
    caps = caps_for(config, 1)
    refuse_the_past(caps.window, now)
    if (hours := hours_allowed(caps, now)) is None:
        raise ValueError("--fit: into what? Give --window 12h, a moment, or --max-hours")
    return hours


@dataclass(frozen=True)
class Wanted:
    """What was asked for, where, and what is known of it."""

    config: Config
    devices: Devices
    times: Times
    hours: float  # there are for evaluations
    succession: Succession | None = None
    calibrated: Callable[[Objective], Calibration | None] = lambda _: None  # of another objective


@dataclass(frozen=True)
class Choice:
    """What could be done with the window, and what it takes."""

    lever: Lever
    what: str
    changes: Values  # of what was asked for, by dotted key
    settings: Values  # ... and of the objective
    losses: tuple[str, ...]  # in quality, in words
    plan: Plan
    forecast: Forecast
    fits: bool
    fewer: int  # evaluations than were asked for; negative: more
    detectable: float | None  # gain that its verdict sees with 80 % power

    @property
    def is_assumed(self) -> bool:
        """Whether its times are not measured."""
        return self.plan.calibration is None or not self.plan.calibration.samples

    @property
    def no_go(self) -> tuple[str, ...]:
        """Why it cannot come to a Go, if it cannot."""
        return why_no_go(self.plan.resolved, self.plan.confirmation, self.plan.thresholds)

    @property
    def price(self) -> tuple[str, ...]:
        """What it costs in quality, in words and numbers."""
        return (
            *((f"{self.fewer} evaluations fewer",) if self.fewer > 0 else ()),
            *self.losses,
            *((f"{-self.fewer} evaluations more",) if self.fewer < 0 else ()),
            *(() if self.plan.confirmation else ("no comparison on fresh seeds, so no Go",)),
            *((f"detectable gain {self.detectable:.2%}",) if self.detectable else ()),
            *self.no_go,
        )

    @property
    def options(self) -> tuple[str, ...]:
        """The options that ask for it, after those that were given."""
        words: list[str] = []
        for key, value in {**self.changes, **self.settings}.items():
            is_tier = key == "search.tier"
            words += ["--tier", value] if is_tier else ["--set", f"{key}={format_value(value)}"]
        return tuple(words)

    def as_dict(self) -> dict[str, Any]:
        """The same for a program."""
        shape = self.plan.resolved
        return {
            "lever": self.lever,
            "what": self.what,
            "options": list(self.options),
            "fits": self.fits,
            "tier": self.plan.tier,
            "population": shape.population,
            "generations": shape.generations,
            "seeds_per_candidate": shape.seeds_per_candidate,
            "evaluations": shape.evaluations,
            "evaluations_fewer": self.fewer,
            "settings": dict(self.settings),
            "hours": self.forecast.hours_p50,
            "needed_hours": self.forecast.hours_free,
            "is_assumed": self.is_assumed,
            "price": list(self.price),
            "detectable_gain": self.detectable,
            "go_is_possible": self.plan.confirmation is not None and not self.no_go,
        }


def choices(wanted: Wanted) -> list[Choice]:
    """Return what was asked for, then what could be instead: ranked, the first that fits is best.

    Raises ValueError without a time, and on what cannot be planned.
    """
    asked = _weighed(wanted, None, "as asked", "as asked", {})
    if asked.fits:
        is_short = asked.forecast.hours_free < (1 - A_LOT) * wanted.hours
        return [asked, *(_more(wanted, asked) if is_short else ())]
    found = [asked, _fewer(wanted, asked, asked, "generations")]
    found += [*_tiers(wanted, asked), *_seeds(wanted, asked), *_flops(wanted, asked, {}, "flops")]
    once: dict[tuple[object, ...], Choice] = {}  # not what is the same under another name
    for choice in found:
        key = (choice.plan.resolved, repr(choice.plan.confirmation), repr(choice.settings))
        once.setdefault(key, choice)
    if any(choice.fits for choice in once.values()):
        return list(once.values())
    least = {"search.tier": "min", "search.generations": 2, "search.seeds_per_candidate": 1}
    return [*once.values(), *_flops(wanted, asked, least, "all of these")]


def best(found: Sequence[Choice]) -> Choice | None:
    """Return the first that fits and takes no more than was asked for."""
    return next((choice for choice in found if choice.fits and choice.lever != "more"), None)


def too_short(found: Sequence[Choice], hours: float) -> str:
    """What it means that nothing fits, and the least that would."""
    least = min(found, key=lambda choice: choice.forecast.hours_free)
    return (
        f"nothing fits into {duration(3600 * hours)}: the least, {least.what}, needs "
        f"{duration(3600 * least.forecast.hours_free)}. Give a longer --window or --max-hours"
    )


def _fewer(wanted: Wanted, asked: Choice, whole: Choice, lever: Lever) -> Choice:
    """`whole`, or with as many of its generations as fit, two at least."""
    most, took, fewer = whole.plan.resolved.generations, whole.forecast, whole
    left = wanted.hours - (took.hours_free - took.search_hours_p50)
    generations = min(most - 1, max(2, floor(left * most / took.search_hours_p50 + 1e-9)))
    while not fewer.fits and generations >= 2:
        what = f"{generations} of {most} generations"
        what = what if whole is asked else f"{whole.what}, {what}"
        changes = {**whole.changes, "search.generations": generations}
        losses = (*whole.losses, "the search goes less far")
        fewer = _weighed(wanted, asked, lever, what, changes, losses)
        generations -= 1
    return fewer


def _tiers(wanted: Wanted, asked: Choice) -> Iterator[Choice]:
    """The lower ones, the highest first."""
    tiers = get_args(Tier)
    for tier in reversed(tiers[: tiers.index(asked.plan.tier)]):
        losses = (INTENT[asked.plan.phase, tier],)
        lower = _weighed(wanted, asked, "tier", f"tier {tier}", {"search.tier": tier}, losses)
        yield _fewer(wanted, asked, lower, "tier")


def _seeds(wanted: Wanted, asked: Choice) -> Iterator[Choice]:
    """The most seeds a candidate that fit; with one seed fewer generations too."""
    most = asked.plan.resolved.seeds_per_candidate
    for seeds in range(most - 1, 0, -1):
        losses = (f"a candidate's score is {sqrt(most / seeds):.2g} times as noisy",)
        what, changes = f"{seeds} of {most} seeds", {"search.seeds_per_candidate": seeds}
        whole = _weighed(wanted, asked, "seeds", what, changes, losses)
        if whole.fits or seeds == 1:
            yield _fewer(wanted, asked, whole, "seeds")
            return


def _flops(wanted: Wanted, asked: Choice, changes: Values, lever: Lever) -> Iterator[Choice]:
    """The most FLOPs an evaluation with which it fits; else the least that can be trained."""
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
        work, steps = varied.length, ""
        if before is not None and after is not None:
            work, steps = after.total / before.total, f" ({after.steps} of {before.steps} steps)"
        losses = (
            f"{factor:g} x the training{steps}: what is best for a short one need not be for the "
            "whole",
            "its noise is not known before it is calibrated",
        )
        calibration = wanted.calibrated(shorter) or wanted.times.for_work(work)
        what = f"tier min, 2 generations, {varied.label}" if changes else varied.label
        shorter_one = (shorter, varied.settings, calibration)
        last = _weighed(wanted, asked, lever, what, changes, losses, shorter_one)
        if last.fits:
            break
    if last is not None:
        yield last


def _more(wanted: Wanted, asked: Choice) -> Iterator[Choice]:
    """The next tiers, whole or in part, and more seeds for the verdict."""
    tiers = get_args(Tier)
    for tier in tiers[tiers.index(asked.plan.tier) + 1 :]:
        higher = {"search.tier": tier}
        if wanted.config.search.generations is not None:
            higher["search.generations"] = None
        whole = _weighed(wanted, asked, "more", f"tier {tier}", higher)
        above = _fewer(wanted, asked, whole, "more")
        if above.fits and above.fewer < 0:
            yield above
    planned = wanted.config.verdict.confirm_seeds or VERDICT_SEEDS
    for seeds in MORE_CONFIRM_SEEDS if asked.plan.confirmation is not None else ():
        changes, what = {"verdict.confirm_seeds": seeds}, f"{seeds} confirmation seeds"
        found = _weighed(wanted, asked, "more", what, changes)
        if seeds > planned and found.fits:
            yield found
            return


def _weighed(  # noqa: PLR0913, PLR0917 - what a choice is made of
    wanted: Wanted,
    asked: Choice | None,
    lever: Lever,
    what: str,
    changes: Values,
    losses: tuple[str, ...] = (),
    shorter: tuple[Objective, Values, Calibration | None] | None = None,
) -> Choice:
    """Return the choice beside what was `asked` for, perhaps of a `shorter` objective.

    Raises ValueError without a time, and on what cannot be planned.
    """
    settings: Values = {}
    config, calibration = wanted.config.having(changes), wanted.times.calibration
    if shorter is not None:
        objective, settings, calibration = shorter
        config = config.with_objective(objective)
    plan = search_plan(config, wanted.devices, calibration, wanted.succession)
    took, gain = forecast_of(plan, wanted.times), detectable_gain(plan)
    if took is None:
        raise ValueError(
            "--fit: nothing says how long an evaluation takes here: there is no calibration, and "
            f"none to scale from. Measure with `{PROGRAM} calibrate` and the same --objective and "
            "--set, or say --assume-eval-seconds X"
        )
    return Choice(
        lever=lever,
        what=what,
        changes=changes,
        settings=settings,
        losses=losses,
        plan=plan,
        forecast=took,
        fits=took.hours_free <= wanted.hours * (1 + 1e-9),  # sums of equal parts may differ
        fewer=0 if asked is None else asked.plan.resolved.evaluations - plan.resolved.evaluations,
        detectable=None if gain is None else gain.gain,
    )


def fit_text(found: Sequence[Choice], hours: float) -> str:
    """The choices side by side, ranked, and the options that ask for each."""
    columns = (">", "choice", "P x G x S", ">evaluations", ">p50", ">must be free", "fits")
    rows = (
        (
            number,
            plain(choice.what),
            choice.plan.resolved.in_words,
            choice.plan.resolved.evaluations,
            duration(3600 * choice.forecast.hours_p50) + ", assumed" * choice.is_assumed,
            duration(3600 * choice.forecast.hours_free),
            "yes" if choice.fits else "no",
        )
        for number, choice in enumerate(found, 1)
    )
    lines = [
        f"# What fits into {duration(3600 * hours)}",
        "",
        *table(columns, rows),
        "",
        *(f"{n}. {_priced(choice)}" for n, choice in zip(count(1), found, strict=False)),
        "",
        f"**{plain(_verdict(found, hours))}**",
        "",
        "More must be free than the p50: the p90 of the simulated runs, the last evaluations' "
        "whole limits (evaluation.limit_seconds), so that none is begun that could end too late, "
        "and the long run that follows a Go.",
    ]
    return "\n".join(lines)


def _priced(choice: Choice) -> str:
    said = plain("; ".join(choice.price) or "what was asked for")
    options = " ".join(map(shell_word, choice.options))
    return f"{said}: with `{options}`" if options else f"{said}."


def _verdict(found: Sequence[Choice], hours: float) -> str:
    chosen = best(found)
    if chosen is None:
        return f"{sentence_case(too_short(found, hours))}."
    said = f"Choice {found.index(chosen) + 1} fits: {chosen.what}."
    if any(choice.lever == "more" for choice in found):
        unused = duration(3600 * (hours - chosen.forecast.hours_free))
        said += f" {unused} stay unused: more could be had, see below it."
    return said
