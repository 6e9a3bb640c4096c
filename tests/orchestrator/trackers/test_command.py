"""`track`, and `--track` beside a run."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from budgets.ledger.chain import LEDGER
from orchestrator.trackers.place import Place

if TYPE_CHECKING:
    from tests.conftest import Cli, Command

Instead = Callable[[str], None]
RUN = "min-sphere-s1"


@pytest.fixture
def files(run: Path) -> Path:
    """Where TensorBoard's lie, of a run that the command line finds by its name."""
    return run / "trackers/tensorboard"


@pytest.mark.needs("tensorboard")
def test_a_run_is_told_and_the_command_that_shows_it_is_named(
    command: "Command", run: Path, files: Path
) -> None:
    ledger = (run / LEDGER).read_bytes()
    answer = command("track", RUN, "--to", "tensorboard")
    assert answer.code == 0, answer.err
    assert answer.out == f"tensorboard: 39 records logged. Look: tensorboard --logdir {files}\n"
    assert len(list(files.iterdir())) == 1
    assert (run / LEDGER).read_bytes() == ledger


@pytest.mark.needs("tensorboard")
def test_anew_makes_what_was_told_again(command: "Command", run: Path, files: Path) -> None:
    command("track", RUN, "--to", "tensorboard")
    (before,) = files.iterdir()
    content = before.read_bytes()
    (files / "stray").write_text("of an older version")
    assert command("track", RUN, "--to", "tensorboard", "--rebuild").code == 0
    (after,) = files.iterdir()
    assert len(after.read_bytes()) == len(content)


@pytest.mark.needs("tensorboard")
def test_several_are_told_side_by_side_and_one_that_fails_does_not_keep_the_others(
    command: "Command", run: Path, files: Path, instead: Instead
) -> None:
    instead("raise ValueError('no account')")
    answer = command("track", str(run), "--to", "wandb", "--to", "tensorboard", "--json")
    assert answer.code == 8
    found = orjson.loads(answer.out)
    assert found["directory"] == str(run)
    assert found["trackers"]["wandb"]["error"] == "ValueError: no account"
    assert found["trackers"]["tensorboard"] == {
        "error": None,
        "records": 39,
        "files": str(files),
        "view": f"tensorboard --logdir {files}",
    }


