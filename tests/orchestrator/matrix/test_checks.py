"""Checks of knobs, of a proxy and of memory: what they evaluate, and who hears of it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.plan import Devices, Plan
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from objectives.space import Knob, SearchSpace
from orchestrator.matrix.check_commands import knob_check, micro_batch, one_at_a_time
from orchestrator.plan.forecast import known_knobs
from orchestrator.records.runs import Result, load_state
from orchestrator.verify import verify
from tests.asking import config_for
from tests.ledgers import cut

if TYPE_CHECKING:
    from tests.conftest import Command

RunCheck = Callable[..., Result]

NOISY = {"noise": 0.01}
DEVICES = Devices(count=2, kind="cpu", name="some", threads=1, memory_bytes=1 << 30)


def objective_of(name: str, **settings: Any) -> Objective:
    return registry.load(ObjectiveSpec(name=name, settings=settings))


# Points


def test_the_points_are_the_baseline_and_each_knob_at_the_ends_where_it_is_not() -> None:
    ends = {"low": 0.0, "high": 4.0}
    knobs = (
        Knob(name="a", kind="linear", baseline=1.0, **ends),
        Knob(name="b", kind="linear", baseline=4.0, **ends),
        Knob(name="c", kind="int", baseline=0.0, **ends),  # the middle of the first fifth
    )
    base, moved = (0.25, 1.0, 0.1), [(0.0, 1.0, 0.1), (1.0, 1.0, 0.1), (0.25, 0.0, 0.1)]
    found = one_at_a_time(SearchSpace(knobs=knobs), ["a", "b", "c"])
    assert [one.point for one in found] == [base, *moved, (0.25, 1.0, 1.0)]
    assert [one.name for one in found] == ["baseline", "a low", "a high", "b low", "c high"]


# The plan


def test_a_cap_that_does_not_pay_for_every_point_on_every_seed_is_refused() -> None:
    def asked(most: int) -> Plan:
        config = config_for("check", "min", objective_of("sphere", dimension=3), max_evals=most)
        return knob_check(config).plan(DEVICES, None)

    assert (asked(56).resolved.evaluations, asked(56).caps.evaluations) == (56, 56)
    with pytest.raises(ValueError, match="--max-evals 55 does not pay for all 56 evaluations"):
        asked(55)


# A whole check


def test_a_failing_baseline_pauses_before_anything_else_is_paid(
    tmp_path: Path, run_check: RunCheck
) -> None:
    broken = {"failure_rate": 1.0}
    paused = run_check(tmp_path, settings=broken)
    again = run_check(tmp_path, settings=broken)

    for result in (paused, again):
        assert [t.rule for t in result.ruling.triggers] == ["baseline_failed"]
        assert result.state.accounts.evaluations == 1
    assert len(again.state.fired) == 1


# What a search hears of it


def test_a_check_that_is_not_finished_or_of_another_objective_or_device_counts_for_nothing(
    tmp_path: Path, run_check: RunCheck
) -> None:
    settings = {"dimension": 3, **NOISY}
    objective = objective_of("idle", **settings)
    run_check(tmp_path, settings={**settings, "noise": 0.02}, seeds=4)
    unknown = dict.fromkeys(("x0", "x1", "x2"), "unknown")
    assert known_knobs(tmp_path, objective, "cpu") == unknown

    result = run_check(tmp_path, settings=settings, seeds=4)
    shown = {"x0": "alive", "x1": "alive", "x2": "dead"}
    assert known_knobs(tmp_path, objective, "cpu") == shown
    assert known_knobs(tmp_path, objective, "cuda") == unknown

    cut(result.directory, result.state.records - 1)  # all but its conclusion
    assert known_knobs(tmp_path, objective, "cpu") == unknown


# How short evaluations may be


@pytest.fixture
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("budgets.stats.RESAMPLES", 200)


QUICK = ("--objective", "sphere", "--executor", "inline", "--workers", "1")


@pytest.mark.usefixtures("few_resamples")
def test_a_proxy_that_ranks_otherwise_is_not_good_enough(command: "Command") -> None:
    document = orjson.loads(command("check", "proxy", *QUICK, "--set", "bias=-3", "--json").out)
    assert not document["proxy"]["holds"]
    assert verify(Path(document["directory"])).divergence is None


@pytest.mark.usefixtures("few_resamples")
def test_a_search_is_short_only_once_a_check_has_shown_the_same_ranking(
    command: "Command", tmp_path: Path
) -> None:
    few = ("--set", "search.population=8", "--max-evals", "24", "--set", "noise=0.001")
    words = ("phase1", "--tier", "target", *QUICK, *few, "--assume-eval-seconds", "1")
    short = (*words, "--set", "search.proxy=0.25")
    refused = command(*short)
    assert refused.code == 2
    assert "check proxy --set search.proxy=0.25 with the same" in " ".join(refused.err.split())
    assert not (tmp_path / "artifacts/cmaes/phase1").exists()

    checking = ("check", "proxy", *QUICK, "--set", "noise=0.001")
    assert command(*checking, "--set", "search.proxy=0.5").code == 0
    assert command(*short).code == 2  # another length was shown
    assert command(*checking).code == 0
    assert command(*short).code in (0, 4)
    run = tmp_path / "artifacts/cmaes/phase1/target-sphere-s1"
    state = load_state(run)
    assert state.plan.objective.settings["effort"] == 0.25
    assert state.plan.confirmation is not None
    assert state.plan.confirmation.long_run is not None
    assert state.plan.confirmation.long_run.settings == {"effort": 1.0}
    assert verify(run).divergence is None


# The largest micro-batch


@pytest.mark.parametrize(
    ("objective", "size", "said"),
    [
        (objective_of("nanochat", micro_batch_size=4), 3, "the effective batch of 4, got 3"),
        (objective_of("sphere"), 1, "sphere has no micro-batches"),
    ],
)
def test_a_size_that_cannot_be_is_refused(objective: Objective, size: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        micro_batch(config_for("phase1", "min", objective), size, 1)
