"""Trackers that follow a run: what they are sent; and nothing they do reaches the run."""

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from budgets.ledger import LEDGER
from orchestrator.look import track
from orchestrator.look.json_documents import flat
from orchestrator.look.track import figures
from orchestrator.records.runs import Tail
from tests.conftest import REPOSITORY
from tests.orchestrator.look.golden import GOLDEN, RUNS, golden

KEY = "sk-aaaabbbbccccddddeeeeffff"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of a whole run, under a name that means something to shells and to URLs."""
    return shutil.copytree(GOLDEN / "go", tmp_path / "artifacts/50%25 of <b>$(x)")


@pytest.fixture
def instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`instead(code)`: a `wandb` whose `init` does that."""

    def replaced(code: str) -> None:
        (tmp_path / "fakes/wandb").mkdir(parents=True)
        text = f"import sys\nSettings = dict\ndef init(**_): {code}\n"
        (tmp_path / "fakes/wandb/__init__.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'fakes'}{os.pathsep}{REPOSITORY}")

    return replaced


def figures_of(directory: Path) -> list[dict[str, float]]:
    tail = Tail(directory)
    return [found for one in tail.news() if tail.state and (found := figures(tail.state, one))]


def tracked(run: Path, name: str) -> tuple[str | None, str]:
    """Why a tracker failed that was sent what is there, and what was printed beside it."""
    words = [sys.executable, "-m", "orchestrator", "track", str(run), "--to", name, "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    error = json.loads(done.stdout)["errors"][name]
    assert done.returncode == (8 if error else 0)
    return error, done.stderr


@pytest.mark.parametrize("name", RUNS)
def test_figures_are_the_numbers_of_the_run(name: str) -> None:
    run, found = golden(name), figures_of(GOLDEN / name)
    last = {name: value for values in found for name, value in values.items()}
    assert all(map(math.isfinite, last.values()))
    for names in (last, flat(run.plan.model_dump(mode="json"))):
        assert not [one for one in names for other in names if other.startswith(f"{one}/")]
    assert last["evaluations"] == run.counts.settled
    for row in [row for row in run.generations if row.step_size is not None]:
        (sent,) = [one for one in found if one.get("generation/number") == row.number]
        for key in ("best", "mean", "best_so_far", "best_by_chance", "step_size"):
            assert sent.get(f"generation/{key}") == getattr(row, key)


def test_names_are_no_paths_and_secrets_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2hunter2")
    fields = {"a b": {"api_key": 12345678, "say": "hunter2hunter2 " + "x" * 999}, "none": None}
    knobs = [{"name": "../lr", "low": 0.5}, {"no": "name"}]
    found = flat({**fields, "knobs": knobs, "url": "http://me:pw@host/", "key": KEY, "ok": True})
    assert (len(found), found["knobs/__lr/low"], found["ok"]) == (7, 0.5, True)
    said = json.dumps(found)
    assert not [one for one in ("hunter2", "me:pw", KEY, "12345678", "x" * 600) if one in said]


def test_a_growing_run_is_followed_until_it_is_over(run: Path, monkeypatch: Any) -> None:
    sink, broken, earlier, ledger = Mock(), Mock(), run / "trackers/wandb/earlier", run / LEDGER
    broken.log.side_effect = ValueError(f"no account for key {KEY}")
    earlier.mkdir(parents=True)
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(lines.pop(0))

    def grow(_: float) -> None:
        ledger.write_bytes(ledger.read_bytes() + b"".join(lines.pop(0) for _ in lines[:50]))

    monkeypatch.setattr(track, "goes_on", lambda *_: bool(lines))
    monkeypatch.setattr("orchestrator.look.track.time.sleep", grow)
    sinks: Any = {"wandb": lambda *_: sink, "mlflow": lambda *_: broken}
    monkeypatch.setattr(track, "SINKS", sinks)
    said: list[str] = []
    errors = track.follow(run, ["wandb", "mlflow"], said.append, watch=True)
    assert [call.args[2] for call in sink.log.call_args_list] == figures_of(run)
    assert sink.end.call_args.kwargs == {"is_over": True}
    assert not earlier.exists()
    assert (len(said), list(errors), broken.log.call_count) == (1, ["mlflow"], 1)
    assert "no account" in said[0]
    assert KEY not in said[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb"])
def test_a_library_keeps_each_figure_once(run: Path, name: str) -> None:
    pytest.importorskip(name)
    whole, files = (run / LEDGER).read_bytes(), run / "trackers" / name
    for data in (b"".join(whole.splitlines(keepends=True)[:90]), whole):
        (run / LEDGER).write_bytes(data)
        assert tracked(run, name)[0] is None
    found = scores = [one["score"] for one in figures_of(run) if "score" in one]
    if name == "tensorboard":
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        shown = EventAccumulator(str(files), {"scalars": 0}).Reload()
        found = [one.value for one in shown.Scalars("score")]
    elif name == "mlflow":
        (metric,) = files.glob("*/*/metrics/score")
        found = [float(line.split()[1]) for line in metric.read_text().splitlines()]
    else:  # no reader comes with it; an edge of a block cuts a number here and there
        (data,) = [file.read_bytes() for file in files.glob("offline-run-*/*.wandb")]
        assert sum(str(score).encode() in data for score in scores) > 0.9 * len(scores)
    assert found == pytest.approx(scores, rel=1e-6)


@pytest.mark.parametrize(
    ("code", "why"), [("input('Password: ')", "EOFError"), ("sys.exit('no account')", "no account")]
)
def test_a_library_that_asks_or_ends_is_an_error(
    run: Path, instead: Any, code: str, why: str
) -> None:
    instead(code)
    error, printed = tracked(run, "wandb")
    assert why in str(error)
    assert printed.count("Tracker wandb failed") == 1


@pytest.mark.parametrize("link", ["trackers", "trackers/wandb"])
def test_no_link_is_followed(run: Path, tmp_path: Path, link: str) -> None:
    (tmp_path / "other/wandb").mkdir(parents=True)
    (run / link).parent.mkdir(exist_ok=True)
    (run / link).symlink_to(tmp_path / "other")
    assert len(track.follow(run, ["wandb"], lambda _: None, watch=False)) == 1
    assert list((tmp_path / "other").rglob("*")) == [tmp_path / "other/wandb"]


def test_a_missing_library_is_refused(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.cli.records.find_spec", lambda name: False)
    assert "pip install 'cmaes" in command("track", "--to", "mlflow").err
