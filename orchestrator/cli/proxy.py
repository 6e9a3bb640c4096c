"""`proxy check`: whether a shorter evaluation ranks candidates as the full one does."""

from typing import Annotated

import typer
from typer import Option

from budgets.proxy.certificate import LEAST_CANDIDATES
from budgets.state import RunState
from objectives.api import Objective
from orchestrator.checks.proxy import ProxyCheckRequest, near
from orchestrator.cli.options import (
    DEFAULT_ROOT,
    Address,
    AllowNetworkFs,
    DeviceName,
    DrainSeconds,
    EvaluationSeed,
    ExecutorName,
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
    Settings,
    StallSeconds,
    Threads,
    WindowText,
    Workers,
    load_objective,
)
from orchestrator.cli.terminal import conducting, examples, finish
from orchestrator.config.asked import Conduct, window_of
from orchestrator.config.sections import MOST_SEEDS
from orchestrator.execution.engine import Engine
from orchestrator.planning.request import Request
from orchestrator.records.planned import objective_of
from orchestrator.records.recorded import find_run, load_state

proxies = typer.Typer(
    help="A shorter evaluation in place of the full one.",
    no_args_is_help=True,
    epilog=examples("proxy check"),
)


@proxies.command(
    epilog=examples(
        "proxy check --fraction 0.25", "proxy check --run min-nanochat-s1 --candidates 12"
    )
)
def check(
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
    run: Annotated[
        str | None,
        Option(
            "--run", metavar="RUN", help="Look around what this run recommends, not the baseline."
        ),
    ] = None,
    objective: Annotated[
        str | None,
        Option(
            "--objective", metavar="NAME", help="What to tune; default: nanochat, or the run's."
        ),
    ] = None,
    settings: Settings = None,
    root: Root = DEFAULT_ROOT,
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
    as_json: Json = False,
) -> None:
    """Whether a shorter evaluation ranks candidates as the full one; the same command resumes.

    Writes a run, RUNS_DIR/check/ID.
    """
    state = None if run is None else load_state(find_run(run, root))
    terms = Request(
        phase="check",
        tier="min",
        objective=_objective(objective, settings, state),
        evaluation_seed=evaluation_seed,
        max_evals=max_evals,
        max_device_hours=max_device_hours,
        max_hours=max_hours,
        max_cost=max_cost,
        window=window_of(window, safety_margin),
        price_per_device_hour=price,
        limit_seconds=limit_seconds,
        stall_seconds=stall_seconds,
        proxy=fraction,
    )
    around = None if state is None else near(state)
    request = ProxyCheckRequest(terms, candidates, seeds, around)
    engine = Engine(executor, launcher, address, device, workers, threads)
    with conducting(Conduct(root, engine, drain_seconds, allow_network_fs, as_json)) as (
        session,
        live,
    ):
        result = session.check(request, engine.slots())
        finish(result, session.stop, live, as_json)


def _objective(name: str | None, settings: list[str] | None, state: RunState | None) -> Objective:
    """The one named, or the run's own. Raises ValueError where both are given."""
    if state is None:
        return load_objective(name or "nanochat", settings)
    if name is not None or settings:
        raise ValueError("--run has its own objective: leave out --objective and --set")
    return objective_of(state.plan)
