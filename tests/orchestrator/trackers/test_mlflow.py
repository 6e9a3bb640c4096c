"""What MLflow itself reads from the store that it is left."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from budgets.ledger.chain import LEDGER
from orchestrator.records.recorded import load_state
from orchestrator.trackers import follow
from orchestrator.trackers.figures import Figures
from orchestrator.trackers.mlflow import LEDGER as TAG
from orchestrator.trackers.place import Answer, Place
from orchestrator.trackers.process import maker
from orchestrator.trackers.terms import summary
from tests.orchestrator.trackers.conftest import tell_in_process

AllFigures = Callable[[Path], list[Figures]]
CurvesOf = Callable[[list[Figures]], dict[str, dict[int, float]]]
Tell = Callable[..., Answer]
Histories = dict[str, list[tuple[int, float]]]


@pytest.fixture
def client(tracked: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Any]]:
    """`client()` of the run's store: imported where warnings about itself are nobody's error."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    with warnings.catch_warnings(action="ignore"):
        from mlflow.tracking import MlflowClient

        yield lambda: MlflowClient(tracking_uri=(tracked / "trackers/mlflow").as_uri())


def only_run(client: Any) -> Any:
    (experiment,) = [e for e in client.search_experiments() if e.name == "cmaes-orchestrator"]
    (found,) = client.search_runs([experiment.experiment_id])
    return found


def histories(client: Any, names: Any) -> Histories:
    own = only_run(client).info.run_id
    return {
        name: [(m.step, m.value) for m in client.get_metric_history(own, name)] for name in names
    }


def expected(figures: dict[str, dict[int, float]]) -> Histories:
    return {name: list(values.items()) for name, values in figures.items()}


def test_every_figure_can_be_read_back_and_nothing_is_sent_anywhere(
    tracked: Path,
    told: Tell,
    alone: list[str],
    client: Callable[[], Any],
    all_figures: AllFigures,
    curves: CurvesOf,
) -> None:
    assert told(tracked, "mlflow") == Answer(records=39)
    figures, state = all_figures(tracked), load_state(tracked)
    wanted = expected(curves(figures))
    assert histories(client(), wanted) == wanted
    own = only_run(client())
    assert (own.info.run_name, own.info.status) == ("min-sphere-s1", "FINISHED")
    assert own.data.params["objective/settings/noise"] == "0.001"
    assert own.data.tags[TAG] == state.genesis
    for name, value in summary(state, {}).items():
        if isinstance(value, str):
            assert own.data.tags[name] == value
        else:
            assert own.data.metrics[f"summary/{name}"] == value
    (first, *_) = client().get_metric_history(own.info.run_id, "score")
    told_at = next(one.at for one in figures if one.step == first.step)
    assert first.timestamp == round(1000 * told_at)
    assert not alone
    assert not any(Path(tracked, "../home").iterdir())


def in_process(run: Path, dies_at: int | None = None) -> None:
    tell_in_process(Place(run, "mlflow"), maker("mlflow")(), dies_at)


@pytest.mark.parametrize("dies_at", [2, 3, 4])
def test_after_a_death_no_curve_is_doubled_and_none_has_a_gap(
    tracked: Path,
    client: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
    all_figures: AllFigures,
    curves: CurvesOf,
    dies_at: int,
) -> None:
    monkeypatch.setattr(follow, "BATCH", 4)
    with pytest.raises(KeyboardInterrupt):
        in_process(tracked, dies_at)
    in_process(tracked)
    wanted = expected(curves(all_figures(tracked)))
    assert histories(client(), wanted) == wanted


def test_a_run_that_goes_on_is_the_same_run_and_says_how_it_stands(
    tracked: Path,
    client: Callable[[], Any],
    cut: Callable[..., None],
    all_figures: AllFigures,
    curves: CurvesOf,
) -> None:
    whole = (tracked / LEDGER).read_bytes()
    cut(tracked, 20)
    in_process(tracked)
    before = only_run(client())
    assert (before.info.status, before.data.tags["decision"]) == ("KILLED", "continue")
    (tracked / LEDGER).write_bytes(whole)
    in_process(tracked)
    after = only_run(client())
    assert after.info.run_id == before.info.run_id
    assert (after.info.status, after.data.tags["decision"]) == ("FINISHED", "done")
    wanted = expected(curves(all_figures(tracked)))
    assert histories(client(), wanted) == wanted


def test_a_store_that_a_person_names_is_told_instead(
    tracked: Path,
    tmp_path: Path,
    client: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two ledgers, two runs in it; told again each finds its own, whatever it remembers."""
    from mlflow.tracking import MlflowClient

    elsewhere = (tmp_path / "store").as_uri()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", elsewhere)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")
    in_process(tracked)
    Place(tracked, "mlflow").forget()
    in_process(tracked)
    there = MlflowClient(tracking_uri=elsewhere)
    experiment = there.get_experiment_by_name("mine")
    assert experiment is not None
    (own,) = there.search_runs([experiment.experiment_id])
    assert len(there.get_metric_history(own.info.run_id, "status/ok")) == 16
    assert not any((tracked / "trackers/mlflow").iterdir())
