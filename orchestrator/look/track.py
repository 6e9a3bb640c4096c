"""Send a run's ledger to experiment trackers: the command `track RUN --to NAME [--watch]`.

That command is a process of its own: a tracker's library that hangs, leaks or crashes ends nothing
else. The run calls no tracker. The tracker's files, in the run's `trackers/NAME`, are deleted and
written again from the first record.
"""

import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from budgets.events import Decided, GenerationTold, Settled
from budgets.formatting import command, one_line
from budgets.ledger import Record
from budgets.schedule import pace
from budgets.state import RunState
from objectives.secrets import redacted
from orchestrator.look.json_documents import flat, plain_name, plain_values
from orchestrator.look.reports import rates
from orchestrator.look.run import Run, comparison_name
from orchestrator.records.runs import Tail, goes_on, load_state

POLL_SECONDS = 0.5
MEASURED = ("attempt", "score", "seconds", "steps", "train_flops", "peak_memory_bytes")
PROJECT = "cmaes-orchestrator"  # in W&B; the experiment in MLflow


def figures(state: RunState, record: Record) -> dict[str, float]:
    """Return the finite numbers that a record adds, given the state as of it.

    No name begins the path of another: a tracker may keep names as files.
    """
    run, found = Run(state, datetime.fromisoformat(record.at)), dict[str, Any]()
    match record.event:
        case Settled(final=True) as event:
            name = plain_name(state.batch(event).configurations[event.candidate].name)
            kind = plain_name(comparison_name(event.comparison) or "condition")
            before = f"{kind}/{name}/" if name else ""  # scores of one kind make a curve
            own = {name: getattr(event, name) for name in MEASURED} | rates(event)
            own |= {f"objective/{plain_name(name)}": one for name, one in event.metrics.items()}
            stands = pace(state)
            found = {
                "evaluations": state.accounts.evaluations + state.accounts.comparisons,
                "training/elapsed_hours": stands.elapsed_hours,
                "training/remaining_hours": stands.remaining_hours,
                "training/on_track": stands.on_track,
                "optimization/estimated_hours": stands.estimated_hours,
                "optimization/time_accuracy": stands.accuracy,
                **{f"{before}{name}": one for name, one in own.items()},
                **{f"spent/{plain_name(one.name)}": one.in_units["spent"] for one in run.balances},
            }
        case GenerationTold() as event:
            row = next(one for one in run.generations if one.number == event.generation)
            found = {f"generation/{name}": one for name, one in plain_values(row).items()}
        case Decided() as event:
            found = {"verdict/gain": event.gain, "verdict/lower": event.lower}
    numbers = {name: one for name, one in found.items() if isinstance(one, int | float)}
    return {name: float(one) for name, one in numbers.items() if math.isfinite(one)}


# The trackers: files in a directory, without account or network

Values = Mapping[str, str | float]
"""A run's plan. A tracker is made with it, the run's state, and an empty directory (absolute)."""


class TensorBoard:
    """An event file of scalars, by TensorBoard's own writer. Needs no torch."""

    def __init__(self, directory: Path, run: RunState, config: Values) -> None:  # noqa: ARG002
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer, self._event = EventFileWriter(str(directory), flush_secs=2), Event
        # A running TensorBoard then forgets what an earlier file had.
        start = SessionLog(status=SessionLog.START)
        self._writer.add_event(Event(wall_time=run.accounts.began_ms / 1000, session_log=start))

    def log(self, step: int, at: float, values: Mapping[str, float]) -> None:
        scalars = [{"tag": name, "simple_value": value} for name, value in values.items()]
        self._writer.add_event(self._event(wall_time=at, step=step, summary={"value": scalars}))

    def end(self, *, is_over: bool) -> None:  # noqa: ARG002
        self._writer.close()


