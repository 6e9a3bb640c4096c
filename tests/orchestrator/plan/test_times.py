"""The times, overheads and sizes that a plan is made with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from budgets.plan import Calibration, Devices
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from orchestrator.execution.engine import Engine
from orchestrator.plan.forecast import scaled, times_here
from orchestrator.records.runs import Result, load_state
from tests.ledgers import cut

if TYPE_CHECKING:
    from tests.conftest import Answer, Command

SETTINGS, FLOPS = {"noise": 0.01}, "target_flops=3e8"
Calibrated = Callable[..., Calibration]


def sphere(**settings: float) -> Objective:
    return registry.load(ObjectiveSpec(name="sphere", settings={**SETTINGS, **settings}))


def one_device() -> Devices:
    return Engine(kind="inline", workers=1).slots()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, run_search: Callable[..., Result]) -> Path:
    """A calibration, and a search that was planned with it."""
    root = tmp_path_factory.mktemp("root")
    run_search(root, settings=SETTINGS)
    return root


def test_a_calibration_is_measured_with_its_own_overheads(root: Path) -> None:
    found = times_here(root, sphere(), one_device())
    assert found.origin == "measured"
    assert found.calibration is not None
    assert len(found.calibration.samples) == 8
    assert found.timeouts == 0
    stated = times_here(root, sphere(), one_device(), assumed_seconds=5.0)
    assert (stated.origin, stated.calibration) == ("assumed", Calibration(assumed_seconds=5.0))


@pytest.mark.parametrize(
    ("objective", "facts", "origin"),
    [
        (sphere(), {"count": 3}, "prior"),
        (sphere(noise=0.02), {}, "none"),  # nobody counts its FLOPs
        (sphere(), {"name": "another processor"}, "none"),
        (sphere(), {"threads": 2}, "none"),
        (registry.load(ObjectiveSpec(name="ellipsoid")), {}, "none"),
    ],
)
def test_what_was_measured_elsewhere_or_of_something_else_does_not_count(
    root: Path, objective: Objective, facts: dict[str, Any], origin: str
) -> None:
    found = times_here(root, objective, one_device().model_copy(update=facts))
    assert found.origin == origin
    if found.calibration is not None:
        assert found.calibrates


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


def test_other_flops_are_scaled_beside_the_start_up(calibrated: Calibrated) -> None:
    measured = calibrated((1.0, 1.1), (10.0, 10.0))
    assert scaled(measured, 2.0).median_seconds == pytest.approx(0.5 + 2 * 9.5 / 0.7)


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
    assert new.state.plan.calibration is not None
    assert new.state.plan.calibration.ledger == load_state(root / "calibration" / last).head


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
