"""The law through measured levels, and back-pressure on machines where a law holds."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.capacity import BackPressure, Law, fit

laws = st.builds(
    Law,
    one=st.floats(0.5, 5000),
    contention=st.floats(0, 0.6),
    coherency=st.one_of(st.just(0.0), st.floats(1e-4, 0.2)),
)


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


@given(laws, st.lists(st.integers(1, 64), min_size=3, max_size=8, unique=True), st.integers(1, 64))
def test_noiseless_levels_give_the_law_back(law: Law, workers: list[int], most: int) -> None:
    found = fit({n: law.throughput(n) for n in workers})
    for n in workers:
        assert found.throughput(n) == pytest.approx(law.throughput(n), rel=1e-5)
    own = found.recommended(most)
    assert 1 <= own <= most
    highest = max(found.throughput(n) for n in range(1, most + 1))
    assert found.throughput(own) >= 0.95 * highest


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
    found = fit(throughputs)
    assert found.recommended(max(throughputs)) == recommended
    assert found.regime(max(throughputs)) == regime
    assert min(found) >= 0


@dataclass
class Machine:
    """Evaluations that slow each other down as the law says; all that are allowed run at once."""

    law: Law
    spread: float = 0.0  # relative, of the work of an evaluation
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    now: float = 0.0
    flights: list[list[float]] = field(default_factory=list)  # work left, when it began

    def next(self, allowed: int) -> tuple[float, int]:
        """The next evaluation to end when so many may run: its seconds, and how many ran."""
        while len(self.flights) < allowed:
            work = max(0.1, 1 + self.spread * float(self.rng.standard_normal()))
            self.flights.append([work, self.now])
        count = len(self.flights)
        rate = self.law.throughput(count) / count / 3600
        first = min(self.flights)
        took = first[0] / rate
        self.now += took
        for flight in self.flights:
            flight[0] -= took * rate
        self.flights.remove(first)
        return self.now - first[1], count

    def drive(self, pace: BackPressure, count: int, skip: int = 0) -> tuple[float, int]:
        """Of the highest throughput, the share that later evaluations have; and the changes."""
        limits = []
        for _ in range(count):
            pace.observe(*self.next(pace.limit))
            limits.append(pace.limit)
        done = np.mean([self.law.throughput(limit) for limit in limits[skip:]])
        highest = max(self.law.throughput(n) for n in range(1, pace.devices + 1))
        return float(done) / highest, int(np.count_nonzero(np.diff(limits[skip:])))


def pace(directory: Path, devices: int = 16) -> BackPressure:
    return BackPressure(devices, directory, lambda _: None)


@given(laws, st.sampled_from([0.0, 0.1, 0.3]), st.integers(1, 16))
@settings(max_examples=30)
def test_it_stays_near_the_optimum(law: Law, spread: float, devices: int) -> None:
    share, changes = Machine(law, spread).drive(pace(Path("/nowhere"), devices), 400, 100)
    assert share > (0.85 if spread == 0 else 0.7)
    assert changes < 45


def test_it_does_not_increase_while_evaluations_take_longer_and_longer(tmp_path: Path) -> None:
    own = pace(tmp_path)
    for number in range(40):
        own.observe(1.2**number, 2)
        assert own.limit == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Law(120, 0.02, 0.001), Law(120, 0.02, 0.05)),  # another user's work slows the machine
        (Law(120, 0.02, 0.2), Law(120, 0.02, 0.0)),  # it is free again
    ],
)
def test_it_follows_a_machine_that_changes(before: Law, after: Law, tmp_path: Path) -> None:
    machine, own = Machine(before, 0.05), pace(tmp_path)
    machine.drive(own, 400)
    machine.law = after
    share, _ = machine.drive(own, 1000, 500)
    assert share > 0.85
