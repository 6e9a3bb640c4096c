"""`serve`: runs as a page in a browser on this machine."""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from budgets.ledger.chain import LEDGER
from budgets.plain import printable, shell_word
from orchestrator.cli.options import DEFAULT_ROOT, Json, Root
from orchestrator.cli.terminal import print_json, print_line
from orchestrator.records.recorded import find_run

if TYPE_CHECKING:
    from orchestrator.serve.answers import Answer, Request
    from orchestrator.serve.server import Server

PORT = 8321

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
    from orchestrator.serve.catalogue import Catalogue
    from orchestrator.serve.routes import Routes

    directory = served(place, root)
    routes = Routes(Catalogue(directory))
    with listening(port, routes.answer) as server:
        url = f"{server.url}{routes.first()}"
        _announce(server, directory, url, as_json=as_json)
        if opens:
            Thread(target=_open, args=(url,), daemon=True).start()
        with suppress(KeyboardInterrupt):
            server.serve_forever()


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


def listening(port: int, answer: "Callable[[Request], Answer]") -> "Server":
    """A server at that port. Raises ValueError where it cannot be had."""
    from orchestrator.serve.server import HOST, Server

    try:
        return Server(port, answer)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        raise ValueError(
            f"--port: {port} on {HOST} cannot be had ({error.strerror}). If another `serve` has "
            f"it, open http://{HOST}:{port}/; else say --port 0, or another number"
        ) from error


def _announce(server: "Server", directory: Path, url: str, *, as_json: bool) -> None:
    port = server.server_port
    if as_json:
        print_json({"url": url, "directory": str(directory), "port": port, "pid": os.getpid()})
        return
    what = "run" if (directory / LEDGER).exists() else "runs in"
    print_line(printable(f"Showing the {what} {shell_word(str(directory))} at {url}"))
    print_line(f"From another machine: ssh -N -L {port}:127.0.0.1:{port} HOST, then the same.")
    if not server.knows_callers:
        print_line("Whoever is on this machine can read it: its system does not tell users apart.")
    print_line("Ctrl-C ends it; no run notices.")


def _open(url: str) -> None:
    import webbrowser

    if not webbrowser.open(url):
        print_line("No browser is here to open it with.")
