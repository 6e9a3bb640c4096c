"""Whether panels and decisions are what the plan and the records before them give."""

from collections.abc import Sequence
from dataclasses import fields, replace
from math import isclose
from typing import TypeVar

from budgets.events import ComparisonAsked, Decided, Settled
from budgets.ledger import Record
from budgets.schedule import next_action
from budgets.state import RunState, apply, begin
from budgets.verdict import decide, title
from orchestrator.plan.comparisons import due
from orchestrator.records.diverged import DivergedError

Word = TypeVar("Word", Settled, ComparisonAsked, Decided)


def at(record: Record) -> str:
    """Where it is."""
    return f"record {record.seq} at byte {record.offset}"


def differing_field(recorded: Word, own: Word) -> str:
    """The first field in which they differ, as `field X instead of Y`; empty if none does."""
    for field in fields(recorded):
        ours, theirs = getattr(recorded, field.name), getattr(own, field.name)
        if ours != theirs:
            return f"{field.name} {ours} instead of {theirs}"
    return ""


def fresh_seeds(state: RunState) -> int:
    """How many seeds the confirmation used: none that a search or a finalist was picked on."""
    calibration = state.plan.calibration
    known = {sample.seed for sample in calibration.samples} if calibration is not None else set()
    known |= {seed for generation in state.generations for seed in generation.seeds[0]}
    compared = {name: own for name, own in state.comparisons.items() if name != "proxy"}
    by_name = {name: {seed for own in c.seeds for seed in own} for name, c in compared.items()}
    for name, seeds in by_name.items():
        others = by_name.get("finalists", set()) if name == "winner" else set()
        if stale := sorted(seeds & (known | others)):
            raise DivergedError(f"seed {stale[0]} of the comparison {name} is not fresh")
    return len(set().union(*by_name.values()))


def comparisons_and_decision(records: Sequence[Record]) -> str:
    """Each panel, and what was decided, is what the plan and the records before it give."""
    state = begin(records[0])
    for record in records[1:]:
        event = record.event
        if isinstance(event, ComparisonAsked) and event.comparison != "proxy":
            _compare_panels(record, event, due(state))
        elif isinstance(event, Decided):
            _compare_decisions(record, event, state)
        apply(state, record)
    panels = sum(name != "proxy" for name in state.comparisons)
    verdict = "; nothing is decided yet"
    if (own := state.decided) is not None:
        verdict = f", and so is the verdict: {title(own.grade, own.no_go)}"
    return f"decision: {panels} comparisons are what the plan and the records before give{verdict}"


def _compare_panels(record: Record, asked: ComparisonAsked, due: ComparisonAsked | None) -> None:
    which = f"{at(record)} asks for the comparison {asked.comparison}"
    if due is None or due.comparison != asked.comparison:
        raise DivergedError(f"{which}, which is not due")
    if differing := differing_field(asked, due):
        raise DivergedError(f"{which} with {differing}")


def _compare_decisions(record: Record, decided: Decided, state: RunState) -> None:
    """All but the words: another version may say the same thing otherwise."""
    if next_action(state) != "decide":
        raise DivergedError(f"{at(record)} decides before everything planned is settled")
    fired, expected = decide(state)
    expected = replace(expected, evidence=decided.evidence)
    numbers = ((decided.gain, expected.gain), (decided.lower, expected.lower))
    if all(_is_close(*pair) for pair in numbers):  # the last bits are another processor's
        expected = replace(expected, gain=decided.gain, lower=decided.lower)
    if differing := differing_field(decided, expected):
        raise DivergedError(f"{at(record)} decides {differing} that the records before it give")
    known = {(known.rule, known.generation) for known in state.fired}
    for rule in fired:
        if (rule.rule, rule.generation) not in known:
            raise DivergedError(f"{at(record)} decides, and {rule.rule} has not fired")


def _is_close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
