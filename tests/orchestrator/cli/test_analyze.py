"""`analyze` answers from the ledger, and evaluates only when asked to."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.ledger.chain import LEDGER
from orchestrator.cli.analyze import same_objective
from orchestrator.records.recorded import Result, load_state

if TYPE_CHECKING:
    from tests.conftest import Command

INLINE = ("--executor", "inline", "--workers", "1")
IDLE = ("--objective", "idle", "--set", "dimension=2", "--set", "noise=0.01")
RUN = "target-idle-s1"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, run_search: Callable[..., Result]) -> Path:
    """Where a search lies of two knobs, of which the second does nothing."""
    root = tmp_path_factory.mktemp("finished")
    settings = {"dimension": 2, "noise": 0.01}
    terms: dict[str, Any] = {"tier": "target", "max_evals": 60, "assumed_seconds": 1.0}
    run_search(root, objective="idle", settings=settings, **terms)
    return root


@pytest.fixture
def search(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, where the command line finds it."""
    root = Path(shutil.copytree(finished, tmp_path / "artifacts/cmaes"))
    return root / "phase1" / RUN


def ledgers(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob(LEDGER)}


def words(text: str) -> str:
    """The text however its lines are broken."""
    return " ".join(text.split())


def test_analyze_says_where_the_search_stands_and_what_it_estimates(
    search: Path, command: "Command", tmp_path: Path
) -> None:
    before = ledgers(tmp_path)
    answer = command("analyze", RUN)

    assert answer.code == 0
    said = words(answer.out)
    assert "which knobs matter, around the recommendation" in said
    assert "Nothing was evaluated for this." in said
    assert "on pure noise one search of this size in twenty" in said
    assert "An estimate, not a measurement: least squares on" in said
    assert ledgers(tmp_path) == before


def test_analyze_evaluates_around_the_recommendation_when_asked_to(
    search: Path, command: "Command", tmp_path: Path
) -> None:
    answer = command("analyze", RUN, "--evaluate", "--seeds", "3", *INLINE)

    assert answer.code == 0
    assert "Checking x0, x1: 5 points on 3 seeds, 15 evaluations." in answer.out
    lines = [" ".join(line.split()) for line in answer.out.splitlines() if line.startswith("[")]
    assert lines[0].startswith("[ 1/15] recommendation seed ")
    assert lines[14].startswith("[15/15] x1 high seed ")
    assert "dead: x1" in words(answer.out)
    (run,) = (tmp_path / "artifacts/cmaes/check").iterdir()
    assert run.name.startswith("analyze-idle-")
    assert command("verify", run.name).code == 0
    assert "The recommendation scores" in command("report", run.name).out


def test_repeated_it_evaluates_nothing_again(search: Path, command: "Command") -> None:
    evaluate = ("analyze", RUN, "--evaluate", "--seeds", "2", *INLINE)
    first, second = command(*evaluate), command(*evaluate)
    assert (first.code, second.code) == (0, 0)
    assert "[1" in first.out
    assert "[1" not in second.out


def test_a_later_search_is_told_nothing_by_it(search: Path, command: "Command") -> None:
    command("analyze", RUN, "--evaluate", "--seeds", "4", *INLINE)
    terms = ("--tier", "min", "--assume-eval-seconds", "1")
    later = command("phase1", *terms, *IDLE, *INLINE)
    assert later.out.startswith("Note: no knob has been shown to move the score yet")


def test_it_answers_in_one_json_document(search: Path, command: "Command") -> None:
    free = orjson.loads(command("analyze", RUN, "--json").out)
    paid = orjson.loads(
        command("analyze", RUN, "--evaluate", "--seeds", "2", "--json", *INLINE).out
    )
    assert free["directory"].endswith(RUN)
    assert set(free) == {"directory", "analysis"}
    assert paid["analysis"] == free["analysis"]
    assert paid["check"]["centre"] == "recommendation"
    assert paid["phase"] == "check"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("nothing",), "no run 'nothing'"),
        ((RUN, "--seeds", "4"), "--seeds and --knobs say what to evaluate: add --evaluate"),
        ((RUN, "--knobs", "x0"), "--seeds and --knobs say what to evaluate: add --evaluate"),
        ((RUN, "--evaluate", "--knobs", "y"), "--knobs: idle has no 'y', expected some of x0, x1"),
        ((RUN, "--evaluate", "--max-evals", "9"), "--max-evals 9 does not pay for 5 points"),
        ((RUN, "--evaluate", "--seeds", "1"), "--seeds"),
    ],
)
def test_what_cannot_be_analyzed_is_one_clear_error_and_writes_nothing(
    arguments: tuple[str, ...],
    named: str,
    search: Path,
    command: "Command",
    tmp_path: Path,
) -> None:
    before = ledgers(tmp_path)
    answer = command("analyze", *arguments)
    assert answer.code == 2
    assert named in answer.err
    assert ledgers(tmp_path) == before


def test_a_check_is_no_search(command: "Command") -> None:
    command("space", "check", *IDLE, *INLINE, "--seeds", "2")
    answer = command("status", "--json")
    run = orjson.loads(answer.out)["run_id"]
    assert "is a check: expected a search's run" in command("analyze", run).err


def test_an_objective_that_scores_otherwise_now_is_not_evaluated(
    search: Path,
) -> None:
    state = load_state(search)
    assert same_objective(state).fingerprint == state.plan.objective_fingerprint
    changed = {"objective_fingerprint": "0" * 64}
    state.plan = state.plan.model_copy(update=changed)
    with pytest.raises(ValueError, match="its data or its code has changed since"):
        same_objective(state)
