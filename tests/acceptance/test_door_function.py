"""The door `python:module:function`: any function of knobs, a seed and a budget."""

import json
import tomllib

import pytest

from orchestrator import load
from tests.product.product import Product

SEARCH = """
objective = "python:train:evaluate"
[training]
budget = 50
fixed = { batch_size = 32 }
knobs.lr = { kind = "log10", min = 1e-4, max = 0.1, baseline = 0.003 }
knobs.depth = { kind = "int", min = 1, max = 9, step = 2, baseline = 3 }
knobs.share = { kind = "linear", min = 0.1234567890123456, max = 0.7, baseline = 0.5 }
"""
TRAIN = """
import json, os

def evaluate(knobs, seed, budget, batch_size):
    score = sum(1 / (2 + step) for step in range(knobs["depth"])) + knobs["lr"] + 1e-12 * seed
    with open("handed.json", "w") as file:
        json.dump([knobs, seed, budget, batch_size, score], file)
    if "EDIT" in os.environ and knobs["lr"] != 0.003:
        open(__file__, "a").write("# edited")
    return {"score": score, "steps": 7, "metrics": {"batch": batch_size}}
"""
MIN = "phase1 --tier min --assume-eval-seconds 1"
INLINE = f"{MIN} search.toml --executor inline --set search.population=8"


def user(product: Product) -> None:
    product.write("train.py", TRAIN)
    product.write("search.toml", SEARCH)


def test_a_function_gets_what_was_promised_and_its_score_comes_back(product: Product) -> None:
    """Each knob in its type and range, also in what comes out."""
    user(product)
    product(INLINE)
    product.verify()
    run, books = product.run_directory(), product.books()
    shown = load(run)
    given = [json.loads(file.read_text()) for file in run.glob("eval/**/handed.json")]
    for knobs, _, budget, batch_size, _ in given:
        assert [type(value) for value in knobs.values()] == [float, int, float]
        assert 1e-4 <= knobs["lr"] <= 0.1
        assert knobs["depth"] in {1, 3, 5, 7, 9}
        assert 0.1234567890123456 <= knobs["share"] <= 0.7
        assert (budget, type(budget), batch_size) == (50, int, 32)
    wanted = sorted((key[3], attempt.score) for key, attempt in books.results.items())
    assert sorted((seed, score) for _, seed, _, _, score in given) == wanted
    assert {(one.steps, one.metrics["batch"]) for one in shown.evaluations} == {(7, 32)}

    assert shown.recommendation is not None
    depth, best = shown.recommendation["depth"], product.json("best")
    (knob,) = (knob for knob in best["knobs"] if knob["name"] == "depth")
    settings = tomllib.loads(product("best --as toml").out)["training"]["knobs"]["depth"]
    values = [depth, knob["recommended"], knob["baseline"], settings["min"], settings["baseline"]]
    for document in (best, json.loads((run / "best.json").read_text())):
        values.append(document["recommendation"]["knobs"]["depth"])
    assert {type(value) for value in values} == {int}
    assert f"depth={depth}" in product("best --as flags").out.split()


def test_functions_of_one_name_and_commands_of_one_script_have_runs_of_their_own(
    product: Product,
) -> None:
    product.write("train.py", TRAIN)
    product.write("other.py", TRAIN)
    program = "[training]\nscore = 'score'\nargv = ['python', 'train.py', '{}', '{{budget}}']"
    names = set()
    for kind, training in (
        ("python:train:evaluate", "[training]"),
        ("python:other:evaluate", "[training]"),
        ("command", program.format("fast")),
        ("command", program.format("slow")),
    ):
        search = SEARCH.replace("python:train:evaluate", kind)
        product.write("search.toml", search.replace("[training]", training))
        (tier,) = product.json("plan --tier min search.toml")["tiers"]
        names.add(tier["plan"]["run_id"])
    assert len(names) == 4


def test_an_edit_stops_a_search_until_it_is_taken_back(product: Product) -> None:
    user(product)
    assert "changed" in product(INLINE, code=3, EDIT="").text
    user(product)
    product(INLINE)
    product.verify()


HIDE = """
from importlib import machinery, metadata
found, names = metadata.Distribution.from_name, {"torch": "no-torch", "ray": "no-ray"}
metadata.Distribution.from_name = lambda name: found(names.get(name, name))
find = machinery.PathFinder.find_spec
machinery.PathFinder.find_spec = lambda name, *more: None if name in names else find(name, *more)
"""


@pytest.mark.slow
def test_without_torch_and_ray_what_needs_neither_runs_and_the_rest_says_so(
    product: Product,
) -> None:
    user(product)
    product.write("absent/sitecustomize.py", HIDE)
    path = f"{product.folder / 'absent'}:{product.environment()['PYTHONPATH']}"
    product(f"{MIN} search.toml --executor local", PYTHONPATH=path)
    product.verify()
    core, extra = "--set target_flops=3e9 --executor local", "'cmaes-orchestrator[nanochat]'"
    for words, needed in {
        f"{MIN} {core}": extra,
        f"check knobs {core}": extra,
        f"{MIN} search.toml --run-id other --executor ray": "ray",
    }.items():
        refused = product(words, code=2, PYTHONPATH=path).err
        assert f"pip install {needed}" in refused.strip().splitlines()[-1]
