"""What a page consists of, before it is Markdown, HTML or a terminal's text.

A block is Markdown, a plot, or blocks that a page folds. Of Markdown there are paragraphs, lists,
tables and fences, with code and bold; text from elsewhere goes through `formatting.plain`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from budgets.formatting import plain, printable, sentence_case
from budgets.formatting import table as table_lines

Mood = Literal["good", "caution", "bad", "open", "trouble"]
"""Go; Go with a But; No-Go; running, or without a verdict; paused, stopped, interrupted."""


@dataclass(frozen=True)
class Figure:
    """A plot as SVG, which only a page shows. Its texts are plain."""

    name: str
    title: str
    caption: str  # how to read it
    svg: str


@dataclass(frozen=True)
class Details:
    """What few readers want: a page shows its title, and the rest when it is opened."""

    title: str  # plain text
    blocks: Sequence["Block"]


Block = str | Figure | Details


@dataclass(frozen=True)
class Section:
    """A part of a page with a title of its own, in plain text."""

    name: str  # its anchor
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a reader asks first, in a sentence or two each: text, without any marks."""

    title: str  # the verdict in two or three words: `Go that persists`, `Running`
    sentence: str  # the verdict in a plain sentence, with its evidence
    but: str = ""  # what to know before relying on that
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
        found = {"Found": self.found, "How sure": self.sure}
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
        own = self.answer
        parts = [f"# {plain(self.name)}: {plain(own.title)}", plain(self.about)]
        parts.append(f"**{plain(own.sentence)}**")
        if own.found:
            parts.append(items(f"**{name}**: {plain(it)}" for name, it in own.parts.items()))
        if own.commands:
            parts.append(commands(own.commands[0]))
        if own.commands[1:]:
            parts += [plain(own.otherwise or "Or:"), commands(*own.commands[1:])]
        parts.append(markdown(self.sections))
        return printable("\n\n".join(filter(None, parts)))


# Parts of Markdown


def items(entries: Iterable[str]) -> str:
    """A list of points."""
    return "\n".join(f"- {entry}" for entry in entries)


def table(caption: str, rows: Iterable[Mapping[str, object]]) -> list[str]:
    """A table of rows that all have the same columns, of numbers `>so`; empty without a row."""
    own = list(rows)
    if not own:
        return []
    lines = "\n".join(table_lines(own[0], (row.values() for row in own)))
    return [f"{caption}:\n\n{lines}" if caption else lines]


def commands(*lines: str) -> str:
    """Lines for a shell, in a fence that none of them closes."""
    longest = max((len(line) - len(line.lstrip("`")) for line in map(str.strip, lines)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}sh", *lines, fence])


def ruler(baseline: float, recommended: float | None) -> str:
    """Places in a knob's range, 0 to 1, before and after: `···○··●····`, as a table's cell."""
    marks = ["·"] * 11
    for unit, mark in ((baseline, "○"), (recommended, "●")):
        if unit is not None:
            marks[min(max(int(unit * 11), 0), 10)] = mark
    return f"`{''.join(marks)}`"


# As Markdown, and as lines


def markdown(sections: Iterable[Section]) -> str:
    """The sections as Markdown, without plots."""
    parts = (part for one in sections for part in (f"## {plain(one.title)}", *_parts(one.blocks)))
    return printable("\n\n".join(parts) + "\n")


def _parts(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, str):
            yield block
        elif isinstance(block, Details):
            yield from (f"### {plain(block.title)}", *_parts(block.blocks))


def answer_in_lines(answer: Answer) -> Iterator[str]:
    """The four answers for a terminal, the verdict first."""
    yield f"{answer.title}: {answer.sentence}"
    yield from (f"{name}: {said}" for name, said in answer.parts.items())
    yield from (f"  {line}" for line in answer.commands[:1])
    if answer.commands[1:]:
        yield answer.otherwise or "Or:"
        yield from (f"  {line}" for line in answer.commands[1:])
