"""Thresholds from a file and from options: what they change, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.terms import Thresholds
from orchestrator.config.thresholds import read_changes
from orchestrator.records.recorded import load_state

if TYPE_CHECKING:
    from tests.conftest import Command

WriteToml = Callable[[str], Path]
SPHERE = ("--objective", "sphere", "--executor", "inline", "--workers", "1")
PHASE1 = ("phase1", "--tier", "min", *SPHERE, "--assume-eval-seconds", "1")
PLAN = ("plan", "phase1", "--tier", "min", "--objective", "sphere", "--workers", "1")


@pytest.fixture
def write(tmp_path: Path) -> WriteToml:
    """A TOML file with this text."""

    def write(text: str) -> Path:
        path = tmp_path / "limits.toml"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("table", ["", "[thresholds]\n"])
def test_a_file_changes_what_it_names_and_nothing_else(write: WriteToml, table: str) -> None:
    file = write(f"{table}crash_rate_pause = 1\ngo_seeds = 7  # more\npatience_generations = 4\n")
    asked = read_changes(file)
    assert asked == {"crash_rate_pause": 1.0, "go_seeds": 7, "patience_generations": 4}
    changed = set(Thresholds.model_validate(asked)) - set(Thresholds())
    assert {name for name, _ in changed} == set(asked)


def test_an_empty_file_changes_nothing(write: WriteToml) -> None:
    assert read_changes(write("")) == read_changes(write("[thresholds]\n")) == {}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("crash_rates_pause = 0.2", "unknown threshold 'crash_rates_pause'. Did you mean 'crash_"),
        ("[thresholds]\nptience_generations = 2", "Did you mean 'patience_generations'?"),
        ("[threshold]\nedge = 0.1", "unknown threshold 'threshold'"),
        ("go_seeds = 5\n[thresholds]\nedge = 0.1", "got 'go_seeds' beside it"),
        ("[thresholds]\n[training]\nseed = 1", "got 'training' beside it"),
        ("crash_rate_pause = 1.01", "crash_rate_pause: Input should be less than or equal to 1"),
        ("crash_rate_pause = -0.01", "greater than or equal to 0, got -0.01"),
        ('crash_rate_pause = "0.2"', "crash_rate_pause: Input should be a valid number, got '0.2'"),
        ("crash_count_pause = 2.5", "crash_count_pause: Input should be a valid integer, got 2.5"),
        ("crash_count_pause = true", "crash_count_pause: Input should be a valid integer"),
        ("patience_generations = 0", "patience_generations: Input should be greater than or equal"),
        ("far = nan", "far: Input should be a finite number, got nan"),
        ("far = [1]", "far: Input should be a valid number, got [1]"),
        ("edge = 0.1\nedge = 0.2", "is no TOML file: Cannot overwrite a value (at"),
        ("edge 0.1", "is no TOML file: Expected '=' after a key"),
        ("edge = " + 9999 * "[", "is no TOML"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(
    write: WriteToml, command: "Command", text: str, complaint: str
) -> None:
    file = write(text)
    for arguments in (("explain",), PLAN):
        answer = command(*arguments, "--thresholds", str(file))
        assert answer.code == 2
        assert complaint in answer.err
        assert str(file) in answer.err
        assert len(answer.err.splitlines()) == 1


def test_a_file_that_is_none_is_refused(command: "Command", tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"edge = \xff")
    for name, complaint in (
        ("missing.toml", "cannot be read: No such file"),
        (".", "is no file: expected one"),
        ("bytes.toml", "is no text in UTF-8"),
    ):
        answer = command("explain", "--thresholds", name)
        assert (answer.code, complaint in answer.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--patience", "0"), "--patience"),
        (("--patience", "1.5"), "--patience"),
        (("--min-improve", "-0.1"), "--min-improve"),
        (("--min-improve", "nan"), "--min-improve"),
        (("--min-improve", "inf"), "--min-improve: Input should be a finite number, got inf"),
    ],
)
def test_an_option_that_is_none_is_refused(
    command: "Command", arguments: tuple[str, ...], complaint: str
) -> None:
    answer = command(*PLAN, *arguments)
    assert answer.code == 2
    assert complaint in answer.err


def recorded(directory: Path) -> Thresholds:
    return load_state(directory / "artifacts/cmaes/phase1/min-sphere-s1").plan.thresholds


def test_a_plan_and_a_run_are_on_the_thresholds_asked_for(
    command: "Command", write: WriteToml, tmp_path: Path
) -> None:
    file = str(write("crash_count_pause = 3\n"))
    asked = ("--thresholds", file, "--patience", "4", "--min-improve", "0.02")
    (planned,) = orjson.loads(command(*PLAN, *asked, "--json").out)["tiers"]
    assert command(*PHASE1, *asked).code == 0
    expected = Thresholds(crash_count_pause=3, patience_generations=4, patience_improve=0.02)
    assert Thresholds.model_validate(planned["plan"]["thresholds"]) == expected
    assert recorded(tmp_path) == expected


def test_a_run_taken_up_keeps_its_thresholds_and_refuses_others(
    command: "Command", write: WriteToml, tmp_path: Path
) -> None:
    file = str(write("crash_count_pause = 3\n"))
    command(*PHASE1, "--thresholds", file, "--patience", "4")
    assert command(*PHASE1).code == 0  # what nobody asks about stays as it is
    assert command(*PHASE1, "--patience", "4").code == 0
    answer = command(*PHASE1, "--patience", "5")
    assert answer.code == 2
    assert "holds another plan" in answer.err
    assert "thresholds.patience_generations: 4 -> 5" in answer.err
    forked = command(*PHASE1, "--patience", "5", "--fork-run")
    assert forked.code == 0
    again = command(*PHASE1, "--patience", "5", "--fork-run")
    assert (again.code, "min-sphere-s1-fork1" in again.out) == (0, True)
    assert recorded(tmp_path).patience_generations == 4


def test_patience_stops_a_search_that_does_not_get_better_and_can_be_overridden(
    command: "Command",
) -> None:
    plateau: tuple[Any, ...] = ("--patience", "1", "--min-improve", "0.99")
    answer = command(*PHASE1, "--tier", "target", "--confirm-seeds", "0", *plateau)
    assert answer.code == 4
    assert "--override patience" in " ".join(answer.out.split())
    onward = ("--override", "patience", "--reason", "let it")
    again = command(*PHASE1, "--tier", "target", "--confirm-seeds", "0", *plateau, *onward)
    assert again.code == 4
    assert "Generation 2 (3 of 15)" in again.out


def test_what_a_search_out_of_patience_found_is_compared_all_the_same(command: "Command") -> None:
    plateau = ("--patience", "1", "--min-improve", "0.99")
    answer = command("phase1", "--tier", "target", *SPHERE, "--set", "noise=0.01", *plateau)
    assert answer.code == 0
    assert "Rule patience: the mean score got" in answer.out
    assert "of the gain is kept" in " ".join(answer.out.split())
    rules = orjson.loads(command("explain", "target-sphere-s1", "--json").out)["rules"]
    fires = {row["rule"]: row["seen"]["fires"] for row in rules if row["seen"] is not None}
    assert [name for name in fires if fires[name] and name != "rung"] == ["patience"]
    assert {"signal", "stability", "persistence", "sanity", "rung"} <= set(fires)
