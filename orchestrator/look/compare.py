"""Runs side by side: whether their scores can be compared, gains, cost, what differs, knobs.

Every list about runs is in their order. Scores are better when lower; a gain is relative to the
run's own baseline.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import combinations, islice
from os.path import normpath
from pathlib import Path
from statistics import fmean
from typing import Any

from budgets.blocks import Items, Table, Text
from budgets.campaign.names import shortened
from budgets.plain import command, plain
from budgets.statistics.comparison import Gain, better, gain
from budgets.words import listed, number, percent, precise_duration
from objectives.settings import cut
from orchestrator.look import text
from orchestrator.look.answer import answer
from orchestrator.look.blocks import Block, Mood, Section
from orchestrator.look.document import plain_values
from orchestrator.look.rows import Balance, Knob
from orchestrator.look.run import Run
from orchestrator.look.sections import facts
from orchestrator.records.manifest import campaign_of_runs
from orchestrator.records.recorded import find_run, load_state, recorded_plan, runs_of_cell

FEWEST, MOST = 2, 20
"""Runs that are side by side."""

MOST_ALL_PAIRS = 6
"""Runs of which each winner is compared with each."""

NAME_WIDTH, VALUE_WIDTH = 68, 24
"""Characters: of a whole id and a number that tells it apart; of a value in a sentence."""

MOST_NAMED = 3

TIMES = ("device-hours", "hours open")
"""Currencies that are said as time: a short run has too few hours."""

OBJECTIVE, DATA, SPACE = "Settings of the objective", "Data", "Space"
SEARCH, VERSIONS, MACHINE = "Search", "Versions", "Machine"
DECIDE = {OBJECTIVE: "the objective or its settings", DATA: "the data", SPACE: "the space of knobs"}
"""What a fingerprint is of, as far as it is on record."""


@dataclass(frozen=True)
class Fact:
    """Something that was asked for or was there, in every run. None: nothing is on record."""

    part: str
    name: str
    values: tuple[str | None, ...]

    def __str__(self) -> str:
        """`persists (none, 0.2)`: its different values in the order of the runs."""
        values = ("none" if value is None else cut(value, VALUE_WIDTH) for value in self.values)
        return f"{self.name} ({listed(list(dict.fromkeys(values)), MOST_NAMED + 1)})"


@dataclass(frozen=True)
class Duel:
    """One run's winner against another's, on fresh seeds that both were evaluated on."""

    run: int
    against: int
    gain: Gain


class Comparison:
    """Runs side by side."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = tuple(runs)
        self.names = tuple(shortened([run.plan.run_id for run in runs], NAME_WIDTH))

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Runs, by number, whose objectives have the same fingerprint.

        It is of everything that decides a score (settings, space, data, code): only their scores
        can be compared.
        """
        found: dict[str, list[int]] = {}
        for place, run in enumerate(self.runs):
            found.setdefault(run.plan.objective_fingerprint or f"none of {place}", []).append(place)
        return tuple(map(tuple, found.values()))

    @property
    def is_comparable(self) -> bool:
        return len(self.groups) == 1

    @cached_property
    def differences(self) -> tuple[Fact, ...]:
        """Every fact on record that is not the same in all of them, what decides scores first."""
        known = [dict(_facts(run)) for run in self.runs]
        keys = dict.fromkeys(key for own in known for key in own)
        found = [Fact(*key, tuple(own.get(key) for own in known)) for key in keys]
        parts = [*DECIDE, SEARCH]
        order = {part: place for place, part in enumerate(parts)}
        differing = [fact for fact in found if len(set(fact.values)) > 1]
        return tuple(sorted(differing, key=lambda fact: order.get(fact.part, len(parts))))

    @property
    def why_not(self) -> tuple[str, ...]:
        """What sets the groups apart; empty where there is one."""
        if self.is_comparable:
            return ()
        found = [
            f"{what}: {_listed(self._of(part))}" for part, what in DECIDE.items() if self._of(part)
        ]
        return tuple(found or ["the objective's code: nothing else on record differs"])

    @property
    def mind(self) -> tuple[str, ...]:
        """What differs and moves the last digits of scores that can be compared, or their luck."""
        if all(len(group) == 1 for group in self.groups):
            return ()
        found = []
        if devices := [fact for fact in self._of(MACHINE) if fact.name == "devices"]:
            found.append(f"different devices move the last digits of a score: {_listed(devices)}")
        if versions := self._of(VERSIONS):
            found.append(f"so may other versions: {_listed(versions)}")
        search = {fact.name: fact for fact in self._of(SEARCH)}
        if (seed := search.get("evaluation seed")) is not None:
            found.append(f"no two evaluations had the same luck: {seed}")
        if (seeds := search.get("seeds a candidate")) is not None:
            found.append(f"a candidate's score is a mean of more seeds in some: {seeds}")
        return tuple(found)

    def _of(self, part: str) -> list[Fact]:
        return [fact for fact in self.differences if fact.part == part]

    @cached_property
    def duels(self) -> tuple[Duel, ...]:
        """Winners on seeds that both have and nobody was picked on, of one measure."""
        return tuple(
            Duel(one, other, found)
            for group in self.groups
            for one, other in _pairs(group)
            if (found := _duel(self.runs[one], self.runs[other])).mean is not None
        )

    @cached_property
    def heading(self) -> str:
        if self.is_comparable:
            return "These scores can be compared"
        if len(self.groups) < len(self.runs):
            return "Only some of these scores can be compared"
        return "These scores cannot be compared"

    @property
    def mood(self) -> Mood:
        return "open" if self.is_comparable else "trouble"

    @property
    def sentence(self) -> str:
        """Which runs gained anything, each over its own baseline."""
        gains = [
            (name, own)
            for name, run in zip(self.names, self.runs, strict=True)
            if (own := decisive(run)) is not None
        ]
        shown = [(name, own) for name, own in gains if own.is_shown]
        if not shown:
            why = "" if gains else ": nothing was compared on them yet"
            return f"None of these runs shows a gain on fresh seeds{why}."
        shown.sort(key=lambda pair: -(pair[1].mean or 0.0))
        named = [
            f"{name} {better(own.mean or 0.0)} (at least {percent(own.lower or 0.0, 3)})"
            for name, own in shown
        ]
        return (
            "More than chance, each over its own baseline on fresh seeds: "
            f"{listed(named, MOST_NAMED + 1)}."
        )


def comparison(directories: Sequence[Path], now: datetime) -> Comparison:
    """The runs in those directories. Raises as `load_state` does, of each."""
    return Comparison([Run(load_state(own), now, own) for own in directories])


def baseline_score(run: Run) -> float | None:
    """As calibrated; where nothing was, its mean on the fresh seeds of the comparison."""
    if run.baseline is not None:
        return run.baseline.mean
    known = _fresh(run, "reference")
    return fmean(known.values()) if known else None


def decisive(run: Run) -> Gain | None:
    """The winner's gain, which the verdict rests on; None: not compared yet, or never."""
    return next((own.gain for own in run.gains if own.is_decisive), None)


