"""`status`, `report` and `best`: how a run stands, its results, and what it recommends."""

import select
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from budgets.formatting import command, printable
from budgets.ledger import LedgerCorruptError
from budgets.plan import Phase
from budgets.state import ImpossibleEventError
from orchestrator.cli.options import ROOT, STDOUT, Root, RunName, named_file
from orchestrator.cli.output import Answer, console, silence, write_bytes
from orchestrator.look.compare import Comparison, Exported, compared, exported
from orchestrator.look.document import document
from orchestrator.look.run import Run
from orchestrator.records.runs import find_run, ledgers, load_state

View = Run | Exported | Comparison

MOST_OTHERS = 10  # runs listed below the latest
HTML, MARKDOWN, PLOTS = (".html", ".htm"), (".md", ".txt"), (".png", ".pdf", ".svg")


def status(
    run: RunName = None,
    root: Root = ROOT,
    watch: Annotated[
        bool, Option("--watch", help="Follow it until it is over, or Ctrl-C, which ends no run.")
    ] = False,
) -> Answer | None:
    """Show how a run or a campaign stands, also while another process runs it. Writes nothing."""
    view, directory = _one(run, root)
    if watch:
        try:
            _watch(view, directory)
        except (KeyboardInterrupt, BrokenPipeError):
            silence(sys.stdout)  # its reader may have gone
        return None
    others = _others(root, directory) if run is None else ()
    return Answer(lambda: _document(view), [*_lines(view), *others])


def _one(run: str | None, root: Path) -> tuple[Run | Exported, Path]:
    """Return a run or an exported campaign, and its directory."""
    now = datetime.now(UTC)
    if (jobs := exported(run, root, now)) is not None:
        return jobs, jobs.directory
    directory = find_run(run, root)
    return Run(load_state(directory), now, directory), directory


def _document(view: View) -> object:
    return document(view) if isinstance(view, Run) else view.document()


def _lines(seen: Run | Exported) -> list[str]:
    from orchestrator.look.terminal import status_lines

    return list(status_lines(seen)) if isinstance(seen, Run) else seen.lines()


def _others(root: Path, shown: Path) -> Iterator[str]:
    """Yield a line for each other run, the latest first."""
    from orchestrator.look.answer import answer

    others = [path.parent for path in ledgers(root) if path.parent != shown]
    if others:
        yield from ("", f"Other runs (see one with: {command('status', 'RUN')}):")
    for directory in others[:MOST_OTHERS]:
        try:
            run = Run(load_state(directory), datetime.now(UTC), directory)
            yield f"  {run.plan.run_id}  {run.plan.phase}  {answer(run).title}"
        except (LedgerCorruptError, ImpossibleEventError, OSError, ValueError):
            yield f"  {directory}  cannot be read"
    if len(others) > MOST_OTHERS:
        yield f"  and {len(others) - MOST_OTHERS} more in {root}"


def _watch(view: Run | Exported, directory: Path) -> None:
    """Show a picture on a terminal, or lines in a pipe, until the run is over."""
    from orchestrator.look.terminal import Screen, can_paint, looks, pause

    on_screen = can_paint(console())
    views: Iterator[tuple[list[str], Run | Exported]] = (
        looks(directory, brief=on_screen) if isinstance(view, Run) else _jobs(directory)
    )
    known: object = None
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)  # errors, such as a reader that has gone
    with Screen() if on_screen else nullcontext() as screen:
        while True:
            began = time.process_time()
            lines, seen = next(views)
            if screen is not None:
                screen.show(lines, seen)
            else:
                if (news := _news(seen)) != known:
                    known = news
                    lines += _lines(seen)
                print(*map(printable, lines), sep="\n", end="\n" * bool(lines), flush=True)
            if seen.is_over or output.poll(1000 * pause(began)):
                return


def _jobs(directory: Path) -> Iterator[tuple[list[str], Exported]]:
    """Yield an exported campaign as it stands, again and again."""
    while (jobs := exported(str(directory), directory, datetime.now(UTC))) is not None:
        yield [], jobs


def _news(seen: Run | Exported) -> object:
    """Return a value that changes when there is something new to print."""
    if isinstance(seen, Exported):
        return [(cell.status, cell.score) for cell in seen.matrix.cells]
    return seen.standing.kind


