"""What fits into a window, in the order in which one would give something up; and what it costs.

Fewer generations before a lower tier, that before fewer seeds a candidate, that before less to
train. Where a lot of the window would stay unused: what could be had besides. Nothing is written.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from math import floor, sqrt
from pathlib import Path
from typing import Any, Literal, get_args

import tomlkit
from tomlkit.exceptions import TOMLKitError

from budgets.formatting import PROGRAM, duration, plain, sentence_case, table
from budgets.plan import Calibration, Devices, Plan, Tier
from budgets.storage import write_aside
from budgets.tiers import INTENT
from objectives import registry
from objectives.api import Objective, SetupError, Variant
from orchestrator.config import VERDICT_SEEDS, Budget, Config
from orchestrator.plan.forecast import Forecast, forecast_of, smallest_gain
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
class Room:
    """The time there is."""

    hours: float  # for evaluations: of a window, what is before its safety margin
    flag: str  # that says so
    text: str  # how it was given


def room_of(budget: Budget, now: datetime) -> Room:
    """The time that a budget leaves for evaluations. Raises ValueError where there is none."""
    window, hours = window_of(budget), budget.max_hours
    refuse_the_past(window, now)
    rooms = []
    if window is not None:
        whole, margin = window.hours_from(now), window.margin_seconds / 3600
        text = f"a window of {duration(3600 * whole)} less {duration(3600 * margin)}"
        rooms.append(Room(whole - margin, "--window", text))
    if hours is not None:
        rooms.append(Room(hours, "--max-hours", f"--max-hours {hours:g}"))
    if not rooms:
        raise ValueError("--fit: into what? Give --window 12h, a moment, or --max-hours")
    return min(rooms, key=lambda room: room.hours)


@dataclass(frozen=True)
class Wanted:
    """What was asked for, where, and what is known of it."""

    config: Config
    devices: Devices
    times: Times
    room: Room
    succession: Succession | None = None
    calibrated: Callable[[Objective], Calibration | None] = lambda _: None  # what is, elsewhere

    def plan(self, config: Config) -> Plan:
        """Raises ValueError on what cannot be planned."""
        return search_plan(config, self.devices, self.times.calibration, None, self.succession)


@dataclass(frozen=True)
class Idea:
    """What could be done with the window."""

    lever: Lever
    what: str
    config: Config
    price: tuple[str, ...] = ()  # in quality, in words
    varied: Variant | None = None  # what it changes of the objective


@dataclass(frozen=True)
class Choice:
    """An idea, weighed."""

    idea: Idea
    plan: Plan
    forecast: Forecast
    fits: bool
    is_assumed: bool  # its times are not measured
    fewer: int  # evaluations than were asked for; negative: more
    smallest_gain: float | None  # that its verdict would see 8 times of 10
    no_go: tuple[str, ...]  # why it cannot come to a Go

    @property
    def go_is_possible(self) -> bool:
        return self.plan.confirmation is not None and not self.no_go

    def price(self) -> tuple[str, ...]:
        """What it costs in quality, in words and numbers."""
        said = [*self.idea.price]
        if self.fewer > 0:
            said.insert(0, f"{self.fewer} evaluations fewer")
        if self.fewer < 0:
            said.append(f"{-self.fewer} evaluations more")
        if self.plan.confirmation is None:
            said.append("no comparison on fresh seeds: it never says Go")
        if self.smallest_gain:
            said.append(f"sees a gain of {self.smallest_gain:.2%} 8 times of 10")
        return (*said, *self.no_go)

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        shape = self.plan.resolved
        return {
            "lever": self.idea.lever,
            "what": self.idea.what,
            "fits": self.fits,
            "tier": self.plan.tier,
            "population": shape.population,
            "generations": shape.generations,
            "seeds_per_candidate": shape.seeds_per_candidate,
            "evaluations": shape.evaluations,
            "evaluations_fewer": self.fewer,
            "settings": {} if self.idea.varied is None else self.idea.varied.settings,
            "hours": self.forecast.hours_p50,
            "needed_hours": self.forecast.hours_free,
            "is_assumed": self.is_assumed,
            "price": list(self.price()),
            "smallest_gain": self.smallest_gain,
            "go_is_possible": self.go_is_possible,
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
    """What was asked for first, then what could be instead: ranked, the first that fits is best.

    Raises NoTimeError without a time, ValueError on what cannot be planned.
    """
    asked = _weighed(wanted, Idea("as asked", "as asked", wanted.config))
    if asked.fits:
        is_short = asked.forecast.hours_free < (1 - A_LOT) * wanted.room.hours
        return [asked, *(_more(wanted, asked) if is_short else ())]
    found = [asked, *_generations(wanted, asked), *_tiers(wanted, asked), *_seeds(wanted, asked)]
    found += _flops(wanted, asked, wanted.config, "flops")
    found = _each_once(found)
    if any(choice.fits for choice in found):
        return found
    least = wanted.config.having(
        {"search.tier": "min", "search.generations": 2, "search.seeds_per_candidate": 1}
    )
    return [*found, *_flops(wanted, asked, least, "all of these")]


def _each_once(found: Sequence[Choice]) -> list[Choice]:
    """Without what spends the window as an earlier one does, under another tier's name."""
    spent: dict[tuple[object, ...], Choice] = {}
    for choice in found:
        plan, varied = choice.plan, choice.idea.varied
        settings = None if varied is None else repr(varied.settings)
        spent.setdefault((plan.resolved, repr(plan.confirmation), settings), choice)
    return list(spent.values())