def _fresh(run: Run, panel: str) -> dict[int, float]:
    """Scores by seed of a comparison's first configuration: the baseline, or the winner."""
    arms = (arm.scores for arm in run.arms if arm.comparison == panel)
    return {seed: score for seed, score in next(arms, {}).items() if score is not None}


def _duel(one: Run, other: Run) -> Gain:
    levels = (own.level for own in map(decisive, (one, other)) if own is not None)
    return gain(_fresh(one, "winner"), _fresh(other, "winner"), next(levels, 0.01))


def _pairs(group: Sequence[int]) -> Iterable[tuple[int, int]]:
    """All of them; of many runs the first against each other one."""
    if len(group) <= MOST_ALL_PAIRS:
        return combinations(group, 2)
    return ((group[0], other) for other in group[1:])


def _facts(run: Run) -> Iterator[tuple[tuple[str, str], str]]:
    plan = run.plan
    own = facts(run)
    own[OBJECTIVE] = {"objective": run.objective, **own[OBJECTIVE]}
    own[SPACE] = {knob.name: _range(knob) for knob in run.knobs}
    own[SEARCH] = {"phase": plan.phase, "tier": plan.tier or "none", **own[SEARCH]}
    own[SEARCH].pop("objective's fingerprint", None)
    own[MACHINE] = {"devices": text.devices(run)}
    if plan.calibration is not None and plan.calibration.ledger:
        own[MACHINE]["head of the calibration's ledger"] = plan.calibration.ledger[:12]
    for part, named in own.items():
        yield from (((part, name), value) for name, value in named.items())


def _range(knob: Knob) -> str:
    """`log10, 0.0001 to 0.1, baseline 0.003`."""
    step = f", every {knob.step}" if knob.step != 1 else ""
    return (
        f"{knob.kind}, {number(knob.low, 4)} to {number(knob.high, 4)}{step}, "
        f"baseline {number(knob.baseline, 4)}"
    )


def _listed(found: Sequence[Fact]) -> str:
    return listed(list(map(str, found)), 2 * MOST_NAMED + 1)


# As sections, and as JSON


