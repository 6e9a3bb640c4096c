"""The loop of a run: signals, rules on record, results found on disk."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from budgets.events import Decided, Event, Fired, GenerationTold, Reserved, Settled, Status
from budgets.rules import judge
from budgets.state import RunState
from orchestrator.execution.engine import Engine
from orchestrator.records.runs import Result
from orchestrator.run.amend import Amendment, amend
from orchestrator.run.session import system_clock
from tests.executors import failing
from tests.ledgers import cut, events_of, every
from tests.orchestrator.conftest import CONFIRMED
from tests.simulation.session import Person

Found = Callable[[Path], dict[str, Any]]
RunSearch = Callable[..., Result]

TWO = Engine(kind="inline", workers=2)
QUICK: dict[str, Any] = {"engine": TWO, "population": 8, "assumed_seconds": 1.0}


def test_the_second_signal_ends_what_fills_slots_while_a_stop_waits_for_it(
    tmp_path: Path, run_search: RunSearch
) -> None:
    stop = Person()

    def insist(state: RunState, event: Event) -> None:
        if isinstance(event, GenerationTold) and event.generation == 1:
            stop.requested = stop.now = True

    impatient = {
        **CONFIRMED,
        "thresholds": {
            **CONFIRMED["thresholds"],
            "patience_generations": 1,
            "patience_improve": 0.99,
        },
        "max_evals": 12,
    }
    result = run_search(tmp_path, engine=TWO, stop=stop, observe=insist, **impatient)

    assert result.ruling.decision == "continue"
    ends = every(Settled, result.directory)
    assert (ends[-1].comparison, ends[-1].status) == ("reference", Status.CANCELLED)
    assert [t.rule for t in judge(result.state).triggers] == ["patience"]


def test_the_rule_that_a_decision_names_is_on_record_once_though_its_process_died_between(
    tmp_path: Path, search_confirmed: Callable[..., Result], found: Found
) -> None:
    nothing = {"objective": "noise", "settings": {"dimension": 2, "noise": 0.0}}  # all is alike
    run = search_confirmed(tmp_path, **nothing).directory
    whole, events = found(run), events_of(run)
    (fired,) = (n for n, event in enumerate(events) if isinstance(event, Fired))
    assert isinstance(events[fired + 1], Decided)
    cut(run, fired + 1)

    search_confirmed(tmp_path, **nothing)

    assert found(run) == whole
    assert len(every(Fired, run)) == 1


def test_a_generation_that_a_result_taken_up_has_paused_is_not_told(
    tmp_path: Path, run_search: RunSearch
) -> None:
    fragile = QUICK | {"engine": failing(3, 7)}  # one more than a generation may
    run = run_search(tmp_path, **fragile).directory
    last = max(n for n, event in enumerate(events_of(run)) if isinstance(event, Reserved))
    cut(run, last)  # its reservation is lost, its result is not

    result = run_search(tmp_path, **fragile)

    assert [trigger.rule for trigger in result.ruling.triggers] == ["crash_rate"]
    (generation,) = result.state.generations
    assert generation.closed
    assert generation.told is None


def test_a_stop_under_caps_that_were_raised_too_little_is_on_record_again(
    tmp_path: Path, run_search: RunSearch
) -> None:
    capped = QUICK | {"max_device_hours": 1 / 3600}
    run = run_search(tmp_path, **capped).directory
    run_search(tmp_path, **capped)
    assert len(every(Fired, run)) == 1

    amend(run, Amendment("a bit more", device_hours=2 / 3600), system_clock())
    again = run_search(tmp_path, **capped)

    assert again.ruling.decision == "stop"
    assert len(every(Fired, run)) == 2
