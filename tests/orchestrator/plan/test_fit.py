"""What fits into a window, in which order, at what price; and that the engine agrees."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from budgets.plan import Calibration, Devices, Window
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from orchestrator.config import Config
from orchestrator.matrix.carry_out import carry_out_search
from orchestrator.plan.fit import Choice, Wanted, available, best, choices, fit_text
from orchestrator.plan.forecast import Times
from orchestrator.records.runs import Result, load_state
from tests.asking import config_for
from tests.conftest import make_session
from tests.simulation.instant import InstantExecutor, Machine
from tests.simulation.session import BEGAN, SimulatedClock, SimulatedEngine

if TYPE_CHECKING:
    from tests.conftest import Command

pytestmark = pytest.mark.usefixtures("no_overheads")

DEVICES = Devices(count=4, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30)
MINUTE, HOUR = 1 / 60, 3600.0
NOW = datetime(2030, 1, 1, tzinfo=UTC)

Calibrated = Callable[..., Calibration]

EVEN = Times(Calibration(assumed_seconds=60.0))
"""A minute each: no spread, no failures."""


@pytest.fixture
def measured(calibrated: Calibrated) -> Times:
    """A minute each, six seconds of it start-up."""
    own = calibrated((1.00, 1.01, 0.99, 1.00), (60.0,) * 4)
    samples = tuple(one.model_copy(update={"startup_seconds": 6.0}) for one in own.samples)
    own = own.model_copy(update={"samples": samples})
    return Times(own)


def sphere(**options: Any) -> Objective:
    return registry.load(ObjectiveSpec(name="sphere", settings=options))


def wanted(minutes: float, times: Times | None = None, **fields: Any) -> Wanted:
    """Tier target on four devices: 8 x 15, 60 s each, so 30 min; limits of 5 min."""
    values: dict[str, Any] = {
        "phase": "phase1",
        "tier": "target",
        "objective": sphere(),
        "limit_seconds": 290.0,
        "confirm_seeds": 0,
        **fields,
    }
    return Wanted(config_for(**values), DEVICES, times or EVEN, minutes * MINUTE)


def summary(found: list[Choice]) -> list[tuple[str, bool]]:
    return [(choice.what, choice.fits) for choice in found]


def test_generations_are_given_up_first_then_the_tier_then_the_training() -> None:
    found = choices(wanted(21.0))
    assert summary(found) == [
        ("as asked", False),
        ("8 of 15 generations", True),
        ("tier min", True),
        ("0.3 x effort", True),
    ]
    assert best(found) is found[1]
    assert found[1].forecast.hours_free == pytest.approx(20 * MINUTE)
    assert found[1].plan.resolved.evaluations == 64
    lower = choices(wanted(45.0, tier="max"))
    assert [c.what for c in lower if c.what.startswith("tier")] == ["tier target", "tier min"]


def test_a_phase_2_can_give_up_seeds() -> None:
    asked = wanted(100.0, phase="phase2", follows="earlier", variant="robust")
    found = choices(asked)  # 16 candidates on 3 seeds in 15 generations: 180 min
    two, one = (choice for choice in found if "seeds" in choice.what)
    assert (two.what, two.fits) == ("2 of 3 seeds, 24 of 30 generations", True)
    assert (one.what, one.fits) == ("1 of 3 seeds", True)
    assert "1.7 times as noisy" in one.price


def test_less_training_takes_less_by_its_exact_flops(measured: Times) -> None:
    objective = registry.load(ObjectiveSpec(name="nanochat"))
    options = {"objective": objective, "tier": "min", "limit_seconds": 60.0}
    less = choices(wanted(4.0, measured, **options))[-1]
    shorter = registry.load(registry.varied(objective.spec, less.changes))
    whole, part = objective.flops(), shorter.flops()
    assert whole is not None
    assert part is not None
    assert less.plan.calibration is not None
    expected = 6 + 54 * part.total / whole.total / 0.7
    assert less.plan.calibration.median_seconds == pytest.approx(expected)
    rounds = less.plan.resolved.evaluations / 4 + 2  # calibrated first: 8 evaluations
    assert less.forecast.hours_p50 == pytest.approx(rounds * expected / 3600)


def test_where_nothing_fits_the_least_is_named(measured: Times) -> None:
    asked = wanted(4.0)
    none = choices(asked)
    assert best(none) is None
    said = fit_text(none, asked.hours)
    assert "Nothing fits: the least, " in said
    assert said.count(", assumed") == len(none)
    with pytest.raises(ValueError, match="orchestrator calibrate"):
        choices(wanted(10.0, Times()))


def test_where_much_is_unused_more_is_offered_and_nothing_more_is_taken(measured: Times) -> None:
    found = choices(wanted(300.0, measured, long_run=0.0, confirm_seeds=8))
    assert [what for what, _ in summary(found)] == ["as asked", "tier max", "16 confirmation seeds"]
    assert best(found) is found[0]
    assert ", assumed" not in fit_text(found, 300.0)
    assert found[1].plan.resolved.evaluations == 480
    assert [len(choices(wanted(minutes))) for minutes in (67.0, 69.0)] == [1, 2]
    assert choices(wanted(100.0))[1].what == "tier max, 48 of 60 generations"


def test_the_time_there_is_is_the_tighter_of_window_and_cap() -> None:
    def asking(**fields: Any) -> Config:
        return config_for(phase="phase1", tier="min", objective=sphere(), **fields)

    assert available(asking(window=Window(hours=12.0)), NOW) == pytest.approx(11.5)
    until = Window(until=NOW + timedelta(hours=3), margin_seconds=3600)
    assert available(asking(window=until), NOW) == pytest.approx(2.0)
    assert available(asking(window=Window(hours=12.0), max_hours=2.0), NOW) == 2.0
    with pytest.raises(ValueError, match="--window: expected a moment more than"):
        available(asking(window=Window(until=NOW, margin_seconds=0)), NOW)
    with pytest.raises(ValueError, match="--fit: needs a limit"):
        available(asking(), NOW)


# The engine agrees: simulated runs of one minute an evaluation, on two devices

MACHINE = Machine(devices=2, seconds=59.9, spread=0.0)  # and 0.1 s to start
MARGIN = 120.0

Search = Callable[..., Result]


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def search(tmp_path: Path, clock: SimulatedClock) -> Search:
    """Runs or resumes a search in simulated time."""

    def run(asked: Config) -> Result:
        make = lambda _: InstantExecutor(MACHINE, clock, np.random.default_rng(1))  # noqa: E731
        with make_session(tmp_path, SimulatedEngine("inline", make=make), clock=clock.clock) as own:
            return carry_out_search(own, asked, MACHINE.slots)

    return run


def within(asked: Config, run_id: str, seconds: float) -> Config:
    window = {"budget.window": f"{seconds!r}s", "budget.safety_margin": f"{MARGIN!r}s"}
    return asked.having({"search.run_id": run_id, **window})


@given(
    generations=st.integers(2, 4),
    population=st.sampled_from([6, 8, 10]),
    seeds=st.sampled_from([0, 2, 5, 8]),
    long_run=st.sampled_from([0.0, 4.0]),
    limit=st.floats(61.0, 400.0),
)
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_what_fits_is_admitted_to_its_last_generation_and_what_does_not_is_not(
    search: Search,
    clock: SimulatedClock,
    generations: int,
    population: int,
    seeds: int,
    long_run: float,
    limit: float,
) -> None:
    asked = config_for(
        "phase1",
        "target",
        sphere(noise=0.01),
        assumed_seconds=60.0,
        generations=generations,
        population=population,
        confirm_seeds=seeds,
        long_run=long_run,
        limit_seconds=limit,
    )
    roomy = asked.having({"budget.window": "1000h"})
    there = available(roomy, BEGAN)
    (whole, *_) = choices(Wanted(roomy, MACHINE.slots, EVEN, there))
    enough = HOUR * whole.forecast.hours_free + MARGIN
    began = f"{clock.seconds:.0f}"
    done = search(within(asked, f"enough-{began}", enough + 1))
    assert len(done.state.completed) == generations
    assert not any(fired.rule == "budget" for fired in done.state.fired)
    clock.advance_to(clock.seconds + 1)
    short = search(within(asked, f"short-{began}", enough - 1))
    fewer = len(short.state.completed) < generations
    has_long_run = long_run > 0 and seeds > 0  # it is left out where it does not fit
    assert fewer or has_long_run
    assert not fewer or any(fired.rule == "budget" for fired in short.state.fired)


# The command

ASKED = ("--objective", "sphere", "--executor", "inline", "--workers", "1", "--tier", "target")
LIMITED = ("--set", "evaluation.limit_seconds=290", "--set", "verdict.confirm_seeds=0")


def test_what_a_choice_asks_for_reaches_the_run(command: "Command", tmp_path: Path) -> None:
    words = (*ASKED, "--assume-eval-seconds", "60", *LIMITED)
    answer = command("plan", *words, "--fit", "--window", "2h", "--json")
    assert answer.code == 0, answer.err
    first, *others = (one["options"] for one in json.loads(answer.out)["choices"])
    assert first == []
    assert others[:2] == [["--set", "search.generations=10"], ["--tier", "min"]]
    assert others[2][1].startswith("effort=0.")
    assert command("phase1", *words, *others[0]).code == 0
    state = load_state(tmp_path / "artifacts/cmaes/phase1/target-sphere-s1")
    assert state.planned.resolved.generations == 10
