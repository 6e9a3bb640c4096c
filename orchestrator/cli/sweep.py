"""`calibrate --sweep-workers`: how many workers to use, measured."""

from typing import Annotated

from typer import Option

from objectives.api import Objective
from orchestrator.cli.conducting import conducting, finish
from orchestrator.cli.given import numbers_of
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.planning.configured import Conduct
from orchestrator.running.sweep import (
    LEAST_EVALUATIONS,
    Sweep,
    swept,
    worker_counts,
)
from orchestrator.running.sweep_text import as_document, to_markdown
from orchestrator.scalability import fit

SweepWorkers = Annotated[
    bool,
    Option("--sweep-workers", help="Measure the throughput of 1, 2, 4 ... workers instead."),
]
WorkerCounts = Annotated[
    str | None,
    Option("--worker-counts", metavar="1,2,4", help="Of --sweep-workers, these alone."),
]


def sweep_of(how: Conduct, objective: Objective, counts: str | None, least: int | None) -> Sweep:
    """The sweep of these numbers of workers (1,2,4), or of the usual ones, on what there is.

    `least` is of the evaluations at each. Raises ValueError on numbers that cannot be.
    """
    slots = how.engine.slots()
    most = min(slots.count, how.pacing.max_concurrent or slots.count)
    levels = worker_counts(most) if counts is None else numbers_of("--worker-counts", counts, most)
    return Sweep(objective, slots, levels, least or LEAST_EVALUATIONS)


def sweep_workers(how: Conduct, wanted: Sweep) -> None:
    """Evaluate the baseline at each number of workers, and print what that says.

    The same command takes up what was begun.
    """
    objective, slots, found = wanted.objective, wanted.slots, []
    with conducting(how) as (session, live):
        for result in wanted.carry_out(session):
            if result.ruling.decision != "done":
                finish(result, session.stop, live, how.as_json)
            found.append(swept(result.directory))
    fitted = fit([one.level for one in found])
    if how.as_json:
        print_json(as_document(found, fitted, slots.count))
    else:
        name = f"{objective.spec.name} on {slots.device_name}"
        print_markdown(to_markdown(name, found, fitted, slots.count))
