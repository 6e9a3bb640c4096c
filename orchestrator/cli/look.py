"""`status`, `report` and `best`: how a run stands, its results, and what it recommends."""

import select
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option

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

ENDINGS = {
    "html": (".html", ".htm"),
    "md": (".md", ".markdown", ".txt"),
    "png": (".png", ".pdf", ".svg"),
}
"""Names of files that a page or a plot may replace."""


def status(
    context: Context,
    run: RunName = None,
    root: Root = ROOT,
    watch: Annotated[
        bool,
        Option("--watch", help="Follow it until it is over, or Ctrl-C, without affecting the run."),
    ] = False,
) -> Answer | None:
    """Return how a run or a campaign stands, also while another process runs it.

    Writes nothing.
    """
    if watch and context.params["as_json"]:
        raise ValueError("--watch, --json: one at a time")
    from orchestrator.look.terminal import looks

    jobs = exported(run, root, datetime.now(UTC))
    directory = jobs.directory if jobs is not None else find_run(run, root)
    if watch:
        with suppress(KeyboardInterrupt):
            _watch(directory, is_exported=jobs is not None)
        return None
    seen: Run | Exported = jobs if jobs is not None else next(looks(directory))[1]
    others = _others(root, directory) if run is None else ()
    if isinstance(seen, Run):
        return Answer(lambda: document(seen), [*_lines(seen), *others])
    return Answer(seen.document, [*_lines(seen), *others])


def _others(root: Path, shown: Path) -> Iterator[str]:
    """Yield a line for each other run, the latest first."""
    from orchestrator.look.answer import answer

    now, others = datetime.now(UTC), [path.parent for path in ledgers(root)]
    others = [directory for directory in others if directory != shown]
    if others:
        yield from ("", f"Other runs (see one with: {command('status', 'RUN')}):")
    for directory in others[:MOST_OTHERS]:
        try:
            state = load_state(directory)
            title = answer(Run(state, now, directory)).title
            yield f"  {state.plan.run_id}  {state.plan.phase}  {title}"
        except (LedgerCorruptError, ImpossibleEventError, OSError, ValueError):
            yield f"  {directory}  cannot be read"
    if len(others) > MOST_OTHERS:
        yield f"  and {len(others) - MOST_OTHERS} more in {root}"


def _watch(directory: Path, *, is_exported: bool) -> None:
    """Show a picture on a terminal, or lines in a pipe, until the run is over."""
    from orchestrator.look.terminal import Screen, can_paint, looks, pause

    on_screen = can_paint(console())
    views: Iterator[tuple[list[str], Run | Exported]] = (
        _jobs(directory) if is_exported else looks(directory, brief=on_screen)
    )
    with Screen() if on_screen else nullcontext() as screen:
        known: object = None
        while True:
            began = time.process_time()
            lines, seen = next(views)
            if screen is not None:
                screen.show(lines, seen)
            else:
                if (key := _key(seen)) != known:
                    known = key
                    lines += _lines(seen)
                if lines and not _is_read(lines):
                    return
            if seen.is_over or _is_closed(pause(began)):
                return


def _jobs(directory: Path) -> Iterator[tuple[list[str], Run | Exported]]:
    """Yield an exported campaign as it stands, again and again."""
    while (jobs := exported(str(directory), directory, datetime.now(UTC))) is not None:
        yield [], jobs
    raise ValueError(f"{directory} is not a campaign any more")


def _key(seen: Run | Exported) -> object:
    """Return a value that changes when there is something new to print."""
    if isinstance(seen, Exported):
        return [(cell.status, cell.score) for cell in seen.matrix.cells]
    return seen.standing.kind


def _lines(seen: Run | Exported) -> list[str]:
    from orchestrator.look.terminal import status_lines

    return list(status_lines(seen)) if isinstance(seen, Run) else seen.lines()


