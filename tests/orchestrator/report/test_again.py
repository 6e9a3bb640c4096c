"""The command that is said to plan a run again: parsed by the real command line, it does."""

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

from budgets.events import Overridden
from budgets.liveness import moved
from budgets.state import RunState
from budgets.terms import Calibration, Plan, Window
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.best.training import training_name
from orchestrator.cli.analyze import same_objective
from orchestrator.cli.given import search_command
from orchestrator.cli.space import check_command
from orchestrator.config.command_words import UntoldError
from orchestrator.planning.differences import differences
from orchestrator.planning.plan import search_plan
from orchestrator.planning.request import Confirm, Follows, Request
from orchestrator.records.recorded import Result, load_state
from orchestrator.report.again import again
from orchestrator.warm.distribution import learned
from orchestrator.warm.succession import again as taken_over_again
from orchestrator.warm.succession import predecessor

RunSearch = Callable[..., Result]
GOLDEN = Path(__file__).parents[2] / "golden"
SMALL: dict[str, Any] = {"settings": {"dimension": 3, "noise": 0.01}, "max_evals": 8}


def parsed(words: Sequence[str]) -> Any:
    """What the command line makes of them."""
    heard: list[Any] = []
    app = typer.Typer()
    app.command("phase1")(search_command(heard.append, "phase1"))
    app.command("phase2")(search_command(heard.append, "phase2"))
    space = typer.Typer()
    space.callback()(lambda: None)
    space.command("check")(check_command(lambda request, _: heard.append(request)))
    app.add_typer(space, name="space")
    app(list(words), standalone_mode=False)
    return heard[0]


def planned_again(directory: Path, state: RunState) -> Plan:
    asked, plan = parsed(again(directory, state)), state.planned
    if plan.search is None:
        found: Plan = asked.plan(plan.devices, plan.calibration)
        return found
    calibration, seconds = plan.calibration, asked.assumed_seconds
    if seconds is not None:
        calibration = Calibration(assumed_seconds=seconds)
    request = asked.request
    succession = taken_over_again(request, plan)
    return search_plan(request, plan.devices, calibration, None, succession)


@pytest.mark.parametrize("name", ["schema_1", "schema_2", "schema_3", "schema_4"])
def test_a_golden_run_is_planned_again(name: str) -> None:
    state = load_state(GOLDEN / name)

    assert differences(state.planned, planned_again(GOLDEN / name, state)) == []


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"search_seed": 7, "evaluation_seed": 9, "run_id": "named"},
        {"method": "plain", "sigma0": 0.07},
        {"method": "mirrored-orthogonal", "seeds_per_candidate": 2, "max_evals": 16},
        {"generations": 1},
        {"max_evals": 15},
        {"tier": "target", "confirm": Confirm(seeds=0)},
        {"tier": "target", "confirm": Confirm(seeds=3, rung_factor=0)},
        {"tier": "target", "confirm": Confirm(seeds=3, rung_factor=2.5, rung_seeds=1)},
        {"limit_seconds": 33.5},
        {"limit_seconds": 200.0, "stall_seconds": 7.0},
        {"stall_seconds": 11.0},
        {"max_device_hours": 1.5, "max_hours": 2.0},
        {"max_cost": 3.25, "price_per_device_hour": 0.3},
        {"window": Window(hours=0.1 + 0.2, margin_seconds=3600 * (61.5 * (1 / 3600)))},
        {"window": Window(hours=0.75)},
        {"window": Window(hours=48.0, margin_seconds=3600 * (45 * (1 / 60)))},
        {"window": Window(until=datetime(2126, 11, 27, 18, tzinfo=UTC))},
        {"thresholds": {"patience_generations": 4, "go_gain": 0.021, "same_score": 0.0}},
        {"settings": {"dimension": 3, "noise": 0.1 / 3, "busy": False}},
        {"tier": "target", "population": 16, "proxy": 0.25, "max_evals": 48},
    ],
    ids=str,
)
def test_whatever_was_asked_for_is_asked_for_again(
    run_search: RunSearch, tmp_path: Path, asked: dict[str, Any]
) -> None:
    terms = {**SMALL, "assumed_seconds": 2.5, **asked}
    result = run_search(tmp_path, **terms)

    assert differences(result.state.planned, planned_again(result.directory, result.state)) == []


