"""Numbers, times, sizes and lists as people read them."""

import pytest

from budgets.words import (
    about,
    against,
    counted,
    duration,
    figure,
    first_few,
    in_bytes,
    listed,
    number,
    percent,
    precise_duration,
    quoted,
    rounded_up,
    sentence_case,
    uncapitalized,
)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (number(3.13849), "3.1385"),
        (number(0.031249, 3), "0.0312"),
        (number(None), "-"),
        (number(None, none="none"), "none"),
        (figure(12.345), "12.3"),
        (figure(1234.5), "1,234"),
    ],
)
def test_numbers_have_the_digits_that_say_something(said: str, text: str) -> None:
    assert said == text


@pytest.mark.parametrize(("share", "text"), [(0.99, "99%"), (0.995, "99.5%"), (0.01, "1%")])
def test_a_limit_keeps_its_digits(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (41.4, "41 s"),
        (59.6, "1 min 00 s"),
        (200.0, "3 min 20 s"),
        (3599.4, "59 min 59 s"),
        (7500.0, "2 h 05 min"),
        (360_000.0, "100 h 00 min"),
    ],
)
def test_durations_are_written_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_what_took_less_than_a_second_has_no_digits() -> None:
    assert about(0.0912) == "under a second"
    assert about(1.8) == "2 s"
    assert about(496) == "8 min 16 s"


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1023, "0.999 KiB"),
        (1024, "1 KiB"),
        (3.5 * 2**20, "3.5 MiB"),
        (1020 * 2**20, "0.996 GiB"),
        (2**42, "4 TiB"),
    ],
)
def test_bytes_are_said_in_the_unit_that_suits_them(count: float, said: str) -> None:
    assert in_bytes(count) == said


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.03125, "0.031 s"),
        (0.1, "0.1 s"),
        (6.44, "6.4 s"),
        (9.96, "10 s"),
        (200.0, "3 min 20 s"),
    ],
)
def test_short_durations_keep_a_tenth_or_two_digits(seconds: float, text: str) -> None:
    assert precise_duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "what", "text"),
    [
        (0, "seed", "no seeds"),
        (1, "seed", "1 seed"),
        (2, "seed", "2 seeds"),
        (3, "boundary", "3 boundaries"),
    ],
)
def test_things_are_counted(count: int, what: str, text: str) -> None:
    assert counted(count, what) == text


@pytest.mark.parametrize(
    ("most", "text"),
    [(None, "1, 2, 3 and 4"), (4, "1, 2, 3 and 4"), (3, "1, 2 and 2 more"), (2, "1 and 3 more")],
)
def test_a_list_ends_with_how_many_more_there_are(most: int | None, text: str) -> None:
    assert listed([1, 2, 3, 4], most) == text
    assert listed([], most) == ""
    assert listed(["a"], most) == "a"


def test_of_many_clauses_the_first_few_are_said() -> None:
    assert first_few(["a", "b"], 2) == "a; b"
    assert first_few(["a", "b", "c", "d"], 2) == "a; b; and 2 more"


def test_what_is_needed_and_what_is_free_are_told_apart() -> None:
    assert against(0.04396, 0.004495, "hours") == ("2 min 38 s", "16 s")
    assert against(0.005, 0.001, "device-hours") == ("18 s of device time", "3.6 s")
    assert against(0.005, 0.00499, "hours") == ("18 s", "17.964 s")
    assert against(9.0, 5.0, "of money") == ("9 of money", "5 of money")


@pytest.mark.parametrize(
    ("value", "text"), [(0.048411, "0.0485"), (0.005, "0.005"), (12.34, "12.4"), (1234.0, "1240")]
)
def test_what_is_needed_at_least_is_never_rounded_down(value: float, text: str) -> None:
    assert rounded_up(value) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [("val_BPB", "Val_BPB"), ("nothing fits. Give", "Nothing fits. Give"), ("", "")],
)
def test_a_sentence_begins_with_a_capital_and_keeps_its_others(text: str, said: str) -> None:
    assert sentence_case(text) == said


def test_words_of_others_stand_behind_ours_in_quotation_marks() -> None:
    assert quoted(uncapitalized("It is so")) == "\u201cit is so\u201d"
