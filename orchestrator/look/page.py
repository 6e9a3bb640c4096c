"""Blocks as one HTML file that needs nothing else: no script, no network; and where files go.

Every text is escaped and loses the characters that steer a terminal or turn text around. The only
markup from elsewhere is a figure's SVG, which `orchestrator.look.plots` draws and escapes.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from budgets.blocks import Heading, Items, Met, Table, Text
from budgets.ledger.storage import write_aside
from budgets.plain import printable
from objectives.settings import cut
from orchestrator.look.blocks import (
    Answer,
    Block,
    Commands,
    Details,
    Figure,
    Log,
    Mood,
    Ruler,
    Section,
)
from orchestrator.look.run import Run
from orchestrator.running.place import make_directory

if TYPE_CHECKING:
    from jinja2 import Environment

FOOT = (
    "Made from the run's ledger and the files of its attempts alone. Nothing here is fetched from "
    "anywhere."
)
TITLE_CHARACTERS = 120
MOST_CHARACTERS = 4000
"""Of one text: nobody reads more, and a browser would choke on it."""

LONG = 60
"""Characters: a cell with more may be broken over lines."""

TALL = 16
"""Rows: a table with more is in a box of its own height."""

WIDE = 6
"""Columns: one with more may have to be scrolled sideways, by a keyboard too."""

RULER_WIDTH, RULER_EDGE = 120, 6
"""Of a knob's range, in the units of its drawing."""

MACROS: dict[type, str] = {
    Text: "text",
    Items: "items",
    Heading: "heading",
    Table: "table",
    Figure: "figure",
    Log: "log",
    Commands: "commands_of",
    Details: "details",
}
"""What shows a block: macros of templates/blocks.html.j2."""

STDOUT = Path("-")
ENDINGS = {
    "html": (".html", ".htm"),
    "md": (".md", ".markdown", ".txt"),
    "png": (".png",),
    "pdf": (".pdf",),
}
"""How the name of a file ends that a page may be written to, or replace."""


@dataclass(frozen=True)
class Header:
    """The line above a page's title."""

    name: str  # of what the page is about: a run's id
    about: str  # what that is, in a few words


# Pages


def header(run: Run) -> Header:
    """Which run it is, and as of when."""
    tier = "" if run.plan.tier is None else f", tier {run.plan.tier}"
    as_of = f"as of {run.last:%Y-%m-%d %H:%M} UTC"
    return Header(run.plan.run_id, f"{run.objective}, {run.plan.phase}{tier}, {as_of}")


def answer_of(run: Run) -> Answer:
    """The four answers about a run."""
    from orchestrator.look.answer import answer

    return answer(run)


def sections_of(run: Run) -> tuple[Section, ...]:
    """Everything a page shows of a run, its plots drawn: takes seconds."""
    from orchestrator.look.plots import figures
    from orchestrator.look.sections import sections

    return sections(run, figures(run))


def page_of(run: Run) -> str:
    """A run's page, the whole document."""
    return page(header(run), answer_of(run), sections_of(run))


def page(head: Header, answer: Answer, sections: Sequence[Section]) -> str:
    """The whole document about a run."""
    return document(f"{answer.title}: {head.name}", content(head, answer, sections), FOOT)


def content(head: Header, answer: Answer, sections: Sequence[Section]) -> Markup:
    """What is inside the <main> of a run's page."""
    return answer_shown(head, answer) + sections_shown(sections)


def answer_shown(head: Header, answer: Answer) -> Markup:
    """The four answers, the first screen of a page."""
    return filled("answer.html.j2", header=head, answer=answer)


def sections_shown(sections: Sequence[Section]) -> Markup:
    """The rest of a page: its contents, and the sections."""
    return filled("sections.html.j2", sections=sections)


def plain_page(
    head: Header, heading: str, sentence: str, sections: Sequence[Section], mood: Mood = "open"
) -> str:
    """The whole document about something else than one run: a comparison, a campaign's cells."""
    values = {"heading": heading, "sentence": sentence, "mood": mood}
    main = filled("plain.html.j2", header=head, sections=sections, **values)
    return document(f"{heading}: {head.name}", main)


@dataclass(frozen=True)
class Followed:
    """What a page's script, which a file has none of, needs to keep it up to date."""

    script: str  # its address
    part: str  # the address of what is inside <main>
    tag: str  # of that, as it is in the page


def document(title: str, main: Markup, foot: str = "", followed: Followed | None = None) -> str:
    """A document around what is inside its <main>."""
    allowed = policy(with_script=followed is not None)
    head = {"title": title[:TITLE_CHARACTERS], "style": style(), "policy": allowed}
    return str(filled("base.html.j2", main=main, foot=foot, followed=followed, **head))


@cache
def style() -> Markup:
    """The style sheet of every page."""
    sheet = (files("orchestrator.look") / "templates" / "style.css").read_text()
    return Markup(sheet)  # noqa: S704 - our own file


