"""Runs side by side: whether their scores can be compared, gains, cost, what differs, knobs.

Every list about runs is in their order. Scores are better when lower; a gain is relative to the
run's own baseline.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from budgets.formatting import listed, number, plain, precise_duration, shortened
from budgets.stats import Gain, gain
from objectives.settings import cut
from orchestrator.look import text
from orchestrator.look.answer import answer
from orchestrator.look.blocks import Block, Items, Section, Table, Text, table_of
from orchestrator.look.document import plain_values
from orchestrator.look.evidence import gain_in_words
from orchestrator.look.run import Run
from orchestrator.look.sections import CURRENCIES, amount, facts
from orchestrator.records.recorded import find_run

FEWEST, MOST = 2, 20
"""Runs that are side by side."""

NAME_WIDTH, VALUE_WIDTH, CELL_WIDTH, MOST_NAMED = 68, 24, 40, 6
"""Characters of a name, of a value in a sentence and in a table; how many a sentence has."""

DECIDE = ("Objective", "Data", "Space")
"""What a fingerprint is of, as far as it is on record."""


@dataclass(frozen=True)
class Fact:
    """Something on record that is not the same in all runs; None: it is not on record of one."""

    part: str
    name: str
    values: tuple[str | None, ...]

    def __str__(self) -> str:
        """`persists (none and 0.2)`: its different values in the order of the runs."""
        values = ("none" if value is None else cut(value, VALUE_WIDTH) for value in self.values)
        return f"{self.name} ({listed(dict.fromkeys(values), MOST_NAMED)})"


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
        known = [
            {(part, name): said for part, own in facts(run).items() for name, said in own.items()}
            for run in self.runs
        ]
        keys = dict.fromkeys(key for own in known for key in own)
        found = [Fact(*key, tuple(own.get(key) for own in known)) for key in keys]
        differing = [fact for fact in found if len(set(fact.values)) > 1]
        return tuple(sorted(differing, key=lambda fact: fact.part not in DECIDE))

    @property
    def why_not(self) -> tuple[str, ...]:
        """What sets the groups apart; empty where there is one."""
        if self.is_comparable:
            return ()
        found = [str(fact) for fact in self.differences if fact.part in DECIDE]
        return tuple(found or ["the objective's code: nothing else on record differs"])

    @cached_property
    def duels(self) -> tuple[Duel, ...]:
        """Winners on seeds that both have and nobody was picked on, of one measure."""
        level = min((own.level for own in map(decisive, self.runs) if own), default=0.01)
        panels = [run.state.comparison("winner") for run in self.runs]
        scores = [{} if own is None else own.scores_by_seed(0) for own in panels]
        pairs = [pair for group in self.groups for pair in combinations(group, 2)]
        duels = (Duel(a, b, gain(scores[a], scores[b], level)) for a, b in pairs)
        return tuple(duel for duel in duels if duel.gain.mean is not None)

    @property
    def heading(self) -> str:
        if self.is_comparable:
            return "These scores can be compared"
        if len(self.groups) < len(self.runs):
            return "Only some of these scores can be compared"
        return "These scores cannot be compared"

    @property
    def sentence(self) -> str:
        """Which runs gained more than chance, each over its own baseline."""
        gains = ((name, decisive(run)) for name, run in zip(self.names, self.runs, strict=True))
        shown = [f"{name} {gain_in_words(own)}" for name, own in gains if own and own.is_shown]
        if not shown:
            return "None of these runs shows a gain on fresh seeds."
        return (
            f"More than chance, over its own baseline on fresh seeds: {listed(shown, MOST_NAMED)}."
        )


def decisive(run: Run) -> Gain | None:
    """The winner's gain, which the verdict rests on; None: not compared yet, or never."""
    return next((own.gain for own in run.gains if own.is_decisive), None)


# As sections, and as JSON


def sections(own: Comparison) -> tuple[Section, ...]:
    """What people are shown of them; no section where there is nothing to show."""
    differing = [
        {
            f"{fact.part}: {fact.name}": cut(fact.values[place] or "-", CELL_WIDTH)
            for fact in own.differences
        }
        for place in range(len(own.runs))
    ]
    found = (
        Section("scores", "Can the scores be compared?", list(_scores(own))),
        Section("runs", "What each run found, and its cost", _table(own, map(_told, own.runs))),
        Section("differences", "What differs", _table(own, differing)),
        Section("knobs", "What each run recommends", _table(own, map(_knobs, own.runs))),
    )
    return tuple(section for section in found if section.blocks)


