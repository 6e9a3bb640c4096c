"""How much longer something is trained than a search evaluated it."""

from typing import Any

import pytest

from objectives import registry
from objectives.api import ObjectiveSpec, Variant
from orchestrator.best.scale import keeping, longer, usual_times


def objective(name: str, **settings: Any) -> Any:
    return registry.load(ObjectiveSpec(name=name, settings=settings))


def test_nothing_said_is_the_rung_of_a_verdict() -> None:
    sphere = objective("sphere")
    assert longer(sphere, None, None) == sphere.rung(4.0)
    assert longer(sphere, 2.0, None) == sphere.rung(2.0)


def test_a_number_of_flops_is_met_exactly() -> None:
    found = longer(objective("nanochat", target_flops=3e9), None, 1e10)
    assert found.settings == {"target_flops": 1e10}
    assert found.length == pytest.approx(10 / 3)


def test_what_is_set_in_batches_is_scaled_by_its_counted_flops() -> None:
    core = objective("nanochat", num_batches=100)
    found = longer(core, None, 3 * core.flops().train)
    assert found.settings == {"num_batches": 300}


def test_a_program_s_own_budget_is_what_it_is_scaled_by() -> None:
    class Program:
        spec = ObjectiveSpec(name="command", settings={"budget": 1e9})

        def flops(self) -> None: ...

        def rung(self, factor: float) -> Variant:
            return Variant(label="longer", settings={"budget": 1e9 * factor}, length=factor)

    program: Any = Program()
    assert longer(program, None, 2e9).settings == {"budget": 2e9}


@pytest.mark.parametrize("flops", [1e9, float("nan"), float("inf")])
def test_less_than_the_search_spent_is_no_longer_training(flops: float) -> None:
    with pytest.raises(ValueError, match=r"--target-flops: expected 3e\+09 or more"):
        longer(objective("nanochat", target_flops=3e9), None, flops)


def test_what_cannot_be_scaled_can_still_be_trained_as_long() -> None:
    class Fixed:
        spec = ObjectiveSpec(name="python:it:scores")

        def rung(self, factor: float) -> None: ...

    fixed: Any = Fixed()
    assert longer(fixed, 1.0, None).settings == {}
    with pytest.raises(ValueError, match="cannot be trained 2 times as long"):
        longer(fixed, 2.0, None)


def test_only_a_program_that_deletes_its_checkpoints_is_told_to_keep_them() -> None:
    assert keeping(objective("nanochat")) == {}
    assert keeping(objective("sphere")) == {}


KNOBS = {"lr": {"min": 0, "max": 1, "baseline": 0.5}}
ECHO = {"argv": ["echo", "score: 1", "{lr}"], "score": "score", "knobs": KNOBS}
WITH_BUDGET = {**ECHO, "argv": [*ECHO["argv"], "{budget}"], "budget": 10}


@pytest.mark.parametrize(
    ("name", "settings", "times"),
    [
        ("sphere", {}, 4.0),
        ("sphere", {"effort": 4.0}, 1.0),  # which is where it ends
        ("command", WITH_BUDGET, 4.0),
        ("command", ECHO, 1.0),
        ("command", {**ECHO, "argv": []}, 4.0),  # what cannot be loaded says so when it is trained
    ],
)
def test_it_is_longer_where_there_is_a_budget(
    name: str, settings: dict[str, Any], times: float
) -> None:
    assert usual_times(ObjectiveSpec(name=name, settings=settings)) == times
