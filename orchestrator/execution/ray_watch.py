"""The slots of a cluster, kept at work: answers taken in, leases renewed, the silent given up.

Ray itself is handed in: nothing here imports it.
"""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from budgets.events import Withdrawn
from orchestrator.execution.attempts import read_summary
from orchestrator.execution.evaluate import Attempt, Outcome
from orchestrator.execution.lease import LeaseTerms
from orchestrator.execution.ray_slots import RaySlot
from orchestrator.execution.server import EngineError
from orchestrator.execution.slot_actor import Answer, Ready

MAX_DEATHS = 3  # of one slot's actor in a row
ASK_SECONDS = 2.0  # between questions about nodes that may be lost
LATE_SECONDS = 3600.0  # how long what was given up is looked for; a later session looks once more


class SlotWatch:
    """Slots and what comes from them; `look` brings everything up to date.

    `new_actor` starts an actor, on the node of that name if it is not empty and alive, which
    first ends what is left there of the attempts named.
    """

    def __init__(
        self,
        ray: Any,
        terms: LeaseTerms,
        count: int,
        new_actor: Callable[[str, tuple[str, ...]], Any],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.arrived: list[Outcome] = []
        self.warnings: tuple[str, ...] = ()
        self.withdrawn: tuple[Withdrawn, ...] = ()
        self._ray = ray
        self._terms = terms
        self._new_actor = new_actor
        self._clock = clock
        self._died_on: dict[str, tuple[str, int]] = {}  # node id: host, how many of its actors
        self._asked_at = -math.inf  # Ray, for its nodes
        # Given up unheard, and when; their outcomes may still follow.
        self._late: dict[str, tuple[Attempt, float]] = {}
        self._here: set[Any] = set()  # references whose answers have come
        self._looked_at = self._patient_until = -math.inf
        self.slots = [self._new_slot() for _ in range(count)]

    def _new_slot(self) -> RaySlot:
        actor = self._new_actor("", ())
        return RaySlot(self._terms, self._clock, actor, self._clock(), actor.ready.remote())

    def free(self, avoid: str = "") -> list[RaySlot]:
        """Slots for an attempt that shall avoid a device: others, unless nothing runs there."""
        free = [slot for slot in self.slots if slot.is_free()]
        others = [slot for slot in free if not slot.is_on(avoid)]
        are_coming = any(not slot.is_on(avoid) for slot in self.busy())
        return others if others or are_coming else free

    def busy(self) -> list[RaySlot]:
        return [slot for slot in self.slots if slot.attempt is not None]

    def sleep(self, seconds: float) -> None:
        """Until an answer of any slot arrives, or so long."""
        if references := self._references():
            self._ray.wait(references, num_returns=1, timeout=seconds)
        else:
            time.sleep(seconds)

    def _references(self) -> list[Any]:
        """To every answer that is waited for."""
        asked = (r for slot in self.slots for r in (slot.ready, slot.renewal, slot.answer))
        return [reference for reference in asked if reference is not None]

    def look(self, *, may_replace: bool) -> None:
        """Take in what has arrived, renew leases, give up who is silent. Never waits for a slot."""
        now = self._clock()
        if now - self._looked_at > self._terms.margin_seconds:  # who was silent: they, or we?
            self._patient_until = now + self._terms.margin_seconds
        self._looked_at = now
        if references := self._references():  # one call for all: each takes its time
            self._here = set(self._ray.wait(references, num_returns=len(references), timeout=0)[0])
        for slot in self.slots:
            self._take_in(slot, may_replace=may_replace)
            slot.renew_if_due()
            if slot.silence() > self._terms.suspect_seconds:
                self._suspect(slot)
            if may_replace and slot.is_lost() and now > self._patient_until:
                self._fence(slot)
        self._take_in_files()
        if may_replace:
            self._name_lost_nodes(now)

    def _take_in(self, slot: RaySlot, *, may_replace: bool) -> None:
        """Whatever the slot's actor has answered by now."""
        try:
            if (said := self._value(slot.ready)) is not None:
                self.greet(slot, Ready.model_validate_json(said))
            if (clock := self._value(slot.renewal)) is not None:
                slot.renewal = None
                slot.heard(clock, slot.renewed_at)
            if (said := self._value(slot.answer)) is not None:
                self._collect(slot, Answer.model_validate_json(said))
        except self._ray.exceptions.RayActorError as error:
            slot.orphaned()
            if may_replace:
                self._replace(slot, error)
        except self._ray.exceptions.RayError as error:
            raise EngineError(f"a slot failed: {error}") from error

    def greet(self, slot: RaySlot, place: Ready) -> None:
        slot.greeted(place)
        self._died_on.pop(place.node_id, None)
        self.withdrawn += place.withdrawn

    def _collect(self, slot: RaySlot, answer: Answer) -> None:
        self.arrived.append(answer.outcome)
        self.withdrawn += answer.withdrawn
        slot.is_withdrawn = bool(answer.withdrawn)
        slot.answered()

    def _suspect(self, slot: RaySlot) -> None:
        if not slot.is_suspect and slot.place is not None and not slot.is_withdrawn:
            slot.is_suspect = True
            seconds = self._terms.suspect_seconds
            self.warnings += (f"no sign of life from {slot.host} for {seconds:g} s",)

    def _fence(self, slot: RaySlot) -> None:
        """Give up the attempt of a silent slot, and ask for a device anywhere in the cluster."""
        if (lost := slot.lose()) is not None:
            attempt, outcome = lost
            self._late[attempt.attempt_id] = attempt, self._clock()
            self.arrived.append(outcome)
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(slot.actor)
        slot.asked(self._new_actor("", tuple(self._late)))

    def _take_in_files(self) -> None:
        """What attempts without an actor have come to, by their files on the shared storage."""
        for slot in self.slots:
            if slot.is_orphan and slot.attempt and (outcome := _summary(slot.attempt)):
                self.arrived.append(outcome)
                slot.answered()
        for attempt, since in list(self._late.values()):
            if outcome := _summary(attempt):
                self.arrived.append(outcome)
            if outcome or self._clock() - since > LATE_SECONDS:
                del self._late[attempt.attempt_id]

    def _replace(self, slot: RaySlot, error: Exception) -> None:
        """A fresh actor, on the same node if that lives, first sees the dead one's tree gone."""
        slot.deaths += 1
        if slot.deaths > MAX_DEATHS:
            raise EngineError(f"the actor of a slot died {slot.deaths} times: {error}") from error
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(slot.actor)
        node_id = slot.place.node_id if slot.place else ""
        if slot.place:
            self._died_on[node_id] = slot.host, self._died_on.get(node_id, ("", 0))[1] + 1
        slot.asked(self._new_actor(node_id, tuple(self._late)))
        slot.bury()

    def _name_lost_nodes(self, now: float) -> None:
        """Warn of a node where actors died, once Ray has given it up too, which it does later."""
        if not self._died_on or now - self._asked_at < ASK_SECONDS:
            return
        self._asked_at = now
        try:
            dead = {node["NodeID"] for node in self._ray.nodes() if not node["Alive"]}
        except (self._ray.exceptions.RayError, RuntimeError):
            return  # asked again
        for node_id in dead & self._died_on.keys():
            host, slots = self._died_on.pop(node_id)
            self.warnings += (
                f"node {host} is lost, with {slots} of {len(self.slots)} slots; they go on "
                f"elsewhere if the cluster has room (ray status)",
            )

    def _value(self, reference: Any) -> Any:
        """The value behind Ray's reference if it is there by now; None if not, or without one.

        Raises Ray's error if that is what came.
        """
        if reference is None or reference not in self._here:
            return None
        return self._ray.get(reference)


def _summary(attempt: Attempt) -> Outcome | None:
    return read_summary(attempt.directory, attempt.attempt_id)