def document(own: Comparison) -> dict[str, Any]:
    """The same as plain JSON values. Runs are referred to by their place in the list."""
    of_a_run = ("evaluations_by_status", "balances", "timing", "knobs")
    of_all = ("groups", "why_not", "differences")
    return {
        "runs": [
            {
                "run_id": run.plan.run_id,
                "directory": str(run.directory),
                "title": answer(run).title,
                "fingerprint": run.plan.objective_fingerprint,
                "baseline": None if run.baseline is None else run.baseline.mean,
                "sd": None if run.baseline is None else run.baseline.sd,
                "gain": plain_values(decisive(run)),
                **{name: plain_values(getattr(run, name)) for name in of_a_run},
            }
            for run in own.runs
        ],
        "comparable": own.is_comparable,
        "winner_against_winner": plain_values(own.duels),
        **{name: plain_values(getattr(own, name)) for name in of_all},
    }


def _table(own: Comparison, told: Iterable[Mapping[str, str]]) -> list[Table]:
    """A column for each run, a row for each name of what any of them tells."""
    columns = dict(zip(map(plain, own.names), told, strict=True))
    names = dict.fromkeys(name for column in columns.values() for name in column)
    rows = [
        {"what": plain(name)}
        | {run: plain(column.get(name, "-")) for run, column in columns.items()}
        for name in names
    ]
    return table_of("", rows)


def _scores(own: Comparison) -> Iterator[Block]:
    yield Text("Scores and gains measure the same where the objective's fingerprint is the same.")
    groups = (listed(plain(own.names[place]) for place in group) for group in own.groups)
    said = [f"Comparable with each other: {names}." for names in groups]
    if own.why_not:
        said.append(f"What differs: {plain(listed(own.why_not, MOST_NAMED))}.")
    for duel in own.duels:
        one, other = (plain(own.names[place]) for place in (duel.run, duel.against))
        shared = "on fresh seeds that both have"
        said.append(
            f"The winner of {one} over that of {other}, {shared}: {gain_in_words(duel.gain)}."
        )
    yield Items(said)


def _told(run: Run) -> dict[str, str]:
    gain, timing, baseline = decisive(run), run.timing, run.baseline
    told = {
        "phase and tier": f"{run.plan.phase} {run.plan.tier or ''}",
        "fingerprint": run.plan.objective_fingerprint[:12],
        "verdict": answer(run).title,
        "gain on fresh seeds": "-" if gain is None else gain_in_words(gain),
        "baseline": "-" if baseline is None else number(baseline.mean),
        "noise (sd)": "-" if baseline is None else number(baseline.sd, 4),
        "evaluations by status": text.statuses(run),
    }
    for own in run.balances:
        if own.counts:
            of = "" if own.cap is None else f" of {amount(own, own.cap)}"
            told[CURRENCIES.get(own.currency, own.currency)] = f"{amount(own, own.spent)}{of}"
    if timing is not None:
        told["estimated"] = precise_duration(3600 * timing.estimated_hours)
        told["it took"] = precise_duration(3600 * timing.actual_hours)
    return told | {"directory": str(run.directory)}


def _knobs(run: Run) -> dict[str, str]:
    return {
        knob.name: f"{number(knob.recommended, 4)} ({knob.recommended_unit:.0%})"
        for knob in run.knobs
        if knob.recommended_unit is not None
    }


def places(names: Sequence[str], root: Path) -> list[Path]:
    """The directories of those runs, each once, in their order.

    Raises ValueError on what is no run, on too few of them and on too many.
    """
    found: dict[Path, Path] = {}
    for name in names:
        found.setdefault((place := find_run(name, root)).resolve(), place)
    if not FEWEST <= len(found) <= MOST:
        raise ValueError(f"expected {FEWEST} to {MOST} different runs to compare, got {len(found)}")
    return list(found.values())
