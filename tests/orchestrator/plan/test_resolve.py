"""Windows, sizes, known settings and seeds of a plan; and where two plans differ."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from budgets.plan import Devices
from objectives import registry
from objectives.api import ObjectiveSpec
from objectives.space import Knob, SearchSpace
from orchestrator.config import Budget
from orchestrator.plan.comparisons import confirmation_seeds, evaluation_seeds
from orchestrator.plan.differences import differing, in_short
from orchestrator.plan.resolve import known_points, parse_hours, search_plan, window_of
from tests.asking import config_for


@pytest.mark.parametrize(
    ("text", "hours"),
    [("90s", 0.025), ("45m", 0.75), ("2d", 48.0), ("1.5h", 1.5), ("0s", 0.0), (" 12h ", 12.0)],
)
def test_a_duration_has_a_number_and_a_unit(text: str, hours: float) -> None:
    assert parse_hours("--window", text) == pytest.approx(hours)


@pytest.mark.parametrize("text", ["", "12", "h", "-1h", "1e3s", "1h30m", "2030-13-01", "18:00"])
def test_what_is_no_window_is_refused_with_both_ways_to_say_it(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"--window: expected a duration such as 12h, or a moment such as 20"
    ):
        window_of(Budget(window=text))
    with pytest.raises(ValueError, match=r"safety_margin: expected a duration such as 45m"):
        parse_hours("budget.safety_margin", text)


# Sizes


DEVICES = Devices(count=4, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30)


def plan_of(**fields: Any) -> Any:
    objective = registry.load(ObjectiveSpec(name="sphere"))
    values = {"phase": "phase1", "tier": "target", "objective": objective, **fields}
    return search_plan(config_for(**values), DEVICES, None)


@pytest.mark.parametrize(
    ("fields", "generations", "evaluations"),
    [
        ({"generations": 5}, 5, 40),
        ({"generations": 50}, 15, 120),
        ({"generations": 5, "max_evals": 20}, 2, 20),
        ({"seeds_per_candidate": 2}, 7, 120),
    ],
)
def test_sizes_that_are_asked_for_are_caps_within_the_tiers_evaluations(
    fields: dict[str, int], generations: int, evaluations: int
) -> None:
    plan = plan_of(**fields)
    assert (plan.resolved.generations, plan.caps.evaluations) == (generations, evaluations)


# Settings known to be good

SPACE = SearchSpace(
    knobs=(
        Knob(name="rate", kind="log10", low=-4, high=-1, baseline=1e-2),
        Knob(name="share", kind="linear", low=0, high=2, baseline=1.0),
        Knob(name="depth", kind="int", low=2, high=8, step=2, baseline=4),
    )
)


def known(text: str, folder: Path) -> list[tuple[float, ...]]:
    file = folder / "known.json"
    file.write_text(text)
    config: Any = SimpleNamespace(
        search=SimpleNamespace(known=str(file)), tuned=SimpleNamespace(space=SPACE)
    )
    return list(known_points(config, (0.1, 0.2, 0.3)))


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ('[{"rate": 0.01, "depth": 8}, {"share": 2}]', [(2 / 3, 0.2, 7 / 8), (0.1, 1.0, 0.3)]),
        ('{"recommendation": {"point": [], "knobs": {"share": 0.5}}}', [(0.1, 0.25, 0.3)]),
    ],
)
def test_a_knob_that_is_not_named_is_where_the_search_starts(
    text: str, points: list[tuple[float, ...]], tmp_path: Path
) -> None:
    assert known(text, tmp_path) == [pytest.approx(point) for point in points]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"rat": 0.1}]', r"entry 1\) 'rat'\. Did you mean 'rate'\?"),
        ('[{"share": 1}, {"rate": 1}]', r"entry 2: .* 1\.0 lies outside its bounds, 0\.0001 to"),
        ('[{"depth": 3}]', r"entry 1: .* 3 must lie whole steps of 2 from low 2"),
        *((text, "expected a list of settings") for text in ("{}", '[{"share": "x"}]')),
    ],
)
def test_what_is_no_setting_is_refused_with_its_place(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"search\.known .*{said}"):
        known(text, tmp_path)


# Seeds


@pytest.mark.parametrize("generations", [3, 10, 2000])
def test_fresh_seeds_stay_the_same_however_long_the_search_becomes(generations: int) -> None:
    plan = plan_of()
    resolved = plan.resolved.model_copy(update={"generations": generations})
    longer = plan.model_copy(update={"resolved": resolved})
    assert confirmation_seeds(longer) == confirmation_seeds(plan)
    searched = {s for g in range(generations) for s in evaluation_seeds(longer, g)}
    assert not searched & {*confirmation_seeds(longer).verdict}


# Where two plans differ


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