def test_a_calibrated_run_is_planned_again(finished_run: Path) -> None:
    state = load_state(finished_run)

    assert differences(state.planned, planned_again(finished_run, state)) == []


def test_an_amended_run_is_planned_as_it_was_at_first(
    run_search: RunSearch, command: Callable[..., Any], tmp_path: Path
) -> None:
    first = run_search(tmp_path, **SMALL, assumed_seconds=1.0)
    amended = command(
        "amend", str(first.directory), "--max-evals", "16", "--reason", "it may go on"
    )
    assert amended.code == 0, amended.err
    state = load_state(first.directory)
    assert state.plan != state.planned

    assert differences(state.planned, planned_again(first.directory, state)) == []


def test_a_phase_2_names_the_run_that_it_follows(confirmed: Path) -> None:
    """Planned, not run: its plan is what a phase 2's ledger begins with."""
    state = load_state(confirmed)
    request = Request(
        phase="phase2",
        tier="min",
        objective=same_objective(state),
        follows=Follows("confirmed", "robust"),
    )
    root = confirmed.parents[1]
    followed = predecessor(root, request, "cpu")
    assert followed is not None
    succession = followed.succession(request, learned(state, accept_drift=False))
    plan = search_plan(
        request, state.plan.devices, Calibration(assumed_seconds=1.0), None, succession
    )
    state.planned = state.plan = plan

    words = again(root / "phase2" / plan.run_id, state)

    assert words[words.index("--from") + 1] == "confirmed"
    assert differences(plan, planned_again(root / "phase2" / plan.run_id, state)) == []


def test_a_warm_start_names_where_it_began(run_search: RunSearch, tmp_path: Path) -> None:
    run_search(tmp_path, **SMALL, assumed_seconds=1.0, run_id="first")
    second = run_search(tmp_path, **SMALL, assumed_seconds=1.0, run_id="second", warm_start="first")

    assert ("--warm-start", "first") in pairs(again(second.directory, second.state))
    planned = planned_again(second.directory, second.state)
    assert differences(second.state.planned, planned) == []


def pairs(words: Sequence[str]) -> list[tuple[str, str]]:
    return list(pairwise(words))


@pytest.mark.parametrize("knobs", [(), ("x0",)])
def test_a_check_is_planned_again_under_the_same_name(
    run_check: Callable[..., Result], tmp_path: Path, knobs: tuple[str, ...]
) -> None:
    result = run_check(tmp_path, settings={"noise": 0.1}, knobs=knobs, seeds=3, max_hours=2.0)

    assert moved(result.state.plan, result.state.generations[0], 1) is not None
    assert differences(result.state.planned, planned_again(result.directory, result.state)) == []


def test_runs_that_lie_elsewhere_are_looked_for_there(finished_run: Path, run: Path) -> None:
    state = load_state(run)
    relative = Path("artifacts/cmaes/phase1") / run.name

    assert ("--runs-dir", str(finished_run.parents[1])) in pairs(again(finished_run, state))
    assert "--runs-dir" not in again(relative, state)
    assert "--runs-dir" not in again(Path("elsewhere"), state)


def test_what_a_person_let_pass_before_it_began_is_repeated(confirmed: Path) -> None:
    state = load_state(confirmed)
    source = {"run_id": "x", "head": "0", "variant": "robust", "grade": "", "point": (0.5, 0.5)}
    plan = Plan.model_validate({**state.plan.model_dump(), "source": source, "phase": "phase2"})
    state.planned = plan
    state.overridden = [Overridden(rule="go", generation=0, reason="we want to see")]

    words = again(confirmed, state)

    assert ("--override", "go") in pairs(words)
    assert ("--reason", "we want to see") in pairs(words)


def untold(directory: Path, state: RunState) -> str:
    with pytest.raises(UntoldError) as error:
        again(directory, state)
    return str(error.value)


