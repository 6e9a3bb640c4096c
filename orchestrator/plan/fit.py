"""What fits into a window, in the order in which one would give something up; and what it costs.

Fewer generations before a lower tier, that before fewer seeds a candidate, that before less to
train. Where a lot of the window would stay unused: what could be had besides.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from math import floor, sqrt
from pathlib import Path
from typing import Any, Literal, get_args

from budgets.formatting import PROGRAM, duration, plain, sentence_case, table
from budgets.plan import Calibration, Devices, Plan, Tier
from budgets.storage import write_aside
from budgets.tiers import INTENT
from objectives import registry
from objectives.api import Objective, SetupError, Variant
from orchestrator.config import VERDICT_SEEDS, Budget, Config
from orchestrator.plan.forecast import Forecast, detectable_gain, forecast_of
from orchestrator.plan.resolve import (
    Succession,
    limits_for,
    refuse_the_past,
    search_plan,
    why_no_go,
    window_of,
)
from orchestrator.plan.times import Times

A_LOT = 0.5
"""Share of the window: with so much unused, more could be had."""

FACTORS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
"""Of the FLOPs, that are tried."""

MORE_CONFIRM_SEEDS = (32, 24, 16, 12)

Lever = Literal["as asked", "generations", "tier", "seeds", "flops", "all of these", "more"]


@dataclass(frozen=True)
class Available:
    """The time there is."""

    hours: float  # for evaluations: of a window, what is before its safety margin
    flag: str  # that says so
    text: str  # how it was given


def available(budget: Budget, now: datetime) -> Available:
    """Return the time that a budget leaves for evaluations. Raises ValueError where none is."""
    window, hours, found = window_of(budget), budget.max_hours, list[Available]()
    refuse_the_past(window, now)
    if window is not None:
        whole, margin = window.hours_from(now), window.margin_seconds / 3600
        text = f"a window of {duration(3600 * whole)} less {duration(3600 * margin)}"
        found.append(Available(whole - margin, "--window", text))
    if hours is not None:
        found.append(Available(hours, "--max-hours", f"--max-hours {hours:g}"))
    if not found:
        raise ValueError("--fit: into what? Give --window 12h, a moment, or --max-hours")
    return min(found, key=lambda one: one.hours)


@dataclass(frozen=True)
class Wanted:
    """What was asked for, where, and what is known of it."""

    config: Config
    devices: Devices
    times: Times
    there: Available
    succession: Succession | None = None
    calibrated: Callable[[Objective], Calibration | None] = lambda _: None  # of another objective


@dataclass(frozen=True)
class Choice:
    """What could be done with the window, and what it takes."""

    lever: Lever
    what: str
    config: Config
    changes: tuple[str, ...]  # in quality, in words
    varied: Variant | None  # what it changes of the objective
    plan: Plan
    forecast: Forecast
    fits: bool
    is_assumed: bool  # its times are not measured
    fewer: int  # evaluations than were asked for; negative: more
    detectable: float | None  # gain that its verdict sees with 80 % power

    @property
    def no_go(self) -> tuple[str, ...]:
        """Why it cannot come to a Go, if it cannot."""
        return why_no_go(self.plan.resolved, self.plan.confirmation, self.plan.thresholds)

    @property
    def price(self) -> tuple[str, ...]:
        """What it costs in quality, in words and numbers."""
        return (
            *((f"{self.fewer} evaluations fewer",) if self.fewer > 0 else ()),
            *self.changes,
            *((f"{-self.fewer} evaluations more",) if self.fewer < 0 else ()),
            *(() if self.plan.confirmation else ("no comparison on fresh seeds, so no Go",)),
            *((f"detectable gain {self.detectable:.2%}",) if self.detectable else ()),
            *self.no_go,
        )

    def as_dict(self) -> dict[str, Any]:
        """The same for a program."""
        shape = self.plan.resolved
        return {
            "lever": self.lever,
            "what": self.what,
            "fits": self.fits,
            "tier": self.plan.tier,
            "population": shape.population,
            "generations": shape.generations,
            "seeds_per_candidate": shape.seeds_per_candidate,
            "evaluations": shape.evaluations,
            "evaluations_fewer": self.fewer,
            "settings": {} if self.varied is None else self.varied.settings,
            "hours": self.forecast.hours_p50,
            "needed_hours": self.forecast.hours_free,
            "is_assumed": self.is_assumed,
            "price": list(self.price),
            "detectable_gain": self.detectable,
            "go_is_possible": self.plan.confirmation is not None and not self.no_go,
        }


class NoTimeError(ValueError):
    """Nothing says how long an evaluation takes."""

    def __init__(self) -> None:
        super().__init__(
            "--fit: nothing says how long an evaluation takes here: there is no calibration, and "
            f"no earlier run to scale from. Measure with `{PROGRAM} calibrate` and the "
            "same --objective and --set, or say --assume-eval-seconds X"
        )


def choices(wanted: Wanted) -> list[Choice]:
    """Return what was asked for, then what could be instead: ranked, the first that fits is best.

    Raises NoTimeError without a time, ValueError on what cannot be planned.
    """
    asked = _weighed(wanted, None, "as asked", "as asked", wanted.config)
    if asked.fits:
        is_short = asked.forecast.hours_free < (1 - A_LOT) * wanted.there.hours
        return [asked, *(_more(wanted, asked) if is_short else ())]
    found = [asked, _fewer(wanted, asked, asked, "generations")]
    found += [*_tiers(wanted, asked), *_seeds(wanted, asked)]
    found += _flops(wanted, asked, wanted.config, "flops")
    once: dict[tuple[object, ...], Choice] = {}  # not what is the same under another name
    for choice in found:
        settings = None if choice.varied is None else repr(choice.varied.settings)
        key = (choice.plan.resolved, repr(choice.plan.confirmation), settings)
        once.setdefault(key, choice)
    if any(choice.fits for choice in once.values()):
        return list(once.values())
    least = wanted.config.having(
        {"search.tier": "min", "search.generations": 2, "search.seeds_per_candidate": 1}
    )
    return [*once.values(), *_flops(wanted, asked, least, "all of these")]


def best(found: Sequence[Choice]) -> Choice | None:
    """Return the first that fits and takes no more than was asked for."""
    return next((choice for choice in found if choice.fits and choice.lever != "more"), None)


def too_short(found: Sequence[Choice], there: Available) -> str:
    """What it means that nothing fits, and the least that would."""
    least = min(found, key=lambda choice: choice.forecast.hours_free)
    return (
        f"nothing fits into {duration(3600 * there.hours)} ({there.text}): the least, "
        f"{least.what}, needs {duration(3600 * least.forecast.hours_free)}. Give a longer "
        f"{there.flag}"
    )


def _fewer(wanted: Wanted, asked: Choice, whole: Choice, lever: Lever) -> Choice:
    """`whole`, or with as many of its generations as fit, two at least."""
    most, took, fewer = whole.plan.resolved.generations, whole.forecast, whole
    left = wanted.there.hours - (took.hours_free - took.search_hours_p50)
    generations = min(most - 1, max(2, floor(left * most / took.search_hours_p50 + 1e-9)))
    while not fewer.fits and generations >= 2:
        what = f"{generations} of {most} generations"
        fewer = _weighed(
            wanted,
            asked,
            lever,
            what if whole is asked else f"{whole.what}, {what}",
            whole.config.having({"search.generations": generations}),
            (*whole.changes, "the search goes less far"),
        )
        generations -= 1
    return fewer


def _tiers(wanted: Wanted, asked: Choice) -> Iterator[Choice]:
    """The lower ones, the highest first."""
    config, tiers = wanted.config, get_args(Tier)
    for tier in reversed(tiers[: tiers.index(asked.plan.tier)]):
        lower, price = config.having({"search.tier": tier}), (INTENT[asked.plan.phase, tier],)
        yield _fewer(
            wanted, asked, _weighed(wanted, asked, "tier", f"tier {tier}", lower, price), "tier"
        )


def _seeds(wanted: Wanted, asked: Choice) -> Iterator[Choice]:
    """The most seeds a candidate that fit; with one seed fewer generations too."""
    most = asked.plan.resolved.seeds_per_candidate
    for seeds in range(most - 1, 0, -1):
        config = wanted.config.having({"search.seeds_per_candidate": seeds})
        price = (f"a candidate's score is {sqrt(most / seeds):.2g} times as noisy",)
        what = f"{seeds} of {most} seeds a candidate"
        whole = _weighed(wanted, asked, "seeds", what, config, price)
        if whole.fits or seeds == 1:
            yield _fewer(wanted, asked, whole, "seeds")
            return


def _flops(wanted: Wanted, asked: Choice, config: Config, lever: Lever) -> list[Choice]:
    """The most FLOPs an evaluation with which it fits; else the least that can be trained."""
    plan = search_plan(config, wanted.devices, wanted.times.calibration, None, wanted.succession)
    last = None
    for factor in FACTORS:
        less = _with_flops(wanted, asked, config, plan, factor, lever)
        last = less or last
        if less is None or less.fits:
            break
    return [] if last is None else [last]


def _with_flops(  # noqa: PLR0913, PLR0917 - what it is laid over
    wanted: Wanted, asked: Choice, config: Config, plan: Plan, factor: float, lever: Lever
) -> Choice | None:
    """None where so little cannot be trained."""
    objective, evaluation = config.tuned, config.evaluation
    if (varied := objective.scaled(factor)) is None:
        return None
    shorter = registry.load(registry.varied(objective.spec, varied.settings))
    try:
        shorter.preflight()
    except SetupError:
        return None
    before, after = objective.flops(), shorter.flops()
    work, steps = varied.length, ""
    if before is not None and after is not None:
        work, steps = after.total / before.total, f" ({after.steps} of {before.steps} steps)"
    what = varied.label
    if lever == "all of these":
        what = f"tier {plan.tier}, {plan.resolved.generations} generations, {what}"
    price = (
        f"{factor:g} x the training{steps}: what is best for a short one need not be for the whole",
        "its noise is not known before it is calibrated",
    )
    calibration = wanted.calibrated(shorter) or wanted.times.for_work(work)
    limits = limits_for(
        evaluation.limit_seconds, evaluation.stall_seconds, wanted.devices, calibration
    )
    plan = plan.model_copy(update={"calibration": calibration, "limits": limits})
    return _weighed(wanted, asked, lever, what, config.with_objective(shorter), price, varied, plan)


def _more(wanted: Wanted, asked: Choice) -> Iterator[Choice]:
    """The next tiers, whole or in part, and more seeds for the verdict."""
    config, tiers = wanted.config, get_args(Tier)
    for tier in tiers[tiers.index(asked.plan.tier) + 1 :]:
        higher = config.having({"search.tier": tier, "search.generations": None})
        whole = _weighed(wanted, asked, "more", f"tier {tier}", higher)
        above = _fewer(wanted, asked, whole, "more")
        if above.fits and above.fewer < 0:
            yield above
    planned = config.verdict.confirm_seeds or VERDICT_SEEDS
    for seeds in MORE_CONFIRM_SEEDS if asked.plan.confirmation is not None else ():
        surer = config.having({"verdict.confirm_seeds": seeds})
        found = _weighed(wanted, asked, "more", f"{seeds} confirmation seeds", surer)
        if seeds > planned and found.fits:
            yield found
            return


def _weighed(  # noqa: PLR0913, PLR0917 - what a choice is made of
    wanted: Wanted,
    asked: Choice | None,
    lever: Lever,
    what: str,
    config: Config,
    changes: tuple[str, ...] = (),
    varied: Variant | None = None,
    plan: Plan | None = None,
) -> Choice:
    """Return the choice beside what was `asked` for, by its own plan or the one that is given.

    Raises NoTimeError without a time, ValueError on what cannot be planned.
    """
    devices, times = wanted.devices, wanted.times
    plan = plan or search_plan(config, devices, times.calibration, None, wanted.succession)
    took, gain = forecast_of(plan, times), detectable_gain(plan)
    if took is None or plan.calibration is None:
        raise NoTimeError
    fewer = 0 if asked is None else asked.plan.resolved.evaluations - plan.resolved.evaluations
    return Choice(
        lever=lever,
        what=what,
        config=config,
        changes=changes,
        varied=varied,
        plan=plan,
        forecast=took,
        fits=took.hours_free <= wanted.there.hours * (1 + 1e-9),  # sums of equal parts may differ
        is_assumed=not plan.calibration.samples,
        fewer=fewer,
        detectable=None if gain is None else gain.gain,
    )


def fit_text(found: Sequence[Choice], there: Available) -> str:
    """The choices side by side, ranked, and which one a run would take."""
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
    prices = zip(count(1), found, strict=False)
    lines = [
        f"# What fits into {duration(3600 * there.hours)} ({there.text})",
        "",
        *table(columns, rows),
        "",
        *(f"{n}. {plain('; '.join(c.price) or 'what was asked for')}." for n, c in prices),
        "",
        f"**{plain(_verdict(found, there))}**",
        "",
        "More must be free than the p50: the p90 of the simulated runs, the last evaluations' "
        "whole limits (evaluation.limit_seconds), so that none is begun that could end too late, "
        "and the long run that follows a Go.",
    ]
    if any(choice.is_assumed for choice in found):
        lines += ["", "*assumed*: by a time that was not measured here."]
    return "\n".join(lines)


def _verdict(found: Sequence[Choice], there: Available) -> str:
    chosen = best(found)
    if chosen is None:
        return f"{sentence_case(too_short(found, there))}."
    said = f"Choice {found.index(chosen) + 1} fits: {chosen.what}."
    if any(choice.lever == "more" for choice in found):
        unused = duration(3600 * (there.hours - chosen.forecast.hours_free))
        said += f" {unused} stay unused: more could be had, see below it."
    return f"{said} --out FILE writes it into a configuration."


# A choice in a configuration file


def chosen(choice: Choice) -> dict[str, Any]:
    """Return the keys that fitting decides; None: the key is taken away."""
    search, seeds = choice.config.search, choice.config.verdict.confirm_seeds
    values: dict[str, Any] = {
        "search.tier": choice.plan.tier,
        "search.generations": search.generations,
        "search.seeds_per_candidate": search.seeds_per_candidate,
    }
    if choice.varied is not None:
        values |= {f"training.{name}": value for name, value in choice.varied.settings.items()}
    return values if seeds is None else {**values, "verdict.confirm_seeds": seeds}


def read(path: Path) -> str:
    """Return the file as text; empty where there is none. Raises OSError, ValueError."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise ValueError(f"--out: {path} is no text: {error}") from error


