"""A report as Markdown: the sections of the page in their order, plots as what they show."""

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from budgets.blocks import Heading, Items, Table, Text
from budgets.plain import plain, printable
from budgets.table import table
from orchestrator.charts.chart import Plot
from orchestrator.report.contents.blocks import (
    Block,
    Commands,
    Figure,
    Lead,
    Log,
    Section,
)
from orchestrator.report.contents.sections import sections
from orchestrator.report.model import Answer, Report


def markdown(report: Report, plots: Iterable[Plot]) -> str:
    """All of it, the four answers first."""
    own = report.identity
    tier = "" if own.tier is None else f", tier {own.tier}"
    lines = [
        f"# {plain(own.run_id)}: {plain(report.answer.title)}",
        "",
        f"{plain(own.objective)}, {own.phase}{tier}, as of {own.last:%Y-%m-%d %H:%M} UTC.",
        "",
        *_answer(report.answer),
    ]
    for section in sections(report, plots):
        lines += _section(section)
    return printable("\n".join([*lines, ""]))


def of_sections(lead: Lead, parts: Iterable[Section]) -> str:
    """Something else than one run in the same form."""
    lines = [f"# {plain(lead.name)}: {plain(lead.heading)}", "", f"{plain(lead.about)}.", ""]
    lines.append(f"**{plain(lead.sentence)}**")
    for section in parts:
        lines += _section(section)
    return printable("\n".join([*lines, ""]))


def _answer(own: Answer) -> Iterator[str]:
    yield f"**{plain(own.sentence)}**"
    yield ""
    if own.but:
        yield f"**But** {plain(own.but)}"
        yield ""
    if own.meaning:
        yield plain(own.meaning)
        yield ""
    yield f"- **Found**: {plain(own.found)}"
    yield f"- **How sure**: {plain(f'{own.sure} {own.luck}'.strip())}"
    yield f"- **Cost**: {plain(own.cost)}"
    yield f"- **Next**: {plain(own.next)}"
    if own.commands:
        yield from ("", *_fenced(own.commands[:1]))
    if own.commands[1:]:
        yield from ("", plain(own.otherwise), "") if own.otherwise else ("",)
        yield from _fenced(own.commands[1:])


def _section(section: Section) -> Iterator[str]:
    yield from ("", f"## {section.title}")
    for block in section.blocks:
        yield ""
        yield from lines_of(block)


def lines_of(block: Block) -> Iterator[str]:
    """A block as lines."""
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
        case Figure(plot):
            yield f"*{plain(plot.title)}.* {plain(plot.caption)}"
            yield ""
            yield plain(plot.description)
        case Log(where, lines):
            yield f"The last lines of {plain(where)}:"
            yield ""
            yield from _fenced(lines)
        case Commands(lines):
            yield from _fenced(lines)
        case _:
            assert_never(block)


def _fenced(lines: Sequence[str]) -> Iterator[str]:
    """As they are, in a fence that none of them ends."""
    longest = max((len(line) - len(line.lstrip("`")) for line in map(str.strip, lines)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (fence, *lines, fence)
