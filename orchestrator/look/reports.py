"""The files people read beside a ledger. All of them can be deleted and written again from it.

While a run goes on a budget report is written once a generation, and the files about the whole run
every few seconds at most; `metrics.jsonl` grows by a line an evaluation (`records.metrics`).
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

from budgets.events import GenerationTold
from budgets.fold import apply, begin
from budgets.ledger.chain import LEDGER, read
from budgets.ledger.storage import document as as_json
from budgets.ledger.storage import write_aside
from budgets.plain import plain
from budgets.state import RunState
from budgets.verdict.finalists import recommendation, winner
from orchestrator.look import text
from orchestrator.look.answer import answer
from orchestrator.look.blocks import Section, answer_in_markdown, markdown
from orchestrator.look.document import SCHEMA, plain_values
from orchestrator.look.run import Run
from orchestrator.look.sections import balances, generations_table, summary
from orchestrator.records import manifest, metrics
from orchestrator.records.export import COLUMNS, progress_rows, to_csv
from orchestrator.running.session import Reports

EVERY_SECONDS = 5.0
"""How often the files about the whole run are written while it goes on."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class ReportFiles(Reports):
    """Writes a run's files for the session that carries it out."""

    now: Callable[[], datetime] = _now
    monotonic: Callable[[], float] = time.monotonic
    _due: float = field(default=-inf)

    def closed(self, directory: Path, state: RunState, *, is_generation: bool) -> None:
        """A generation or a comparison was closed: its budget report, and the rest if it is due."""
        run = Run(state, self.now(), directory)
        if is_generation:
            write_generation(run, directory)
        if self.monotonic() >= self._due:
            write_run(run, directory)
            self._due = self.monotonic() + EVERY_SECONDS

    def ended(self, directory: Path, state: RunState) -> None:
        """The session leaves the run."""
        write_run(Run(state, self.now(), directory), directory)
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
            rebuild(directory, self.now())

    def finished(self, directory: Path, state: RunState) -> None:
        """A run that was over already: every file again unless they are of the ledger's head."""
        summary_file = directory / "summary.md"
        if not summary_file.exists() or state.head not in summary_file.read_text(errors="replace"):
            rebuild(directory, self.now())


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
    """`reports/gen_0000.{md,json}`: the budget as of the generation that has just been closed."""
    reports = directory / "reports"
    reports.mkdir(mode=0o700, exist_ok=True)
    name = f"gen_{run.state.finished - 1:04d}"
    write_aside(reports / f"{name}.md", budget_report(run).encode())
    write_aside(reports / f"{name}.json", as_json(budget_document(run)))


def budget_report(run: Run) -> str:
    """The budget after a generation, as Markdown: what it scored, what is spent, what is left."""
    last = run.generations[-1]
    lines = [
        f"# {plain(run.plan.run_id)}: budget after generation {last.number}",
        "",
        f"**{plain(text.progress(run))}** {text.pace_line(run.ledger_pace, run.last)}",
        "",
        markdown([Section("budget", "Budget", [balances(run), generations_table([last])])]),
        f"Ledger: {run.state.records} records, head `{run.state.head}`.",
        "",
    ]
    return "\n".join(lines)


def budget_document(run: Run) -> dict[str, Any]:
    """The same as JSON."""
    facts = ("counts", "balances", "best_so_far", "luck_so_far")
    return {
        "schema": SCHEMA,
        "run_id": run.plan.run_id,
        "generations_finished": run.state.finished,
        "generations_planned": run.plan.resolved.generations,
        "generation": plain_values(run.generations[-1]),
        "pace": plain_values(run.ledger_pace),
        **{name: plain_values(getattr(run, name)) for name in facts},
        "ledger": {"records": run.state.records, "head": run.state.head},
    }


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
    own, plan = answer(run), run.plan
    tier = "" if plan.tier is None else f", tier {plan.tier}"
    head = [
        f"# {plain(plan.run_id)}: {plain(own.title)}",
        "",
        f"{plain(run.objective)}, {plan.phase}{tier}, as of {run.last:%Y-%m-%d %H:%M} UTC; "
        f"{run.state.records} records, head `{run.state.head}`.",
        "",
        answer_in_markdown(own),
    ]
    return "\n".join([*head, markdown(sections)])


def best_document(run: Run) -> dict[str, Any]:
    """The recommendation with its evidence, or that there is none; and the baseline."""
    point, found, best = recommendation(run.state), run.findings, winner(run.state)
    is_compared = best is not None and found is not None and found.gain is not None
    space, baseline = run.space, run.baseline
    return {
        "recommendation": None
        if point is None
        else {
            "point": point,
            "knobs": space.decode(point),
            "is_confirmed": found is not None and found.arm is not None,  # by a Go
        },
        "winner": {
            "arm": best.name,
            "point": best.point,
            "knobs": space.decode(best.point),
            "gain": plain_values(found.gain),
        }
        if best is not None and found is not None and is_compared
        else None,
        "at_range_ends": [end._asdict() for end in run.range_ends],
        "verdict": None if found is None else {"grade": found.grade, "no_go": found.no_go},
        "baseline": {
            "point": space.baseline,
            "knobs": space.decode(space.baseline),
            "score": None
            if baseline is None
            else {"mean": baseline.mean, "sd": baseline.sd, "seeds": len(baseline.scores)},
        },
        "sentence": text.sentence(run),
        "ledger": {"records": run.state.records, "head": run.state.head},
    }


def _result(run: Run, *facts: str) -> dict[str, Any]:
    """What a check or a campaign found, with the record that it is of."""
    return {
        "sentence": text.sentence(run),
        **{name: plain_values(getattr(run, name)) for name in facts},
        "ledger": {"records": run.state.records, "head": run.state.head},
    }
