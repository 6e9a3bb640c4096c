"""MLflow: a run in a file store in the run's directory, or where `MLFLOW_TRACKING_URI` says.

A file store needs neither database nor server, and `mlflow-skinny` alone can write one. MLflow 3
keeps it working, adds nothing to it, and asks for `MLFLOW_ALLOW_FILE_STORE=true`.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from orchestrator.trackers.figures import Figures
from orchestrator.trackers.place import empty
from orchestrator.trackers.sink import Beginning
from orchestrator.trackers.terms import Value

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

EXPERIMENT = "cmaes-orchestrator"

LEDGER = "orchestrator.ledger"
"""The tag by which a ledger's run is found again."""

MOST_METRICS, MOST_PARAMS, LONGEST_NAME = 1000, 100, 250  # of a request; characters

T = TypeVar("T")

_ENVIRONMENT = {
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


class MlFlow:
    """One MLflow run a ledger."""

    _client: "MlflowClient"
    _id: str
    _last: Figures | None = None

    def __init__(self) -> None:
        self._is_new = True
        self._known: dict[str, set[tuple[int, float]]] = {}  # step and value of what is there

    def begin(self, run: Beginning) -> int:
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        uri = os.environ.get("MLFLOW_TRACKING_URI")
        if uri is None:
            if not run.told:
                empty(run.directory)
            uri = run.directory.as_uri()
        from mlflow.tracking import MlflowClient

        self._client = MlflowClient(tracking_uri=uri)
        experiment = self._experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT))
        found = self._client.search_runs([experiment], f"tags.`{LEDGER}` = '{run.key}'")
        self._is_new = not found
        own = found[0] if found else self._created(experiment, run)
        self._id = own.info.run_id
        self._client.update_run(self._id, status="RUNNING")
        self._describe(run.config, own.data.params)
        return 0 if self._is_new else run.told

    def log(self, batch: Sequence[Figures]) -> None:
        from mlflow.entities import Metric

        metrics = [
            Metric(name, value, round(1000 * figures.at), figures.step)
            for figures in batch
            for name, value in figures.values.items()
            if self._is_new or not self._is_there(name, figures.step, value)
        ]
        for some in _parts(metrics, MOST_METRICS):
            self._client.log_batch(self._id, metrics=some)
        self._last = batch[-1]

    def end(self, summary: Mapping[str, Value], *, is_over: bool) -> None:
        from mlflow.entities import RunTag

        numbers = {f"summary/{n}": float(v) for n, v in summary.items() if not isinstance(v, str)}
        if (last := self._last) is not None:
            self.log([Figures(last.step, last.at, numbers)])
        tags = [RunTag(name, value) for name, value in summary.items() if isinstance(value, str)]
        self._client.log_batch(self._id, tags=tags)
        ended = None if last is None else round(1000 * last.at)
        self._client.set_terminated(self._id, "FINISHED" if is_over else "KILLED", ended)

    def _experiment(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        return self._client.create_experiment(name) if found is None else found.experiment_id

    def _created(self, experiment: str, run: Beginning) -> "Run":
        tags = {
            LEDGER: run.key,
            "phase": run.phase,
            "tier": run.tier,
            "objective": run.objective,
            "mlflow.source.name": "orchestrator",
        }
        return self._client.create_run(experiment, tags=tags, run_name=run.run_id)

    def _describe(self, config: Mapping[str, Value], there: Mapping[str, str]) -> None:
        """Add the parameters that are not there: one that is cannot be changed."""
        from mlflow.entities import Param

        named = {name[:LONGEST_NAME]: str(value) for name, value in config.items()}
        params = [Param(name, value) for name, value in named.items() if name not in there]
        for some in _parts(params, MOST_PARAMS):
            self._client.log_batch(self._id, params=some)

    def _is_there(self, name: str, step: int, value: float) -> bool:
        if name not in self._known:
            history = self._client.get_metric_history(self._id, name)
            self._known[name] = {(metric.step, metric.value) for metric in history}
        return (step, value) in self._known[name]


def _parts(items: list[T], size: int) -> Iterator[list[T]]:
    return (items[begin : begin + size] for begin in range(0, len(items), size))
