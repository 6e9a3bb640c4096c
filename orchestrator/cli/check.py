"""`check knobs|proxy|workers|memory`: what to search, how short, on how many workers.

Each evaluates points on seeds, in a run of its own that the same command resumes.
"""

from typing import Annotated, Any

from typer import Context, Option

from budgets.proxy import LEAST_CANDIDATES
from budgets.state import RunState
from orchestrator.cli.options import Json, resolved
from orchestrator.cli.session import conducting, finish
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.config import MOST_SEEDS
from orchestrator.matrix import matrix as measuring
from orchestrator.matrix import workers as sweeping
from orchestrator.matrix.checks import CHECK_SEEDS, LEAST_SEEDS, knob_check, proxy_check
from orchestrator.matrix.matrix import Matrix, carry_out
from orchestrator.matrix.memory import memory_of, with_micro_batch
from orchestrator.plan.resolve import slots_of

PROXY = 0.25  # of an evaluation's FLOPs, where search.proxy is not set


def _count(flag: str, about: str, least: int = 1) -> Any:
    return Option(flag, metavar="N", min=least, max=MOST_SEEDS, help=about)


def knobs(
    context: Context,
    seeds: Annotated[
        int, _count("--seeds", "Evaluations of every point.", LEAST_SEEDS)
    ] = CHECK_SEEDS,
    names: Annotated[
        str | None, Option("--knobs", metavar="A,B", help="Only these; default: all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Test whether each knob moves the score, in units of the noise.

    Writes a run, RUNS_DIR/check/ID.
    """
    only = () if names is None else tuple(name.strip() for name in names.split(","))
    _check(knob_check(resolved(context), seeds, only), as_json=as_json)


def proxy(
    context: Context,
    candidates: Annotated[
        int, _count("--candidates", "To compare.", LEAST_CANDIDATES)
    ] = LEAST_CANDIDATES,
    seeds: Annotated[int, _count("--seeds", "Evaluations of each, either way.")] = 1,
    as_json: Json = False,
) -> None:
    """Whether evaluations with a share of the FLOPs (search.proxy, or 0.25) rank candidates alike.

    Writes a run, RUNS_DIR/check/ID.
    """
    config = resolved(context)
    _check(proxy_check(config, config.search.proxy or PROXY, candidates, seeds), as_json=as_json)


def _check(wanted: Matrix, *, as_json: bool) -> None:
    with conducting(wanted.config, as_json=as_json) as (session, live):
        result = carry_out(wanted, session, slots_of(wanted.config))
        finish(result, session.stop, live, as_json=as_json)


def workers(
    context: Context,
    seeds: Annotated[
        int, _count("--seeds", "Evaluations at each, at least.")
    ] = sweeping.LEAST_EVALUATIONS,
    as_json: Json = False,
) -> None:
    """How many workers to use: the throughput of the baseline on 1, 2, 4 ... of them.

    Writes runs, RUNS_DIR/calibration/ID.
    """
    config = resolved(context).without_caps()
    slots, found = slots_of(config), []
    levels = sweeping.worker_counts(min(slots.count, config.backend.max_concurrent or slots.count))
    with conducting(config, as_json=as_json) as (session, live):
        for result in sweeping.sweep(session, config, slots, levels, seeds):
            if result.ruling.decision != "done":
                finish(result, session.stop, live, as_json=as_json)
            found.append(sweeping.throughput(result.state))
    document = sweeping.as_document(found, slots.count)
    if as_json:
        print_json(document)
    else:
        name = f"{config.objective} on {slots.device_name}"
        print_markdown(sweeping.to_markdown(name, document))


def memory(
    context: Context,
    sizes: Annotated[
        list[int] | None,
        Option("--size", metavar="N", min=1, help="A micro-batch; repeatable; default: 1 and 4."),
    ] = None,
    seeds: Annotated[int, _count("--seeds", "Evaluations at each.")] = 2,
    as_json: Json = False,
) -> None:
    """The peak of memory by micro-batch, and the largest one that is safe.

    Writes runs, RUNS_DIR/calibration/memory-ID.
    """
    config = resolved(context).without_caps()
    slots, states = slots_of(config), dict[int, RunState]()
    with conducting(config, as_json=as_json) as (session, live):
        for size in sorted(set(sizes or (1, 4))):
            own = config.with_objective(with_micro_batch(config.tuned, size))
            result = measuring.calibrate(session, own, slots, seeds, prefix="memory-")
            if result.ruling.decision != "done":
                finish(result, session.stop, live, as_json=as_json)
            states[size] = result.state
    found = memory_of(states)
    if as_json:
        print_json(found.as_dict())
    else:
        print_markdown(found.to_markdown())
