"""Markdown tables."""

from collections.abc import Iterable


def table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """Its lines. A column is called `>cost` where its cells are numbers, `<mean` where bars."""
    names = list(columns)
    sides = ({">": "--:", "<": ":--"}.get(name[:1], "---") for name in names)
    return [
        "|" + "".join(f" {name.lstrip('<>')} |".replace("  |", " |") for name in names),
        f"|{'|'.join(sides)}|",
        *(f"| {' | '.join(map(str, cells))} |" for cells in rows),
    ]
