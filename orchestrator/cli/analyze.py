"""`analyze`: which knobs matter around a run's recommendation."""

from typing import Annotated

from rich.markdown import Markdown
from typer import Option

from budgets.state import RunState
from objectives.api import Objective
from orchestrator.checks.space import LEAST_SEEDS, CheckRequest
from orchestrator.cli.options import (
    DEFAULT_ROOT,
    AcceptDrift,
    Address,
    AllowNetworkFs,
    DeviceName,
    DrainSeconds,
    EvaluationSeed,
    ExecutorName,
    GivenRun,
    Json,
    LauncherName,
    LimitSeconds,
    MaxCost,
    MaxDeviceHours,
    MaxEvals,
    MaxHours,
    Price,
    Root,
    SafetyMargin,
    StallSeconds,
    Threads,
    WindowText,
    Workers,
)
from orchestrator.cli.terminal import conducting, console, finish, print_json
from orchestrator.config.asked import Conduct, window_of
from orchestrator.config.sections import MOST_SEEDS
from orchestrator.execution.engine import Engine
from orchestrator.planning.request import Request
from orchestrator.records.planned import objective_of
from orchestrator.records.recorded import find_run, load_state

ANALYZE_SEEDS = 4
"""Fewer than a check's: the knobs are those that a search has moved for a while."""


def analyze(
    run: GivenRun,
    root: Root = DEFAULT_ROOT,
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
    evaluation_seed: EvaluationSeed = 123,
    max_evals: MaxEvals = None,
    max_device_hours: MaxDeviceHours = None,
    max_hours: MaxHours = None,
    max_cost: MaxCost = None,
    window: WindowText = None,
    safety_margin: SafetyMargin = "30m",
    price: Price = 0.0,
    limit_seconds: LimitSeconds = None,
    stall_seconds: StallSeconds = None,
    executor: ExecutorName = "ray",
    launcher: LauncherName = "fork",
    address: Address = None,
    device: DeviceName = "auto",
    workers: Workers = None,
    threads: Threads = None,
    drain_seconds: DrainSeconds = None,
    allow_network_fs: AllowNetworkFs = False,
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
    directory = find_run(run, root)
    state = load_state(directory)
    found = analysis_of(state, accept_drift=accept_drift)
    if not as_json:
        console().print(Markdown(to_markdown(found)))
    if not evaluate:
        if as_json:
            print_json({"directory": str(directory), "analysis": found.as_dict()})
        return
    terms = Request(
        phase="check",
        tier="min",
        objective=same_objective(state),
        evaluation_seed=evaluation_seed,
        max_evals=max_evals,
        max_device_hours=max_device_hours,
        max_hours=max_hours,
        max_cost=max_cost,
        window=window_of(window, safety_margin),
        price_per_device_hour=price,
        limit_seconds=limit_seconds,
        stall_seconds=stall_seconds,
    )
    names = tuple(name.strip() for name in knobs.split(",")) if knobs is not None else ()
    request = CheckRequest(terms, seeds or ANALYZE_SEEDS, names, found.around())
    engine = Engine(executor, launcher, address, device, workers, threads)
    how = Conduct(root, engine, drain_seconds, allow_network_fs, as_json)
    with conducting(how) as (session, live):
        result = session.check(request, engine.slots())
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