def _is_closed(seconds: float) -> bool:
    """Wait so many seconds, or until the reader of stdout has gone: whether it has."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)  # errors are reported in any case
    return bool(output.poll(1000 * seconds))


def _is_read(lines: list[str]) -> bool:
    """Print the lines at once: whether they are still read."""
    try:
        print(*map(printable, lines), sep="\n", flush=True)
    except BrokenPipeError:
        silence(console())
        return False
    return True


def report(
    context: Context,
    runs: Annotated[
        list[str] | None,
        Argument(
            metavar="[RUN]...",
            help="Ids or directories, default: the latest; several are compared.",
        ),
    ] = None,
    root: Root = ROOT,
    as_html: Annotated[
        bool, Option("--html", help="Write all of it as one page, for any browser.")
    ] = False,
    as_md: Annotated[bool, Option("--md", help="Write the same as Markdown.")] = False,
    plot: Annotated[
        str | None,
        Option("--plot", metavar="PLOT", help="Draw one of its plots: PNG, PDF or SVG by --out."),
    ] = None,
    out: Annotated[
        Path | None,
        Option("--out", metavar="FILE", help="Where to, `-`: print; default: the run's reports/."),
    ] = None,
    rebuild: Annotated[
        bool, Option("--rebuild", help="Also write the run's report files again.")
    ] = False,
) -> Answer | None:
    """Return the results of a run or campaign, or several runs side by side.

    Writes nothing without --html, --md, --plot or --rebuild.
    """
    forms = [
        form for form, is_asked in zip(ENDINGS, (as_html, as_md, plot), strict=True) if is_asked
    ]
    if len(forms) > 1 or (out is not None and not forms):
        raise ValueError("expected one of --html, --md and --plot; --out says where it is written")
    if runs is not None and len(runs) > 1:
        if rebuild:
            raise ValueError("--rebuild: expected one RUN, got several")
        view, directory = _compared(runs, root)
    else:
        view, directory = _one(runs[0] if runs else None, root, rebuild=rebuild)
    if not forms:
        return _printed(view)
    if out == STDOUT and plot is None:
        if context.params["as_json"]:
            raise ValueError("--out -, --json: one at a time")
        write_bytes(_page(view, forms[0]))
        return None
    kind = "report" if isinstance(view, Run | Exported) else "compare"
    name = f"{plot or kind}.{forms[0]}"
    path = _in_reports(directory, name) if out is None else named_file(out, *ENDINGS[forms[0]])
    _write(view, forms[0], plot, path)
    url = path.resolve().as_uri()
    lines = [str(path), *[f"Open it in a browser: {url}"] * as_html]
    return Answer({"file": str(path), "bytes": path.stat().st_size, "url": url}, lines)


def _one(run: str | None, root: Path, *, rebuild: bool) -> tuple[View, Path]:
    """Return the run or the exported campaign; on request its files are written again."""
    from orchestrator.look.reports import rebuild as rebuild_files

    now = datetime.now(UTC)
    if (jobs := exported(run, root, now)) is not None:
        if rebuild:
            raise ValueError("--rebuild: an exported campaign has no report files, its runs have")
        return jobs, jobs.directory
    directory = find_run(run, root)
    state = load_state(directory)  # a damaged ledger leaves every file as it is
    if rebuild:
        rebuild_files(directory, now)
    return Run(state, now, directory), directory


def _compared(runs: list[str], root: Path) -> tuple[View, Path]:
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


def _write(view: View, form: str, plot: str | None, path: Path) -> None:
    """Write the page, or the plot of that name."""
    from budgets.storage import write_aside

    if plot is None:
        write_aside(path, _page(view, form))
        return
    from orchestrator.look import draw
    from orchestrator.look.plots import campaign, drawings

    if not isinstance(view, Run | Exported):
        raise ValueError("--plot: expected one RUN, got several")
    every = drawings(view) if isinstance(view, Run) else {"effects": campaign(view.report)}
    if plot not in every:
        raise ValueError(f"--plot: expected one of {', '.join(every)}, got {plot!r}")
    draw.write(every[plot], path)


def _page(view: View, form: str) -> bytes:
    from orchestrator.look.page import page_html, page_markdown
    from orchestrator.look.sections import page_of

    with_plots = form == "html"
    if isinstance(view, Run):
        page = page_of(view, with_plots=with_plots)
    else:
        page = view.page(with_plots=with_plots)
    return (page_html(page) if form == "html" else page_markdown(page)).encode("utf-8", "replace")


def _in_reports(directory: Path, name: str) -> Path:
    """Return a file in the run's `reports/`, which is made. Raises ValueError if that is a link."""
    from orchestrator.run.files import make_directory

    reports = directory / "reports"
    if reports.is_symlink():
        raise ValueError(f"{reports} is a symbolic link: name a file with --out")
    make_directory(reports)
    return reports / name


def best(
    run: RunName = None,
    as_toml: Annotated[
        bool, Option("--toml", help="Print a configuration file with this baseline.")
    ] = False,
    as_flags: Annotated[
        bool, Option("--flags", help="Print it as arguments of what is tuned, for a shell.")
    ] = False,
    root: Root = ROOT,
) -> Answer:
    """Return the configuration that a search recommends, and how far that is confirmed.

    After a No-Go, --toml and --flags give the baseline, --json the best candidate too.

    Writes nothing.
    """
    from orchestrator import best as forms

    searches: tuple[Phase, ...] = () if run is not None else ("phase1", "phase2")
    directory = find_run(run, root, *searches)
    found = forms.best_of(load_state(directory), directory)
    document = forms.as_dict(found)
    which = "baseline" if found.standing == "no_go" else "best candidate"
    source = (f"{found.run.plan.run_id}: the {which}.", found.headline)
    if as_toml and as_flags:
        raise ValueError("--toml, --flags: one at a time")
    if as_toml:
        return Answer(document, [found.recommended.toml(*source).rstrip("\n")])
    if as_flags:
        line = found.recommended.flags()
        print(printable(" ".join(source)), file=sys.stderr)
        return Answer(document, [line])
    return Answer(document, forms.to_lines(found))
