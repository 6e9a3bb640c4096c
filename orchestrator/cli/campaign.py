"""Carrying out a campaign: as one run, or one search after the other."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import typer
from pydantic import ValidationError

from budgets.following import BEGINNING
from budgets.rules.triggers import judge
from budgets.state import RunState
from budgets.terms import Calibration
from orchestrator.campaign.cells import campaign_of, terms_of
from orchestrator.campaign.collected import (
    begin_searches,
    refuse_searches,
)
from orchestrator.campaign.request import CampaignRequest
from orchestrator.campaign.searches import SearchCell, search_cells
from orchestrator.campaign.stagger import Staggered
from orchestrator.cli.conducting import EXIT_BY_DECISION, EXIT_SIGNAL, conducting, finish
from orchestrator.cli.output import Output
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.execution.engine import devices_of
from orchestrator.execution.evaluate import Slots
from orchestrator.look import text
from orchestrator.look.board import collect_runs
from orchestrator.look.run import Run
from orchestrator.planning.calibrations import CALIBRATION_SEEDS
from orchestrator.planning.configured import Asked, request_of
from orchestrator.planning.plan import calibration_plan, search_plan
from orchestrator.planning.request import Overrides, Request, run_directory, run_name
from orchestrator.records.manifest import source_of
from orchestrator.records.recorded import Result, recorded_state
from orchestrator.running.checking import Checking
from orchestrator.running.searching import Searching
from orchestrator.running.session import Session, system_clock


def run_campaign(asked: Asked) -> None:
    """Carry out the campaign that a configuration describes, or go on with it."""
    if asked.request.fork:
        raise ValueError("--fork-run: a campaign begins anew under another name in [campaign]")
    if campaign_of(asked.resolved).cell == "search":
        run_searches(asked)
    else:
        run_trainings(asked)


def run_trainings(asked: Asked) -> None:
    """All cells as one run with one ledger."""
    if asked.overrides:
        raise ValueError(
            f"--override {asked.overrides[0][0]}: a condition that fails pauses nothing, so no "
            "rule that can be overridden holds up a campaign of trainings"
        )
    campaign = terms_of(asked.resolved)
    slots = asked.conduct.engine.slots()
    slots = replace(slots, count=campaign.workers(slots.count))
    refuse_searches(run_directory(asked.conduct.root, "campaign", campaign.name))
    file, assumed = asked.resolved.file, asked.assumed_seconds
    word = None if assumed is None else Calibration(assumed_seconds=assumed)
    with conducting(asked.conduct) as (session, live):
        session.source = None if file is None else source_of(file)
        request = CampaignRequest(asked.request, campaign)
        pace = Staggered(campaign.stagger_seconds, session.clock.monotonic)
        result = Checking(request, slots, pace, word).carry_out(session)
        finish(result, session.stop, live, asked.conduct.as_json)


def run_searches(asked: Asked) -> None:
    """Each cell as a search of its own, one after the other.

    One that a rule pauses or a budget stops does not keep the others from being made.
    """
    cells = search_cells(asked.resolved)
    slots = asked.conduct.engine.slots()
    _check_plans(cells, slots)
    overrides = _overrides(asked, cells, slots)
    results: list[Result] = []
    with conducting(asked.conduct) as (session, live):
        directory = begin_searches(asked.conduct.root, asked.resolved, cells)
        for number, cell in enumerate(cells, 1):
            live.say(f"Search {number} of {len(cells)}: {cell.run_id}.")
            results.append(_searched(asked, cell, session, slots, overrides.get(cell.run_id, ())))
            _show(results[-1], live)
            if session.stop.requested:
                collect_runs(directory, session.clock.now())
                live.say("Interrupted; nothing paid is lost. Repeat the command to go on.")
                raise typer.Exit(EXIT_SIGNAL + session.stop.signum)
        board = collect_runs(directory, session.clock.now())
    if asked.conduct.as_json:
        print_json({**board.as_dict(), "runs": [_as_dict(result) for result in results]})
    else:
        print_markdown(board.markdown())
    codes = {EXIT_BY_DECISION.get(result.ruling.decision, 0) for result in results}
    raise typer.Exit(next((code for code in (3, 4) if code in codes), 0))


def _check_plans(cells: Sequence[SearchCell], slots: Slots) -> None:
    """Raises ValueError, naming the cell, where one cannot be planned: before any is paid for."""
    for cell in cells:
        if cell.resolved.search.tier is None:
            raise ValueError(
                "--tier, or tier in [search]: say how much each search may spend: min, target or "
                f"max. {cell.condition} has none"
            )
        try:
            search_plan(request_of(cell.resolved), devices_of(slots), None)
        except ValidationError:
            raise  # it names a flag
        except ValueError as error:
            raise ValueError(f"condition {cell.condition}: {error}") from error


def _overrides(asked: Asked, cells: Sequence[SearchCell], slots: Slots) -> dict[str, Overrides]:
    """Of each search those of the rules that hold it up. Raises ValueError on one of no search."""
    own: dict[str, Overrides] = {}
    for cell in cells if asked.overrides else ():
        state = _recorded(asked.conduct.root, request_of(cell.resolved), slots)
        own[cell.run_id] = _of_the_search(asked.overrides, state)
    for override in asked.overrides:
        if all(override not in some for some in own.values()):
            raise ValueError(f"--override {override[0]}: that rule holds up no search of these")
    return own


def _recorded(root: Path, request: Request, slots: Slots) -> RunState | None:
    """The search as far as it is made, or the calibration that is being made for it."""
    state = recorded_state(run_directory(root, request.phase, run_name(request)))
    if state is not None:
        return state
    plan = calibration_plan(request.objective, devices_of(slots), CALIBRATION_SEEDS, request)
    state = recorded_state(run_directory(root, "calibration", plan.run_id))
    return None if state is None or state.concluded is not None else state


def _of_the_search(overrides: Overrides, state: RunState | None) -> Overrides:
    if state is None:  # it may have to be let begin
        return tuple((rule, why) for rule, why in overrides if rule in BEGINNING)
    holding = {trigger.rule for trigger in judge(state).triggers}
    known = {(overridden.rule, overridden.reason) for overridden in state.overridden}
    return tuple((rule, why) for rule, why in overrides if rule in holding or (rule, why) in known)


def _searched(
    asked: Asked, cell: SearchCell, session: Session, slots: Slots, overrides: Overrides
) -> Result:
    wanted = Searching(
        request_of(cell.resolved),
        slots,
        cell.resolved.evaluation.assume_eval_seconds,
        overrides,
        asked.accept_drift,
    )
    return wanted.carry_out(session)


def _show(result: Result, live: Output) -> None:
    live.say(text.sentence(_run(result)))
    live.say(f"Files: {result.directory}")


def _as_dict(result: Result) -> dict[str, str]:
    return {
        "directory": str(result.directory),
        "decision": result.ruling.decision,
        "sentence": text.sentence(_run(result)),
    }


def _run(result: Result) -> Run:
    return Run(result.state, system_clock().now(), result.directory, result.ruling)
