"""The times, overheads and sizes that a plan is made with."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from budgets.ledger import LEAST_FREE_BYTES
from budgets.plan import Calibration, Devices
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from orchestrator.execution.engine import Engine, devices_of
from orchestrator.plan.history import Entry, append, measured_overheads
from orchestrator.plan.times import (
    ASSUMED,
    BLOCK,
    EVALUATION_BYTES,
    Times,
    bytes_of_evaluations,
    calibration_lines,
    disk_of,
    overheads_of,
    times_here,
)
from orchestrator.records.recorded import Result, load_state

SETTINGS = {"noise": 0.01}
Calibrated = Callable[..., Calibration]


def sphere(**settings: float) -> Objective:
    return registry.load(ObjectiveSpec(name="sphere", settings={**SETTINGS, **settings}))


def one_device() -> Devices:
    return devices_of(Engine(kind="inline", workers=1).slots())


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, run_search: Callable[..., Result]) -> Path:
    """A calibration, and a search that was planned with it."""
    root = tmp_path_factory.mktemp("root")
    run_search(root, settings=SETTINGS)
    return root


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
    assert found.latest.run_id == "min-sphere-s1"
    assert found.drift is not None
    assert found.drift > 0


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


def test_what_the_user_states_comes_first_then_a_prior_then_nothing(
    root: Path, tmp_path: Path, make_entry: Callable[..., Entry]
) -> None:
    here = one_device()
    stated = times_here(root, sphere(), here, assumed_seconds=5.0)
    assert (stated.origin, stated.calibration) == ("assumed", Calibration(assumed_seconds=5.0))
    assert stated.overheads != ASSUMED  # the run's are measured all the same
    assert times_here(tmp_path, sphere(), here) == Times()
    there = {"device_kind": here.kind, "device_name": here.name, "threads": here.threads}
    append(tmp_path, make_entry(fingerprint=sphere().fingerprint, devices=here.count, **there))
    found = times_here(tmp_path, sphere(), here)
    assert (found.origin, found.calibration) == ("prior", Calibration(assumed_seconds=10.0))
    assert found.calibration is not None
    assert found.is_to_measure(found.calibration)
    assert not stated.is_to_measure(found.calibration)


def test_other_flops_are_scaled_and_discounted_once(
    tmp_path: Path, make_entry: Callable[..., Entry]
) -> None:
    here = one_device()
    there = {"device_kind": here.kind, "device_name": here.name, "threads": here.threads}
    measured = make_entry(fingerprint=sphere().fingerprint, devices=here.count, **there)
    append(tmp_path, measured)
    times = times_here(tmp_path, sphere(), here)
    for factor, seconds in ((1.0, 10.0), (2.0, 1 + 18 / 0.7)):
        scaled = times.for_work(factor)
        assert scaled is not None
        assert scaled.median_seconds == pytest.approx(seconds)
    append(tmp_path, measured.model_copy(update={"devices": here.count + 1}))
    elsewhere = times_here(tmp_path, sphere(), here)  # scaled from there already
    assert elsewhere.calibration is not None
    twice = elsewhere.for_work(2.0)
    assert twice is not None
    assert twice.median_seconds == pytest.approx(2 * elsewhere.calibration.median_seconds - 1)
    assert Times().for_work(2.0) is None


# Overheads


def test_what_nobody_measured_is_assumed_and_marked() -> None:
    found = overheads_of({"startup_seconds": 1.0, "gap_seconds": 0.5}, {"startup_seconds": 3.0})
    assert (found.startup_seconds, found.gap_seconds) == (3.0, 0.5)
    assert found.assumed == ("generation_seconds",)
    assert found.generation_seconds == ASSUMED.generation_seconds


def test_gaps_and_waits_are_those_of_one_session(root: Path) -> None:
    state = load_state(root / "phase1/min-sphere-s1")
    whole = measured_overheads(state)
    first, second = state.generations
    for key, tries in second.attempts.items():
        late = (one._replace(reserved_ms=one.reserved_ms + 60_000) for one in tries)
        second.attempts[key] = tuple(late)
    later = measured_overheads(state)
    assert later["generation_seconds"] == pytest.approx(whole["generation_seconds"] + 60)
    for key, tries in second.attempts.items():
        second.attempts[key] = tuple(one._replace(session=one.session + 1) for one in tries)
    assert "generation_seconds" not in measured_overheads(state)
    first.attempts.clear()
    second.attempts.clear()
    state.starts_ms.clear()
    assert measured_overheads(state) == {}


# Disk


def test_a_run_takes_what_was_foretold(root: Path) -> None:
    run = root / "phase1/min-sphere-s1"
    plan, above = load_state(run).plan, (2 + 16) * BLOCK
    found = disk_of(plan, run.parent, None)
    assert (found.measured, found.evaluations) == (False, 16 * EVALUATION_BYTES + above)
    files = [
        *(run / "reports").iterdir(),
        *(run / name for name in ("progress.csv", "metrics.jsonl", "ledger.jsonl")),
    ]
    assert found.records == pytest.approx(sum(f.stat().st_size for f in files), rel=0.6)
    measured = disk_of(plan, run.parent, 10_000)
    assert (measured.measured, measured.evaluations) == (True, 16 * 10_000 + above)
    assert measured.needed == measured.evaluations + measured.records + LEAST_FREE_BYTES


def test_an_evaluations_directory_is_measured_in_whole_blocks(tmp_path: Path) -> None:
    assert bytes_of_evaluations(tmp_path) is None
    for seed in (1, 2):
        place = tmp_path / f"eval/gen_0000/cand_0000/seed_{seed}"
        place.mkdir(parents=True)
        (place / "config.json").write_bytes(b"x" * 5000)
    found = bytes_of_evaluations(tmp_path)
    assert found is not None
    assert found % 512 == 0
    assert found >= 5000
    (tmp_path / "eval/gen_0000/beside").write_bytes(b"x" * 100_000)  # not of an evaluation
    for path in (tmp_path / "eval").rglob("config.json"):
        with path.open("ab") as file:
            file.write(b"x" * 8192)
            os.fsync(file.fileno())
    assert bytes_of_evaluations(tmp_path) == found + 8192


@pytest.mark.parametrize(
    ("scores", "failed", "said"),
    [
        ((3.00, 3.02, 3.04), 0, "median of 3; 2.0 to 4.0 s, p90 3.8 s"),
        ((3.00, 3.02, 3.04), 0, "(0.66%; 95% interval 0.34% to 4.16%)"),
        ((3.0, 3.0), 0, "on each of 2 seeds"),
        ((3.0,), 0, "on one seed"),
        ((3.0, 3.1), 0, "None of 2"),
        ((3.00, 3.02, 3.04), 1, "1 of 4 evaluations of the baseline failed (25.0%;"),
        ((0.1, 0.2, -0.3), 0, "cannot be told from 0"),
    ],
)
def test_a_calibration_is_told_with_how_well_it_is_known(
    calibrated: Calibrated, scores: tuple[float, ...], failed: int, said: str
) -> None:
    assert said in " ".join(calibration_lines(calibrated(scores, failed=failed)))