def test_what_is_not_in_the_ledger_is_not_made_up(finished_run: Path, campaign: Path) -> None:
    state = load_state(finished_run)
    search = state.planned.search
    assert search is not None
    known = search.model_copy(update={"known": ((0.5,) * 10,)})
    state.planned = state.planned.model_copy(update={"search": known})

    assert "--known" in untold(finished_run, state)
    assert "the file" in untold(campaign, load_state(campaign))


def test_a_program_of_the_users_own_is_planned_again(finished_run: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('loss: 1.5')")
    settings = {
        "argv": [sys.executable, "train.py"],
        "directory": str(tmp_path),
        "knobs": {
            "lr": {"kind": "log10", "min": 1e-4, "max": 0.1, "baseline": 0.01},
            "depth": {"kind": "int", "min": 1, "max": 9, "baseline": 3},
        },
        "send": "key=value",
        "score": {"pattern": "loss: ([0-9.]+)"},
        "environment": {"QUOTED": 'it\'s "so"'},
    }
    objective = registry.load(ObjectiveSpec(name="command", settings=settings))
    state = load_state(finished_run)
    seconds = Calibration(assumed_seconds=2.0)
    plan = search_plan(Request("phase1", "min", objective), state.plan.devices, seconds)
    state.planned = state.plan = plan

    assert differences(plan, planned_again(finished_run, state)) == []


def test_an_objective_that_there_is_no_more_is_not_asked_for(finished_run: Path) -> None:
    state = load_state(finished_run)
    objective = {"name": "cosine", "settings": {}}
    state.planned = state.planned.model_copy(update={"objective": objective})

    assert "cosine" in untold(finished_run, state)


def test_a_secret_among_the_settings_is_not_repeated(finished_run: Path) -> None:
    state = load_state(finished_run)
    objective = {"name": "sphere", "settings": {"api_key": "swordfish"}}
    state.planned = state.planned.model_copy(update={"objective": objective})

    assert "secret" in untold(finished_run, state)


def test_a_calibration_made_for_a_run_is_that_runs(finished_run: Path) -> None:
    (directory,) = (finished_run.parents[1] / "calibration").iterdir()
    state = load_state(directory)

    assert "that run's own command" in untold(directory, state)  # on its --eval-seed


def test_a_calibration_by_itself_is_made_again(command: Callable[..., Any], tmp_path: Path) -> None:
    made = command(
        *("calibrate", "--objective", "sphere", "--set", "noise=0.025", "--seeds", "3"),
        *("--executor", "inline", "--workers", "1"),
    )
    assert made.code == 0, made.err
    (directory,) = (tmp_path / "artifacts/cmaes/calibration").iterdir()
    state = load_state(directory)

    words = again(directory.relative_to(tmp_path), state)
    repeated = command(*words, "--executor", "inline", "--json")

    assert words[:5] == ("calibrate", "--seeds", "3", "--objective", "sphere")
    assert repeated.code == 0, repeated.err
    assert load_state(directory).head == state.head  # it was found, not made anew


def test_a_longer_training_is_asked_for_again(campaign: Path) -> None:
    state = load_state(campaign)
    parent = {"run_id": "first", "head": "0" * 32, "device_ms": 0, "open_ms": 0}
    name = training_name("first", 4.0)
    terms = state.plan.campaign
    assert terms is not None
    conditions = tuple(c.model_copy(update={"length": 4.0}) for c in terms.conditions[:2])
    plan = state.plan.model_dump() | {"parent": parent, "run_id": name}
    shape = {**plan["resolved"], "population": 2}
    campaign_terms = terms.model_copy(update={"conditions": conditions}).model_dump()
    state.planned = Plan.model_validate(
        {**plan, "campaign": campaign_terms, "resolved": shape, "nominal": shape}
    )

    assert again(campaign, state)[:7] == (
        *("best", "first", "--train", "--times", "4", "--seeds", str(len(terms.seeds))),
    )
    assert "--compare" in again(campaign, state)
