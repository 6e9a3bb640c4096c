"""What a program needs of the machine."""

from pathlib import Path
from typing import Any

import pytest

from objectives.api import Context, SetupError
from objectives.command.needs import Needs

PLENTY = 1e6


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ({"gpu": True}, "it needs a GPU, and the evaluation has the device cpu"),
        (
            {"threads": 2},
            "it needs 2 threads, and an evaluation has 1: say --set backend.threads=2",
        ),
        ({"memory_gib": PLENTY}, "it needs 1e+06 GiB of available memory, and there are"),
        ({"disk_gib": PLENTY}, "it needs 1e+06 GiB of free disk, and there are"),
    ],
)
def test_what_is_short_is_named(needs: dict[str, Any], expected: str, context: Context) -> None:
    with pytest.raises(SetupError, match="needs: ") as raised:
        Needs.model_validate(needs).require(context)
    assert expected in str(raised.value)


def test_all_that_is_short_is_named_at_once(context: Context) -> None:
    needs = Needs(gpu=True, threads=2, memory_gib=PLENTY, disk_gib=PLENTY)
    with pytest.raises(SetupError) as raised:
        needs.require(context)
    assert str(raised.value).count("it needs") == 4


def test_what_is_there_is_enough(tmp_path: Path) -> None:
    context = Context(tmp_path, "cuda", 4, lambda metrics: None)
    Needs(gpu=True, threads=4, memory_gib=1e-3, disk_gib=1e-6).require(context)
    Needs().require(context)


def test_what_this_machine_is_short_of_is_said_beforehand(tmp_path: Path) -> None:
    needs = Needs(threads=10**6, memory_gib=PLENTY, disk_gib=PLENTY)
    threads, memory, disk = needs.missing_here(tmp_path)
    assert "needs 1000000 threads, and this machine has" in threads
    assert "GiB of memory, and there are" in memory
    assert "GiB of free disk, and there are" in disk
    assert Needs(threads=1, memory_gib=1e-3, disk_gib=1e-6).missing_here(tmp_path) == ()
