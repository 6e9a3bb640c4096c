"""`best`: what a search recommends, in every form, and what it is worth."""

import re
import shlex
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.ledger import LEDGER
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.look.reports import best_document
from orchestrator.look.run import Run
from orchestrator.records.recorded import load_state
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.orchestrator.best.conftest import Tamper

Told = Callable[..., dict[str, Any]]


def test_a_go_confirms_the_recommendation_with_its_interval(
    confirmed: Path, command: "Command"
) -> None:
    said = command("best", "confirmed").out
    assert said.startswith("Confirmed: Go; persistence not shown, by 2 fresh seeds.\n")
    assert "\nRecommended:\n" in said
    assert "Gain over the baseline on fresh seeds: +" in said
    assert "2 seeds)." in said
    assert "Each bound holds with 70% confidence." in said
    assert "With 4 x effort: +" in said


def skeletons(text: str) -> set[str]:
    """Its lines without their numbers, what is in brackets, the run's name, and a Go's grade."""
    same = text.replace("confirmed", "found")
    same = re.sub(r"Go(; persistence not shown| that persists)", "Go", same)
    bare = re.sub(r" \([^)]*\)", "", same)
    return {" ".join(re.sub(r"[+-]?[\d.]*\d", "0", line).split()) for line in bare.splitlines()}


@pytest.mark.parametrize("more", [(), ("--train", "--compare", "--seeds", "2")])
def test_the_page_shows_what_it_prints(
    more: tuple[str, ...], confirmed: Path, command: "Command"
) -> None:
    page = (REPOSITORY / "docs/best.md").read_text()
    shown = page.partition(f"$ {' '.join(('orchestrator best found', *more))}")[2]
    lines = shown.partition("\n")[2].partition("```")[0].replace("...\n", "")
    how = ("--executor", "inline") if more else ()

    said = command("best", "confirmed", *more, *how).out

    assert lines
    assert skeletons(lines) - skeletons(said) == set()


def test_the_commands_that_it_names_find_the_run_wherever_it_lies(
    confirmed: Path, command: "Command", tmp_path: Path
) -> None:
    elsewhere = confirmed.parents[1].rename(tmp_path / "my runs")
    said = command("best", str(elsewhere / "phase1/confirmed")).out
    (other,) = re.findall(r"Other forms: python -m orchestrator (best .* --json)", said)
    assert command(*shlex.split(other)).code == 0


def test_what_nobody_compared_says_so_first(plain: Path, command: "Command") -> None:
    said = command("best").out
    assert said.startswith(
        "Not confirmed: a search of tier min is not compared with the baseline on fresh seeds.\n"
    )
    assert "What the search stands for:" in said
    assert "Gain" not in said


def test_after_a_no_go_the_baseline_is_recommended_and_the_candidate_shown(
    refuted: Path, command: "Command", told: Told
) -> None:
    said = command("best", "refuted").out
    assert said.startswith("No-Go, below noise: the baseline is what is recommended.\n")
    assert "The best candidate of the search, which is not recommended:" in said
    assert "Gain over the baseline on fresh seeds: " in said
    document = told("refuted")
    assert document["recommended"]["is"] == "baseline"
    assert [knob["value"] for knob in document["recommended"]["knobs"]] == [0.0, 0.0]
    winner = best_document(Run(load_state(refuted), datetime.now(UTC)))["winner"]["knobs"]
    assert {knob["name"]: knob["value"] for knob in document["candidate"]["knobs"]} == winner


def test_the_document_holds_all_of_best_json_and_the_gain_in_the_score_s_unit(
    confirmed: Path, told: Told
) -> None:
    document = told("confirmed")
    own = best_document(Run(load_state(confirmed), datetime.now(UTC)))
    assert {key: document[key] for key in own} == orjson.loads(orjson.dumps(own))
    evidence = document["evidence"]
    scale = evidence["baseline_score"]
    assert evidence["gain_in_score"]["mean"] == pytest.approx(scale - evidence["score"])
    assert evidence["gain_in_score"]["lower"] == pytest.approx(evidence["gain"]["lower"] * scale)
    (first, _) = document["recommended"]["knobs"]
    assert first["moved"] == pytest.approx((first["value"] - first["baseline"]) / 2)


def test_a_search_takes_the_document_as_known_settings(
    confirmed: Path, command: "Command", tmp_path: Path
) -> None:
    (tmp_path / "best.json").write_text(command("best", "confirmed", "--json").out)
    plan = ("plan", "--tier", "min", "--objective", "sphere", "--set", "dimension=2")
    answer = command(*plan, "--workers", "1", "--set", "search.known=best.json")
    assert answer.code == 0, answer.err


def test_the_file_is_a_configuration_whose_baseline_it_is(
    embedded: Path, command: "Command", told: Told, tmp_path: Path
) -> None:
    text = command("best", "--toml").out
    (tmp_path / "best.toml").write_text(text)
    values = {knob["name"]: knob["value"] for knob in told()["recommended"]["knobs"]}
    assert tomllib.loads(text)["training"] == told()["recommended"]["training"]
    assert tomllib.loads(text) == {"training": {"n_layer": 1, **values}}
    assert "# tau_c = " in text
    assert "(baseline 0.8, moved " in text

    assert command("explain", "best.toml").code == 0
    rows = orjson.loads(command("explain", "best.toml", "--json").out)["knobs"]
    assert {row["name"]: row["baseline"] for row in rows} == values
    planned = command("plan", "best.toml", "--tier", "min", "--workers", "1")
    assert planned.code == 0, planned.err


