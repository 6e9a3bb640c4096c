"""The training core that comes with the product: small GPTs on pinned text, by FLOPs."""

import json
import shutil
import subprocess
import sys

import pytest

from orchestrator import load
from tests.product.books import records
from tests.product.product import PATIENCE, REPOSITORY, Product, wait_until

TINY = (
    "phase1 --tier min --assume-eval-seconds 1 --executor local --workers 1"
    " --set target_flops=3e9 --set val_windows=8"
)


@pytest.mark.slow
def test_a_text_that_changes_during_a_search_stops_it(product: Product) -> None:
    """Scores on two texts are never ranked together. What was scored has spent its FLOPs."""
    paragraphs = (f"paragraph {n}: " + "it is never the same " * 9 for n in range(200))
    text = product.write("text.txt", "\n\n".join(paragraphs))
    run = product.folder / "artifacts/cmaes/phase1/min-nanochat-s1"
    running = product.start(f"{TINY} --set data=text.txt")
    wait_until(lambda: records(run) > 6)
    product.write("new.txt", text.read_text().upper()).rename(text)
    out, _ = running.communicate(timeout=PATIENCE)
    assert (running.returncode, "text.txt has changed" in out) == (3, True), out
    scored = [one.train_flops for one in load(run).evaluations if one.status == "ok"]
    assert all(0.9 * 3e9 < spent <= 3e9 for spent in scored)
    assert scored
    product.verify()


def test_recomputation_trains_as_many_steps(product: Product) -> None:
    words = "train --dry-run --set target_flops=3e10 --set gradient_checkpointing="
    said = [product(f"{words}{on}").out for on in ("false", "true")]
    assert len({json.loads(one)["steps"] for one in said}) == 1


def test_a_check_takes_no_more_memory_for_more_flops(product: Product) -> None:
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30));"
        "from orchestrator.cli.app import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "doctor", "--set", "target_flops=1e17"],
        cwd=product.folder, env=product.environment(), text=True, capture_output=True,
        check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert "passes over the training text" in done.stdout, done.stdout + done.stderr


def test_the_fingerprint_is_that_of_what_computes_and_not_of_its_prose(product: Product) -> None:
    """A typo fixed in a docstring does not stop every running search."""
    shutil.copytree(REPOSITORY / "objectives", product.folder / "objectives")
    code = (
        "from objectives.nanochat.objective import NanochatObjective as Ours;"
        "print(Ours.from_settings('nanochat', {}).fingerprint)"
    )

    environment = product.environment({"PYTHONPATH": str(product.folder)})
    fingerprints = []
    for name, old, new in (
        ("space.py", '"""', '"""'),  # as it is
        ("nanochat/train.py", '"""One optimiser step.', '"""A step.'),
        ("nanochat/run.py", "METRICS", "MEASURES"),
        ("nanochat/train.py", "CHUNK = 64", "CHUNK = 32"),
        ("space.py", "1.0", "1.5"),
    ):
        file = product.folder / "objectives" / name
        source = file.read_text()
        assert old in source
        file.write_text(source.replace(old, new))
        words = [sys.executable, "-c", code]
        found = subprocess.check_output(words, cwd=product.folder, env=environment, text=True)
        file.write_text(source)
        fingerprints.append(found)
    before, *same = fingerprints[:3]
    assert same == [before] * 2
    assert before not in fingerprints[3:]
