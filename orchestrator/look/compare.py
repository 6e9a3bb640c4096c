"""Runs side by side: whether their scores can be compared, gains, cost, what differs, knobs.

Every list about runs is in their order. Scores are better when lower; a gain is relative to the
run's own baseline.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from budgets.formatting import listed, number, plain, precise_duration, shortened
from budgets.stats import Gain, gain
from objectives.settings import cut
from orchestrator.look import text
from orchestrator.look.answer import answer
from orchestrator.look.blocks import Page, Section, headline, items, table
from orchestrator.look.document import plain_values, result
from orchestrator.look.run import Run
from orchestrator.look.sections import facts
from orchestrator.records.runs import find_run

FEWEST, MOST = 2, 20  # runs that are side by side
NAME_WIDTH, VALUE_WIDTH, MOST_NAMED = 68, 40, 6  # characters; how many names a sentence has
DECIDE = ("objective.", "data.", "space.")
"""What the names of that begin with which a fingerprint is of, as far as it is on record."""


class Duel(NamedTuple):
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
    def differences(self) -> dict[str, tuple[str | None, ...]]:
        """Facts on record that are not the same in all, by name, what decides scores first.

        A value of None is not on record.
        """
        known = list(map(facts, self.runs))
        names = dict.fromkeys(name for own in known for name in own)
        values = {name: tuple(own.get(name) for own in known) for name in names}
        order = sorted(names, key=lambda name: not name.startswith(DECIDE))
        return {name: values[name] for name in order if len(set(values[name])) > 1}

    @property
    def why_not(self) -> tuple[str, ...]:
        """What sets the groups apart, as `persists (none and 0.2)`; empty where there is one."""
        if self.is_comparable:
            return ()
        found = []
        for name in (name for name in self.differences if name.startswith(DECIDE)):
            values = (cut(one or "none", VALUE_WIDTH) for one in self.differences[name])
            found.append(f"{name} ({listed(dict.fromkeys(values), MOST_NAMED)})")
        return tuple(found or ["the objective's code: nothing else on record differs"])

    @cached_property
    def duels(self) -> tuple[Duel, ...]:
        """Winners on seeds that both have and that none was selected on, of one measure."""
        level = min((own.level for own in map(decisive, self.runs) if own), default=0.01)
        winners = [run.state.comparison("winner") for run in self.runs]
        scores = [{} if own is None else own.scores_by_seed(0) for own in winners]
        pairs = [pair for group in self.groups for pair in combinations(group, 2)]
        duels = (Duel(a, b, gain(scores[a], scores[b], level)) for a, b in pairs)
        return tuple(duel for duel in duels if duel.gain.mean is not None)

    def document(self) -> dict[str, Any]:
        """Plain JSON values. Runs are referred to by their place in the list."""
        names = ("baseline", "evaluations_by_status", "balances", "timing", "knobs")
        runs = [
            {
                "run_id": run.plan.run_id,
                "directory": str(run.directory),
                "fingerprint": run.plan.objective_fingerprint,
                "gain": plain_values(decisive(run)),
                **result(run, *names),
            }
            for run in self.runs
        ]
        return {
            "runs": runs,
            "comparable": self.is_comparable,
            "groups": plain_values(self.groups),
            "why_not": plain_values(self.why_not),
            "winner_against_winner": [plain_values(duel._asdict()) for duel in self.duels],
            "differences": plain_values(self.differences),
        }

    def page(self) -> Page:
        """What people are shown of them; no section where there is nothing to show."""
        how = "can" if self.is_comparable else "cannot"
        if 1 < len(self.groups) < len(self.runs):
            how = "cannot all"
        heading = f"These scores {how} be compared"
        gains = ((name, decisive(run)) for name, run in zip(self.names, self.runs, strict=True))
        shown = [f"{name} {text.interval(own)}" for name, own in gains if own and own.is_shown]
        sentence = "None of these runs shows a gain on fresh seeds."
        if shown:
            begins = "More than chance, over its own baseline on fresh seeds"
            sentence = f"{begins}: {listed(shown, MOST_NAMED)}."
        differing = (
            {name: cut(own[place] or "-", VALUE_WIDTH) for name, own in self.differences.items()}
            for place in range(len(self.runs))
        )
        sections = (
            Section("scores", "Can the scores be compared?", [self._scores()]),
            Section("runs", "What each run found, and its cost", self._table(map(_run, self.runs))),
            Section("differences", "What differs", self._table(differing)),
            Section("knobs", "What each run recommends", self._table(map(_knobs, self.runs))),
        )
        about, own = f"{len(self.runs)} runs side by side", headline(heading, sentence)
        return Page(" · ".join(self.names), about, own, [one for one in sections if one.blocks])

    def _scores(self) -> str:
        said = ["Scores and gains measure the same where the objective's fingerprint is the same."]
        groups = (listed(plain(self.names[place]) for place in group) for group in self.groups)
        said += [f"Comparable with each other: {names}." for names in groups]
        if self.why_not:
            said.append(f"What differs: {plain(listed(self.why_not, MOST_NAMED))}.")
        for duel in self.duels:
            one, other = (plain(self.names[place]) for place in (duel.run, duel.against))
            over = f"The winner of {one} over that of {other}, on fresh seeds of both"
            said.append(f"{over}: {text.interval(duel.gain)}.")
        return items(said)

    def _table(self, told: Iterable[Mapping[str, str]]) -> list[str]:
        """A column for each run, a row for each name of what any of them tells."""
        columns = dict(zip(map(plain, self.names), told, strict=True))
        names = dict.fromkeys(name for column in columns.values() for name in column)
        rows = (
            {"what": plain(name)}
            | {run: plain(column.get(name, "-")) for run, column in columns.items()}
            for name in names
        )
        return table("", rows)


def decisive(run: Run) -> Gain | None:
    """The winner's gain, which the verdict rests on; None: not compared yet, or never."""
    return None if run.findings is None else run.findings.gain


def _run(run: Run) -> dict[str, str]:
    gain, baseline = decisive(run), run.baseline
    told = {
        "phase and tier": f"{run.plan.phase} {run.plan.tier or ''}",
        "fingerprint": run.plan.objective_fingerprint[:12],
        "verdict": answer(run).title,
        "gain on fresh seeds": "-" if gain is None else text.interval(gain),
        "baseline": "-" if baseline is None else number(baseline.mean),
        "noise (sd)": "-" if baseline is None else number(baseline.sd, 4),
        "evaluations by status": text.statuses(run),
    }
    for own in run.balances:
        if own.counts:
            told[text.CURRENCIES.get(own.currency, own.currency)] = text.of_cap(own, own.cap)
    if run.timing is not None:
        told["estimated"] = precise_duration(3600 * run.timing.estimated_hours)
    return told | {"directory": str(run.directory)}


def _knobs(run: Run) -> dict[str, str]:
    return {
        knob.name: f"{number(knob.recommended, 4)} ({knob.recommended_unit:.0%})"
        for knob in run.knobs
        if knob.recommended_unit is not None
    }


def compared(names: Sequence[str], root: Path) -> list[Path]:
    """The directories of those runs, each once, in their order.

    Raises ValueError on what is no run, on too few of them and on too many.
    """
    found: dict[Path, Path] = {}
    for name in names:
        found.setdefault((place := find_run(name, root)).resolve(), place)
    if not FEWEST <= len(found) <= MOST:
        raise ValueError(f"expected {FEWEST} to {MOST} different runs to compare, got {len(found)}")
    return list(found.values())
