"""What an evaluation and a search take, what must be free for them, and how that is known."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from budgets.measurements import measure
from budgets.plan import Calibration, Devices, Plan
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from orchestrator.execution.devices import Engine
from orchestrator.plan.forecast import Forecast, detectable_gain, forecast_of, times_here, work_of
from orchestrator.plan.resolve import search_plan
from orchestrator.records.runs import Result, load_state
from tests.asking import config_for
from tests.ledgers import cut

if TYPE_CHECKING:
    from tests.conftest import Answer, Command

Calibrated = Callable[..., Calibration]
pytestmark = pytest.mark.usefixtures("no_overheads")

MINUTE = Calibration(assumed_seconds=60.0)
ALONE: dict[str, Any] = {"confirm_seeds": 0}


def plan(devices: int = 1, **more: Any) -> Plan:
    objective = registry.load(ObjectiveSpec(name="sphere"))
    offered = Devices(count=devices, kind="cpu", name="x", threads=1, memory_bytes=1 << 30)
    return search_plan(config_for("phase1", "target", objective, **more), offered, MINUTE)


def taken(own: Plan, calibration: Calibration = MINUTE, *, calibrates: bool = False) -> Forecast:
    own = own.model_copy(update={"calibration": calibration})
    found = forecast_of(own, calibrates=calibrates)
    assert found is not None
    return found


def test_the_reference_panel_fills_what_generations_leave_idle() -> None:
    """8 x 15 on 3 devices: 15 x 3 rounds, one slot idle in each generation, for 11 evaluations;
    then 12 finalists and 8 of the winner in 4 and 3 rounds."""
    own = plan(3, population=8, long_run=0.0)
    assert len(work_of(own)["reference"]) == 11
    assert 60 * taken(own).hours_p50 == pytest.approx(45 + 4 + 3)


def test_waiting_for_the_slowest_costs_more_than_the_mean(calibrated: Calibrated) -> None:
    uneven = calibrated((1.0,) * 6, (50.0, 55.0, 58.0, 62.0, 66.0, 72.0))
    found, even = taken(plan(8, **ALONE), uneven), taken(plan(8, **ALONE))
    assert found.hours_p50 > 1.1 * even.hours_p50
    assert found.hours_p50 < found.hours_p90 < found.hours_free
    assert found == taken(plan(8, **ALONE), uneven), "equal plans, equal figures"


def test_what_is_not_measured_is_calibrated_first() -> None:
    """8 evaluations on 4 devices: two rounds before the search; a stated time is not measured."""
    own = plan(4, **ALONE)
    word, first = taken(own), taken(own, calibrates=True)
    assert 60 * (first.hours_p50 - word.hours_p50) == pytest.approx(2)
    assert 60 * (first.device_hours_free - word.device_hours_free) == pytest.approx(8)


def test_last_attempts_limits_and_the_long_run_must_be_free_too() -> None:
    """8 x 15 on 4 devices; 11, 12 and 8 evaluations of the verdict; limits of 5 minutes."""
    alone = taken(plan(4, limit_seconds=290.0, **ALONE))
    assert 60 * alone.hours_free == pytest.approx(30 + 4)
    whole = taken(plan(4, limit_seconds=290.0))
    assert 60 * whole.hours_free == pytest.approx(30 + 8 + 4 + 4 + 5)
    assert 60 * whole.device_hours_free == pytest.approx(120 + 31 + 16 + 4 + 5)


@pytest.mark.parametrize(
    ("scores", "least"),
    [((1.00, 1.01, 0.99), 0.0198), ((1.0, 1.0), 0.0), ((0.1, 0.2, -0.3), None), ((1.0,), None)],
)
def test_the_noise_says_what_gain_a_verdict_would_see(
    calibrated: Calibrated, scores: tuple[float, ...], least: float | None
) -> None:
    found = detectable_gain(plan(8).model_copy(update={"calibration": calibrated(scores)}))
    assert (None if found is None else round(found, 4)) == least


SETTINGS, FLOPS = {"noise": 0.01}, "target_flops=3e8"


def sphere(**settings: float) -> Objective:
    return registry.load(ObjectiveSpec(name="sphere", settings={**SETTINGS, **settings}))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, run_search: Callable[..., Result]) -> Path:
    """A calibration, and a search that was planned with it."""
    root = tmp_path_factory.mktemp("root")
    run_search(root, settings=SETTINGS)
    return root


@pytest.mark.parametrize(
    ("objective", "facts", "is_scaled"),
    [
        (sphere(), {"count": 3}, True),
        (sphere(noise=0.02), {}, False),  # its FLOPs are not counted
        (sphere(), {"name": "another processor"}, False),
        (sphere(), {"threads": 2}, False),
        (registry.load(ObjectiveSpec(name="ellipsoid")), {}, False),
    ],
)
def test_what_was_measured_elsewhere_or_of_something_else_does_not_count(
    root: Path, objective: Objective, facts: dict[str, Any], is_scaled: bool
) -> None:
    here = Engine(kind="inline", workers=1).slots()
    found = times_here(root, objective, here.model_copy(update=facts))
    assert found.calibrates is is_scaled is (found.calibration is not None)


def test_the_nearest_calibration_is_named_and_scaled_by_exact_flops(command: "Command") -> None:
    tiny = ("n_layer=1", "n_embd=16", "sequence_len=64", "val_windows=8")
    sets = [word for setting in tiny for word in ("--set", setting)]
    inline = ("--executor", "inline", "--workers", "1")
    assert command("calibrate", *sets, *inline, "--set", FLOPS, "--seeds", "2").code == 0

    def seconds(*more: str, flops: str = FLOPS) -> tuple[float, str]:
        words = ("plan", *sets, *inline, *more, "--set", flops, "--json")
        found = json.loads(command(*words).out)
        return found["evaluation"]["seconds"], found["times"]["prior"] or ""

    here, none = seconds()
    assert none == ""
    same_work, said = seconds("--set", "matrix_lr=0.01")
    assert same_work == pytest.approx(here)
    assert said.endswith(f"{here:.3g} s an evaluation, measured")
    longer, said = seconds(flops="target_flops=3e9")
    assert longer > 2 * here
    assert "x its FLOPs" in said


# Calibrations made again


@pytest.fixture
def calibrate(command: "Command") -> Callable[..., "Answer"]:
    """`calibrate` on four seeds of a sphere, with more options."""
    known = ("--objective", "sphere", "--executor", "inline", "--workers", "1", "--set")
    return lambda *more: command("calibrate", *known, "noise=0.01", "--seeds", "4", *more)


def made(folder: Path) -> list[str]:
    return sorted(p.name for p in (folder / "artifacts/cmaes/calibration").iterdir())


def test_the_newest_is_planned_with_and_one_that_was_interrupted_is_resumed(
    calibrate: Callable[..., "Answer"], tmp_path: Path, run_search: Callable[..., Result]
) -> None:
    root = tmp_path / "artifacts/cmaes"
    for again in ((), ("--again",), ("--again",)):
        calibrate(*again)
    first, _, last = made(tmp_path)
    assert last == f"{first}-3"
    cut(root / "calibration" / last, 4)
    calibrate("--again")
    assert len(made(tmp_path)) == 3
    new = run_search(root, settings=SETTINGS)
    assert new.state.plan.calibration == measure(load_state(root / "calibration" / last))


def test_a_paused_one_goes_on_when_overridden(
    calibrate: Callable[..., "Answer"], tmp_path: Path
) -> None:
    again = ("--set", "failure_rate=0.5", "--again")
    overridden = ("--override", "crash_rate", "--reason", "known")
    paused = calibrate(*again)
    same = calibrate(*again, *overridden)
    other = calibrate(*again, *overridden)
    assert (paused.code, same.code, other.code) == (3, 0, 2)
    assert "there is no such run yet" in other.err
    assert len(made(tmp_path)) == 1
