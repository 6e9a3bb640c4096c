"""What one evaluation would start: found out without starting it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from objectives.api import (
    CommandLine,
    Context,
    Objective,
    SetupError,
)
from objectives.programs.environment import shown
from objectives.programs.knobs import as_text
from objectives.programs.objective import ProgramObjective
from objectives.registry import kind
from objectives.secrets import redacted
from objectives.settings import unknown
from objectives.space import SearchSpace
from orchestrator.execution.devices import Offer, local_offer, visible_gpus
from orchestrator.execution.launch import environment_on
from orchestrator.planning.known import value_of
from orchestrator.planning.priors import BUDGET

OPTION = "--knobs"

PLACE = "{evaluation directory}"
"""Stands for the directory that each evaluation has of its own."""

ATTEMPT = "{attempt id}"
"""... and for what tells it from all others."""

BASELINE = "baseline"


@dataclass(frozen=True)
class Started:
    """One program as it would be started; secrets are left out."""

    argv: tuple[str, ...]
    directory: str
    environment: Mapping[str, str]
    ours: tuple[str, ...]  # variables that are not as they are here


@dataclass(frozen=True)
class DryRun:
    """One evaluation that was not made."""

    objective: str
    knobs: Mapping[str, str]  # as text: every digit, whole numbers where they are
    given: frozenset[str]  # the knobs that somebody gave
    arguments: tuple[str, ...]  # them all, as what is tuned takes them
    seed: int
    budget: Mapping[str, Any]  # settings that say how long it trains
    device: str
    threads: int
    program: Started | None
    reading: str = ""  # how the score is read
    missing: str = ""  # why the program cannot be started

    def source(self, knob: str) -> str:
        return OPTION if knob in self.given else BASELINE


def dry_run(
    objective: Objective, given: Mapping[str, float], seed: int, context: Context
) -> DryRun:
    """What an evaluation with these knobs, the others at the baseline, would start.

    Raises SetupError where the objective cannot tell.
    """
    space, settings = objective.space, objective.spec.settings
    knobs = {**space.decode(space.baseline), **given}
    here = dict(os.environ)
    with _environment_of(context):
        line = objective.command_line(knobs, seed, context)
        program = None if line is None else _started(line, here)
    return DryRun(
        objective=kind(objective.spec),
        knobs=as_text(space, knobs),
        given=frozenset(given),
        arguments=objective.arguments(knobs),
        seed=seed,
        budget={k: settings[k] for k in ("budget", *sorted(BUDGET)) if settings.get(k) is not None},
        device=context.device,
        threads=context.threads,
        program=program,
        reading=objective.reading if isinstance(objective, ProgramObjective) else "",
        missing=_missing(objective),
    )


def _missing(objective: Objective) -> str:
    if isinstance(objective, ProgramObjective):
        try:
            objective.require_program()
        except SetupError as error:
            return str(error)
    return ""


def imagined(root: Path, device: str, threads: int | None, offer: Offer | None = None) -> Context:
    """Where an evaluation would run; also where there is no such device."""
    offer = local_offer() if offer is None else offer
    kind = ("cuda" if offer.gpus else "cpu") if device == "auto" else device
    if threads is None:
        threads = 1 if kind == "cpu" or not offer.gpus else offer.slots("cuda").threads
    return Context((root / PLACE).absolute(), kind, threads, lambda _: None, ATTEMPT)


def _started(line: CommandLine, here: Mapping[str, str]) -> Started:
    return Started(
        argv=tuple(redacted(argument, os.environ) for argument in line.argv),
        directory=str(line.directory),
        environment={name: _text(value) for name, value in shown(line.environment).items()},
        ours=tuple(name for name, value in line.environment.items() if here.get(name) != value),
    )


def _text(value: str) -> str:
    """Without bytes that are no text, which a JSON document cannot hold."""
    return value.encode(errors="surrogateescape").decode(errors="replace")


@contextmanager
def _environment_of(context: Context) -> Iterator[None]:
    """Within the block this process has the environment that an evaluation's has."""
    gpus = visible_gpus() if context.device == "cuda" else []
    gpu_id = None if context.device != "cuda" else gpus[0][0] if gpus else "0"
    before = dict(os.environ)
    os.environ.update(environment_on(gpu_id, context.threads))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def knobs_given(text: str | None, space: SearchSpace) -> dict[str, float]:
    """The values of `lr=0.003,depth=4`. Raises ValueError, naming the knob, on what is none."""
    knobs = {knob.name: knob for knob in space.knobs}
    values: dict[str, float] = {}
    for part in [] if text is None else text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not name:
            raise ValueError(f"{OPTION}: expected NAME=VALUE,NAME=VALUE, got {text!r}")
        if name not in knobs:
            raise ValueError(f"{OPTION}: {unknown('knob', name, knobs)}")
        if name in values:
            raise ValueError(f"{OPTION}: {name} is given twice")
        try:
            values[name] = value_of(knobs[name], _number(value))
        except ValueError as error:
            raise ValueError(f"{OPTION}: {error}") from error
    return values


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
