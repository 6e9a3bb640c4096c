"""Runs on disk: found, read and followed without disturbing the process that carries them out."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from pathlib import Path

from budgets.ledger import LEDGER, Reader, Record
from budgets.plan import Phase
from budgets.rules import Ruling, ruling_of
from budgets.state import RunState, apply, begin, fold

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
    the ledger is damaged or has lost records.
    """
    path = directory / LEDGER
    if not is_there(path):
        return None
    records = iter(Reader(path))
    first = next(records, None)
    return None if first is None else fold(chain([first], records))


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
            if self.state is None:
                self.state = begin(record)
            else:
                apply(self.state, record)
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
        self.generation = generation
