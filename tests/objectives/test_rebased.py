"""An objective whose baseline is where a search ended."""

from typing import Any

import pytest

from objectives import registry
from objectives.api import ObjectiveSpec
from objectives.rebased import essential, rebased
from objectives.space import Knob, SearchSpace


@pytest.mark.parametrize("space", ["synaptic", "optimizer", "shape", "synaptic+optimizer"])
@pytest.mark.parametrize("unit", [0.0, 0.3, 1.0])
def test_fields_of_the_knobs_names_move_the_baseline(space: str, unit: float) -> None:
    objective = registry.load(ObjectiveSpec(name="nanochat", settings={"space": space}))
    knobs = objective.space.decode((unit,) * objective.space.dimension)
    found = rebased(objective.spec, objective.space, knobs)
    assert found is not None
    there = registry.load(found).space
    assert {knob.name: knob.baseline for knob in there.knobs} == knobs


def test_a_whole_number_stays_one() -> None:
    objective = registry.load(ObjectiveSpec(name="nanochat", settings={"space": "shape"}))
    found = rebased(objective.spec, objective.space, objective.space.decode((0.9, 0.9)))
    assert found is not None
    assert [type(found.settings[name]) for name in ("n_layer", "n_embd")] == [int, int]


def test_what_has_no_setting_for_its_baseline_has_no_other() -> None:
    objective = registry.load(ObjectiveSpec(name="sphere", settings={"dimension": 2}))
    assert rebased(objective.spec, objective.space, {"x0": 0.5, "x1": 0.5}) is None


class Declared:
    """As programs declare their knobs, or are given flags: what loading them makes of it."""

    def __init__(self, spec: ObjectiveSpec) -> None:
        self.spec = spec

    @property
    def space(self) -> SearchSpace:
        entries = self.spec.settings.get("knobs") or {
            name: {"baseline": value} for name, value in self.spec.settings["flags"].items()
        }
        return SearchSpace(
            knobs=tuple(
                Knob(name=name, kind="linear", low=0, high=1, baseline=entry["baseline"])
                for name, entry in entries.items()
            )
        )


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        (
            {"knobs": {"lr": {"max": 1, "baseline": 0.1}}, "lr": 3},
            {"knobs": {"lr": {"max": 1, "baseline": 0.25}}, "lr": 3},
        ),
        (
            {"knobs": {"lr": {"baseline": 0.1}}, "flags": {"depth": 2, "lr": 0.1}},
            {"knobs": {"lr": {"baseline": 0.25}}, "flags": {"depth": 2, "lr": 0.25}},
        ),
        ({"flags": {"lr": 0.1}}, {"flags": {"lr": 0.25}}),
        ({"knobs": {}, "flags": {"lr": 0.1}}, {"knobs": {}, "flags": {"lr": 0.25}}),
    ],
    ids=["declared", "both", "flags", "ready"],
)
def test_declared_knobs_and_flags_are_moved_where_they_are(
    settings: dict[str, Any], wanted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "load", Declared)
    spec = ObjectiveSpec(name="command", settings=settings)
    found = rebased(spec, Declared(spec).space, {"lr": 0.25})
    assert found is not None
    assert found.settings == wanted
    assert spec.settings == settings


def test_settings_that_are_the_defaults_are_left_out() -> None:
    settings = {"n_layer": 1, "tau_c": 0.8, "target_flops": 1e9}
    whole = registry.load(ObjectiveSpec(name="nanochat", settings=settings)).spec
    assert len(whole.settings) > 30
    assert essential(whole) == settings
    assert registry.load(ObjectiveSpec(name="nanochat", settings=essential(whole))).spec == whole


def test_where_something_lies_is_said_whatever_the_default_is_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Placed:
        def __init__(self, spec: ObjectiveSpec) -> None:
            self.spec = ObjectiveSpec(name="command", settings={"directory": "/", **spec.settings})

    monkeypatch.setattr(registry, "load", Placed)
    pinned = ObjectiveSpec(name="command", settings={"directory": "/", "code": "a" * 64})
    assert essential(pinned) == {"directory": "/"}
