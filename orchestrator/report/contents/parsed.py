"""Markdown of the budget package as blocks, so that it is written in one place only."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from budgets.plain import plain
from orchestrator.report.contents.blocks import Block, Cell, Column, Items, Met, Table, Text

_BETWEEN_CELLS = re.compile(r"(?<!\\)\|")

_MET: dict[str, Cell] = {"yes": Met(is_met=True), "**no**": Met(is_met=False)}


def blocks_of(lines: Sequence[str], captions: Sequence[str] = ()) -> list[Block]:
    """Paragraphs, lists and tables, in order.

    Headings are left out: a section has its own. The first table has the first caption, and so on;
    where there are no more, the words of the heading that it stands under.
    """
    left, heading, found = iter(captions), "", list[Block]()
    for kind, group in groupby(lines, _kind):
        own = list(group)
        if kind == "heading":
            heading = own[-1].lstrip("# ")
        elif kind == "table":
            found.append(_table(own, next(left, heading)))
        elif kind == "list":
            found.append(Items([line.removeprefix("- ") for line in own]))
        elif kind == "text":
            found.append(Text(" ".join(own)))
    return found


def _kind(line: str) -> str:
    if not line.strip():
        return ""
    for start, kind in (("#", "heading"), ("- ", "list"), ("|", "table")):
        if line.startswith(start):
            return kind
    return "text"


def _table(lines: Sequence[str], caption: str) -> Table:
    titles, rules, *rows = (_cells(line) for line in lines)
    columns = [
        Column(title, is_number=rule.endswith("-:"))
        for title, rule in zip(titles, rules, strict=True)
    ]
    return Table(caption, columns, [list(_row(row, len(columns))) for row in rows])


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _BETWEEN_CELLS.split(line.strip())[1:-1]]


def _row(cells: Sequence[str], width: int) -> Iterator[Cell]:
    for place in range(width):
        cell = cells[place] if place < len(cells) else ""
        yield _MET.get(cell, cell)


def why_none(reason: str) -> str:
    """A reason from elsewhere as a sentence of its own."""
    said = plain(reason)
    return f"{said[:1].upper()}{said[1:].rstrip('.')}."
