"""`status` and `report`: how a run stands, and what it came to."""

import json
import select
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from budgets.formatting import printable
from orchestrator.cli.options import ROOT, STDOUT, Json, Root, RunName, named_file, own_file
from orchestrator.cli.terminal import (
    console,
    print_json,
    print_line,
    print_markdown,
    silence,
    write_bytes,
)
from orchestrator.look.campaign import Exported, exported
from orchestrator.look.document import document
from orchestrator.look.run import Run
from orchestrator.records.runs import find_run, load_state

if TYPE_CHECKING:
    from orchestrator.look.compare import Comparison

    View = Run | Exported | Comparison

ENDINGS = {"html": (".html", ".htm"), "md": (".md", ".markdown", ".txt")}
"""Of a file that a page is written to: it may be replaced."""

EVERY = "all"
"""Instead of a plot's name."""


def status(
    run: RunName = None,
    root: Root = ROOT,
    watch: Annotated[
        bool,
        Option("--watch", help="Follow it until it is over, or Ctrl-C, without affecting the run."),
    ] = False,
    as_json: Json = False,
) -> None:
    """How a run or a campaign stands, also while another process runs it. Writes nothing."""
    from orchestrator.look.viewer import looks

    jobs = exported(run, root, datetime.now(UTC))
    directory = jobs.directory if jobs is not None else find_run(run, root)
    if watch:
        with suppress(KeyboardInterrupt):
            _watch(directory, as_json=as_json, is_exported=jobs is not None)
        return
    seen: Run | Exported = jobs if jobs is not None else next(looks(directory))[1]
    if as_json:
        print_json(_document(seen))
    for line in () if as_json else _lines(seen):
        print_line(printable(line))


def _watch(directory: Path, *, as_json: bool, is_exported: bool) -> None:
    """A picture on a terminal, lines in a pipe, or a document a line; raises as a look does."""
    from orchestrator.look.viewer import Screen, can_paint, looks, pause

    on_screen = not as_json and can_paint(console())
    of_run: Iterator[tuple[list[str], Run | Exported]] = looks(directory, brief=on_screen)
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
            if _is_closed(pause(began)):
                return


def _jobs(directory: Path) -> Iterator[tuple[list[str], Run | Exported]]:
    """A campaign of jobs, look by look."""
    while (jobs := exported(str(directory), directory, datetime.now(UTC))) is not None:
        yield [], jobs
    raise ValueError(f"{directory} is no campaign any more")


def _key(seen: Run | Exported, *, as_json: bool) -> object:
    """What changes when there is something new to say."""
    if isinstance(seen, Exported):
        return [(cell.status, cell.score) for cell in seen.matrix.cells]
    return seen.standing.kind, as_json and seen.state.records


def _document(seen: Run | Exported) -> dict[str, Any]:
    return document(seen) if isinstance(seen, Run) else seen.document()


def _lines(seen: Run | Exported) -> list[str]:
    from orchestrator.look.terminal import status_lines

    return list(status_lines(seen)) if isinstance(seen, Run) else seen.lines()


