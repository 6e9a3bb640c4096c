"""The training core that comes with the product: small GPTs on pinned text, by FLOPs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator import load
from tests.acceptance.books import records
from tests.acceptance.product import PATIENCE, Product, wait_until

MIN = ("phase1", "--tier", "min", "--assume-eval-seconds", "1", "--executor", "local")
TINY = ("--set", "target_flops=3e9", "--set", "val_windows=8")
CORE = (sys.executable, "-m", "objectives.nanochat")


def core(product: Product, *words: str, code: int = 0) -> str:
    """What the core's own command line prints."""
    done = subprocess.run(
        [*CORE, *words], cwd=product.folder, env=product.environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert code == done.returncode, done.stdout
    return done.stdout


def test_a_text_that_changes_during_a_search_stops_it(product: Product) -> None:
    """Scores on two texts are never ranked together. What was scored has spent its FLOPs."""
    paragraphs = (f"paragraph {n}: " + "it is never the same " * 9 for n in range(200))
    text = product.write("text.txt", "\n\n".join(paragraphs))
    run = product.folder / "artifacts/cmaes/phase1/min-nanochat-s1"
    running = product.start(*MIN, *TINY, "--workers", "1", "--set", "data=text.txt")
    wait_until(lambda: records(run) > 6)
    product.write("new.txt", text.read_text().upper()).rename(text)
    out, _ = running.communicate(timeout=PATIENCE)
    assert (running.returncode, "text.txt has changed" in out) == (3, True), out
    scored = [one.train_flops for one in load(run).evaluations if one.status == "ok"]
    assert all(0.9 * 3e9 < spent <= 3e9 for spent in scored)
    assert scored
    product.verify()


def test_no_held_out_document_of_a_folder_of_shards_is_trained_on(product: Product) -> None:
    pyarrow, parquet = (pytest.importorskip(f"pyarrow{name}") for name in ("", ".parquet"))
    documents = [f"document {n} " + "words " * 99 for n in range(40)]
    (product.folder / "shards").mkdir()
    for number, rows in enumerate((documents[:30], documents[20:])):
        table = pyarrow.table({"text": rows})
        parquet.write_table(table, product.folder / f"shards/{number}.parquet")
    planned = product.json("plan", *MIN[1:3], "--set", "data=shards")
    assert planned["tiers"][0]["plan"]["provenance"]["documents"] == 40


@pytest.mark.slow
def test_the_default_training_scores_what_it_always_did(product: Product) -> None:
    core(product, "train", "--set", "seed=123", "--set", "target_flops=3e10")
    assert found(product.folder / "checkpoints/ckpts")["bpb"] == pytest.approx(3.1775, abs=5e-3)


@pytest.mark.slow
def test_a_training_that_is_killed_goes_on_bit_for_bit(product: Product) -> None:
    words = ("train", "--set", "num_batches=60", "--set", "save_interval_steps=5", "--set")
    core(product, *words, "checkpoint_dir=whole")
    process = subprocess.Popen(
        [*CORE, *words, "checkpoint_dir=cut"], cwd=product.folder, env=product.environment()
    )
    wait_until(lambda: len(list(product.folder.glob("cut/step*"))) > 1)
    process.kill()
    assert process.wait() < 0
    core(product, *words, "checkpoint_dir=cut")
    assert found(product.folder / "cut") == found(product.folder / "whole")


def found(directory: Path) -> dict[str, Any]:
    summary = json.loads((directory / "summary.json").read_text())
    return {name: summary[name] for name in ("bpb", "steps", "health")}
