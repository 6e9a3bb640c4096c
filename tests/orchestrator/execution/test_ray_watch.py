"""Who is silent, and for how long one waits: with a Ray and a clock made for it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from budgets.events import Status, Withdrawn
from orchestrator.execution import attempts
from orchestrator.execution.attempts import to_json
from orchestrator.execution.evaluate import Attempt, Outcome
from orchestrator.execution.lease import LeaseTerms
from orchestrator.execution.ray_watch import MAX_DEATHS, SlotWatch
from orchestrator.execution.server import EngineError
from orchestrator.execution.slot_actor import Answer, Ready

Make = Callable[..., Attempt]
TERMS = LeaseTerms(renew_seconds=10, suspect_seconds=30, lease_seconds=60, margin_seconds=10)


class DiedError(Exception):
    """As Ray says it of an actor."""


class FailedError(Exception):
    """Whatever else Ray says."""


@dataclass
class FakeActor:
    """Its methods hand out references, which the test answers when it likes."""

    node_id: str
    fenced: tuple[str, ...]
    asked: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        def remote(*arguments: Any) -> tuple[int, str, int]:
            calls = self.asked.setdefault(name, [])
            calls.append(arguments)
            return id(self), name, len(calls)

        return SimpleNamespace(remote=remote)

    def last(self, name: str) -> tuple[int, str, int]:
        return id(self), name, len(self.asked[name])


class FakeRay:
    """Answers that are there, actors that were killed."""

    exceptions = SimpleNamespace(RayActorError=DiedError, RayError=(DiedError, FailedError))

    def __init__(self) -> None:
        self.answers: dict[Any, Any] = {}
        self.actors: list[FakeActor] = []
        self.killed: list[FakeActor] = []
        self.alive = {"n1": True}

    def wait(
        self, references: list[Any], num_returns: int, timeout: float
    ) -> tuple[list[Any], list[Any]]:
        return [one for one in references if one in self.answers], []

    def get(self, reference: Any) -> Any:
        if isinstance(answer := self.answers[reference], Exception):
            raise answer
        return answer

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": node_id, "Alive": alive} for node_id, alive in self.alive.items()]

    def kill(self, actor: FakeActor) -> None:
        self.killed.append(actor)

    def new_actor(self, node_id: str, fenced: tuple[str, ...]) -> FakeActor:
        self.actors.append(FakeActor(node_id, fenced))
        return self.actors[-1]

    def is_ready(self, actor: FakeActor, *withdrawn: Withdrawn) -> None:
        said = Ready(
            node_id="n1",
            host="h1",
            device=f"{[one is actor for one in self.actors].index(True)} on h1",
            niceness=0,
            clock=500.0,
            withdrawn=withdrawn,
        )
        self.answers[actor.last("ready")] = to_json(said)


class Bench:
    """Slots, watched; one unless there shall be more."""

    def __init__(self, slots: int = 1) -> None:
        self.now = 1000.0
        self.ray = FakeRay()
        self.watch = SlotWatch(self.ray, TERMS, slots, self.ray.new_actor, lambda: self.now)
        for actor in self.ray.actors:
            self.ray.is_ready(actor)
        self.look()

    @property
    def actor(self) -> FakeActor:
        return self.ray.actors[-1]

    def look(self, seconds: float = 0.0, step: float = 5.0) -> list[Outcome]:
        """Look now, and every `step` seconds for so long; what arrived."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(self.now + step, end)
            self.watch.look(may_replace=True)
        self.watch.look(may_replace=True)
        arrived, self.watch.arrived = self.watch.arrived, []
        return arrived

    def run(self, attempt: Attempt) -> None:
        self.watch.free()[0].run(attempt)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_slot_is_free_when_it_is_ready_and_renewed_while_it_answers(bench: Bench) -> None:
    assert len(bench.watch.free()) == 1
    for turn in range(10):
        bench.look(10.0)
        assert bench.actor.asked["renew"][-1] == (500.0 + turn,)
        bench.ray.answers[bench.actor.last("renew")] = 501.0 + turn
    assert len(bench.watch.free()) == 1
    assert bench.watch.warnings == ()


def test_a_silent_slot_is_warned_of_once_and_given_up_after_lease_grace_and_margin(
    bench: Bench, make_attempt: Make
) -> None:
    attempt = make_attempt(grace_seconds=5.0)
    bench.run(attempt)
    assert bench.look(74.0) == []
    assert bench.watch.warnings == ("no sign of life from h1 for 30 s",)
    (lost,) = bench.look(2.0)
    assert (lost.status, lost.seconds) == (Status.LOST, attempt.limits.reserve_ms / 1000)
    assert "from h1 for 76 s" in lost.cause
    assert bench.ray.killed == [bench.ray.actors[0]]
    assert bench.actor.fenced == (attempt.attempt_id,)
    assert bench.watch.free() == bench.watch.busy() == []
    bench.ray.is_ready(bench.actor)
    bench.look()
    assert len(bench.watch.free()) == 1


def test_the_late_outcome_of_an_attempt_that_was_given_up_comes_once(
    bench: Bench, make_attempt: Make
) -> None:
    attempt = make_attempt()
    bench.run(attempt)
    bench.look(100.0)
    late = Outcome(attempt_id=attempt.attempt_id, status=Status.OK, seconds=3.0)
    attempts.write_summary(attempt.directory, late)
    assert bench.look() == [late]
    assert bench.look() == []


