"""TensorBoard, Weights & Biases and MLflow as places that a run's figures are sent to.

Each writes files below one directory and needs no account and no network. Only the child that
`orchestrator.look.track` starts imports one of these libraries.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from budgets.state import RunState
from orchestrator.config import Tracker

NAME = "cmaes-orchestrator"  # of the project in W&B, and of the experiment in MLflow

Values = Mapping[str, str | float]


class Sink(Protocol):
    """One run in one tracker. Whatever it raises ends its follower, and nothing else."""

    def log(self, step: int, at: float, values: Mapping[str, float]) -> None:
        """Take the figures of a moment: evaluations that are over, seconds since 1970."""

    def end(self, summary: Values, *, is_over: bool) -> None:
        """Nothing more comes. Unless the run `is_over`, it may go on later."""


Make = Callable[[Path, RunState, Values], Sink]
"""Opens a run: an empty directory (absolute), the run, its plan as flat values."""


class TensorBoard:
    """An event file of scalars, by TensorBoard's own writer. Needs no torch."""

    def __init__(self, directory: Path, run: RunState, config: Values) -> None:  # noqa: ARG002
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer, self._event = EventFileWriter(str(directory), flush_secs=2), Event
        # A TensorBoard that shows an earlier file forgets what that one had.
        start = SessionLog(status=SessionLog.START)
        self._writer.add_event(Event(wall_time=run.began_ms / 1000, session_log=start))

    def log(self, step: int, at: float, values: Mapping[str, float]) -> None:
        scalars = [{"tag": name, "simple_value": value} for name, value in values.items()]
        self._writer.add_event(self._event(wall_time=at, step=step, summary={"value": scalars}))

    def end(self, summary: Values, *, is_over: bool) -> None:  # noqa: ARG002
        self._writer.close()


class Wandb:
    """An offline W&B run, to be sent to an account by `wandb sync`."""

    def __init__(self, directory: Path, run: RunState, config: Values) -> None:
        places = ("WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR")
        os.environ |= dict.fromkeys(places, str(directory / ".own"))
        os.environ["WANDB_ERROR_REPORTING"] = "false"
        os.environ.pop("WANDB_SERVICE", None)  # of a program that has a W&B run of its own
        import wandb

        names = ("x_disable_meta", "x_disable_stats", "x_disable_machine_info")
        private: dict[str, Any] = dict.fromkeys(names, True)
        self._run = wandb.init(
            dir=directory.parent,  # W&B adds `wandb`
            project=NAME,
            id=run.genesis[:16],
            name=run.plan.run_id,
            config=dict(config),
            settings=wandb.Settings(mode="offline", console="off", **private),
        )

    def log(self, step: int, at: float, values: Mapping[str, float]) -> None:
        self._run.log({**values, "_timestamp": at}, step=step)

    def end(self, summary: Values, *, is_over: bool) -> None:
        self._run.summary.update({f"summary/{name}": value for name, value in summary.items()})
        self._run.finish(exit_code=0 if is_over else 1)


class MlFlow:
    """A run in an MLflow file store, which `mlflow-skinny` can write."""

    def __init__(self, directory: Path, run: RunState, config: Values) -> None:
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # MLflow 3 refuses one without it
        os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
        from mlflow.tracking import MlflowClient

        os.chdir(directory)  # MLflow finds no run in a store whose path has a part `artifacts`
        self._client = MlflowClient(tracking_uri=".")
        experiment = self._client.create_experiment(NAME)
        self._id = self._client.create_run(experiment, run_name=run.plan.run_id).info.run_id
        for name, value in config.items():
            self._client.log_param(self._id, name, value)

    def log(self, step: int, at: float, values: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        metrics = [Metric(name, one, round(1000 * at), step) for name, one in values.items()]
        self._client.log_batch(self._id, metrics=metrics)

    def end(self, summary: Values, *, is_over: bool) -> None:
        for name, value in summary.items():
            self._client.set_tag(self._id, f"summary/{name}", value)
        self._client.set_terminated(self._id, "FINISHED" if is_over else "KILLED")


SINKS: Mapping[Tracker, Make] = {"tensorboard": TensorBoard, "wandb": Wandb, "mlflow": MlFlow}
