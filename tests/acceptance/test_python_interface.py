"""The Python interface: `load`, `minimize` and `Search`."""

import re
import signal
import subprocess
import sys

import pytest

from orchestrator import load
from tests.product.books import SEARCH, Books, records
from tests.product.product import REPOSITORY, Product, wait_until

IMPORTS = """import sys, orchestrator
assert not {"torch", "ray", "cma", "numpy", "scipy", "pandas", "matplotlib"} & set(sys.modules)
orchestrator.load(sys.argv[1]).recommendation
assert not {"torch", "ray"} & set(sys.modules)"""


def of_range(books: Books, point: list[float]) -> dict[str, float]:
    """The knobs of a space that is linear throughout."""
    knobs = zip(books.plan["space"]["knobs"], point, strict=True)
    return {one["name"]: one["low"] + x * (one["high"] - one["low"]) for one, x in knobs}


@pytest.mark.parametrize("name", ["go_fades", "statuses", "all_failed", "interrupted"])
def test_the_tables_are_those_of_the_ledger(looker: Product, name: str) -> None:
    pytest.importorskip("pandas")
    books, run = looker.books(name), load(looker.run_directory(name))
    settled = {(*one.key, one.number): one for one in books.attempts if one.status is not None}
    frame, generations = run.table(), run.generations().dropna(subset="best")
    assert len(frame) == len(settled) == len(run.evaluations)
    for row in frame.astype(object).where(frame.notna(), None).to_dict("records"):
        batch = row["comparison"] or SEARCH
        generation, candidate = row["generation"], row["candidate"]
        one = settled[batch, generation, candidate, row["seed"], row["attempt"]]
        assert (row["status"], row["score"]) == (one.status, one.score)
        assert row["charged_ms"] == one.charged_ms
        if batch == SEARCH:
            knobs = of_range(books, books.generations[generation]["points"][candidate])
            assert {knob: row[f"knob.{knob}"] for knob in knobs} == pytest.approx(knobs)
    for row in generations.to_dict("records"):
        own = [mean for place, mean in books.candidate_means.items() if place[0] == row["number"]]
        assert [row["best"], row["mean"]] == pytest.approx([min(own), sum(own) / len(own)])


def test_a_recommendation_is_what_won_and_none_after_a_no_go(looker: Product) -> None:
    books, go = looker.books("go"), load(looker.run_directory("go"))
    no_go = load(looker.run_directory("no_go_noise"))
    assert go.recommendation == pytest.approx(of_range(books, books.essence["verdict"]["point"]))
    assert no_go.recommendation is None
    assert no_go.best is not None


def test_neither_import_nor_load_brings_torch_or_ray(looker: Product) -> None:
    words = [sys.executable, "-c", IMPORTS, str(looker.run_directory("go"))]
    subprocess.run(words, cwd=REPOSITORY, check=True)


CLOSURE = """
import sys, time
from random import Random
from orchestrator import minimize

def made(place, seconds):
    def loss(knobs, seed):
        time.sleep(seconds)
        return 1 + (knobs["lr"] - place) ** 2 + knobs["n"] / 100 + 0.001 * Random(seed).random()
    return loss

run = minimize(
    made(*map(float, sys.argv[1:3])),
    {"lr": (0.0, 1.0), "n": (1, 9, "int", 5)},
    tier="min", name="mine", workers=2, settings={"search.population": 6},
)
assert type(run.best["n"]) is int
print(run.verdict, run.cautions)
"""
MODULE = """
def evaluate(knobs, seed):
    return 1 + knobs["a"] ** 2 + knobs["b"] + 1e-6 * (seed % 7)
"""
CALL = """
import train
from orchestrator import forecast, minimize
space = {"a": (-1.0, 1.0, "linear", 0.5), "b": (1e-3, 1.0, "log", 0.1)}
options = dict(tier="min", name="both", workers=2, executor="inline",
               settings={"evaluation.assume_eval_seconds": 1})
print([one.forecast for one in forecast(train.evaluate, space, **options).tiers])
print(minimize(train.evaluate, space, **options))
"""
SAME = """
objective = "python:train:evaluate"
[training.knobs]
a = { min = -1.0, max = 1.0, baseline = 0.5 }
b = { kind = "log10", min = 1e-3, max = 1.0, baseline = 0.1 }
"""
ASKED = """
import sys
from random import Random
from orchestrator import Search

with Search({"x": (-1.0, 1.0)}, name="asked", tier="min", workers=3) as search:
    told, open_trials = 0, []
    while not search.is_over and told < int(sys.argv[1]):
        if (trial := search.ask()) is not None:
            open_trials.append(trial)
            continue
        for one in open_trials:
            if told == 9:
                search.tell(one, error="it broke")
            else:
                search.tell(one, 1 + one.knobs["x"] ** 2 + 0.01 * Random(one.seed).random())
            told += 1
        open_trials = []
    print(told, search.result().verdict)
"""