def best(found: Sequence[Choice]) -> Choice | None:
    """The first that fits and takes no more than was asked for."""
    return next((choice for choice in found if choice.fits and choice.idea.lever != "more"), None)


def too_short(found: Sequence[Choice], room: Room) -> str:
    """What it means that nothing fits, and the least that would."""
    least = min(found, key=lambda choice: choice.forecast.hours_free)
    return (
        f"nothing fits into {duration(3600 * room.hours)} ({room.text}): the least, "
        f"{least.idea.what}, needs {duration(3600 * least.forecast.hours_free)}. Give a longer "
        f"{room.flag}"
    )


def _fewer(wanted: Wanted, asked: Choice, whole: Choice, lever: Lever) -> Choice:
    """`whole`, or with as many of its generations as fit, two at least."""
    most = whole.plan.resolved.generations
    generations = max(2, _generations_that_fit(whole, wanted.room))
    if whole.fits or generations >= most:
        return whole
    fewer = _cut(wanted, asked, whole, lever, generations)
    while not fewer.fits and generations > 2:
        generations -= 1
        fewer = _cut(wanted, asked, whole, lever, generations)
    return fewer


def _cut(wanted: Wanted, asked: Choice, whole: Choice, lever: Lever, generations: int) -> Choice:
    """`whole` with so many of its generations."""
    what = f"{generations} of {whole.plan.resolved.generations} generations"
    idea = replace(
        whole.idea,
        lever=lever,
        what=what if whole is asked else f"{whole.idea.what}, {what}",
        config=whole.idea.config.having({"search.generations": generations}),
        price=(*whole.idea.price, "the search goes less far"),
    )
    return _weighed(wanted, idea, asked.plan)


def _generations(wanted: Wanted, asked: Choice) -> Iterator[Choice]:
    if (fewer := _fewer(wanted, asked, asked, "generations")) is not asked:
        yield fewer


def _tiers(wanted: Wanted, asked: Choice) -> Iterator[Choice]:
    """The lower ones, the highest first."""
    config, tiers = wanted.config, get_args(Tier)
    for tier in reversed(tiers[: tiers.index(asked.plan.tier)]):
        price = (INTENT[asked.plan.phase, tier],)
        idea = Idea("tier", f"tier {tier}", config.having({"search.tier": tier}), price)
        yield _fewer(wanted, asked, _weighed(wanted, idea, asked.plan), "tier")


def _seeds(wanted: Wanted, asked: Choice) -> Iterator[Choice]:
    """The most seeds a candidate that fit; with one seed fewer generations too."""
    most = asked.plan.resolved.seeds_per_candidate
    for seeds in range(most - 1, 0, -1):
        config = wanted.config.having({"search.seeds_per_candidate": seeds})
        price = (f"a candidate's score is {sqrt(most / seeds):.2g} times as noisy",)
        idea = Idea("seeds", f"{seeds} of {most} seeds a candidate", config, price)
        whole = _weighed(wanted, idea, asked.plan)
        if whole.fits or seeds == 1:
            yield _fewer(wanted, asked, whole, "seeds")
            return