def sections(own: Comparison) -> tuple[Section, ...]:
    """What people are shown of them."""
    duels = [Section("duels", "Winner against winner", list(_duels(own)))] if own.duels else []
    return (
        Section("scores", "Can the scores be compared?", list(_scores(own))),
        Section("runs", "What each run found", [_found(own), _places(own)]),
        *duels,
        Section("cost", "What each run cost", [_cost(own)]),
        Section("differences", "What differs", list(_differences(own))),
        Section("knobs", "What each run recommends", list(_knobs(own))),
    )


def document(own: Comparison) -> dict[str, Any]:
    """The same as plain JSON values. Runs are referred to by their place in the list."""
    return {
        "runs": [
            {
                "run_id": run.plan.run_id,
                "directory": str(run.directory),
                "title": answer(run).title,
                "fingerprint": run.plan.objective_fingerprint,
                "baseline": baseline_score(run),
                "sd": None if run.baseline is None else run.baseline.sd,
                "gain": plain_values(decisive(run)),
                "evaluations_by_status": run.evaluations_by_status,
                "balances": plain_values(run.balances),
                "timing": plain_values(run.timing),
                "knobs": plain_values(run.knobs),
            }
            for run in own.runs
        ],
        "comparable": own.is_comparable,
        "groups": plain_values(own.groups),
        "why_not": list(own.why_not),
        "mind": list(own.mind),
        "winner_against_winner": plain_values(own.duels),
        "differences": plain_values(own.differences),
    }


def _scores(own: Comparison) -> Iterator[Block]:
    if own.is_comparable:
        fingerprint = own.runs[0].plan.objective_fingerprint
        yield Text(
            f"Yes: the objective's fingerprint is `{fingerprint[:12]}` in all runs, and with it "
            "everything that decides a score is the same."
        )
    else:
        no = "No" if len(own.groups) == len(own.runs) else "Not all of them"
        yield Text(
            f"**{no}.** Only scores of objectives with the same fingerprint (settings, space, "
            "data, code) measure the same. A gain is relative to the run's own baseline, and of "
            "that measure too."
        )
        yield Items([f"What differs: {plain(why)}." for why in own.why_not])
        yield Table(
            "Runs whose scores can be compared with each other",
            ["group", "runs", "objective", "fingerprint"],
            [[str(place), *_group(own, group)] for place, group in enumerate(own.groups, 1)],
        )
    if own.mind:
        yield Items([f"Mind that {plain(what)}." for what in own.mind])


def _group(own: Comparison, group: Sequence[int]) -> list[str]:
    first = own.runs[group[0]]
    names = ", ".join(plain(own.names[place]) for place in group)
    return [names, plain(first.objective), f"`{first.plan.objective_fingerprint[:12]}`"]


def _rows(own: Comparison) -> Iterator[tuple[str, Run]]:
    """Each run with its name as a table has it."""
    return zip(map(plain, own.names), own.runs, strict=True)


def _found(own: Comparison) -> Table:
    gains = [decisive(run) for run in own.runs]
    levels = " or ".join(map(percent, sorted({one.level for one in gains if one is not None})))
    missed = f"; each end of an interval is missed with a probability of {levels}" if levels else ""
    rows = [
        [
            name,
            run.plan.phase if run.plan.tier is None else f"{run.plan.phase}, {run.plan.tier}",
            plain(answer(run).title),
            number(baseline_score(run)),
            number(None if run.baseline is None else run.baseline.sd, 4),
            *_gain(found),
        ]
        for (name, run), found in zip(_rows(own), gains, strict=True)
    ]
    return Table(
        f"Gains are over the run's own baseline on fresh seeds{missed}",
        ["run", "what", "verdict", ">baseline", ">noise (sd)", ">gain", ">interval", ">seeds"],
        rows,
    )


def _gain(own: Gain | None) -> tuple[str, str, str]:
    if own is None or own.mean is None:
        return "-", "-", "-" if own is None else str(own.pairs)
    sure = "-"
    if own.lower is not None and own.upper is not None:
        sure = f"{100 * own.lower:+.2f} to {100 * own.upper:+.2f}%"
    return f"{100 * own.mean:+.2f}%", sure, str(own.pairs)


def _places(own: Comparison) -> Table:
    return Table(
        "How evaluations ended, and where each run lies",
        ["run", "evaluations by status", "directory"],
        [[name, plain(text.statuses(run)), plain(str(run.directory))] for name, run in _rows(own)],
    )


