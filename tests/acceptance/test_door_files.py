"""A configuration file says everything that flags can say, and its own command runs it."""

from pathlib import Path

import pytest

from tests.acceptance.books import Books
from tests.acceptance.product import Product

TEMPLATES = ("smoke", "phase1", "phase2", "campaign", "factorial", "command", "function")
SEARCH = """\
objective = "sphere"
[training]
dimension = 4
noise = 0.02
[search]
phase = "phase1"
tier = "min"
run_id = "mine"
[backend]
executor = "inline"
"""


def values(product: Product, *words: str) -> dict[str, tuple[object, str]]:
    """Every resolved setting with where its value came from."""
    found = product.json("explain", *words)["values"]
    return {key: (row["value"], row["source"]) for key, row in found.items()}


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_is_a_file_that_can_be_explained(product: Product, template: str) -> None:
    product.write("train.py", "def evaluate(knobs, seed, budget): ...\n")
    product("init", "--template", template, "--out", "first.toml")
    before = (product.folder / "first.toml").read_bytes()

    assert values(product, "first.toml")
    product("init", "--template", template, "--out", "first.toml", code=2)
    assert (product.folder / "first.toml").read_bytes() == before, "a user's file is kept"


def test_a_later_layer_wins_and_explain_names_it(product: Product) -> None:
    product.write("run.toml", 'objective = "nanochat"\npreset = "quick"\n[training]\nseed = 7\n')

    found = values(product, "run.toml", "--set", "training.micro_batch_size=2")

    assert found["training.micro_batch_size"][0] == 2
    assert found["training.seed"] == (7, "file run.toml")
    assert found["training.model"][1] == "default"
    sources = {source for _, source in found.values()}
    assert {source.split()[0] for source in sources} >= {"default", "file", "preset", "--set"}


@pytest.mark.xfail(strict=True, reason="explain shows three training budgets, not which is used")
def test_the_first_of_three_training_budgets_wins_and_explain_says_which(product: Product) -> None:
    budgets = "target_flops = 1e8\nnum_batches = 3\nnum_epochs = 2\n"
    product.write("run.toml", f'objective = "nanochat"\n[training]\n{budgets}')

    said = product("explain", "run.toml").out.splitlines()

    assert any("target_flops" in line and "num_batches" in line for line in said)


def test_a_file_is_run_resumed_and_equal_to_the_same_flags(product: Product) -> None:
    product.write("run.toml", SEARCH)
    product("run", "run.toml")
    run = product.run_directory("mine")
    ledger = (run / "ledger.jsonl").read_bytes()
    product("run", "run.toml")
    assert (run / "ledger.jsonl").read_bytes() == ledger, "what is done is not done again"

    flags = ("--set", "dimension=4", "--set", "noise=0.02", "--executor", "inline")
    product("phase1", "--tier", "min", "--objective", "sphere", *flags, "--run-id", "flags")
    assert Books.of(run).essence == Books.of(product.run_directory("flags")).essence
    product.verify("mine")


def test_nothing_is_written_by_commands_that_only_look(product: Product) -> None:
    product.write("run.toml", SEARCH)

    for words in (
        ("explain", "run.toml"),
        ("plan", "phase1", "--config", "run.toml"),
        ("dry-run", "run.toml"),
        ("doctor", "--quick", "--config", "run.toml"),
        ("status", "mine"),
    ):
        product(*words, code=None)

    assert list(product.folder.rglob("*")) == [product.folder / Path("run.toml")]
