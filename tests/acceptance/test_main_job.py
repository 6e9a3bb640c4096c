"""The main job: a search, its verdict and its files, the same whatever runs the evaluations."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from tests.acceptance.books import Books
from tests.acceptance.product import Product

SPHERE = ("--objective", "sphere", "--set", "noise=0.01", "--workers", 2, "--run-id", "run")
INLINE = ("--executor", "inline", *SPHERE)
TINY = ("n_layer=1", "n_embd=16", "sequence_len=64", "val_windows=8")


def tree(run: Path) -> dict[str, bytes]:
    """Every file of a run but its evaluations' and its lock."""
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and path.suffix != ".lock" and "eval" not in path.relative_to(run).parts
    }


def trains(product: Product, *words: object) -> Path:
    """Tier min of the default objective, through Ray, with nothing else said."""
    product("phase1", "--tier", "min", *words, timeout=580)
    product.verify()
    run = product.run_directory()
    books = Books.of(run)
    assert books.shape == (8, 2, 1)
    assert len(books.knobs) == 10
    assert len(books.searched) == 16
    assert set(books.statuses) == {"ok"}
    assert all(0.0 < (one.score or 0.0) < 10.0 for one in books.searched)
    assert books.is_concluded
    assert books.verdict is None
    return run


@pytest.mark.xdist_group("ray")
def test_tier_min_of_a_tiny_nanochat_runs_through_ray(product: Product) -> None:
    sets = [word for setting in TINY for word in ("--set", setting)]
    run = trains(product, *sets, "--set", "target_flops=3e8", "--assume-eval-seconds", 5)
    summary = json.loads(next(run.glob("eval/gen_0000/cand_0000/seed_*/summary.json")).read_text())
    assert summary["measurement"]["steps"] >= 20

    # A plan learns its throughput: the hours of a training are its tokens by that.
    words = ("--tier", "min", *sets, "--set", "target_flops=1e13", "--fit", "--window", "12h")
    for profile in product.json("plan", "phase1", *words)["profiles"]:
        one, length = profile["estimate"], profile["profile"]["sequence_len"]
        assert one["total_tokens"] == one["total_steps"] * 32 * length
        hours = one["total_tokens"] / one["tokens_per_second"] / 3600
        assert one["estimated_hours"] == pytest.approx(hours)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("ray")
def test_tier_min_of_nanochat_runs_through_ray_from_a_calibration(product: Product) -> None:
    trains(product)


def test_tier_target_ends_with_a_verdict_on_fresh_seeds(product: Product) -> None:
    done = product("phase1", "--tier", "target", "--rung-seeds", 5, *INLINE)
    product.verify()
    books = Books.of(product.run_directory())
    population, generations, seeds = books.shape
    assert population * generations * seeds == len(books.searched) == 120
    assert books.verdict is not None
    assert books.verdict.grade == "go_persists"
    assert "Go that persists" in done.out
    best = product.json("best")
    for knob in best["recommended"]["knobs"]:  # the optimum is at 0.5 and -0.5 in turn
        expected = 0.5 if int(knob["name"][1:]) % 2 == 0 else -0.5
        assert knob["value"] == pytest.approx(expected, abs=0.25)


@pytest.mark.parametrize(
    "executor",
    ["local", pytest.param("ray", marks=pytest.mark.xdist_group("ray"))],
)
def test_points_and_scores_are_equal_whatever_runs_the_evaluations(
    product: Product, executor: str
) -> None:
    words = ("--tier", "min", "--assume-eval-seconds", 1, *SPHERE)
    found = []
    for one in ("inline", executor):
        product("phase1", *words, "--executor", one, "--runs-dir", one)
        product("verify", "run", "--runs-dir", one)
        found.append(Books.of(product.folder / one / "phase1" / "run").essence)
    assert found[0] == found[1]


@pytest.fixture
def run(product: Product) -> Path:
    product("phase1", "--tier", "min", *INLINE)
    product.verify()
    return product.run_directory()


def test_the_same_command_again_changes_nothing(product: Product, run: Path) -> None:
    before = tree(product.folder)
    product("phase1", "--tier", "min", *INLINE)
    after = tree(product.folder)
    assert {name for name in before if before[name] != after.get(name)} == set()


def test_a_run_is_these_files(run: Path) -> None:
    books = Books.of(run)
    for name in ("ledger.jsonl", "run.json", "progress.csv", "best.json", "summary.md"):
        assert (run / name).stat().st_size, name
    for generation in range(2):
        for suffix in ("md", "json"):
            assert (run / f"reports/gen_{generation:04}.{suffix}").stat().st_size
    assert not [path for path in run.rglob("*") if path.is_symlink()]
    rows = list(csv.DictReader((run / "progress.csv").read_text().splitlines()))
    assert [float(row["score"]) for row in rows] == [one.score for one in books.searched]
    for (_, generation, candidate, seed), one in books.results.items():
        place = run / f"eval/gen_{generation:04}/cand_{candidate:04}/seed_{seed}"
        for name in ("config.json", "summary.json", "stdout.txt", "stderr.txt"):
            assert (place / name).exists(), name
        assert json.loads((place / "config.json").read_text())["seed"] == seed
        summary = json.loads((place / "summary.json").read_text())
        assert summary["measurement"]["score"] == one.score


def test_all_but_the_ledger_and_the_evaluations_is_rebuilt(product: Product, run: Path) -> None:
    before = tree(run)
    for path in run.iterdir():
        if path.name not in ("ledger.jsonl", "eval"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    product("report", "run", "--rebuild")
    after = tree(run)
    assert set(before) - set(after) <= {"head.json"}, "it comes with the next record"
    assert [name for name in after if after[name] != before.get(name)] == []
    product.verify()
