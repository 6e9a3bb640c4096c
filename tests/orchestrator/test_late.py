"""Outcomes heard twice, too late, or only after the orchestrator had died."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Late, Reserved, Settled, Status
from orchestrator.execution.attempts import write_summary
from orchestrator.execution.evaluate import Attempt, Executor, Outcome, Slots
from orchestrator.records.attempts import attempt_place
from orchestrator.records.recorded import Result
from orchestrator.verification.verify import verify
from tests import ledgers
from tests.executors import End, Ending, giving_up, is_first
from tests.ledgers import events_of, state_of
from tests.orchestrator.conftest import NOISY
from tests.simulation.session import SimulatedEngine

RunSearch = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]
Cut = Callable[..., None]


def late(run: Path) -> list[Late]:
    return [e for e in events_of(run) if isinstance(e, Late)]


class Echo(Ending):
    """Says every outcome twice, and once more later."""

    def __init__(self, slots: Slots, end: End = lambda attempt: None) -> None:
        super().__init__(slots, end, on_disk=False)
        self.said: list[Outcome] = []

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        heard = super().wait(timeout_seconds)
        again = self.said[-3:]
        self.said += heard
        return [*heard, *heard, *again]


def echo_of_losses(slots: Slots) -> Echo:
    """Loses first attempts at candidate 2, and says that as often as everything else."""

    def end(attempt: Attempt) -> tuple[Status, str] | None:
        loses = is_first(attempt) and attempt.directory.parent.name == "cand_0002"
        return (Status.LOST, "its node died") if loses else None

    return Echo(slots, end)


def is_given_up(attempt: Attempt) -> bool:
    return is_first(attempt) and attempt.directory.parent.name in ("cand_0001", "cand_0005")


def test_an_outcome_heard_again_is_heard_once(
    run: Path, run_search: RunSearch, found: Found
) -> None:
    whole = found(run)
    shutil.rmtree(run)
    result = run_search(
        run.parent.parent, **NOISY, engine=SimulatedEngine("inline", workers=1, make=Echo)
    )
    assert result.ruling.decision == "done"
    assert found(run) == whole
    assert result.state.records == 39
    assert late(run) == []


def test_a_loss_heard_again_is_heard_once(run: Path, run_search: RunSearch, found: Found) -> None:
    whole = found(run)
    shutil.rmtree(run)
    engine = SimulatedEngine("inline", workers=1, make=echo_of_losses)
    result = run_search(run.parent.parent, **NOISY, engine=engine)
    assert found(run) == whole
    assert sum(end.status is Status.LOST for end in result.state.ends()) == 2
    assert late(run) == []


def test_an_outcome_of_an_attempt_given_up_is_charged_and_told_to_nobody(
    run: Path, run_search: RunSearch, found: Found
) -> None:
    whole = found(run)
    shutil.rmtree(run)
    result = run_search(run.parent.parent, **NOISY, engine=giving_up(is_given_up, 1))

    came = late(run)
    assert came
    assert {e.candidate for e in came} <= {1, 5}
    assert all(93_000 < event.charged_ms < 94_000 for event in came)  # of 100 s, 7 were charged
    assert len({(e.generation, e.candidate, e.attempt) for e in came}) == len(came)
    assert found(run)["generations"] == whole["generations"]
    assert result.state.accounts.evaluations == 16
    settlements = [e for e in events_of(run) if isinstance(e, Settled)]
    assert result.state.accounts.device_ms == sum(e.charged_ms for e in settlements) + sum(
        e.charged_ms for e in came
    )
    assert state_of(run) == result.state


def lost_on_resume(run: Path, root: Path, run_search: RunSearch, cut: Cut) -> Reserved:
    """Leaves the run as it is when an attempt's files vanished and it was settled as lost."""
    cut(run, 12)
    reserved = events_of(run)[-1]
    assert isinstance(reserved, Reserved)
    shutil.move(run / "eval" / attempt_place(reserved), run.parent / "kept")

    def die(slots: Slots) -> Executor:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_search(root, **NOISY, engine=SimulatedEngine("inline", workers=1, make=die))
    last = events_of(run)[-1]
    assert isinstance(last, Settled)
    assert last.status is Status.LOST
    return reserved


@pytest.mark.parametrize("status", [Status.OK, Status.ERROR, Status.CANCELLED])
def test_a_result_left_by_an_attempt_given_up_is_noted_on_resume(
    run: Path, run_search: RunSearch, cut: Cut, found: Found, status: Status
) -> None:
    whole, root = found(run), run.parent.parent
    reserved = lost_on_resume(run, root, run_search, cut)
    place = run / "eval" / attempt_place(reserved)
    shutil.rmtree(place, ignore_errors=True)
    shutil.move(run.parent / "kept", place)
    rewrite(place, status=status, seconds=500.0)
    assert verify(run).divergence is None

    run_search(root, **NOISY)

    (came,) = late(run)
    assert (came.candidate, came.attempt, came.status) == (reserved.candidate, 1, status)
    assert came.charged_ms == 500_000 - reserved.reserve_ms
    assert found(run)["generations"] == whole["generations"]
    assert verify(run).divergence is None


def rewrite(place: Path, **fields: Any) -> None:
    outcome = Outcome.model_validate_json((place / "summary.json").read_bytes())
    if fields["status"] is not Status.OK:
        fields["measurement"] = None
    write_summary(place, outcome.model_copy(update=fields))


def test_what_settled_an_attempt_as_lost_is_not_noted_again(
    run: Path, run_search: RunSearch, cut: Cut
) -> None:
    """Its own supervisor, or whoever swept up after it, wrote that it was lost."""
    cut(run, 12)
    reserved = events_of(run)[-1]
    assert isinstance(reserved, Reserved)
    place = run / "eval" / attempt_place(reserved)
    rewrite(place, status=Status.LOST, seconds=3.0, cause="the supervisor died")
    for _ in range(2):
        cut_and_run(run, run_search)
    assert late(run) == []
    settled = state_of(run).generations[0].tries[reserved.candidate, reserved.seed]
    assert next(t.settled.status for t in settled if t.settled) is Status.LOST
    assert verify(run).divergence is None


def cut_and_run(run: Path, run_search: RunSearch) -> None:
    run_search(run.parent.parent, **NOISY)
    ledgers.cut(run, -1)


def test_a_late_result_is_noted_once_however_often_the_run_is_resumed(
    run: Path, run_search: RunSearch, cut: Cut
) -> None:
    root = run.parent.parent
    reserved = lost_on_resume(run, root, run_search, cut)
    place = run / "eval" / attempt_place(reserved)
    shutil.rmtree(place, ignore_errors=True)
    shutil.move(run.parent / "kept", place)
    for _ in range(3):
        cut_and_run(run, run_search)
    assert len(late(run)) == 1
    assert late(run)[0].charged_ms == 0  # its settlement had charged the whole limit


def test_verify_still_finds_a_settlement_that_its_own_file_denies(
    run: Path, run_search: RunSearch, cut: Cut
) -> None:
    place = run / "eval" / attempt_place(next(e for e in events_of(run) if isinstance(e, Reserved)))
    rewrite(place, status=Status.OK, seconds=77.0)
    divergence = verify(run).divergence
    assert divergence is not None
    assert "instead of" in divergence
