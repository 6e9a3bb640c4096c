"""`track`: log a run that is there, finished or running, to experiment trackers."""

import os
import time
from typing import Annotated

import typer
from typer import Option

from budgets.plain import printable
from orchestrator.cli.conducting import EXIT_STORAGE
from orchestrator.cli.options import DEFAULT_ROOT, Json, Root, RunName
from orchestrator.cli.terminal import print_json, print_line
from orchestrator.look.track import (
    PATIENCE_SECONDS,
    Child,
    Place,
    beside,
    elsewhere,
    finish,
    follow,
    known,
    refuse_missing,
)
from orchestrator.records.recorded import find_run, load_state


def track(
    run: RunName = None,
    to: Annotated[
        list[str] | None,
        Option("--to", metavar="NAME", help="Log to tensorboard, wandb or mlflow. Repeatable."),
    ] = None,
    root: Root = DEFAULT_ROOT,
    watch: Annotated[
        bool, Option("--watch", help="Of a run that goes on: until it is over.")
    ] = False,
    rebuild: Annotated[
        bool, Option("--rebuild", help="Make what lies in the run's directory again.")
    ] = False,
    child_of: Annotated[int | None, Option("--child-of", hidden=True)] = None,
    as_json: Json = False,
) -> None:
    """Log a run, finished or running, to experiment trackers.

    Writes below the run's trackers/, or where the tracker's own variables say.
    """
    names = known(to or ())
    refuse_missing(names, "--to")
    for name in names if rebuild else ():
        if (variable := elsewhere(name, os.environ)) is not None:
            raise ValueError(
                f"--rebuild: {name} keeps it elsewhere ({variable} is set): take its run away there"
            )
    places = [Place(find_run(run, root), name) for name in names]
    if child_of is not None:  # a child of the command below, or of one that carries out a run
        follow(places[0], beside(child_of, is_niced=watch), watch=watch, rebuild=rebuild)
        return
    load_state(places[0].run)  # damage is reported as by every command
    flags = [flag for flag, given in (("--watch", watch), ("--rebuild", rebuild)) if given]
    children = [Child(place, *flags) for place in places]
    _await(children)
    if as_json:
        print_json(
            {
                "directory": str(places[0].run),
                "trackers": {child.place.name: _as_dict(child) for child in children},
            }
        )
    else:
        for child in children:
            print_line(printable(_in_words(child)))
    if any(child.error is not None for child in children):
        raise typer.Exit(EXIT_STORAGE)


def _await(children: list[Child]) -> None:
    """Interrupted, they get a bounded time to log what is there."""
    try:
        while not all(child.has_ended() for child in children):
            time.sleep(0.05)
    finally:
        finish(children, PATIENCE_SECONDS)


def _in_words(child: Child) -> str:
    place = child.place
    if child.error is not None:
        return f"{place.name} failed: {child.error}. Again: {place.later}"
    return f"{place.name}: {_records(place)} records logged. Look: {place.view(os.environ)}"


def _as_dict(child: Child) -> dict[str, object]:
    place = child.place
    return {
        "error": child.error,
        "records": _records(place),
        "files": str(place.files),
        "view": place.view(os.environ),
    }


def _records(place: Place) -> int:
    """How many of the ledger's records the tracker has."""
    return place.recall(load_state(place.run).genesis).records
