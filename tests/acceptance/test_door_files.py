"""A configuration file says everything that flags can say, and its own command runs it."""

from tests.acceptance.books import Books
from tests.acceptance.product import Product

TEMPLATES = ("smoke", "phase1", "phase2", "campaign", "factorial", "command", "function")
SEARCH = """\
objective = "sphere"
training = { dimension = 4, noise = 0.02 }
search = { phase = "phase1", tier = "min", run_id = "mine" }
backend.executor = "inline"
"""


def test_every_template_is_a_file_that_can_be_explained(product: Product) -> None:
    product.write("train.py", "def evaluate(knobs, seed, budget): ...\n")
    for template in TEMPLATES:
        file = f"{template}.toml"
        product("init", "--template", template, "--out", file)
        assert product.json("explain", file)["values"]


def test_a_later_layer_wins_and_explain_names_it(product: Product) -> None:
    product.write("run.toml", 'objective = "nanochat"\npreset = "quick"\n[training]\nseed = 7\n')
    layer = ("--set", "training.micro_batch_size=2")
    found = product.json("explain", "run.toml", *layer)["values"]
    assert found["training.micro_batch_size"]["value"] == 2
    seed = found["training.seed"]
    assert (seed["value"], seed["source"]) == (7, "file run.toml")
    assert found["training.model"]["source"] == "default"
    sources = {row["source"].split()[0] for row in found.values()}
    assert sources >= {"default", "file", "preset", "--set"}


def test_the_first_of_three_training_budgets_wins_and_explain_says_which(product: Product) -> None:
    budgets = "target_flops = 1e8\nnum_batches = 3\nnum_epochs = 2\n"
    product.write("run.toml", f'objective = "nanochat"\n[training]\n{budgets}')
    said = product("explain", "run.toml").out.splitlines()
    for unused in ("num_batches", "num_epochs"):
        (line,) = (line for line in said if line.split()[:1] == [unused])
        assert "target_flops" in line
    used = next(line for line in said if line.split()[:1] == ["target_flops"])
    assert "num_" not in used


def test_a_file_is_run_resumed_and_equal_to_the_same_flags(product: Product) -> None:
    product.write("run.toml", SEARCH)
    product("plan", "run.toml")
    product("explain", "run.toml")
    product("doctor", "--quick", "run.toml", code=None)
    written = [path.name for path in product.folder.rglob("*")]
    assert written == ["run.toml"], "commands that only look write nothing"

    product("run", "run.toml")
    ledger = product.run_directory("mine") / "ledger.jsonl"
    before = ledger.read_bytes()
    product("run", "run.toml")
    assert ledger.read_bytes() == before, "what is done is not done again"
    product.verify("mine")

    flags = ("--set", "dimension=4", "--set", "noise=0.02", "--executor", "inline")
    product("phase1", "--tier", "min", "--objective", "sphere", *flags, "--run-id", "flags")
    essences = [Books.of(product.run_directory(name)).essence for name in ("mine", "flags")]
    assert essences[0] == essences[1]
