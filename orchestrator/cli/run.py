"""`phase1`, `phase2` and `run`: a search, a campaign, or what a file describes."""

from dataclasses import replace
from pathlib import Path

import typer
from typer import Context

from budgets.plain import command
from budgets.plan import Calibration
from orchestrator.campaign.conditions import campaign_of, terms_of
from orchestrator.campaign.request import CampaignRequest, Staggered
from orchestrator.campaign.searches import (
    begin_searches,
    check_plans,
    overrides_of,
    refuse_searches,
    search_cells,
)
from orchestrator.cli.conducting import conducting, finish
from orchestrator.cli.errors import EXIT_BY_DECISION, EXIT_SIGNAL
from orchestrator.cli.options import (
    FILE,
    FOLLOWING,
    SEARCH,
    Asked,
    ConfigurationFile,
    Json,
    asked_for,
    asked_for_file,
    taking,
)
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.config import Config
from orchestrator.look import text
from orchestrator.look.board import collect_runs
from orchestrator.look.run import Run
from orchestrator.matrix.matrix import carry_out as carry_out_matrix
from orchestrator.matrix.search import Searching
from orchestrator.planning.engine import slots_of
from orchestrator.planning.names import run_directory
from orchestrator.records.manifest import source_of
from orchestrator.records.recorded import Result
from orchestrator.running.session import system_clock


@taking(FILE, SEARCH)
def phase1(context: Context, as_json: Json = False) -> None:
    """Search for better knobs within a budget; the same command resumes.

    Writes a run, RUNS_DIR/phase1/ID: its ledger, reports, and the files of each evaluation.
    """
    _search(asked_for(context, "phase1", as_json=as_json))


@taking(FILE, FOLLOWING, SEARCH)
def phase2(context: Context, as_json: Json = False) -> None:
    """Search on from a phase 1's Go, on more seeds or more knobs; the same command resumes.

    Writes a run, RUNS_DIR/phase2/ID.
    """
    _search(asked_for(context, "phase2", as_json=as_json))


@taking(FOLLOWING, SEARCH)
def run(context: Context, file: ConfigurationFile, as_json: Json = False) -> None:
    """Run what a file describes, a search or a campaign; the same command resumes.

    Writes a run below RUNS_DIR; of a campaign of searches one for each.
    """
    asked = asked_for_file(context, file, as_json=as_json)
    if asked.config.campaign is None:
        _search(asked)
    else:
        run_campaign(asked)


def _search(asked: Asked) -> None:
    """Search, or go on searching."""
    config = asked.config
    if config.search.tier is None:
        raise ValueError(_say_a_tier(config))
    with conducting(config, as_json=asked.as_json) as (session, live):
        wanted = Searching(config, slots_of(config), asked.overrides, asked.accept_drift)
        result = wanted.carry_out(session)
        finish(result, session.stop, live, asked.as_json)


def _say_a_tier(config: Config) -> str:
    file = config.file
    in_file = "" if file is None else f', or tier = "min" below [search] in {file}'
    same = config.layers.words("search.from", "search.variant")
    return (
        f"--tier: say how much to spend: min, target or max{in_file}. See what each costs with: "
        f"{command('plan', *same)}"
    )


def run_campaign(asked: Asked) -> None:
    """Carry out the campaign that a configuration describes, or go on with it."""
    if campaign_of(asked.config).cell == "search":
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
    config, campaign = asked.config, terms_of(asked.config)
    slots = slots_of(config)
    slots = replace(slots, count=campaign.workers(slots.count))
    refuse_searches(run_directory(Path(config.runs_dir), "campaign", campaign.name))
    file, assumed = config.file, config.evaluation.assume_eval_seconds
    word = None if assumed is None else Calibration(assumed_seconds=assumed)
    with conducting(asked.config, as_json=asked.as_json) as (session, live):
        session.source = None if file is None else source_of(file)
        request = CampaignRequest(config, campaign)
        pace = Staggered(campaign.stagger_seconds, session.clock.monotonic)
        result = carry_out_matrix(request, session, slots, pace, word)
        finish(result, session.stop, live, asked.as_json)


def run_searches(asked: Asked) -> None:
    """Each cell as a search of its own, one after the other.

    One that a rule pauses or a budget stops does not keep the others from being made.
    """
    cells = search_cells(asked.config)
    slots, root = slots_of(asked.config), Path(asked.config.runs_dir)
    check_plans(cells, slots)
    overrides = overrides_of(root, cells, slots, asked.overrides)
    results: list[Result] = []
    with conducting(asked.config, as_json=asked.as_json) as (session, live):
        directory = begin_searches(root, asked.config, cells)
        for number, cell in enumerate(cells, 1):
            live.say(f"Search {number} of {len(cells)}: {cell.run_id}.")
            own = overrides.get(cell.run_id, ())
            search = Searching(cell.resolved, slots, own, asked.accept_drift)
            results.append(search.carry_out(session))
            live.say(text.sentence(_run(results[-1])))
            live.say(f"Files: {results[-1].directory}")
            if session.stop.requested:
                collect_runs(directory, session.clock.now())
                live.say("Interrupted; nothing paid is lost. Repeat the command to go on.")
                raise typer.Exit(EXIT_SIGNAL + session.stop.signum)
        board = collect_runs(directory, session.clock.now())
    if asked.as_json:
        print_json({**board.as_dict(), "runs": [_as_dict(result) for result in results]})
    else:
        print_markdown(board.markdown())
    codes = {EXIT_BY_DECISION.get(result.ruling.decision, 0) for result in results}
    raise typer.Exit(next((code for code in (3, 4) if code in codes), 0))


def _as_dict(result: Result) -> dict[str, str]:
    return {
        "directory": str(result.directory),
        "decision": result.ruling.decision,
        "sentence": text.sentence(_run(result)),
    }


def _run(result: Result) -> Run:
    return Run(result.state, system_clock().now(), result.directory, result.ruling)
