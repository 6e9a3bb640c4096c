"""Carrying out a campaign: as one run, or one search after the other."""

from dataclasses import replace

import typer

from orchestrator import artifacts
from orchestrator.campaign.cells import campaign_of, terms_of
from orchestrator.campaign.collected import begin_searches, collect_runs, draw_beside
from orchestrator.campaign.manifest import source_of
from orchestrator.campaign.request import CampaignRequest
from orchestrator.campaign.searches import SearchCell, search_cells
from orchestrator.config.asked import Asked, request_of
from orchestrator.execution.evaluate import Slots
from orchestrator.live import Live
from orchestrator.recorded import Result
from orchestrator.session import Session
from orchestrator.terminal import (
    EXIT_BY_DECISION,
    EXIT_SIGNAL,
    conducting,
    finish,
    print_json,
)


def run_campaign(asked: Asked) -> None:
    """Carry out the campaign that a configuration describes, or go on with it."""
    if campaign_of(asked.resolved).cell == "search":
        run_searches(asked)
    else:
        run_trainings(asked)


def run_trainings(asked: Asked) -> None:
    """All cells as one run with one ledger."""
    campaign = terms_of(asked.resolved)
    slots = asked.conduct.engine.slots()
    slots = replace(slots, count=campaign.workers(slots.count))
    file = asked.resolved.file
    with conducting(asked.conduct) as (session, live):
        session.source = None if file is None else source_of(file)
        result = session.check(CampaignRequest(asked.request, campaign), slots)
        report = artifacts.campaign_report(result.state, result.verdict)
        draw_beside(result.directory, report, asked.resolved.top.objective, live.say)
        finish(result, session.stop, live, asked.conduct.as_json)


def run_searches(asked: Asked) -> None:
    """Each cell as a search of its own, one after the other.

    One that a rule pauses or a budget stops does not keep the others from being made.
    """
    cells = search_cells(asked.resolved)
    results: list[Result] = []
    with conducting(asked.conduct) as (session, live):
        slots = asked.conduct.engine.slots()
        directory = begin_searches(asked.conduct.root, asked.resolved, cells)
        for number, cell in enumerate(cells, 1):
            live.say(f"Search {number} of {len(cells)}: {cell.run_id}.")
            results.append(_searched(asked, cell, session, slots))
            _show(results[-1], live)
            if session.stop.requested:
                collect_runs(directory, session.clock.now(), live.say)
                live.say("Interrupted; nothing paid is lost. Repeat the command to go on.")
                raise typer.Exit(EXIT_SIGNAL + session.stop.signum)
        board = collect_runs(directory, session.clock.now(), live.say)
    if asked.conduct.as_json:
        print_json({**board.as_dict(), "runs": [_as_dict(result) for result in results]})
    else:
        live.markdown(board.markdown())
    codes = {EXIT_BY_DECISION.get(result.verdict.decision, 0) for result in results}
    raise typer.Exit(next((code for code in (3, 4) if code in codes), 0))


def _searched(asked: Asked, cell: SearchCell, session: Session, slots: Slots) -> Result:
    return session.search(
        request_of(cell.resolved),
        slots,
        cell.resolved.evaluation.assume_eval_seconds,
        accept_drift=asked.accept_drift,
    )


def _show(result: Result, live: Live) -> None:
    live.say(artifacts.sentence(result.state, result.verdict))
    live.say(f"Files: {result.directory}")


def _as_dict(result: Result) -> dict[str, str]:
    return {
        "directory": str(result.directory),
        "decision": result.verdict.decision,
        "sentence": artifacts.sentence(result.state, result.verdict),
    }
