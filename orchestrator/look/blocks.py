"""What a page consists of, before it is Markdown, HTML or a terminal's text.

`budgets.blocks` has the paragraphs, lists and tables. Text there is a line of Markdown with code,
bold and escapes (`budgets.formatting.plain`) and nothing else; logs and commands are as they are.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from budgets.blocks import Heading, Items, Table, Text
from budgets.blocks import markdown as in_lines
from budgets.formatting import plain, printable, sentence_case

Mood = Literal["good", "caution", "bad", "open", "trouble"]
"""Go; Go with a But; No-Go; running, or without a verdict; paused, stopped, interrupted."""


@dataclass(frozen=True)
class Ruler:
    """A table's cell: places in a knob's range, 0 to 1, where it was and where it is to go."""

    baseline: float
    recommended: float | None

    def __str__(self) -> str:
        """`···○··●····`."""
        marks = ["·"] * 11
        for unit, mark in ((self.baseline, "○"), (self.recommended, "●")):
            if unit is not None:
                marks[min(max(int(unit * 11), 0), 10)] = mark
        return "".join(marks)


@dataclass(frozen=True)
class Figure:
    """A plot: what it shows in words, and as SVG where somebody sees it."""

    name: str
    title: str
    caption: str  # how to read it
    description: str  # what it shows, for those who do not see it
    svg: str = ""

    def markdown(self) -> Iterator[str]:
        yield from (f"*{plain(self.title)}.* {plain(self.caption)}", "", plain(self.description))


@dataclass(frozen=True)
class Log:
    """The last lines of a file."""

    where: str
    lines: Sequence[str]

    def markdown(self) -> Iterator[str]:
        yield from (f"The last lines of {plain(self.where)}:", "", *_fenced(self.lines))


@dataclass(frozen=True)
class Commands:
    """Lines for a shell."""

    lines: Sequence[str]

    def markdown(self) -> Iterator[str]:
        return _fenced(self.lines)


@dataclass(frozen=True)
class Details:
    """What few readers want: a page shows its title, and the rest when it is opened."""

    title: str
    blocks: Sequence["Block"]

    def markdown(self) -> Iterator[str]:
        yield from in_lines([Heading(self.title), *self.blocks])


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

    @property
    def parts(self) -> dict[str, str]:
        """What there is to say below the verdict, by its name."""
        but = {"But": sentence_case(self.but)} if self.but else {}
        sure = f"{self.sure} {self.luck}".rstrip()
        found = {"Found": self.found, "How sure": sure}
        return but | found | {"Cost": self.cost, "Next": self.next}


def table_of(caption: str, rows: Iterable[Mapping[str, object]]) -> list[Table]:
    """A table of rows that all have the same columns; none where there are no rows."""
    own = list(rows)
    return [Table(caption, list(own[0]), [list(row.values()) for row in own])] if own else []


def markdown(sections: Iterable[Section]) -> str:
    """The sections as Markdown."""
    parts = [[f"## {one.title}", "", *in_lines(one.blocks), ""] for one in sections]
    return printable("\n".join(line for part in parts for line in part))


def answer_in_markdown(answer: Answer) -> str:
    """The four answers, the first things of a page."""
    blocks: list[Block] = [Text(f"**{plain(answer.sentence)}**")]
    blocks += [Text(plain(answer.meaning))] if answer.meaning else []
    blocks += [Items([f"**{name}**: {plain(said)}" for name, said in answer.parts.items()])]
    blocks += [Commands(answer.commands[:1])] if answer.commands else []
    if answer.commands[1:]:
        blocks += [Text(plain(answer.otherwise or "Or:")), Commands(answer.commands[1:])]
    return printable("\n".join([*in_lines(blocks), ""]))


def answer_in_lines(answer: Answer) -> Iterator[str]:
    """The same for a terminal, the verdict first."""
    yield f"{answer.title}: {answer.sentence}"
    yield from (f"{name}: {said}" for name, said in answer.parts.items())
    yield from (f"  {line}" for line in answer.commands[:1])
    if answer.commands[1:]:
        yield answer.otherwise or "Or:"
        yield from (f"  {line}" for line in answer.commands[1:])


def _fenced(lines: Sequence[str]) -> Iterator[str]:
    """As they are, in a fence that none of them ends."""
    longest = max((len(line) - len(line.lstrip("`")) for line in map(str.strip, lines)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (fence, *lines, fence)
