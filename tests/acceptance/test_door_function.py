"""The door `python:module:function`: any function of knobs, a seed and a budget."""

import json
import subprocess
import sys
import tomllib

import pytest

from orchestrator import load
from tests.acceptance.books import Books
from tests.acceptance.product import Product

SEARCH = """
objective = "python:train:evaluate"
[training]
budget = 50
fixed = { batch_size = 32 }
knobs.lr = { kind = "log10", min = 1e-4, max = 0.1, baseline = 0.003 }
knobs.depth = { kind = "int", min = 1, max = 9, step = 2, baseline = 3 }
knobs.share = { kind = "linear", min = 0.1234567890123456, max = 0.7, baseline = 0.5 }
[thresholds]
crash_rate_pause = 1.0
nan_rate_pause = 1.0
"""
TRAIN = """
import json

def evaluate(knobs, seed, budget, batch_size):
    score = sum(1 / (2 + step) for step in range(knobs["depth"])) + knobs["lr"] + 1e-12 * seed
    with open("handed.json", "w") as file:
        json.dump([knobs, seed, budget, batch_size, score], file)
    return score
"""
MIN = ("phase1", "--tier", "min", "--config", "search.toml", "--assume-eval-seconds", "1")
INLINE = ("--executor", "inline", "--population", "8")
ON_ITS_CANDIDATES = """
import os
from pathlib import Path

STATEMENTS = {statements}

def evaluate(knobs, seed, budget, batch_size):
    for number, statement in enumerate(STATEMENTS if knobs["lr"] != 0.003 else ()):
        done = Path(__file__).with_name(f"done-{{number}}")
        if not done.exists():
            done.touch()
            exec(f"def act():\\n {{statement}}", globals())
            return act()
    return 1 + knobs["lr"]
"""
"""The first candidates that are not the baseline each execute a statement."""


def user(product: Product, train: str = TRAIN, search: str = SEARCH) -> None:
    product.write("train.py", train)
    product.write("search.toml", search)


def test_a_function_gets_what_was_promised_and_its_score_comes_back(product: Product) -> None:
    """Each knob in its type and range, ends of ranges included."""
    user(product)
    product.write("known.json", '[{"share": 0.1234567890123456}]')
    product(*MIN, "--executor", "local", "--known", "known.json")
    run = product.run_directory()
    books = Books.of(run)
    given = [json.loads(file.read_text()) for file in run.glob("eval/**/handed.json")]
    assert len(given) == len(books.results) == len(books.attempts)
    for knobs, _, budget, batch_size, _ in given:
        assert [type(value) for value in knobs.values()] == [float, int, float]
        assert 1e-4 <= knobs["lr"] <= 0.1
        assert knobs["depth"] in {1, 3, 5, 7, 9}
        assert (budget, type(budget), batch_size) == (50, int, 32)
    assert min(knobs["share"] for knobs, *_ in given) == 0.1234567890123456
    assert {(seed, score) for _, seed, _, _, score in given} == {
        (key[3], attempt.score) for key, attempt in books.results.items()
    }
    product.verify()


def test_int_knobs_are_ints_wherever_a_recommendation_is_read(product: Product) -> None:
    user(product)
    product(*MIN, *INLINE)
    run = product.run_directory()
    recommended = load(run).recommendation
    assert recommended is not None
    depth = recommended["depth"]
    best = product.json("best", run)
    shown = next(knob for knob in best["recommended"]["knobs"] if knob["name"] == "depth")
    on_file = json.loads((run / "best.json").read_text())
    settings = tomllib.loads(product("best", run, "--toml").out)["training"]["knobs"]["depth"]
    values = [
        *(depth, shown["value"], shown["baseline"], best["recommendation"]["knobs"]["depth"]),
        *(on_file["recommendation"]["knobs"]["depth"], *map(settings.get, ("min", "baseline"))),
        *(evaluation.knobs["depth"] for evaluation in load(run).evaluations),
    ]
    assert {type(value) for value in values} == {int}
    assert f"depth={depth}" in product("best", run, "--flags").out.split()
    again = f"from train import *; evaluate({recommended}, 1, 50, 32)"
    subprocess.run([sys.executable, "-c", again], cwd=product.folder, check=True)
    product.verify()


def test_the_template_fits_the_function_that_it_describes(product: Product) -> None:
    product("init", "--template", "function", "--out", "search.toml")
    training = tomllib.loads((product.folder / "search.toml").read_text())["training"]
    assert type(training["budget"]) is int
    assert {type(training["knobs"]["depth"][name]) for name in ("min", "max", "baseline")} == {int}
    product.write(
        "train.py",
        "def evaluate(knobs, seed, budget):\n"
        "    return knobs['lr'] + sum(1 for _ in range(budget) for _ in range(knobs['depth']))\n",
    )
    product(*MIN, *INLINE)
    product.verify()


