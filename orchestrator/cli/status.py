"""`status [RUN] [--watch]`: how a run or a campaign stands, now or until it is over."""

import json
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from budgets.formatting import printable
from orchestrator.cli.options import DEFAULT_ROOT, Json, Root, RunName
from orchestrator.cli.terminal import console, print_json, print_line, silence
from orchestrator.look.campaign import Exported, exported
from orchestrator.look.document import document
from orchestrator.look.run import Run
from orchestrator.look.terminal import status_lines
from orchestrator.look.viewer import Screen, Seen, can_paint, looks, pause
from orchestrator.records.recorded import find_run


def status(
    run: RunName = None,
    root: Root = DEFAULT_ROOT,
    watch: Annotated[
        bool,
        Option("--watch", help="Follow it until it is over, or Ctrl-C, without affecting the run."),
    ] = False,
    as_json: Json = False,
) -> None:
    """How a run or a campaign stands, also while another process runs it. Writes nothing."""
    jobs = exported(run, root, datetime.now(UTC))
    directory = jobs.directory if jobs is not None else find_run(run, root)
    if watch:
        with suppress(KeyboardInterrupt):
            _watch(directory, as_json=as_json, is_exported=jobs is not None)
        return
    seen: Seen = jobs if jobs is not None else next(looks(directory))[1]
    if as_json:
        print_json(_document(seen))
    for line in () if as_json else _lines(seen):
        print_line(printable(line))


def _watch(directory: Path, *, as_json: bool, is_exported: bool) -> None:
    """A picture on a terminal, lines in a pipe, or a document a line; raises as a look does."""
    on_screen = not as_json and can_paint(console())
    of_run: Iterator[tuple[list[str], Seen]] = looks(directory, brief=on_screen)
    followed = _jobs(directory) if is_exported else of_run
    with Screen() if on_screen else nullcontext() as screen:
        known: object = None
        while True:
            began = time.process_time()
            news, seen = next(followed)
            if screen is not None:
                screen.show(news, seen)  # first: a library that it imports may start threads
            else:
                lines = [] if as_json else news
                if (key := _key(seen, as_json=as_json)) != known:
                    known = key
                    lines += [json.dumps(_document(seen))] if as_json else _lines(seen)
                if lines and not _is_read(lines):
                    return
            if seen.is_over:
                return
            time.sleep(pause(began))


def _jobs(directory: Path) -> Iterator[tuple[list[str], Seen]]:
    """A campaign of jobs, look by look."""
    while (jobs := exported(str(directory), directory, datetime.now(UTC))) is not None:
        yield [], jobs
    raise ValueError(f"{directory} is no campaign any more")


def _key(seen: Seen, *, as_json: bool) -> object:
    """What changes when there is something new to say."""
    if isinstance(seen, Exported):
        return [(cell.status, cell.score) for cell in seen.matrix.cells]
    return seen.standing.kind, as_json and seen.state.records


def _document(seen: Seen) -> dict[str, Any]:
    return document(seen) if isinstance(seen, Run) else seen.document()


def _lines(seen: Seen) -> list[str]:
    return list(status_lines(seen)) if isinstance(seen, Run) else seen.lines()


def _is_read(lines: list[str]) -> bool:
    """Print them at once; whether anybody reads that."""
    try:
        print(*map(printable, lines), sep="\n", flush=True)
    except BrokenPipeError:
        silence(console())
        return False
    return True