def _is_closed(seconds: float) -> bool:
    """Whether nobody reads what is printed any more, by the end of so many seconds."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)  # an error is told in any case
    return bool(output.poll(1000 * seconds))


def _is_read(lines: list[str]) -> bool:
    """Print them at once; whether anybody reads that."""
    try:
        print(*map(printable, lines), sep="\n", flush=True)
    except BrokenPipeError:
        silence(console())
        return False
    return True


def report(
    runs: Annotated[
        list[str] | None,
        Argument(
            metavar="[RUN]...",
            help="Ids or directories, default: the latest; of several: side by side.",
        ),
    ] = None,
    root: Root = ROOT,
    as_html: Annotated[
        bool, Option("--html", help="Write all of it as one page, for any browser.")
    ] = False,
    as_md: Annotated[bool, Option("--md", help="Write the same as Markdown.")] = False,
    plots: Annotated[
        list[str] | None,
        Option("--plot", metavar="PLOT", help="Draw one as PNG, or PDF by --out; `all`: each."),
    ] = None,
    out: Annotated[
        Path | None,
        Option("--out", metavar="FILE", help="Where to, `-`: print; default: the run's reports/."),
    ] = None,
    rebuild: Annotated[
        bool, Option("--rebuild", help="Also write the run's report files again.")
    ] = False,
    as_json: Json = False,
) -> None:
    """What a run as it stands, or a campaign, came to: found, how sure, at what cost, what next.

    Of several runs: side by side, with gains, costs, what differs, and whether scores compare.

    Writes nothing without --html, --md, --plot or --rebuild.
    """
    form = "html" if as_html else "md" if as_md else None
    if as_html + as_md + bool(plots) > 1:
        raise ValueError("--html, --md, --plot: one at a time")
    if out is not None and form is None and not plots:
        raise ValueError("--out says where to: add --html, --md or --plot")
    if form is not None and out not in (None, STDOUT):
        named_file(out, *ENDINGS[form])  # before the time it takes to fill it
    if runs is not None and len(runs) > 1:
        if rebuild or plots:
            raise ValueError("--rebuild, --plot: expected one RUN, got several")
        view, directory = _compared(runs, root)
    else:
        view, directory = _one(runs[0] if runs else None, root, rebuild=rebuild)
    if plots:
        _draw(view, directory, plots, out, as_json=as_json)
    elif form is not None:
        name = f"{'report' if isinstance(view, Run | Exported) else 'compare'}.{form}"
        _deliver(_page(view, form), directory, name, out, as_json=as_json)
    elif as_json:
        print_json(document(view) if isinstance(view, Run) else view.document())
    elif isinstance(view, Run):
        from orchestrator.look.terminal import tell

        tell(view, print_markdown, lambda line: print_line(printable(line)))
    else:
        print_markdown(view.page().markdown())


def _one(run: str | None, root: Path, *, rebuild: bool) -> tuple["View", Path]:
    """The run or the campaign of jobs; on request its files are written again."""
    from orchestrator.look.campaign import collect
    from orchestrator.look.reports import rebuild as rebuild_files

    now = datetime.now(UTC)
    if (jobs := exported(run, root, now)) is not None:
        if rebuild:
            collect(jobs)
        return jobs, jobs.directory
    directory = find_run(run, root)
    state = load_state(directory)  # a ledger that cannot be read leaves every file as it is
    if rebuild:
        rebuild_files(directory, now)
    return Run(state, now, directory), directory


def _compared(runs: list[str], root: Path) -> tuple["View", Path]:
    from orchestrator.look.compare import Comparison, compared

    now, directories = datetime.now(UTC), compared(runs, root)
    return Comparison([Run(load_state(own), now, own) for own in directories]), directories[0]


def _page(view: "View", form: str) -> str:
    from orchestrator.look.page import html, page_of

    if isinstance(view, Run):
        page = page_of(view, with_plots=form == "html")
    elif isinstance(view, Exported) and form == "html":
        from orchestrator.look import draw
        from orchestrator.look.plots import campaign

        page = view.page(draw.figure("effects", campaign(view.report)))
    else:
        page = view.page()
    return html(page) if form == "html" else page.markdown()


def _draw(
    view: "View",
    directory: Path,
    names: Sequence[str],
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """The plots that are asked for, in the run's reports/ or one of them as the file `out`."""
    from orchestrator.look import draw
    from orchestrator.look.plots import campaign, drawings

    every = drawings(view) if isinstance(view, Run) else {}
    if isinstance(view, Exported):
        every = {"effects": campaign(view.report)}
    names = list(every) if EVERY in names else names
    for name in names:
        if name not in every:
            raise ValueError(f"--plot: expected {', '.join(every)} or {EVERY}, got {name!r}")
    if out is not None:
        if len(names) > 1:
            raise ValueError(f"--out {out}: one plot goes into a file, got {len(names)}")
        named_file(out, ".png", ".pdf")
    paths = [own_file(directory, f"{name}.png") if out is None else out for name in names]
    for name, path in zip(names, paths, strict=True):
        draw.write(every[name], path)
    if as_json:
        print_json({"files": [str(path) for path in paths]})
    for path in () if as_json else paths:
        print_line(printable(str(path)))


def _deliver(text: str, directory: Path, name: str, out: Path | None, *, as_json: bool) -> None:
    """`text` as the file `name` in a run's own `reports/`, or `out`; and where that is, in words.

    Raises ValueError where it cannot be written, or two things would be printed.
    """
    from budgets.storage import write_aside

    form, data = name.rpartition(".")[2], text.encode("utf-8", "replace")
    if out == STDOUT:
        if as_json:
            raise ValueError("--out - prints the report itself: leave --json out, or name a file")
        write_bytes(data)
        return
    path = own_file(directory, name) if out is None else out
    write_aside(path, data)
    if as_json:
        print_json({"file": str(path), "bytes": len(data), "url": path.resolve().as_uri()})
        return
    print_line(printable(str(path)))
    if form == "html":
        print_line(printable(f"Open it in a browser: {path.resolve().as_uri()}"))
