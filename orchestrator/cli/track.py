"""`track`: send a run that is there, finished or running, to experiment trackers."""

import time
from collections.abc import Mapping
from typing import Annotated

import typer
from typer import Option

from budgets.formatting import printable, shell_word
from orchestrator.cli.errors import EXIT_STORAGE
from orchestrator.cli.options import DEFAULT_ROOT, Json, Root, RunName
from orchestrator.cli.terminal import print_json, print_line
from orchestrator.config import Tracker
from orchestrator.look.track import SINKS, Trackers, follow_as_child, refuse_missing
from orchestrator.records.recorded import find_run, load_state

VIEWS: Mapping[Tracker, str] = {
    "tensorboard": "tensorboard --logdir {}",
    "wandb": "wandb sync {}/offline-run-*",
    "mlflow": "cd {} && MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri .",
}
"""What shows a tracker's files, or sends them off."""


def track(
    to: Annotated[
        list[str],
        Option(metavar="NAME", help="Send it to tensorboard, wandb or mlflow. Repeatable."),
    ],
    run: RunName = None,
    root: Root = DEFAULT_ROOT,
    watch: Annotated[
        bool, Option("--watch", help="Of a run that goes on: until it is over.")
    ] = False,
    child_of: Annotated[int | None, Option("--child-of", hidden=True)] = None,
    as_json: Json = False,
) -> None:
    """Send a run, finished or running, to experiment trackers.

    Writes below the run's trackers/, what a tracker has there anew.
    """
    names = [name for name in SINKS if name in to]
    if unknown := sorted(set(to).difference(SINKS)):
        raise ValueError(f"--to: expected {', '.join(SINKS)}, got {unknown[0]!r}")
    refuse_missing(names, "--to")
    directory = find_run(run, root)
    if child_of is not None:  # a child of the command below, or of one that carries out a run
        follow_as_child(directory, names[0], child_of, watch=watch)
        return
    load_state(directory)  # damage is reported as by every command

    def say(line: str) -> None:
        if not as_json:
            print_line(printable(line))

    with Trackers(names, say) as trackers:
        trackers.begin(directory, watch=watch)
        while trackers.look():
            time.sleep(0.05)
    places = {name: directory / "trackers" / name for name in names}
    views = {name: VIEWS[name].format(shell_word(str(places[name].absolute()))) for name in names}
    if as_json:
        found = {name: {"error": trackers.errors.get(name), "view": views[name]} for name in names}
        print_json({"directory": str(directory), "trackers": found})
    for name in [name for name in names if name not in trackers.errors]:
        say(f"{name}: sent. Look: {views[name]}")
    if trackers.errors:
        raise typer.Exit(EXIT_STORAGE)
