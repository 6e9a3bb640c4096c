"""What fits into a window, in which order, at what price; and that it reaches the run."""

import tomllib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.plan import Calibration, Devices, Sample, Window
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from orchestrator.config import Budget
from orchestrator.plan.fit import (
    Choice,
    NoTimeError,
    Room,
    Wanted,
    best,
    choices,
    fit_text,
    room_of,
    too_short,
)
from orchestrator.plan.resolve import search_plan
from orchestrator.plan.times import NOTHING, Times
from orchestrator.records.recorded import Result, load_state
from tests.asking import config_for

if TYPE_CHECKING:
    from tests.conftest import Answer, Command

DEVICES = Devices(count=4, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30)
MINUTE = 1 / 60
NOW = datetime(2030, 1, 1, tzinfo=UTC)

RunSearch = Callable[..., Result]

EVEN = Times("assumed", Calibration(assumed_seconds=60.0), overheads=NOTHING)
"""A minute each: no spread, no failures."""


def calibrated(seconds: float = 60.0) -> Calibration:
    samples = (
        Sample(
            seed=n + 1,
            score=score,
            seconds=seconds,
            startup_seconds=6.0,
            train_seconds=seconds - 6.0,
            cpu_seconds=seconds,
            peak_memory_bytes=1 << 20,
            steps=100,
            tokens=38400,
            train_flops=8e9,
            eval_flops=1e9,
        )
        for n, score in enumerate((1.00, 1.01, 0.99, 1.00))
    )
    return Calibration(samples=tuple(samples))


def measured() -> Times:
    return Times("measured", calibrated(), overheads=NOTHING)


def sphere(**settings: Any) -> Objective:
    return registry.load(ObjectiveSpec(name="sphere", settings=settings))


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
    room = Room(minutes * MINUTE, "--window", "a window")
    return Wanted(config_for(**values), DEVICES, times or EVEN, room)


def summary(found: list[Choice]) -> list[tuple[str, bool]]:
    return [(choice.idea.what, choice.fits) for choice in found]


# What must be free: 30 min of the search, and 240 s more than an evaluation for the last attempt.


@pytest.mark.parametrize(("minutes", "fits"), [(34.01, True), (33.99, False)])
def test_a_plan_fits_when_its_last_attempts_whole_limit_does(minutes: float, fits: bool) -> None:
    asked = choices(wanted(minutes))[0]
    assert asked.forecast.hours_p50 == pytest.approx(30 * MINUTE)
    assert asked.forecast.hours_free == pytest.approx(34 * MINUTE)
    assert asked.fits == fits


# The order


def test_generations_are_given_up_first_then_the_tier_then_the_training() -> None:
    found = choices(wanted(21.0))
    assert summary(found) == [
        ("as asked", False),
        ("8 of 15 generations", True),
        ("tier min", True),
        ("0.3 x effort", True),
    ]
    chosen = best(found)
    assert chosen is found[1]
    assert chosen.forecast.hours_free == pytest.approx(20 * MINUTE)
    assert chosen.fewer == 56


def test_one_generation_fewer_than_fit_would_be_too_few() -> None:
    for minutes in (10.0, 15.9, 16.1, 25.0, 33.0):
        found = choices(wanted(minutes))[1]
        one_more = {"search.generations": found.plan.resolved.generations + 1}
        more = found.idea.config.having(one_more)
        again = choices(replace(wanted(minutes), config=more))[0]
        assert found.fits
        assert not again.fits


def test_the_highest_lower_tier_comes_first() -> None:
    found = choices(wanted(45.0, tier="max", limit_seconds=290.0))
    whats = [choice.idea.what for choice in found if choice.idea.lever == "tier"]
    assert whats == ["tier target", "tier min"]


def test_a_lower_tier_with_as_many_generations_as_fit_is_no_other_choice() -> None:
    found = choices(wanted(30.0, tier="max"))
    assert [(c.idea.lever, c.plan.resolved.generations) for c in found if c.fits][:2] == [
        ("generations", 13),
        ("tier", 2),
    ]


def test_a_phase_2_can_give_up_seeds() -> None:
    follows: dict[str, Any] = {"follows": "earlier", "variant": "robust"}
    ask = wanted(100.0, phase="phase2", tier="target", **follows)
    found = choices(ask)  # 16 candidates on 3 seeds in 15 generations: 180 min
    seeds = next(choice for choice in found if choice.idea.lever == "seeds")
    assert seeds.idea.what == "1 of 3 seeds a candidate"
    assert seeds.fits
    assert seeds.plan.resolved.seeds_per_candidate == 1
    assert seeds.plan.resolved.generations == found[0].plan.resolved.generations
    assert "1.7 times as noisy" in seeds.price()[1]


