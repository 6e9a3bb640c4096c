"""A campaign's matrix for a terminal: a line for each condition, a column for each seed."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from budgets.campaign.matrix import PAUSED, PENDING, RUNNING, Cell, Matrix
from budgets.formatting import number, shortened

WIDTH = 110
"""Characters of a line."""

LEAST_NAME, MOST_NAME = 16, 44

MOST_NOTES = 8
"""Of cells that need looking at."""

SIGNS = {"ok": "+", RUNNING: ">", PENDING: ".", PAUSED: "="}
"""Where a column has one character; others have their status' first letter, large."""


def matrix_lines(matrix: Matrix, width: int = WIDTH) -> list[str]:
    """The matrix, how far it is, and what needs looking at. Healthy cells show their scores."""
    columns = [_text(cell) for cell in matrix.cells]
    cell_width = max(map(len, (*columns, *_heads(matrix))), default=1)
    room = width - (cell_width + 2) * len(matrix.terms.seeds) - _MEAN
    longest = max(len(condition.name) for condition in matrix.terms.conditions)
    if room < min(LEAST_NAME, longest):
        return [*_small(matrix, width), "", *_ends(matrix)]
    return [*_large(matrix, min(room, MOST_NAME), cell_width), "", *_ends(matrix)]


_MEAN = 10


def _large(matrix: Matrix, room: int, cell_width: int) -> Iterator[str]:
    names = shortened([condition.name for condition in matrix.terms.conditions], room)
    name_width = max(map(len, names))
    heads = "".join(f"  {head:>{cell_width}}" for head in _heads(matrix))
    yield f"{'':{name_width}}{heads}{'mean':>{_MEAN}}"
    for name, row in zip(names, matrix.rows, strict=True):
        cells = "".join(f"  {_text(cell):>{cell_width}}" for cell in row)
        yield f"{name:{name_width}}{cells}{_mean(row):>{_MEAN}}"
    yield from _legend(matrix)


def _small(matrix: Matrix, width: int) -> Iterator[str]:
    """One character a cell, as many lines a condition as it takes."""
    names = shortened([condition.name for condition in matrix.terms.conditions], MOST_NAME)
    name_width = max(map(len, names))
    room = width - name_width - 2 - _MEAN
    for name, row in zip(names, matrix.rows, strict=True):
        signs = "".join(SIGNS.get(cell.status, cell.status[:1].upper()) for cell in row)
        for start in range(0, len(signs), room):
            head, mean = (name, _mean(row)) if start == 0 else ("", "")
            shown = signs[start : start + room]
            yield f"{head:{name_width}}  {shown:{room}}{mean:>{_MEAN}}".rstrip()
    seen = dict.fromkeys(cell.status for cell in matrix.cells)
    said = ", ".join(f"{SIGNS.get(status, status[:1].upper())} {status}" for status in seen)
    yield f"A character for each of {len(matrix.terms.seeds)} seeds: {said}."


def _heads(matrix: Matrix) -> list[str]:
    """The seeds, or their numbers where they are long."""
    seeds = matrix.terms.seeds
    if max(seeds) < 100_000:
        return [f"s{seed}" for seed in seeds]
    return [f"#{number}" for number in range(1, len(seeds) + 1)]


def _legend(matrix: Matrix) -> Iterator[str]:
    """Which seeds the columns are, where their heads do not say it."""
    if max(matrix.terms.seeds) < 100_000:
        return
    pairs = zip(_heads(matrix), matrix.terms.seeds, strict=True)
    yield "Seeds: " + ", ".join(f"{head} {seed}" for head, seed in pairs) + "."


def _text(cell: Cell) -> str:
    """`3.1385`, `oom`, `> 41 s`, `> 7/16`, `.`."""
    if cell.status == "ok":
        return number(cell.score, none="ok")
    if cell.status == RUNNING:
        if cell.planned > 1:
            return f"> {cell.settled}/{cell.planned}"
        return ">" if cell.seconds is None else f"> {_short(cell.seconds)}"
    if cell.status == PENDING:
        return f". {cell.settled}/{cell.planned}" if cell.planned > 1 and cell.settled else "."
    return cell.status


def _short(seconds: float) -> str:
    """`41s`, `3m20`, `2h05`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}"


def _mean(row: Sequence[Cell]) -> str:
    healthy = [cell.score for cell in row if cell.score is not None]
    return f"{fmean(healthy):.5g}" if healthy else "-"


def _ends(matrix: Matrix) -> Iterator[str]:
    """How many cells stand where, and what is wrong with which."""
    counts = ", ".join(f"{count} {status}" for status, count in matrix.counts.items())
    settled = len(matrix.cells) - matrix.unsettled
    yield f"{settled} of {len(matrix.cells)} settled: {counts}."
    noted = [
        f"  {condition.name}, seed {seed}: {cell.status}: {cell.note}"
        for condition, row in zip(matrix.terms.conditions, matrix.rows, strict=True)
        for seed, cell in zip(matrix.terms.seeds, row, strict=True)
        if cell.note
    ]
    yield from noted[:MOST_NOTES]
    if len(noted) > MOST_NOTES:
        yield f"  and {len(noted) - MOST_NOTES} more; --json has them all."
