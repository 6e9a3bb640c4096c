"""`phase1`, `phase2` and `run`: a search, or what a file describes."""

from typer import Context

from budgets.plain import command
from orchestrator.cli.campaign import run_campaign
from orchestrator.cli.conducting import conducting, finish
from orchestrator.cli.given import Asked, asked_for, asked_for_file
from orchestrator.cli.options import FILE, FOLLOWING, SEARCH, ConfigurationFile, Json, taking
from orchestrator.config import Config
from orchestrator.planning.engine import slots_of
from orchestrator.running.searching import Searching


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
