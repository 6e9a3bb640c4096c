"""`calibrate`, `check` and `train`: measurements before a search, and one training.

Each `check` evaluates points on seeds, in a run of its own that the same command resumes.
"""

import sys
from collections.abc import Iterable
from functools import partial
from typing import Any

import typer
from typer import Option

from budgets.measurements import LEAST_CANDIDATES
from budgets.plan import Devices
from budgets.state import RunState
from objectives import registry
from objectives.settings import parse
from orchestrator.cli.options import Typed, switch
from orchestrator.cli.output import EXIT_SIGNAL, Answer, print_json
from orchestrator.cli.run import conducting
from orchestrator.config import MOST_SEEDS, Budget, Config
from orchestrator.execution.api import insisted_on
from orchestrator.execution.devices import resized
from orchestrator.matrix import carry_out as measuring
from orchestrator.matrix import check_commands
from orchestrator.matrix.check_commands import CHECK_SEEDS
from orchestrator.plan.forecast import CALIBRATION_SEEDS
from orchestrator.plan.resolve import slots_of
from orchestrator.run.loop import Stop, at_once

MEMORY_SEEDS = 2  # of each micro-batch
PROXY = 0.25  # of an evaluation's FLOPs, where search.proxy is not set


def _seeds(least: int, usual: int) -> Any:
    about = "Evaluations of each point."
    return Option(usual, "--seeds", metavar="N", min=least, max=MOST_SEEDS, help=about)


def _without_caps(typed: Typed) -> Config:
    """Return the configuration without a budget: for measurements that runs share."""
    return typed.config.model_copy(update={"budget": Budget()})


def calibrate(
    typed: Typed,
    seeds: int = _seeds(1, CALIBRATION_SEEDS),
    again: bool = switch("--again", "Repeat what was measured before."),
) -> None:
    """Measure the baseline: time, memory, FLOPs, noise. Writes a run, RUNS_DIR/calibration/ID."""
    config, overrides = _without_caps(typed), typed.overrides
    slots = slots_of(config)
    with conducting(typed, config) as (session, live):
        result = measuring.calibrate(session, config, slots, seeds, overrides, again=again)
        live.finish(result, session)


def knobs(
    typed: Typed,
    seeds: int = _seeds(2, CHECK_SEEDS),
    names: str | None = Option(None, "--knobs", metavar="A,B", help="Only these; default: all."),
) -> None:
    """Test whether each knob moves the score, beyond the noise. Writes a run, RUNS_DIR/check/ID."""
    only = () if names is None else tuple(name.strip() for name in names.split(","))
    _check(typed, check_commands.knob_check(typed.config, seeds, only))


def proxy(
    typed: Typed,
    candidates: int = Option(
        LEAST_CANDIDATES,
        "--candidates",
        metavar="N",
        min=LEAST_CANDIDATES,
        help="Points to compare.",
    ),
) -> None:
    """Compare the rankings by full and by shorter evaluations. Writes a run, RUNS_DIR/check/ID."""
    config = typed.config
    _check(typed, check_commands.proxy_check(config, config.search.proxy or PROXY, candidates))


def _check(typed: Typed, wanted: measuring.Matrix) -> None:
    with conducting(typed, wanted.config) as (session, live):
        live.finish(measuring.carry_out(wanted, session, slots_of(wanted.config)), session)


def _each(
    typed: Typed, config: Config, wanted: Iterable[tuple[measuring.Matrix, Devices]]
) -> list[RunState]:
    """Return the state of each run. Exits with the first that does not come to its end."""
    states = list[RunState]()
    with conducting(typed, config) as (session, live):
        for matrix, slots in wanted:
            result = measuring.carry_out(matrix, session, slots)
            if result.ruling.decision != "done":
                live.finish(result, session)
            states.append(result.state)
    return states


def workers(typed: Typed) -> Answer:
    """Measure the throughput on 1, 2, 4 ... workers. Writes runs, RUNS_DIR/calibration/ID."""
    config = _without_caps(typed)
    slots = slots_of(config)
    slots = resized(slots, min(slots.count, config.backend.max_concurrent or slots.count))
    states = _each(typed, config, check_commands.sweep(config, slots))
    document, page = check_commands.throughputs(states, slots.count)
    return Answer(document, page=page)


def memory(
    typed: Typed,
    sizes: list[int] | None = Option(
        None, "--size", metavar="N", min=1, help="Micro-batch; repeatable; default: 1 and 4."
    ),
) -> Answer:
    """Measure the peak of memory by micro-batch. Writes runs, RUNS_DIR/calibration/memory-ID."""
    config = _without_caps(typed)
    slots, own = slots_of(config), sorted(set(sizes or (1, 4)))
    wanted = ((check_commands.micro_batch(config, size, MEMORY_SEEDS), slots) for size in own)
    states = _each(typed, config, wanted)
    document, page = check_commands.memory_of(dict(zip(own, states, strict=True)))
    return Answer(document, page=page)


def train(
    typed: Typed,
    dry_run: bool = switch("--dry-run", "Print settings, steps, FLOPs and disk as JSON."),
) -> Answer | None:
    """Train the built-in model once, and evaluate it. Writes to the directory checkpoint_dir."""
    from objectives.nanochat.config import NanochatConfig, RunConfig

    asked = typed.config
    if registry.kind(asked.tuned.spec) != "nanochat":
        raise ValueError(f"train: expected the objective nanochat, got {asked.objective}")
    config = parse(NanochatConfig, asked.settings, "nanochat")
    run = parse(RunConfig, asked.alone, "training")
    if dry_run:
        print_json(_planned(config, run))
        return None
    from objectives.nanochat import run as training  # imports torch

    stop = Stop(announce=lambda _: at_once("Saving a checkpoint."))

    def check() -> None:
        if stop.requested:
            raise training.StoppedError

    say = partial(print, file=sys.stderr if typed.as_json else sys.stdout, flush=True)
    try:
        with stop, insisted_on([]):
            summary = training.train(config, run, say, check)
    except training.StoppedError:
        print("Stopped. Repeat the command to resume.", file=sys.stderr)
        raise typer.Exit(EXIT_SIGNAL + stop.signum) from None
    lines = [f"{summary['bpb']:.5f} bits per byte after {summary['steps']:,} steps"]
    if summary["best"] and summary["best"]["bpb"] < summary["bpb"]:
        lines.append("best: {bpb:.5f} at step {step}".format(**summary["best"]))
    signs = [sign for sign in ("unstable", "exploding") if summary["health"][sign]]
    lines += [f"Warning: the training was {one}; see health in summary.json." for one in signs]
    return Answer(summary, [*lines, f"Files: {run.checkpoint_dir}"])


def _planned(config: Any, run: Any) -> dict[str, Any]:
    """Return all settings, and what they amount to. Raises SetupError without the text."""
    from objectives.nanochat import flops
    from objectives.nanochat.data import load

    plan = flops.plan(config, len(load(config.data).train))
    size = flops.checkpoint_bytes(config, plan.steps)
    return {
        "settings": config.model_dump(mode="json") | run.model_dump(mode="json"),
        "decided_by": plan.paid_by,
        "steps": plan.steps,
        "tokens": plan.tokens,
        "train_flops": plan.train,
        "checkpoint_bytes": size,
        "disk_bytes": size * run.most_checkpoints,
    }
