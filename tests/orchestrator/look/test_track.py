"""Trackers that follow a run: what they are sent; and nothing they do reaches the run."""

import json
import math
import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from budgets.ledger import LEDGER
from orchestrator.look.document import flat
from orchestrator.look.run import Run
from orchestrator.look.track import Trackers, figures, follow
from orchestrator.records.runs import load_state
from orchestrator.records.tail import Tail
from tests.conftest import REPOSITORY

GOLDEN = REPOSITORY / "tests/golden/runs"
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
        text = f"import ctypes, os, sys, time\nSettings = dict\ndef init(**_): {code}\n"
        (tmp_path / "fakes/wandb/__init__.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'fakes'}{os.pathsep}{REPOSITORY}")

    return replaced


def figures_of(directory: Path) -> list[dict[str, float]]:
    tail = Tail(directory)
    return [found for one in tail.news() if tail.state and (found := figures(tail.state, one))]


def failures(run: Path, name: Any, patience: float = 120) -> list[str]:
    """What is said while that tracker is sent what is there."""
    said: list[str] = []
    with Trackers([name], said.append, patience_seconds=patience) as trackers:
        trackers.begin(run)
    return said


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.iterdir()))
def test_figures_are_the_numbers_of_the_run(name: str) -> None:
    run, found = Run(load_state(GOLDEN / name), datetime.now(UTC)), figures_of(GOLDEN / name)
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
    sink, earlier, ledger = Mock(), run / "trackers/wandb/earlier", run / LEDGER
    earlier.mkdir(parents=True)
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(lines.pop(0))

    def grow(*_: object) -> tuple[list[int]]:
        ledger.write_bytes(ledger.read_bytes() + b"".join(lines.pop(0) for _ in lines[:50]))
        return ([],)

    monkeypatch.setattr("orchestrator.look.track.goes_on", lambda *_: True)
    monkeypatch.setattr("orchestrator.look.track.select.select", grow)
    follow(run, "wandb", lambda *_: sink, 0, watch=True)
    assert [call.args[2] for call in sink.log.call_args_list] == figures_of(run)
    assert sink.end.call_args.kwargs == {"is_over": True}
    assert not earlier.exists()


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb"])
def test_a_library_keeps_each_figure_once(run: Path, name: str) -> None:
    pytest.importorskip(name)
    whole, files = (run / LEDGER).read_bytes(), run / "trackers" / name
    for data in (b"".join(whole.splitlines(keepends=True)[:90]), whole):
        (run / LEDGER).write_bytes(data)
        assert failures(run, name) == []
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


BREAKS = {
    f"raise ValueError('no account for key {KEY}')": "no account",
    "ctypes.string_at(0)": "-11",
    "input('Password: ')": "EOFError",
    "ctypes.PyDLL(None).sleep(3600)": "killed",
}


@pytest.mark.parametrize("code", list(BREAKS))
def test_a_failure_is_said_once_in_a_line(run: Path, instead: Any, code: str) -> None:
    instead(code)
    (line,) = failures(run, "wandb", patience=3 if "sleep" in code else 120)
    assert BREAKS[code] in line
    assert "\n" not in line
    assert KEY not in line + (run / "trackers/wandb.log").read_text()


@pytest.mark.parametrize("link", ["trackers", "trackers/wandb", "trackers/wandb.log"])
def test_no_link_is_followed(run: Path, tmp_path: Path, instead: Any, link: str) -> None:
    instead("pass")
    (tmp_path / "other/wandb").mkdir(parents=True)
    (run / link).parent.mkdir(exist_ok=True)
    (run / link).symlink_to(tmp_path / "other")
    assert len(failures(run, "wandb")) == 1
    assert list((tmp_path / "other").rglob("*")) == [tmp_path / "other/wandb"]


def test_a_child_has_little_priority_and_dies_with_its_parent(run: Path, instead: Any) -> None:
    instead("print(os.getpid(), os.getsid(0), os.nice(0), 'seen', flush=True); time.sleep(3600)")
    code = "from pathlib import Path; from orchestrator.look.track import Trackers; import time;"
    code += f"Trackers(['wandb'], print).begin(Path({str(run)!r})); time.sleep(3600)"
    log = run / "trackers/wandb.log"
    with subprocess.Popen([sys.executable, "-c", code]) as parent:
        while not (log.exists() and "seen" in log.read_text()):
            assert parent.poll() is None
            time.sleep(0.01)
        parent.kill()
    pid, session, niceness = log.read_text().split()[:3]
    assert (session, int(niceness)) == (pid, min(19, os.nice(0) + 10))
    stat, end = Path(f"/proc/{pid}/stat"), time.monotonic() + 10
    while stat.exists() and " Z " not in stat.read_text():
        assert time.monotonic() < end


def test_track_says_why(command: Any, run: Path, instead: Any) -> None:
    instead("sys.exit('no account')")
    words = ("track", str(run), "--to", "wandb", "--json")
    assert "no account" in json.loads(command(*words).out)["errors"]["wandb"]


def test_a_missing_library_is_refused(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.cli.records.is_installed", lambda name: False)
    assert "pip install 'cmaes" in command("track", "--to", "mlflow").err