class Wandb:
    """An offline W&B run, which `wandb sync` sends to an account."""

    def __init__(self, directory: Path, run: RunState, config: Values) -> None:
        places = ("WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR")
        os.environ |= dict.fromkeys(places, str(directory / ".own"))
        os.environ["WANDB_ERROR_REPORTING"] = "false"
        import wandb

        names = ("x_disable_meta", "x_disable_stats", "x_disable_machine_info")
        settings = wandb.Settings(mode="offline", console="off", **dict.fromkeys(names, True))
        self._run = wandb.init(
            dir=directory.parent,  # W&B adds `wandb`
            project=PROJECT,
            id=run.genesis[:16],
            name=run.plan.run_id,
            config=dict(config),
            settings=settings,
        )

    def log(self, step: int, at: float, values: Mapping[str, float]) -> None:
        self._run.log({**values, "_timestamp": at}, step=step)

    def end(self, *, is_over: bool) -> None:
        self._run.finish(exit_code=0 if is_over else 1)


class MlFlow:
    """A run in an MLflow file store, which `mlflow-skinny` can write."""

    def __init__(self, directory: Path, run: RunState, config: Values) -> None:
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # MLflow 3 refuses one without it
        os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
        from mlflow.tracking import MlflowClient

        os.chdir(directory)  # MLflow finds no run in a store whose path has a part `artifacts`
        self._client = MlflowClient(tracking_uri=".")
        experiment = self._client.create_experiment(PROJECT)
        self._id = self._client.create_run(experiment, run_name=run.plan.run_id).info.run_id
        for name, value in config.items():
            self._client.log_param(self._id, name, value)

    def log(self, step: int, at: float, values: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        metrics = [Metric(name, one, round(1000 * at), step) for name, one in values.items()]
        self._client.log_batch(self._id, metrics=metrics)

    def end(self, *, is_over: bool) -> None:
        self._client.set_terminated(self._id, "FINISHED" if is_over else "KILLED")


Sink = TensorBoard | Wandb | MlFlow
SINKS: Mapping[str, type[Sink]] = {"tensorboard": TensorBoard, "wandb": Wandb, "mlflow": MlFlow}


def follow(
    run: Path, names: Sequence[str], say: Callable[[str], None], watch: bool
) -> dict[str, str]:
    """Send the whole ledger to trackers; with `watch` also what is added, until the run ends.

    Return why some failed, by name; each is said once, and the others go on.
    """
    run, state = run.absolute(), load_state(run)
    errors, sinks = dict[str, str](), dict[str, Sink]()
    config = flat(state.planned.model_dump(mode="json"))

    def call(name: str, method: Callable[..., Any], *values: Any, **more: Any) -> Any:
        try:
            return method(*values, **more)
        except (Exception, SystemExit) as error:  # a library may raise anything
            sinks.pop(name, None)
            errors[name] = one_line(redacted(f"{type(error).__name__}: {error}", os.environ))
            again = command("track", str(run), "--to", name)
            say(f"Tracker {name} failed: {errors[name]}. The run is not touched; later: {again}")

    # keeps libraries from printing to stdout, changing the directory for good, and asking the user
    with redirect_stdout(sys.stderr), chdir(run), Path(os.devnull).open() as sys.stdin:
        for name in names:
            if (directory := call(name, _emptied, run / "trackers" / name)) is not None:
                sink = call(name, SINKS[name], directory, state, config)
                sinks |= {name: sink} if sink is not None else {}
        tail, is_last = Tail(run), False
        try:
            while sinks and not is_last:
                is_last = not watch or not goes_on(state, datetime.now(UTC))
                for record in tail.news():
                    state = tail.state or state
                    step = state.accounts.evaluations + state.accounts.comparisons
                    at, found = datetime.fromisoformat(record.at), figures(state, record)
                    for name, sink in list(sinks.items()) if found else ():
                        call(name, sink.log, step, at.timestamp(), found)
                time.sleep(0 if is_last else POLL_SECONDS)
        finally:  # also after Ctrl-C
            for name, sink in list(sinks.items()):
                call(name, sink.end, is_over=state.concluded is not None)
    return errors


def _emptied(directory: Path) -> Path:
    """Return a tracker's directory, now empty. Raises where a link leads out of the run."""
    if directory.parent.is_symlink():
        raise ValueError(f"{directory.parent} is a symbolic link: expected the run's own directory")
    if os.path.lexists(directory):
        shutil.rmtree(directory)  # raises on a link
    directory.mkdir(mode=0o700, parents=True)
    return directory
