"""What a page consists of, before it is Markdown, HTML or a terminal's text.

Text is a line of Markdown with code, bold and escapes (`formatting.plain`) and nothing else; logs
and commands are as they are.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from budgets.formatting import plain, printable, sentence_case, table

Mood = Literal["good", "caution", "bad", "open", "trouble"]
"""Go; Go with a But; No-Go; running, or without a verdict; paused, stopped, interrupted."""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str

    def markdown(self) -> Iterator[str]:
        yield self.text


@dataclass(frozen=True)
class Items:
    """A list of points."""

    entries: Sequence[str]

    def markdown(self) -> Iterator[str]:
        return (f"- {entry}" for entry in self.entries)


@dataclass(frozen=True)
class Table:
    """Rows of as many cells as there are columns; a column of numbers is called `>cost`."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    def markdown(self) -> Iterator[str]:
        if self.caption:
            yield from (f"{self.caption}:", "")
        yield from table(self.columns, self.rows)


@dataclass(frozen=True)
class Figure:
    """A plot: what it shows in words, and as SVG where it is displayed."""

    name: str
    title: str
    caption: str  # how to read it
    description: str  # what it shows, for readers who do not see it
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
        yield from (f"### {self.title}", "", *_lines(self.blocks))


Block = Text | Items | Table | Figure | Log | Commands | Details


@dataclass(frozen=True)
class Section:
    """A part of a page with a title of its own."""

    name: str  # its anchor
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a reader asks first, in a sentence or two each: text, without any marks."""

    title: str  # the verdict in two or three words: `Go that persists`, `Running`
    sentence: str  # the verdict in a plain sentence, with its evidence
    but: str = ""  # what to know before relying on that
    meaning: str = ""  # what the title means
    chance: str = ""  # what noise alone would have shown
    found: str  # did it find something
    sure: str  # how sure is that
    cost: str  # what did it cost, of what was allowed
    next: str  # what to do now
    commands: tuple[str, ...] = ()  # that do it, to copy: at most one more than the first
    otherwise: str = ""  # what the other is for: `Or, ...:`
    mood: Mood

    @property
    def parts(self) -> dict[str, str]:
        """What there is to say below the verdict, by its name."""
        but = {"But": sentence_case(self.but)} if self.but else {}
        sure = f"{self.sure} {self.chance}".rstrip()
        found = {"Found": self.found, "How sure": sure}
        return but | found | {"Cost": self.cost, "Next": self.next}


def headline(title: str, sentence: str, mood: Mood = "open") -> Answer:
    """An answer without the four questions: of a comparison, or of a campaign's runs."""
    return Answer(title=title, sentence=sentence, mood=mood, found="", sure="", cost="", next="")


class Page(NamedTuple):
    """What is shown of a run, of several, or of a campaign of jobs."""

    name: str
    about: str  # what that is, in a few words
    answer: Answer
    sections: Sequence[Section]

    def markdown(self) -> str:
        """The page as Markdown."""
        head = f"# {plain(self.name)}: {plain(self.answer.title)}\n\n{plain(self.about)}\n\n"
        return f"{printable(head)}{_answer(self.answer)}\n{markdown(self.sections)}"


def table_of(caption: str, rows: Iterable[Mapping[str, object]]) -> list[Table]:
    """A table of rows that all have the same columns; none where there are no rows."""
    own = list(rows)
    return [Table(caption, list(own[0]), [list(row.values()) for row in own])] if own else []


def ruler(baseline: float, recommended: float | None) -> str:
    """Places in a knob's range, 0 to 1, before and after: `···○··●····`, as a table's cell."""
    marks = ["·"] * 11
    for unit, mark in ((baseline, "○"), (recommended, "●")):
        if unit is not None:
            marks[min(max(int(unit * 11), 0), 10)] = mark
    return f"`{''.join(marks)}`"


# As Markdown, and as lines


def markdown(sections: Iterable[Section]) -> str:
    """The sections as Markdown."""
    parts = [[f"## {one.title}", "", *_lines(one.blocks), ""] for one in sections]
    return printable("\n".join(line for part in parts for line in part))


def _answer(answer: Answer) -> str:
    """The four answers as Markdown, the first part of a page."""
    blocks: list[Block] = [Text(f"**{plain(answer.sentence)}**")]
    blocks += [Text(plain(answer.meaning))] if answer.meaning else []
    if answer.found:
        blocks += [Items([f"**{name}**: {plain(said)}" for name, said in answer.parts.items()])]
    blocks += [Commands(answer.commands[:1])] if answer.commands else []
    if answer.commands[1:]:
        blocks += [Text(plain(answer.otherwise or "Or:")), Commands(answer.commands[1:])]
    return printable("\n".join([*_lines(blocks), ""]))


def answer_in_lines(answer: Answer) -> Iterator[str]:
    """The four answers for a terminal, the verdict first."""
    yield f"{answer.title}: {answer.sentence}"
    yield from (f"{name}: {said}" for name, said in answer.parts.items())
    yield from (f"  {line}" for line in answer.commands[:1])
    if answer.commands[1:]:
        yield answer.otherwise or "Or:"
        yield from (f"  {line}" for line in answer.commands[1:])


def _lines(blocks: Iterable[Block]) -> list[str]:
    """Markdown lines of the blocks, a blank one between any two."""
    found: list[str] = []
    for block in blocks:
        found += ["", *block.markdown()] if found else block.markdown()
    return found


def _fenced(lines: Sequence[str]) -> Iterator[str]:
    """The lines in a fence that none of them closes."""
    longest = max((len(line) - len(line.lstrip("`")) for line in map(str.strip, lines)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (fence, *lines, fence)
