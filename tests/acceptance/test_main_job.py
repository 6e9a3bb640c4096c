"""The main job: a search, its verdict and its files, the same whatever runs the evaluations."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from tests.product.books import Books
from tests.product.product import Product

SPHERE = "--objective sphere --set noise=0.01 --workers 2 --run-id run"
TINY = (
    "--set n_layer=1 --set n_embd=16 --set sequence_len=64 --set val_windows=8"
    " --set target_flops=3e8 --workers 2 --run-id run"
)


def tree(run: Path) -> dict[str, bytes]:
    """Every file of a run but its evaluations' and its lock."""
    paths = [path for path in run.rglob("*") if path.is_file() and path.suffix != ".lock"]
    names = {path.relative_to(run): path.read_bytes() for path in paths}
    return {str(name): data for name, data in names.items() if "eval" not in name.parts}


@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize(
    ("executors", "words"), [("inline local", SPHERE), ("inline ray", TINY)], ids=["", "nanochat"]
)
def test_points_and_scores_are_equal_whatever_runs_the_evaluations(
    product: Product, executors: str, words: str
) -> None:
    """Of a function, and of trainings of a tiny model."""
    found = []
    for executor in executors.split():
        place = f"--executor {executor} --runs-dir {executor}"
        product(f"phase1 --tier min --assume-eval-seconds 1 {words} {place}")
        product(f"verify run --runs-dir {executor}")
        found.append(Books.of(product.folder / executor / "phase1" / "run"))
    assert found[0].essence == found[1].essence
    books = found[1]
    assert (books.shape, books.statuses) == ((8, 2, 1), {"ok": 16})
    assert len(books.plan["space"]["knobs"]) == 10
    assert all(0.0 < (one.score or 0.0) < 10.0 for one in books.searched)
    assert (books.is_concluded, books.verdict) == (True, None)


def test_tier_target_ends_with_a_verdict_on_fresh_seeds(product: Product) -> None:
    words = f"phase1 --tier target --set verdict.long_run_seeds=5 --executor inline {SPHERE}"
    assert "Go that persists" in product(words).out
    product.verify()
    books = product.books()
    population, generations, seeds = books.shape
    assert population * generations * seeds == len(books.searched) == 120
    assert books.verdict is not None
    assert books.verdict.grade == "go_persists"
    for knob in product.json("best")["knobs"]:  # optimum: 0.5 and -0.5 in turn
        expected = 0.5 if int(knob["name"][1:]) % 2 == 0 else -0.5
        assert knob["recommended"] == pytest.approx(expected, abs=0.25)


def test_a_run_is_these_files_and_all_but_ledger_and_evaluations_is_rebuilt(
    product: Product,
) -> None:
    words = f"phase1 --tier min --executor inline {SPHERE}"
    product(words)
    product.verify()
    run, books = product.run_directory(), product.books()
    before, everything = tree(run), tree(product.folder)
    for name in ("ledger.jsonl", "run.json", "best.json", "summary.md", "reports/gen_0001.json"):
        assert before[name], name
    rows = list(csv.DictReader(before["progress.csv"].decode().splitlines()))
    assert [float(row["score"]) for row in rows] == [one.score for one in books.searched]
    for (_, generation, candidate, seed), one in books.results.items():
        place = run / f"eval/gen_{generation:04}/cand_{candidate:04}/seed_{seed}"
        assert (place / "stdout.txt").exists()
        assert (place / "stderr.txt").exists()
        assert json.loads((place / "config.json").read_text())["seed"] == seed
        summary = json.loads((place / "summary.json").read_text())
        assert summary["measurement"]["score"] == one.score

    product(words)
    after = tree(product.folder)
    assert everything == {name: after[name] for name in everything}, "the same command again"

    for path in run.iterdir():
        if path.name not in ("ledger.jsonl", "eval"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    product("report run --rebuild")
    after = tree(run)
    assert set(before) - set(after) <= {"head.json"}, "it comes with the next record"
    assert after == {name: before[name] for name in after}
    product.verify()
