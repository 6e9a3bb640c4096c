"""TensorBoard, Weights & Biases and MLflow as places that figures are sent to.

Only the process that `orchestrator.look.track` starts imports one of their libraries.
"""

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from budgets.plain import plain
from budgets.table import table
from orchestrator.look.figures import Figures, Value

NAME = "cmaes-orchestrator"
"""Of the project in W&B, and of the experiment in MLflow."""

T = TypeVar("T")


@dataclass(frozen=True)
class Beginning:
    """The run that a sink is to show."""

    run_id: str
    phase: str
    tier: str
    objective: str
    key: str  # identifies the ledger: two runs may have the same id
    config: Mapping[str, Value]
    directory: Path  # for files of its own; absolute, there, and nobody else's
    sent: int  # all figures of earlier steps were sent before; 0: none


class Sink(Protocol):
    """One tracker's library. Whatever it raises ends its follower, and nothing else."""

    def begin(self, run: Beginning) -> int:
        """Open the run, or take it up; return the step from which on figures are wanted.

        Those of step `run.sent` and later may have been sent already: they come again.
        """

    def log(self, batch: Sequence[Figures]) -> None:
        """Take these figures, in the order of their steps. On return they are safe."""

    def end(self, summary: Mapping[str, Value], *, is_over: bool) -> None:
        """Nothing more comes for now; nothing at all if the run `is_over`."""


def sink(name: str) -> Sink:
    """Return the tracker's sink. Raises KeyError on another name."""
    return _SINKS[name]()


def empty(directory: Path) -> None:
    """Delete what lies in a tracker's directory; the directory stays."""
    for path in directory.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


