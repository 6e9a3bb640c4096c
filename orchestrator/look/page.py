"""The parts of a page, and its forms: Markdown, lines for a terminal, and one HTML file.

A block is Markdown, a plot, or blocks that a page folds. The Markdown has paragraphs, lists, tables
and fences, with code and bold; text from elsewhere goes through `formatting.plain` first. The HTML
file needs no script and no network. Every text in it is escaped, and loses the characters that
steer a terminal or reverse text. A plot is an image inside the file.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

from markupsafe import Markup, escape

from budgets.formatting import plain, printable
from budgets.formatting import table as table_lines
from orchestrator.look.plots import Drawing

Mood = Literal["good", "caution", "bad", "open", "trouble"]
"""Go; Go with a But; No-Go; running or without a verdict; paused, stopped or interrupted."""


class Section(NamedTuple):
    """A part of a page under a title. HTML folds a section within another."""

    title: str  # plain text
    blocks: Sequence["Block"]


Block = str | Drawing | Section


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The first screen: a sentence or two for each of a reader's questions, as plain text."""

    title: str  # the verdict in two or three words: `Go that persists`, `In progress`
    sentence: str  # the verdict with its evidence
    but: str = ""  # what speaks against relying on it
    found: str = ""  # empty for several runs together
    sure: str = ""  # how certain that is; empty for several runs, too
    cost: str = ""
    next: str = ""  # what to do now
    commands: tuple[str, ...] = ()  # the commands for it, to copy
    mood: Mood = "open"

    @property
    def parts(self) -> dict[str, str]:
        """The answers below the verdict, by their names."""
        said = {"But": self.but, "Found": self.found, "How sure": self.sure}
        said |= {"Cost": self.cost, "Next": self.next}
        return {name: one for name, one in said.items() if one}

    @property
    def headline(self) -> str:
        """The verdict, or the progress, in a line."""
        return f"{self.title}: {self.sentence}"

    def lines(self) -> Iterator[str]:
        """Yield the answers for a terminal, the verdict first."""
        yield self.headline
        yield from (f"{name}: {said}" for name, said in self.parts.items())
        yield from (f"  {line}" for line in self.commands)


class Page(NamedTuple):
    """What is shown of a run, of several, or of a campaign of jobs; also in a notebook."""

    name: str
    about: str  # what it is, in a few words
    answer: Answer
    sections: Sequence[Section]

    def save(self, path: str | Path) -> Path:
        """Write it as HTML to a file, and return the path."""
        file = Path(path)
        file.write_text(page_html(self), "utf-8", "replace")
        return file

    def _repr_html_(self) -> str:
        page = escape(page_html(self))
        return f'<iframe srcdoc="{page}" style="width:100%;height:60em;border:0"></iframe>'


# Parts of Markdown


def items(entries: Iterable[str]) -> str:
    """Return a list of points."""
    return "\n".join(f"- {entry}" for entry in entries)


def table(caption: str, rows: Iterable[Mapping[str, object]]) -> list[str]:
    """Return a table of rows with the same keys; a key with `>` is a column of numbers.

    Empty without a row.
    """
    own = list(rows)
    if not own:
        return []
    lines = "\n".join(table_lines(own[0], (row.values() for row in own)))
    return [f"{caption}:\n\n{lines}" if caption else lines]


def commands(*lines: str) -> str:
    """Return commands of this program, one a line, in a fence."""
    return "\n".join(["```sh", *lines, "```"])


# As Markdown


def page_markdown(page: Page) -> str:
    """Return the whole page as Markdown, without plots."""
    own = page.answer
    parts = [f"# {plain(page.name)}: {plain(own.title)}", plain(page.about)]
    parts.append(f"**{plain(own.sentence)}**")
    if own.parts:
        parts.append(items(f"**{name}**: {plain(it)}" for name, it in own.parts.items()))
    if own.commands:
        parts.append(commands(*own.commands))
    parts.append(markdown(page.sections))
    return printable("\n\n".join(filter(None, parts)))


def markdown(sections: Iterable[Section]) -> str:
    """Return sections as Markdown, without plots."""
    return printable("\n\n".join(_parts(sections)) + "\n")


def _parts(blocks: Iterable[Block], mark: str = "##") -> Iterator[str]:
    for block in blocks:
        if isinstance(block, str):
            yield block
        elif isinstance(block, Section):
            yield from (f"{mark} {plain(block.title)}", *_parts(block.blocks, f"{mark}#"))


# As HTML


def page_html(page: Page) -> str:
    """Return the whole page as one HTML file."""
    main = template().answer(page) + template().sections(page.sections)
    return str(template().document(f"{page.answer.title}: {page.name}", main))


def policy() -> str:
    """Return the content security policy: our style sheet, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    allowed = f"style-src 'sha256-{digest}'; img-src data:"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


@cache
def template() -> Any:
    """Return the macros of `templates/page.html.j2`, which return Markup."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("orchestrator.look"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(block=_block, style=_style, policy=policy)
    return made.get_template("page.html.j2").module


@cache
def _style() -> Markup:
    sheet = (files("orchestrator.look") / "templates" / "style.css").read_text()
    return Markup(sheet)  # noqa: S704 - our own file


def _block(own: Block) -> Markup:
    """Raise TypeError on an unknown block: nothing is left out silently."""
    if isinstance(own, Drawing | Section):
        made: Markup = getattr(template(), type(own).__name__.lower())(own)
        return made
    if not isinstance(own, str):
        raise TypeError(f"expected Markdown, a Drawing or a Section, got {type(own).__name__}")
    parser = _markdown_parser()
    tokens = parser.parse(printable(own))
    for token in tokens:
        if token.attrs.pop("style", None):  # of a number's column: the policy forbids it
            token.attrs["class"] = "number"
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 - it escapes


@cache
def _markdown_parser() -> Any:
    """Return a parser of what blocks are written in: no foreign markup, links or images."""
    from markdown_it import MarkdownIt

    made = MarkdownIt("zero", {"html": False})
    made.enable(["table", "list", "fence", "backticks", "emphasis", "escape"])
    made.add_render_rule("table_open", lambda *_: '<div class="scroll"><table>')
    made.add_render_rule("table_close", lambda *_: "</table></div>")
    return made
