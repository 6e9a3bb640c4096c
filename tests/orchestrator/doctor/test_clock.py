"""Clocks that limits and deadlines rest on."""

import pytest

from orchestrator.doctor.clock import Reading, agree, boot, date

START = Reading(monotonic=100.0, wall=1_800_000_000.0)


def after(monotonic: float, wall: float) -> Reading:
    return Reading(START.monotonic + monotonic, START.wall + wall)


@pytest.mark.parametrize(
    ("monotonic", "wall", "state"),
    [
        (1.0, 1.0, "ok"),
        (1.0, 1.02, "ok"),
        (1.0, 1.1, "missing"),
        (1.0, -3600.0, "missing"),
        (100.0, 100.9, "ok"),
        (0.01, 0.01, "unknown"),
    ],
)
def test_clocks_that_count_differently_are_found(monotonic: float, wall: float, state: str) -> None:
    assert agree(START, after(monotonic, wall)).state == state


def test_a_clock_that_jumped_says_how_far() -> None:
    assert "(+59.00 s)" in agree(START, after(1.0, 60.0)).seen


@pytest.mark.parametrize(
    ("newest", "state"), [(None, "ok"), (START.wall - 5, "ok"), (START.wall + 86_400, "missing")]
)
def test_a_date_before_what_was_written_already_is_wrong(newest: float | None, state: str) -> None:
    found = date(START.wall, newest)
    assert found.state == state
    assert "2027-01-15T08:00:00Z" in found.seen


def test_a_boot_has_a_name() -> None:
    def unreadable() -> str:
        raise FileNotFoundError(2, "No such file or directory", "/proc/sys/kernel/random/boot_id")

    assert boot(lambda: "b:pid:[1]").seen == "b:pid:[1]"
    found = boot(unreadable)
    assert found.state == "missing"
    assert "/proc/sys/kernel/random/boot_id" in found.seen