def _flops(wanted: Wanted, asked: Choice, config: Config, lever: Lever) -> list[Choice]:
    """The most FLOPs an evaluation with which it fits; else the least that can be trained."""
    plan, last = wanted.plan(config), None
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
    if (varied := objective.rung(factor)) is None:
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
    idea = Idea(lever, what, config.with_objective(shorter), price, varied)
    calibration = wanted.calibrated(shorter) or wanted.times.for_work(work)
    limits = limits_for(
        evaluation.limit_seconds, evaluation.stall_seconds, wanted.devices, calibration
    )
    changed = {"calibration": calibration, "limits": limits}
    return _weighed(wanted, idea, asked.plan, plan.model_copy(update=changed))


def _more(wanted: Wanted, asked: Choice) -> Iterator[Choice]:
    """The next tiers, whole or in part, and more seeds for the verdict."""
    config, tiers = wanted.config, get_args(Tier)
    for tier in tiers[tiers.index(asked.plan.tier) + 1 :]:
        higher = config.having({"search.tier": tier, "search.generations": None})
        idea = Idea("more", f"tier {tier}", higher)
        above = _fewer(wanted, asked, _weighed(wanted, idea, asked.plan), "more")
        if above.fits and above.fewer < 0:
            yield above
    confirmation, planned = asked.plan.confirmation, config.verdict.confirm_seeds or VERDICT_SEEDS
    for seeds in MORE_CONFIRM_SEEDS if confirmation is not None else ():
        surer = config.having({"verdict.confirm_seeds": seeds})
        idea = Idea("more", f"{seeds} confirmation seeds", surer)
        if seeds > planned and (found := _weighed(wanted, idea, asked.plan)).fits:
            yield found
            return


def _weighed(
    wanted: Wanted, idea: Idea, asked: Plan | None = None, plan: Plan | None = None
) -> Choice:
    """The idea beside what was `asked` for, by its own plan or the one that was made of it.

    Raises NoTimeError without a time, ValueError on what cannot be planned.
    """
    plan = wanted.plan(idea.config) if plan is None else plan
    took, calibration = forecast_of(plan, wanted.times), plan.calibration
    if took is None or calibration is None:
        raise NoTimeError
    seen = smallest_gain(plan)
    return Choice(
        idea=idea,
        plan=plan,
        forecast=took,
        fits=took.hours_free <= wanted.room.hours * (1 + 1e-9),  # sums of the same parts may differ
        is_assumed=not calibration.samples,
        fewer=0 if asked is None else asked.resolved.evaluations - plan.resolved.evaluations,
        smallest_gain=None if seen is None else seen.gain,
        no_go=why_no_go(plan.resolved, plan.confirmation, plan.thresholds),
    )


def _generations_that_fit(choice: Choice, room: Room) -> int:
    """About how many of its generations do, not too few; 0 where not even one does."""
    generations, took = choice.plan.resolved.generations, choice.forecast
    left = room.hours - (took.hours_free - took.search_hours_p50)
    return max(0, min(generations, floor(left * generations / took.search_hours_p50 + 1e-9)))


COLUMNS = (">", "choice", "P x G x S", ">evaluations")


def fit_text(found: Sequence[Choice], room: Room) -> str:
    """The choices side by side, ranked, and which one a run would take."""
    lines = [
        f"# What fits into {duration(3600 * room.hours)} ({room.text})",
        "",
        *table((*COLUMNS, ">takes", ">must be free", "fits"), map(_row, count(1), found)),
        "",
        *(_price(number, choice) for number, choice in enumerate(found, 1)),
        "",
        f"**{plain(_verdict(found, room))}**",
        "",
        "More must be free than a choice takes: the last evaluations' whole limits "
        "(evaluation.limit_seconds), so that none is begun that could end too late; the long "
        "run that follows a Go; and what nine in ten simulated runs stay within.",
    ]
    if any(choice.is_assumed for choice in found):
        lines += ["", "*assumed*: by a throughput that was not measured here, of which 0.7 counts."]
    return "\n".join(lines)


