"""`analyze`: which knobs matter around a run's recommendation."""

from typing import Annotated

from typer import Context, Option

from budgets.state import RunState
from objectives.api import Objective
from orchestrator.checks.space import LEAST_SEEDS, CheckRequest
from orchestrator.cli.conducting import conducting, finish
from orchestrator.cli.given import names_of, resolved_of
from orchestrator.cli.options import BESIDE, AcceptDrift, Json, RunName, taking
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.config import MOST_SEEDS
from orchestrator.planning.configured import conduct_of, terms_of
from orchestrator.records.planned import objective_of
from orchestrator.records.recorded import find_run, load_state
from orchestrator.running.checking import Checking

ANALYZE_SEEDS = 4
"""Fewer than a check's: the knobs are those that a search has moved for a while."""


@taking(BESIDE)
def analyze(
    context: Context,
    run: RunName = None,
    evaluate: Annotated[
        bool, Option("--evaluate", help="Move each knob from the recommendation, and measure.")
    ] = False,
    seeds: Annotated[
        int | None,
        Option(
            "--seeds",
            metavar="N",
            min=LEAST_SEEDS,
            max=MOST_SEEDS,
            help=f"With --evaluate: evaluations of every point; default: {ANALYZE_SEEDS}.",
        ),
    ] = None,
    knobs: Annotated[
        str | None,
        Option("--knobs", metavar="A,B", help="With --evaluate: only these; default: all."),
    ] = None,
    accept_drift: AcceptDrift = False,
    as_json: Json = False,
) -> None:
    """Which knobs matter around a search's recommendation, by what it has paid for.

    Writes nothing; with --evaluate a run, RUNS_DIR/check/ID.
    """
    from orchestrator.analysis.analyze import analyze as analysis_of  # imports cma
    from orchestrator.analysis.text import to_markdown

    if not evaluate and (seeds is not None or knobs is not None):
        raise ValueError("--seeds and --knobs say what to evaluate: add --evaluate")
    resolved = resolved_of(context)
    how = conduct_of(resolved, as_json=as_json)
    directory = find_run(run, how.root)
    state = load_state(directory)
    found = analysis_of(state, accept_drift=accept_drift)
    if not as_json:
        print_markdown(to_markdown(found))
    if not evaluate:
        if as_json:
            print_json({"directory": str(directory), "analysis": found.as_dict()})
        return
    terms = terms_of(resolved, same_objective(state))
    request = CheckRequest(terms, seeds or ANALYZE_SEEDS, names_of(knobs), found.around())
    with conducting(how) as (session, live):
        result = Checking(request, how.engine.slots()).carry_out(session)
        finish(result, session.stop, live, as_json, {"analysis": found.as_dict()})


def same_objective(state: RunState) -> Objective:
    """The objective that the run searched. Raises ValueError where it would score otherwise now."""
    plan = state.plan
    objective = objective_of(plan)
    if objective.fingerprint != plan.objective_fingerprint:
        raise ValueError(
            f"{plan.run_id} searched {plan.objective['name']} "
            f"{plan.objective_fingerprint[:10]}, which is {objective.fingerprint[:10]} here: its "
            "data or its code has changed since"
        )
    return objective
