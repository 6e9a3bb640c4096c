"""How a campaign stands, also while others carry it out: from its ledger, or all of its runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from budgets.effects import CampaignReport, campaign_report
from budgets.formatting import number, plain, shortened
from budgets.ledger import LEDGER
from budgets.matrix import PAUSED, PENDING, RUNNING, Cell, Matrix, matrix_of
from budgets.plan import Thresholds
from budgets.storage import document, write_aside
from orchestrator.look import text
from orchestrator.look.blocks import Figure, Section, headline, markdown, table_of
from orchestrator.look.campaign import campaign_blocks, campaign_sentence
from orchestrator.look.run import Run
from orchestrator.matrix.campaign_status import in_flight, matrix_of_runs
from orchestrator.records import manifest as manifests
from orchestrator.records.recorded import find_run, first_plan, is_there, recorded_state

WIDTH, MEAN_WIDTH = 110, 10
"""Characters of a line, and of its last column."""

LEAST_NAME, MOST_NAME, MOST_NOTES = 16, 44, 8
"""Characters of a condition's name; cells that are said to need looking at."""

SIGNS = {"ok": "+", RUNNING: ">", PENDING: ".", PAUSED: "="}
"""Where a cell has one character; others have their status' first letter, large."""


@dataclass(frozen=True)
class Board:
    """A campaign as it stands."""

    directory: Path
    matrix: Matrix
    report: CampaignReport
    whose: str  # who carries it out
    sentence: str
    run: Run | None = None  # of a campaign in one ledger; None: its cells are runs of their own

    @property
    def is_of_runs(self) -> bool:
        """Whether its cells are runs of their own, with ledgers of their own."""
        return self.run is None

    def lines(self, width: int = WIDTH) -> list[str]:
        """For a terminal of that width."""
        lines = [f"{self.directory}: {self.whose}", "", *matrix_lines(self.matrix, width)]
        if (run := self.run) is not None:
            pace = text.pace_line(run.pace, run.now) if run.standing.goes_on else ""
            lines += filter(None, [f"Spent: {text.spent(run)}.", pace, run.standing.way_on])
        return [*lines, self.sentence] if self.report.is_over else lines

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "directory": str(self.directory),
            "whose": self.whose,
            "sentence": self.sentence,
            "statuses": self.matrix.counts,
            "matrix": self.matrix.model_dump(mode="json"),
            "campaign": self.report.model_dump(mode="json"),
        }

    def markdown(self) -> str:
        """The result of a campaign whose cells are runs."""
        head = f"# {plain(self.report.name)}: campaign\n\n**{plain(self.sentence)}**\n\n"
        return head + markdown(self._sections())

    def page(self) -> str:
        """The same as a page."""
        from orchestrator.look import draw
        from orchestrator.look.page import Header, page
        from orchestrator.look.plots import campaign

        header = Header(self.report.name, f"a campaign of {len(self.matrix.cells)} runs")
        heading = "Effects found" if self.report.found else "No effect found"
        heading = heading if self.report.is_over else "In progress"
        figure = draw.figure("effects", campaign(self.report))
        return page(header, headline(heading, self.sentence), self._sections(figure))

    def _sections(self, *figures: Figure) -> tuple[Section, ...]:
        terms = self.matrix.terms
        heads = [f">seed {seed}" for seed in terms.seeds]
        rows = []
        for condition, cells in zip(terms.conditions, self.matrix.rows, strict=True):
            said = (f"{cell.status} {number(cell.score, none='')}" for cell in cells)
            rows.append({"condition": plain(condition.name), **dict(zip(heads, said, strict=True))})
        return (
            Section("effects", "Effects", [*figures, *campaign_blocks(self.report)]),
            Section("runs", "Runs", table_of("How each run stands, and its score", rows)),
        )


def find_board(run: str | None, root: Path, now: datetime) -> Board | None:
    """The campaign of that name or in that directory; None where it names a run of another kind.

    Raises ValueError where there is nothing, or what there is cannot be read.
    """
    if run is not None and (campaign := manifests.campaign_of_runs(run, root)) is not None:
        return _of_runs(*campaign, now)
    directory = find_run(run, root)
    plan = first_plan(directory / LEDGER) if is_there(directory / LEDGER) else None
    if plan is None or plan.campaign is None or (state := recorded_state(directory)) is None:
        return None
    own = Run(state, now, directory)
    assert own.campaign is not None, "it is a campaign's ledger"
    matrix = in_flight(matrix_of(state), state, own.standing, now)
    return Board(directory, matrix, own.campaign, own.standing.whose, text.sentence(own), own)


