"""A run in a notebook: its tables are the run's, whatever stands in the ledger."""

import math
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from budgets.events import Planned
from budgets.fold import fold
from budgets.ledger.chain import LEDGER, read
from orchestrator import load
from orchestrator.look.notebook import LoadedRun
from orchestrator.look.run import Run
from tests.conftest import REPOSITORY

GOLDEN = REPOSITORY / "tests/golden/runs"
RUNS = sorted(path.name for path in GOLDEN.iterdir())


def same(one: object, other: object) -> bool:
    is_missing = isinstance(one, float) and math.isnan(one)
    return other is None if is_missing else one == other


def cut(name: str, records: int) -> LoadedRun:
    """A golden run after so many records."""
    state = fold(read(GOLDEN / name / LEDGER).records[:records])
    return LoadedRun(GOLDEN / name, Run(state, datetime.now(UTC)))


@pytest.mark.parametrize("name", RUNS)
def test_frames_are_the_tables_of_the_run(name: str) -> None:
    pytest.importorskip("pandas")
    loaded = load(GOLDEN / name)
    evaluations, generations = loaded.evaluations_frame(), loaded.generations_frame()
    assert len(evaluations) == len(loaded.evaluations) == len(list(loaded.state.ends()))
    for column in ("score", "seconds", "charged_seconds", "ended", "cause", "slot", "seed"):
        own = [getattr(one, column) for one in loaded.evaluations]
        assert all(map(same, evaluations[column], own))
    for knob in loaded.run.space.knobs:
        own = [one.knobs.get(knob.name) for one in loaded.evaluations]
        assert all(map(same, evaluations[f"knob.{knob.name}"], own))
    panels = {panel or "" for panel in (end.panel for end in loaded.state.ends())}
    assert set(evaluations["panel"]) == panels
    assert len(generations) == len(loaded.run.generations)
    for column in ("best", "mean", "best_so_far", "luck_so_far", "step_size"):
        own = [getattr(one, column) for one in loaded.generations]
        assert all(map(same, generations[column], own))


@pytest.mark.parametrize("records", [2, 4, 8])
def test_numbers_are_numbers_where_there_are_none_yet(records: int) -> None:
    pytest.importorskip("pandas")
    for loaded in (cut("go", records), cut("all_failed", records), load(GOLDEN / "all_failed")):
        assert loaded.evaluations_frame()["score"].dtype == "float64"
        assert loaded.generations_frame()["best"].dtype == "float64"


def test_a_loaded_run_stays_as_it_was(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "go", tmp_path / "go")
    ledger = tmp_path / "go" / LEDGER
    whole = ledger.read_bytes()
    ledger.write_bytes(b"".join(whole.splitlines(keepends=True)[:12]))
    loaded = load(tmp_path / "go")
    ledger.write_bytes(whole)
    assert (loaded.state.records, load(tmp_path / "go").state.records) == (12, 370)
    assert loaded.recommendation is None
    assert loaded.best is None


def test_without_pandas_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"cmaes-orchestrator\[frames\]"):
        load(GOLDEN / "go").evaluations_frame()


@pytest.mark.parametrize("name", RUNS)
def test_a_notebook_shows_the_answers_and_no_markup_of_a_ledger(name: str) -> None:
    first, *rest = read(GOLDEN / name / LEDGER).records
    assert isinstance(first.event, Planned)
    plan = first.event.plan.model_copy(update={"run_id": "<script>alert(1)</script>\x1b[2J"})
    state = fold([first._replace(event=replace(first.event, plan=plan)), *rest])
    loaded = LoadedRun(GOLDEN / name, Run(state, datetime.now(UTC)))
    shown = loaded._repr_html_()
    assert "<script" not in shown
    assert "\x1b" not in shown
    assert "&lt;script&gt;" in shown
    assert load(GOLDEN / name).answer.title in load(GOLDEN / name)._repr_html_()


def test_to_import_the_package_imports_nothing_of_it() -> None:
    code = (
        "import sys, orchestrator; "
        "print([m for m in sys.modules if m.partition('.')[0] in "
        "('orchestrator', 'budgets', 'objectives', 'pydantic', 'numpy', 'pandas')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['orchestrator']"
