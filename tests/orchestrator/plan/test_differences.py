"""Where two plans differ, in a form that people can read."""

import pytest

from orchestrator.plan.differences import differing, in_short


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, ["b: 2 -> 3"]),
        ({}, {"program_torch": "2.6"}, ["program_torch: None -> '2.6'"]),
        ({"argv": ["python", "a.py"]}, {"argv": ["python", "b.py"]}, ["argv.1: 'a.py' -> 'b.py'"]),
        ({"argv": ["a", "b"]}, {"argv": ["a"]}, ["argv: ['a', 'b'] -> ['a']"]),
    ],
)
def test_values_are_shown_where_they_differ(one: object, other: object, said: list[str]) -> None:
    assert list(differing("", one, other)) == said


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (["objective.name: a -> b", "space.knobs: [] -> [1]", "search.start: 0 -> 1"], [0]),
        (["space.knobs.0.low: 0 -> 1", "objective_fingerprint: a -> b"], [0, 1]),
        (["resolved.generations: 1 -> 2", "search.seed: 1 -> 2"], [1]),
    ],
)
def test_what_follows_from_another_objective_is_left_out(
    changed: list[str], said: list[int]
) -> None:
    assert in_short(changed) == "; ".join(changed[place] for place in said)