def test_arguments_are_what_the_objective_takes_them_as(
    embedded: Path, command: "Command", told: Told
) -> None:
    answer = command("best", "--flags")
    arguments = told()["recommended"]["arguments"]
    assert answer.out.split() == arguments
    assert arguments[0] == "--set"
    assert "Not confirmed" in answer.err
    taken = command("explain", "--json", "--set", "n_layer=1", *arguments)
    rows = {row["name"]: row["baseline"] for row in orjson.loads(taken.out)["knobs"]}
    assert rows == {knob["name"]: knob["value"] for knob in told()["recommended"]["knobs"]}


def test_what_takes_no_arguments_and_has_no_baseline_to_set_says_so(
    confirmed: Path, command: "Command"
) -> None:
    flags, toml = command("best", "--flags"), command("best", "--toml")
    assert (flags.code, toml.code) == (2, 2)
    assert "sphere has none: it is not started with arguments" in flags.err
    assert "sphere cannot have another baseline" in toml.err
    assert "search.known" in toml.err


def test_after_a_no_go_the_forms_are_the_baseline_s_unless_the_candidate_is_wanted(
    refuted: Path, command: "Command"
) -> None:
    answer = command("best", "--toml")
    assert tomllib.loads(answer.out) == {
        "objective": "noise",
        "training": {"dimension": 2},
    }
    assert "# refuted: the baseline." in answer.out
    assert command("best", "--toml", "--anyway").code == 2  # of a function there is none


def test_an_objective_that_cannot_be_loaded_any_more_leaves_the_knobs(
    plain: Path, command: "Command", told: Told, tamper: "Tamper"
) -> None:
    def forge(lines: list[dict[str, Any]]) -> None:
        lines[0]["event"]["plan"]["objective"]["name"] = "gone\x1b[2J\u202e"

    tamper(plain, forge)
    assert len(told()["recommended"]["knobs"]) == 10
    assert told()["recommended"]["arguments"] is None
    answer = command("best")
    assert "No arguments or settings: it cannot be loaded now: unknown objective" in answer.out
    assert "\x1b" not in answer.out
    assert "\u202e" not in answer.out
    refused = command("best", "--toml")
    assert refused.code == 2
    assert "\x1b" not in refused.err


def test_the_latest_search_is_meant_whatever_ran_since(
    confirmed: Path, command: "Command", told: Told
) -> None:
    assert command("best", "--train", "--executor", "inline").code == 0
    assert told()["run_id"] == "confirmed"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nobody",), "no run 'nobody' in artifacts/cmaes"),
        (("--json", "--toml"), "one at a time"),
        (("--train", "--flags"), "one at a time"),
        (("--times", "2"), "add --train"),
        (("--compare",), "add --train"),
        (("--train", "--times", "2", "--target-flops", "1e9"), "give one of them"),
        (("--train", "--times", "0.5"), "--times: expected 1 or more, got 0.5"),
        (("--train", "--target-flops", "nan"), "sphere has no budget"),
        (("--train", "--times", "5"), "sphere cannot be trained 5 times as long"),
        (("--train", "--target-flops", "1e9"), "sphere has no budget in FLOPs"),
        (("--train", "--run-id", "../x"), "--run-id: expected 1 to 64 of a-z"),
        (("--train", "--set", "evaluation.limit_seconds=0"), "evaluation.limit_seconds: "),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    confirmed: Path, command: "Command", arguments: tuple[str, ...], complaint: str
) -> None:
    answer = command("best", *arguments)
    assert answer.code == 2
    assert complaint in answer.err
    assert not (confirmed.parent.parent / "campaign").exists()


def test_a_calibration_recommends_nothing(plain: Path, command: "Command") -> None:
    (calibration,) = (plain.parent.parent / "calibration").iterdir()
    answer = command("best", calibration.name)
    assert answer.code == 2
    assert "is a calibration run: expected a search" in answer.err


def test_a_search_that_has_learned_nothing_yet_recommends_nothing(
    plain: Path, command: "Command", cut: Callable[..., None]
) -> None:
    cut(plain, 4)
    answer = command("best")
    assert answer.code == 2
    assert "recommends nothing yet: none of its 2 generations is told" in answer.err


def test_a_search_that_is_not_over_is_not_confirmed(
    confirmed: Path, command: "Command", cut: Callable[..., None]
) -> None:
    lines = (confirmed / LEDGER).read_bytes().splitlines()
    cut(confirmed, [b'"kind":"generation_told"' in line for line in lines].index(True) + 1)
    assert command("best").out.startswith(
        "Not confirmed: the search is not over, 1 of 2 generations are told.\n"
    )


def test_a_damaged_ledger_is_named(plain: Path, command: "Command") -> None:
    data = (plain / LEDGER).read_bytes()
    (plain / LEDGER).write_bytes(data.replace(b'"seq":5', b'"seq":6', 1))
    answer = command("best")
    assert answer.code == 6
    assert str(plain.name) in answer.err


def test_no_search_at_all_is_told(command: "Command") -> None:
    answer = command("best")
    assert answer.code == 2
    assert "no search in artifacts/cmaes" in answer.err


def test_a_spec_is_given_in_full_whoever_reads_it(embedded: Path, told: Told) -> None:
    document = told()
    spec = ObjectiveSpec(name="nanochat", settings=document["recommended"]["training"])
    objective = registry.load(spec)
    assert objective.space.decode(objective.space.baseline) == pytest.approx(
        {knob["name"]: knob["value"] for knob in document["recommended"]["knobs"]}
    )