def script(product: Product, text: str, *words: object) -> "subprocess.Popen[str]":
    """Begin a program of the user's; it is killed with the test's end."""
    command = [sys.executable, str(product.write("script.py", text)), *map(str, words)]
    process = subprocess.Popen(
        command, cwd=product.folder, env=product.environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    product.started.append(process)
    return process


def said(product: Product, text: str, *words: object, code: int = 0) -> str:
    """What a program of the user's prints that ends with this code."""
    process = script(product, text, *words)
    out, err = process.communicate(timeout=100)
    assert process.returncode == code, err
    return out + err


def test_a_call_is_the_run_that_the_command_line_makes(product: Product) -> None:
    product.write("train.py", MODULE)
    product.write("search.toml", SAME)
    options = "--tier min --run-id both --workers 2 --executor inline --assume-eval-seconds 1"
    product(f"phase1 search.toml {options} --runs-dir typed")
    (tier,) = product.json(f"plan search.toml {options}")["tiers"]
    shown = said(product, CALL)
    assert f"hours_p50={tier['forecast']['hours_p50']}" in shown
    assert "Smoke test passed" in shown
    typed, called = (
        product.folder / place / "phase1/both" for place in ("typed", "artifacts/cmaes")
    )
    assert Books.of(called).essence == Books.of(typed).essence
    assert Books.of(called).plan == Books.of(typed).plan
    product(f"phase1 search.toml {options}")  # it is over: the same run
    product.verify(called)


def test_a_closure_killed_in_mid_run_goes_on_and_another_one_is_refused(product: Product) -> None:
    undisturbed = Product(product.folder / "undisturbed")
    assert "No baseline was given for lr" in said(undisturbed, CLOSURE, 0.3, 0)
    run = product.folder / "artifacts/cmaes/phase1/mine"
    for count in (5, 12):
        process = script(product, CLOSURE, 0.3, 0.05)
        wait_until(lambda count=count: records(run) > count)  # type: ignore[misc]
        process.kill()
        process.communicate()
    said(product, CLOSURE, 0.3, 0.05)
    ours, theirs = Books.of(run), undisturbed.books("mine")
    assert ours.essence["results"] == theirs.essence["results"]
    assert ours.sessions == 3
    product.verify("mine")
    refused = said(product, CLOSURE, 0.4, 0.05, code=1)
    assert "settings.code.loss" in refused.splitlines()[-1]


def test_ctrl_c_lets_what_runs_end_and_the_next_call_goes_on(product: Product) -> None:
    process = script(product, CLOSURE, 0.3, 0.1)
    run = product.folder / "artifacts/cmaes/phase1/mine"
    wait_until(lambda: records(run) > 5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in err
    assert not Books.of(run).open_attempts
    said(product, CLOSURE, 0.3, 0.1)
    assert Books.of(run).is_concluded
    product.verify("mine")


def test_who_asks_and_tells_has_a_ledger_and_goes_on_after_a_stop(product: Product) -> None:
    assert said(product, ASKED, 10).startswith("11 ")
    assert "1 of 12 failed" in said(product, ASKED, 1000)
    books = product.books("asked")
    assert books.sessions == 2
    statuses = {name: books.statuses[name] for name in ("ok", "error", "lost")}
    assert statuses == {"ok": 11, "error": 1, "lost": 0}
    product.verify("asked")


@pytest.mark.parametrize(
    ("call", "word"),
    [
        ("minimize(print, {})", "expected knobs by name"),
        ("minimize(print, {'x': 3})", "space: x: expected (low, high)"),
        ("minimize(print, {'x': (1.0, 0.0)})", "x: min 1 must be below max 0"),
        ("minimize(print, {'x': (0.0, 1.0)}, tier='mini')", "'mini'"),
        (
            "minimize(print, {'x': (0.0, 1.0)}, settings={'verdict.confirm_seed': 3})",
            "Did you mean",
        ),
        ("minimize(lambda k, s, lock=threading.Lock(): 1, {'x': (0.0, 1.0)})", "cannot be sent"),
        ("Search({'x': (0.0, 1.0)}, name='a', tiers='min')", "tiers"),
    ],
)
def test_a_wrong_call_is_refused_with_what_came(product: Product, call: str, word: str) -> None:
    text = f"import threading\nfrom orchestrator import Search, minimize\n{call}"
    assert word in said(product, text, code=1).splitlines()[-1]
    assert not (product.folder / "artifacts/cmaes/phase1").exists()


def test_the_suite_knows_the_product_from_outside() -> None:
    """No test here imports the product's inside: only what the documentation calls public."""
    inside = re.compile(
        r"^\s*(?:from|import) (?:budgets|objectives|orchestrator)\b.*", re.MULTILINE
    )
    files = [
        *(REPOSITORY / "tests").glob("acceptance/*.py"),
        *REPOSITORY.glob("tests/product/*.py"),
    ]
    found = {line.strip() for file in files for line in inside.findall(file.read_text())}
    assert found <= {
        f"from orchestrator import {names}"
        for names in ("load", "minimize", "forecast, minimize", "Search", "Search, minimize")
    }
