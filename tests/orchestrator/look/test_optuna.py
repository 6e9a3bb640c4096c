"""A search as an Optuna study: each trial is a candidate of the ledger."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Planned
from budgets.fold import fold
from budgets.ledger.chain import LEDGER, read
from orchestrator.look.optuna import export
from orchestrator.look.run import Run
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from tests.conftest import Command

GOLDEN = REPOSITORY / "tests/golden/runs"
SEARCHES = ["go", "phase2", "statuses", "all_failed", "interrupted"]


def study(run: Run, file: Path) -> Any:
    optuna = pytest.importorskip("optuna")
    written = export(run, file)
    found = optuna.load_study(study_name=run.plan.run_id, storage=f"sqlite:///{file}")
    assert len(found.trials) == written
    return found


@pytest.mark.parametrize(
    ("name", "records"), [*((name, None) for name in SEARCHES), ("go", 60), ("phase2", 40)]
)
def test_a_trial_is_a_candidate_of_the_ledger(
    name: str, records: int | None, tmp_path: Path
) -> None:
    """Also where a generation is not over."""
    state = fold(read(GOLDEN / name / LEDGER).records[:records])
    run = Run(state, datetime.now(UTC))
    found = study(run, tmp_path / "study.db")
    for trial in found.trials:
        place = trial.user_attrs
        generation = run.state.generation(place["generation"])
        knobs = run.space.decode(generation.points[place["candidate"]])
        assert trial.params == pytest.approx(knobs)
        assert trial.value == pytest.approx(generation.score(place["candidate"]))
        assert (trial.state.name == "COMPLETE") == (place["status"] == "ok")
        assert trial.datetime_start <= trial.datetime_complete
    values = [trial.value for trial in found.trials if trial.value is not None]
    assert values == pytest.approx(run.scores)
    assert min(values, default=None) == pytest.approx(run.best_so_far)
    assert found.user_attrs["ledger_head"] == run.state.head


def test_ranges_keep_their_scale_and_their_steps(tmp_path: Path) -> None:
    """Of a search of other kinds of knobs: the golden ones are linear."""
    first, *rest = read(GOLDEN / "smoke" / LEDGER).records
    assert isinstance(first.event, Planned)
    plan = first.event.plan
    kinds: list[dict[str, Any]] = [
        {"kind": "log10", "low": -4, "high": -1, "baseline": 0.01},
        {"kind": "int", "low": 1, "high": 9, "step": 2, "baseline": 3},
        {"kind": "sigmoid01", "low": -3, "high": 3, "baseline": 0.5},
        {"kind": "tanh11", "low": -2, "high": 2, "baseline": 0.5},
    ]
    names = [knob["name"] for knob in plan.space["knobs"]]
    knobs = [{"name": name, **kind} for name, kind in zip(names, kinds, strict=True)]
    event = Planned(plan=plan.model_copy(update={"space": {**plan.space, "knobs": knobs}}))
    run = Run(fold([first._replace(event=event), *rest]), datetime.now(UTC))
    by_name = study(run, tmp_path / "study.db").trials[0].distributions
    log, whole, share, sign = (by_name[name] for name in names)
    assert (log.log, log.low, log.high) == (True, pytest.approx(1e-4), pytest.approx(0.1))
    assert (whole.low, whole.high, whole.step) == (1, 9, 2)
    assert (share.low, share.high) == pytest.approx((0.0474, 0.9526), abs=1e-3)
    assert (sign.low, sign.high) == pytest.approx((-0.964, 0.964), abs=1e-3)


@pytest.mark.needs("optuna")
def test_the_command_writes_a_new_file_and_warns_of_luck(
    command: "Command", tmp_path: Path
) -> None:
    go = str(GOLDEN / "go")
    answer = command("export", "optuna", go, "--out", "study.db", "--json")
    assert (answer.code, json.loads(answer.out)["trials"]) == (0, 120)
    assert command("export", "optuna", go, "--out", "study.db").code == 2
    assert "luckiest" in command("export", "optuna", go, "--out", "other.db").out
    assert command("export", "optuna", str(GOLDEN / "campaign"), "--out", "c.db").code == 2
    assert not (tmp_path / "c.db").exists()


def test_without_optuna_the_error_names_the_extra(
    command: "Command", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    answer = command("export", "optuna", str(GOLDEN / "go"), "--out", "study.db")
    assert answer.code == 2
    assert "pip install 'cmaes-orchestrator[optuna]'" in answer.err
