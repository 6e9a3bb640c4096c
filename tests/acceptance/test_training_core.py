"""The training core that comes with the product: small GPTs on pinned text, by FLOPs."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator import load
from tests.acceptance.books import records
from tests.acceptance.product import PATIENCE, REPOSITORY, Product, wait_until

TINY = (
    "phase1 --tier min --assume-eval-seconds 1 --executor local --workers 1"
    " --set target_flops=3e9 --set val_windows=8"
)


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


def test_a_wrong_setting_is_refused_in_one_line(product: Product) -> None:
    for setting in ("micro_batch_size=true", "checkpoint_dir=", "target_flop=1e9", "seed=true"):
        said = product(f"train --set num_batches=1 --set {setting}", code=2).text
        assert setting.partition("=")[0] in said
        assert len(said.strip().splitlines()) == 1
    file = product.write("t.toml", "[training]\nmicro_batch_size = true\n")
    for command in ("explain", "train"):
        assert "expected a number" in product(f"{command} t.toml", code=2).err
    assert list(product.folder.iterdir()) == [file]


def test_a_check_takes_no_more_memory_for_more_flops(product: Product) -> None:
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30));"
        "from orchestrator.cli.app import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "doctor", "--quick", "--set", "target_flops=1e17"],
        cwd=product.folder, env=product.environment(), text=True, capture_output=True,
        check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert "passes over the training text" in done.stdout, done.stdout + done.stderr


def test_no_held_out_document_of_a_folder_of_shards_is_trained_on(product: Product) -> None:
    pyarrow, parquet = (pytest.importorskip(f"pyarrow{name}") for name in ("", ".parquet"))
    documents = [f"document {n} " + "words " * 99 for n in range(40)]
    (product.folder / "shards").mkdir()
    for number, rows in enumerate((documents[:30], documents[20:])):
        table = pyarrow.table({"text": rows})
        parquet.write_table(table, product.folder / f"shards/{number}.parquet")
    planned = product.json("plan --tier min --set data=shards")
    assert planned["tiers"][0]["plan"]["provenance"]["documents"] == 40


def test_the_fingerprint_is_that_of_what_computes_and_not_of_its_prose(product: Product) -> None:
    """A typo that is mended in a docstring does not make every running search another one."""
    shutil.copytree(REPOSITORY / "objectives", product.folder / "objectives")
    code = (
        "from objectives.nanochat.objective import NanochatObjective as Ours;"
        "print(Ours.from_settings({}).fingerprint)"
    )

    def fingerprint(name: str, old: str, new: str) -> str:
        file = product.folder / "objectives" / name
        source = file.read_text()
        assert old in source
        file.write_text(source.replace(old, new))
        environment = product.environment({"PYTHONPATH": str(product.folder)})
        found = subprocess.check_output(
            [sys.executable, "-c", code], cwd=product.folder, env=environment, text=True
        )
        file.write_text(source)
        return found

    before = fingerprint("space.py", '"""', '"""')
    assert fingerprint("nanochat/train.py", '"""One optimiser step.', '"""A step.') == before
    assert fingerprint("nanochat/run.py", "METRICS", "MEASURES") == before
    assert fingerprint("nanochat/train.py", "CHUNK = 64", "CHUNK = 32") != before
    assert fingerprint("space.py", "1.0", "1.5") != before


@pytest.mark.slow
def test_the_default_training_scores_what_it_always_did(product: Product) -> None:
    product("train --set seed=123 --set target_flops=3e10")
    assert found(product.folder / "checkpoints/ckpts")["bpb"] == pytest.approx(3.1775, abs=5e-3)


@pytest.mark.slow
def test_a_training_that_is_killed_goes_on_bit_for_bit(product: Product) -> None:
    words = "train --set num_batches=60 --set save_interval_steps=5 --set checkpoint_dir="
    product(f"{words}whole")
    product.kill_at(lambda: len(list(product.folder.glob("cut/step*.pt"))) > 1, f"{words}cut")
    process = product.start(f"{words}cut")
    wait_until(lambda: len(list(product.folder.glob("cut/step*.pt"))) > 2)
    process.terminate()
    out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, "Stopped. Repeat the command" in out) == (143, True), out
    product(f"{words}cut")
    assert found(product.folder / "cut") == found(product.folder / "whole")


def found(directory: Path) -> dict[str, Any]:
    summary = json.loads((directory / "summary.json").read_text())
    return {name: summary[name] for name in ("bpb", "steps", "health")}
