"""What is refused, and what is warned of, before anything is trained."""

import re
from pathlib import Path
from typing import Any

import pytest

from objectives.api import SetupError
from objectives.checkout import flags


def test_a_checkout_that_can_be_trained_is_not_complained_of(load: Any, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert load().preflight() == ()
    assert sorted(tmp_path.rglob("*")) == before


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("python", {"python": "/nowhere/python"}, "expected a Python interpreter.*setting python"),
    ("data", {"data": "/nowhere"}, r"data: expected two or more \*\.parquet in /nowhere"),
    ("tokenizer", {"tokenizer": "/nowhere"}, r"tokenizer\.pkl is not to be had.*tok_train makes"),
    (
        "flag",
        {"flags": {"warmup-ratio": 0.1}},
        r"no flag --warmup-ratio\. Its nearest is --warm(up-steps|down-ratio)\.",
    ),
    ("underscore", {"flags": {"eval_every": 3}}, r"no flag --eval_every\. Its nearest is --eval-e"),
    (
        "knob",
        {"knobs": {"adam-beta1": {"min": 0.5, "max": 0.9, "baseline": 0.8}}},
        "has no flag --adam-beta1",
    ),
    ("inf", {"flags": {"eval-tokens": 2047}}, r"eval-tokens 2047 is less than .* 16 x 128 = 2048"),
    ("batch", {"flags": {"total-batch-size": 3000}}, "total-batch-size 3000 is no multiple of"),
    ("no score", {"flags": {"eval-every": -1}}, "eval-every: expected 1 or more, got -1"),
    ("no score either", {"flags": {"eval-every": 0}}, "eval-every: expected 1 or more, got 0"),
]


@pytest.mark.parametrize(("wrong", "said"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_cannot_come_to_a_score_is_refused(
    wrong: dict[str, Any], said: str, load: Any
) -> None:
    with pytest.raises(SetupError, match=said):
        load(**wrong).preflight()


def test_a_default_of_the_checkouts_own_is_as_bad_as_a_flag(load: Any, settings: Any) -> None:
    given = {name: value for name, value in settings()["flags"].items() if name != "max-seq-len"}
    with pytest.raises(SetupError, match="16 x 2048 = 32768"):
        load().__class__.from_settings(settings() | {"flags": given}).preflight()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print('hello')", "has no flag --"),
    ],
)
def test_a_program_that_does_not_name_its_flags_is_refused(
    text: str, said: str, load: Any, checkout: Path
) -> None:
    (checkout / "scripts/base_train.py").write_text(text)
    with pytest.raises(SetupError, match=said):
        load().preflight()


def test_an_interpreter_without_torch_is_refused(load: Any, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text('#!/bin/sh\necho \'{"python": "3.11.7"}\'\n')
    bare.chmod(0o755)
    with pytest.raises(SetupError, match="has no torch: expected the interpreter that has nanoch"):
        load(python=str(bare)).preflight()


WARNED: list[tuple[str, dict[str, Any], str]] = [
    ("seeds", {"seeds": False}, "seeds = false: every seed is nanochat's own"),
    ("batch", {"flags": {"total-batch-size": -1}}, "total-batch-size is not given"),
    ("warm-up", {"flags": {"warmup-steps": 40}}, "warmup-steps 40 is more than a third of the st"),
    ("no step", {"target_flops": 1e9}, "target_flops 1e[+]09 hardly pays for one step"),
]


@pytest.mark.parametrize(("given", "said"), [w[1:] for w in WARNED], ids=[w[0] for w in WARNED])
def test_what_wastes_a_search_is_warned_of(given: dict[str, Any], said: str, load: Any) -> None:
    (warning,) = load(**given).preflight()
    assert re.search(said, warning)


def test_a_checkout_with_another_default_says_where_the_search_begins(
    load: Any, checkout: Path
) -> None:
    source = checkout / "scripts/base_train.py"
    source.write_text(source.read_text().replace("default=0.02)", "default=0.04)"))
    (warning,) = load().preflight()
    assert "matrix-lr begins at 0.02; this checkout's own default is 0.04" in warning
    assert load(flags={"matrix-lr": 0.04}).preflight() == ()
    assert load(space="scalar-lr").preflight() == ()


def test_flags_and_defaults_are_read_from_the_source(checkout: Path) -> None:
    known = flags.declared(checkout / "scripts/base_train.py")
    assert known["matrix-lr"] == 0.02
    assert known["eval-tokens"] == 80 * 524288
    assert known["num-iterations"] == -1
    assert known["fp8"] is None
    assert known.spelled("eval-every") == "eval-every"
    assert known.spelled("eval-never") is None


@pytest.mark.parametrize("text", ["def (", "x = '\0'"])
def test_a_source_that_cannot_be_read_is_a_fault_of_the_setup(text: str, tmp_path: Path) -> None:
    (tmp_path / "base_train.py").write_text(text)
    with pytest.raises(SetupError, match=r"cannot read the flags of .*base_train\.py"):
        flags.declared(tmp_path / "base_train.py")