def test_nothing_is_kept_of_a_phase_1s_seeds() -> None:
    assert not [c for c in choices(wanted(10.0)) if c.idea.lever == "seeds"]


def test_less_training_takes_less_by_its_flops_and_seven_tenths_of_the_throughput() -> None:
    found = choices(wanted(21.0, measured()))[-1]
    assert found.idea.varied is not None
    assert found.idea.varied.settings == {"effort": 0.3}
    assert found.is_assumed
    seconds = 6 + 54 * 0.3 / 0.7
    assert found.plan.calibration is not None
    assert found.plan.calibration.assumed_seconds == pytest.approx(seconds)
    assert found.forecast.calibrating_hours == pytest.approx(2 * seconds / 3600)


def test_less_training_that_is_calibrated_takes_what_was_measured() -> None:
    ask = replace(wanted(21.0, measured()), calibrated=lambda _: calibrated(20.0))
    found = choices(ask)[-1]
    assert not found.is_assumed
    assert found.forecast.calibrating_hours == 0.0


def test_where_nothing_alone_fits_everything_is_given_up_together() -> None:
    found = choices(wanted(7.0, measured()))
    assert [choice.fits for choice in found] == [False, False, False, True]
    last = found[-1]
    assert last.idea.lever == "all of these"
    assert last.idea.what == "tier min, 2 generations, 0.2 x effort"
    assert last.plan.resolved.evaluations == 16


def test_where_nothing_fits_at_all_the_least_is_named() -> None:
    ask = wanted(4.0)
    found = choices(ask)
    assert best(found) is None
    said = too_short(found, ask.room)
    assert said.startswith("nothing fits into 4 min 00 s (a window): the least, tier min, 2 gen")
    assert said.endswith("Give a longer --window")
    assert f"N{said[1:]}." in fit_text(found, ask.room)


def test_nanochat_gives_up_exact_flops() -> None:
    objective = registry.load(ObjectiveSpec(name="nanochat"))
    found = choices(
        wanted(8.0, objective=objective, tier="min", limit_seconds=60.0, times=measured())
    )
    assert summary(found) == [("as asked", True)]
    found = choices(
        wanted(4.0, objective=objective, tier="min", limit_seconds=60.0, times=measured())
    )
    less = found[-1]
    assert less.idea.varied is not None
    factor = less.idea.varied.settings["target_flops"] / 3e10
    whole, part = objective.flops(), less.idea.config.tuned.flops()
    assert whole is not None
    assert part is not None
    assert part.train == pytest.approx(factor * whole.train, rel=0.02)  # whole steps
    work = 54 * part.total / whole.total / 0.7
    assert less.plan.calibration is not None
    assert less.plan.calibration.median_seconds == pytest.approx(6 + work)
    assert f"({part.steps} of {whole.steps} steps)" in " ".join(less.price())


# The price


def test_every_choice_says_what_it_costs() -> None:
    found = choices(wanted(40.0, measured(), rung=0.0, confirm_seeds=None))
    words = ["; ".join(choice.price()) for choice in found]
    assert "evaluations fewer" in words[1]
    assert "the search goes less far" in words[1]
    assert "sees a gain of" in words[1]
    assert "smoke test" in words[2]
    assert "no comparison on fresh seeds: it never says Go" in words[2]
    assert "need not be for the whole" in words[3]
    assert [choice.go_is_possible for choice in found] == [True, True, False, True]


def test_too_few_confirmation_seeds_make_no_go_possible() -> None:
    asked = choices(wanted(1e4, confirm_seeds=4))[0]
    assert not asked.go_is_possible
    assert any("no Go is possible" in said for said in asked.price())


# A window that is not used


def test_where_much_is_unused_more_is_offered_and_nothing_more_is_taken() -> None:
    ask = wanted(300.0, measured(), rung=0.0, confirm_seeds=None)
    found = choices(ask)
    assert summary(found) == [
        ("as asked", True),
        ("tier max", True),
        ("32 confirmation seeds", True),
    ]
    assert best(found) is found[0]
    assert found[1].fewer == -360
    assert found[2].smallest_gain is not None
    assert found[0].smallest_gain is not None
    assert found[2].smallest_gain < found[0].smallest_gain
    assert "stay unused" in fit_text(found, ask.room)


def test_half_of_the_window_is_a_lot() -> None:
    assert len(choices(wanted(67.0))) == 1
    assert len(choices(wanted(69.0))) > 1


def test_a_higher_tier_may_be_had_in_part() -> None:
    found = choices(wanted(100.0))
    assert found[1].idea.what == "tier max, 48 of 60 generations"
    assert found[1].fits


