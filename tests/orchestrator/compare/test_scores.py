"""Whose scores can be compared, and why others cannot."""

from collections.abc import Callable

from orchestrator.compare.model import Fact, Part, Side
from orchestrator.compare.scores import scores

MakeSide = Callable[..., Side]


def fact(part: Part, name: str, *values: str | None) -> Fact:
    return Fact(part=part, name=name, values=values)


def test_one_fingerprint_is_one_measure(make_side: MakeSide) -> None:
    found = scores([make_side("a"), make_side("b")], [fact("search", "seed", "1", "2")])
    assert found.are_comparable
    assert found.groups == ((0, 1),)
    assert found.why_not == found.mind == ()


def test_other_settings_data_and_knobs_are_named(make_side: MakeSide) -> None:
    runs = [make_side("a"), make_side("b", fingerprint="g")]
    found = scores(
        runs,
        [
            fact("objective", "noise", "0.1", "0.2"),
            fact("objective", "dimension", "2", "2"),
            fact("data", "sha256", "x", None),
            fact("space", "depth", None, "int"),
        ],
    )
    assert found.groups == ((0,), (1,))
    assert found.why_not == (
        "the objective or its settings: noise",
        "the data: sha256",
        "the space of knobs: depth",
    )


def test_where_nothing_on_record_differs_it_is_the_code(make_side: MakeSide) -> None:
    found = scores([make_side("a"), make_side("b", fingerprint="g")], [])
    assert found.why_not == ("the objective's code: nothing else on record differs",)


def test_runs_are_grouped_by_what_can_be_compared(make_side: MakeSide) -> None:
    runs = [make_side("a"), make_side("b", fingerprint="g"), make_side("c")]
    assert scores(runs, []).groups == ((0, 2), (1,))


def test_a_run_without_a_fingerprint_is_like_no_other(make_side: MakeSide) -> None:
    runs = [make_side("a", fingerprint=""), make_side("b", fingerprint="")]
    assert not scores(runs, []).are_comparable


def test_what_moves_the_last_digits_is_to_be_minded(make_side: MakeSide) -> None:
    own = [
        fact("machine", "devices", "1 x cpu", "8 x gpu"),
        fact("machine", "torch", "2.11", "2.12"),
        fact("search", "evaluation seed", "1", "2"),
        fact("search", "seeds a candidate", "1", "3"),
    ]
    found = scores([make_side("a"), make_side("b")], own)
    assert len(found.mind) == 4
    assert "versions differ: torch" in found.mind


def test_of_many_names_the_first_few_are_listed(make_side: MakeSide) -> None:
    own = [fact("objective", f"s{n}", "1", "2") for n in range(9)]
    (why,) = scores([make_side("a"), make_side("b", fingerprint="g")], own).why_not
    assert why.endswith("s0, s1, s2, s3, s4, s5 and 3 more")
