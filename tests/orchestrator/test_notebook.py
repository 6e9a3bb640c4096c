"""A run in a notebook."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import orchestrator
from budgets.ledger.chain import LEDGER
from orchestrator import load
from orchestrator.records.recorded import Result
from orchestrator.report.collect import report
from tests import ledgers


def test_a_run_is_loaded_by_its_directory_or_its_id(finished_run: Path) -> None:
    root, name = finished_run.parents[1], finished_run.name

    assert load(finished_run).report == load(name, runs_dir=root).report == report(finished_run)


def test_where_runs_lie_is_known_as_to_every_command(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert load(run.name).directory == run.relative_to(tmp_path)


def test_no_run_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no run 'nowhere'"):
        load("nowhere", runs_dir=tmp_path)


def test_evaluations_and_generations_are_lists(finished_run: Path) -> None:
    run = load(finished_run)

    assert [one.seed for one in run.evaluations if one.generation == 0].count(
        run.evaluations[0].seed
    ) == 8
    assert [view.number for view in run.generations] == [0, 1]


def test_after_a_no_go_nothing_is_recommended_but_something_was_best(
    search_confirmed: Callable[..., Result], tmp_path: Path
) -> None:
    unreachable = {"go_seeds": 2, "go_gain": 0.9}
    directory = search_confirmed(
        tmp_path, objective="noise", run_id="refuted", thresholds=unreachable
    ).directory
    run = load(directory)

    assert run.recommendation is None
    assert run.best is not None
    assert run.best.keys() == {"x0", "x1"}


def test_before_a_generation_is_told_nothing_is_known(run: Path, cut: Callable[..., None]) -> None:
    cut(run, 8)
    loaded = load(run)

    assert loaded.recommendation is None
    assert loaded.best is None
    assert loaded.generations[0].best is not None


def test_a_loaded_run_stays_as_it_was(run: Path, resume: Callable[..., object]) -> None:
    whole = (run / LEDGER).read_bytes()
    ledgers.cut(run, 20)
    loaded = load(run)

    (run / LEDGER).write_bytes(whole)

    assert loaded.report.identity.records == 20
    assert load(run).report.identity.records > 20


def test_attempts_are_a_frame_with_their_knobs(finished_run: Path) -> None:
    pandas = pytest.importorskip("pandas")
    run = load(finished_run)

    frame = run.evaluations_frame()

    assert len(frame) == len(run.evaluations)
    assert list(frame["score"].dropna()) == [
        one.score for one in run.evaluations if one.score is not None
    ]
    assert frame["knob.x3"].tolist() == [one.knobs["x3"] for one in run.evaluations]
    assert "metric.noise_free_score" in frame.columns
    assert isinstance(frame, pandas.DataFrame)


def test_generations_are_a_frame_with_the_searchs_favourite(finished_run: Path) -> None:
    pytest.importorskip("pandas")
    run = load(finished_run)

    frame = run.generations_frame()

    assert frame["best_so_far"].tolist() == [view.best_so_far for view in run.generations]
    assert frame["favourite.x0"].between(-1, 1).all()


def test_before_anything_has_ended_a_frame_has_its_columns(
    run: Path, cut: Callable[..., None]
) -> None:
    pytest.importorskip("pandas")
    cut(run, 3)

    frame = load(run).evaluations_frame()

    assert len(frame) == 0
    assert {"generation", "score", "began", "device"} <= set(frame.columns)


def test_without_pandas_the_error_names_the_extra(
    finished_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(ImportError, match=r"cmaes-orchestrator\[frames\]"):
        load(finished_run).evaluations_frame()


def test_a_notebook_shows_what_a_person_asks_first(finished_run: Path) -> None:
    run = load(finished_run)
    answer = run.report.answer

    markdown, html = run._repr_markdown_(), run._repr_html_()

    assert run.state.plan.run_id in html
    assert answer.title in html
    assert "Found" in markdown
    assert "Next" in markdown


def test_what_is_shown_is_no_page_of_the_runs_own(run: Path, tamper: Callable[..., None]) -> None:
    """A ledger may come from anywhere."""

    def renamed(lines: list[dict[str, dict[str, dict[str, object]]]]) -> None:
        lines[0]["event"]["plan"]["run_id"] = "<script>alert(1)</script>"

    tamper(run, renamed)
    loaded = load(run)

    assert "<script>" not in loaded._repr_html_()
    assert "\\<script" in loaded._repr_markdown_()


def test_to_import_the_package_imports_nothing_of_it() -> None:
    code = (
        "import sys, orchestrator; "
        "print([m for m in sys.modules if m.partition('.')[0] in "
        "('orchestrator', 'budgets', 'objectives', 'pydantic', 'numpy', 'pandas')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.strip() == "['orchestrator']"
    assert orchestrator.load is load
