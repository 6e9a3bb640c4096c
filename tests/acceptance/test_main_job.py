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
    paths = [path for path in run.rglob("*") if path.is_file() and path.suffix != ".lock"]
    names = {path.relative_to(run): path.read_bytes() for path in paths}
    return {str(name): data for name, data in names.items() if "eval" not in name.parts}


@pytest.mark.xdist_group("ray")
def test_tier_min_of_a_tiny_nanochat_runs_through_ray(product: Product) -> None:
    sets = [word for setting in TINY for word in ("--set", setting)]
    flops = ("--set", "target_flops=3e8", "--assume-eval-seconds", 5)
    product("phase1", "--tier", "min", *sets, *flops)
    product.verify()
    books = Books.of(product.run_directory())
    assert (books.shape, len(books.knobs), books.statuses) == ((8, 2, 1), 10, {"ok": 16})
    assert all(0.0 < (one.score or 0.0) < 10.0 for one in books.searched)
    assert (books.is_concluded, books.verdict) == (True, None)

    # The hours of a training are its tokens by their throughput.
    words = ("--tier", "min", *sets, "--set", "target_flops=1e13", "--assume-eval-seconds", 60)
    for profile, length in {"fast": 1024, "balanced": 2048, "quality": 4096}.items():
        one = product.json("plan", *words, "--set", f"profile={profile}")["evaluation"]
        assert one["tokens"] == one["steps"] * 32 * length
        assert one["seconds"] == pytest.approx(one["tokens"] / one["tokens_per_second"])


def test_tier_target_ends_with_a_verdict_on_fresh_seeds(product: Product) -> None:
    done = product("phase1", "--tier", "target", "--set", "verdict.rung_seeds=5", *INLINE)
    product.verify()
    books = Books.of(product.run_directory())
    population, generations, seeds = books.shape
    assert population * generations * seeds == len(books.searched) == 120
    assert books.verdict is not None
    assert books.verdict.grade == "go_persists"
    assert "Go that persists" in done.out
    for knob in product.json("best")["recommended"]["knobs"]:  # optimum: 0.5 and -0.5 in turn
        expected = 0.5 if int(knob["name"][1:]) % 2 == 0 else -0.5
        assert knob["value"] == pytest.approx(expected, abs=0.25)


@pytest.mark.xdist_group("ray")
def test_points_and_scores_are_equal_whatever_runs_the_evaluations(product: Product) -> None:
    words = ("phase1", "--tier", "min", "--assume-eval-seconds", 1, *SPHERE)
    found = []
    for executor in ("inline", "local", "ray"):
        product(*words, "--executor", executor, "--runs-dir", executor)
        product("verify", "run", "--runs-dir", executor)
        found.append(Books.of(product.folder / executor / "phase1" / "run").essence)
    assert found == [found[0]] * 3


def test_a_run_is_these_files_and_all_but_ledger_and_evaluations_is_rebuilt(
    product: Product,
) -> None:
    words = ("phase1", "--tier", "min", *INLINE)
    product(*words)
    product.verify()
    run = product.run_directory()
    before, everything = tree(run), tree(product.folder)
    for name in ("ledger.jsonl", "run.json", "best.json", "summary.md", "reports/gen_0001.json"):
        assert before[name], name
    rows = list(csv.DictReader(before["progress.csv"].decode().splitlines()))
    assert [float(row["score"]) for row in rows] == [one.score for one in Books.of(run).searched]
    for (_, generation, candidate, seed), one in Books.of(run).results.items():
        place = run / f"eval/gen_{generation:04}/cand_{candidate:04}/seed_{seed}"
        assert (place / "stdout.txt").exists()
        assert (place / "stderr.txt").exists()
        assert json.loads((place / "config.json").read_text())["seed"] == seed
        summary = json.loads((place / "summary.json").read_text())
        assert summary["measurement"]["score"] == one.score

    product(*words)
    after = tree(product.folder)
    assert everything == {name: after[name] for name in everything}, "the same command again"

    for path in run.iterdir():
        if path.name not in ("ledger.jsonl", "eval"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    product("report", "run", "--rebuild")
    after = tree(run)
    assert set(before) - set(after) <= {"head.json"}, "it comes with the next record"
    assert after == {name: before[name] for name in after}
    product.verify()
