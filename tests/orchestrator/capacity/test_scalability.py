"""The law through measured levels, and the controller on machines where a law holds."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.capacity import Controller, Decision, Law, Level, fit

WORKERS = (1, 2, 4, 8, 16, 32)
laws = st.builds(
    Law,
    one=st.floats(0.5, 5000),
    contention=st.floats(0, 0.6),
    coherency=st.one_of(st.just(0.0), st.floats(1e-4, 0.2)),
)
noises = st.lists(st.floats(0.9, 1.1), min_size=6, max_size=6)


def levels_of(law: Law, workers: tuple[int, ...] = WORKERS, *factors: float) -> list[Level]:
    each = factors or (1.0,) * len(workers)
    return [Level(n, law.throughput(n) * f) for n, f in zip(workers, each, strict=True)]


@pytest.mark.parametrize(
    ("law", "workers", "regime"),
    [
        (Law(60, 0.0, 0.0), 64, "linear"),
        (Law(60, 0.2, 0.0), 4, "contended"),
        (Law(60, 1.0, 0.0), 1, "optimal"),
        (Law(60, 0.0, 0.01), 10, "optimal"),
        (Law(60, 0.0, 0.01), 3, "linear"),
        (Law(60, 0.0, 0.01), 40, "retrograde"),
        (Law(60, 0.0, 2.0), 2, "retrograde"),
    ],
)
def test_a_number_of_workers_has_one_regime(law: Law, workers: int, regime: str) -> None:
    assert law.regime(workers) == regime


@given(laws, st.lists(st.integers(1, 64), min_size=3, max_size=8, unique=True))
def test_noiseless_levels_give_the_law_back(law: Law, workers: list[int]) -> None:
    found = fit(levels_of(law, tuple(workers)))
    assert found.residual < 1e-6
    for n in workers:
        assert found.law.throughput(n) == pytest.approx(law.throughput(n), rel=1e-5)
        most = law.throughput(law.optimum if law.coherency else 1e9)
        assert found.law.throughput(n) <= most * (1 + 1e-9)


@given(laws, noises, st.integers(1, 64))
def test_the_recommended_workers_do_as_much_as_any_but_for_noise(
    law: Law, factors: list[float], most: int
) -> None:
    found = fit(levels_of(law, WORKERS, *factors))
    assert min(found.law) >= 0
    assert found.residual < 0.12
    own = found.recommended(most)
    assert 1 <= own <= min(most, 32)
    highest = max(found.law.throughput(n) for n in range(1, min(most, 32) + 1))
    assert found.law.throughput(own) >= (1 - found.noise) * highest * 0.99


@pytest.mark.parametrize(
    ("throughputs", "recommended", "regime"),
    [
        ({2: 100}, 2, "linear"),
        ({1: 100, 2: 185}, 2, "linear"),
        ({1: 100, 2: 80}, 1, "retrograde"),
        ({1: 100, 2: 220, 4: 460}, 4, "linear"),
        ({1: 100, 2: 190, 4: 340, 8: 300}, 5, "retrograde"),
        ({2: 100, 4: 30, 8: 5}, 1, "retrograde"),
    ],
)
def test_few_or_odd_levels(throughputs: dict[int, float], recommended: int, regime: str) -> None:
    found = fit([Level(n, throughput) for n, throughput in throughputs.items()])
    assert found.recommended(64) == recommended
    assert found.law.regime(max(throughputs)) == regime
    assert (found.optimum is None) == (len(throughputs) < 3 or regime == "linear")


@dataclass
class Machine:
    """Evaluations that slow each other down as the law says; as many at once as are allowed."""

    law: Law
    spread: float = 0.0  # relative, of the work of an evaluation
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    now_ms: float = 0.0
    flown_ms: float = 0.0
    flights: list[list[float]] = field(default_factory=list)  # work left, began, flown then

    def next(self, allowed: int) -> tuple[float, float]:
        """The next evaluation to end when so many may run: its seconds, the mean in flight."""
        while len(self.flights) < allowed:
            work = max(0.1, 1 + self.spread * float(self.rng.standard_normal()))
            self.flights.append([work, self.now_ms, self.flown_ms])
        count = len(self.flights)
        rate = self.law.throughput(count) / count / 3_600_000
        first = min(self.flights)
        took = first[0] / rate
        self.now_ms, self.flown_ms = self.now_ms + took, self.flown_ms + count * took
        for flight in self.flights:
            flight[0] -= took * rate
        self.flights.remove(first)
        lasted_ms = self.now_ms - first[1]
        return lasted_ms / 1000, (self.flown_ms - first[2]) / lasted_ms

    def drive(self, controller: Controller, count: int) -> list[Decision]:
        """So many evaluations, with the decision after each."""
        return [
            controller.observe(*self.next(controller.decision.bp_allowed)) for _ in range(count)
        ]

    def share(self, decisions: list[Decision], devices: int = 16) -> float:
        """Of the highest throughput that the devices can have."""
        done = np.mean([self.law.throughput(decision.bp_allowed) for decision in decisions])
        return float(done) / max(self.law.throughput(n) for n in range(1, devices + 1))


@given(laws, st.sampled_from([0.0, 0.1, 0.3]), st.integers(1, 16))
@settings(max_examples=30, derandomize=True, deadline=None)
def test_the_controller_stays_near_the_optimum(law: Law, spread: float, devices: int) -> None:
    machine = Machine(law, spread)
    decisions = machine.drive(Controller(devices), 400)
    assert {1 <= decision.bp_allowed <= devices for decision in decisions} == {True}
    assert machine.share(decisions[100:], devices) > (0.85 if spread == 0 else 0.6)
    changes = [one for one in decisions[100:] if one.bp_action != "hold"]
    assert len(changes) < 45


def test_it_does_not_increase_while_evaluations_take_longer_and_longer() -> None:
    controller = Controller(16)
    for number in range(40):
        controller.observe(1.2**number, 2.0)
        assert controller.decision.bp_allowed == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Law(120, 0.02, 0.001), Law(120, 0.02, 0.05)),  # somebody else uses the machine now
        (Law(120, 0.02, 0.2), Law(120, 0.02, 0.0)),  # it is free again
    ],
)
def test_it_follows_a_machine_that_changes(before: Law, after: Law) -> None:
    machine, controller = Machine(before, 0.05), Controller(16)
    machine.drive(controller, 400)
    machine.law = after
    decisions = machine.drive(controller, 1000)
    assert machine.share(decisions[500:]) > 0.85


def test_a_stable_hold_is_optimal_and_told() -> None:
    controller = Controller(16)
    decisions = Machine(Law(120, 0.1, 0.01)).drive(controller, 150)  # N* = 9.5
    assert decisions[-1].bp_regime == "optimal"
    assert decisions[-1].bp_p_star == pytest.approx(9.5, rel=0.1)
    decisions = Machine(Law(120, 0.0, 0.3)).drive(Controller(16), 60)  # N* = 1.8
    throttles = [one for one in decisions if one.bp_action == "throttle"]
    assert throttles[0].bp_regime == "retrograde"
