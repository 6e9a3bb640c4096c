"""Under every cap a search leaves enough for its verdict."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from budgets.plan import Window
from budgets.state import RunState
from tests.simulation.scenarios import CONFIRMED, Disturbance, Scenario
from tests.simulation.world import SimulatedRun

LONG = Scenario("capped", options={**CONFIRMED, "max_evals": 16}, assumed_seconds=1.1)
"""Four generations whose evaluations take less time than assumed."""

CAPS: dict[str, Callable[[float], dict[str, Any]]] = {
    "device time": lambda hours: {"max_device_hours": hours},
    "money": lambda hours: {"max_cost": 2 * hours, "price_per_device_hour": 2.0},
    "wall clock": lambda hours: {"max_hours": hours},
    "deadline": lambda hours: {"window": Window(hours=hours + 5 / 3600, margin_seconds=5)},
}


def simulated(root: Path, scenario: Scenario, **caps: Any) -> RunState:
    """Return the final state of a run that only its caps disturb."""
    capped, rng = replace(scenario, caps=caps), np.random.default_rng(0)
    return SimulatedRun(capped, capped.request(), root, rng, lambda _: Disturbance()).run()


@pytest.mark.parametrize("cap", CAPS)
def test_under_any_cap_a_search_is_decided_or_does_not_start(place: Path, cap: str) -> None:
    """(The judge checks after each reservation that the verdict's share is left.)"""
    refused = simulated(place / "least", LONG, **CAPS[cap](5 / 3600))
    (fired,) = refused.fired
    assert (fired.rule, refused.accounts.device_ms) == ("budget", 0)
    least = fired.observed / (2 if cap == "money" else 1)
    told = []
    for seconds in (-0.1, 0.1, 1, 3, 60):
        state = simulated(place / str(seconds), LONG, **CAPS[cap](least + seconds / 3600))
        told.append(len(state.completed))
        assert (state.decided is not None) == (state.concluded is not None) == (seconds > 0)
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0, 4)
