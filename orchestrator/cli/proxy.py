"""`proxy check`: whether a shorter evaluation ranks candidates as the full one does."""

from dataclasses import replace
from typing import Annotated

from typer import Context, Option

from budgets.proxy.certificate import LEAST_CANDIDATES
from budgets.state import RunState
from objectives.api import Objective
from orchestrator.checks.proxy import ProxyCheckRequest, near
from orchestrator.cli.conducting import conducting, finish
from orchestrator.cli.given import resolved_of
from orchestrator.cli.options import BESIDE, FILE, TUNED, Json, taking
from orchestrator.cli.program import examples, group
from orchestrator.config import MOST_SEEDS, TRAINING, Config
from orchestrator.planning.configured import conduct_of, terms_of
from orchestrator.records.planned import objective_of
from orchestrator.records.recorded import find_run, load_state
from orchestrator.running.checking import Checking

proxies = group("A shorter evaluation in place of the full one.", "proxy check")


@proxies.command(
    epilog=examples(
        "proxy check --fraction 0.25", "proxy check --run min-nanochat-s1 --candidates 12"
    )
)
@taking(FILE, TUNED, BESIDE)
def check(
    context: Context,
    run: Annotated[
        str | None,
        Option(
            "--run", metavar="RUN", help="Look around what it recommends; default: the baseline."
        ),
    ] = None,
    fraction: Annotated[
        float,
        Option(
            "--fraction", metavar="SHARE", help="How short: this share of an evaluation's FLOPs."
        ),
    ] = 0.25,
    candidates: Annotated[
        int,
        Option(
            "--candidates", metavar="N", min=LEAST_CANDIDATES, max=MOST_SEEDS, help="To compare."
        ),
    ] = LEAST_CANDIDATES,
    seeds: Annotated[
        int,
        Option(
            "--seeds", metavar="N", min=1, max=MOST_SEEDS, help="Evaluations of each, either way."
        ),
    ] = 1,
    as_json: Json = False,
) -> None:
    """Whether a shorter evaluation ranks candidates as the full one; the same command resumes.

    Writes a run, RUNS_DIR/check/ID.
    """
    resolved = resolved_of(context)
    how = conduct_of(resolved, as_json=as_json)
    state = None if run is None else load_state(find_run(run, how.root))
    objective = None if state is None else _own(resolved, state)
    terms = replace(terms_of(resolved, objective), proxy=fraction)
    around = None if state is None else near(state)
    request = ProxyCheckRequest(terms, candidates, seeds, around)
    with conducting(how) as (session, live):
        result = Checking(request, how.engine.slots()).carry_out(session)
        finish(result, session.stop, live, as_json)


def _own(resolved: Config, state: RunState) -> Objective:
    """The run's objective. Raises ValueError where another one is given beside it."""
    tuned = ("objective", "preset", "profile", TRAINING)
    if any(key.partition(".")[0] in tuned for key in resolved.sources):
        raise ValueError("--run has its own objective: say no other one, and none of its settings")
    return objective_of(state.plan)
