"""Reports of runs as they were last made: one is made at a time, and for all readers."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic

from budgets.plain import one_line
from objectives.keeping import keeping
from orchestrator.serve.entry import LONGEST
from orchestrator.serve.followed import UNREADABLE
from orchestrator.serve.view import digest

MOST_KEPT = 16
"""Reports that stay in memory, some 2 MB each at most."""


@dataclass(frozen=True)
class Built:
    """The inside of a run's <main>, and which stage of the run it is of."""

    html: bytes
    stage: str  # empty: it could not be read, and is tried again

    @property
    def version(self) -> str:
        return digest(self.html)


class Reports:
    """Makes reports by `build`, which is given a directory. Threads may share it.

    Between two of a run are `rest_seconds`: the page's head says meanwhile how it goes on.
    """

    def __init__(
        self,
        build: Callable[[Path], str],
        rest_seconds: float,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._build, self._rest_seconds, self._clock = build, rest_seconds, clock
        self._built: OrderedDict[str, Built] = OrderedDict()
        self._tried: dict[str, float] = {}
        self._pending: dict[str, Event] = {}
        self._lock, self._builder = Lock(), Lock()

    def last(self, id_: str, directory: Path, stage: str) -> Built | None:
        """The run's report as it was last made. If it is behind and rested, a new one is begun."""
        with self._lock:
            built = self._built.get(id_)
            behind = built is None or built.stage != stage
            if behind and id_ not in self._pending and self._is_rested(id_):
                self._pending[id_] = Event()
                Thread(target=self._make, args=(id_, directory, stage), daemon=True).start()
            if built is not None:
                self._built.move_to_end(id_)
            return built

    def wait(self, id_: str, seconds: float) -> Built | None:
        """The last one; if it is being made for the first time, for so long it is waited for."""
        with self._lock:
            built, pending = self._built.get(id_), self._pending.get(id_)
        if built is None and pending is not None:
            pending.wait(seconds)
            with self._lock:
                built = self._built.get(id_)
        return built

    def settle(self, seconds: float) -> None:
        """Wait until nothing is being made, so long for each at most."""
        with self._lock:
            pending = list(self._pending.values())
        for made in pending:
            made.wait(seconds)

    def _is_rested(self, id_: str) -> bool:
        tried = self._tried.get(id_)
        return tried is None or self._clock() - tried >= self._rest_seconds

    def _make(self, id_: str, directory: Path, stage: str) -> None:
        try:
            self._keep(id_, self._made(directory, stage))
        finally:
            with self._lock:
                self._tried[id_] = self._clock()
                self._pending.pop(id_).set()

    def _made(self, directory: Path, stage: str) -> Built:
        with self._builder, keeping(allowed=False):  # in a thread it would be allowed
            try:
                return Built(self._build(directory).encode(), stage)
            except UNREADABLE as error:
                return Built(f"<p>{escape(one_line(str(error), LONGEST))}</p>".encode(), "")

    def _keep(self, id_: str, built: Built) -> None:
        with self._lock:
            self._built[id_] = built
            self._built.move_to_end(id_)
            while len(self._built) > MOST_KEPT:
                forgotten, _ = self._built.popitem(last=False)
                self._tried.pop(forgotten, None)
