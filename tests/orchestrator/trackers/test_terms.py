"""What a tracker is told once: a plan without secrets, and what came of it."""

from pathlib import Path

import orjson
import pytest

from budgets.terms import Plan
from orchestrator.records.recommended import best_of
from orchestrator.records.recorded import load_state
from orchestrator.trackers.terms import LONGEST, config, summary


def plan_of(run: Path, **settings: object) -> Plan:
    plan = load_state(run).planned
    objective = {**plan.objective, "settings": {**plan.objective["settings"], **settings}}
    return plan.model_copy(update={"objective": objective})


def test_a_plan_is_flat_names_and_plain_values(finished_run: Path) -> None:
    plan = plan_of(finished_run)
    found = config(plan, {})
    assert found["run_id"] == plan.run_id
    assert found["objective/settings/noise"] == 0.001
    assert found["space/knobs/x0/low"] == -1.0
    assert found["resolved/population"] == 8
    assert plan.calibration is not None
    assert found["calibration/mean_score"] == plan.calibration.mean_score
    assert not any(name.startswith("calibration/samples") for name in found)
    assert all(isinstance(value, str | int | float | bool) for value in found.values())
    assert orjson.loads(orjson.dumps(found)) == found


def test_nothing_is_said_twice_as_a_value_and_as_a_path(confirmed_run: Path) -> None:
    names = set(config(plan_of(confirmed_run), {}))
    assert not any(other.startswith(f"{name}/") for name in names for other in names)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("url", "https://me:hunter22@example.org/data"),
        ("env", "HF_TOKEN=hf_abcdefghijklmnopqrstuvwx"),
        ("password", "hunter22"),
        ("password", 123456789),
        ("note", "as in the environment: verysecretvalue"),
        ("options", {"API_KEY": "hunter22hunter22"}),
    ],
)
def test_a_secret_is_left_out(finished_run: Path, name: str, value: object) -> None:
    found = config(plan_of(finished_run, **{name: value}), {"MY_PASSWORD": "verysecretvalue"})
    text = orjson.dumps(found).decode()
    assert "***" in text
    for secret in ("hunter22", "hf_abc", "123456789", "verysecretvalue"):
        assert secret not in text


def test_what_only_sounds_like_a_secret_is_told(finished_run: Path) -> None:
    found = config(plan_of(finished_run, tokenizer="bytes", tokens=512, monkey="x"), {})
    assert found["objective/settings/tokenizer"] == "bytes"
    assert found["objective/settings/tokens"] == 512
    assert found["objective/settings/monkey"] == "x"


def test_a_name_or_a_text_of_any_kind_is_made_fit(finished_run: Path) -> None:
    odd = {"../../etc": "a\nb\x1b[2J", "long": "x" * 10_000, "": "empty"}
    found = config(plan_of(finished_run, odd=odd), {})
    own = {name: value for name, value in found.items() if "/odd/" in name}
    assert set(own) == {
        *("objective/settings/odd/.._.._etc", "objective/settings/odd/long"),
        "objective/settings/odd/_",
    }
    assert own["objective/settings/odd/.._.._etc"] == "a b [2J"
    assert len(str(own["objective/settings/odd/long"])) == LONGEST


def test_the_summary_says_what_was_found_and_what_is_recommended(confirmed_run: Path) -> None:
    state = load_state(confirmed_run)
    found, best = summary(state, {}), best_of(state)
    assert state.decided is not None
    assert found["decision"] == "done"
    assert found["verdict/title"] == "Go; persistence not shown"
    assert found["verdict/gain"] == state.decided.gain
    assert found["standing"] == "confirmed"
    knobs = {name: v for name, v in found.items() if name.startswith("recommended/")}
    assert knobs == {
        f"recommended/{knob}": value for knob, value in best.space.decode(best.recommended).items()
    }
    assert found["ledger/head"] == state.head


def test_a_run_that_found_nothing_yet_recommends_nothing(failed_run: Path) -> None:
    found = summary(load_state(failed_run), {})
    assert found["decision"] == "pause"
    assert not any(name.startswith(("recommended", "verdict", "standing")) for name in found)
