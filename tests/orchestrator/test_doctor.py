"""`doctor` as people call it, on this very machine and on one with two GPUs."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from orchestrator import doctor
from orchestrator.execution.devices import offer

if TYPE_CHECKING:
    from tests.conftest import Answer, Command

SPHERE = ("doctor", "--objective", "sphere", "--json")


def items(answer: "Answer") -> dict[str, dict[str, Any]]:
    return {found["item"]: found for found in orjson.loads(answer.out)["findings"]}


def test_all_that_a_run_needs_is_looked_at_and_nothing_is_touched(
    command: "Command", tmp_path: Path
) -> None:
    answer = command("doctor", "--objective", "sphere", "--device", "cpu", "--json")
    document, found = orjson.loads(answer.out), items(answer)
    assert all(one["fix"] for one in found.values() if one["state"] == "missing")
    assert answer.code == (0 if document["ready"] else 2)
    for needed in ("evaluations at once", "objective", "disk"):
        assert found[needed]["state"] == "ok", found[needed]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "item", "fix"),
    [
        (("--objective", "nanochat", "--set", "data=no/such/text"), "objective", "repair that"),
        (("--workers", "100000", "--device", "cpu"), "evaluations at once", "--workers"),
        (("--runs-dir", "file/below"), "disk", "--runs-dir"),
        (("--executor", "ray", "--address", "127.0.0.1:1"), "evaluations at once", "--address"),
        (("campaign.toml",), "objective of own", "repair that"),
    ],
)
def test_what_is_missing_has_a_remedy_and_exit_code_2(
    command: "Command", tmp_path: Path, words: tuple[str, ...], item: str, fix: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "campaign.toml").write_text(
        '[campaign]\nname = "trial"\nseeds = [1, 2]\n'
        '[[campaign.conditions]]\nname = "own"\ntraining.data = "no/such/text"\n'
    )
    answer = command("doctor", "--json", *words)
    assert answer.code == 2, answer
    assert not orjson.loads(answer.out)["ready"]
    found = items(answer)[item]
    assert found["state"] == "missing"
    assert fix in found["fix"] + found["seen"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["campaign.toml", "file"]


def test_each_gpu_is_seen_with_what_is_on_it(
    command: "Command", driver: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver(4, 30_000)
    found = items(command(*SPHERE))
    fixes = {gpu: found[f"GPU GPU-{gpu}"]["fix"] for gpu in "ab"}
    assert fixes == {"a": "", "b": "export CUDA_VISIBLE_DEVICES=GPU-a"}
    assert found["evaluations at once"]["seen"].startswith("2 on cuda")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    found = items(command(*SPHERE))
    assert found["evaluations at once"]["state"] == "missing"
    assert items(command(*SPHERE, "--device", "cpu"))["evaluations at once"]["state"] == "ok"


def test_a_cluster_is_judged_by_what_it_offers(
    command: "Command", monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = offer(64, 4, "NVIDIA H200")
    monkeypatch.setattr("orchestrator.execution.devices.Engine.offer", lambda engine: offered)
    found = items(command(*SPHERE, "--address", "head:6379"))
    assert found["evaluations at once"]["seen"].startswith("4 on cuda")


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("code", "said"),
    [("raise OSError('no driver')", "no driver"), ("import time; time.sleep(60)", "timed out")],
)
def test_a_torch_that_fails_or_hangs_is_told(
    command: "Command", monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, said: str
) -> None:
    (tmp_path / "torch.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(doctor, "IMPORT_SECONDS", 1.0)
    found = items(command("doctor", "--json"))["torch"]
    assert (found["state"], said in found["seen"]) == ("missing", True)