def _duels(own: Comparison) -> Iterator[Block]:
    rows = []
    for duel in own.duels:
        chance = "worse, above chance" if duel.gain.is_loss else "may be chance"
        shown = "above chance" if duel.gain.is_shown else chance
        names = (plain(own.names[place]) for place in (duel.run, duel.against))
        rows.append([*names, *_gain(duel.gain), shown])
    yield Table(
        "The winner of the one over the winner of the other, on fresh seeds that both were "
        "evaluated on",
        ["winner of", "over that of", ">gain", ">interval", ">seeds", "is it chance"],
        rows,
    )
    if len(rows) > 1:
        yield Text(
            f"Each interval is of one comparison: of {len(rows)} some may look like more than "
            "chance by chance."
        )


def _cost(own: Comparison) -> Table:
    currencies = list(
        dict.fromkeys(b.currency for run in own.runs for b in run.balances if b.counts)
    )
    titles = [*currencies, "estimated time", "actual time", "time accuracy"]
    rows = []
    for name, run in _rows(own):
        balances = {b.currency: _spent(b) for b in run.balances if b.counts}
        times = ("-", "-", "-")
        if (timing := run.timing) is not None:
            hours = (timing.estimated_hours, timing.actual_hours)
            estimated, actual = (precise_duration(3600 * each) for each in hours)
            times = (estimated, actual, f"{timing.accuracy:.0f}%")
        rows.append([name, *(balances.get(one, "-") for one in currencies), *times])
    caption = "Spent, and of how much; time accuracy is estimated / actual, good from 85 to 115%"
    return Table(caption, ["run", *(f">{title}" for title in titles)], rows)


def _spent(own: Balance) -> str:
    spent, cap = (
        precise_duration(3600 * value)
        if own.currency in TIMES and value is not None
        else text.amount(own, value)
        for value in (own.spent, own.cap)
    )
    return spent if own.cap is None else f"{spent} of {cap}"


def _differences(own: Comparison) -> Iterator[Block]:
    if not own.differences:
        yield Text("Nothing that is on record.")
        return
    yield Table(
        "Not the same in all of them; -: not on record, or not there",
        ["of", "what", *map(plain, own.names)],
        [
            [
                fact.part,
                plain(fact.name),
                *("-" if value is None else plain(value) for value in fact.values),
            ]
            for fact in own.differences
        ],
    )


def _knobs(own: Comparison) -> Iterator[Block]:
    recommending = [
        (name, {knob.name: knob for knob in run.knobs})
        for name, run in _rows(own)
        if any(knob.recommended is not None for knob in run.knobs)
    ]
    if not recommending:
        yield Text("None of these runs recommends anything: the baselines stay.")
        return
    rows = dict.fromkeys(name for _, knobs in recommending for name in knobs)
    yield Table(
        "The value that each run recommends, and its place in the knob's range from 0 to 100%",
        ["knob", *(f">{name}" for name, _ in recommending)],
        [
            [plain(name), *(_recommended(knobs.get(name)) for _, knobs in recommending)]
            for name in rows
        ],
    )
    with_one = {name for name, _ in recommending}
    if none := [name for name, _ in _rows(own) if name not in with_one]:
        yield Text(f"Nothing is recommended by {', '.join(none)}.")


def _recommended(knob: Knob | None) -> str:
    if knob is None:
        return "not searched"
    if knob.recommended is None or knob.recommended_unit is None:
        return "-"
    return f"{number(knob.recommended, 4)} ({knob.recommended_unit:.0%})"


# Which runs are meant


def places(names: Sequence[str], root: Path) -> list[Path]:
    """The directories of those runs, each once, in their order.

    A campaign whose cells are runs of their own stands for those of them that have begun. Raises
    ValueError on what is no run, on too few of them and on too many.
    """
    found: dict[Path, Path] = {}
    for name in names:
        for place in _runs_of(name, root):
            found.setdefault(place.resolve(), place)
    directories = list(found.values())
    if not FEWEST <= len(directories) <= MOST:
        raise ValueError(
            f"expected {FEWEST} to {MOST} different runs to compare, got {len(directories)}"
            f"{_hint(directories)}"
        )
    return directories


def _hint(found: Sequence[Path]) -> str:
    """What compares the conditions of a campaign in one ledger."""
    plan = recorded_plan(found[0]) if len(found) == 1 else None
    if plan is None or plan.campaign is None:
        return ""
    look = command("report", str(found[0]))
    return f": it is a campaign, whose conditions its report compares. See: {look}"


def _runs_of(name: str, root: Path) -> Iterator[Path]:
    campaign = campaign_of_runs(name, root)
    if campaign is None:
        yield find_run(name, root)
        return
    place, manifest = campaign
    for run in manifest.runs:
        yield from islice(runs_of_cell(Path(normpath(place / run.directory))), 1)