def policy(*, with_script: bool = False) -> str:
    """What a browser may do: show the page, and load nothing, or what comes from its server."""
    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    scripts = "script-src 'self'; connect-src 'self'; " if with_script else ""
    return (
        f"default-src 'none'; {scripts}style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


# Templates


def filled(template: str, **values: Any) -> Markup:
    """A template of ours with those values."""
    rendered = _templates().get_template(template).render(**values)
    return Markup(rendered)  # noqa: S704 - a template escapes what it is given


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("orchestrator.look"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        block=_block,
        cell=_cell,
        drawing=lambda figure: Markup(figure.svg),  # noqa: S704 - plots escape what they write
        is_long=lambda value: type(value) is str and len(unmarked(value[:MOST_CHARACTERS])) > LONG,
        place=lambda unit: round(RULER_EDGE + RULER_WIDTH * min(max(unit, 0.0), 1.0), 1),
        ruler_in_words=_ruler_in_words,
        spans=lambda text: spans(cut(str(text), MOST_CHARACTERS)),
        tall=TALL,
        unmarked=lambda text: unmarked(cut(str(text), MOST_CHARACTERS)),
        wide=WIDE,
    )
    return made


def _shown(value: Any) -> Any:
    """Text without characters that steer: a page has no NUL, and nothing turns its text around."""
    if type(value) is not str:
        return value
    return printable(cut(value, MOST_CHARACTERS))


def _block(own: Block) -> Markup:
    """Raises TypeError: what no macro shows must not be left out in silence."""
    macro = MACROS.get(type(own))
    if macro is None:
        raise TypeError(f"no macro shows a block of {type(own).__name__}: add it to MACROS")
    return _macro(macro, own)


def _cell(value: object) -> Markup:
    return _macro({Ruler: "ruler", Met: "met"}.get(type(value), "inline"), value)


def _macro(name: str, value: object) -> Markup:
    macro: Callable[[object], Markup] = getattr(
        _templates().get_template("blocks.html.j2").module, name
    )
    return macro(value)


def _ruler_in_words(cell: Ruler) -> str:
    if cell.recommended is None:
        return f"{cell.baseline:.2f} of its range"
    return f"from {cell.baseline:.2f} to {cell.recommended:.2f} of its range"


# The little Markdown that texts are written in: code, bold, escapes, nothing else


class Span(NamedTuple):
    """A stretch of text; `style` is `code`, `strong` or empty."""

    text: str
    style: str = ""


_MARKS = re.compile(r"\\(?P<plain>[\\`<\[\]|*~_])|`(?P<code>[^`]+)`|\*\*(?P<strong>.+?)\*\*", re.S)


def spans(markdown: str) -> list[Span]:
    """A line as stretches of text, in order, the marks taken away."""
    found: list[Span] = []
    for span in _spans(markdown):
        if found and found[-1].style == span.style == "":
            found[-1] = Span(found[-1].text + span.text)
        elif span.text:
            found.append(span)
    return found


def _spans(markdown: str) -> Iterator[Span]:
    end = 0
    for mark in _MARKS.finditer(markdown):
        yield Span(markdown[end : mark.start()])
        end = mark.end()
        if (text := mark["plain"]) is not None:
            yield Span(text)
        elif (text := mark["code"]) is not None:
            yield Span(text, "code")
        else:
            yield Span(unmarked(mark["strong"]), "strong")
    yield Span(markdown[end:])


def unmarked(markdown: str) -> str:
    """What a line says, without its marks."""
    return "".join(span.text for span in spans(markdown))


# Where files go


def own_place(directory: Path, name: str) -> Path:
    """A file in the run's own `reports/`, which is made.

    Raises ValueError where that is a link, or something else is in the file's place.
    """
    reports = directory / "reports"
    if reports.is_symlink():
        raise ValueError(
            f"{reports} is a symbolic link: expected a run's own directory. Name a file with --out"
        )
    path = _plain(reports / name)
    make_directory(reports)
    return path


def named_file(flag: str, path: Path) -> Path:
    """The file that a person names. Raises ValueError where there can be none."""
    if not str(path).isprintable():
        raise ValueError(f"{flag}: expected a file's name, got {str(path)!r}")
    if path.is_dir():
        raise ValueError(f"{flag}: {path} is a directory: name a file in it")
    if not path.parent.is_dir():
        raise ValueError(f"{flag}: {path.parent} is no directory: make it, or name another place")
    return path


def named_place(out: Path, form: str) -> Path:
    """A file that a page may be written to. Raises ValueError where it cannot be."""
    named_file("--out", out)
    if out.suffix.lower() not in ENDINGS[form]:
        raise ValueError(
            f"--out: with --{form} expected a name that ends with {' or '.join(ENDINGS[form])}, "
            f"got {out}: name another file"
        )
    return _plain(out)


def _plain(path: Path) -> Path:
    """Raises ValueError where there is something else than a plain file."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise ValueError(
            f"{path} is no plain file: expected one, or nothing. Move it away, or name another "
            "with --out"
        )
    return path


def write(path: Path, text: str) -> int:
    """The whole file or nothing; returns how many bytes."""
    data = text.encode("utf-8", "replace")
    write_aside(path, data)
    return len(data)
