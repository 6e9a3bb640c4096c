"""What only a machine with an NVIDIA GPU can show. There: `scripts/test -m gpu`."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.product.books import Books, records
from tests.product.product import Product, alive_below, wait_until

pytestmark = pytest.mark.gpu
SEARCH = (
    "phase1 --tier target --workers 1 --device cuda --assume-eval-seconds 5"
    " --set search.population=4 --set search.generations=2 --set verdict.confirm_seeds=0"
)
TRAINING = f"{SEARCH} --set num_batches=20 --set val_windows=8 --executor"
GREEDY = """
import torch
from pathlib import Path
def evaluate(knobs, seed, budget):
    cell = "/".join(Path.cwd().parts[-3:-1])
    size = {"gen_0000/cand_0001": 2**38}.get(cell, 2**30)
    return float(torch.ones(size, dtype=torch.uint8, device="cuda").max()) + knobs["a"] ** 2
"""
FUNCTION = f"{SEARCH} --executor local --objective python:greedy:evaluate --set budget=1"
FUNCTION += ' --set \'knobs={"a": {"min": -1.0, "max": 1.0, "baseline": 0.0}}\''


def kill_amid(product: Product, run: Path, command: str) -> None:
    product.kill_at(lambda: records(run) >= 12 and bool(alive_below(run)), command)
    wait_until(lambda: not alive_below(run), 5)


@pytest.mark.timeout(300)
def test_a_killed_search_ends_as_if_nobody_had_killed_it(product: Product) -> None:
    """Locally and through Ray, with the same scores to the last bit."""
    product(f"{TRAINING} local --run-id whole")
    whole = product.books("whole")
    assert whole.statuses == {"ok": len(whole.attempts)}
    for executor in ("local", "ray"):
        command = f"{TRAINING} {executor} --run-id {executor}"
        run = product.folder / f"artifacts/cmaes/phase1/{executor}"
        kill_amid(product, run, command)
        product(command)
        assert Books.of(run).essence == whole.essence
    product.verify()


def test_what_does_not_fit_is_oom_and_the_gpu_is_used_again(product: Product) -> None:
    product.write("greedy.py", GREEDY)
    product(FUNCTION)
    found = {one.key: one.status for one in product.books().searched}
    assert list(found.values()).count("oom") == 1, found
    assert list(found.values()).count("ok") == len(found) - 1
    product.verify()


def test_a_gpu_that_another_process_uses_is_not_used(product: Product) -> None:
    product.write("greedy.py", GREEDY)
    hold = "import torch; held = torch.ones(2**31, device='cuda'); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "1\n"
        refused = product(FUNCTION, code=None)
        other.kill()
    assert refused.code == 7, refused
    assert "no device is left" in refused.text
    product(FUNCTION)
    product.verify()
