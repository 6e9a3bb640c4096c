"""`phase1`, `phase2` and `run`: a search, a campaign, or what a file describes."""

from dataclasses import replace

from typer import Context

from budgets.formatting import command
from budgets.plan import Calibration
from orchestrator.cli.conducting import conducting, finish
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
from orchestrator.config import Config
from orchestrator.matrix.campaign import Staggered, campaign_matrix, terms_of
from orchestrator.matrix.matrix import carry_out
from orchestrator.matrix.search import Searching
from orchestrator.plan.resolve import slots_of
from orchestrator.records.manifest import source_of


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

    Writes a run below RUNS_DIR.
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
    if asked.overrides:
        raise ValueError(
            f"--override {asked.overrides[0][0]}: a condition that fails pauses nothing, so no "
            "rule that can be overridden holds up a campaign"
        )
    config, campaign = asked.config, terms_of(asked.config)
    slots = slots_of(config)
    slots = replace(slots, count=campaign.workers(slots.count))
    file, assumed = config.file, config.evaluation.assume_eval_seconds
    word = None if assumed is None else Calibration(assumed_seconds=assumed)
    with conducting(asked.config, as_json=asked.as_json) as (session, live):
        session.source = None if file is None else source_of(file)
        pace = Staggered(campaign.stagger_seconds, session.clock.monotonic)
        result = carry_out(campaign_matrix(config, campaign), session, slots, pace, word)
        finish(result, session.stop, live, asked.as_json)
