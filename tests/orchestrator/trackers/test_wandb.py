"""What W&B itself has written, read from its file of an offline run."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from budgets.ledger.chain import LEDGER
from orchestrator.execution import processes
from orchestrator.records.recorded import load_state
from orchestrator.trackers.figures import Figures
from orchestrator.trackers.followers import Following
from orchestrator.trackers.place import Answer, Place
from orchestrator.trackers.terms import summary

AllFigures = Callable[[Path], list[Figures]]
CurvesOf = Callable[[list[Figures]], dict[str, dict[int, float]]]
Tell = Callable[..., Answer]


def read_back(run: Path) -> dict[str, Any]:
    (file,) = (run / "trackers/wandb").glob("offline-run-*/run-*.wandb")
    reader = Path(__file__).with_name("wandb_history.py")
    done = subprocess.run(
        [sys.executable, str(reader), str(file)], capture_output=True, check=True, timeout=60
    )
    said: dict[str, Any] = orjson.loads(done.stdout)
    return said


def test_a_run_is_written_offline_with_all_of_its_history_and_asks_for_nothing(
    tracked: Path,
    told: Tell,
    alone: list[str],
    all_figures: AllFigures,
    curves: CurvesOf,
) -> None:
    assert told(tracked, "wandb") == Answer(records=39)
    said, state = read_back(tracked), load_state(tracked)
    history: dict[str, dict[int, float]] = {}
    for row in said["history"]:
        for name, value in row.items():
            if not name.startswith("_"):
                history.setdefault(name, {})[row["_step"]] = value
    assert history == curves(all_figures(tracked))
    assert said["history"][0]["_timestamp"] == pytest.approx(all_figures(tracked)[0].at)
    assert said["run"]["id"] == state.genesis[:16]
    assert said["run"]["name"] == "min-sphere-s1"
    assert said["run"]["tags"] == ["phase1", "min", "sphere"]
    assert said["config"]["objective/settings/noise"] == 0.001
    assert said["summary"] | summary(state, {}) == said["summary"]
    assert said["exit"] == 0
    assert not alone
    assert not any(Path(tracked, "../home").iterdir())


@pytest.mark.slow  # its quick sibling is that of TensorBoard
def test_a_run_that_goes_on_is_written_again_from_its_first_step(
    tracked: Path, told: Tell, cut: Callable[..., None]
) -> None:
    whole = (tracked / LEDGER).read_bytes()
    cut(tracked, 20)
    told(tracked, "wandb")
    before = read_back(tracked)
    assert before["exit"] == 1
    (tracked / LEDGER).write_bytes(whole)
    told(tracked, "wandb")
    after = read_back(tracked)
    assert [row["_step"] for row in after["history"]] == list(range(1, 17))
    assert (after["exit"], after["run"]["id"]) == (0, before["run"]["id"])


@pytest.mark.slow  # starts wandb
def test_what_wandb_has_started_ends_with_the_follower(
    tracked: Path, cut: Callable[..., None], alone: list[str]
) -> None:
    cut(tracked, 20)
    following = Following(Place(tracked, "wandb"))  # not to watch: it waits for more
    pid = following._process.pid
    while not list((tracked / "trackers/wandb").glob("offline-run-*/run-*.wandb")):
        assert not following.has_ended()
    (service,) = processes.descendants(pid)
    ticks = processes.start_ticks(service)
    assert ticks is not None
    following.kill("the test")
    for _ in range(500):
        if not processes.is_alive(service, ticks):
            break
        time.sleep(0.01)
    assert not processes.is_alive(service, ticks)


@pytest.mark.slow  # starts wandb
def test_online_is_online(tracked: Path, monkeypatch: pytest.MonkeyPatch, alone: list[str]) -> None:
    """So that the others can see it where something is attempted."""
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("WANDB_API_KEY", 40 * "x")
    following = Following(Place(tracked, "wandb"))
    while not alone:
        assert not following.has_ended()
        time.sleep(0.01)
    following.kill("the test")


@pytest.mark.slow  # starts wandb
def test_online_without_an_account_fails_and_asks_nobody(
    tracked: Path, told: Tell, monkeypatch: pytest.MonkeyPatch, alone: list[str]
) -> None:
    monkeypatch.setenv("WANDB_MODE", "online")
    answer = told(tracked, "wandb")
    assert answer.error is not None
    assert "api_key" in answer.error or "API key" in answer.error or "login" in answer.error
