"""What a page consists of, before it is Markdown, HTML or a terminal's text.

`budgets.blocks` has the paragraphs, lists and tables. Text there is a line of Markdown with code,
bold and escapes (`budgets.plain.plain`) and nothing else; logs and commands are as they are.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from budgets.blocks import Heading, Items, Table, Text
from budgets.plain import plain, printable
from budgets.table import table
from budgets.words import sentence_case

RULER = 11
"""Characters of a knob's range."""

Mood = Literal["good", "caution", "bad", "open", "trouble"]
"""Go; Go with a But; No-Go; running, or without a verdict; paused, stopped, interrupted."""


@dataclass(frozen=True)
class Ruler:
    """A table's cell: places in a knob's range, 0 to 1, where it was and where it is to go."""

    baseline: float
    recommended: float | None

    def __str__(self) -> str:
        """`···○··●····`."""
        marks = ["·"] * RULER
        marks[_place(self.baseline)] = "○"
        if self.recommended is not None:
            marks[_place(self.recommended)] = "●"
        return "".join(marks)


def _place(unit: float) -> int:
    return min(max(int(unit * RULER), 0), RULER - 1)


@dataclass(frozen=True)
class Figure:
    """A plot: what it shows in words, and as SVG where somebody sees it."""

    name: str
    title: str
    caption: str  # how to read it
    description: str  # what it shows, for those who do not see it
    svg: str = ""


@dataclass(frozen=True)
class Log:
    """The last lines of a file."""

    where: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Commands:
    """Lines for a shell."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Details:
    """What few readers want: a page shows its title, and the rest when it is opened."""

    title: str
    blocks: Sequence["Block"]


Block = Text | Items | Heading | Table | Figure | Log | Commands | Details


@dataclass(frozen=True)
class Section:
    """A part of a page with a title of its own."""

    name: str  # its anchor
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a person asks first, in a sentence or two each: text, without any marks."""

    title: str  # the verdict in two or three words: `Go that persists`, `Running`
    sentence: str  # the verdict in a plain sentence, with its evidence
    but: str = ""  # what to know before relying on that, to stand behind `But`
    meaning: str = ""  # what the title means, for who never heard it
    luck: str = ""  # what luck alone would have shown
    found: str  # did it find something
    sure: str  # how sure is that
    cost: str  # what did it cost, of what was allowed
    next: str  # what to do now
    commands: tuple[str, ...] = ()  # ... to copy: the one that does that, and at most another
    otherwise: str = ""  # what the other is for: `Or, ...:`
    mood: Mood


def markdown(sections: Iterable[Section]) -> str:
    """The sections as Markdown."""
    lines: list[str] = []
    for section in sections:
        lines += ["", f"## {section.title}"] if lines else [f"## {section.title}"]
        for block in section.blocks:
            lines += ["", *_lines(block)]
    return printable("\n".join([*lines, ""]))


def answer_in_markdown(answer: Answer) -> str:
    """The four answers, the first things of a page."""
    lines = [f"**{plain(answer.sentence)}**", ""]
    if answer.but:
        lines += [f"**But** {plain(answer.but)}", ""]
    if answer.meaning:
        lines += [plain(answer.meaning), ""]
    for name, said in (
        ("Found", answer.found),
        ("How sure", f"{answer.sure} {answer.luck}".strip()),
        ("Cost", answer.cost),
        ("Next", answer.next),
    ):
        lines.append(f"- **{name}**: {plain(said)}")
    if answer.commands:
        lines += ["", *_fenced(answer.commands[:1])]
    if answer.commands[1:]:
        lines += ["", plain(answer.otherwise or "Or:"), "", *_fenced(answer.commands[1:])]
    return printable("\n".join([*lines, ""]))


def answer_in_lines(answer: Answer) -> Iterator[str]:
    """The same for a terminal, the verdict first."""
    yield f"{answer.title}: {answer.sentence}"
    if answer.but:
        yield f"But: {sentence_case(answer.but)}"
    yield f"Found: {answer.found}"
    yield f"How sure: {answer.sure} {answer.luck}".rstrip()
    yield f"Cost: {answer.cost}"
    yield f"Next: {answer.next}"
    yield from (f"  {line}" for line in answer.commands[:1])
    if answer.commands[1:]:
        yield answer.otherwise or "Or:"
        yield from (f"  {line}" for line in answer.commands[1:])


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Text(text):
            yield text
        case Items(entries):
            yield from (f"- {entry}" for entry in entries)
        case Heading(text):
            yield f"### {text}"
        case Table(caption, columns, rows):
            if caption:
                yield from (f"{caption}:", "")
            yield from table((column.removeprefix("<") for column in columns), rows)
        case Figure():
            yield from (f"*{plain(block.title)}.* {plain(block.caption)}", "")
            yield plain(block.description)
        case Log(where, lines):
            yield from (f"The last lines of {plain(where)}:", "", *_fenced(lines))
        case Commands(lines):
            yield from _fenced(lines)
        case Details(title, blocks):
            yield f"### {title}"
            for own in blocks:
                yield from ("", *_lines(own))
        case _:
            assert_never(block)


def _fenced(lines: Sequence[str]) -> Iterator[str]:
    """As they are, in a fence that none of them ends."""
    longest = max((len(line) - len(line.lstrip("`")) for line in map(str.strip, lines)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (fence, *lines, fence)
