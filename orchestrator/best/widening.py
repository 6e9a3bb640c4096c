"""A search on from a run whose best lies at the end of a range: the same knobs, in wider ranges."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import ceil
from typing import Any, NamedTuple

from pydantic import ValidationError

from budgets.plain import command
from budgets.terms import Plan
from objectives.api import SetupError
from objectives.space import Knob
from orchestrator.config.command_words import UntoldError, objective_words
from orchestrator.records.planned import space_of
from orchestrator.records.range_ends import RangeEnd, widened_in_words

NAME_CHARACTERS = 48
"""Of a run's id that the id of another begins with."""

WIDER = 0.5
"""By how much of its x-space a range is made wider: a proposal, to be changed at will."""


class Widening(NamedTuple):
    """What to do, and the command; `is_whole`: it widens the ranges itself."""

    said: str
    command: str
    is_whole: bool


def widening(plan: Plan, run: str, ends: Sequence[RangeEnd]) -> Widening | None:
    """The way on from a run, as a command finds it; None without knobs at an end.

    A range that is written into an objective's source no setting changes: what is said names that.
    None too where the ledger does not tell what the run tuned.
    """
    if not ends:
        return None
    ranges = _ranges(plan, ends)
    settings = {**plan.objective["settings"], **({} if ranges is None else {"knobs": ranges})}
    if ranges is not None and "space" in settings:  # of ready knobs: all of them are declared now
        del settings["space"]
    tuned = plan.model_copy(update={"objective": {**plan.objective, "settings": settings}})
    tier = str(plan.tier) if plan.phase == "phase1" and plan.tier != "min" else "target"
    name = f"{plan.run_id[:NAME_CHARACTERS]}-wider"
    with suppress(UntoldError, SetupError, ValueError):
        words = ("phase1", "--tier", tier, "--run-id", name, "--warm-start", run)
        line = command(*words, *objective_words(tuned))
        where = "" if ranges is not None else " (its source has the range)"
        said = f"Widen {widened_in_words(ends)}{where}, then continue from this run."
        return Widening(said, line, ranges is not None)
    return None


def _ranges(plan: Plan, ends: Sequence[RangeEnd]) -> dict[str, Mapping[str, Any]] | None:
    """All knobs as a setting declares them, those at an end wider; None where no setting does."""
    name, settings = plan.objective["name"], plan.objective["settings"]
    is_declared = name == "command" or name.startswith("python:") or "checkout" in settings
    if not is_declared:
        return None
    way = {end.knob: end.end for end in ends}
    return {
        knob.name: _declared(knob if knob.name not in way else _wider(knob, way[knob.name]))
        for knob in space_of(plan).knobs
    }


def _wider(knob: Knob, end: str) -> Knob:
    """By half of its range on that side; as it is where there are no values beyond."""
    by = WIDER * (knob.high - knob.low)
    if knob.kind == "int":
        by = knob.step * ceil(by / knob.step)
    low, high = knob.low, knob.high
    if end == "upper":
        high = high / 2 if _crosses_zero(knob, high, high + by) else high + by
    else:
        low = low / 2 if _crosses_zero(knob, low, low - by) else low - by
    with suppress(ValidationError):
        return Knob.model_validate({**knob.model_dump(), "low": low, "high": high})
    return knob


def _crosses_zero(knob: Knob, edge: float, beyond: float) -> bool:
    """Whether a range of one sign would get values of the other."""
    return knob.kind == "linear" and edge * beyond <= 0 and edge != 0


def _declared(knob: Knob) -> dict[str, Any]:
    low, high, baseline = (
        float(f"{value:.12g}") for value in (knob.decode(0.0), knob.decode(1.0), knob.baseline)
    )
    step = {"step": knob.step} if knob.step != 1 else {}
    return {"kind": knob.kind, "min": low, "max": high, **step, "baseline": baseline}
