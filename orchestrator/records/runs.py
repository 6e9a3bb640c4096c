"""Runs on disk: found, read, followed without disturbing their process, and how they stand."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from budgets.formatting import duration
from budgets.ledger import LEDGER, Reader, Record, damaged
from budgets.plan import Phase
from budgets.rules import Decision, Ruling, ruling_of
from budgets.state import ImpossibleEventError, RunState, apply
from orchestrator.execution.processes import boot_id, owner_is_gone

RUNS_DIR = "artifacts/cmaes"
DEEPEST = 6  # levels below a directory that are searched for runs


@dataclass(frozen=True)
class Result:
    """A run as it stands."""

    directory: Path
    state: RunState
    ruling: Ruling


def recorded_state(directory: Path) -> RunState | None:
    """Return the state of the run in `directory`; None without a whole record.

    Raises ValueError where a part of the run is a link or no plain file, LedgerCorruptError where
    the ledger is damaged, has lost records, or holds an impossible one.
    """
    path = directory / LEDGER
    if not is_there(path):
        return None
    return state_of(path, Reader(path))


def state_of(ledger: Path, records: Iterable[Record]) -> RunState | None:
    """Return the state after all records; None without any. Raises as `applied`."""
    state = None
    for record in records:
        state = applied(ledger, state, record)
    return state


def applied(ledger: Path, state: RunState | None, record: Record) -> RunState:
    """Return the state after the record. Raises LedgerCorruptError if it cannot follow."""
    try:
        return apply(state, record)
    except ImpossibleEventError as error:
        raise damaged(ledger, f": {error}") from error


def load_state(directory: Path) -> RunState:
    """Return the state of a run. Raises as `recorded_state`, and ValueError without a record."""
    state = recorded_state(directory)
    if state is None:
        raise ValueError(f"{directory / LEDGER} holds no whole record yet")
    return state


def is_there(ledger: Path) -> bool:
    """Return whether there is a ledger to read. Raises ValueError if a part of the run is a link.

    A link would let one run write into another's files, and reading a pipe might never end.
    """
    for part in (ledger, ledger.parent / "reports", ledger.parent / "eval"):
        if part.is_symlink():
            raise ValueError(f"{part} is a symbolic link: move what it points to in its place")
    if ledger.exists() and not ledger.is_file():
        raise ValueError(f"{ledger} is not a plain file: expected a ledger. Move it away")
    return ledger.exists()


@dataclass
class Tail:
    """A run in `directory`, as its whole records were at the last look."""

    directory: Path
    state: RunState | None = None  # None: no whole record yet
    is_gone: bool = False  # no ledger is there
    _seen: tuple[int, int, int] | None = None  # inode, size and time of change at the last look

    def news(self) -> Iterator[Record]:
        """Yield the records that are new since the last look, each applied to `state`.

        A ledger that was replaced by another is told from its first record. Raises as
        `recorded_state` does, and OSError.
        """
        path = self.directory / LEDGER
        self.is_gone = not is_there(path)
        if self.is_gone:
            return
        stat = path.stat()
        seen = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if seen == self._seen:
            return
        records = list(Reader(path))  # the whole ledger: 5,000 records take 0.07 s
        known = 0 if self.state is None else self.state.records
        if self.state is not None and [r.digest for r in records[known - 1 : known]] != [
            self.state.head
        ]:
            self.state, known = None, 0
        for record in records[known:]:
            self.state = applied(path, self.state, record)
            yield record
        self._seen = seen


def is_set_aside(directory: Path) -> bool:
    """Return whether the run was moved out of the way, as `verify --salvage` proposes."""
    return not {".damaged", ".salvaged"}.isdisjoint(directory.suffixes)


def last_changed(run: Path) -> float:
    """Return the time of its last record in seconds; 0 where it has just been moved."""
    with suppress(OSError):
        return (run / LEDGER).lstat().st_mtime
    return 0.0


def runs_below(root: Path) -> Iterator[Path]:
    """Yield the runs in or below `root` in order, without links and damaged ledgers set aside."""
    for at, inner, names in os.walk(root):
        place = Path(at)
        is_run = LEDGER in (*names, *inner)
        if is_run:
            yield place
        if is_run or len(place.relative_to(root).parts) == DEEPEST:
            inner.clear()
        kept = (name for name in inner if not name.startswith(".") and not is_set_aside(Path(name)))
        inner[:] = sorted(set(kept) - {"eval", "reports"})


def _runs(root: Path, phase: str, name: str = "*") -> list[Path]:
    """Return the runs at their usual places in a runs directory, links too, in order."""
    found = (path.parent for path in root.glob(f"{phase}/{name}/{LEDGER}"))
    return sorted(place for place in found if not is_set_aside(place))


def finished_runs(root: Path, phase: Phase, family: str) -> Iterator[Result]:
    """Yield the concluded runs of a phase whose names begin with `family`, by name."""
    for place in _runs(root, phase, f"{family}-*"):
        state = recorded_state(place)
        if state is not None and state.concluded is not None:
            yield Result(place, state, ruling_of(state))


def find_run(run: str | None, root: Path, *phases: Phase) -> Path:
    """Return the directory of a run by its id or path, or of the latest run.

    Only runs of `phases` are looked at, if there are any, unless the run is named by its path.
    Raises ValueError if there is none, or two have the id.
    """
    if run is not None and os.path.lexists(Path(run) / LEDGER):  # False on an impossible path
        return Path(run)
    every = [place for phase in phases or ("*",) for place in _runs(root, phase)]
    found = [place for place in every if run in (None, place.name)]
    if not found:
        kind = f"{phases[0]} run" if len(phases) == 1 else "search" if phases else "run"
        wanted = kind if run is None else f"{kind} {run[:80]!r}"
        near = " or ".join(get_close_matches((run or "")[:80], [place.name for place in every]))
        hint = near and f". Did you mean {near}?"
        raise ValueError(f"no {wanted} in {root}: name its directory, or say --runs-dir{hint}")
    if run is not None and len(found) > 1:
        named = " or ".join(map(str, found))
        raise ValueError(f"several runs are called {run!r}: name the directory of one, {named}")
    return max(found, key=last_changed)


class ReplayError(Exception):
    """The search proposes something else than the ledger says. Defined here to import no cma."""

    def __init__(self, generation: int, why: str) -> None:
        super().__init__(
            f"the replay diverges at generation {generation}: {why}. The ledger was changed, or "
            "written with another version of this program, of cma or of numpy"
        )


# How a run stands

Kind = Literal["planned", "running", "elsewhere", "interrupted", "paused", "stopped", "finished"]
"""`elsewhere`: running on another machine, as far as can be told from here; `interrupted`: it may
go on, and no process has it; `paused`: until a person overrides a rule; `stopped`: by a budget, a
window or a rule."""

OVER: tuple[Kind, ...] = ("paused", "stopped", "finished")

PATIENCE_SECONDS = 60.0
"""Beyond an attempt's worst case: a run elsewhere that is silent for longer counts as dead."""

