"""What a command line says, read."""

import pytest

from orchestrator.cli.options import names_of, numbers_of


def test_numbers_are_read_once_each_in_order() -> None:
    assert numbers_of("--devices", "4, 1,8,4") == (1, 4, 8)


@pytest.mark.parametrize("text", ["", "0", "1,,2", "1,", "-1", "two", "1.5", "9", "\u0661"])
def test_what_is_no_number_is_refused_by_its_flag(text: str) -> None:
    with pytest.raises(ValueError, match=r"^--devices: expected whole numbers from 1 to 8"):
        numbers_of("--devices", text, 8)


def test_names_are_what_stands_between_commas() -> None:
    assert names_of(None) == ()
    assert names_of("lr, beta2") == ("lr", "beta2")
