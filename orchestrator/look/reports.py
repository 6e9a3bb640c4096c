"""The files that people read beside a ledger. All of them can be deleted and written again from it.

During a run a budget report is written once a generation, and the files about the whole run every
few seconds at most.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any

import orjson

from budgets.events import GenerationTold, Settled
from budgets.formatting import number, plain, printable
from budgets.ledger import LEDGER, SYSTEM_CLOCK, Clock, read
from budgets.plan import CampaignPlan
from budgets.state import Batch, RunState, apply
from budgets.storage import document as as_json
from objectives.files import replace
from orchestrator.look import text
from orchestrator.look.json_documents import SCHEMA, best_document, plain_values
from orchestrator.look.page import Section, items, markdown, page_markdown
from orchestrator.look.run import Run
from orchestrator.look.sections import page_of
from orchestrator.run.loop import Moment

EVERY_SECONDS = 5.0  # shortest time between two writes of the files about the whole run


@dataclass
class ReportFiles:
    """Writes a run's files during a session."""

    clock: Clock = SYSTEM_CLOCK
    _due: float = -inf

    def write(self, directory: Path, state: RunState, moment: Moment) -> None:
        """Write the files that are due. A session that begins writes every file again:

        an earlier one may have been killed before it wrote the last ones.
        """
        if moment == "begun":
            rebuild(directory, self.clock.now())
            return
        run = Run(state, self.clock.now(), directory)
        if moment == "generation":
            write_generation(run, directory)
        if moment == "left" or self.clock.monotonic() >= self._due:
            write_run(run, directory)
            self._due = self.clock.monotonic() + EVERY_SECONDS


def rebuild(directory: Path, now: datetime) -> None:
    """Write every file again from the ledger alone."""
    records = read(directory / LEDGER)
    state = apply(None, records[0])
    for record in records[1:]:
        apply(state, record)
        if isinstance(record.event, GenerationTold):
            write_generation(Run(state, now, directory), directory)
    write_run(Run(state, now, directory), directory)


def write_generation(run: Run, directory: Path) -> None:
    """Write `reports/gen_0000.{md,json}`: the budget after the generation that was just closed."""
    state, last = run.state, run.generations[len(run.state.completed) - 1]
    content = {
        "schema": SCHEMA,
        "run_id": run.plan.run_id,
        "generation": plain_values(last),
        "balances": [one.in_units for one in run.balances],
        "ledger": {"records": state.records, "head": state.head},
    }
    said = f"Best score of the generation: {number(last.best)}; {last.failed} evaluations failed."
    spent = items(f"{plain(line)}." for line in text.balances(run))
    blocks = [f"{text.progress(run)} {said}", spent]
    title = f"{run.plan.run_id}: budget after generation {last.number}"
    file = directory / f"reports/gen_{last.number:04d}.json"
    file.parent.mkdir(mode=0o700, exist_ok=True)
    replace(file, as_json(content))
    replace(file.with_suffix(".md"), markdown([Section(title, blocks)]).encode())


def write_run(run: Run, directory: Path) -> None:
    """Write the files about the whole run; `best.json` of a search, a campaign's manifest."""
    state, rows = run.state, export_rows(run.state)
    lines = (orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
    replace(directory / "run.json", as_json(state.plan.model_dump(mode="json")))
    replace(directory / "progress.csv", to_csv(rows).encode())
    replace(directory / "metrics.jsonl", b"".join(lines))
    replace(directory / "summary.md", page_markdown(page_of(run, with_plots=False)).encode())
    if run.is_search:
        replace(directory / "best.json", as_json(best_document(run)))
    if (campaign := state.plan.campaign) is not None:
        replace(directory / "manifest.json", as_json(_manifest(state, campaign)))


def _manifest(state: RunState, campaign: CampaignPlan) -> dict[str, Any]:
    """Return a campaign's runs; each is where its last attempt is, or None if it is not begun."""
    begun = {key: own[-1] for batch in state.generations for key, own in batch.attempts.items()}
    runs = []
    for place, (condition, seed, name) in enumerate(campaign.runs):
        last = begun.get((place // len(campaign.seeds), seed))
        directory = last and f"eval/{last.reserved.place}"
        said = {"condition": condition.name, "seed": seed, "control": condition.control}
        runs.append({"name": name, "directory": directory, **said})
    return {"name": campaign.name, "total_runs": len(runs), "runs": runs}


# A run's evaluations as tables

Row = dict[str, Any]

OWN = (
    *("generation", "candidate", "seed", "attempt", "status", "score", "seconds"),
    *("startup_seconds", "train_seconds", "cpu_seconds", "peak_memory_bytes", "device"),
    *("steps", "tokens", "train_flops", "eval_flops", "cause"),
)
"""Columns that are fields of a settlement."""

COLUMNS = ("comparison", "configuration", *OWN)


def export_rows(state: RunState) -> list[Row]:
    """Return a row for each settled attempt: the generations, then the comparisons.

    Columns are COLUMNS (`configuration` is the condition's name in a campaign), what it was
    charged, its rates, `knob.NAME` in the knob's unit, and `metric.NAME`.
    """
    return [_row(state, batch, event) for batch in state.batches() for event in batch.ends()]


def _row(state: RunState, batch: Batch, event: Settled) -> Row:
    configuration = batch.configurations[event.candidate]
    knobs = configuration.knobs_in(state.plan.space)
    return {
        "comparison": event.comparison or "",
        "configuration": configuration.name,
        **{name: getattr(event, name) for name in OWN},
        "status": str(event.status),
        **{name: getattr(event, name) for name in ("charged_ms", "recovered", "retry")},
        **rates(event),
        **{f"knob.{name}": value for name, value in knobs.items()},
        **{f"metric.{name}": value for name, value in sorted(event.metrics.items())},
    }


def rates(event: Settled) -> dict[str, float | None]:
    """Return the seconds a step and the tokens a second of a training; None where unknown."""
    trained, steps, tokens = event.train_seconds, event.steps, event.tokens
    return {
        "step_time_s": trained / steps if trained and steps else None,
        "tokens_per_second": tokens / trained if trained and tokens else None,
    }


def to_csv(rows: Sequence[Row]) -> str:
    """Return CSV; text that a spreadsheet would take for a formula is quoted."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns_of(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _inert(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def _inert(value: Any) -> Any:
    """Return text that is neither a formula to a spreadsheet nor a control code to a terminal."""
    if not isinstance(value, str):
        return value
    text = printable(value).replace("\n", " ")
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def columns_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return every column, in the order in which they first appear."""
    return list(dict.fromkeys(name for row in rows for name in row)) or list(COLUMNS)
