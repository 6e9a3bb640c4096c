"""What a watcher notes of a run's records because its state does not keep it."""

from collections import Counter, deque
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from budgets.accounts import Key
from budgets.events import Event, Opened, Reserved, Settled, Status
from budgets.state import Batch, Generation, RunState
from orchestrator.watch.snapshot import Ended
from orchestrator.watch.words import which

MOST_RECENT = 12


@dataclass(frozen=True)
class Tally:
    """What has come of one batch so far."""

    statuses: Counter[Status]  # of evaluations that are over
    lost: int  # attempts after which the evaluation was owed again
    scores: tuple[float, ...]  # of its healthy evaluations


@dataclass
class Noted:
    """Which slot an attempt is in, what ended last, and what is settled once and for all.

    `note` every record once it is applied. A watcher that comes later can begin with any state: it
    only knows less of what was before.
    """

    slots: dict[Key, int] = field(default_factory=dict)  # of attempts in flight
    idle_since: dict[int, datetime] = field(default_factory=dict)  # of slots that were in use
    recent: deque[Ended] = field(default_factory=lambda: deque(maxlen=MOST_RECENT))  # last first
    _closed: dict[tuple[str | None, int], Tally] = field(default_factory=dict)

    def note(self, state: RunState, event: Event, at: datetime) -> None:
        """One record more, which was written at that moment."""
        match event:
            case Reserved():
                self.idle_since.pop(self.slot_of(key_of(event)), None)
            case Settled():
                self._free(self.slots.pop(key_of(event), None), state, at)
                self.recent.appendleft(_ended(state, event))
            case Opened():
                self.idle_since.clear()
            case _:
                pass

    def _free(self, slot: int | None, state: RunState, at: datetime) -> None:
        """An attempt may be reserved before the one that it follows on its device is settled."""
        if slot is None or not state.opened:
            return
        beyond = [key for key, own in self.slots.items() if own >= state.opened[-1].workers]
        if beyond:
            self.slots[min(beyond, key=self.slots.__getitem__)] = slot
        else:
            self.idle_since[slot] = at

    def slot_of(self, key: Key) -> int:
        """Of an attempt in flight: the lowest that was free when it was first asked for."""
        if key not in self.slots:
            self.slots[key] = lowest_free(self.slots.values())
        return self.slots[key]

    def tally(self, batch: Batch) -> Tally:
        """What has come of the batch; of one that is over it is counted once."""
        key = (batch.panel, batch.number)
        if (known := self._closed.get(key)) is not None:
            return known
        found = _tally(batch)
        if batch.told is not None if isinstance(batch, Generation) else batch.closed:
            self._closed[key] = found
        return found


def key_of(event: Reserved | Settled) -> Key:
    """As the accounts know the evaluation."""
    return (event.panel, event.generation, event.candidate, event.seed)


def lowest_free(taken: Collection[int]) -> int:
    """The lowest number from 0 that is not among those."""
    return next(number for number in count() if number not in taken)


def _tally(batch: Batch) -> Tally:
    ends = [t.settled for tries in batch.tries.values() for t in tries if t.settled is not None]
    final = [end for end in ends if end.final]
    return Tally(
        statuses=Counter(end.status for end in final),
        lost=len(ends) - len(final),
        scores=tuple(end.score for end in final if end.score is not None),
    )


def _ended(state: RunState, event: Settled) -> Ended:
    return Ended(
        what=which(state, event),
        status=event.status,
        score=event.score,
        seconds=event.seconds,
        device=event.device,
        cause=event.cause,
        is_again=not event.final,
        is_recovered=event.recovered,
    )
