"""The files people read beside a ledger. All of them can be deleted and written again from it.

While a run goes on a budget report is written once a generation, and the files about the whole run
every few seconds at most; `metrics.jsonl` grows by a line an evaluation (`records.tables`).
"""

from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from pathlib import Path

from budgets.events import GenerationTold
from budgets.formatting import number, plain
from budgets.ledger import LEDGER, Clock, read
from budgets.state import RunState, apply, begin
from budgets.storage import document as as_json
from budgets.storage import write_aside
from orchestrator.look import text
from orchestrator.look.answer import answer
from orchestrator.look.blocks import Page, Section, items, markdown
from orchestrator.look.document import SCHEMA, best_document, plain_values, result
from orchestrator.look.page import about
from orchestrator.look.run import Run
from orchestrator.look.sections import balances, summary
from orchestrator.matrix import manifest
from orchestrator.records.tables import (
    COLUMNS,
    complete_metrics,
    export_rows,
    to_csv,
    write_metrics,
)
from orchestrator.run.session import Reports, system_clock

EVERY_SECONDS = 5.0  # the files about the whole run are written at most so often


@dataclass
class ReportFiles(Reports):
    """Writes a run's files for the session that carries it out."""

    clock: Clock = field(default_factory=system_clock)
    _due: float = -inf

    def closed(self, directory: Path, state: RunState, *, is_generation: bool) -> None:
        """A generation or a comparison was closed: its budget report, and the rest if it is due."""
        run = Run(state, self.clock.now(), directory)
        if is_generation:
            write_generation(run, directory)
        if self.clock.monotonic() >= self._due:
            write_run(run, directory)
            self._due = self.clock.monotonic() + EVERY_SECONDS

    def ended(self, directory: Path, state: RunState) -> None:
        """The session leaves the run."""
        write_run(Run(state, self.clock.now(), directory), directory)
        self._due = -inf

    def taken_up(self, directory: Path, state: RunState) -> None:
        """What a process died before writing."""
        complete_metrics(directory, state)
        if state.plan.campaign is not None:
            manifest.write_manifest(directory, state)
        last = directory / f"reports/gen_{state.finished - 1:04d}.json"
        if state.plan.search is not None and state.finished and not last.exists():
            rebuild(directory, self.clock.now())

    def finished(self, directory: Path, state: RunState) -> None:
        """A run that was over already: every file again unless they are of the ledger's head."""
        own = directory / "summary.md"
        if not own.exists() or state.head not in own.read_text(errors="replace"):
            rebuild(directory, self.clock.now())


def rebuild(directory: Path, now: datetime) -> None:
    """Write every file again from the ledger alone."""
    records = read(directory / LEDGER).records
    state = begin(records[0])
    for record in records[1:]:
        apply(state, record)
        if isinstance(record.event, GenerationTold):
            write_generation(Run(state, now, directory), directory)
    write_metrics(directory, records)
    write_run(Run(state, now, directory), directory)


def write_generation(run: Run, directory: Path) -> None:
    """`reports/gen_0000.{md,json}`: the budget as of the generation that has just been closed.

    It looks at no other generation: the last report of a long search takes as long as the first.
    """
    state, last = run.state, run.state.completed[-1]
    best, healthy, of = min(last.healthy, default=None), len(last.healthy), len(last.points)
    said = f"Best score of the generation: {number(best)}; {healthy} of {of} candidates have one."
    spent = items(map(plain, balances(run)))
    blocks = [plain(f"{text.progress(run)} {said}"), spent, _ledger(run)]
    title = f"{plain(run.plan.run_id)}: budget after generation {last.number}"
    content = {
        "schema": SCHEMA,
        "run_id": run.plan.run_id,
        "generation": {"number": last.number, "best": best, "healthy": healthy, "candidates": of},
        "balances": plain_values(run.balances),
        "ledger": {"records": state.records, "head": state.head},
    }
    place = directory / f"reports/gen_{state.finished - 1:04d}.md"
    place.parent.mkdir(mode=0o700, exist_ok=True)
    write_aside(place, markdown([Section("budget", title, blocks)]).encode())
    write_aside(place.with_suffix(".json"), as_json(content))


def _ledger(run: Run) -> str:
    return f"Ledger: {run.state.records} records, head `{run.state.head}`."


def write_run(run: Run, directory: Path) -> None:
    """`run.json`, `progress.csv` and `summary.md`; and what it found.

    That is `best.json` of a search, `check.json` of a check, `effects.json` of a campaign and its
    `manifest.json`. `metrics.jsonl` is there already but for what was missed.
    """
    state = run.state
    complete_metrics(directory, state)
    write_aside(directory / "run.json", as_json(state.plan.model_dump(mode="json")))
    write_aside(directory / "progress.csv", to_csv(export_rows(state), COLUMNS).encode())
    sections = (*summary(run), Section("ledger", "Ledger", [_ledger(run)]))
    page = Page(run.plan.run_id, about(run), answer(run), sections)
    write_aside(directory / "summary.md", page.markdown().encode())
    if run.is_search:
        write_aside(directory / "best.json", as_json(best_document(run)))
    if state.plan.phase == "check":
        write_aside(directory / "check.json", as_json(result(run, "check", "proxy")))
    if state.plan.campaign is not None:
        manifest.write_manifest(directory, state)
        write_aside(directory / "effects.json", as_json(result(run, "campaign")))
