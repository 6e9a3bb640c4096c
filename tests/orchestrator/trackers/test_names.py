"""Trackers by name: which there are, whether they are installed, where to look."""

import sys
from pathlib import Path

import pytest

from orchestrator.trackers.names import (
    TRACKERS,
    elsewhere,
    is_installed,
    known,
    refuse_missing,
    tell_later,
    view,
)
from orchestrator.trackers.place import Place


def test_names_are_taken_once_each() -> None:
    assert known(["wandb", "tensorboard", "wandb"]) == ("tensorboard", "wandb")
    assert known([]) == ()


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="--to: expected tensorboard, wandb, mlflow, got 'tb'"):
        known(["tb"])


def test_those_installed_are_not_refused() -> None:
    refuse_missing([name for name in TRACKERS if is_installed(name)])


def test_a_missing_library_is_refused_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    with pytest.raises(ValueError, match=r"pip install 'cmaes-orchestrator\[wandb\]'"):
        refuse_missing(["wandb"])


def test_a_directory_of_a_librarys_name_is_no_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W&B leaves one wherever it was used."""
    (tmp_path / "wandb").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    with pytest.raises(ValueError, match="wandb is not installed"):
        refuse_missing(["wandb"])


@pytest.mark.parametrize(
    ("name", "environment", "variable"),
    [
        ("tensorboard", {"WANDB_MODE": "online", "MLFLOW_TRACKING_URI": "x"}, None),
        ("wandb", {}, None),
        ("wandb", {"WANDB_MODE": "offline"}, None),
        ("wandb", {"WANDB_MODE": "online"}, "WANDB_MODE"),
        ("mlflow", {}, None),
        ("mlflow", {"MLFLOW_TRACKING_URI": "http://here"}, "MLFLOW_TRACKING_URI"),
    ],
)
def test_figures_stay_in_the_runs_directory_unless_a_person_says_otherwise(
    name: str, environment: dict[str, str], variable: str | None
) -> None:
    assert elsewhere(name, environment) == variable


def test_every_tracker_has_a_command_that_shows_it(tmp_path: Path) -> None:
    run = tmp_path / "50% of $(x)"
    shown = {name: view(Place(run, name), {}) for name in TRACKERS}
    assert shown["tensorboard"] == f"tensorboard --logdir '{run}/trackers/tensorboard'"
    assert shown["wandb"] == f"wandb sync '{run}/trackers/wandb'/offline-run-*"
    assert shown["mlflow"].endswith("50%25%20of%20%24%28x%29/trackers/mlflow")
    assert "--backend-store-uri file:///" in shown["mlflow"]


def test_what_to_repeat_is_a_line_for_a_shell(tmp_path: Path) -> None:
    line = tell_later(Path("/runs/a b"), "wandb")
    assert line == "python -m orchestrator track '/runs/a b' --to wandb"
