"""The door to a checkout of nanochat: a stand-in with its command line, or the real one.

The real one is tried where NANOCHAT_CHECKOUT, NANOCHAT_PYTHON and NANOCHAT_BASE_DIR name it.
"""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.acceptance.books import Books
from tests.acceptance.product import REPOSITORY, Product

STAND_IN = REPOSITORY / "tests/objectives/checkout/fake"
SEARCH = """
objective = "nanochat"
[training]
checkout = "{checkout}"
python = "{python}"
data = "{base}/base_data_climbmix"
tokenizer = "{base}/tokenizer"
target_flops = 1e11
eager = true
{more}
[training.flags]
depth = 4
aspect-ratio = 32
head-dim = 64
max-seq-len = 128
device-batch-size = 16
total-batch-size = 2048
eval-tokens = 8192
window-pattern = "L"
[training.knobs]
matrix-lr = {{ kind = "log10", min = 0.002, max = 2.0, baseline = 0.02 }}
warmup-steps = {{ kind = "int", min = 0, max = 4, baseline = 2 }}
"""
MIN = ("phase1", "--tier", "min", "--config", "search.toml", "--assume-eval-seconds", "1")
SMALL = ("--population", "8", "--known", "known.json")
REAL = [os.environ.get(f"NANOCHAT_{name}") for name in ("CHECKOUT", "PYTHON", "BASE_DIR")]


def user(product: Product, more: str = "") -> Path:
    """Someone with a checkout, two shards and a tokenizer. Returns the checkout."""
    checkout = product.folder / "nanochat"
    shutil.copytree(STAND_IN, checkout, ignore=shutil.ignore_patterns("*.pyc"))
    for name in (
        "base_data_climbmix/shard_00000.parquet",
        "base_data_climbmix/shard_00001.parquet",
        "tokenizer/tokenizer.pkl",
        "tokenizer/token_bytes.pt",
    ):
        product.write(f"base/{name}", name)
    base = product.folder / "base"
    product.write(
        "search.toml",
        SEARCH.format(checkout=checkout, python=sys.executable, base=base, more=more),
    )
    product.write("known.json", '[{"matrix-lr": 1.0, "warmup-steps": 4}]')  # it diverges
    return checkout


def test_flags_arrive_and_the_held_out_score_comes_back(product: Product) -> None:
    user(product)
    product(*MIN, *SMALL, "--executor", "inline")
    run = product.run_directory()
    expected = []
    for place in (file.parent for file in run.glob("eval/**/program.json")):
        knobs = json.loads((place / "config.json").read_text())["knobs"]
        argv = json.loads((place / "program.json").read_text())["argv"]
        given = dict(part[2:].split("=") for part in argv if part.startswith("--") and "=" in part)
        assert given["warmup-steps"] == str(knobs["warmup-steps"])
        assert float(given["matrix-lr"]) == pytest.approx(knobs["matrix-lr"], rel=1e-11)
        assert (given["depth"], float(given["target-flops"])) == ("4", 1e11)
        if knobs["matrix-lr"] <= 0.25:  # above it diverges
            said = re.findall(r"Validation bpb: (\S+)", (place / "stdout.txt").read_text())
            expected.append(float(said[-1]))
    results = Books.of(run).results.values()
    measured = [one.score or 0.0 for one in results if one.status == "ok"]
    assert sorted(measured) == pytest.approx(sorted(expected), abs=1e-6)
    assert "nan" in {one.status for one in results}
    product.verify()


def test_a_training_that_crashes_is_its_configurations_failure_and_sources_are_pinned(
    product: Product,
) -> None:
    checkout = user(product, 'environment = { FAKE_TRAP = "crash" }')
    product(*MIN, *SMALL, "--executor", "inline", code=3)
    books = Books.of(product.run_directory())
    assert {one.status for one in books.attempts} == {"error"}
    assert all("the loss is a tensor of another shape" in one.cause for one in books.attempts)
    with open(checkout / "scripts/base_train.py", "a") as source:
        source.write("# edited\n")
    refused = product(*MIN, *SMALL, "--executor", "inline", code=2)
    assert "objective.settings.code" in refused.err
    product.verify()


@pytest.mark.parametrize(
    ("of", "word"),
    [
        ("base/tokenizer/tokenizer.pkl", "tokenizer"),
        ("base/base_data_climbmix/shard_00001.parquet", "parquet"),
        ("nanochat/scripts/base_train.py", "base_train"),
    ],
)
def test_what_is_missing_is_named_before_anything_is_spent(
    product: Product, of: str, word: str
) -> None:
    user(product)
    (product.folder / of).unlink()
    assert word in product(*MIN, *SMALL, "--executor", "inline", code=2).err
    assert not list(product.folder.glob("**/ledger.jsonl"))


if all(REAL):

    @pytest.mark.slow
    def test_the_real_checkout_is_searched(product: Product) -> None:
        user(product)
        checkout, python, base = REAL
        product.write(
            "search.toml", SEARCH.format(checkout=checkout, python=python, base=base, more="")
        )
        product(*MIN, *SMALL, "--executor", "local", timeout=3600)
        scores = [one.score for one in Books.of(product.run_directory()).results.values()]
        assert all(1 < score < 4 for score in scores if score is not None)
        product.verify()