def write(path: Path, values: Mapping[str, Any]) -> str:
    """Put the values into the TOML file, with its comments kept; return what changed, as a diff.

    Raises OSError, and ValueError where it is no TOML or has a value where a table belongs.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    before = read(path)
    try:
        document = tomlkit.parse(before)
    except TOMLKitError as error:
        raise ValueError(f"--out: expected TOML: {error}") from error
    for key, value in values.items():
        table_name, dot, name = key.rpartition(".")
        there: Any = document
        if dot:
            if table_name not in document and value is None:
                continue
            there = document.setdefault(table_name, tomlkit.table())
            if not isinstance(there, Mapping):
                raise ValueError(f"--out: expected a table [{table_name}], got {there}")
        if value is None:
            there.pop(name, None)
        elif there.get(name) != value:
            there[name] = value
    after = tomlkit.dumps(document)
    write_aside(path, after.encode())
    lines = (before.splitlines(), after.splitlines())
    return "\n".join(difflib.unified_diff(*lines, str(path), str(path), lineterm="", n=1))


# Training profiles


def profiles(objective: Objective, times: Times, there: Available) -> list[dict[str, Any]]:
    """Return what one training of each of the objective's profiles takes, by exact FLOPs.

    `estimate` is None where no time is known, or where the settings pay for no step.
    """
    named = registry.named(objective.spec.name, objective.spec.settings).profiles
    return [
        {
            "profile_name": name,
            "profile": dict(settings),
            "estimate": _training(objective, dict(settings), times, there),
        }
        for name, settings in named.items()
    ]


def _training(
    objective: Objective, settings: dict[str, Any], times: Times, there: Available
) -> dict[str, Any] | None:
    before = objective.flops()
    after = registry.load(registry.varied(objective.spec, settings)).flops()
    if before is None or after is None or not before.total or after.steps < 1:
        return None
    work = after.total / before.total
    if (calibration := times.for_work(work)) is None:
        return None
    seconds = calibration.median_seconds
    return {
        "total_steps": after.steps,
        "total_tokens": after.tokens,
        "estimated_hours": seconds / 3600,
        "tokens_per_second": after.tokens / seconds,
        "fits_in_window": seconds / 3600 <= there.hours,
        "assumed": work != 1 or times.origin != "measured",
    }
