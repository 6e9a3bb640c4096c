"""`report`: what a run or a campaign came to, on a terminal, as a page, as Markdown, as JSON."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from typer import Option

from budgets.plain import printable
from orchestrator.charts.forms import Form, can_draw
from orchestrator.cli.board import collected, draw_board, show_result
from orchestrator.cli.delivered import deliver
from orchestrator.cli.options import DEFAULT_ROOT, Json, Root, RunName
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.cli.told import tell
from orchestrator.look.board import Board, find_board
from orchestrator.look.document import document
from orchestrator.look.reports import rebuild as rebuild_files
from orchestrator.look.reports import report_markdown
from orchestrator.look.run import Run
from orchestrator.look.sections import sections
from orchestrator.records.recorded import find_run, load_state
from orchestrator.report.campaign_picture import PICTURE
from orchestrator.report.written import STDOUT, named_file, named_place, own_reports
from orchestrator.running.session import system_clock

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
    run: RunName = None,
    root: Root = DEFAULT_ROOT,
    as_html: AsHtml = False,
    as_md: AsMarkdown = False,
    png: PngNames = None,
    pdf: PdfNames = None,
    out: Out = None,
    rebuild: Annotated[
        bool, Option("--rebuild", help="Also write the run's report files again.")
    ] = False,
    plot: Annotated[
        Path | None,
        Option("--plot", metavar="FILE", help="Draw a campaign: FILE.png, FILE.svg or FILE.pdf."),
    ] = None,
    as_json: Json = False,
) -> None:
    """What a run as it stands, or a campaign, came to: found, how sure, at what cost, what next.

    --html, --md, --json: all of it, with evidence, plots, knobs and logs. --png, --pdf: a plot.

    Writes nothing without --html, --md, --png, --pdf, --plot or --rebuild.
    """
    drawn: dict[Form, list[str]] = {"png": png or [], "pdf": pdf or []}
    form = _form(out, html=as_html, md=as_md, is_drawn=any(drawn.values()))
    if form is not None and out not in (None, STDOUT):
        named_place(out, form)  # before the time it takes to fill it
    board = find_board(run, root, system_clock().now())
    if plot is not None:
        named_file("--plot", plot)
        draw_board(board, plot)
    if board is not None and board.is_of_runs:
        if any(drawn.values()):
            raise ValueError("--png, --pdf: the plots are of one run; --plot FILE draws a campaign")
        if rebuild:
            board = collected(board.directory, system_clock().now(), lambda _: None)
        _of_runs(board, form, out, as_json=as_json)
        return
    directory = find_run(run, root)
    if rebuild:
        _rebuild(directory, board)
    if any(drawn.values()):
        _draw(directory, drawn, out, as_json=as_json)
    elif form is not None:
        deliver(_text_of(directory, form), directory, f"report.{form}", out, as_json=as_json)
    elif as_json:
        print_json(document(_view(directory)))
    else:
        tell(_view(directory), print_markdown, lambda line: print_line(printable(line)))


def _view(directory: Path) -> Run:
    return Run(load_state(directory), system_clock().now(), directory)


def _form(out: Path | None, *, html: bool, md: bool, is_drawn: bool) -> str | None:
    """Raises ValueError where two forms are asked for, or a place for none."""
    if html + md + is_drawn > 1:
        raise ValueError("--html, --md, and --png with --pdf: one at a time")
    if out is not None and not (html or md or is_drawn):
        raise ValueError("--out says where to: add --html, --md, --png or --pdf")
    return "html" if html else "md" if md else None


def _rebuild(directory: Path, board: Board | None) -> None:
    load_state(directory)  # a ledger that cannot be read leaves every file as it is
    rebuild_files(directory, system_clock().now())
    if board is not None and can_draw():
        draw_board(board, directory / PICTURE)


def _of_runs(board: Board, form: str | None, out: Path | None, *, as_json: bool) -> None:
    """A campaign whose cells are runs, with ledgers of their own."""
    if form is None:
        show_result(board, as_json=as_json)
        return
    from orchestrator.report import boards

    text = boards.page(board) if form == "html" else boards.markdown(board)
    deliver(text, board.directory, f"report.{form}", out, as_json=as_json)


def _text_of(directory: Path, form: str) -> str:
    if form == "md":
        run = _view(directory)
        return report_markdown(run, sections(run))
    from orchestrator.report.collect import report as collect
    from orchestrator.report.page import html

    return html(collect(directory))


def _draw(
    directory: Path, drawn: Mapping[Form, Sequence[str]], out: Path | None, *, as_json: bool
) -> None:
    from orchestrator.report.collect import report as collect
    from orchestrator.report.pictures import write_pictures

    if out == STDOUT:
        raise ValueError("--out -: a picture is not for a terminal: name a file or a folder")
    where = own_reports(directory) if out is None else out
    written = write_pictures(collect(directory), drawn, where)
    if as_json:
        print_json({"files": [str(path) for path in written]})
        return
    for path in written:
        print_line(printable(str(path)))
