"""The controller in a world where the law holds: where it comes to rest, and that it does.

Examples are always the same: what is random in them may go wrong once in a while.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestrator.capacity.control import Control, Pressure, begun
from orchestrator.capacity.terms import Backpressure
from orchestrator.capacity.usl import Law
from orchestrator.capacity.windows import Observation

ON = Backpressure(enabled=True)


@dataclass
class Busy:
    """Evaluations that slow each other down as the law says; as many at once as are allowed."""

    law: Law
    spread: float = 0.0
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    now_ms: float = 0.0
    area: float = 0.0
    flights: list[list[float]] = field(default_factory=list)  # work left, began, area then

    def next(self, allowed: int) -> Observation:
        """The next evaluation to end, when so many may run."""
        while len(self.flights) < allowed:
            work = max(0.1, 1 + self.spread * float(self.rng.standard_normal()))
            self.flights.append([work, self.now_ms, self.area])
        n = len(self.flights)
        rate = self.law.throughput(n) / n / 3_600_000
        first = min(self.flights)
        took = first[0] / rate
        self.now_ms, self.area = self.now_ms + took, self.area + n * took
        for flight in self.flights:
            flight[0] -= took * rate
        self.flights.remove(first)
        lasted = self.now_ms - first[1]
        return Observation(first[1], self.now_ms, (self.area - first[2]) / lasted)


def run(
    world: Busy, count: int, terms: Backpressure = ON, devices: int = 16
) -> tuple[Control, list[Pressure]]:
    control = begun(terms, devices)
    return go_on(world, control, count)


def go_on(world: Busy, control: Control, count: int) -> tuple[Control, list[Pressure]]:
    pressures = []
    for _ in range(count):
        control = control.advanced(world.next(control.pressure.allowed))
        pressures.append(control.pressure)
    return control, pressures


laws = st.builds(
    Law,
    one=st.just(120.0),
    contention=st.floats(0, 0.5),
    coherency=st.one_of(st.just(0.0), st.floats(5e-4, 0.5)),
)


def share_of_best(law: Law, allowed: int, least: int, most: int) -> float:
    return law.throughput(allowed) / max(law.throughput(n) for n in range(least, most + 1))


@given(laws)
@settings(max_examples=10, derandomize=True)
def test_it_comes_to_rest_near_the_optimum(law: Law) -> None:
    control, _ = run(Busy(law), 800)
    assert share_of_best(law, control.pressure.allowed, 1, 16) > 0.85


@given(laws, st.integers(0, 1000))
@settings(max_examples=10, derandomize=True)
def test_it_comes_near_the_optimum_although_evaluations_differ(law: Law, seed: int) -> None:
    world = Busy(law, spread=0.2, rng=np.random.default_rng(seed))
    _, pressures = run(world, 1000)
    late = [share_of_best(law, p.allowed, 1, 16) for p in pressures[500:]]
    assert np.mean(late) > 0.75


@given(laws, st.sampled_from([0.0, 0.1, 0.3]))
@settings(max_examples=10, derandomize=True)
def test_it_does_not_change_for_ever(law: Law, spread: float) -> None:
    _, pressures = run(Busy(law, spread), 1500)
    most = 6 if spread == 0 else 20
    assert sum(p.action != "hold" for p in pressures[500:]) <= most


@given(laws, st.integers(1, 6), st.integers(0, 10), st.integers(1, 12), st.floats(0, 0.5))
@settings(max_examples=40, derandomize=True)
def test_it_never_leaves_its_bounds(
    law: Law, least: int, more: int, devices: int, spread: float
) -> None:
    terms = Backpressure(enabled=True, min_workers=least, max_workers=least + more)
    _, pressures = run(Busy(law, spread), 200, terms, devices)
    low, high = terms.bounds(devices)
    assert 1 <= low <= high <= devices
    assert {low <= p.allowed <= high for p in pressures} == {True}


def test_it_begins_with_two_and_decides_after_a_window() -> None:
    _, pressures = run(Busy(Law(120, 0, 0)), 8)
    assert begun(ON, 32).pressure == Pressure("hold", None, None, None, 2)
    assert begun(ON, 1).pressure.allowed == 1
    first = next(i for i, p in enumerate(pressures) if p.action == "increase")
    assert first == ON.window - 1
    assert pressures[first].allowed == 4
    assert pressures[first].throughput == pytest.approx(240)


def test_it_does_not_increase_while_evaluations_take_longer_and_longer() -> None:
    control, at = begun(ON, 32), 0.0
    for number in range(40):
        lasted = 1000.0 * 1.2**number
        control = control.advanced(Observation(at, at + lasted, 2.0))
        assert control.pressure.allowed == 2
        at += lasted


def test_more_workers_that_do_less_are_throttled_and_called_retrograde() -> None:
    _, pressures = run(Busy(Law(120, 0.0, 0.3)), 60)  # N* = 1.8
    throttles = [p for p in pressures if p.action == "throttle"]
    assert throttles[0].regime == "retrograde"
    assert throttles[0].allowed < 4


@pytest.mark.parametrize(("law", "rests_at"), [(Law(120, 0.1, 0.0), 2), (Law(120, 0.0, 2.0), 1)])
def test_on_two_devices_one_is_tried_once(law: Law, rests_at: int) -> None:
    control, pressures = run(Busy(law), 100, devices=2)
    assert control.pressure.allowed == rests_at
    assert 1 in {p.allowed for p in pressures}
    assert sum(p.action != "hold" for p in pressures[20:]) <= 2 * (rests_at == 1) + 2


def test_workers_that_slow_down_together_are_fewer_soon() -> None:
    world = Busy(Law(120, 0.02, 0.001))
    control, _ = run(world, 600)
    before = control.pressure.allowed
    world.law = Law(120, 0.02, 0.05)  # somebody else uses the machine now
    control, pressures = go_on(world, control, 60 * before)
    assert min(p.allowed for p in pressures) < before
    assert share_of_best(world.law, control.pressure.allowed, 1, 16) > 0.8


def test_more_workers_are_tried_again_when_the_machine_is_free_again() -> None:
    world = Busy(Law(120, 0.02, 0.2))
    control, _ = run(world, 600)
    before = control.pressure.allowed
    world.law = Law(120, 0.02, 0.0)
    control, _ = go_on(world, control, 2000)
    assert control.pressure.allowed >= 2 * before


def test_it_holds_with_the_optimum_told_once_it_has_settled() -> None:
    control, pressures = run(Busy(Law(120, 0.1, 0.01)), 1000)  # N* = 9.5
    assert control.pressure.action == "hold"
    assert control.pressure.regime == "optimal"
    assert control.pressure.p_star == pytest.approx(9.5, rel=0.1)
    assert sum(p.action == "hold" for p in pressures) > 0.97 * len(pressures)


def test_what_began_before_a_change_says_nothing_of_it() -> None:
    control, _ = run(Busy(Law(120, 0, 0)), 4)
    assert control.pressure.allowed == 4
    late = Observation(control.since_ms - 1, control.since_ms + 5000, 4.0)
    assert control.advanced(late).window == ()
    in_time = Observation(control.since_ms, control.since_ms + 5000, 4.0)
    assert control.advanced(in_time).window == (in_time,)


def test_fewer_in_flight_than_allowed_say_nothing_of_what_is_allowed() -> None:
    control = begun(ON, 8)
    assert control.advanced(Observation(0, 1000, 1.2)).window == ()


def test_a_longer_evaluation_counts_by_its_length() -> None:
    assert Observation(0, 4000, 2.0, length=4.0).seconds == 1.0


def test_bounds_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(ValidationError, match="expected min_workers"):
        Backpressure(min_workers=4, max_workers=2)


def test_signals_have_the_names_that_files_have() -> None:
    assert Pressure("hold", "linear", None, 240.0, 2).signals() == {
        "bp_action": "hold",
        "bp_regime": "linear",
        "bp_p_star": None,
        "bp_throughput": 240.0,
    }
