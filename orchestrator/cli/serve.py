"""`serve`: runs as a page in a browser on this machine."""

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from socket import create_server, socket
from threading import Thread
from typing import Annotated

from typer import Argument, Option

from budgets.formatting import printable, shell_word
from budgets.ledger import LEDGER
from orchestrator.cli.options import DEFAULT_ROOT, Json, Root
from orchestrator.cli.terminal import print_json, print_line
from orchestrator.records.recorded import find_run

PORT = 8321
EXTRA = ("starlette", "uvicorn")

Place = Annotated[
    str | None,
    Argument(metavar="RUN|DIR", help="A run, or a directory of runs; default: --runs-dir."),
]
Port = Annotated[int, Option("--port", metavar="N", min=0, max=65535, help="0: one that is free.")]
Open = Annotated[bool, Option("--open", help="Also open a browser on this machine.")]


def serve(
    place: Place = None,
    port: Port = PORT,
    root: Root = DEFAULT_ROOT,
    opens: Open = False,
    as_json: Json = False,
) -> None:
    """Show runs as a page in a browser, live ones as they go on. Writes nothing.

    The page is on 127.0.0.1 alone. From another machine: ssh -L 8321:127.0.0.1:8321 HOST.
    """
    directory = served(place, root)
    with listening(port) as listener:
        from orchestrator.look import serve as serving  # where it is missing, `listening` says so

        site = serving.Site(directory)
        number = listener.getsockname()[1]
        url = f"http://{serving.HOST}:{number}{site.home}"
        _announce(number, directory, url, as_json=as_json)
        if sys.stdout is not None:
            sys.stdout.flush()  # whoever began it reads where it is from a pipe
        if opens:
            Thread(target=_open, args=(url,), daemon=True).start()
        with suppress(KeyboardInterrupt):
            serving.serve(site, listener)


def served(place: str | None, root: Path) -> Path:
    """The directory of runs, or of one run, that is meant. Raises ValueError without it."""
    if place is None:
        if not root.is_dir():
            raise ValueError(f"no directory {root}: begin a run, or name another with --runs-dir")
        return root
    for directory in (Path(place), root / "campaign" / place):
        if os.path.isdir(directory):  # False also for what is no path at all
            return directory
    return find_run(place, root)


def listening(port: int) -> socket:
    """A socket on loopback. Raises ValueError where it, or what serves it, cannot be had."""
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
            f"--port: {port} on {HOST} cannot be had ({error.strerror}). If another `serve` has "
            "it, open the address that it printed; else say --port 0, or another number"
        ) from error


def _announce(port: int, directory: Path, url: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"url": url, "directory": str(directory), "port": port, "pid": os.getpid()})
        return
    what = "run" if (directory / LEDGER).exists() else "runs in"
    print_line(printable(f"Showing the {what} {shell_word(str(directory))} at {url}"))
    print_line(f"From another machine: ssh -N -L {port}:127.0.0.1:{port} HOST, then the same.")
    print_line("Who knows that address can read it. Ctrl-C ends it; no run notices.")


def _open(url: str) -> None:
    import webbrowser

    if not webbrowser.open(url):
        print_line("No browser is here to open it with.")