def test_without_a_time_nothing_can_be_fitted() -> None:
    with pytest.raises(NoTimeError, match="orchestrator calibrate"):
        choices(wanted(10.0, Times()))


# The time there is


def asking(**fields: Any) -> Budget:
    return config_for(phase="phase1", tier="min", objective=sphere(), **fields).budget


def test_a_window_counts_without_its_margin() -> None:
    assert room_of(asking(window=Window(hours=12.0)), NOW).hours == pytest.approx(11.5)


def test_a_moment_is_as_far_away_as_it_is() -> None:
    until = Window(until=NOW + timedelta(hours=3), margin_seconds=3600)
    assert room_of(asking(window=until), NOW).hours == pytest.approx(2.0)


def test_the_tighter_of_window_and_cap_counts() -> None:
    room = room_of(asking(window=Window(hours=12.0), max_hours=2.0), NOW)
    assert (room.hours, room.flag) == (2.0, "--max-hours")


def test_a_moment_that_is_past_is_refused() -> None:
    until = Window(until=NOW - timedelta(hours=3), margin_seconds=0)
    with pytest.raises(ValueError, match="--window: expected a moment more than"):
        room_of(asking(window=until), NOW)


def test_without_a_window_there_is_nothing_to_fit_into() -> None:
    with pytest.raises(ValueError, match="--fit: into what"):
        room_of(asking(), NOW)


# Sizes that a person lowers


def plan_of(**fields: Any) -> Any:
    request = config_for(**{"phase": "phase1", "tier": "target", "objective": sphere(), **fields})
    return search_plan(request, DEVICES, None)


def test_generations_are_a_cap_and_the_evaluations_they_pay_for_too() -> None:
    plan = plan_of(generations=5)
    assert (plan.resolved.generations, plan.caps.evaluations) == (5, 40)
    assert "5 of 15 generations were asked for" in plan.reasons
    plan = plan_of(generations=50)
    assert (plan.resolved.generations, plan.caps.evaluations) == (15, 120)


def test_fewer_evaluations_go_before_generations() -> None:
    plan = plan_of(generations=5, max_evals=20)
    assert (plan.resolved.generations, plan.caps.evaluations) == (2, 20)


def test_fewer_seeds_are_fewer_evaluations_in_as_many_generations() -> None:
    phase2 = {"phase": "phase2", "follows": "earlier", "variant": "robust"}
    whole = plan_of(**phase2)
    plan = plan_of(**phase2, seeds_per_candidate=1)
    assert plan.resolved.generations == whole.resolved.generations
    assert plan.resolved.evaluations * 3 == whole.resolved.evaluations


def test_more_seeds_are_fewer_generations_within_the_tiers_evaluations() -> None:
    plan = plan_of(seeds_per_candidate=2)
    assert (plan.resolved.generations, plan.resolved.evaluations) == (7, 112)


def test_seeds_that_no_generation_can_pay_for_are_refused() -> None:
    with pytest.raises(ValueError, match=r"search\.seeds_per_candidate: expected 1 to 15"):
        plan_of(seeds_per_candidate=16)


def test_a_lowered_run_is_taken_up_with_the_same_sizes(
    run_search: RunSearch, tmp_path: Path
) -> None:
    sizes = {"tier": "target", "generations": 2, "seeds_per_candidate": 2}
    sizes |= {"confirm_seeds": 0, "assumed_seconds": 1.0}
    first = run_search(tmp_path, **sizes)
    assert first.state.plan.resolved.generations == 2
    assert first.state.plan.resolved.seeds_per_candidate == 2
    again = run_search(tmp_path, **sizes)
    assert again.state.head == first.state.head
    with pytest.raises(ValueError, match=r"resolved\.generations: 2 -> 3"):
        run_search(tmp_path, **{**sizes, "generations": 3})


# The command


SPHERE = ("--objective", "sphere", "--executor", "inline", "--workers", "1")
FITTED = (
    *SPHERE,
    "--tier",
    "target",
    "--assume-eval-seconds",
    "60",
    "--set",
    "evaluation.limit_seconds=290",
)


def fit(command: "Command", *more: str) -> "Answer":
    return command("plan", *FITTED, "--set", "verdict.confirm_seeds=0", "--fit", *more)


def test_looking_at_what_fits_writes_nothing(command: "Command", tmp_path: Path) -> None:
    answer = fit(command, "--window", "2h")
    assert answer.code == 0, answer.err
    assert "What fits into 1 h 30 min" in answer.out
    assert "--out FILE writes it into a configuration" in " ".join(answer.out.split())
    assert list(tmp_path.iterdir()) == []