def _of_runs(directory: Path, manifest: manifests.Manifest, now: datetime) -> Board:
    matrix = matrix_of_runs(directory, manifest, now)
    level, is_over = Thresholds().alive_level, not matrix.unsettled
    report = campaign_report(matrix, level, is_over=is_over)
    running = f"{matrix.counts.get('running', 0)} of {len(matrix.cells)} runs running"
    whose = "finished" if is_over else running
    return Board(directory, matrix, report, whose, campaign_sentence(report, "runs"))


def collect_runs(directory: Path, now: datetime) -> Board:
    """Write the result of a campaign whose cells are runs, as they stand. Raises ValueError."""
    manifest = manifests.read_manifest(directory)
    if manifest is None:
        raise ValueError(f"{directory} holds no campaign: it has no manifest.json")
    board = _of_runs(directory, manifest, now)
    manifests.write_manifest(directory, manifests.with_statuses(manifest, board.matrix))
    effects = {"sentence": board.sentence, "campaign": board.report.model_dump()}
    write_aside(directory / "effects.json", document(effects))
    return board


# The matrix on a terminal


def matrix_lines(matrix: Matrix, width: int = WIDTH) -> list[str]:
    """A line for each condition, a column for each seed; how far it is; what needs looking at."""
    heads = [f"s{seed}" for seed in matrix.terms.seeds]
    cell_width = max(map(len, (*map(_cell, matrix.cells), *heads)))
    room = width - (cell_width + 2) * len(heads) - MEAN_WIDTH
    longest = max(len(condition.name) for condition in matrix.terms.conditions)
    if room < min(LEAST_NAME, longest):
        return [*_with_signs(matrix, width), "", *_ends(matrix)]
    lines = [("", heads, "mean")]
    lines += [(name, list(map(_cell, row)), _mean(row)) for name, row in _rows(matrix, room)]
    widest = max(len(name) for name, _, _ in lines)
    return [
        f"{name:{widest}}{''.join(f'  {it:>{cell_width}}' for it in cells)}{mean:>{MEAN_WIDTH}}"
        for name, cells, mean in lines
    ] + ["", *_ends(matrix)]


def _rows(matrix: Matrix, room: int) -> list[tuple[str, Sequence[Cell]]]:
    names = [condition.name for condition in matrix.terms.conditions]
    return list(zip(shortened(names, min(room, MOST_NAME)), matrix.rows, strict=True))


def _with_signs(matrix: Matrix, width: int) -> Iterator[str]:
    """One character a cell, as many lines a condition as it takes."""
    rows = _rows(matrix, MOST_NAME)
    widest = max(len(name) for name, _ in rows)
    room = width - widest - 2 - MEAN_WIDTH
    for name, row in rows:
        signs = "".join(SIGNS.get(cell.status, cell.status[:1].upper()) for cell in row)
        for start in range(0, len(signs), room):
            head, mean = (name, _mean(row)) if start == 0 else ("", "")
            shown = signs[start : start + room]
            yield f"{head:{widest}}  {shown:{room}}{mean:>{MEAN_WIDTH}}".rstrip()
    seen = dict.fromkeys(cell.status for cell in matrix.cells)
    said = ", ".join(f"{SIGNS.get(status, status[:1].upper())} {status}" for status in seen)
    yield f"A character for each of {len(matrix.terms.seeds)} seeds: {said}."


def _cell(cell: Cell) -> str:
    """`3.1385`, `oom`, `> 3m20`, `> 7/16`, `.`."""
    share = f" {cell.settled}/{cell.planned}"
    if cell.status == "ok":
        return number(cell.score, none="ok")
    if cell.status == PENDING:
        return f".{share}" if cell.planned > 1 and cell.settled else "."
    if cell.status == RUNNING and cell.planned > 1:
        return f">{share}"
    if cell.status == RUNNING and cell.seconds is not None:
        minutes, seconds = divmod(max(0, round(cell.seconds)), 60)
        hours, rest = divmod(minutes, 60)
        short = f"{minutes}m{seconds:02d}" if minutes else f"{seconds}s"
        return f"> {hours}h{rest:02d}" if hours else f"> {short}"
    return ">" if cell.status == RUNNING else cell.status


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