class TensorBoard:
    """Event files: scalars by their names, the plan and the summary as text.

    One file a session, written with TensorBoard's own record writer: no TensorFlow, no torch. Each
    file begins by taking back what an earlier one has of the steps that come again.
    """

    _PREFIX = "events.out.tfevents."
    _writer: Any
    _last: Figures | None = None

    def begin(self, run: Beginning) -> int:
        from tensorboard.compat.proto.event_pb2 import SessionLog
        from tensorboard.summary.writer.record_writer import RecordWriter

        sent = run.sent if any(run.directory.glob(f"{self._PREFIX}*")) else 0
        if not sent:
            empty(run.directory)
        self._writer = RecordWriter(self._new_file(run.directory))
        now = time.time()
        self._add(wall_time=now, file_version="brain.Event:2")
        self._add(wall_time=now, step=sent, session_log=SessionLog(status=SessionLog.START))
        if not sent:
            self._add_text("plan", run.config, now, 0)
        self._writer.flush()
        return sent

    def log(self, batch: Sequence[Figures]) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        for figures in batch:
            named = figures.values.items()
            values = [Summary.Value(tag=name, simple_value=value) for name, value in named]
            self._add(wall_time=figures.at, step=figures.step, summary=Summary(value=values))
            self._last = figures
        self._writer.flush()

    def end(self, summary: Mapping[str, Value], *, is_over: bool) -> None:  # noqa: ARG002
        if self._last is not None:
            self._add_text("summary", summary, self._last.at, self._last.step)
        self._writer.flush()
        self._writer.close()

    def _add(self, **fields: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.write(Event(**fields).SerializeToString())

    def _add_text(self, tag: str, values: Mapping[str, Value], at: float, step: int) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
        from tensorboard.compat.proto.types_pb2 import DT_STRING
        from tensorboard.plugins.text import metadata as texts

        rows = table(("", ""), ((plain(name), plain(str(value))) for name, value in values.items()))
        content = "\n".join(rows).encode()
        value = Summary.Value(
            tag=f"{tag}/text_summary",
            tensor=TensorProto(
                dtype=DT_STRING, string_val=[content], tensor_shape=TensorShapeProto()
            ),
            metadata=texts.create_summary_metadata(display_name=tag, description=""),
        )
        self._add(wall_time=at, step=step, summary=Summary(value=[value]))

    def _new_file(self, directory: Path) -> Any:
        """Open a file that TensorBoard reads after those there: it goes by their names."""
        there = (path.name.removeprefix(self._PREFIX) for path in directory.iterdir())
        last = max((int(name[:10]) for name in there if name[:10].isdigit()), default=0)
        name = f"{self._PREFIX}{max(int(time.time()), last + 1):010d}.orchestrator"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        return os.fdopen(os.open(directory / name, flags, 0o600), "wb")


class WeightsAndBiases:
    """One W&B run a ledger, offline in the run's directory, to be synced by hand.

    Where a person has set `WANDB_MODE=online`, their account is sent to directly. Nothing is ever
    asked: without an account it fails. An offline run cannot be continued: it is written again.
    """

    _MOST_TAG = 64  # characters; W&B refuses a longer one
    _run: Any

    def begin(self, run: Beginning) -> int:
        mode = os.environ.get("WANDB_MODE", "offline")
        is_offline = mode in ("offline", "dryrun")
        if is_offline:
            empty(run.directory)
        for name in ("WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR"):
            os.environ.setdefault(name, str(run.directory / ".own"))
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        os.environ.pop("WANDB_SERVICE", None)  # of a program that has a W&B run of its own
        import wandb

        settings = wandb.Settings(
            mode=mode,  # wandb refuses what it does not know
            silent=True,
            console="off",
            disable_code=True,
            disable_git=True,
            save_code=False,
            symlink=False,
            x_disable_meta=True,
            x_disable_stats=True,
            x_disable_machine_info=True,
            x_save_requirements=False,
        )
        self._run = wandb.init(
            dir=run.directory.parent,
            project=os.environ.get("WANDB_PROJECT", NAME),
            id=run.key[:16],
            name=run.run_id,
            job_type=run.phase,
            tags=[tag[: self._MOST_TAG] for tag in (run.phase, run.tier, run.objective) if tag],
            config=dict(run.config),
            resume=None if is_offline else "allow",
            settings=settings,
        )
        return 0 if is_offline else run.sent

    def log(self, batch: Sequence[Figures]) -> None:
        for figures in batch:
            self._run.log({**figures.values, "_timestamp": figures.at}, step=figures.step)

    def end(self, summary: Mapping[str, Value], *, is_over: bool) -> None:
        self._run.log({}, commit=True)  # else the last step's figures would go over it
        self._run.summary.update(dict(summary))
        self._run.finish(exit_code=0 if is_over else 1)


class MlFlow:
    """One MLflow run a ledger, in a file store, or where `MLFLOW_TRACKING_URI` says.

    A file store needs neither database nor server, and `mlflow-skinny` can write one. MLflow 3
    keeps it working, adds nothing to it, and asks for `MLFLOW_ALLOW_FILE_STORE=true`.
    """

    LEDGER = "orchestrator.ledger"  # the tag by which a ledger's run is found again
    _MOST_METRICS, _MOST_PARAMS, _LONGEST_NAME = 1000, 100, 250  # of a request; characters
    _client: Any
    _id: str
    _last: Figures | None = None

    def __init__(self) -> None:
        self._is_new = True
        self._known: dict[str, set[tuple[int, float]]] = {}  # step and value of what is there

    def begin(self, run: Beginning) -> int:
        for name in ("MLFLOW_ALLOW_FILE_STORE", "MLFLOW_DISABLE_TELEMETRY"):
            os.environ.setdefault(name, "true")
        uri = os.environ.get("MLFLOW_TRACKING_URI")
        if uri is None:
            if not run.sent:
                empty(run.directory)
            uri = run.directory.as_uri()
        from mlflow.tracking import MlflowClient

        self._client = MlflowClient(tracking_uri=uri)
        experiment = self._experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", NAME))
        found = self._client.search_runs([experiment], f"tags.`{self.LEDGER}` = '{run.key}'")
        self._is_new = not found
        own = found[0] if found else self._created(experiment, run)
        self._id = own.info.run_id
        self._client.update_run(self._id, status="RUNNING")
        self._describe(run.config, own.data.params)
        return 0 if self._is_new else run.sent

    def log(self, batch: Sequence[Figures]) -> None:
        from mlflow.entities import Metric

        metrics = [
            Metric(name, value, round(1000 * figures.at), figures.step)
            for figures in batch
            for name, value in figures.values.items()
            if self._is_new or not self._is_there(name, figures.step, value)
        ]
        for some in _parts(metrics, self._MOST_METRICS):
            self._client.log_batch(self._id, metrics=some)
        self._last = batch[-1]

    def end(self, summary: Mapping[str, Value], *, is_over: bool) -> None:
        from mlflow.entities import RunTag

        ended = None
        if (last := self._last) is not None:
            numbers = {f"summary/{n}": float(v) for n, v in summary.items() if type(v) is not str}
            self.log([Figures(last.record, last.step, last.at, numbers)])
            ended = round(1000 * last.at)
        tags = [RunTag(name, value) for name, value in summary.items() if isinstance(value, str)]
        self._client.log_batch(self._id, tags=tags)
        self._client.set_terminated(self._id, "FINISHED" if is_over else "KILLED", ended)

    def _experiment(self, name: str) -> Any:
        found = self._client.get_experiment_by_name(name)
        return self._client.create_experiment(name) if found is None else found.experiment_id

    def _created(self, experiment: str, run: Beginning) -> Any:
        tags = {
            self.LEDGER: run.key,
            "phase": run.phase,
            "tier": run.tier,
            "objective": run.objective,
            "mlflow.source.name": "orchestrator",
        }
        return self._client.create_run(experiment, tags=tags, run_name=run.run_id)

    def _describe(self, config: Mapping[str, Value], there: Mapping[str, str]) -> None:
        """Add the parameters that are not there: one that is cannot be changed."""
        from mlflow.entities import Param

        named = {name[: self._LONGEST_NAME]: str(value) for name, value in config.items()}
        params = [Param(name, value) for name, value in named.items() if name not in there]
        for some in _parts(params, self._MOST_PARAMS):
            self._client.log_batch(self._id, params=some)

    def _is_there(self, name: str, step: int, value: float) -> bool:
        if name not in self._known:
            history = self._client.get_metric_history(self._id, name)
            self._known[name] = {(metric.step, metric.value) for metric in history}
        return (step, value) in self._known[name]


def _parts(items: list[T], size: int) -> Iterator[list[T]]:
    return (items[begin : begin + size] for begin in range(0, len(items), size))


_SINKS: Mapping[str, type[Sink]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
    "mlflow": MlFlow,
}
