"""`best`: what a search recommends; with --train one longer training of it."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from typer import Context, Option

from budgets.plain import printable
from budgets.plan import Phase
from objectives.api import Variant
from orchestrator.best.configuration import Configuration, configuration_of
from orchestrator.best.outcome import outcome_of
from orchestrator.best.scale import longer
from orchestrator.best.text import as_dict, to_lines
from orchestrator.best.training import (
    TrainingRequest,
    known_times,
    taken_up,
    training_name,
    training_of,
)
from orchestrator.cli.conducting import conducting, finish
from orchestrator.cli.options import (
    BESIDE,
    BESIDE_TABLES,
    SETTINGS,
    TRACK,
    Json,
    RunName,
    only_of,
    resolved_of,
    taking,
)
from orchestrator.cli.terminal import print_json, print_line
from orchestrator.config import MOST_SEEDS, Config
from orchestrator.execution.engine import devices_of
from orchestrator.matrix.matrix import carry_out as carry_out_matrix
from orchestrator.planning.engine import slots_of
from orchestrator.planning.names import check_run_id, run_directory
from orchestrator.planning.window import refuse_the_past, window_of
from orchestrator.records.planned import same_objective
from orchestrator.records.recommended import Best, best_of, since
from orchestrator.records.recorded import find_run, load_state, recorded_plan
from orchestrator.running.session import system_clock

AsToml = Annotated[bool, Option("--toml", help="Print a configuration file whose baseline it is.")]
AsFlags = Annotated[
    bool, Option("--flags", help="Print it as arguments of what is tuned, for a shell.")
]
Anyway = Annotated[
    bool, Option("--anyway", help="The best candidate, even where it is not recommended.")
]
Train = Annotated[
    bool, Option("--train", help="Train it once more, longer; the same command resumes.")
]
Times = Annotated[
    float | None,
    Option("--times", metavar="TIMES", help="With --train: times the training budget; default: 4."),
]
TargetFlops = Annotated[
    float | None,
    Option("--target-flops", metavar="FLOPS", help="With --train: for that many FLOPs instead."),
]
Seeds = Annotated[
    int | None,
    Option(
        "--seeds",
        metavar="N",
        min=1,
        max=MOST_SEEDS,
        help="With --train: fresh seeds; default: 1.",
    ),
]
Compare = Annotated[
    bool, Option("--compare", help="With --train: the baseline too, on the same seeds.")
]
TrainingId = Annotated[
    str | None,
    Option("--run-id", metavar="ID", help="With --train: its name; default: best-RUN-x4."),
]


@dataclass(frozen=True)
class Wish:
    """How the training is wanted."""

    times: float | None
    target_flops: float | None
    seeds: int
    compare: bool
    run_id: str | None
    anyway: bool


@taking(BESIDE, TRACK, SETTINGS)
def best(
    context: Context,
    run: RunName = None,
    as_toml: AsToml = False,
    as_flags: AsFlags = False,
    anyway: Anyway = False,
    train: Train = False,
    times: Times = None,
    target_flops: TargetFlops = None,
    seeds: Seeds = None,
    compare: Compare = False,
    run_id: TrainingId = None,
    as_json: Json = False,
) -> None:
    """The configuration that a search recommends, and how far that is confirmed.

    Writes nothing; with --train a run, RUNS_DIR/campaign/ID.
    """
    if not train:
        asked = (times, target_flops, seeds, run_id, compare or None)
        _refuse_terms(asked, is_tracked=bool(context.params["track_to"]))
    if as_json + as_toml + as_flags > 1 or (train and (as_toml or as_flags)):
        raise ValueError(
            "--json, --toml, --flags, --train: one at a time; --json goes with --train"
        )
    only_of(BESIDE_TABLES, context)
    config = resolved_of(context)
    searches: tuple[Phase, ...] = () if run is not None else ("phase1", "phase2")
    directory = find_run(run, Path(config.runs_dir), *searches)
    found = best_of(load_state(directory))
    if not train:
        show(found, directory, as_json=as_json, as_toml=as_toml, as_flags=as_flags, anyway=anyway)
        return
    price = config.budget.price_per_device_hour or found.state.plan.price_per_device_hour
    config = config.with_objective(same_objective(found.state.plan))
    config = config.having({"budget.price_per_device_hour": price})
    wish = Wish(times, target_flops, seeds or 1, compare, run_id, anyway)
    carry_out(found, config, wish, as_json=as_json)


def _refuse_terms(asked: Sequence[object | None], *, is_tracked: bool) -> None:
    """Raises ValueError where something is said of a training that is not asked for."""
    if is_tracked:
        raise ValueError("--track: a training is logged to trackers, so expected --train too")
    if any(value is not None for value in asked):
        raise ValueError(
            "--times, --target-flops, --seeds, --compare and --run-id say what to train: add "
            "--train"
        )


def show(
    found: Best, directory: Path, *, as_json: bool, as_toml: bool, as_flags: bool, anyway: bool
) -> None:
    """Print what is recommended in one form; with `anyway` the candidate, whatever it is worth."""
    plan = found.state.plan
    candidate = configuration_of(plan, found.candidate)
    recommended = candidate
    if found.standing == "no_go":
        recommended = configuration_of(plan, found.recommended)
    shown = candidate if anyway else recommended
    if as_json:
        print_json(as_dict(found, directory, recommended, candidate))
    elif as_toml:
        print_line(shown.toml(*_said_of(found, shown, candidate)).rstrip("\n"))
    elif as_flags:
        line = shown.flags()
        print(printable(" ".join(_said_of(found, shown, candidate))), file=sys.stderr)
        print_line(line)
    else:
        for line in to_lines(found, directory, candidate):
            print_line(printable(line))


def _said_of(found: Best, shown: Configuration, candidate: Configuration) -> tuple[str, str]:
    what = "the best candidate" if shown is candidate else "the baseline"
    return f"{found.state.plan.run_id}: {what}.", found.headline


def carry_out(found: Best, config: Config, wish: Wish, *, as_json: bool) -> None:
    """Begin or take up the training; leave with the exit code of how it ended."""
    variant = longer(config.tuned, wish.times, wish.target_flops)
    request = _request(found, variant, config, wish)
    recorded = recorded_plan(
        run_directory(Path(config.runs_dir), "campaign", request.campaign.name)
    )
    if recorded is None:
        _refuse_what_is_not_recommended(found, wish)
        refuse_the_past(window_of(config.budget), system_clock().now())
    else:
        request, is_moved = taken_up(request, recorded)
        found = since(found) if is_moved else found
    slots = slots_of(config)
    slots = replace(slots, count=request.campaign.workers(slots.count))
    with conducting(config, as_json=as_json) as (session, live):
        times = known_times(found, devices_of(slots))
        result = carry_out_matrix(request, session, slots, calibration=times)
        outcome = outcome_of(found, result, variant)
        also, lines = {"training": outcome.as_dict()}, tuple(outcome.lines())
        finish(result, session.stop, live, as_json, also, lines, failed=outcome.failed)


def _request(found: Best, variant: Variant, config: Config, wish: Wish) -> TrainingRequest:
    name = wish.run_id or training_name(found.state.plan.run_id, variant.length)
    check_run_id(name)
    return training_of(found, variant, config, name=name, seeds=wish.seeds, compare=wish.compare)


def _refuse_what_is_not_recommended(found: Best, wish: Wish) -> None:
    """Raises ValueError after a No-Go, unless a person wants the candidate all the same."""
    if found.standing == "no_go" and not wish.anyway:
        raise ValueError(
            f"{found.headline} There is nothing else to train. --anyway trains the best candidate "
            "all the same"
        )
