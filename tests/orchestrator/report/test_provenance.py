"""What a run's scores rest on, without secrets, and commands that work."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Opened
from budgets.state import RunState
from orchestrator.records.recorded import load_state
from orchestrator.report.provenance import provenance

if TYPE_CHECKING:
    from tests.conftest import Command


def given(state: RunState, settings: dict[str, Any]) -> RunState:
    objective = {**state.plan.objective, "settings": settings}
    state.plan = state.plan.model_copy(update={"objective": objective})
    return state


def test_settings_are_said_by_dotted_name(finished_run: Path) -> None:
    settings = {"noise": 0.01, "budget": {"steps": 3, "more": {"a": [1]}}, "tokenizer": "bytes"}
    found = provenance(finished_run, given(load_state(finished_run), settings))

    assert found.settings == {
        "noise": "0.01",
        "budget.steps": "3",
        "budget.more": '{"a":[1]}',
        "tokenizer": "bytes",
    }


def test_secrets_are_left_out(finished_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_TOKEN", "seven777")
    settings = {
        "environment": {"HF_TOKEN": "swordfish ours", "PLACE": "here"},
        "url": "https://me:mackerel@host/data",
        "argv": ["train", "--key", "seven777"],
    }
    found = provenance(finished_run, given(load_state(finished_run), settings))

    assert found.settings["environment.PLACE"] == "here"
    assert "swordfish" not in str(found)
    assert "mackerel" not in str(found)
    assert "seven777" not in str(found)


def test_what_an_earlier_session_had_otherwise_is_said(finished_run: Path) -> None:
    state = load_state(finished_run)
    (opened,) = state.opened
    earlier = replace(opened, versions={**opened.versions, "numpy": "1.0"})
    state.opened = [earlier, opened]

    found = provenance(finished_run, state)

    assert found.versions == opened.versions
    now = opened.versions["numpy"]
    assert found.changed_versions == (f"session 1: numpy 1.0, at last {now}",)
    assert isinstance(opened, Opened)


def test_the_terms_are_in_words(finished_run: Path, confirmed_run: Path) -> None:
    found = provenance(finished_run, load_state(finished_run))
    assumed = provenance(confirmed_run, load_state(confirmed_run))

    assert found.caps == {"evaluations": "16"}
    assert found.limits["time limit"] == "60 s, and 5 s to end"
    assert found.search["method"] == "guided"
    assert found.search["generations"] == "2"
    assert found.calibration is not None
    assert found.calibration.startswith("the baseline on 8 seeds; head of its ledger ")
    assert assumed.calibration == "none: 1 s an evaluation were assumed"


def test_every_command_works(command: "Command", run: Path, tmp_path: Path) -> None:
    directory = run.relative_to(tmp_path)
    commands = provenance(directory, load_state(directory)).commands

    assert [line.split()[3] for line in commands] == ["verify", "best", "phase1"]
    for line in commands:
        also = ("--executor", "inline") if " phase1 " in line else ()
        answer = command(*line.split()[3:], *also)
        assert answer.code == 0, (line, answer.err)


def test_a_configuration_is_offered_only_where_it_can_be_said(
    finished_run: Path, campaign: Path
) -> None:
    search = provenance(finished_run, load_state(finished_run)).commands
    other = provenance(campaign, load_state(campaign)).commands

    assert not any("--toml" in line for line in search)  # a sphere's baseline is no setting
    assert [line.split()[3] for line in other] == ["verify"]


def test_a_directory_with_a_strange_name_is_one_word(finished_run: Path, tmp_path: Path) -> None:
    state = load_state(finished_run)

    (verify, *_) = provenance(tmp_path / "a b; rm -rf $HOME", state).commands
    (dashed, *_) = provenance(Path("-x"), state).commands

    assert verify.endswith("a b; rm -rf $HOME'")
    assert dashed == "python -m orchestrator verify ./-x"
