"""A function that is handed over: the same one in every process, another one where it differs."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from objectives.api import Context
from objectives.callable import CallableObjective, fingerprint, spec_of
from objectives.registry import load
from tests.product.product import REPOSITORY

KNOBS = {"x": {"min": 0.0, "max": 1.0, "baseline": 0.5}}

ELSEWHERE = """
import numpy as np
from objectives.callable import fingerprint
names = {"b", "a", "c"}
table = {"k": [1, 2.5, None], "array": np.arange(6.0)}
def inner(x):
    return x in names
def loss(knobs, seed, scale=2.0):
    if inner("a") and "q" in {"p", "q", "r"}:
        return scale * table["k"][0]
    return float(np.sum(table["array"]))
print(fingerprint(loss))
"""


def elsewhere(seed: int, *texts: str) -> list[str]:
    """What a new process prints for these texts."""
    return subprocess.run(
        [sys.executable, "-c", "".join(texts)],
        env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()


def test_it_is_the_same_in_every_process() -> None:
    assert len({tuple(elsewhere(seed, ELSEWHERE)) for seed in range(3)}) == 1


CHANGES = {
    "2.5, None": "2.6, None",
    "arange(6.0)": "arange(7.0)",
    "scale=2.0": "scale=3.0",
    "x in names": "x not in names",
    '"c"}': '"d"}',
    "np.sum": "np.max",
}


def test_what_it_computes_with_makes_it_another() -> None:
    others = [ELSEWHERE.replace(was, now) for was, now in CHANGES.items()]
    assert len(set(elsewhere(1, ELSEWHERE, *others))) == 1 + len(CHANGES)


def test_a_closure_is_evaluated_from_its_file(tmp_path: Path) -> None:
    table, calls = np.arange(3.0), []

    def loss(knobs: dict[str, float], seed: int) -> float:
        calls.append(seed)  # of a copy
        return knobs["x"] + seed + float(table[2])

    spec = spec_of(loss, KNOBS, None, tmp_path, tmp_path / "functions")
    objective = load(spec)
    assert isinstance(objective, CallableObjective)
    context = Context(tmp_path, "cpu", 1, lambda _: None)
    assert objective.evaluate({"x": 0.25}, 3, context).score == 5.25
    assert calls == []
    other = spec_of(lambda knobs, seed: 1.0, KNOBS, None, tmp_path, tmp_path / "functions")
    assert load(other).fingerprint != objective.fingerprint


def test_recursion_ends(tmp_path: Path) -> None:
    loop: list[object] = []
    loop.append(loop)

    def loss(knobs: dict[str, float], seed: int) -> float:
        return len(loop) if seed else loss(knobs, seed)

    assert fingerprint(loss) == fingerprint(loss)
