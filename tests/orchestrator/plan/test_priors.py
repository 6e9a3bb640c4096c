"""Times come from the nearest earlier run, by exact FLOPs, or not at all."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from budgets.plan import Devices
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from orchestrator.plan.history import append, nearest, scaled_seconds
from orchestrator.plan.times import times_here

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.orchestrator.plan.conftest import MakeEntry

DEVICES = Devices(count=2, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30)


def nanochat(**settings: Any) -> Objective:
    return registry.load(ObjectiveSpec(name="nanochat", settings=settings))


def ran(make_entry: "MakeEntry", objective: Objective, **fields: Any) -> Any:
    """An entry of that objective, its FLOPs those of the formula."""
    flops = objective.flops()
    assert flops is not None
    return make_entry(
        objective="nanochat",
        fingerprint=objective.fingerprint,
        settings=objective.spec.settings,
        evaluation={"train_flops": flops.train, "eval_flops": flops.score},
        **fields,
    )


def test_the_same_objective_takes_what_it_took(make_entry: "MakeEntry") -> None:
    objective = nanochat()
    found = nearest([ran(make_entry, objective)], objective, DEVICES)
    assert found is not None
    assert (found.nearness, found.factor, found.is_assumed) == ("the same objective", 1.0, False)
    assert found.eval_seconds == 10.0


def test_a_run_whose_devices_were_not_all_busy_is_no_measurement(make_entry: "MakeEntry") -> None:
    objective = registry.load(ObjectiveSpec(name="sphere"))
    entry = make_entry(fingerprint=objective.fingerprint, evaluation={"samples": 1})
    found = nearest([entry], objective, DEVICES)
    assert found is not None
    assert found.is_assumed


def test_a_longer_training_takes_more_by_all_its_flops_and_no_more_start_up(
    make_entry: "MakeEntry",
) -> None:
    before, after = nanochat(target_flops=3e10), nanochat(target_flops=6e10)
    found = nearest([ran(make_entry, before)], after, DEVICES)
    assert found is not None
    assert found.nearness == "the same model"
    short, long = before.flops(), after.flops()
    assert short is not None
    assert long is not None
    factor = (long.train + long.score) / (short.train + short.score)
    assert 1.5 < factor < 2  # scoring costs the same
    assert found.factor == pytest.approx(factor)
    assert found.is_assumed
    assert found.eval_seconds == pytest.approx(1 + 9 * factor / 0.7)


def test_a_scaled_time_is_taken_with_seven_tenths_of_the_throughput() -> None:
    assert scaled_seconds(10.0, 1.0, 2.0, is_assumed=False) == pytest.approx(19.0)
    assert scaled_seconds(10.0, 1.0, 2.0, is_assumed=True) == pytest.approx(1 + 18 / 0.7)


def test_the_nearest_is_taken(make_entry: "MakeEntry") -> None:
    objective = nanochat()
    same = ran(make_entry, objective, run_id="same")
    others = [
        ran(make_entry, nanochat(n_embd=64), run_id="wider"),
        ran(make_entry, nanochat(n_embd=48), run_id="a little wider"),
        ran(make_entry, nanochat(target_flops=6e10), run_id="longer"),
        ran(make_entry, objective, run_id="same, more devices", devices=4),
        same,
    ]
    order = []
    while (found := nearest(others, objective, DEVICES)) is not None:
        order.append(found.entry.run_id)
        others.remove(found.entry)
    assert order == ["same", "same, more devices", "longer", "a little wider", "wider"]


def test_of_two_that_are_as_near_the_newer_is_taken(make_entry: "MakeEntry") -> None:
    objective = nanochat()
    old = ran(make_entry, objective, run_id="old")
    new = ran(make_entry, objective, run_id="new", ended_at=datetime(2031, 1, 1, tzinfo=UTC))
    found = nearest([new, old], objective, DEVICES)
    assert found is not None
    assert found.entry.run_id == "new"


@pytest.mark.parametrize(
    "elsewhere",
    [{"device_kind": "cuda"}, {"device_name": "another"}, {"threads": 2}, {"evaluation": None}],
)
def test_no_time_is_carried_to_another_device(
    make_entry: "MakeEntry", elsewhere: dict[str, Any]
) -> None:
    objective = registry.load(ObjectiveSpec(name="sphere"))
    entry = make_entry(fingerprint=objective.fingerprint, **elsewhere)
    assert nearest([entry], objective, DEVICES) is None


def test_no_prior_no_number(make_entry: "MakeEntry") -> None:
    assert nearest([], nanochat(), DEVICES) is None
    assert nearest([make_entry()], nanochat(), DEVICES) is None  # a sphere


def test_a_function_without_flops_is_not_scaled(make_entry: "MakeEntry") -> None:
    objective = registry.load(ObjectiveSpec(name="sphere", settings={"seconds": 2.0}))
    assert objective.flops() is None
    assert nearest([make_entry(settings={"seconds": 1.0})], objective, DEVICES) is None


def test_a_checkout_of_nanochat_says_nothing_of_our_own(make_entry: "MakeEntry") -> None:
    flops = {"train_flops": 1e10, "eval_flops": 1e9}
    entry = make_entry(objective="nanochat", settings={"checkout": "/x"}, evaluation=flops)
    ours = make_entry(objective="nanochat", settings={}, evaluation=flops)
    assert nearest([entry], nanochat(), DEVICES) is None
    assert nearest([ours], nanochat(), DEVICES) is not None


def test_the_prior_is_named_with_its_figures(make_entry: "MakeEntry") -> None:
    found = nearest([ran(make_entry, nanochat())], nanochat(target_flops=6e10), DEVICES)
    assert found is not None
    said = found.sentence()
    assert "phase1 earlier of 2030-01-01 on 2 x some processor (the same model;" in said
    assert "median 10 s of 8, start-up 1 s" in said
    assert "x its FLOPs" in said
    assert said.endswith("s an evaluation, assumed, throughput x 0.7")


# What a plan is made with


def test_without_a_calibration_a_plan_takes_the_priors_time(
    tmp_path: Path, make_entry: "MakeEntry"
) -> None:
    objective = nanochat()
    append(tmp_path, [ran(make_entry, objective)])
    times = times_here(tmp_path, objective, DEVICES)
    assert times.calibration is not None
    assert times.is_to_measure(times.calibration)
    assert times.calibration.assumed_seconds == 10.0
    twice = times.for_work(2.0)
    assert twice is not None
    assert twice.median_seconds == pytest.approx(1 + 9 * 2 / 0.7)


def test_what_a_person_vouches_for_goes_first(tmp_path: Path, make_entry: "MakeEntry") -> None:
    objective = nanochat()
    append(tmp_path, [ran(make_entry, objective)])
    times = times_here(tmp_path, objective, DEVICES, assumed_seconds=4.0)
    assert times.calibration is not None
    assert not times.is_to_measure(times.calibration)
    assert times.calibration.median_seconds == 4.0


def test_where_nothing_is_known_there_is_no_time(tmp_path: Path) -> None:
    times = times_here(tmp_path, nanochat(), DEVICES)
    assert times.calibration is None
    assert times.for_work(2.0) is None


def test_a_time_is_discounted_once(tmp_path: Path, make_entry: "MakeEntry") -> None:
    """Scaled from elsewhere already, more FLOPs take more, and not another 0.7."""
    before, after = nanochat(), nanochat(target_flops=6e10)
    append(tmp_path, [ran(make_entry, before)])
    times = times_here(tmp_path, after, DEVICES)
    assert times.calibration is not None
    twice = times.for_work(2.0)
    assert twice is not None
    assert twice.median_seconds == pytest.approx(2 * times.calibration.median_seconds - 1)
    measured = times_here(tmp_path, before, DEVICES).for_work(2.0)
    assert measured is not None
    assert measured.median_seconds == pytest.approx(1 + 18 / 0.7)


def test_a_plan_names_its_prior(
    command: "Command", tmp_path: Path, make_entry: "MakeEntry"
) -> None:
    objective = registry.load(ObjectiveSpec(name="sphere"))
    from orchestrator.execution.engine import Engine, devices_of

    here = devices_of(Engine("inline", workers=1).slots())
    root = tmp_path / "artifacts/cmaes"
    root.mkdir(parents=True)
    of_it = make_entry(
        fingerprint=objective.fingerprint,
        device_name=here.name,
        devices=here.count,
        threads=here.threads,
    )
    append(root, [of_it])
    answer = command("plan", "--objective", "sphere", "--workers", "1")
    assert answer.code == 0
    assert "times from phase1 earlier of 2030-01-01" in answer.out.replace("\n", " ")


def test_flops_are_those_that_a_real_evaluation_reports(tmp_path: Path) -> None:
    from objectives.api import Context

    objective = nanochat(target_flops=2e9, val_windows=20, n_embd=16, n_layer=1)
    expected = objective.flops()
    context = Context(tmp_path, "cpu", 1, lambda _: None)
    knobs = objective.space.decode(objective.space.baseline)
    measured = objective.evaluate(knobs, 1, context)
    assert expected is not None
    assert (measured.train_flops, measured.eval_flops) == (expected.train, expected.score)
    assert (measured.steps, measured.tokens) == (expected.steps, expected.tokens)
    assert replace(expected, train=0.0).total == expected.score