REPEAT = "Repeat the command that began it to go on."

_ENDS: dict[Decision, Kind] = {"pause": "paused", "stop": "stopped", "done": "finished"}


@dataclass(frozen=True)
class Standing:
    """How a run stands."""

    kind: Kind
    whose: str  # the kind, and the process or machine that has it: `running (pid 7)`
    ruling: Ruling

    @property
    def goes_on(self) -> bool:
        """Whether a process carries it out."""
        return self.kind in ("running", "elsewhere")

    @property
    def way_on(self) -> str:
        """What a person has to do, unless a rule holds the run up."""
        return REPEAT if self.kind in ("planned", "interrupted") else ""


def standing_of(state: RunState, now: datetime) -> Standing:
    """Return how a run stands, by its records and its process."""
    ruling = ruling_of(state)
    kind = _kind(state, ruling, now)
    whose = str(kind)
    if kind == "running":
        whose = f"running (pid {state.opened[-1].owner.pid})"
    elif kind not in OVER and not _is_here(state):
        host, ago = state.opened[-1].host, duration(_silent_seconds(state, now))
        whose = f"{whose.replace('elsewhere', 'running')} on {host}, last record {ago} ago"
    return Standing(kind, whose, ruling)


def goes_on(state: RunState, now: datetime) -> bool:
    """Return whether a process has the run, as far as can be told from here."""
    if state.concluded is not None or not state.opened:
        return False
    if _is_here(state):
        return not owner_is_gone(state.opened[-1].owner)
    worst = max((t.reserved.reserve_ms for t in state.accounts.holds.values()), default=0) / 1000
    return _silent_seconds(state, now) <= worst + PATIENCE_SECONDS


def _is_here(state: RunState) -> bool:
    """Return whether its last session was on this machine since that was started."""
    return not state.opened or state.opened[-1].owner.boot_id == boot_id()


def _silent_seconds(state: RunState, now: datetime) -> float:
    return max(0.0, (now - state.seen).total_seconds())


def _kind(state: RunState, ruling: Ruling, now: datetime) -> Kind:
    is_carried_out = goes_on(state, now)
    if state.concluded is not None:
        return "finished"
    noted = {(one.rule, one.generation) for one in state.fired}
    fired = {(one.rule, one.generation) for one in ruling.triggers}
    is_at_rest = fired <= noted and ruling.decision != "done" and not state.accounts.holds
    if ruling.decision != "continue" and (not is_carried_out or is_at_rest):
        return _ENDS[ruling.decision]
    if is_carried_out:
        return "running" if _is_here(state) else "elsewhere"
    return "interrupted" if state.opened else "planned"
