"""What a run's records say of its throughput: who was in flight while an evaluation ran."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from budgets.events import Event, Key, Opened, Reserved, Settled, Status
from budgets.state import RunState
from orchestrator.capacity.windows import Observation


@dataclass(frozen=True, slots=True)
class _Begun:
    at_ms: float
    flown_ms: float  # by all together until then


@dataclass
class Gauge:
    """Follows records in their order, from the first one on.

    Times are the ledger's: how long the run was open, over all its sessions.
    """

    in_flight: int = 0
    _now_ms: float = 0.0
    _flown_ms: float = 0.0  # by all evaluations of this session together
    _begun: dict[Key, _Begun] = field(default_factory=dict)

    def follow(self, state: RunState, event: Event) -> Observation | None:
        """After the state took in the event: an evaluation that ended well, if it is one's end.

        One that this session did not begin, or that did not end well, says nothing of throughput.
        """
        self._advance(state.accounts.wall_ms)
        match event:
            case Opened():
                self._begun, self.in_flight = {}, 0
            case Reserved():
                self._begun[event.key] = _Begun(self._now_ms, self._flown_ms)
                self.in_flight = len(self._begun)
            case Settled():
                begun = self._begun.pop(event.key, None)
                self.in_flight = len(self._begun)
                if begun is not None and event.status is Status.OK and not event.recovered:
                    return self._observation(state, event, begun)
            case _:
                pass
        return None

    def _advance(self, now_ms: float) -> None:
        self._flown_ms += self.in_flight * (now_ms - self._now_ms)
        self._now_ms = now_ms

    def _observation(self, state: RunState, event: Settled, begun: _Begun) -> Observation | None:
        lasted_ms = self._now_ms - begun.at_ms
        if lasted_ms <= 0:  # too quick to be timed
            return None
        return Observation(
            began_ms=begun.at_ms,
            ended_ms=self._now_ms,
            workers=(self._flown_ms - begun.flown_ms) / lasted_ms,
            length=state.batch(event).length(event.candidate),
        )


def row(
    event: Settled, seen: Observation | None, signals: Mapping[str, object]
) -> dict[str, object]:
    """One line of `backpressure.jsonl`: which attempt was settled, and what is decided then."""
    return {
        "panel": event.panel,
        "generation": event.generation,
        "candidate": event.candidate,
        "seed": event.seed,
        "attempt": event.attempt,
        "status": event.status,
        "seconds": None if seen is None else seen.seconds,  # from reservation to settlement
        "workers": None if seen is None else seen.workers,  # in flight meanwhile, on average
        **signals,
    }