def test_a_failure_says_how_to_try_again(command: "Command", run: Path, instead: Instead) -> None:
    instead("raise ValueError('no account')")
    answer = command("track", str(run), "--to", "wandb")
    assert answer.code == 8
    assert answer.out == (
        f"wandb failed: ValueError: no account. Again: python -m orchestrator track {run} "
        "--to wandb\n"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--to: which tracker? tensorboard, wandb or mlflow"),
        (("--to", "tb"), "--to: expected tensorboard, wandb, mlflow, got 'tb'"),
        pytest.param(
            *(("nobody", "--to", "tensorboard"), "no run 'nobody'"),
            marks=pytest.mark.needs("tensorboard"),
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(
    command: "Command", run: Path, arguments: tuple[str, ...], says: str
) -> None:
    answer = command("track", *arguments)
    assert answer.code == 2
    assert says in answer.err
    assert not (run / "trackers").exists()


def test_a_missing_library_is_refused_before_anything_starts(
    command: "Command", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "mlflow", raising=False)
    monkeypatch.setattr("orchestrator.trackers.names.is_installed", lambda name: False)
    line = ("phase1", "--tier", "min", "--objective", "sphere", "--executor", "inline")
    answer = command(*line, "--track", "mlflow")
    assert answer.code == 2
    assert "--track mlflow: mlflow is not installed" in answer.err
    assert "pip install 'cmaes-orchestrator[mlflow]'" in answer.err
    assert not (tmp_path / "artifacts").exists()


@pytest.mark.needs("tensorboard")
def test_a_damaged_ledger_is_said_as_everywhere(command: "Command", run: Path) -> None:
    data = (run / LEDGER).read_bytes()
    (run / LEDGER).write_bytes(data.replace(b'"seq":3,', b'"seq":4,'))
    answer = command("track", RUN, "--to", "tensorboard")
    assert answer.code == 6
    assert "record 3 " in answer.err


def test_what_is_told_elsewhere_is_not_made_anew_here(
    command: "Command", run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    answer = command("track", RUN, "--to", "mlflow", "--rebuild")
    assert answer.code == 2
    assert "MLFLOW_TRACKING_URI is set" in answer.err


@pytest.mark.needs("tensorboard")
def test_a_run_that_somebody_tells_already_is_left_to_them(command: "Command", run: Path) -> None:
    place = Place(run, "tensorboard")
    place.make()
    place.lock(0.0, lambda: False)
    answer = command("track", RUN, "--to", "tensorboard")
    assert answer.code == 8
    assert "another process is logging this run to tensorboard" in answer.out


SPHERE = (
    *("phase1", "--tier", "min", "--objective", "sphere", "--set", "dimension=2"),
    *("--assume-eval-seconds", "1", "--executor", "inline", "--workers", "1"),
)


@pytest.mark.needs("tensorboard")
def test_a_run_is_told_beside_itself_and_the_same_run_may_have_other_trackers(
    command: "Command", tmp_path: Path
) -> None:
    assert command(*SPHERE).code == 0
    run = tmp_path / "artifacts/cmaes/phase1" / RUN
    ledger = (run / LEDGER).read_bytes()
    answer = command(*SPHERE, "--track", "tensorboard")
    assert answer.code == 0, answer.err
    assert "racker" not in answer.out + answer.err
    assert orjson.loads((run / "trackers/tensorboard.json").read_bytes())["is_ended"]
    assert (run / LEDGER).read_bytes() == ledger


def test_a_file_names_trackers_and_explain_shows_where_from(
    command: "Command", tmp_path: Path
) -> None:
    (tmp_path / "run.toml").write_text('objective = "sphere"\n[track]\nto = ["wandb", "mlflow"]\n')
    answer = command("explain", "run.toml", "--json")
    found = orjson.loads(answer.out)["values"]["track.to"]
    assert found == {"value": ["wandb", "mlflow"], "source": "file run.toml"}
    answer = command("explain", "run.toml", "--json", "--set", 'track.to=["tensorboard"]')
    found = orjson.loads(answer.out)["values"]["track.to"]
    assert found == {"value": ["tensorboard"], "source": "--set"}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ('["wandb", "wandb"]', "track.to: expected each tracker once, wandb is there twice"),
        ('["tb"]', "track.to.0: Input should be 'tensorboard', 'wandb' or 'mlflow', got 'tb'"),
        ('"wandb"', "track.to: expected a list, such as [\"wandb\"], got 'wandb'"),
    ],
)
def test_a_file_that_names_no_tracker_is_refused(
    command: "Command", tmp_path: Path, value: str, says: str
) -> None:
    (tmp_path / "run.toml").write_text(f'objective = "sphere"\n[track]\nto = {value}\n')
    answer = command("explain", "run.toml")
    assert answer.code == 2
    assert says in answer.err


def test_trackers_are_for_a_training_not_for_a_look(command: "Command", run: Path) -> None:
    answer = command("best", RUN, "--track", "wandb")
    assert answer.code == 2
    assert "--track: a training is logged to trackers, so expected --train too" in answer.err


@pytest.mark.needs("tensorboard")
def test_a_training_of_what_is_best_is_told_too(command: "Command", tmp_path: Path) -> None:
    assert command(*SPHERE).code == 0
    answer = command(
        *("best", RUN, "--train", "--times", "1", "--executor", "inline", "--workers", "1"),
        *("--track", "tensorboard"),
    )
    assert answer.code == 0, answer.out + answer.err
    told = list(tmp_path.glob("artifacts/cmaes/campaign/*/trackers/tensorboard.json"))
    assert len(told) == 1


@pytest.mark.slow  # a run, and a command that follows it
def test_a_run_that_goes_on_is_followed_until_it_ends(cli: "Cli") -> None:
    run = cli.cwd / "artifacts/cmaes/phase1" / RUN
    going = cli.start(*SPHERE, "--set", "seconds=0.4")
    while not (run / LEDGER).exists():
        assert going.poll() is None
    followed = cli.run("track", RUN, "--to", "tensorboard")
    assert followed.returncode == 0, followed.stderr
    going.communicate()
    assert going.returncode == 0
    records = len((run / LEDGER).read_bytes().splitlines())
    assert f"tensorboard: {records} records logged" in followed.stdout
