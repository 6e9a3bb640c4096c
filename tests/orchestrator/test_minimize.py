"""`minimize`, `maximize`, `forecast` and `Search`, as programs of a user call them."""

import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.product.books import Books, records
from tests.product.fixtures import product
from tests.product.product import Product, wait_until

__all__ = ["product"]

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
    tier="min", name="mine", workers=2, settings={"search.population": 6}, executor=sys.argv[3],
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
    typed, called = (
        product.folder / place / "phase1/both" for place in ("typed", "artifacts/cmaes")
    )
    assert Books.of(called).essence == Books.of(typed).essence
    assert Books.of(called).plan == Books.of(typed).plan
    product(f"phase1 search.toml {options}")  # it is over: the same run
    product.verify(called)


def test_a_closure_interrupted_or_killed_goes_on_and_another_one_is_refused(
    product: Product,
) -> None:
    undisturbed = Product(product.folder / "undisturbed")
    assert "lr is compared with the middle" in said(undisturbed, CLOSURE, 0.3, 0, "inline")
    run = product.folder / "artifacts/cmaes/phase1/mine"
    for count, signum in ((5, signal.SIGINT), (12, signal.SIGKILL)):
        process = script(product, CLOSURE, 0.3, 0.05, "local")
        wait_until(lambda count=count: records(run) > count)  # type: ignore[misc]
        process.send_signal(signum)
        _, err = process.communicate(timeout=60)
        assert signum == signal.SIGKILL or "KeyboardInterrupt" in err
        assert signum == signal.SIGKILL or not Books.of(run).open_attempts
    said(product, CLOSURE, 0.3, 0.05, "local")
    ours, theirs = Books.of(run), undisturbed.books("mine")
    assert ours.essence["results"] == theirs.essence["results"]
    assert (ours.sessions, ours.is_concluded) == (3, True)
    product.verify("mine")
    assert product.json("report mine")["answer"]["commands"] == []  # another call follows
    refused = said(product, CLOSURE, 0.4, 0.05, "local", code=1)
    assert "settings.code.loss" in refused.splitlines()[-1]


def test_who_asks_and_tells_has_a_ledger_and_goes_on_after_a_stop(product: Product) -> None:
    assert said(product, ASKED, 10).startswith("11 ")
    refused = said(product, ASKED.replace('"x": (-1.0', '"x": (-2.0'), 10, code=1)
    assert "knobs.x.min" in refused.splitlines()[-1]
    assert "Smoke test with failures" in said(product, ASKED, 1000)
    books = product.books("asked")
    assert books.sessions == 2
    statuses = {name: books.statuses[name] for name in ("ok", "error")}
    assert statuses == {"ok": 11, "error": 1}
    product.verify("asked")


WRONG = {
    "minimize(print, {})": "expected knobs by name",
    "minimize(print, {'x': 3})": "space: x: expected (low, high)",
    "minimize(print, {'x': (1.0, 0.0)})": "x: 1 to 0 is not a range",
    "minimize(print, {'x': (0.0, 1.0)}, tier='mini')": "'mini'",
    "minimize(print, {'x': (0.0, 1.0)}, settings={'verdict.confirm_seed': 3})": "Did you mean",
    "minimize(lambda k, s, lock=Lock(): 1, {'x': (0.0, 1.0)})": "cannot be sent",
    "Search({'x': (0.0, 1.0)}, name='a', tiers='min')": "tiers",
}
CALLS = f"""
from threading import Lock
from orchestrator import Search, minimize
for call in {list(WRONG)}:
    try:
        eval(call)
    except (TypeError, ValueError) as error:
        print(str(error).replace(chr(10), " "))
"""


def test_a_wrong_call_is_refused_with_what_came(product: Product) -> None:
    lines = said(product, CALLS).splitlines()
    assert [word in line for word, line in zip(WRONG.values(), lines, strict=True)] == 7 * [True]
    assert not (product.folder / "artifacts/cmaes/phase1").exists()


LOSS = """
from random import Random
def loss(knobs, seed, sign=1):
    if knobs["a"] > 0.9:
        raise RuntimeError("too far")
    noise = 0.003 * Random(f"{seed} {knobs['a']:.3f}").gauss(0, 1)
    return sign * (1 + (knobs["a"] - 0.5) ** 2 + (knobs["b"] + 0.2) ** 2 + noise)
def profit(knobs, seed):
    return loss(knobs, seed, -1)
"""
KNOBS = 'knobs={"a": {"min": -1.0, "max": 1.0, "baseline": 0.0}, '
KNOBS += '"b": {"min": -1.0, "max": 1.0, "baseline": 0.0}}'


def test_what_is_maximized_is_searched_as_its_negative_and_shown_as_it_is(
    product: Product,
) -> None:
    product.write("laws.py", LOSS)
    found: dict[str, tuple[Books, Any, Any]] = {}
    for name, words in {"loss": "", "profit": "--set direction=maximize"}.items():
        what = f"{words} --workers 2 --executor inline --objective python:laws:{name} --set"
        line = "phase1 --tier target --set search.population=8 --set search.generations=10"
        line += " --set thresholds.crash_rate_pause=1"  # the order of the failed counts, too
        line += " --set thresholds.patience_generations=3 --set thresholds.patience_improve=1e-4"
        product(f"{line} --run-id {name} {what}", KNOBS)
        product.verify(name)
        check = product.json(f"check knobs {what}", KNOBS)["check"]
        found[name] = product.books(name), product.json(f"report {name}"), check
    (losses, loss, bad), (profits, profit, good) = found["loss"], found["profit"]
    assert profits.generations == losses.generations  # points and digests
    assert profits.comparisons == losses.comparisons
    assert profit["findings"] == loss["findings"]
    assert [knob["better"] for knob in good["knobs"]] == [knob["better"] for knob in bad["knobs"]]
    negated = [-one.score for one in losses.searched if one.score is not None]
    assert [one.score for one in profits.searched if one.score is not None] == negated
    last, other = profit["generations"][-1], loss["generations"][-1]
    assert last["best_so_far"] == max(negated)
    assert last["best_by_chance"] == pytest.approx(-other["best_by_chance"])
    assert [one.generation for one in profits.fired] == [one.generation for one in losses.fired]
    assert profit["noise_band"] == pytest.approx([-end for end in reversed(loss["noise_band"])])
    assert "higher is better" in product("best profit").out
    assert "lower is better" not in product("report profit --out -").out
    line = f"phase2 --from profit --variant robust --tier min {what}".replace("max", "min")
    refused = product(line, KNOBS, code=2)
    assert "direction: 'maximize' -> 'minimize'" in refused.err
