"""Names that are too long for a line."""

from budgets.campaign.names import shortened


def test_names_that_fit_stay_as_they_are() -> None:
    assert shortened(["abc", "abcd"], 4) == ["abc", "abcd"]


def test_a_name_that_is_too_long_keeps_its_beginning_and_more_of_its_end() -> None:
    assert shortened(["0123456789abcdef"], 10) == ["012…abcdef"]


def test_names_that_would_look_alike_begin_with_their_numbers() -> None:
    names = ["aaa-1-zzzzzzzzzz", "aaa-2-zzzzzzzzzz"]
    short = shortened(names, 10)
    assert short == ["1…zzzzzzzz", "2…zzzzzzzz"]
    assert all(len(name) == 10 for name in short)