def test_the_choice_is_written_and_the_file_begins_that_run(
    command: "Command", tmp_path: Path
) -> None:
    answer = fit(command, "--window", "2h", "--out", "search.toml")
    assert answer.code == 0, answer.err
    assert "+generations = 10" in answer.out
    assert [path.name for path in tmp_path.iterdir()] == ["search.toml"]
    found = tomllib.loads((tmp_path / "search.toml").read_text())
    assert found["objective"] == "sphere"
    assert found["search"] == {"tier": "target", "generations": 10}
    assert found["budget"] == {"window": "2h"}
    assert found["evaluation"] == {"assume_eval_seconds": 60.0, "limit_seconds": 290.0}
    assert found["verdict"] == {"confirm_seeds": 0}
    assert command("phase1", "search.toml").code == 0
    state = load_state(tmp_path / "artifacts/cmaes/phase1/target-sphere-s1")
    assert state.planned.resolved.generations == 10


def test_another_choice_can_be_written(command: "Command", tmp_path: Path) -> None:
    answer = fit(command, "--window", "2h", "--out", "search.toml", "--choice", "4")
    assert answer.code == 0, answer.err
    found = tomllib.loads((tmp_path / "search.toml").read_text())
    assert found["training"]["effort"] < 1
    assert "generations" not in found["search"]
    assert found["evaluation"]["assume_eval_seconds"] == pytest.approx(
        60 * found["training"]["effort"] / 0.7
    )


def test_what_a_file_says_besides_stays_with_its_comments(
    command: "Command", tmp_path: Path
) -> None:
    before = (
        '# mine\nobjective = "sphere"  # round\n\n[search]\ntier = "max"  # a lot\n'
        "generations = 3\n"
        "[evaluation]\nassume_eval_seconds = 60.0\nlimit_seconds = 290.0\n[verdict]\n"
        'confirm_seeds = 0\n[backend]\nexecutor = "inline"\nworkers = 1\n'
    )
    path = tmp_path / "search.toml"
    path.write_text(before)
    more = ("search.toml", "--fit", "--set", "search.generations=60", "--window", "2h")
    answer = command("plan", *more, "--out", "search.toml")
    assert answer.code == 0, answer.err
    after = path.read_text()
    assert after.startswith('# mine\nobjective = "sphere"  # round\n')
    assert 'tier = "max"  # a lot\n' in after
    assert tomllib.loads(after)["search"]["generations"] == 10
    assert "-generations = 3" in answer.out
    assert command("plan", *more, "--out", "search.toml").out.count("says so already")
    assert path.read_text() == after


def test_a_file_that_was_not_planned_with_is_not_written(
    command: "Command", tmp_path: Path
) -> None:
    (tmp_path / "search.toml").write_text("# mine\n")
    answer = fit(command, "--window", "2h", "--out", "search.toml")
    assert answer.code == 2
    assert "plan with search.toml too" in answer.err
    assert (tmp_path / "search.toml").read_text() == "# mine\n"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--window", "31m", "--out", "f.toml"), "--out: nothing fits into 1 min 00 s"),
        (("--window", "2h", "--out", "f.toml", "--choice", "9"), "--choice: expected 1 to 4"),
        (("--window", "2h", "--out", "f.toml", "--choice", "1"), "as asked does not fit"),
        (("--window", "2h", "--choice", "1"), "--choice says which one --out FILE writes"),
        ((), "--fit: into what?"),
    ],
)
def test_what_cannot_be_applied_is_refused_and_nothing_written(
    command: "Command", tmp_path: Path, more: tuple[str, ...], said: str
) -> None:
    answer = fit(command, *more)
    assert answer.code == 2
    assert said in answer.err
    assert list(tmp_path.iterdir()) == []


def test_apply_without_fit_is_refused(command: "Command") -> None:
    answer = command("plan", *FITTED, "--out", "f.toml")
    assert answer.code == 2
    assert "--out and --choice go with --fit" in answer.err


def test_a_program_gets_the_choices_and_the_profiles(command: "Command") -> None:
    where = ("--executor", "inline", "--workers", "1", "--tier", "min", "--json", "--fit")
    what = ("--assume-eval-seconds", "60", "--window", "2h", "--set", "target_flops=1e13")
    found = orjson.loads(command("plan", *where, *what).out)
    assert found["fits"]
    assert found["available_hours"] == pytest.approx(1.5)
    assert found["choices"][0]["what"] == "as asked"
    assert found["applied"] is None
    names = [report["profile_name"] for report in found["profiles"]]
    assert names == ["fast", "balanced", "quality", "memory_efficient"]
    estimate = found["profiles"][0]["estimate"]
    assert estimate["total_steps"] > 0
    assert estimate["fits_in_window"] == (estimate["estimated_hours"] <= 1.5)
    assert estimate["assumed"]
