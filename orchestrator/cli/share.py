"""`serve` and `track`: runs shown in a browser, or sent to experiment trackers."""

import errno
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from socket import create_server, socket
from typing import Annotated

import typer
from typer import Argument, Option

from budgets.formatting import printable, shell_word
from budgets.ledger import LEDGER
from orchestrator.cli.errors import EXIT_STORAGE
from orchestrator.cli.options import ROOT, Json, Root, RunName
from orchestrator.cli.terminal import print_json, print_line
from orchestrator.config import Tracker
from orchestrator.look.track import SINKS, Trackers, follow_as_child, refuse_missing
from orchestrator.records.runs import find_run, load_state

PORT = 8321
EXTRA = ("starlette", "uvicorn")

VIEWS: Mapping[Tracker, str] = {
    "tensorboard": "tensorboard --logdir {}",
    "wandb": "wandb sync {}/offline-run-*",
    "mlflow": "cd {} && MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri .",
}
"""The command that shows a tracker's files, or uploads them."""


def serve(
    place: Annotated[
        str | None,
        Argument(metavar="RUN|DIR", help="A run, or a directory of runs; default: --runs-dir."),
    ] = None,
    port: Annotated[
        int, Option("--port", metavar="N", min=0, max=65535, help="0: one that is free.")
    ] = PORT,
    root: Root = ROOT,
    as_json: Json = False,
) -> None:
    """Show runs as a page in a browser, live ones as they go on. Writes nothing.

    The page is on 127.0.0.1 alone. From another machine: ssh -L 8321:127.0.0.1:8321 HOST.
    """
    directory = served(place, root)
    with listening(port) as listener:
        from orchestrator.look import serve as serving  # `listening` has checked that it is there

        site = serving.Site(directory)
        number = listener.getsockname()[1]
        _announce(number, directory, f"http://{serving.HOST}:{number}{site.home}", as_json=as_json)
        if sys.stdout is not None:
            sys.stdout.flush()  # a program that started it reads the address from a pipe
        with suppress(KeyboardInterrupt):
            serving.serve(site, listener)


def served(place: str | None, root: Path) -> Path:
    """Return the directory to show, of runs or of one run. Raises ValueError without it."""
    if place is None:
        if not root.is_dir():
            raise ValueError(f"no directory {root}: begin a run, or name another with --runs-dir")
        return root
    for directory in (Path(place), root / "campaign" / place):
        if os.path.isdir(directory):  # False also for an impossible path
            return directory
    return find_run(place, root)


def listening(port: int) -> socket:
    """Return a socket on loopback. Raises ValueError if the port or the server is missing."""
    try:
        from orchestrator.look.serve import HOST
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in EXTRA:
            raise
        raise ValueError(
            f"serve needs {error.name}: pip install 'cmaes-orchestrator[serve]'"
        ) from error
    try:
        return create_server((HOST, port), backlog=128)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        raise ValueError(
            f"--port: {port} on {HOST} cannot be used ({error.strerror}). If another `serve` has "
            "it, open the address that it printed; else say --port 0, or another number"
        ) from error


def _announce(port: int, directory: Path, url: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"url": url, "directory": str(directory), "port": port, "pid": os.getpid()})
        return
    what = "run" if (directory / LEDGER).exists() else "runs in"
    print_line(printable(f"Showing the {what} {shell_word(str(directory))} at {url}"))
    print_line(f"From another machine: ssh -N -L {port}:127.0.0.1:{port} HOST, then the same.")
    print_line("Anybody who knows that address can read it. Ctrl-C ends it; no run is affected.")


def track(
    to: Annotated[
        list[str],
        Option(metavar="NAME", help="Send it to tensorboard, wandb or mlflow. Repeatable."),
    ],
    run: RunName = None,
    root: Root = ROOT,
    watch: Annotated[
        bool, Option("--watch", help="Follow a run that goes on until it is over.")
    ] = False,
    child_of: Annotated[int | None, Option("--child-of", hidden=True)] = None,
    as_json: Json = False,
) -> None:
    """Send a run, finished or running, to experiment trackers.

    Writes below the run's trackers/, and replaces what is there of a tracker.
    """
    names = [name for name in SINKS if name in to]
    if unknown := sorted(set(to).difference(SINKS)):
        raise ValueError(f"--to: expected {', '.join(SINKS)}, got {unknown[0]!r}")
    refuse_missing(names, "--to")
    directory = find_run(run, root)
    if child_of is not None:  # started by `Trackers`
        follow_as_child(directory, names[0], child_of, watch=watch)
        return
    load_state(directory)  # raises on damage, as every command does

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