def test_an_orchestrator_that_slept_gives_its_slots_time_to_answer(
    bench: Bench, make_attempt: Make
) -> None:
    bench.run(make_attempt())
    bench.look(10.0)
    assert bench.look(500.0, step=500.0) == []
    bench.ray.answers[bench.actor.last("renew")] = 900.0
    assert bench.look(9.0) == []
    assert bench.ray.killed == []


def test_a_slot_is_not_free_on_the_strength_of_an_answer_that_grew_old_unseen(
    bench: Bench, make_attempt: Make
) -> None:
    attempt = make_attempt()
    bench.run(attempt)
    bench.look(10.0)
    outcome = Outcome(attempt_id=attempt.attempt_id, status=Status.OK, seconds=3.0)
    bench.ray.answers[bench.actor.last("renew")] = 501.0
    bench.ray.answers[bench.actor.last("run")] = to_json(Answer(outcome=outcome))
    assert bench.look(500.0, step=500.0) == [outcome]
    assert bench.watch.free() == []
    bench.ray.answers[bench.actor.last("renew")] = 1001.0
    bench.look()
    assert len(bench.watch.free()) == 1


def test_an_idle_slot_that_is_silent_is_not_free_and_then_replaced(bench: Bench) -> None:
    bench.look(35.0)
    assert bench.watch.free() == []
    bench.look(40.0)
    assert bench.ray.killed == [bench.ray.actors[0]]
    assert len(bench.ray.actors) == 2


def test_a_dead_actors_attempt_is_buried_on_its_node_before_the_slot_is_free(
    bench: Bench, make_attempt: Make
) -> None:
    attempt = make_attempt()
    bench.run(attempt)
    bench.ray.answers[bench.actor.last("run")] = DiedError()
    assert bench.look() == []
    assert bench.actor.node_id == "n1"
    bench.ray.is_ready(bench.actor)
    bench.look(5.0)
    assert bench.watch.free() == []
    lost = Outcome(attempt_id=attempt.attempt_id, status=Status.LOST, seconds=5.0)
    bench.ray.answers[bench.actor.last("bury")] = to_json(Answer(outcome=lost))
    assert bench.look() == [lost]
    assert len(bench.watch.free()) == 1


def test_a_node_that_is_lost_is_named_once_with_its_slots(make_attempt: Make) -> None:
    bench = Bench(slots=2)
    bench.look(10.0)
    for actor in bench.ray.actors.copy():
        bench.ray.answers[actor.last("renew")] = DiedError()
    bench.look(10.0)
    assert not bench.watch.warnings
    bench.ray.alive["n1"] = False  # Ray itself hears of it later
    bench.look(20.0)
    (warning,) = bench.watch.warnings
    assert "node h1 is lost, with 2 of 2 slots" in warning


def test_an_attempt_that_cannot_be_buried_is_given_up_like_a_silent_one(
    bench: Bench, make_attempt: Make
) -> None:
    """The new actor answers, but a lock held on the frozen node keeps it from an end."""
    attempt = make_attempt(grace_seconds=5.0)
    bench.run(attempt)
    bench.ray.answers[bench.actor.last("run")] = DiedError()
    bench.look()
    bench.ray.is_ready(bench.actor)
    for _ in range(7):
        assert bench.look(10.0) == []
        bench.ray.answers[bench.actor.last("renew")] = 501.0
    (lost,) = bench.look(10.0)
    assert lost.status is Status.LOST
    assert len(bench.ray.actors) == 3


def test_an_orphans_summary_is_taken_although_no_actor_can_be_had(
    bench: Bench, make_attempt: Make
) -> None:
    attempt = make_attempt()
    bench.run(attempt)
    bench.ray.answers[bench.actor.last("run")] = DiedError()
    lost = Outcome(attempt_id=attempt.attempt_id, status=Status.LOST, seconds=5.0)
    attempts.write_summary(attempt.directory, lost)
    assert bench.look() == [lost]
    bench.ray.is_ready(bench.actor)
    bench.look(20.0)
    assert len(bench.watch.free()) == 1
    assert len(bench.ray.actors) == 2


def test_a_device_that_an_answer_withdraws_gets_no_more_work(
    bench: Bench, make_attempt: Make
) -> None:
    attempt = make_attempt()
    bench.run(attempt)
    outcome = Outcome(attempt_id=attempt.attempt_id, status=Status.TIMEOUT, seconds=5.0)
    gone = Withdrawn(device="0 on h1", why="it hangs")
    said = to_json(Answer(outcome=outcome, withdrawn=(gone,)))
    bench.ray.answers[bench.actor.last("run")] = said
    assert bench.look() == [outcome]
    assert bench.watch.withdrawn == (gone,)
    bench.look(500.0)
    assert bench.watch.free() == []
    assert bench.ray.killed == []


def test_an_actor_that_dies_again_and_again_is_the_engines_fault(bench: Bench) -> None:
    bench.look(10.0)
    bench.ray.answers[bench.actor.last("renew")] = DiedError()
    for _ in range(MAX_DEATHS):
        bench.look()
        bench.ray.answers[bench.actor.last("ready")] = DiedError()
    with pytest.raises(EngineError, match="died 4 times"):
        bench.look()


def test_what_shall_avoid_a_device_finds_another_one_or_waits_for_it(make_attempt: Make) -> None:
    bench = Bench(slots=2)
    first, second = bench.watch.slots
    assert bench.watch.free("0 on h1") == [second]
    assert bench.watch.free("elsewhere") == [first, second]
    second.run(make_attempt())
    assert bench.watch.free() == [first]
    assert bench.watch.free("0 on h1") == []  # the other one will be free


def test_the_only_device_is_not_avoided(bench: Bench) -> None:
    assert len(bench.watch.free("0 on h1")) == 1
