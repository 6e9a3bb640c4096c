"""One slot of a cluster, as the orchestrator sees it: its actor, its attempt, its signs of life."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from budgets.events import Status
from orchestrator.execution.attempts import to_json
from orchestrator.execution.evaluate import Attempt, Outcome
from orchestrator.execution.lease import LeaseTerms
from orchestrator.execution.slot_actor import Ready


@dataclass
class RaySlot:
    """References are Ray's, to answers that have not come yet."""

    terms: LeaseTerms
    clock: Callable[[], float]
    actor: Any
    asked_at: float  # when the actor was asked for
    ready: Any  # reference to `Ready`, until it has come
    place: Ready | None = None  # of the actor, once it is ready
    host: str = "its node"  # of the actor that was given the attempt
    is_withdrawn: bool = False
    deaths: int = 0  # of its actors, one after another
    # The attempt in flight, which the actor runs, or buries when it is an orphan.
    attempt: Attempt | None = None
    submitted_at: float = 0.0
    answer: Any = None
    is_orphan: bool = False  # the actor that ran the attempt has died
    orphan_heard_at: float = 0.0  # when that actor was heard of last
    # Signs of life of the actor. While we sleep, answers may come and grow old unseen.
    renewal: Any = None  # reference to the actor's clock, while a renewal is under way
    renewed_at: float = 0.0  # when that was asked for
    heard_at: float = 0.0  # when an answer was seen last
    heard_clock: float = 0.0  # the actor's clock in that answer
    fresh_at: float = 0.0  # when that answer was asked for: the actor's clock is no older
    is_suspect: bool = False

    def asked(self, actor: Any) -> None:
        """Another actor takes the slot over."""
        self.actor, self.asked_at, self.ready = actor, self.clock(), actor.ready.remote()
        self.place, self.renewal = None, None

    def greeted(self, place: Ready) -> None:
        """The actor is ready."""
        self.place, self.ready, self.is_withdrawn = place, None, bool(place.withdrawn)
        if not self.is_orphan:
            self.host = place.host
        self.heard(place.clock, self.asked_at)

    def heard(self, clock: float, asked_at: float) -> None:
        """The actor has answered, with its clock, what it was asked then."""
        self.heard_at, self.heard_clock, self.fresh_at = self.clock(), clock, asked_at
        self.is_suspect = self.is_suspect and self.is_orphan

    def renew_if_due(self) -> None:
        """Ask for a sign of life and give one, without waiting for the answer."""
        due = self.clock() - self.renewed_at >= self.terms.renew_seconds
        if self.place is not None and self.renewal is None and due:
            self.renewed_at = self.clock()
            self.renewal = self.actor.renew.remote(self.heard_clock)

    def is_idle(self) -> bool:
        """Ready, without an attempt, not withdrawn."""
        return self.place is not None and self.attempt is None and not self.is_withdrawn

    def is_free(self) -> bool:
        """The same, and heard of lately."""
        return self.is_idle() and self.clock() - self.fresh_at < self.terms.suspect_seconds

    def is_on(self, device: str) -> bool:
        """Whether it is known to be the device of that name."""
        return self.place is not None and self.place.device == device

    def silence(self) -> float:
        """Since a sign of life from the actor, or from the one that ran its orphan."""
        return self.clock() - (self.orphan_heard_at if self.is_orphan else self.heard_at)

    def is_lost(self) -> bool:
        """So long unheard that whatever it ran has ended with its lease, if it is not frozen."""
        if self.is_withdrawn or (self.place is None and self.attempt is None):
            return False
        grace = self.attempt.limits.grace_seconds if self.attempt else 0.0
        return self.silence() > self.terms.lease_seconds + grace + self.terms.margin_seconds

    def run(self, attempt: Attempt) -> None:
        self.attempt, self.submitted_at = attempt, self.clock()
        self.answer = self.actor.run.remote(to_json(attempt), self.heard_clock)

    def orphaned(self) -> None:
        """The actor has died."""
        self.ready = self.renewal = self.answer = None
        if self.attempt is not None and not self.is_orphan:
            self.is_orphan, self.orphan_heard_at = True, self.heard_at

    def bury(self) -> None:
        """Have the new actor end what the dead one left, if it left anything."""
        if self.attempt is not None:
            seconds = self.clock() - self.submitted_at
            self.answer = self.actor.bury.remote(to_json(self.attempt), seconds)

    def answered(self) -> None:
        self.attempt, self.answer, self.deaths, self.is_orphan = None, None, 0, False

    def lose(self) -> tuple[Attempt, Outcome] | None:
        """Give up the attempt, if there is one, at the price of its whole reservation."""
        lost = self.attempt
        cause = (
            f"no sign of life from {self.host} for {self.silence():.0f} s: its lease has run out, "
            f"and what it took is not known"
        )
        self.attempt, self.answer, self.is_orphan = None, None, False
        if lost is None:
            return None
        seconds = lost.limits.reserve_ms / 1000
        return lost, Outcome(
            attempt_id=lost.attempt_id, status=Status.LOST, cause=cause, seconds=seconds
        )
