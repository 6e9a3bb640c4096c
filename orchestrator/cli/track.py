"""`track`: log a run that is there, finished or running, to experiment trackers."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import typer
from typer import Option

from budgets.plain import printable
from orchestrator.cli.conducting import EXIT_STORAGE
from orchestrator.cli.options import DEFAULT_ROOT, Json, Root, RunName
from orchestrator.cli.terminal import print_json, print_line
from orchestrator.records.recorded import find_run, load_state
from orchestrator.trackers.followers import LINGER, PATIENCE_SECONDS, Following
from orchestrator.trackers.names import elsewhere, known, refuse_missing, tell_later, view
from orchestrator.trackers.place import Answer, Place

_POLL_SECONDS = 0.05


def track(
    run: RunName = None,
    to: Annotated[
        list[str] | None,
        Option("--to", metavar="NAME", help="Log to tensorboard, wandb or mlflow. Repeatable."),
    ] = None,
    root: Root = DEFAULT_ROOT,
    rebuild: Annotated[
        bool, Option("--rebuild", "--anew", help="Make what lies in the run's directory again.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Log a run, finished or running, to experiment trackers; a running one until it ends.

    Writes below the run's trackers/, or where the tracker's own variables say.
    """
    names = known(to or ())
    if not names:
        raise ValueError("--to: which tracker? tensorboard, wandb or mlflow; repeatable")
    refuse_missing(names, "--to")
    for name in names if rebuild else ():
        if (variable := elsewhere(name, os.environ)) is not None:
            raise ValueError(
                f"--rebuild: {name} keeps it elsewhere ({variable} is set): take its run away there"
            )
    directory = find_run(run, root)
    load_state(directory)  # what is damaged is said as every command says it
    places = [Place(directory, name) for name in names]
    answers = _logged(places, anew=rebuild)
    if as_json:
        print_json({"directory": str(directory), "trackers": _as_dict(places, answers)})
    else:
        for place, answer in zip(places, answers, strict=True):
            print_line(printable(_in_words(place, answer)))
    if any(answer.error is not None for answer in answers):
        raise typer.Exit(EXIT_STORAGE)


def _logged(places: Sequence[Place], *, anew: bool) -> list[Answer]:
    """How it went with each. Interrupted, they get a bounded time to log what is there."""
    options = ("--watch", f"--linger={LINGER * PATIENCE_SECONDS:g}", *(("--anew",) if anew else ()))
    there = [Following(place, *options) for place in places]
    try:
        _await(there)
    except KeyboardInterrupt:
        for one in there:
            one.release()
        with suppress(KeyboardInterrupt):
            _await(there, PATIENCE_SECONDS)
        raise
    finally:
        for one in there:
            if not one.has_ended():
                one.kill("it was interrupted before it had logged everything")
    return [one.answer or Answer() for one in there]


def _await(there: Sequence[Following], seconds: float | None = None) -> None:
    until = None if seconds is None else time.monotonic() + seconds
    while sum(one.has_ended() for one in there) < len(there):
        if until is not None and time.monotonic() > until:
            return
        time.sleep(_POLL_SECONDS)


def _in_words(place: Place, answer: Answer) -> str:
    if answer.error is not None:
        return f"{place.name} failed: {answer.error}. Again: {tell_later(place.run, place.name)}"
    return f"{place.name}: {answer.records} records logged. Look: {view(place, os.environ)}"


def _as_dict(places: Sequence[Place], answers: Sequence[Answer]) -> dict[str, object]:
    return {
        place.name: {
            **answer.model_dump(),
            "files": str(place.files),
            "view": view(place, os.environ),
        }
        for place, answer in zip(places, answers, strict=True)
    }
