"""Searches of functions whose truth is known, with inline evaluations, in one user's folder."""

from tests.acceptance.books import Books
from tests.acceptance.product import Done, Product

LAWS = """
import json, time
from pathlib import Path
from random import Random

def place():  # ("gen_0003", "cand_0000"); of a calibration nothing
    here = Path.cwd().parts
    return ("", "") if "calibration" in here else here[-3:-1]

def noise(seed):  # by place, for points differ in their last bits from processor to processor
    return 0.003 * Random(repr((seed, place()))).gauss(0.0, 1.0)

def hill(knobs, seed, budget):  # a sphere with its optimum at (0.5, -0.5), 1 at the baseline
    return 0.5 + (knobs["a"] - 0.5) ** 2 + (knobs["b"] + 0.5) ** 2 + noise(seed)

def peak(knobs, seed, budget):  # nothing is better than the baseline; seeds move all alike
    alike = Random(seed).gauss(1.0, 0.2)
    return alike + knobs["a"] ** 2 + knobs["b"] ** 2 + noise(seed)

def dead(knobs, seed, budget):
    return 1.0 + noise(seed)

def lucky(knobs, seed, budget):  # one evaluation that seems far better
    return dead(knobs, seed, budget) - (0.03 if place() == ("gen_0003", "cand_0003") else 0.0)

def needle(knobs, seed, budget):  # one candidate, of the last generation, and nothing around it
    point, there = list(knobs.values()), Path(__file__).with_name("needle.json")
    if place() == ("gen_0001", "cand_0000"):
        there.write_text(json.dumps(point))
    is_found = there.exists() and json.loads(there.read_text()) == point
    return 0.5 if is_found else peak(knobs, seed, budget)

def exploding(knobs, seed, budget):  # lower scores, but trainings that explode
    return {"score": hill(knobs, seed, budget), "metrics": {"exploding": knobs["a"] != 0}}

def around_zero(knobs, seed, budget):
    return noise(seed)

def hill_but_for(fails):
    def law(knobs, seed, budget):
        if fails(*place()):
            raise RuntimeError("crash")
        return hill(knobs, seed, budget)
    return law

def of_two(generation, candidate):
    return generation == "gen_0001" and candidate in ("cand_0002", "cand_0005")

BEFORE_THE_LAST = ("gen_0000", "gen_0001", "gen_0002")
one_crashes = hill_but_for(lambda where, one: where in BEFORE_THE_LAST and one == "cand_0000")
two_crash = hill_but_for(of_two)
most_crash = hill_but_for(lambda generation, one: generation == "gen_0001" and one < "cand_0005")
reference_crashes = hill_but_for(lambda panel, one: panel.startswith("reference"))

def two_diverge(knobs, seed, budget):
    return float("nan") if of_two(*place()) else hill(knobs, seed, budget)

def working(knobs, seed, budget, later=1, wait=0.0):  # in generation 1 longer, or idle
    is_later = place()[0] == "gen_0001"
    end = time.process_time() + 0.02 * (later if is_later else 1)
    while time.process_time() < end:
        pass
    time.sleep(wait if is_later else 0.0)
    return hill(knobs, seed, budget)
"""
CONFIGURATION = """
objective = "python:laws:{name}"
[training]
budget = 1.0
knobs.a = {{ min = -1.0, max = 1.0, baseline = 0.0 }}
knobs.b = {{ min = -1.0, max = 1.0, baseline = 0.0 }}
"""
SMALL = ("--population", 8, "--workers", 2, "--executor", "inline")


def phase1(user: Product, name: str, objective: str, *words: object, code: int = 0) -> Done:
    """A verified search: of a function of LAWS, or of an analytic objective."""
    what = ["--objective", objective]
    if f"\ndef {objective}(" in LAWS or f"\n{objective} =" in LAWS:
        user.write("laws.py", LAWS)
        user.write(f"{objective}.toml", CONFIGURATION.format(name=objective))
        what = ["--config", f"{objective}.toml"]
    done = user("phase1", *what, "--tier", "target", *SMALL, "--run-id", name, *words, code=code)
    if code != 2:
        user.verify(name)
    return done


def books_of(user: Product, name: str) -> Books:
    return Books.of(user.run_directory(name))


def calibration_of(user: Product, name: str) -> Books:
    """The calibration of the search's objective and settings."""
    wanted = books_of(user, name).plan["objective"]
    ledgers = user.folder.glob("**/calibration/*/ledger.jsonl")
    found = (Books.of(ledger.parent) for ledger in ledgers)
    return next(books for books in found if books.plan["objective"] == wanted)


def scores(books: Books, generation: int | None = None) -> list[float]:
    """The healthy scores of a search, or of one of its generations."""
    return [
        one.score
        for one in books.searched
        if one.score is not None and generation in (None, one.key[1])
    ]
