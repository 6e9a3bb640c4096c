"""`status`, `report` and `best`: how a run stands, its results, and what it recommends."""

import select
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from budgets.formatting import command, printable
from budgets.ledger import LedgerCorruptError
from budgets.plan import Phase
from budgets.state import ImpossibleEventError
from orchestrator.cli.options import ROOT, STDOUT, Json, Root, RunName, named_file
from orchestrator.cli.terminal import (
    console,
    print_json,
    print_line,
    print_markdown,
    silence,
    write_bytes,
)
from orchestrator.look.compare import Comparison, Exported, compared, exported
from orchestrator.look.document import document
from orchestrator.look.run import Run
from orchestrator.records.runs import find_run, ledgers, load_state

View = Run | Exported | Comparison

MOST_OTHERS = 10  # runs listed below the latest

ENDINGS = {"html": (".html", ".htm"), "md": (".md", ".markdown", ".txt")}
"""Names of files that a page may replace."""

FORMS = (".png", ".pdf", ".svg")  # of a plot's file


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
    from orchestrator.look.terminal import looks

    if watch and as_json:
        raise ValueError("--watch, --json: one at a time")
    jobs = exported(run, root, datetime.now(UTC))
    directory = jobs.directory if jobs is not None else find_run(run, root)
    if watch:
        with suppress(KeyboardInterrupt):
            _watch(directory, is_exported=jobs is not None)
        return
    seen: Run | Exported = jobs if jobs is not None else next(looks(directory))[1]
    if as_json:
        print_json(document(seen) if isinstance(seen, Run) else seen.document())
        return
    for line in _lines(seen):
        print_line(printable(line))
    for line in _others(root, directory) if run is None else ():
        print_line(printable(line))


def _others(root: Path, shown: Path) -> Iterator[str]:
    """Yield a line for each other run, the latest first."""
    from orchestrator.look.answer import answer

    now, others = datetime.now(UTC), [path.parent for path in ledgers(root)]
    others = [directory for directory in others if directory != shown]
    if others:
        yield ""
        yield f"Other runs (see one with: {command('status', 'RUN')}):"
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
    raise ValueError(f"{directory} is no campaign any more")


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
    """Print the lines at once: whether somebody still reads them."""
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
    as_json: Json = False,
) -> None:
    """The results of a run or campaign so far: found, how sure, at what cost, what next.

    Of several runs: side by side, with gains, costs, what differs, and whether scores compare.

    Writes nothing without --html, --md, --plot or --rebuild.
    """
    form = "html" if as_html else "md" if as_md else None
    if as_html + as_md + (plot is not None) > 1:
        raise ValueError("--html, --md, --plot: one at a time")
    if out is not None and form is None and plot is None:
        raise ValueError("--out says where to: add --html, --md or --plot")
    if out == STDOUT and as_json:
        raise ValueError("--out - prints the report itself: leave --json out, or name a file")
    if form is not None and out not in (None, STDOUT):
        named_file(out, *ENDINGS[form])  # before the time it takes to fill it
    if runs is not None and len(runs) > 1:
        if rebuild:
            raise ValueError("--rebuild: expected one RUN, got several")
        view, directory = _compared(runs, root)
    else:
        view, directory = _one(runs[0] if runs else None, root, rebuild=rebuild)
    if plot is not None:
        _draw(view, plot, directory, out, as_json=as_json)
    elif form is not None:
        _write_page(view, form, directory, out, as_json=as_json)
    elif as_json:
        print_json(document(view) if isinstance(view, Run) else view.document())
    elif isinstance(view, Run):
        from orchestrator.look.terminal import tell

        tell(view, print_markdown, lambda line: print_line(printable(line)))
    else:
        from orchestrator.look.page import page_markdown

        print_markdown(page_markdown(view.page(with_plots=False)))


def _one(run: str | None, root: Path, *, rebuild: bool) -> tuple[View, Path]:
    """Return the run or the exported campaign; on request its files are written again."""
    from orchestrator.look.reports import rebuild as rebuild_files

    now = datetime.now(UTC)
    if (jobs := exported(run, root, now)) is not None:
        return jobs, jobs.directory
    directory = find_run(run, root)
    state = load_state(directory)  # a damaged ledger leaves every file as it is
    if rebuild:
        rebuild_files(directory, now)
    return Run(state, now, directory), directory


def _compared(runs: list[str], root: Path) -> tuple[View, Path]:
    now, directories = datetime.now(UTC), compared(runs, root)
    return Comparison([Run(load_state(own), now, own) for own in directories]), directories[0]


def _write_page(view: View, form: str, directory: Path, out: Path | None, *, as_json: bool) -> None:
    """Write the page to `out`, by default in the run's `reports/`, and say where it is."""
    from budgets.storage import write_aside

    data = _page(view, form).encode("utf-8", "replace")
    if out == STDOUT:
        write_bytes(data)
        return
    name = f"{'report' if isinstance(view, Run | Exported) else 'compare'}.{form}"
    path = out or _in_reports(directory, name)
    write_aside(path, data)
    if as_json:
        print_json({"file": str(path), "bytes": len(data), "url": path.resolve().as_uri()})
        return
    print_line(printable(str(path)))
    if form == "html":
        print_line(printable(f"Open it in a browser: {path.resolve().as_uri()}"))


def _draw(view: View, name: str, directory: Path, out: Path | None, *, as_json: bool) -> None:
    """Draw the plot of that name as a file, by default PNG in the run's `reports/`."""
    from orchestrator.look import draw
    from orchestrator.look.plots import campaign, drawings

    if not isinstance(view, Run | Exported):
        raise ValueError("--plot: expected one RUN, got several")
    every = drawings(view) if isinstance(view, Run) else {"effects": campaign(view.report)}
    if name not in every:
        raise ValueError(f"--plot: expected one of {', '.join(every)}, got {name!r}")
    path = _in_reports(directory, f"{name}.png") if out is None else named_file(out, *FORMS)
    draw.write(every[name], path)
    if as_json:
        print_json({"file": str(path)})
    else:
        print_line(printable(str(path)))


def _page(view: View, form: str) -> str:
    from orchestrator.look.page import page_html, page_markdown
    from orchestrator.look.sections import page_of

    with_plots = form == "html"
    if isinstance(view, Run):
        page = page_of(view, with_plots=with_plots)
    else:
        page = view.page(with_plots=with_plots)
    return page_html(page) if form == "html" else page_markdown(page)


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
    as_json: Json = False,
) -> None:
    """The configuration that a search recommends, and how far that is confirmed. Writes nothing.

    After a No-Go, --toml and --flags give the baseline, --json the best candidate too.
    """
    from orchestrator import best as forms

    if as_json + as_toml + as_flags > 1:
        raise ValueError("--json, --toml, --flags: one at a time")
    searches: tuple[Phase, ...] = () if run is not None else ("phase1", "phase2")
    directory = find_run(run, root, *searches)
    found = forms.best_of(load_state(directory), directory)
    which = "baseline" if found.standing == "no_go" else "best candidate"
    source = (f"{found.run.plan.run_id}: the {which}.", found.headline)
    if as_json:
        print_json(forms.as_dict(found))
    elif as_toml:
        print_line(found.recommended.toml(*source).rstrip("\n"))
    elif as_flags:
        line = found.recommended.flags()
        print(printable(" ".join(source)), file=sys.stderr)
        print_line(line)
    else:
        for line in forms.to_lines(found):
            print_line(printable(line))
