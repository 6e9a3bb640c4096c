"""One line about what is wrong with settings, in words a person can act on."""

from typing import Any

import pytest
from pydantic import BaseModel

from objectives.settings import LONGEST_SHOWN, parse


class Model(BaseModel):
    argv: tuple[str, ...]
    size: int = 1


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "mine settings: argv: it has to be given"),
        (
            {"argv": "python train.py"},
            'argv: expected a list, such as ["python", "train.py"], got \'python train.py\'',
        ),
        ({"argv": 3}, "argv: expected a list, got 3"),
        ({"argv": ["a"], "maximize": True}, "A lower score is always better: give the negative"),
        ({"argv": ["a"], "size": "3"}, "size: expected 3, without quotes, got '3'"),
        ({"argv": ["a"], "sise": 1}, "Did you mean 'size'?"),
    ],
)
def test_what_is_wrong_is_said_with_what_was_expected(
    settings: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ValueError, match=r"mine setting") as caught:
        parse(Model, settings, "mine")
    assert expected in str(caught.value)


def test_a_long_value_is_not_repeated_whole() -> None:
    with pytest.raises(ValueError, match=r"mine setting") as caught:
        parse(Model, {"argv": ["a"], "size": "x" * 100_000}, "mine")
    assert len(str(caught.value)) < 2 * LONGEST_SHOWN
