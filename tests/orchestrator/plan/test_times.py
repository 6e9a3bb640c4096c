"""What is known of an evaluation, as it lies on disk."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budgets.ledger import LEDGER
from budgets.plan import Calibration, Devices
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from orchestrator.execution.engine import Engine, devices_of
from orchestrator.plan.history import Entry, append
from orchestrator.plan.times import ASSUMED, NOTHING, Latest, Times, times_here
from orchestrator.records.recorded import Result

SETTINGS = {"noise": 0.01}


def sphere(**settings: float) -> Objective:
    return registry.load(ObjectiveSpec(name="sphere", settings={**SETTINGS, **settings}))


def one_device() -> Devices:
    return devices_of(Engine(kind="inline", workers=1).slots())


@pytest.fixture
def root(tmp_path: Path, run_search: Callable[..., Result]) -> Path:
    """A calibration, and a search that was planned with it."""
    run_search(tmp_path, settings=SETTINGS)
    return tmp_path


def test_a_calibration_is_measured_with_its_own_overheads_and_the_runs(root: Path) -> None:
    found = times_here(root, sphere(), one_device())
    assert found.origin == "measured"
    assert found.calibration is not None
    assert len(found.calibration.samples) == 8
    assert found.overheads.assumed == ()
    assert found.measured_at is not None
    assert (found.attempts, found.timeouts) == (8 + 16, 0)
    assert found.evaluation_bytes is not None
    assert found.latest is not None
    assert (found.latest.run_id, found.latest.evaluations) == ("min-sphere-s1", 16)
    assert found.drift == pytest.approx(
        found.latest.eval_seconds / found.calibration.median_seconds
    )


def test_without_a_search_the_time_between_generations_is_assumed(root: Path) -> None:
    (next((root / "phase1").iterdir()) / LEDGER).unlink()
    found = times_here(root, sphere(), one_device())
    assert found.overheads.assumed == ("between generations",)
    assert found.latest is None
    assert found.drift is None


@pytest.mark.parametrize(
    ("objective", "devices"),
    [
        (sphere(noise=0.02), one_device()),
        (sphere(), one_device().model_copy(update={"count": 3})),
        (sphere(), one_device().model_copy(update={"name": "another processor"})),
    ],
)
def test_what_was_measured_elsewhere_or_of_something_else_does_not_count(
    root: Path, objective: Objective, devices: Devices
) -> None:
    found = times_here(root, objective, devices)
    assert found.origin in ("prior", "none")
    assert (found.latest, found.measured_at, found.evaluation_bytes) == (None, None, None)
    assert found.overheads == ASSUMED


def test_an_earlier_run_stands_in_for_a_calibration_and_is_named(
    tmp_path: Path, make_entry: Callable[..., Entry]
) -> None:
    here = one_device()
    there = {"device_kind": here.kind, "device_name": here.name, "threads": here.threads}
    earlier = make_entry(fingerprint=sphere().fingerprint, devices=here.count, **there)
    append(tmp_path, [earlier])
    found = times_here(tmp_path, sphere(), here)
    assert found.origin == "prior"
    assert found.calibration == Calibration(assumed_seconds=10.0)
    assert found.prior is not None
    assert "earlier" in found.prior.sentence()
    assert found.overheads == ASSUMED


def test_somebodys_word_comes_before_a_measurement(root: Path) -> None:
    found = times_here(root, sphere(), one_device(), assumed_seconds=5.0)
    assert found.origin == "assumed"
    assert found.calibration == Calibration(assumed_seconds=5.0)
    assert found.overheads != ASSUMED  # the run's are measured all the same


def test_a_damaged_run_is_noted_and_the_one_before_it_is_read(
    root: Path, run_search: Callable[..., Result]
) -> None:
    run_search(root, settings=SETTINGS, run_id="later")
    ledger = root / "phase1/later" / LEDGER
    ledger.write_bytes(ledger.read_bytes().replace(b'"score":', b'"scora":', 1))
    os.utime(ledger, (2e9, 2e9))
    found = times_here(root, sphere(), one_device())
    assert found.latest is not None
    assert found.latest.run_id == "min-sphere-s1"
    assert len(found.notes) == 1
    assert "later" in found.notes[0]


def test_the_latest_run_is_the_one_that_was_written_last(
    root: Path, run_search: Callable[..., Result]
) -> None:
    run_search(root, settings=SETTINGS, run_id="another")
    os.utime(root / "phase1/min-sphere-s1" / LEDGER, (2e9, 2e9))
    found = times_here(root, sphere(), one_device())
    assert found.latest is not None
    assert found.latest.run_id == "min-sphere-s1"


def test_points_that_met_on_the_same_seeds_tell_what_a_seed_adds_to_all_alike(
    confirmed_run: Path,
) -> None:
    objective = registry.load(
        ObjectiveSpec(name="sphere", settings={"dimension": 2, "noise": 0.01})
    )
    two = devices_of(Engine(kind="inline", workers=2).slots())
    found = times_here(confirmed_run.parent.parent, objective, two, assumed_seconds=1.0)
    assert found.latest is not None
    assert found.latest.own_noise is not None
    assert 0.002 < found.latest.own_noise < 0.05


def noisy(calibrated: Callable[..., Calibration], own: float | None) -> Times:
    latest: Any = None if own is None else Latest("r", 1.0, 8, own, NOTHING)
    return Times("measured", calibrated((2.0, 2.06, 1.94)), latest=latest)


def test_without_that_all_noise_counts_as_ones_own(calibrated: Callable[..., Calibration]) -> None:
    assert noisy(calibrated, None).own_noise == pytest.approx(0.03)
    assert noisy(calibrated, 0.024).own_noise == pytest.approx(0.012)
    assert Times().own_noise is None
    assert Times("measured", calibrated((0.0, 1.0, -1.0))).own_noise is None
