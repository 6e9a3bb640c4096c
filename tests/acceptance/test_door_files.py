"""A configuration file says everything that flags can say, and its own command runs it."""

from tests.product.product import Product

SEARCH = """\
objective = "sphere"
training = { dimension = 4, noise = 0.02 }
search = { phase = "phase1", tier = "min", run_id = "mine" }
backend.executor = "inline"
"""
LAYERS = """\
objective = "nanochat"
preset = "quick"
training = { seed = 7, target_flops = 1e8, num_batches = 3, num_epochs = 2 }
"""


def test_a_later_layer_wins_and_explain_names_it(product: Product) -> None:
    product.write("run.toml", LAYERS)
    layer = "explain run.toml --set training.micro_batch_size=2"
    found = product.json(layer)["values"]
    assert found["training.micro_batch_size"]["value"] == 2
    seed = found["training.seed"]
    assert (seed["value"], seed["source"]) == (7, "file run.toml")
    assert found["training.model"]["source"] == "default"
    sources = {row["source"].split()[0] for row in found.values()}
    assert sources >= {"default", "file", "preset", "--set"}

    said = {line.split()[0]: line for line in product(layer).out.splitlines() if line.split()}
    for unused in ("num_batches", "num_epochs"):  # of the three, the first wins
        assert "target_flops" in said[f"training.{unused}"]
    assert "num_" not in said["training.target_flops"]


def test_a_file_is_run_resumed_and_equal_to_the_same_flags(product: Product) -> None:
    product.write("run.toml", SEARCH)
    for command in ("plan", "explain", "doctor"):
        product(f"{command} run.toml", code=None)
    written = [path.name for path in product.folder.rglob("*")]
    assert written == ["run.toml"], "commands that only look write nothing"

    product("run run.toml")
    ledger = product.run_directory("mine") / "ledger.jsonl"
    before = ledger.read_bytes()
    product("run run.toml")
    assert ledger.read_bytes() == before, "what is done is not done again"
    product.verify("mine")

    flags = "--objective sphere --set dimension=4 --set noise=0.02 --executor inline"
    product(f"phase1 --tier min {flags} --run-id flags")
    assert product.books("mine").essence == product.books("flags").essence
