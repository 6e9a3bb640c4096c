"""The door to a checkout of nanochat: a stand-in with its command line, or the real one.

The real one is tried where NANOCHAT_CHECKOUT, NANOCHAT_PYTHON and NANOCHAT_BASE_DIR name it.
"""

import json
import os
import re
import shutil
import sys

import pytest

from tests.product.product import REPOSITORY, Product

SEARCH = """
objective = "nanochat"
[training]
data = "{0}/base_data_climbmix"
tokenizer = "{0}/tokenizer"
checkout = "{1}"
python = "{2}"
target_flops = 1e11
environment.TORCH_COMPILE_DISABLE = "1"
flags = {{ depth = 4, aspect-ratio = 32, head-dim = 64, max-seq-len = 128, window-pattern = "L", \
device-batch-size = 16, total-batch-size = 2048, eval-tokens = 8192 }}
knobs.matrix-lr = {{ kind = "log10", min = 0.002, max = 2.0, baseline = 0.02 }}
knobs.warmup-steps = {{ kind = "int", min = 0, max = 4, baseline = 2 }}
"""
SHARDS = [f"base_data_climbmix/shard_0000{number}.parquet" for number in (0, 1)]
MIN = "phase1 --tier min search.toml --assume-eval-seconds 1 --set search.population=8"
REAL = [os.environ.get(f"NANOCHAT_{name}") for name in ("BASE_DIR", "CHECKOUT", "PYTHON")]


@pytest.fixture
def user(product: Product) -> Product:
    """A user with a checkout, two shards and a tokenizer."""
    fake = REPOSITORY / "tests/objectives/fake_nanochat"
    shutil.copytree(fake, product.folder / "nanochat", ignore=shutil.ignore_patterns("*.pyc"))
    for file in ("tokenizer/tokenizer.pkl", "tokenizer/token_bytes.pt", *SHARDS):
        product.write(f"base/{file}", file)
    places = (product.folder / name for name in ("base", "nanochat"))
    product.write("search.toml", SEARCH.format(*places, sys.executable))
    return product


def test_flags_arrive_and_the_held_out_score_comes_back(user: Product) -> None:
    pauses = "--set thresholds.crash_count_pause=9"
    command = f"{MIN} --executor inline --set search.sigma0=0.3 {pauses}"  # some diverge
    user(command)
    run, expected = user.run_directory(), []
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
    results = user.books().results.values()
    measured = [one.score or 0.0 for one in results if one.status == "ok"]
    assert sorted(measured) == pytest.approx(sorted(expected), abs=1e-6)
    assert "nan" in {one.status for one in results}
    user.verify()

    source = user.folder / "nanochat/scripts/base_train.py"
    for wrong in ("# edited", None):
        source.write_text(wrong) if wrong else source.unlink()
        assert "base_train" in user(command, code=2).err


if all(REAL):

    @pytest.mark.slow
    def test_the_real_checkout_is_searched(product: Product) -> None:
        product.write("search.toml", SEARCH.format(*REAL))
        product(MIN.replace("seconds 1", "seconds 30"), "--executor", "local", timeout=3600)
        attempts = product.books().attempts
        assert all(1 < one.score < 4 for one in attempts if one.score is not None)
        product.verify()
