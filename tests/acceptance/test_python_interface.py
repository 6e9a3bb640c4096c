"""`from orchestrator import load`: a run in Python, as its ledger has it."""

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator import load
from tests.acceptance.books import SEARCH, Books
from tests.acceptance.product import REPOSITORY, Product


def of_range(run: Path, point: tuple[float, ...]) -> dict[str, float]:
    """Knobs of a space that is linear throughout, by their names."""
    return {
        knob["name"]: knob["low"] + share * (knob["high"] - knob["low"])
        for knob, share in zip(Books.of(run).knobs, point, strict=True)
    }


@pytest.mark.parametrize("name", ["go_fades", "statuses", "all_failed", "interrupted"])
def test_the_evaluations_are_those_of_the_ledger(looker: Product, name: str) -> None:
    pandas = pytest.importorskip("pandas")
    directory = looker.run_directory(name)
    books, run = Books.of(directory), load(directory)
    settled = {(*one.key, one.number): one for one in books.attempts if one.status is not None}
    rows = run.evaluations_frame().to_dict("records")
    assert len(rows) == len(settled) == len(run.evaluations)
    for row in rows:
        batch, generation, candidate = row["panel"] or SEARCH, row["generation"], row["candidate"]
        one = settled[batch, generation, candidate, row["seed"], row["attempt"]]
        assert row["status"] == one.status
        assert (None if pandas.isna(row["score"]) else row["score"]) == one.score
        assert row["charged_seconds"] == one.charged_ms / 1000
        if batch == SEARCH:
            knobs = of_range(directory, books.generations[generation]["points"][candidate])
            assert {knob: row[f"knob.{knob}"] for knob in knobs} == pytest.approx(knobs)


@pytest.mark.parametrize("name", ["no_go_noise", "go_fades"])
def test_the_generations_are_those_of_the_ledger(looker: Product, name: str) -> None:
    pytest.importorskip("pandas")
    directory = looker.run_directory(name)
    means = Books.of(directory).candidate_means
    for row in load(directory).generations_frame().to_dict("records"):
        own = [mean for (number, _), mean in means.items() if number == row["number"]]
        assert row["best"] == pytest.approx(min(own))
        assert row["mean"] == pytest.approx(sum(own) / len(own))


def test_a_recommendation_is_what_won_and_none_after_a_no_go(looker: Product) -> None:
    go, no_go = (looker.run_directory(name) for name in ("go", "no_go_noise"))
    verdict = Books.of(go).verdict
    assert verdict is not None
    assert verdict.point is not None
    assert load(go).recommendation == pytest.approx(of_range(go, verdict.point))
    assert load(no_go).recommendation is None
    assert load(no_go).best is not None


def test_a_run_is_found_by_its_directory_or_its_id(looker: Product) -> None:
    runs = looker.folder / "artifacts/cmaes"
    by_id = load("go", runs_dir=runs)
    assert by_id.recommendation == load(looker.run_directory("go")).recommendation
    assert by_id.report.model_dump() == load(str(looker.run_directory("go"))).report.model_dump()
    with pytest.raises(ValueError, match="nothing"):
        load("nothing", runs_dir=runs)


def test_neither_import_nor_load_brings_torch_or_ray(looker: Product) -> None:
    directory = looker.run_directory("go")
    code = (
        "import sys, orchestrator\nheavy = {'torch', 'ray', 'cma', 'numpy', 'scipy', 'pandas'}\n"
        "assert not heavy & set(sys.modules)\n"
        f"orchestrator.load({str(directory)!r}).recommendation\n"
        "assert not {'torch', 'ray'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=True)
