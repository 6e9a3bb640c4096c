"""An evaluation that finds nothing can be evaluated holds the run up, and is made when it can be.

Whatever was held up is then what it would have been if nothing had.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from budgets.events import Fired, Reserved, Settled, Status
from orchestrator.execution.engine import Engine
from orchestrator.records.runs import Result
from orchestrator.verify import verify
from tests.ledgers import events_of

Run = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]
SAID = "SetupError: the text is gone: put it back"
QUICK: dict[str, Any] = {"assumed_seconds": 1.0, "population": 8}


Lack = Callable[..., list[str]]


def assert_held_up(result: Result, starts: int = 1) -> Settled:
    """It is paused by that rule alone, and nothing was started since the evaluation that says so.

    Gives how that one was settled, of so many that found it.
    """
    (trigger,) = result.ruling.triggers
    assert (result.ruling.decision, trigger.rule) == ("pause", "setup_failed")
    recorded = events_of(result.directory)
    found = [n for n, e in enumerate(recorded) if isinstance(e, Settled) and e.cause == SAID]
    assert len(found) == starts
    assert not any(isinstance(event, Reserved) for event in recorded[found[-1] :])
    assert isinstance(recorded[-1], Fired) or starts > 1
    assert verify(result.directory).divergence is None
    end = recorded[found[-1]]
    assert isinstance(end, Settled)
    assert (end.status, end.score, end.retry) == (Status.LOST, None, False)
    assert result.state.accounts.device_ms >= end.charged_ms > 0
    return end


def test_evaluations_in_processes_of_their_own_hold_a_run_up_once(
    tmp_path: Path, run_search: Run, rude: Callable[[str], Engine], found: Found
) -> None:
    undisturbed = run_search(tmp_path / "undisturbed", **QUICK)
    engine, missing = rude("unready"), tmp_path / "run/missing"
    missing.parent.mkdir()
    missing.touch()

    held_up = run_search(tmp_path / "run", engine=engine, **QUICK)
    starts = sum(isinstance(event, Reserved) for event in events_of(held_up.directory))
    assert_held_up(held_up, starts)
    assert starts <= 2
    missing.unlink()
    resumed = run_search(tmp_path / "run", engine=engine, **QUICK)

    mine, theirs = found(resumed.directory), found(undisturbed.directory)
    assert mine["generations"] == theirs["generations"]
    assert verify(resumed.directory).divergence is None


def test_the_command_says_what_to_mend_and_lets_nobody_override_it(
    command: Callable[..., Any], lack: Lack
) -> None:
    inline = ("--executor", "inline", "--workers", "1", "--assume-eval-seconds", "1")
    search = ("phase1", "--tier", "min", "--objective", "sphere", *inline)
    lack("gen_0000/cand_0001", "gen_0000/cand_0001")

    answer = command(*search)
    assert answer.code == 3
    assert SAID in " ".join(answer.out.split())
    assert "--override" not in answer.out
    refused = command(*search, "--override", "setup_failed", "--reason", "never mind")
    assert refused.code == 2
    assert "cannot be overridden" in refused.err
    assert command(*search).code == 3
    assert command(*search).code == 0
