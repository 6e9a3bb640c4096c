"""Searches of functions with known properties, with inline evaluations."""

import json

from tests.product.books import Books
from tests.product.product import Done, Product

LAWS = """
import re, time
from pathlib import Path
from random import Random

def place():  # "gen_0003/cand_0000"; empty in a calibration
    here = Path.cwd().parts
    return "" if "calibration" in here else "/".join(here[-3:-1])

def noise(seed):  # by place, as points may differ in their last bits between processors
    return 0.003 * Random(f"{seed} {place()}").gauss(0.0, 1.0)

def flat(knobs, seed, budget, level=1.0, outlier="-"):  # scores far too low where it matches
    return level + noise(seed) - (0.03 if re.match(outlier, place()) else 0.0)

def peak(knobs, seed, budget):  # the baseline is best; a seed shifts all scores equally
    return Random(seed).gauss(1.0, 0.2) + knobs["a"] ** 2 + knobs["b"] ** 2 + noise(seed)

def doubtful(knobs, seed, budget):  # better than the baseline, but by less than its noise
    return 1.0 - 0.05 * (knobs["a"] != 0) + 30 * noise(seed)

def needle(knobs, seed, budget):  # one candidate of the last generation, and no neighbour
    there = Path(__file__).with_name("needle")
    if place() == "gen_0001/cand_0000":
        there.write_text(repr(knobs))
    is_found = there.exists() and there.read_text() == repr(knobs)
    return 0.5 if is_found else peak(knobs, seed, budget)

def hill(knobs, seed, budget, crash="-", diverge="-", explodes=False, uneven=False):
    if re.match(crash, f"{place()} {seed}"):
        raise RuntimeError("crash")
    share = Random(seed).uniform(0.5, 1.5) if uneven and budget > 1 else 1.0
    gain = share * (0.5 - (knobs["a"] - 0.5) ** 2 - (knobs["b"] + 0.5) ** 2)
    score = float("nan") if re.match(diverge, place()) else 1.0 - gain + noise(seed)
    return {"score": score, "metrics": {"exploding": explodes and knobs["a"] != 0}}

def working(knobs, seed, budget, later=0.02, idle=0.0):  # generation 1 takes longer, or idles
    is_later = place().startswith("gen_0001")
    end = time.process_time() + (later if is_later else 0.02)
    while time.process_time() < end:
        pass
    time.sleep(idle * is_later)
    return flat(knobs, seed, budget)
"""
KNOBS = ",".join(f'"{name}": {{"min": -1.0, "max": 1.0, "baseline": 0.0}}' for name in "ab")
TWO = "--workers 2 --executor inline"
SMALL = f"--set search.population=8 {TWO}"


def phase1(user: Product, objective: str, line: str = "", code: int = 0, **fixed: object) -> Done:
    """Run and verify a search with id `run`, of a function in LAWS or an analytic objective."""
    what = ["--objective", objective]
    if f"def {objective}(" in LAWS:
        user.write("laws.py", LAWS)
        what = ["--objective", f"python:laws:{objective}", "--set", f"knobs={{{KNOBS}}}"]
        what += ["--set", "budget=1", "--set", f"fixed={json.dumps(fixed)}"]
    size = TWO if "search.population=" in line else SMALL
    done = user(f"phase1 --tier target --run-id run {size} {line}", *what, code=code)
    if code != 2:
        user.verify("run")
    return done


def scores(books: Books, generation: int | None = None) -> list[float]:
    """Return the scores of a search, or of one of its generations."""
    return [
        one.score
        for one in books.searched
        if one.score is not None and generation in (None, one.key[1])
    ]