def _row(number: int, choice: Choice) -> tuple[object, ...]:
    shape, took = choice.plan.resolved, choice.forecast
    return (
        number,
        plain(choice.idea.what),
        shape.in_words,
        shape.evaluations,
        duration(3600 * took.hours_p50) + ", assumed" * choice.is_assumed,
        duration(3600 * took.hours_free),
        "yes" if choice.fits else "no",
    )


def _price(number: int, choice: Choice) -> str:
    said = "; ".join(choice.price()) or "what was asked for"
    return f"{number}. {plain(said)}."


def _verdict(found: Sequence[Choice], room: Room) -> str:
    chosen = best(found)
    if chosen is None:
        return f"{sentence_case(too_short(found, room))}."
    number = found.index(chosen) + 1
    said = f"Choice {number} fits: {chosen.idea.what}."
    unused = room.hours - chosen.forecast.hours_free
    if any(choice.idea.lever == "more" for choice in found):
        said += f" {duration(3600 * unused)} stay unused: more could be had, see below it."
    return f"{said} --out FILE writes it into a configuration; --choice N another one."


Values = Mapping[str, Any]
"""By dotted key; None: the key is taken away."""


def chosen(choice: Choice) -> dict[str, Any]:
    """The keys that fitting decides."""
    search, varied = choice.idea.config.search, choice.idea.varied
    values: dict[str, Any] = {
        "search.tier": choice.plan.tier,
        "search.generations": search.generations,
        "search.seeds_per_candidate": search.seeds_per_candidate,
    }
    if varied is not None:
        values |= {f"training.{name}": value for name, value in varied.settings.items()}
    if (seeds := choice.idea.config.verdict.confirm_seeds) is not None:
        values["verdict.confirm_seeds"] = seeds
    return values


def applied(text: str, values: Values) -> str:
    """The TOML document with these values in it, and its comments kept.

    Raises ValueError where it is no TOML, or has a value where a table belongs.
    """
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ValueError(f"--out: expected TOML: {error}") from error
    for key, value in values.items():
        _put(document, key.split("."), value)
    return tomlkit.dumps(document)


def write(path: Path, text: str) -> str:
    """Replace the file whole; returns what changed, as a diff. Raises OSError."""
    before = read(path)
    write_aside(path, text.encode())
    return difference(path, before, text)


def read(path: Path) -> str:
    """The file as text; empty where there is none. Raises OSError, ValueError on other bytes."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise ValueError(f"--out: {path} is no text: {error}") from error


def difference(path: Path, before: str, after: str) -> str:
    """What changes, line by line; empty where nothing does."""
    lines = (before.splitlines(), after.splitlines())
    return "\n".join(difflib.unified_diff(*lines, str(path), str(path), lineterm="", n=1))


def _put(table: Any, path: list[str], value: Any) -> None:
    *above, name = path
    for part in above:
        if part not in table:
            if value is None:
                return
            table[part] = tomlkit.table()
        table = table[part]
        if not isinstance(table, Mapping):
            raise ValueError(f"--out: expected a table [{part}], got {part} = {table}")
    if value is None:
        table.pop(name, None)
    elif table.get(name) != value:
        table[name] = value


def profiles(objective: Objective, times: Times, room: Room) -> list[dict[str, Any]]:
    """What one training of each of the objective's profiles takes, by exact FLOPs.

    `estimate` is None where no time is known, or where the settings pay for no step.
    """
    there = registry.named(objective.spec.name, objective.spec.settings).profiles
    return [
        {
            "profile_name": name,
            "profile": dict(settings),
            "estimate": _training(objective, dict(settings), times, room),
        }
        for name, settings in there.items()
    ]


def _training(
    objective: Objective, settings: dict[str, Any], times: Times, room: Room
) -> dict[str, Any] | None:
    before = objective.flops()
    after = registry.load(registry.varied(objective.spec, settings)).flops()
    if before is None or after is None or not before.total or after.steps < 1:
        return None
    scaled = times.for_work(after.total / before.total)
    if scaled is None:
        return None
    hours = scaled.median_seconds / 3600
    return {
        "total_steps": after.steps,
        "total_tokens": after.tokens,
        "estimated_hours": hours,
        "tokens_per_second": after.tokens / scaled.median_seconds,
        "fits_in_window": hours <= room.hours,
        "assumed": True,
    }
