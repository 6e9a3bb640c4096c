"""`best`: what a search recommends; with --train one longer training of it."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Context, Option

from budgets.formatting import printable
from budgets.plan import Phase
from orchestrator.best import (
    Best,
    as_dict,
    best_of,
    configuration_of,
    headline,
    to_lines,
    training_of,
)
from orchestrator.cli import flags
from orchestrator.cli.flags import BESIDE_A_RUN, only_of, resolved
from orchestrator.cli.options import Json, RunName
from orchestrator.cli.terminal import print_json, print_line
from orchestrator.config import MOST_SEEDS, Config
from orchestrator.records.objective import same_objective
from orchestrator.records.runs import find_run, load_state


def best(
    context: Context,
    run: RunName = None,
    as_toml: Annotated[
        bool, Option("--toml", help="Print a configuration file whose baseline it is.")
    ] = False,
    as_flags: Annotated[
        bool, Option("--flags", help="Print it as arguments of what is tuned, for a shell.")
    ] = False,
    anyway: Annotated[
        bool, Option("--anyway", help="The best candidate, even where it is not recommended.")
    ] = False,
    train: Annotated[
        bool, Option("--train", help="Train it and the baseline longer; the same resumes.")
    ] = False,
    times: Annotated[
        float | None,
        Option("--times", metavar="X", min=1, help="With --train: of the budget; default: 4."),
    ] = None,
    seeds: Annotated[
        int | None,
        Option("--seeds", metavar="N", min=1, max=MOST_SEEDS, help="With --train; default: 2."),
    ] = None,
    settings: flags.Settings = None,
    runs_dir: flags.RunsDir = None,
    executor: flags.Executor = None,
    device: flags.Device = None,
    workers: flags.Workers = None,
    as_json: Json = False,
) -> None:
    """The configuration that a search recommends, and how far that is confirmed.

    Writes nothing; with --train a run, RUNS_DIR/campaign/ID.
    """
    if not train and (times is not None or seeds is not None):
        raise ValueError("--times and --seeds say what to train: add --train")
    if as_json + as_toml + as_flags > 1 or (train and (as_toml or as_flags)):
        raise ValueError(
            "--json, --toml, --flags, --train: one at a time; --json goes with --train"
        )
    only_of(BESIDE_A_RUN, settings)
    config = resolved(context, None, settings)
    searches: tuple[Phase, ...] = () if run is not None else ("phase1", "phase2")
    directory = find_run(run, Path(config.runs_dir), *searches)
    found = best_of(load_state(directory), directory)
    if train:
        if found.standing == "no_go" and not anyway:
            raise ValueError(
                f"{headline(found)} There is nothing else to train. --anyway trains the best "
                "candidate all the same"
            )
        _train(found, config, times, seeds or 2, as_json=as_json)
        return
    plan, is_no_go = found.run.plan, found.standing == "no_go"
    candidate = configuration_of(plan, found.candidate)
    recommended = configuration_of(plan, found.recommended) if is_no_go else candidate
    is_baseline = is_no_go and not anyway
    shown = recommended if is_baseline else candidate
    said = (
        f"{plan.run_id}: the {'baseline' if is_baseline else 'best candidate'}.",
        headline(found),
    )
    if as_json:
        print_json(as_dict(found, recommended, candidate))
    elif as_toml:
        print_line(shown.toml(*said).rstrip("\n"))
    elif as_flags:
        line = shown.flags()
        print(printable(" ".join(said)), file=sys.stderr)
        print_line(line)
    else:
        for line in to_lines(found, candidate):
            print_line(printable(line))


def _train(found: Best, config: Config, times: float | None, seeds: int, *, as_json: bool) -> None:
    """Begin or take up the training, within the limits and at the price of the search."""
    from orchestrator.cli.session import conducting, finish
    from orchestrator.matrix.campaign import campaign_matrix
    from orchestrator.matrix.matrix import carry_out
    from orchestrator.plan.resolve import slots_of

    plan, own = found.run.plan, config.evaluation
    config = config.with_objective(same_objective(plan)).having(
        {
            "budget.price_per_device_hour": config.budget.price_per_device_hour
            or plan.price_per_device_hour,
            "evaluation.limit_seconds": own.limit_seconds or plan.limits.wall_seconds,
            "evaluation.stall_seconds": own.stall_seconds or plan.limits.stall_seconds,
        }
    )
    terms, slots = training_of(found, config, times, seeds), slots_of(config)
    slots = replace(slots, count=terms.workers(slots.count))
    with conducting(config, as_json=as_json) as (session, live):
        result = carry_out(campaign_matrix(config, terms), session, slots)
        finish(result, session.stop, live, as_json=as_json)
