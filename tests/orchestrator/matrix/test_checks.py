"""A check evaluates every knob at the ends of its range, once, and survives whatever happens."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from budgets.checks import KnobFinding, KnobVerdict, Liveness, liveness
from budgets.plan import Devices
from objectives import registry
from objectives.api import ObjectiveSpec
from objectives.space import Knob, SearchSpace
from orchestrator.look.run import Run
from orchestrator.matrix.checks import check_points, knob_check
from orchestrator.matrix.matrix import Matrix
from orchestrator.plan import times
from orchestrator.plan.times import Known, known_knobs
from orchestrator.records.runs import Result
from tests.asking import config_for
from tests.ledgers import cut

RunCheck = Callable[..., Result]
RunSearch = Callable[..., Result]

NOISY = {"noise": 0.01}
DEVICES = Devices(count=2, kind="cpu", name="some", threads=1, memory_bytes=1 << 30)


def findings(result: Result) -> Liveness:
    found = liveness(result.state)
    assert found is not None
    return found


def knob(name: str, baseline: float, kind: Any = "linear", high: float = 4.0) -> Knob:
    return Knob(name=name, kind=kind, low=0.0, high=high, baseline=baseline)


def sphere(**settings: Any) -> Any:
    return registry.load(ObjectiveSpec(name="sphere", settings={"dimension": 3, **settings}))


def asked(seeds: int = 8, knobs: tuple[str, ...] = (), **settings: Any) -> Matrix:
    return knob_check(config_for("check", "min", sphere(), **settings), seeds, knobs)


# Points


def test_the_points_are_the_baseline_and_each_knob_at_either_end() -> None:
    space = SearchSpace(knobs=(knob("a", 1.0), knob("b", 2.0)))
    assert check_points(space, ["a", "b"]) == (
        (0.25, 0.5),
        (0.0, 0.5),
        (1.0, 0.5),
        (0.25, 0.0),
        (0.25, 1.0),
    )


@pytest.mark.parametrize(
    ("one", "ends"),
    [
        (knob("a", 0.0), [1.0]),
        (knob("a", 0.0, "int"), [1.0]),  # its own point is the middle of the first fifth
        (Knob(name="a", kind="log10", low=-4.5, high=-2.0, baseline=10**-4.5), [1.0]),
    ],
)
def test_a_baseline_at_an_end_is_not_paid_for_twice(one: Knob, ends: list[float]) -> None:
    points = check_points(SearchSpace(knobs=(one,)), ["a"])
    assert [p[0] for p in points[1:]] == ends


# The plan


def test_a_cap_that_does_not_pay_for_every_point_on_every_seed_is_refused() -> None:
    plan = asked(max_evals=56).plan(DEVICES, None)
    assert (plan.resolved.evaluations, plan.caps.evaluations) == (56, 56)
    with pytest.raises(ValueError, match=r"--max-evals 55 does not pay for .* 56 evaluations"):
        asked(max_evals=55)


# A whole check


def test_a_cliff_at_the_end_of_a_range_is_a_finding_and_no_pause(
    tmp_path: Path, run_check: RunCheck
) -> None:
    result = run_check(tmp_path, objective="cliff")
    assert result.ruling.decision == "done"
    assert findings(result).unstable_ends == ("x0 high",)
    counts = Run(result.state, datetime.now(UTC)).counts
    assert (counts.ok, counts.failed) == (12, {"nan": 3})


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


def test_a_search_is_warned_of_knobs_that_a_check_found_dead(
    tmp_path: Path, run_search: RunSearch, run_check: RunCheck
) -> None:
    settings, said = {"dimension": 3, **NOISY}, list[str]()
    run_check(tmp_path, settings=settings, seeds=4)
    run_search(tmp_path, objective="idle", settings=settings, say=said.append)
    warned = "Warning: 2 of 3 knobs are shown to move the score; x2 did not when checked."
    assert [line for line in said if line.startswith("Warning")] == [warned]


def test_a_check_that_is_not_finished_or_of_another_objective_or_device_counts_for_nothing(
    tmp_path: Path, run_check: RunCheck
) -> None:
    settings = {"dimension": 3, **NOISY}
    objective = registry.load(ObjectiveSpec(name="idle", settings=settings))
    run_check(tmp_path, settings={**settings, "noise": 0.02}, seeds=4)
    assert known_knobs(tmp_path, objective, "cpu").alive == ()

    result = run_check(tmp_path, settings=settings, seeds=4)
    assert known_knobs(tmp_path, objective, "cpu").alive == ("x0", "x1")
    assert known_knobs(tmp_path, objective, "cuda").alive == ()

    cut(result.directory, result.state.records - 1)  # all but its conclusion
    assert known_knobs(tmp_path, objective, "cpu").alive == ()


def shown(**verdicts: KnobVerdict) -> Any:
    knobs = tuple(
        KnobFinding(knob=name, verdict=verdict, better=None, ends=())
        for name, verdict in verdicts.items()
    )
    numbers = {"seeds": 8, "baseline": 1, "noise": 0.1, "t_limit": 4, "direction": "minimize"}
    found = Liveness(**numbers, knobs=knobs, pending=())
    return SimpleNamespace(state=found)


def test_alive_in_one_check_outweighs_dead_in_another(monkeypatch: pytest.MonkeyPatch) -> None:
    first = shown(x0="dead", x1="dead", x2="unproven")
    second = shown(x0="alive", x2="unstable")
    monkeypatch.setattr(times, "liveness", lambda found: found)
    for checks in ([first, second], [second, first]):
        monkeypatch.setattr(times, "finished_runs", lambda *_, checks=checks: checks)
        known = known_knobs(Path(), sphere(), "cpu")
        assert known == Known(alive=("x0",), dead=("x1",), neither=("x2",))
