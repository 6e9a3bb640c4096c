"""`doctor` as people call it, on this very machine."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from orchestrator.doctor.finding import STATES
from orchestrator.execution import ray_access
from tests.imported import MAIN, imported_by

if TYPE_CHECKING:
    from tests.conftest import Answer, Cli, Command

SPHERE = ("doctor", "--quick", "--objective", "sphere")


def items(answer: "Answer") -> dict[str, dict[str, Any]]:
    sections = orjson.loads(answer.out)["sections"]
    return {found["item"]: found for section in sections for found in section["findings"]}


def test_all_that_a_run_needs_is_looked_at_and_nothing_is_touched(
    command: "Command", tmp_path: Path
) -> None:
    answer = command(*SPHERE, "--json")
    document = orjson.loads(answer.out)
    titles = [section["title"] for section in document["sections"]]
    assert titles == ["Devices", "Versions", "Data", "Disk", "Sockets", "Isolation", "Clock"]
    found = items(answer)
    assert {one["state"] for one in found.values()} <= set(STATES)
    assert all(one["mend"] for one in found.values() if one["state"] in ("missing", "unknown"))
    assert answer.code == (0 if document["ready"] else 2)
    for needed in ("CPUs", "torch", "ray", "cma", "numpy", "file locks", "process tree"):
        assert found[needed]["state"] == "ok", found[needed]
    assert found["imports"]["seen"] == "left out by --quick"
    assert list(tmp_path.iterdir()) == []


def test_the_text_has_every_item_and_a_conclusion(command: "Command") -> None:
    text = command(*SPHERE).out
    for words in ("CPUs", "file locks", "process tree", "boot id", "would be made in it"):
        assert words in " ".join(text.split())


def test_data_that_is_not_there_is_missing_and_the_exit_code_says_so(command: "Command") -> None:
    answer = command("doctor", "--quick", "--set", "data=no/such/text", "--json")
    found = items(answer)["data"]
    assert answer.code == 2
    assert not orjson.loads(answer.out)["ready"]
    assert found["state"] == "missing"
    assert "--set data=PATH" in found["mend"]


def test_a_wrong_setting_is_refused_as_by_every_command(command: "Command") -> None:
    answer = command("doctor", "--set", "n_embed=3")
    assert answer.code == 2
    assert "n_embd" in answer.err


def test_more_workers_than_there_are_devices_are_missing(command: "Command") -> None:
    answer = command(*SPHERE, "--workers", "100000", "--device", "cpu", "--json")
    assert answer.code == 2
    assert items(answer)["evaluations at once"]["state"] == "missing"


def test_a_file_in_the_place_of_the_runs_directory_is_missing(
    command: "Command", tmp_path: Path
) -> None:
    (tmp_path / "runs").write_text("")
    answer = command(*SPHERE, "--runs-dir", "runs", "--json")
    assert answer.code == 2
    assert items(answer)["writable"]["seen"].endswith("is no directory")


def test_a_cluster_where_nobody_answers_is_missing(command: "Command") -> None:
    answer = command(*SPHERE, "--address", "127.0.0.1:1", "--json")
    assert answer.code == 2
    assert "no Ray control service answers" in items(answer)["cluster"]["seen"]


def test_a_file_is_looked_at_with_every_condition_it_has(
    command: "Command", tmp_path: Path
) -> None:
    (tmp_path / "campaign.toml").write_text(
        'runs_dir = "runs"\n[campaign]\nname = "trial"\nseeds = [1, 2]\n'
        '[[campaign.conditions]]\nname = "own"\ntraining.data = "no/such/text"\n'
    )
    answer = command("doctor", "--quick", "campaign.toml", "--json")
    assert answer.code == 2
    found = items(answer)
    assert found["data of own"]["state"] == "missing"
    assert found["data"]["state"] == "ok"
    assert "campaign trial takes" in found["disk"]["seen"]
    assert not (tmp_path / "runs").exists()


def test_an_exposed_token_is_missing_and_left_as_it_is(
    command: "Command", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token"
    path.write_text("secret")
    path.chmod(0o644)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(path))
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    assert ray_access.token_path() == path
    answer = command(*SPHERE, "--json")
    assert answer.code == 2
    assert items(answer)["token"]["mend"] == f"chmod 600 {path}"
    assert "secret" not in answer.out
    assert path.stat().st_mode & 0o777 == 0o644


def test_what_runs_have_left_is_measured(command: "Command", run: Path) -> None:
    before = {path: path.lstat().st_mtime_ns for path in run.rglob("*")}
    found = items(command(*SPHERE, "--json"))
    assert "the most of" in found["disk"]["seen"]
    assert found["live runs"]["state"] == "ok"
    assert {path: path.lstat().st_mtime_ns for path in run.rglob("*")} == before


def test_it_imports_neither_torch_nor_ray_nor_cma_nor_numpy(cli: "Cli", tmp_path: Path) -> None:
    environment = {**cli.environment, "RAY_AUTH_TOKEN": "x"}
    found = imported_by(MAIN, "doctor", "--quick", "--json", cwd=tmp_path, env=environment)
    assert not found & {"torch", "ray", "cma", "numpy"}


def test_what_takes_seconds_is_asked_when_there_is_time(command: "Command", tmp_path: Path) -> None:
    found = items(command("doctor", "--objective", "sphere", "--device", "cpu", "--json"))
    assert found["imports"]["state"] == "ok"
    assert found["CUDA"]["state"] in ("ok", "absent")
    assert found["clocks"]["state"] == "ok"
    assert (found["data"]["state"], found["data"]["seen"]) == ("ok", "sphere needs none")
    assert os.listdir(tmp_path) == []
