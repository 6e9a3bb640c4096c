"""Installed versions against what the project asks for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.doctor import machine
from orchestrator.doctor.asking import Ask, NoAnswerError
from orchestrator.doctor.versions import (
    NAMED,
    imports,
    metadata,
    packages,
    python,
    required,
    trackers,
)

LINES = (
    "cma<5,>=4.4",
    "numpy >=2.0, <3",
    "ray[default] (>=2.54,<3)",
    'tokenizers>=0.21; extra == "bpe"',
    "rich",
)


def answers(**answer: Any) -> Ask:
    said: Mapping[str, Any] = {
        "failed": {},
        "seconds": 1.0,
        "cuda_devices": 0,
        "cuda_built": None,
        **answer,
    }
    return lambda: said


def silent() -> Mapping[str, Any]:
    raise NoAnswerError("no answer within 3 s")


def test_requirements_are_read_as_metadata_writes_them_without_extras() -> None:
    assert [str(one) for one in required(LINES)] == [
        "cma<5,>=4.4",
        "numpy<3,>=2.0",
        "ray[default]<3,>=2.54",
        "rich",
    ]


@pytest.mark.parametrize(
    ("version", "state"),
    [
        ("4.4", "ok"),
        ("4.4.0", "ok"),
        ("4.10.1", "ok"),
        ("4.3.9", "missing"),
        ("5", "missing"),
        ("5.0.0", "missing"),
        ("4.4rc1", "missing"),
        ("4.4.dev3", "missing"),
        ("4.4.post1", "ok"),
        ("5.0rc1", "missing"),
        ("4.5.0+cpu", "ok"),
        ("4.5.0.dev20260101+cu128", "ok"),
        ("unknown", "unknown"),
    ],
)
def test_a_version_is_compared_by_its_numbers_and_not_as_text(version: str, state: str) -> None:
    (found,) = packages(required(LINES[:1]), {"cma": version}.get)
    assert found.state == state


def test_each_named_package_is_shown_and_others_only_when_something_is_wrong() -> None:
    there = {"cma": "4.5.0", "numpy": "2.4.6", "ray": "2.60.0", "rich": "15.0"}
    found = packages(required(LINES), there.get)
    assert [(one.item, one.state) for one in found] == [
        ("cma", "ok"),
        ("numpy", "ok"),
        ("ray", "ok"),
        ("other packages", "ok"),
    ]
    assert found[0].seen == "4.5.0 (>=4.4,<5)"
    assert found[-1].seen == "rich 15.0"


def test_a_package_that_is_not_there_or_too_old_names_the_command_that_installs_it() -> None:
    found = {one.item: one for one in packages(required(LINES), {"numpy": "1.26.4"}.get)}
    assert {name: one.state for name, one in found.items()} == dict.fromkeys(found, "missing")
    assert set(found) == {"cma", "numpy", "ray", "rich"}
    assert found["numpy"].seen == "1.26.4, expected >=2.0,<3"
    assert found["cma"].mend.endswith('-m pip install "cma<5,>=4.4"')


def test_a_version_that_cannot_be_compared_is_unknown() -> None:
    (found,) = packages(required(["cma>=4.4"]), {"cma": "from-git"}.get)
    assert (found.state, found.seen) == (
        "unknown",
        "from-git, which could not be compared with >=4.4",
    )


@pytest.mark.parametrize(
    ("bound", "state"),
    [(">=3.11", "ok"), (">=3.14", "missing"), ("", "ok"), (None, "unknown")],
)
def test_python_is_held_to_what_the_project_asks(bound: str | None, state: str) -> None:
    assert python("3.12.1", bound, "/src").state == state


def test_an_install_that_is_older_than_the_checkout_is_told() -> None:
    now, then = required([*LINES, "tomlkit>=0.13"]), required(LINES)
    found = metadata(then, now, "/src")
    assert (found.state, found.mend.endswith("-m pip install -e /src")) == ("absent", True)
    assert "tomlkit differ" in found.seen
    assert metadata(now, now, "/src").state == "ok"
    assert metadata(now, (), "/src").state == "ok"
    assert metadata(None, now, "/src").state == "absent"


def test_all_that_can_be_imported_is_named_with_how_long_it_took() -> None:
    found = imports(answers(seconds=2.34), gpus=0)
    assert [(one.item, one.state) for one in found] == [("imports", "ok"), ("CUDA", "absent")]
    assert found[0].seen.startswith("torch, ray, cma, numpy in 2.3 s")


def test_what_cannot_be_imported_is_named_with_the_reason() -> None:
    found = imports(answers(failed={"torch": "libcudart.so.12: cannot open"}), gpus=1)
    assert [(one.item, one.state) for one in found] == [
        ("import torch", "missing"),
        ("imports", "ok"),
    ]
    assert found[0].seen.startswith("libcudart")
    assert "--force-reinstall torch" in found[0].mend


def test_without_an_answer_nothing_is_claimed() -> None:
    (found,) = imports(silent, gpus=0)
    assert (found.state, found.seen) == ("unknown", "no answer within 3 s")


@pytest.mark.parametrize(
    ("gpus", "device", "answer", "state", "words"),
    [
        (0, "auto", {}, "absent", "built without CUDA"),
        (2, "auto", {"cuda_devices": 2, "cuda_built": "12.8"}, "ok", "sees 2 of 2 GPUs"),
        (2, "auto", {}, "missing", "sees 0 of 2 GPUs"),
        (1, "cuda", {"cuda_built": "12.8"}, "missing", "CUDA 12.8, sees 0 of 1 GPU"),
        (2, "cpu", {}, "absent", "sees 0 of 2 GPUs"),
    ],
)
def test_a_torch_that_does_not_see_the_gpus_fails_a_run_that_would_use_them(
    gpus: int, device: str, answer: dict[str, Any], state: str, words: str
) -> None:
    found = imports(answers(**answer), gpus, device)[-1]
    assert (found.item, found.state) == ("CUDA", state)
    assert words in found.seen
    assert "--device cpu" in found.mend or state in ("ok", "absent")


def test_the_projects_own_requirements_are_found(tmp_path: Path) -> None:
    names = {one.name for one in machine.requirements_of_checkout()}
    assert set(NAMED) <= names
    other = tmp_path / "pyproject.toml"
    other.write_text('[project]\nname = "other"\ndependencies = ["cma"]\n')
    assert machine.requirements_of_checkout(other) == ()
    assert machine.requirements_of_checkout(tmp_path / "none.toml") == ()
    other.write_text("not toml [")
    assert machine.requirements_of_checkout(other) == ()


def test_a_tracker_that_a_run_would_tell_is_looked_for() -> None:
    found = trackers(["tensorboard", "wandb"], {"wandb"}.__contains__, "/here")
    assert [(one.item, one.state) for one in found] == [
        ("tracker tensorboard", "missing"),
        ("tracker wandb", "ok"),
    ]
    assert found[0].mend.endswith('-m pip install -e "/here[tensorboard]"')
    (elsewhere,) = trackers(["wandb"], {"mlflow"}.__contains__, "")
    assert elsewhere.mend.endswith('-m pip install "cmaes-orchestrator[wandb]"')
    assert trackers([], {"wandb"}.__contains__, "/here") == ()
