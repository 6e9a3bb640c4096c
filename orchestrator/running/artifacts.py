"""The files people read beside a ledger. All of them can be deleted and rebuilt from it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from budgets.campaign.effects import CampaignReport
from budgets.events import GenerationTold
from budgets.fold import apply, begin
from budgets.ledger.chain import LEDGER, read
from budgets.ledger.storage import document, write_aside
from budgets.liveness import centre_of, moved
from budgets.report.markdown import to_markdown
from budgets.report.model import BudgetReport, budget_report
from budgets.rules.triggers import Ruling
from budgets.state import RunState
from budgets.verdict.finalists import recommendation, winner
from budgets.verdict.findings import Findings
from budgets.verdict.findings import findings as findings_of
from objectives.space import SearchSpace
from orchestrator.records import manifest, metrics
from orchestrator.records.export import COLUMNS, progress_rows, to_csv
from orchestrator.records.planned import space_of
from orchestrator.records.range_ends import as_dicts, range_ends


def recommended_knobs(state: RunState) -> dict[str, float] | None:
    """The recommendation in the knobs' own units; None before a generation was told."""
    point = recommendation(state)
    return None if point is None else space_of(state.plan).decode(point)


def markdown(state: RunState, ruling: Ruling | None = None) -> str:
    """The budget report for a person (see `budget_report` for the ruling)."""
    return to_markdown(budget_report(state, ruling), recommended_knobs(state))


def sentence(state: RunState, ruling: Ruling | None = None) -> str:
    """What the run came to, in a sentence."""
    return budget_report(state, ruling).sentence


def write_generation(directory: Path, state: RunState) -> None:
    """`reports/gen_0000.{md,json}` for the generation that has just been closed."""
    reports = directory / "reports"
    reports.mkdir(mode=0o700, exist_ok=True)
    name = f"gen_{state.finished - 1:04d}"
    write_aside(reports / f"{name}.md", markdown(state).encode())
    write_aside(reports / f"{name}.json", document(budget_report(state).model_dump()))


def write_run(directory: Path, state: RunState) -> None:
    """`run.json`, `progress.csv` and `summary.md` for the run as it stands; and what it found.

    That is `best.json` of a search, `check.json` of a check, `effects.json` of a campaign and its
    `manifest.json`. `metrics.jsonl` is there already but for what was missed.
    """
    metrics.complete(directory, state)
    write_aside(directory / "run.json", document(state.plan.model_dump(mode="json")))
    write_aside(directory / "progress.csv", progress_csv(state).encode())
    report = budget_report(state)
    text = to_markdown(report, recommended_knobs(state))
    write_aside(directory / "summary.md", text.encode())
    if state.plan.search is not None:
        write_aside(directory / "best.json", document(best(state)))
    if state.plan.phase == "check":
        write_aside(directory / "check.json", document(findings(state)))
    if state.plan.campaign is not None:
        manifest.refresh(directory, state)
        write_aside(directory / "effects.json", document(effects(report)))


def write_missing(
    directory: Path, state: RunState, source: Mapping[str, str] | None = None
) -> None:
    """Write the reports that a process died before writing; and what a campaign consists of."""
    metrics.complete(directory, state)
    if state.plan.campaign is not None:
        manifest.refresh(directory, state, source)
    last = directory / f"reports/gen_{state.finished - 1:04d}.json"
    if state.plan.search is not None and state.finished and not last.exists():
        rebuild(directory)


def write_stale(directory: Path, state: RunState) -> None:
    """Write every file again unless the summary is of the ledger's head."""
    summary = directory / "summary.md"
    if not summary.exists() or state.head not in summary.read_text(errors="replace"):
        rebuild(directory)


def rebuild(directory: Path) -> None:
    """Write every file again from the ledger alone."""
    records = read(directory / LEDGER).records
    state = begin(records[0])
    for record in records[1:]:
        apply(state, record)
        if isinstance(record.event, GenerationTold):
            write_generation(directory, state)
    metrics.write(directory, records)
    write_run(directory, state)


def progress_csv(state: RunState) -> str:
    """One row for each settled attempt, in the order of generation, candidate and seed."""
    return to_csv(progress_rows(state), COLUMNS)


def best(state: RunState) -> dict[str, Any]:
    """The recommendation with its evidence, or that there is none; and the baseline."""
    space = space_of(state.plan)
    report, found = budget_report(state), findings_of(state)
    point, knobs = report.recommendation, recommended_knobs(state)
    return {
        "recommendation": None
        if point is None
        else {
            "point": point,
            "knobs": knobs,
            "is_confirmed": found is not None and found.arm is not None,  # by a Go
        },
        "winner": _winner(state, space, found),
        "at_range_ends": as_dicts(range_ends(state)),
        "verdict": None if found is None else {"grade": found.grade, "no_go": found.no_go},
        "baseline": {
            "point": space.baseline,
            "knobs": space.decode(space.baseline),
            "score": None if report.baseline is None else report.baseline.model_dump(),
        },
        "sentence": report.sentence,
        "ledger": {"records": report.records, "head": report.head},
    }


def _winner(state: RunState, space: SearchSpace, found: Findings | None) -> dict[str, Any] | None:
    """What was compared with the baseline on fresh seeds, recommended or not."""
    best = winner(state)
    if best is None or found is None or found.gain is None:
        return None
    return {
        "arm": best.name,
        "point": best.point,
        "knobs": space.decode(best.point),
        "gain": found.gain.model_dump(),
    }


def campaign_report(state: RunState, ruling: Ruling | None = None) -> CampaignReport:
    """What a campaign has to say. Raises ValueError on any other run."""
    report = budget_report(state, ruling).campaign
    if report is None:
        raise ValueError(f"{state.plan.run_id} is no campaign: it is a {state.plan.phase}")
    return report


def effects(report: BudgetReport) -> dict[str, Any]:
    """What a campaign found: its conditions against the controls, and its factors' effects."""
    return {
        "sentence": report.sentence,
        "campaign": None if report.campaign is None else report.campaign.model_dump(),
        "ledger": {"records": report.records, "head": report.head},
    }


def findings(state: RunState) -> dict[str, Any]:
    """What a check found, with the values of each knob that it compared."""
    report = budget_report(state)
    return {
        "sentence": report.sentence,
        "check": None if report.check is None else report.check.model_dump(),
        "proxy": None if report.proxy is None else report.proxy.model_dump(),
        "values": _compared(state),
        "ledger": {"records": report.records, "head": report.head},
    }


def _compared(state: RunState) -> dict[str, dict[str, float]]:
    """Each knob's values: the ends and the baseline, or those around a recommendation."""
    space, plan = space_of(state.plan), state.plan
    if plan.proxy is not None:
        return {}
    if centre_of(plan) == "baseline":
        return {
            knob.name: {
                "low": knob.decode(0),
                "baseline": knob.typed(knob.baseline),
                "high": knob.decode(1),
            }
            for knob in space.knobs
        }
    if not state.generations:
        return {}
    generation = state.generations[0]
    centre = space.decode(generation.points[0])
    values = {name: {"recommendation": value} for name, value in centre.items()}
    for candidate in range(1, len(generation.points)):
        if (moving := moved(plan, generation, candidate)) is not None:
            knob, end = space.knobs[moving[0]], moving[1]
            values[knob.name][end] = knob.decode(generation.points[candidate][moving[0]])
    return values
