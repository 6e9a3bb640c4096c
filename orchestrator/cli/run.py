"""`phase1`, `phase2` and `run`: a search, or what a file describes."""

from budgets.plain import command
from orchestrator.cli.campaign import run_campaign
from orchestrator.cli.conducting import conducting, finish
from orchestrator.planning.configured import Asked
from orchestrator.running.searching import Searching


def run_search(asked: Asked) -> None:
    """Search, or go on searching."""
    if not asked.tier_given:
        raise ValueError(_say_a_tier(asked))
    with conducting(asked.conduct) as (session, live):
        slots = asked.conduct.engine.slots()
        wanted = Searching(
            asked.request, slots, asked.assumed_seconds, asked.overrides, asked.accept_drift
        )
        result = wanted.carry_out(session)
        finish(result, session.stop, live, asked.conduct.as_json)


def _say_a_tier(asked: Asked) -> str:
    file = asked.resolved.file
    in_file = "" if file is None else f', or tier = "min" below [search] in {file}'
    same = asked.resolved.layers.words("search.from", "search.variant")
    return (
        f"--tier: say how much to spend: min, target or max{in_file}. See what each costs with: "
        f"{command('plan', *same)}"
    )


def run_file(asked: Asked) -> None:
    """Run what the file describes, or go on with it."""
    if asked.resolved.campaign is None:
        run_search(asked)
    else:
        run_campaign(asked)
