"""What the runs directory tells: who runs there now, and what an evaluation leaves there."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from budgets.ledger.lock import LOCK, has_open
from budgets.ledger.writer import BALLAST
from budgets.plain import command
from orchestrator.doctor.disk import ASSUMED, Footprint
from orchestrator.doctor.finding import Finding

NOT_RUNS = ("eval", "reports")
DEEPEST = 4  # below the runs directory: a phase, a campaign, its runs
MOST_RUNS, MOST_EVALUATIONS = 8, 200  # looked at for what an evaluation takes: the newest
BLOCK_BYTES = 512  # in which st_blocks counts
_OWNER = re.compile(r"host (?P<host>[^,]*), pid (?P<pid>\d+), since (?P<since>\S+)")


@dataclass(frozen=True)
class Holder:
    """Who wrote his name into a run's lock last."""

    run: Path
    host: str
    pid: int
    since: str


def run_directories(root: Path) -> list[Path]:
    """Every directory below `root` that a run has been opened in, those changed last first."""
    found, most = [], len(root.parts) + DEEPEST
    for directory, folders, files in os.walk(root):
        deeper = len(Path(directory).parts) < most
        folders[:] = [name for name in folders if deeper and name not in NOT_RUNS]
        if LOCK in files:
            found.append(Path(directory))
    return sorted(found, key=_changed, reverse=True)


def _changed(run: Path) -> float:
    with suppress(OSError):
        return (run / LOCK).stat().st_mtime
    return 0.0


def newest_change(runs: list[Path]) -> float | None:
    """When a run was opened last, by the file system's account, in seconds."""
    return max(map(_changed, runs), default=None)


def holder(run: Path) -> Holder | None:
    """Whose name is in the run's lock; nothing says that he still has it."""
    try:
        with (run / LOCK).open(errors="replace") as file:
            told = _OWNER.match(file.read(400))
    except OSError:
        return None
    return None if told is None else Holder(run, told["host"], int(told["pid"]), told["since"])


def live(
    runs: list[Path], host: str, still: Callable[[int, Path], bool | None] = has_open
) -> tuple[Finding, ...]:
    """The runs that a process has in hand now: they use devices too.

    `still(pid, lock)` says whether that process of this machine has the lock's file open.
    """
    named = [one for one in map(holder, runs) if one is not None]
    states = {one: _is_live(one, host, still) for one in named}
    found = [_live(one, host) for one, held in states.items() if held]
    unseen = [one for one, held in states.items() if held is None]
    if unseen:
        listed = ", ".join(f"{one.run.name} (pid {one.pid} on {one.host})" for one in unseen[:8])
        mend = f"{command('status', str(unseen[0].run))} (on {unseen[0].host})"
        found.append(Finding("live runs elsewhere", "unknown", f"perhaps {listed}", mend))
    return tuple(found) or (Finding("live runs", "ok", f"none of {len(runs)} here"),)


def _is_live(one: Holder, host: str, still: Callable[[int, Path], bool | None]) -> bool | None:
    """On another host nobody can be asked; a run that has ended has given its ballast up."""
    if one.host == host:
        return still(one.pid, one.run / LOCK)
    return None if (one.run / BALLAST).exists() else False


def _live(one: Holder, host: str) -> Finding:
    return Finding("live run", "ok", f"{one.run}: pid {one.pid} on {host}, since {one.since}")


def footprint(runs: list[Path]) -> Footprint:
    """The most that an evaluation of the newest runs takes; assumed where none has run."""
    sizes, inodes = [], []
    for place in _evaluations(runs):
        blocks, entries = _usage(place)
        sizes.append(blocks * BLOCK_BYTES)
        inodes.append(entries + 1)  # and its candidate's directory
    if not sizes:
        return ASSUMED
    return Footprint(max(sizes), max(inodes), len(sizes))


def _evaluations(runs: list[Path]) -> Iterator[Path]:
    left = MOST_EVALUATIONS
    for run in runs[:MOST_RUNS]:
        for place in (run / "eval").glob("*/*/seed_*"):
            if left == 0:
                return
            left -= 1
            yield place


def _usage(place: Path) -> tuple[int, int]:
    """Blocks and entries of a directory, itself included; what vanishes meanwhile is left out."""
    blocks, entries = _blocks(place), 1
    for directory, folders, files in os.walk(place):
        for name in (*folders, *files):
            blocks += _blocks(Path(directory) / name)
            entries += 1
    return blocks, entries


def _blocks(path: Path) -> int:
    with suppress(OSError):
        return path.lstat().st_blocks
    return 0
