"""Settings known to be good are read with care, and become the first candidates."""

import json
from pathlib import Path
from typing import Any

import pytest

from objectives.space import Knob, SearchSpace
from orchestrator.plan.known import known_points

SPACE = SearchSpace(
    knobs=(
        Knob(name="rate", kind="log10", low=-4, high=-1, baseline=1e-2),
        Knob(name="share", kind="linear", low=0, high=2, baseline=1.0),
        Knob(name="depth", kind="int", low=2, high=8, step=2, baseline=4),
    )
)
START = SPACE.baseline


def points_of(file: Path, population: int = 8, start: tuple[float, ...] = START) -> Any:
    return known_points(file, SPACE, start, population)


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(text: str, name: str = "known.json") -> Path:
        file = tmp_path / name
        file.write_text(text)
        return file

    return write


def test_a_knob_that_is_not_named_is_where_the_search_starts(written: Any) -> None:
    text = '[{"rate": 0.001, "depth": 8}, {"share": 2.0}]'
    found = points_of(written(text), start=(0.1, 0.2, 0.3))
    decoded = [SPACE.decode(point) for point in found]
    assert decoded[0]["rate"] == pytest.approx(1e-3)
    assert decoded[0]["depth"] == 8
    assert (found[0][1], found[1]) == (0.2, (0.1, 1.0, 0.3))


def test_a_runs_best_json_is_one_setting(written: Any) -> None:
    best = '{"recommendation": {"point": [], "knobs": {"share": 0.5}}, "winner": null}'
    assert points_of(written(best, "best.json")) == ((START[0], 0.25, START[2]),)
    with pytest.raises(ValueError, match="recommends nothing"):
        points_of(written('{"recommendation": null}', "best.json"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"rat": 0.1}]', r"entry 1\) 'rat'\. Did you mean 'rate'\?"),
        ('[{"share": 1}, {"rate": 1}]', r"entry 2: rate: 1\.0 lies outside its bounds, 0\.0001 to"),
        ('[{"rate": 0}]', r"entry 1: rate: 0\.0 lies outside its bounds, 0\.0001 to"),
        ('[{"depth": 3}]', r"entry 1: depth: 3 must lie whole steps of 2 from low 2"),
        ('[{"share": "x"}]', r"entry 1: share: Input should be a valid number"),
        ('[{"share": NaN}]', r"entry 1: share: Input should be a finite number, got nan"),
        ('[{"share": 1' + "0" * 400 + "}]", r"entry 1: share: .*, got 1000"),
        ('[{"share": 2}, {"rate": 0.1}, {"share": 2.0}]', r"entry 3: the same as entry 1"),
        ("[{}]", r"entry 1: expected values by the names of knobs, got {}"),
        ("[]", r"expected a list of settings, or a run's best\.json, got \[\]"),
        ("[" * 100_000, r"is no JSON file"),
    ],
)
def test_what_is_no_setting_is_refused_with_its_place(written: Any, text: str, said: str) -> None:
    file = written(text, "known.json")
    with pytest.raises(ValueError, match=said) as refused:
        points_of(file)
    assert f"search.known {file}" in str(refused.value)


def test_more_than_half_of_a_generation_is_too_much(written: Any) -> None:
    file = written(json.dumps([{"share": n / 10} for n in range(1, 6)]))
    assert len(points_of(file, population=10)) == 5
    with pytest.raises(ValueError, match="expected 4 settings at most, half of a generation's 8"):
        points_of(file, population=8)
