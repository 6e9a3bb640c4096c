"""A search as an Optuna study: each trial is a candidate of the ledger."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from objectives.space import SearchSpace
from orchestrator.look.json_documents import as_study
from orchestrator.look.run import Run
from tests.orchestrator.look.golden import GOLDEN, golden

if TYPE_CHECKING:
    from tests.conftest import Command


def study(run: Run, file: Path) -> Any:
    optuna = pytest.importorskip("optuna")
    written = as_study(run, file)
    found = optuna.load_study(study_name=None, storage=f"sqlite:///{file}")
    assert len(found.trials) == written
    return found


@pytest.mark.parametrize(("name", "records"), [("phase2", None), ("statuses", 60)])
def test_a_trial_is_a_candidate_of_the_ledger(
    name: str, records: int | None, tmp_path: Path
) -> None:
    """Also where a generation is not over."""
    run = golden(name, records)
    found = study(run, tmp_path / "study.db")
    assert found.user_attrs["ledger_head"] == run.state.head
    for trial in found.trials:
        place = trial.user_attrs
        generation = run.state.generations[place["generation"]]
        knobs = run.plan.space.decode(generation.points[place["candidate"]])
        assert trial.params == pytest.approx(knobs)
        assert trial.value == pytest.approx(generation.score(place["candidate"]))
        assert (trial.state.name == "COMPLETE") == (trial.value is not None)
    values = [trial.value for trial in found.trials if trial.value is not None]
    assert values == pytest.approx([one for each in run.state.completed for one in each.healthy])


def test_ranges_keep_their_scale_and_their_steps(tmp_path: Path) -> None:
    """Of a search of other kinds of knobs: the golden ones are linear."""
    space = golden("smoke").plan.space.model_dump(mode="json")
    kinds: list[dict[str, Any]] = [
        {"kind": "log10", "low": -4, "high": -1, "baseline": 0.01},
        {"kind": "int", "low": 1, "high": 9, "step": 2, "baseline": 3},
    ]
    knobs = [knob | kind for knob, kind in zip(space["knobs"], 2 * kinds, strict=True)]
    run = golden("smoke", space=SearchSpace.model_validate(space | {"knobs": knobs}))
    log, whole, *_ = study(run, tmp_path / "study.db").trials[0].distributions.values()
    assert (log.log, log.low, log.high) == (True, pytest.approx(1e-4), pytest.approx(0.1))
    assert (whole.low, whole.high, whole.step) == (1, 9, 2)


@pytest.mark.needs("optuna")
def test_the_command_writes_a_new_file_of_a_search(
    command: "Command", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = str(GOLDEN / "go")
    answer = command("export", "optuna", go, "--out", "study.db")
    assert (answer.code, answer.out.split()[0]) == (0, "120")
    assert command("export", "optuna", go, "--out", "study.db").code == 2
    assert command("export", "optuna", str(GOLDEN / "campaign"), "--out", "c.db").code == 2
    assert not (tmp_path / "c.db").exists()
    monkeypatch.setitem(sys.modules, "optuna", None)
    answer = command("export", "optuna", go, "--out", "d.db")
    assert "pip install 'cmaes-orchestrator[optuna]'" in answer.err
