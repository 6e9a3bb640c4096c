"""What a watcher notes of a run's records because its state does not keep it."""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush

from budgets.accounts import Key
from budgets.events import Event, Opened, Reserved, Settled, Status
from budgets.state import Batch, Generation, RunState
from orchestrator.watch.snapshot import GenerationScores

MOST_RECENT = 12


@dataclass(frozen=True)
class Tally:
    """What has come of one batch so far."""

    statuses: Counter[Status]  # of evaluations that are over
    lost: int  # attempts after which the evaluation was owed again
    scores: tuple[float, ...]  # of its healthy evaluations
    best: float | None


@dataclass
class Noted:
    """Which slot an attempt is in, what ended last, and what is settled once and for all.

    `note` every record once it is applied. A watcher that comes later can begin with any state: it
    only knows less of what was before.
    """

    slots: dict[Key, int] = field(default_factory=dict)  # of attempts in flight
    idle_since: dict[int, datetime] = field(default_factory=dict)  # of slots that were in use
    recent: deque[Settled] = field(default_factory=lambda: deque(maxlen=MOST_RECENT))  # last first
    _free: list[int] = field(default_factory=list)  # slots that were used, a heap
    _closed: dict[tuple[str | None, int], Tally] = field(default_factory=dict)
    _scored: dict[int, GenerationScores] = field(default_factory=dict)

    def note(self, state: RunState, event: Event, at: datetime) -> None:
        """One record more, which was written at that moment."""
        match event:
            case Reserved():
                self.idle_since.pop(self.slot_of(event.key), None)
            case Settled():
                if (slot := self.slots.pop(event.key, None)) is not None:
                    self._leave(slot, state, at)
                self.recent.appendleft(event)
            case Opened():
                self.idle_since.clear()
            case _:
                pass

    def slot_of(self, key: Key) -> int:
        """Of an attempt in flight: the lowest that was free when it was first asked for."""
        if key not in self.slots:
            known = len(self.slots) + len(self._free)
            self.slots[key] = heappop(self._free) if self._free else known
        return self.slots[key]

    def _leave(self, slot: int, state: RunState, at: datetime) -> None:
        """An attempt may be reserved before the one that it follows on its device is settled."""
        workers, beyond = state.opened[-1].workers, list[Key]()
        if slot < workers <= len(self.slots):
            beyond = [key for key, own in self.slots.items() if own >= workers]
        if beyond:
            first = min(beyond, key=self.slots.__getitem__)
            slot, self.slots[first] = self.slots[first], slot
        elif slot < workers:
            self.idle_since[slot] = at
        heappush(self._free, slot)

    def tally(self, batch: Batch) -> Tally:
        """What has come of the batch; of one that is over it is counted once."""
        key = (batch.panel, batch.number)
        if (known := self._closed.get(key)) is not None:
            return known
        found = _tally(batch)
        if batch.told is not None if isinstance(batch, Generation) else batch.closed:
            self._closed[key] = found
        return found

    def scored(
        self, generation: Generation, score: Callable[[Generation, Tally], GenerationScores]
    ) -> GenerationScores:
        """The generation's scores; of one that is told they are made once."""
        if (known := self._scored.get(generation.number)) is not None:
            return known
        found = score(generation, self.tally(generation))
        if found.is_told:
            self._scored[generation.number] = found
        return found


def _tally(batch: Batch) -> Tally:
    ends = list(batch.ends())
    final = [end for end in ends if end.final]
    scores = tuple(end.score for end in final if end.score is not None)
    return Tally(
        statuses=Counter(end.status for end in final),
        lost=len(ends) - len(final),
        scores=scores,
        best=min(scores, default=None),
    )
