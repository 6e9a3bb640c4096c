"""The files people read beside a ledger. All of them can be deleted and written again from it.

While a run goes on a budget report is written once a generation, and the files about the whole run
every few seconds at most; `metrics.jsonl` grows by a line an evaluation (`records.metrics`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any

from budgets.events import GenerationTold
from budgets.formatting import number, plain
from budgets.ledger import LEDGER, Clock, read
from budgets.state import RunState, apply, begin
from budgets.storage import document as as_json
from budgets.storage import write_aside
from budgets.verdict import Point, recommendation, winner
from orchestrator.look import text
from orchestrator.look.answer import answer
from orchestrator.look.blocks import Block, Section, Text, answer_in_markdown, markdown
from orchestrator.look.document import SCHEMA, plain_values
from orchestrator.look.page import header
from orchestrator.look.run import Run
from orchestrator.look.sections import balances, summary
from orchestrator.records import manifest, metrics
from orchestrator.records.export import COLUMNS, progress_rows, to_csv
from orchestrator.running.session import Reports, system_clock

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

    def taken_up(
        self, directory: Path, state: RunState, source: Mapping[str, str] | None = None
    ) -> None:
        """What a process died before writing; and the file that describes a campaign."""
        metrics.complete(directory, state)
        if state.plan.campaign is not None:
            manifest.refresh(directory, state, source)
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
    metrics.write(directory, records)
    write_run(Run(state, now, directory), directory)


def write_generation(run: Run, directory: Path) -> None:
    """`reports/gen_0000.{md,json}`: the budget as of the generation that has just been closed.

    It looks at no other generation: the last report of a long search takes as long as the first.
    """
    state, last = run.state, run.state.completed[-1]
    best, healthy, of = min(last.healthy, default=None), len(last.healthy), len(last.points)
    said = f"Best score of the generation: {number(best)}; {healthy} of {of} candidates have one."
    ledger = {"records": state.records, "head": state.head}
    head = Text(f"Ledger: {state.records} records, head `{state.head}`.")
    blocks: list[Block] = [Text(plain(f"{text.progress(run)} {said}")), balances(run), head]
    title = f"{plain(run.plan.run_id)}: budget after generation {last.number}"
    content = {
        "schema": SCHEMA,
        "run_id": run.plan.run_id,
        "generation": {"number": last.number, "best": best, "healthy": healthy, "candidates": of},
        "balances": plain_values(run.balances),
        "ledger": ledger,
    }
    place = directory / f"reports/gen_{state.finished - 1:04d}.md"
    place.parent.mkdir(mode=0o700, exist_ok=True)
    write_aside(place, markdown([Section("budget", title, blocks)]).encode())
    write_aside(place.with_suffix(".json"), as_json(content))


def write_run(run: Run, directory: Path) -> None:
    """`run.json`, `progress.csv` and `summary.md`; and what it found.

    That is `best.json` of a search, `check.json` of a check, `effects.json` of a campaign and its
    `manifest.json`. `metrics.jsonl` is there already but for what was missed.
    """
    state = run.state
    metrics.complete(directory, state)
    write_aside(directory / "run.json", as_json(state.plan.model_dump(mode="json")))
    write_aside(directory / "progress.csv", to_csv(progress_rows(state), COLUMNS).encode())
    write_aside(directory / "summary.md", report_markdown(run, summary(run)).encode())
    if run.is_search:
        write_aside(directory / "best.json", as_json(best_document(run)))
    if state.plan.phase == "check":
        write_aside(directory / "check.json", as_json(_result(run, "check", "proxy")))
    if state.plan.campaign is not None:
        manifest.refresh(directory, state)
        write_aside(directory / "effects.json", as_json(_result(run, "campaign")))


def report_markdown(run: Run, sections: tuple[Section, ...]) -> str:
    """The four answers and these sections, as one document."""
    own = answer(run)
    about = f"{plain(header(run).about)}; {run.state.records} records, head `{run.state.head}`."
    head = [f"# {plain(run.plan.run_id)}: {plain(own.title)}", "", about, ""]
    return "\n".join([*head, answer_in_markdown(own), markdown(sections)])


def best_document(run: Run) -> dict[str, Any]:
    """The recommendation with its evidence, or that there is none; and the baseline."""
    point, found, best = recommendation(run.state), run.findings, winner(run.state)
    compared = None
    if best is not None and found is not None and found.gain is not None:
        compared = {"arm": best.name, **_place(run, best.point), "gain": plain_values(found.gain)}
    measured = None
    if (own := run.baseline) is not None:
        measured = {"mean": own.mean, "sd": own.sd, "seeds": len(own.scores)}
    is_confirmed = found is not None and found.arm is not None  # by a Go
    return {
        "recommendation": point and {**_place(run, point), "is_confirmed": is_confirmed},
        "winner": compared,
        "at_range_ends": [end._asdict() for end in run.range_ends],
        "verdict": found and {"grade": found.grade, "no_go": found.no_go},
        "baseline": {**_place(run, run.space.baseline), "score": measured},
        **_result(run),
    }


def _place(run: Run, point: Point) -> dict[str, Any]:
    return {"point": point, "knobs": run.space.decode(point)}


def _result(run: Run, *facts: str) -> dict[str, Any]:
    """Those facts of the run, with the record that they are as of."""
    found = {name: plain_values(getattr(run, name)) for name in facts}
    ledger = {"records": run.state.records, "head": run.state.head}
    return {"sentence": text.sentence(run), **found, "ledger": ledger}