def test_two_functions_of_one_name_and_two_commands_have_runs_of_their_own(
    product: Product,
) -> None:
    knobs = "knobs.x = { min = 0.0, max = 1.0, baseline = 0.5 }"
    names = set()
    for name in ("train", "other"):
        product.write(f"{name}.py", "def evaluate(knobs, seed, budget):\n    return 1")
        product.write("f.toml", f'objective = "python:{name}:evaluate"\n[training]\n{knobs}')
        program = f'argv = ["python", "{name}.py"]\nscore = "score"'
        product.write("c.toml", f'objective = "command"\n[training]\n{program}\n{knobs}')
        for file in ("f.toml", "c.toml"):
            planned = product.json("plan", "phase1", "--tier", "min", "--config", file)
            names.add(planned["tiers"][0]["plan"]["run_id"])
    assert len(names) == 4


def test_calls_that_fail_are_their_configurations_failures(product: Product) -> None:
    endings = {
        "raise ValueError('of another shape')": ("error", "of another shape"),
        "return float('nan')": ("nan", "nan"),
        "return '0.5'": ("error", "'0.5'"),
        "return None": ("error", "None"),
        "os.kill(os.getpid(), 9)": ("error", "SIGKILL"),
    }
    user(product, ON_ITS_CANDIDATES.format(statements=list(endings)))
    product(*MIN, "--executor", "local", "--workers", "1", "--population", "8")
    failed = [one for one in Books.of(product.run_directory()).attempts if one.status != "ok"]
    assert len(failed) == len(endings)
    for ending in endings.values():
        assert (
            len([one for one in failed if one.status == ending[0] and ending[1] in one.cause]) == 1
        )
    assert "of another shape" in " ".join(product("report").text.split())
    product.verify()


def test_an_edit_stops_a_search_until_it_is_taken_back(product: Product) -> None:
    edit = "open(__file__, 'a').write('# edited')"
    user(product, ON_ITS_CANDIDATES.format(statements=["pass; " + edit + "; return 1"]))
    source = product.folder / "train.py"
    whole = source.read_text()
    assert "changed" in product(*MIN, *INLINE, code=3).text
    books = Books.of(product.run_directory())
    source.write_text(whole)
    product(*MIN, *INLINE)
    assert len(Books.of(product.run_directory()).results) > len(books.results)
    product.verify()


def test_what_a_function_measures_is_recorded_and_inline_limits_its_threads(
    product: Product,
) -> None:
    user(
        product,
        "import os\ndef evaluate(knobs, seed, budget, batch_size):\n"
        "    own = {'threads': float(os.environ['OMP_NUM_THREADS'])}\n"
        "    return {'score': knobs['lr'], 'steps': 7, 'metrics': own}\n",
    )
    product(*MIN, *INLINE, "--threads", "1", OMP_NUM_THREADS="2")
    shown = load(product.run_directory()).evaluations
    assert {(one.steps, one.metrics["threads"]) for one in shown} == {(7, 1)}
    product.verify()


@pytest.mark.parametrize(
    ("change", "train", "word"),
    [
        (("train:evaluate", "nowhere:evaluate"), TRAIN, "nowhere"),
        (("train:evaluate", "train:absent"), TRAIN, "absent"),
        (("min = 0.1234567890123456, max = 0.7", "min = -1e308, max = 1e308"), TRAIN, "share"),
        (("", ""), "import absent_module\n" + TRAIN, "absent_module"),
        (("", ""), "def evaluate(knobs):\n    return 1", "seed"),
        (("", ""), "def evaluate(:", "train.py"),
        (("", ""), "from budgets.mine import loss\n" + TRAIN, "budgets"),
        (("", ""), "def evaluate(k, s, b, batch_size):\n    import budgets", "budgets"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused_before_anything_is_spent(
    product: Product, change: tuple[str, str], train: str, word: str
) -> None:
    user(product, train, SEARCH.replace(*change))
    if word == "budgets":
        product.write("budgets/mine.py", "loss = 1")
    refused = product(*MIN, *INLINE, code=2)
    assert word in refused.err
    assert len(refused.err.strip().splitlines()) == 1
    assert not list(product.folder.glob("**/ledger.jsonl"))
    if word == "absent":  # that is seen without importing anything
        assert word in product("dry-run", "--config", "search.toml", code=2).text


ABSENT = """
from importlib import metadata

from_name = metadata.Distribution.from_name

def found(name):
    if name in ("torch", "ray"):
        raise metadata.PackageNotFoundError(name)
    return from_name(name)

metadata.Distribution.from_name = found
"""
NOT_HERE = "raise ModuleNotFoundError('No module named ' + repr(__name__), name=__name__)"


def test_without_torch_and_ray_what_needs_neither_runs_and_the_rest_says_so(
    product: Product,
) -> None:
    product.write("absent/sitecustomize.py", ABSENT)
    for package in ("torch", "ray"):
        product.write(f"absent/{package}/__init__.py", NOT_HERE)
    path = f"{product.folder / 'absent'}:{product.environment()['PYTHONPATH']}"
    user(product)
    for words in ((*MIN, "--executor", "local"), ("report", "--html"), ("verify",)):
        product(*words, fresh=True, PYTHONPATH=path)
    core = (*MIN[:3], *MIN[-2:], "--set", "target_flops=3e9", "--executor", "local")
    ray = (*MIN, "--run-id", "other", "--executor", "ray")
    for needed, refusable in {"torch": core, "ray": ray}.items():
        refused = product(*refusable, fresh=True, code=2, PYTHONPATH=path).err
        assert f"pip install {needed}" in refused.strip().splitlines()[-1]
        assert "Traceback" not in refused
