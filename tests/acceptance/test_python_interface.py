"""`from orchestrator import load`: a run in Python, as its ledger has it."""

import re
import subprocess
import sys

import pytest

from orchestrator import load
from tests.product.books import SEARCH, Books
from tests.product.product import REPOSITORY, Product

IMPORTS = """import sys, orchestrator
assert not {"torch", "ray", "cma", "numpy", "scipy", "pandas", "matplotlib"} & set(sys.modules)
orchestrator.load(sys.argv[1]).recommendation
assert not {"torch", "ray"} & set(sys.modules)"""


def of_range(books: Books, point: list[float]) -> dict[str, float]:
    """The knobs of a space that is linear throughout."""
    knobs = zip(books.plan["space"]["knobs"], point, strict=True)
    return {one["name"]: one["low"] + x * (one["high"] - one["low"]) for one, x in knobs}


@pytest.mark.parametrize("name", ["go_fades", "statuses", "all_failed", "interrupted"])
def test_the_tables_are_those_of_the_ledger(looker: Product, name: str) -> None:
    pytest.importorskip("pandas")
    books, run = looker.books(name), load(looker.run_directory(name))
    settled = {(*one.key, one.number): one for one in books.attempts if one.status is not None}
    frame, generations = run.table(), run.generations().dropna(subset="best")
    assert len(frame) == len(settled) == len(run.evaluations)
    for row in frame.astype(object).where(frame.notna(), None).to_dict("records"):
        batch = row["comparison"] or SEARCH
        generation, candidate = row["generation"], row["candidate"]
        one = settled[batch, generation, candidate, row["seed"], row["attempt"]]
        assert (row["status"], row["score"]) == (one.status, one.score)
        assert row["charged_ms"] == one.charged_ms
        if batch == SEARCH:
            knobs = of_range(books, books.generations[generation]["points"][candidate])
            assert {knob: row[f"knob.{knob}"] for knob in knobs} == pytest.approx(knobs)
    for row in generations.to_dict("records"):
        own = [mean for place, mean in books.candidate_means.items() if place[0] == row["number"]]
        assert [row["best"], row["mean"]] == pytest.approx([min(own), sum(own) / len(own)])


def test_a_recommendation_is_what_won_and_none_after_a_no_go(looker: Product) -> None:
    books, go = looker.books("go"), load(looker.run_directory("go"))
    no_go = load(looker.run_directory("no_go_noise"))
    assert go.recommendation == pytest.approx(of_range(books, books.essence["verdict"]["point"]))
    assert no_go.recommendation is None
    assert no_go.best is not None


def test_neither_import_nor_load_brings_torch_or_ray(looker: Product) -> None:
    words = [sys.executable, "-c", IMPORTS, str(looker.run_directory("go"))]
    subprocess.run(words, cwd=REPOSITORY, check=True)


def test_the_suite_knows_the_product_from_outside() -> None:
    """No test here imports the product's inside: only what the documentation calls public."""
    inside = re.compile(
        r"^\s*(?:from|import) (?:budgets|objectives|orchestrator)\b.*", re.MULTILINE
    )
    files = [
        *(REPOSITORY / "tests").glob("acceptance/*.py"),
        *REPOSITORY.glob("tests/product/*.py"),
    ]
    found = {line.strip() for file in files for line in inside.findall(file.read_text())}
    assert found <= {"from orchestrator import load"}
