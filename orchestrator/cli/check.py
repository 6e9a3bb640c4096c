"""`check knobs|proxy|workers|memory`: experiments that say how to search, before it is paid for.

Each is a run of its own, with a ledger; the same command takes it up again.
"""

from pathlib import Path
from typing import Annotated

from typer import Context, Option

from budgets.calibration import measure
from budgets.proxy import LEAST_CANDIDATES
from budgets.state import RunState
from objectives.api import Objective
from orchestrator.cli.conducting import conducting, finish
from orchestrator.cli.options import (
    BESIDE,
    FILE,
    MACHINE,
    PLACE,
    TUNED,
    Json,
    Override,
    Reason,
    names_of,
    numbers_of,
    overrides_of,
    resolved_of,
    taking,
)
from orchestrator.cli.program import examples, group
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.config import MOST_SEEDS, TRAINING, Config
from orchestrator.execution.engine import devices_of
from orchestrator.matrix.calibrate import calibrate
from orchestrator.matrix.knobs import CHECK_SEEDS, LEAST_SEEDS, KnobCheck
from orchestrator.matrix.matrix import carry_out
from orchestrator.matrix.memory import as_dict, memory_of, to_markdown, with_micro_batch
from orchestrator.matrix.proxy import ProxyCheck, near
from orchestrator.matrix.workers import (
    LEAST_EVALUATIONS,
    Sweep,
    as_document,
    swept,
    worker_counts,
)
from orchestrator.matrix.workers import to_markdown as sweep_markdown
from orchestrator.plan.history import Entry, entry_of, read_history
from orchestrator.plan.resolve import slots_of
from orchestrator.records.planned import objective_of
from orchestrator.records.recorded import find_run, load_state
from orchestrator.scalability import fit

checks = group(
    "What to search, how short, on how many workers: measured first.", "check knobs", "check proxy"
)


def _seeds(least: int, about: str) -> object:
    return Option("--seeds", metavar="N", min=least, max=MOST_SEEDS, help=about)


@checks.command(
    epilog=examples("check knobs", "check knobs --set space=optimizer --knobs momentum")
)
@taking(FILE, TUNED, BESIDE)
def knobs(
    context: Context,
    seeds: Annotated[int, _seeds(LEAST_SEEDS, "Evaluations of every point.")] = CHECK_SEEDS,
    names: Annotated[
        str | None, Option("--knobs", metavar="A,B", help="Only these; default: all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Test whether each knob moves the score, in units of the noise; the same command resumes.

    Writes a run, RUNS_DIR/check/ID.
    """
    config = resolved_of(context)
    _check(KnobCheck(config, seeds, names_of(names)), as_json=as_json)


@checks.command(
    epilog=examples(
        "check proxy --fraction 0.25", "check proxy --run min-nanochat-s1 --candidates 12"
    )
)
@taking(FILE, TUNED, BESIDE)
def proxy(
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
    seeds: Annotated[int, _seeds(1, "Evaluations of each, either way.")] = 1,
    as_json: Json = False,
) -> None:
    """Whether a shorter evaluation ranks candidates as the full one does; the same command resumes.

    Writes a run, RUNS_DIR/check/ID.
    """
    config, around = resolved_of(context), None
    if run is not None:
        state = load_state(find_run(run, Path(config.runs_dir)))
        config, around = config.with_objective(_objective_of_run(config, state)), near(state)
    _check(ProxyCheck(config, fraction, candidates, seeds, around), as_json=as_json)


def _objective_of_run(config: Config, state: RunState) -> Objective:
    """Raises ValueError where another one is given beside it."""
    tuned = ("objective", "preset", "profile", TRAINING)
    if any(key.partition(".")[0] in tuned for key in config.sources):
        raise ValueError("--run has its own objective: say no other one, and none of its settings")
    return objective_of(state.plan)


def _check(wanted: KnobCheck | ProxyCheck, *, as_json: bool) -> None:
    """Evaluate what the check asks for, or go on with it."""
    with conducting(wanted.config, as_json=as_json) as (session, live):
        result = carry_out(wanted, session, slots_of(wanted.config))
        finish(result, session.stop, live, as_json)


@checks.command(epilog=examples("check workers", "check workers --counts 1,2"))
@taking(FILE, PLACE, TUNED, MACHINE)
def workers(
    context: Context,
    counts: Annotated[
        str | None,
        Option("--counts", metavar="1,2,4", help="Numbers of workers; default: 1, 2, 4 ..."),
    ] = None,
    seeds: Annotated[int, _seeds(1, "Evaluations at each, at least.")] = LEAST_EVALUATIONS,
    again: Annotated[
        bool, Option("--again", help="Measure again, beside what there is; needs --reason.")
    ] = False,
    override: Override = None,
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """How many workers to use: the throughput of the baseline on 1, 2, 4 ... of them.

    Writes runs, RUNS_DIR/calibration/ID.
    """
    config = resolved_of(context).without_caps()
    overrides = overrides_of(override, reason, again=again)
    slots = slots_of(config)
    most = min(slots.count, config.backend.max_concurrent or slots.count)
    levels = worker_counts(most) if counts is None else numbers_of("--counts", counts, most)
    why = reason if again else ""
    sweep = Sweep(config, slots, levels, seeds, why, overrides)
    found = []
    with conducting(config, as_json=as_json) as (session, live):
        for result in sweep.carry_out(session):
            if result.ruling.decision != "done":
                finish(result, session.stop, live, as_json)
            found.append(swept(result.directory))
    fitted = fit([one.level for one in found])
    if as_json:
        print_json(as_document(found, fitted, slots.count))
    else:
        name = f"{config.objective} on {slots.device_name}"
        print_markdown(sweep_markdown(name, found, fitted, slots.count))


@checks.command(epilog=examples("check memory --set micro_batch_size=4"))
@taking(FILE, PLACE, TUNED, MACHINE)
def memory(
    context: Context,
    sizes: Annotated[str, Option("--sizes", metavar="1,4", help="Micro-batches to try.")] = "1,4",
    seeds: Annotated[int, _seeds(1, "Evaluations at each.")] = 2,
    as_json: Json = False,
) -> None:
    """The peak of memory by micro-batch, and the largest one that is safe.

    Writes runs, RUNS_DIR/calibration/memory-ID.
    """
    config = resolved_of(context).without_caps()
    slots, entries, seconds = slots_of(config), list[Entry](), dict[int, float]()
    sized = {size: with_micro_batch(config.tuned, size) for size in numbers_of("--sizes", sizes)}
    with conducting(config, as_json=as_json) as (session, live):
        for size, objective in sized.items():
            sized_config = config.with_objective(objective)
            result = calibrate(session, sized_config, slots, seeds, prefix="memory-")
            if result.ruling.decision != "done":
                finish(result, session.stop, live, as_json)
            entries.append(entry_of(result.state))
            seconds[size] = measure(result.state).median_seconds
    known = read_history(Path(config.runs_dir))
    found = memory_of(config.tuned, devices_of(slots), [*known, *entries], seconds)
    if as_json:
        print_json(as_dict(found))
    else:
        print_markdown(to_markdown(found))
