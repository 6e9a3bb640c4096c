"""`compare`: runs side by side, on a terminal, as a page, as Markdown, as JSON."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from budgets.plain import plain, printable
from orchestrator.cli.delivered import deliver
from orchestrator.cli.options import DEFAULT_ROOT, Json, Root
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.look.page import STDOUT, named_place
from orchestrator.look.run import Run
from orchestrator.records.recorded import load_state

if TYPE_CHECKING:
    from orchestrator.look.compare import Comparison

Runs = Annotated[
    list[str],
    Argument(metavar="RUN RUN ...", help="Ids or directories."),
]
AsHtml = Annotated[bool, Option("--html", help="Write it as one page, for any browser.")]
AsMarkdown = Annotated[bool, Option("--md", help="Write the same as Markdown.")]
Out = Annotated[
    Path | None,
    Option(
        "--out",
        "-o",
        metavar="PATH",
        help="Where to, `-`: print it; default: into the first run's reports/.",
    ),
]


def compare(
    runs: Runs,
    root: Root = DEFAULT_ROOT,
    as_html: AsHtml = False,
    as_md: AsMarkdown = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Runs side by side: whether their scores compare, gains, costs, what differs, knobs.

    Writes nothing without --html or --md.
    """
    if as_html and as_md:
        raise ValueError("--html and --md: one at a time")
    form = "html" if as_html else "md" if as_md else None
    if out is not None and form is None:
        raise ValueError("--out says where to: add --html or --md")
    if form is not None and out not in (None, STDOUT):
        named_place(out, form)  # before the time it takes to fill it
    from orchestrator.look.compare import Comparison, document, places

    directories = places(runs, root)
    now = datetime.now(UTC)
    found = Comparison([Run(load_state(own), now, own) for own in directories])
    if form is not None:
        page = _html(found) if as_html else _markdown(found)
        deliver(page, directories[0], f"compare.{form}", out, as_json=as_json)
    elif as_json:
        print_json(document(found))
    else:
        print_markdown(_markdown(found))


def _markdown(found: "Comparison") -> str:
    from orchestrator.look.blocks import markdown
    from orchestrator.look.compare import sections

    names = " · ".join(map(plain, found.names))
    lead = f"# {names}: {found.heading}\n\n{plain(found.sentence)}\n\n"
    return printable(lead) + markdown(sections(found))


def _html(found: "Comparison") -> str:
    from orchestrator.look.compare import sections
    from orchestrator.look.page import Header, headline, page

    header = Header(" · ".join(found.names), f"{len(found.runs)} runs side by side")
    return page(header, headline(found.heading, found.sentence), sections(found))
