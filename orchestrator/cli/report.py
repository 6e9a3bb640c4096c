"""`report`: what runs came to, on a terminal, as a page, as Markdown, as JSON."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from budgets.formatting import printable
from budgets.storage import write_aside
from orchestrator.cli.options import DEFAULT_ROOT, Json, Root
from orchestrator.cli.terminal import print_json, print_line, print_markdown, write_bytes
from orchestrator.look.campaign import Exported, collect, exported
from orchestrator.look.compare import Comparison, compared
from orchestrator.look.document import document
from orchestrator.look.page import STDOUT, html, named_place, own_place, page_of
from orchestrator.look.reports import rebuild as rebuild_files
from orchestrator.look.run import Run
from orchestrator.look.terminal import tell
from orchestrator.records.recorded import find_run, load_state
from orchestrator.run.session import system_clock

EVERY = "all"

Runs = Annotated[
    list[str] | None,
    Argument(
        metavar="[RUN]...",
        help="Ids or directories, default: the latest; of several: side by side.",
    ),
]
AsHtml = Annotated[bool, Option("--html", help="Write all of it as one page, for any browser.")]
AsMarkdown = Annotated[bool, Option("--md", help="Write the same as Markdown.")]
PngNames = Annotated[
    list[str] | None, Option("--png", metavar="PLOT", help="Draw a plot; `all`: each there is.")
]
PdfNames = Annotated[list[str] | None, Option("--pdf", metavar="PLOT", help="The same as PDF.")]
Out = Annotated[
    Path | None,
    Option(
        "--out",
        "-o",
        metavar="PATH",
        help="Where to, `-`: print it; default: into the run's reports/.",
    ),
]


def report(
    runs: Runs = None,
    root: Root = DEFAULT_ROOT,
    as_html: AsHtml = False,
    as_md: AsMarkdown = False,
    png: PngNames = None,
    pdf: PdfNames = None,
    out: Out = None,
    rebuild: Annotated[
        bool, Option("--rebuild", help="Also write the run's report files again.")
    ] = False,
    as_json: Json = False,
) -> None:
    """What a run as it stands, or a campaign, came to: found, how sure, at what cost, what next.

    Of several runs: side by side, with gains, costs, what differs, and whether scores compare.

    --html, --md, --json: all of it, with evidence, plots, knobs and logs. --png, --pdf: a plot.

    Writes nothing without --html, --md, --png, --pdf or --rebuild.
    """
    drawn = {"png": png or [], "pdf": pdf or []}
    form = _form(out, html=as_html, md=as_md, is_drawn=any(drawn.values()))
    if form is not None and out not in (None, STDOUT):
        named_place(out, form)  # before the time it takes to fill it
    now = system_clock().now()
    if runs is not None and len(runs) > 1:
        if rebuild or any(drawn.values()):
            raise ValueError("--rebuild, --png, --pdf: expected one RUN, got several")
        directories = compared(runs, root)
        found = Comparison([Run(load_state(own), now, own) for own in directories])
        _show(found, directories[0], f"compare.{form}", form, out, as_json=as_json)
        return
    run = runs[0] if runs else None
    view: Run | Exported | None = exported(run, root, now)
    if isinstance(view, Exported):
        directory = view.directory
        if rebuild:
            collect(view)
    else:
        directory = find_run(run, root)
        state = load_state(directory)  # a ledger that cannot be read leaves every file as it is
        if rebuild:
            rebuild_files(directory, now)
        view = Run(state, now, directory)
    if any(drawn.values()):
        _draw(view, directory, drawn, out, as_json=as_json)
    elif isinstance(view, Run) and form is None and not as_json:
        tell(view, print_markdown, lambda line: print_line(printable(line)))
    else:
        _show(view, directory, f"report.{form}", form, out, as_json=as_json)


def _form(out: Path | None, *, html: bool, md: bool, is_drawn: bool) -> str | None:
    """Raises ValueError where two forms are asked for, or a place for none."""
    if html + md + is_drawn > 1:
        raise ValueError("--html, --md, and --png with --pdf: one at a time")
    if out is not None and not (html or md or is_drawn):
        raise ValueError("--out says where to: add --html, --md, --png or --pdf")
    return "html" if html else "md" if md else None


def _show(
    view: "Run | Exported | Comparison",
    directory: Path,
    name: str,
    form: str | None,
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """As a file of that name in `form`; without one on the terminal."""
    if form is None and as_json:
        print_json(document(view) if isinstance(view, Run) else view.document())
        return
    if isinstance(view, Run):
        page = page_of(view, with_plots=form == "html")
    elif isinstance(view, Exported):
        from orchestrator.look import draw
        from orchestrator.look.plots import campaign

        drawn = [draw.figure("effects", campaign(view.report))] if form == "html" else []
        page = view.page(*drawn)
    else:
        page = view.page()
    if form is None:
        print_markdown(page.markdown())
    else:
        text = html(page) if form == "html" else page.markdown()
        deliver(text, directory, name, out, as_json=as_json)


def _draw(
    view: Run | Exported,
    directory: Path,
    drawn: Mapping[str, Sequence[str]],
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """Each plot that is asked for into a file of its own, in the run's reports/ or in `out`."""
    from orchestrator.look import draw
    from orchestrator.look.plots import campaign, drawings

    if out == STDOUT:
        raise ValueError("--out -: a picture is not for a terminal: name a file or a folder")
    every = drawings(view) if isinstance(view, Run) else {"effects": campaign(view.report)}
    files = {}
    for form, names in drawn.items():
        for name in every if EVERY in names else names:
            if name not in every:
                known = ", ".join(every)
                raise ValueError(f"--{form}: expected one of {known} or {EVERY}, got {name!r}")
            files[_place(directory, f"{name}.{form}", out)] = every[name]
    if out is not None and out.suffix and len(files) > 1:
        raise ValueError(f"--out {out}: {len(files)} plots go into a folder, not into one file")
    for path, drawing in files.items():
        draw.write(drawing, path)
    if as_json:
        print_json({"files": [str(path) for path in files]})
        return
    for path in files:
        print_line(printable(str(path)))


def _place(directory: Path, name: str, out: Path | None) -> Path:
    """Where that plot goes. Raises ValueError where something else is in the way."""
    if out is None:
        return own_place(directory, name)
    form = name.rpartition(".")[2]
    if out.suffix:
        return named_place(out, form)
    if not out.parent.is_dir():
        raise ValueError(f"--out: {out.parent} is no directory: make it, or name another place")
    out.mkdir(mode=0o700, exist_ok=True)
    return named_place(out / name, form)


def deliver(
    text: str, directory: Path, name: str, out: Path | None, *, as_json: bool = False
) -> None:
    """`text` as the file `name` in a run's own `reports/`, or `out`; and where that is, in words.

    Raises ValueError where it cannot be written, or two things would be printed.
    """
    form = name.rpartition(".")[2]
    data = text.encode("utf-8", "replace")
    if out == STDOUT:
        if as_json:
            raise ValueError("--out - prints the report itself: leave --json out, or name a file")
        write_bytes(data)
        return
    path = own_place(directory, name) if out is None else named_place(out, form)
    write_aside(path, data)
    if as_json:
        print_json({"file": str(path), "bytes": len(data), "url": path.resolve().as_uri()})
        return
    print_line(printable(str(path)))
    if form == "html":
        print_line(printable(f"Open it in a browser: {path.resolve().as_uri()}"))
