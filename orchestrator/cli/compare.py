"""`compare`: runs side by side, on a terminal, as a page, as Markdown, as JSON."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from orchestrator.cli.delivered import deliver
from orchestrator.cli.options import DEFAULT_ROOT, Json, Root
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.compare.places import places
from orchestrator.report.written import STDOUT, named_place

if TYPE_CHECKING:
    from orchestrator.compare.model import Compared

Runs = Annotated[
    list[str],
    Argument(metavar="RUN RUN ...", help="Ids or directories; of a campaign of runs: all of them."),
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
    directories = places(runs, root)
    from orchestrator.compare.collect import compare as collect

    found = collect(directories)
    if form is not None:
        deliver(_text_of(found, form), directories[0], f"compare.{form}", out, as_json=as_json)
    elif as_json:
        print_json(found.model_dump(mode="json"))
    else:
        print_markdown(_text_of(found, "md", has_plots=False))


def _text_of(found: "Compared", form: str, *, has_plots: bool = True) -> str:
    from orchestrator.compare.contents import lead, sections

    own = lead(found), sections(found, has_plots=has_plots)
    if form == "html":
        from orchestrator.report.page import of_sections as page

        return page(*own)
    from orchestrator.report.markdown import of_sections as markdown

    return markdown(*own)