def report(
    runs: Annotated[
        list[str] | None,
        Argument(metavar="[RUN]...", help="Ids or directories, default: the latest."),
    ] = None,
    root: Root = ROOT,
    as_html: Annotated[bool, Option("--html", help="Write one page, for any browser.")] = False,
    plot: Annotated[
        str | None, Option("--plot", metavar="PLOT", help="Draw one of its plots.")
    ] = None,
    out: Annotated[
        Path | None,
        Option("--out", metavar="FILE", help="Write FILE.html, .md or a plot; `-`: Markdown."),
    ] = None,
    rebuild: Annotated[
        bool, Option("--rebuild", help="Also write the run's report files again.")
    ] = False,
) -> Answer | None:
    """Show the results of a run or a campaign, or of several runs side by side.

    Writes nothing without an option; --html and --plot write to the run's reports/, or to --out.
    """
    view, directory = _seen(runs or [], root)
    if rebuild:
        from orchestrator.look.reports import rebuild as rebuild_files

        if not isinstance(view, Run):
            raise ValueError("--rebuild: expected one RUN with a ledger of its own")
        rebuild_files(directory, datetime.now(UTC))
    if not (as_html or plot or out):
        return _printed(view)
    if out == STDOUT and plot is None:
        write_bytes(_page(view, is_html=as_html))
        return None
    from orchestrator.run.files import make_directory

    if out is not None:
        path = named_file(out, *(PLOTS if plot else HTML if as_html else HTML + MARKDOWN))
    else:
        kind = "compare" if isinstance(view, Comparison) else "report"
        path = directory / "reports" / (f"{plot}.png" if plot else f"{kind}.html")
        make_directory(path.parent)
    _write(view, plot, path)
    url = path.resolve().as_uri()
    lines = [str(path), *[f"Open it in a browser: {url}"] * (path.suffix.lower() in HTML)]
    return Answer({"file": str(path), "bytes": path.stat().st_size, "url": url}, lines)


def _seen(runs: list[str], root: Path) -> tuple[View, Path]:
    """Return one run or campaign, or the comparison of several, and where its files go."""
    if len(runs) < 2:
        return _one(runs[0] if runs else None, root)
    now, directories = datetime.now(UTC), compared(runs, root)
    return Comparison([Run(load_state(own), now, own) for own in directories]), directories[0]


def _printed(view: View) -> Answer:
    """Return the report as it is printed: details first, the answers last."""
    if isinstance(view, Run):
        from orchestrator.look.terminal import tell

        pages, lines = list[str](), list[str]()
        tell(view, pages.append, lines.append)
        return Answer(lambda: document(view), lines, pages[0])
    from orchestrator.look.page import page_markdown

    return Answer(view.document, page=page_markdown(view.page(with_plots=False)))


def _write(view: View, plot: str | None, path: Path) -> None:
    """Write the page, or the plot of that name."""
    from budgets.storage import write_aside

    if plot is None:
        write_aside(path, _page(view, is_html=path.suffix.lower() in HTML))
        return
    from orchestrator.look.plots import campaign, drawings, write

    if isinstance(view, Comparison):
        raise ValueError("--plot: expected one RUN, got several")
    every = drawings(view) if isinstance(view, Run) else {"effects": campaign(view.report)}
    if plot not in every:
        raise ValueError(f"--plot: expected one of {', '.join(every)}, got {plot!r}")
    write(every[plot], path)


def _page(view: View, *, is_html: bool) -> bytes:
    from orchestrator.look.page import page_html, page_markdown
    from orchestrator.look.sections import page_of

    if isinstance(view, Run):
        page = page_of(view, with_plots=is_html)
    else:
        page = view.page(with_plots=is_html)
    return (page_html(page) if is_html else page_markdown(page)).encode("utf-8", "replace")


def best(
    run: RunName = None,
    as_toml: Annotated[
        bool, Option("--toml", help="Print a configuration file with this baseline.")
    ] = False,
    as_flags: Annotated[
        bool, Option("--flags", help="Print arguments of what is tuned, for a shell.")
    ] = False,
    root: Root = ROOT,
) -> Answer:
    """Show the configuration that a search recommends, and how far that is confirmed.

    After a No-Go that is the baseline; --json has the best candidate too. Writes nothing.
    """
    from orchestrator import best as forms

    searches: tuple[Phase, ...] = () if run is not None else ("phase1", "phase2")
    directory = find_run(run, root, *searches)
    found = forms.best_of(load_state(directory), directory)
    document = forms.as_dict(found)
    which = "baseline" if found.standing == "no_go" else "best candidate"
    source = (f"{found.run.plan.run_id}: the {which}.", found.headline)
    if as_toml:
        return Answer(document, [found.recommended.toml(*source).rstrip("\n")])
    if as_flags:
        line = found.recommended.flags()
        print(printable(" ".join(source)), file=sys.stderr)
        return Answer(document, [line])
    return Answer(document, forms.to_lines(found))
