"""Whether this machine's clocks can be trusted with limits and deadlines."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from orchestrator.doctor.finding import Finding

LEAST_SECONDS = 0.05  # between two readings, to compare them at all
SLACK_SECONDS, SLACK_SHARE = 0.02, 0.01
SET_CLOCK = "timedatectl set-ntp true"


@dataclass(frozen=True)
class Reading:
    """Both clocks at one moment, in seconds."""

    monotonic: float
    wall: float


def agree(before: Reading, after: Reading) -> Finding:
    """Whether both clocks have counted the same time between two readings."""
    item = "clocks"
    passed, on_the_wall = after.monotonic - before.monotonic, after.wall - before.wall
    differ = on_the_wall - passed
    seen = f"in {passed:.2f} s the wall clock moved {on_the_wall:.2f} s"
    if passed < LEAST_SECONDS:
        return Finding(item, "unknown", f"{seen}: too short to tell", "repeat it without --quick")
    if abs(differ) > SLACK_SECONDS + SLACK_SHARE * passed:
        seen += f": it is being set ({differ:+.2f} s), and a deadline would move with it"
        return Finding(item, "missing", seen, f"{SET_CLOCK}, and wait until it is set")
    return Finding(item, "ok", seen)


def date(wall: float, newest: float | None) -> Finding:
    """Whether the wall clock is after what it has already written; `newest` is such a time."""
    seen = f"{datetime.fromtimestamp(wall, UTC):%Y-%m-%dT%H:%M:%SZ}"
    if newest is None:
        return Finding("date", "ok", f"{seen}, with nothing to compare it with")
    if newest > wall + 1:
        seen += f" is {newest - wall:.0f} s before the newest file of a run"
        return Finding("date", "missing", seen, SET_CLOCK)
    return Finding("date", "ok", seen)


def boot(boot_id: Callable[[], str]) -> Finding:
    """Whether a boot can be told from the next: else nobody knows whether a pid still means it."""
    try:
        return Finding("boot id", "ok", boot_id())
    except OSError as error:
        seen = f"{error.filename}: {error.strerror}"
        return Finding("boot id", "missing", seen, "mount -t proc proc /proc")
