"""Several runs side by side: whether their scores compare, gains, cost, what differs, and knobs.

Lists about runs are in the order of the runs. A gain is relative to the run's own baseline.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

from budgets.formatting import listed, number, plain, shortened
from budgets.stats import gain
from budgets.verdict import winner_scores
from objectives.settings import cut
from orchestrator.look import text
from orchestrator.look.answer import answer
from orchestrator.look.json_documents import document, plain_values
from orchestrator.look.page import Answer, Page, Section, items, table
from orchestrator.look.run import Run
from orchestrator.look.sections import facts

NAME_WIDTH, VALUE_WIDTH, MOST_NAMED = 68, 40, 6  # characters; names in a sentence
DECIDE = ("objective.", "provenance.", "space.")
"""The names of facts that a fingerprint covers begin so."""


def _compare(one: Run, other: Run) -> bool:
    """Whether scores compare: a fingerprint covers settings, space, data and code."""
    mine, theirs = one.plan, other.plan
    is_same = mine.objective_fingerprint == theirs.objective_fingerprint != ""
    return is_same and mine.direction == theirs.direction


class Comparison:
    """Several runs side by side."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = tuple(runs)
        self.names = shortened([run.plan.run_id for run in runs], NAME_WIDTH)
        self.is_comparable = all(_compare(runs[0], other) for other in runs[1:])

    @cached_property
    def differences(self) -> dict[str, tuple[str | None, ...]]:
        """Facts that differ, by name, those that decide scores first; None: not on record."""
        known = list(map(facts, self.runs))
        names = dict.fromkeys(name for own in known for name in own)
        order = sorted(names, key=lambda name: not name.startswith(DECIDE))
        values = {name: tuple(own.get(name) for own in known) for name in order}
        return {name: own for name, own in values.items() if len(set(own)) > 1}

    @property
    def why_not(self) -> tuple[str, ...]:
        """The facts because of which scores do not compare; empty where they do."""
        found = tuple(name for name in self.differences if name.startswith(DECIDE))
        return () if self.is_comparable else found or ("the objective's code",)

    @cached_property
    def duels(self) -> list[dict[str, Any]]:
        """One run's winner against another's, on shared seeds that neither was selected on."""
        level = min((run.gain.level for run in self.runs if run.gain), default=0.01)
        scores = [winner_scores(run.state) for run in self.runs]
        pairs = combinations(enumerate(self.runs), 2)
        return [
            {"run": a, "against": b, "gain": found}
            for (a, one), (b, other) in pairs
            if _compare(one, other)
            and (found := gain(scores[a], scores[b], level, one.plan.sign)).pairs
        ]

    def document(self) -> dict[str, Any]:
        """Return plain JSON values. Runs are referred to by their number."""
        return {
            "runs": list(map(document, self.runs)),
            "comparable": self.is_comparable,
            "why_not": self.why_not,
            "differences": self.differences,
            "winner_against_winner": plain_values(self.duels),
        }

    def page(self) -> Page:
        """Return what is shown of them, without empty sections."""
        sentence = "Their objectives have one fingerprint."
        if self.why_not:
            sentence = f"What differs: {listed(self.why_not, MOST_NAMED)}."
        duels = (
            f"{plain(self.names[one['run']])} over {plain(self.names[one['against']])}: "
            f"{text.interval(one['gain'])}"
            for one in self.duels
        )
        differing = (
            {name: cut(own[place] or "-", VALUE_WIDTH) for name, own in self.differences.items()}
            for place in range(len(self.runs))
        )
        tables = {
            "What each run found, and its cost": self._table(map(_run, self.runs)),
            "What differs": self._table(differing),
            "What each run recommends": self._table(map(_knobs, self.runs)),
            "Winner over winner, on fresh seeds of both": [items(duels)] if self.duels else [],
        }
        how = "can" if self.is_comparable else "cannot"
        return Page(
            name=" · ".join(self.names),
            about=f"{len(self.runs)} runs side by side",
            answer=Answer(title=f"These scores {how} be compared", sentence=sentence),
            sections=[Section(title, blocks) for title, blocks in tables.items() if blocks],
        )

    def _table(self, values: Iterable[Mapping[str, str]]) -> list[str]:
        """Return a table with a column for each run, and a row for each name."""
        columns = dict(zip(map(plain, self.names), values, strict=True))
        names = dict.fromkeys(name for column in columns.values() for name in column)
        rows = (
            {"what": plain(name)}
            | {run: plain(column.get(name, "-")) for run, column in columns.items()}
            for name in names
        )
        return table("", rows)


def _run(run: Run) -> dict[str, str]:
    return {
        "verdict": answer(run).title,
        "gain on fresh seeds": "-" if run.gain is None else text.interval(run.gain),
        "baseline": "-" if run.baseline is None else number(run.baseline.mean),
        "results": text.counts(run),
        **{own.name: text.of_cap(run, own) for own in run.balances},
        "directory": str(run.directory),
    }


def _knobs(run: Run) -> dict[str, str]:
    return {
        knob.name: f"{number(knob.recommended, 4)} ({knob.recommended_unit:.0%})"
        for knob in run.knobs
        if knob.recommended_unit is not None
    }
