"""Whatever a cap allows, a search leaves what its verdict needs, and what it found is compared.

In simulated time: evaluations take 0.2 to 1 s, those of the rung four times as long.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from budgets.events import Fired
from budgets.ledger.chain import LEDGER, read
from budgets.state import RunState
from budgets.terms import Window
from orchestrator.planning.request import Confirm
from tests.ledgers import cut, events_of
from tests.simulation.disturbance import Disturbance
from tests.simulation.scenarios import CONFIRMED, RESERVE_HOURS, Scenario
from tests.simulation.world import Story

Tell = Callable[..., RunState]
Least = Callable[[str], float]

PARTS = [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2, 3))]
"""Every fourth record of a run; every run of the tests goes through the first of them."""

GENEROUS = Scenario("capped", terms={**CONFIRMED, "max_evals": 16}, assumed_seconds=1.1)
"""Four generations, whose evaluations never take as long as is expected of them."""

HASTY = Scenario(
    "capped",
    terms={**CONFIRMED, "max_evals": 4, "confirm": Confirm(seeds=8, rung_factor=0)},
    raised={"device_hours": 1.0},
    assumed_seconds=0.05,
)
"""One generation and many fresh seeds, and all takes longer than is expected, by far."""


def story_in(root: Path, scenario: Scenario, *disturbances: Disturbance, **caps: Any) -> Story:
    """The story of a run whose sessions are disturbed by that alone."""
    coming = iter(disturbances)
    capped = replace(scenario, caps=caps)
    return Story(
        capped,
        capped.request(),
        root,
        np.random.default_rng(0),
        disturb=lambda _: next(coming, Disturbance()),
    )


@pytest.fixture
def tell(place: Path) -> Tell:
    """The state that such a run comes to."""

    def told(
        scenario: Scenario, *disturbances: Disturbance, name: str = "run", **caps: Any
    ) -> RunState:
        return story_in(place / name, scenario, *disturbances, **caps).tell()

    return told


CAPS: dict[str, Callable[[float], Any]] = {
    "max_device_hours": lambda hours: hours,
    "max_cost": lambda hours: 2 * hours,
    "max_hours": lambda hours: hours,
    "window": lambda hours: Window(hours=hours + 5 / 3600, margin_seconds=5),
}
"""Each by the hours that it leaves a run."""

PRICES = {"max_cost": {"price_per_device_hour": 2.0}}


@pytest.fixture(scope="module")
def least(tmp_path_factory: pytest.TempPathFactory) -> Least:
    """How many hours a run needs to begin at all under a cap; each is found once."""
    found: dict[str, float] = {}

    def find(cap: str) -> float:
        caps = {cap: CAPS[cap](5 / 3600), **PRICES.get(cap, {})}
        state = story_in(tmp_path_factory.mktemp("least"), GENEROUS, **caps).tell()
        assert state.accounts.device_ms == 0
        (fired,) = state.fired
        assert fired.rule == "budget"
        assert "generation 0 is expected to need" in fired.evidence
        assert "with the 25 evaluations that the verdict will take" in fired.evidence
        return fired.observed / (2 if cap == "max_cost" else 1)

    def known(cap: str) -> float:
        if cap not in found:
            found[cap] = find(cap)
        return found[cap]

    return known


@pytest.mark.parametrize(
    ("cap", "seconds"),
    [
        pytest.param(cap, seconds, marks=() if (n + m) % 2 or not m else pytest.mark.slow)
        for n, cap in enumerate(CAPS)
        for m, seconds in enumerate((-0.1, 0.1, 0.5, 1, 2, 3, 4, 6))
    ],
)
def test_under_any_cap_a_search_is_decided_or_never_begun(
    tell: Tell, least: Least, cap: str, seconds: float
) -> None:
    """That it never takes what is set aside is judged after each of its reservations."""
    hours = least(cap) + seconds / 3600
    state = tell(GENEROUS, **{cap: CAPS[cap](hours)}, **PRICES.get(cap, {}))

    assert bool(state.told) == (seconds > 0)
    assert (state.decided is not None) == (seconds > 0)
    assert (state.concluded is not None) == (seconds > 0)
    if not state.told:
        assert state.accounts.device_ms == 0


def test_caps_end_searches_after_more_and_more_generations(tell: Tell, least: Least) -> None:
    hours = least("max_device_hours")
    states = [
        tell(GENEROUS, name=str(seconds), max_device_hours=hours + seconds / 3600)
        for seconds in (-0.1, 0.5, 2.5, 3.5, 8)
    ]
    told = [len(state.told) for state in states]
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0, 4)
    assert len(set(told)) > 3
    assert [bool(state.fired) for state in states] == [True, True, True, True, False]


def test_a_cap_reached_in_a_panel_names_it_and_once_raised_the_run_ends_as_if_it_never_was(
    tell: Tell,
) -> None:
    whole = tell(HASTY, name="whole")
    short = whole.accounts.device_ms / 3.6e6 + RESERVE_HOURS - 1.1 / 3600  # for the last of all
    state = tell(HASTY, name="capped", max_device_hours=short)

    stops = [f.evidence for f in state.fired if f.rule == "budget"]
    assert "the winner panel cannot be finished: device time" in stops[-1]
    assert len(state.amended) == 1
    assert state.decided == whole.decided
    assert [p.arms for p in state.panels.values()] == [p.arms for p in whole.panels.values()]


ENDED_EARLY = {"max_device_hours": 65 / 3600}


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose search a cap has ended, and whose finds were compared all the same."""
    story = story_in(tmp_path_factory.mktemp("early"), GENEROUS, **ENDED_EARLY)
    state = story.tell()
    assert 0 < len(state.told) < 4
    assert state.decided is not None
    return story.judge.directory


@pytest.mark.parametrize("part", PARTS)
def test_a_run_that_a_cap_has_shortened_is_decided_wherever_it_is_cut(
    early: Path, place: Path, tell: Tell, part: int
) -> None:
    records = read(early / LEDGER).records
    for count in range(1 + part, len(records), 4):
        run = place / f"cut-{count}" / early.relative_to(early.parent.parent)
        shutil.copytree(early, run)
        cut(run, count)

        state = tell(GENEROUS, name=f"cut-{count}", **ENDED_EARLY)

        assert state.decided is not None, f"cut after {count} records"
        kept = events_of(run)
        ends = [e for e in kept if isinstance(e, Fired) and e.rule == "budget"]
        assert len(ends) == 1


@pytest.mark.parametrize("part", PARTS)
def test_a_search_that_is_interrupted_at_once_is_not_over_for_what_its_attempts_held(
    early: Path, tell: Tell, part: int
) -> None:
    """Close to a cap an attempt waits until those in flight give back what they do not need."""
    ended = next(r.seq for r in read(early / LEDGER).records if isinstance(r.event, Fired))
    for count in range(3 + part, ended, 4):
        interrupted = Disturbance("interrupted", interrupted_at=count, at_once=True)
        state = tell(GENEROUS, interrupted, name=str(count), **ENDED_EARLY)
        assert state.decided is not None, f"interrupted after {count} records"
