"""What a wall clock loses beside the evaluations, read from a ledger."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from budgets.events import Event, GenerationTold, Opened, Owner, Reserved, Settled, Status
from budgets.ledger import LEDGER, Record, read
from orchestrator.plan.times import ASSUMED, overheads
from orchestrator.records.recorded import Result

OPENED = Opened(host="h", owner=Owner(boot_id="b", pid=1, start_ticks=1), workers=2, versions={})


def reserved(candidate: int, generation: int = 0) -> Reserved:
    return Reserved(
        generation=generation, candidate=candidate, seed=1, attempt=1, reserve_ms=60_000
    )


def settled(candidate: int, seconds: float, generation: int = 0) -> Settled:
    return Settled(
        generation=generation, candidate=candidate, seed=1, attempt=1,
        status=Status.OK, score=1.0, charged_ms=round(1000 * seconds), seconds=seconds,
    )  # fmt: skip


def told(generation: int) -> GenerationTold:
    return GenerationTold(generation=generation, digest="d", mean=(0.5,), sigma=0.1, axis_ratio=1.0)


def ledger(*events: tuple[int, Event]) -> list[Record]:
    return [Record(n, "", ms, event, "", 0, b"") for n, (ms, event) in enumerate(events)]


def timed(events: Iterable[tuple[int, Event]]) -> tuple[float, float, float]:
    found = overheads(ledger(*events))
    return found.startup_seconds, found.gap_seconds, found.generation_seconds


def test_the_first_reservation_ends_the_start_up() -> None:
    startup, _, _ = timed([(100, OPENED), (11_700, reserved(0)), (11_703, reserved(1))])
    assert startup == pytest.approx(11.7)


def test_a_later_session_is_no_start_up_of_the_command() -> None:
    startup, _, _ = timed([(0, OPENED), (900, reserved(0)), (50, OPENED), (5_000, reserved(1))])
    assert startup == pytest.approx(0.9)


def test_a_gap_is_what_an_attempt_does_not_take_and_the_wait_for_the_next() -> None:
    """20 ms around the first, 40 ms around the second; 2 ms until the second begins."""
    _, gap, _ = timed(
        [
            (0, OPENED),
            (1, reserved(0)),
            (1_021, settled(0, 1.0)),
            (1_023, reserved(1)),
            (2_063, settled(1, 1.0)),
        ]
    )
    assert gap == pytest.approx(0.030 + 0.002)


def test_what_was_in_flight_when_a_process_died_has_no_gap() -> None:
    found = overheads(
        ledger((0, OPENED), (10, reserved(0)), (5, OPENED), (90_000, settled(0, 1.0)))
    )
    assert "gap" in found.assumed
    assert found.gap_seconds == ASSUMED.gap_seconds


def test_between_generations_lie_the_telling_and_the_asking() -> None:
    _, _, between = timed(
        [
            (0, OPENED),
            (1, reserved(0)),
            (1_000, settled(0, 1.0)),
            (1_050, told(0)),
            (1_300, reserved(0, 1)),
            (2_400, settled(0, 1.0, 1)),
            (2_450, told(1)),
            (2_900, reserved(0, 2)),
        ]
    )
    assert between == pytest.approx((0.3 + 0.5) / 2)


def test_what_nobody_measured_is_assumed_and_marked() -> None:
    found = overheads(ledger((0, OPENED), (40, reserved(0)), (1_050, settled(0, 1.0))))
    assert found.assumed == ("between generations",)
    assert found.generation_seconds == ASSUMED.generation_seconds
    assert overheads([]) == ASSUMED


def test_a_finished_run_has_measured_all_of_them(
    tmp_path: Path, run_search: Callable[..., Result]
) -> None:
    run = run_search(tmp_path).directory
    found = overheads(read(run / LEDGER).records)
    assert found.assumed == ()
    assert 0 <= found.startup_seconds < 60
    assert 0 <= found.gap_seconds < 5
    assert 0 < found.generation_seconds < 5
