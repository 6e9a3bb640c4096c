"""What a ledger means, and which events cannot follow which."""

import math
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from budgets.accounts import MS_PER_HOUR
from budgets.events import (
    Amended,
    Concluded,
    Event,
    GenerationAsked,
    GenerationTold,
    Overridden,
    Planned,
    Reserved,
    Settled,
    Status,
)
from budgets.ledger import read
from budgets.plan import Caps, Envelope, Window
from budgets.state import Attempt, Batch, ImpossibleEventError, apply, begin, fold, ticked
from tests.budgets.conftest import small_plan
from tests.ledgers import closed_batch

if TYPE_CHECKING:
    from tests.budgets.conftest import Disk, MakeStory, Story

DONE = Concluded()


def shape(population: int, seeds: int = 1) -> Envelope:
    return Envelope(population=population, generations=2, seeds_per_candidate=seeds)


def identity(reservation: Reserved) -> dict[str, Any]:
    names = ("generation", "candidate", "seed", "attempt")
    return {name: getattr(reservation, name) for name in names}


def settlement(reservation: Reserved, status: Status = Status.OK, **fields: Any) -> Settled:
    values = {
        **identity(reservation),
        "status": status,
        "score": 1.0 if status is Status.OK else None,
        "charged_ms": 2000,
        "seconds": 2.0,
        **fields,
    }
    return Settled(**values)


def test_a_whole_run_adds_up(disk: "Disk", whole: list[Event]) -> None:
    state = fold(read(disk.write(whole)).records)
    first, second = state.generations

    assert (len(state.opened), state.finished, state.completed) == (2, 2, [first, second])
    assert state.current is None
    assert state.running_attempts() == []
    assert first.scores() == [1.25, None, 0.5, None]
    assert [r.status for r in first.failed] == [Status.NAN, Status.OOM]
    assert [t.settled and t.settled.status for t in first.attempts[2, 5]] == [
        Status.LOST,
        Status.OK,
    ]
    assert [t.session for t in first.attempts[2, 5]] == [0, 1]
    assert second.scores() == [0.75, 0.5, 0.25, 1.0]
    assert [f.rule for f in state.fired] == [o.rule for o in state.overridden] == ["crash_rate"]
    assert state.concluded is not None

    accounts = state.accounts
    assert (accounts.evaluations, accounts.device_ms, accounts.lost_ms) == (8, 28_000, 12_000)
    assert accounts.reserved_ms == 0


def test_a_ledger_begins_with_its_plan(story: "Story") -> None:
    with pytest.raises(ImpossibleEventError, match=r"record 1 at byte 100 \(opened\)"):
        begin(story.records[1])
    with pytest.raises(ImpossibleEventError, match="begins with its plan"):
        fold(story.records[1:])


def test_a_ledger_without_a_record_is_no_run() -> None:
    with pytest.raises(ValueError, match="holds no whole record yet: begin the run"):
        fold([])


@pytest.mark.parametrize("caps", [Caps(evaluations=8), Caps(evaluations=8, window=Window(hours=9))])
def test_the_accounts_of_a_moment_are_those_that_a_record_of_it_finds(
    make_story: "MakeStory", caps: Caps
) -> None:
    story = make_story(caps=caps)
    note = Overridden(rule="crash_rate", generation=0, reason="a record that changes nothing")
    record = story.records[1]._replace(
        seq=2, at="2030-01-01T00:00:07.000+00:00", elapsed_ms=7000, event=note
    )
    before = ticked(story.state.accounts, record)
    assert before != story.state.accounts
    apply(story.state, record)
    assert story.state.accounts == before


def test_a_generation_in_progress_knows_what_it_owes(story: "Story") -> None:
    story.ask()
    assert story.current.pending == [(0, 5), (1, 5), (2, 5), (3, 5)]
    first, second = story.reserve(0), story.reserve(2)
    assert story.current.pending == [(1, 5), (3, 5)]
    assert story.state.running_attempts() == [Attempt(0, first), Attempt(0, second)]
    story.say(settlement(second, Status.LOST), settlement(first, Status.TIMEOUT))
    assert story.current.pending == [(1, 5), (2, 5), (3, 5)]
    assert not story.current.closed
    assert story.state.running_attempts() == []


@pytest.mark.parametrize("status", Status)
def test_only_a_lost_or_cancelled_evaluation_is_owed_again(story: "Story", status: Status) -> None:
    story.ask()
    story.say(settlement(story.reserve(0), status))
    again = status in (Status.LOST, Status.CANCELLED)
    assert ((0, 5) in story.current.pending) == again
    assert (story.current.result(0, 5) is None) == again
    assert story.state.accounts.evaluations == (0 if again else 1)
    assert len(story.current.failed) == (not again and status is not Status.OK)


def test_a_calibration_is_finished_when_it_is_evaluated(
    make_story: "MakeStory",
) -> None:
    envelope = Envelope(population=1, generations=1, seeds_per_candidate=2)
    story = make_story(
        phase="calibration", tier=None, resolved=envelope, search=None, calibration=None
    )
    story.ask(seeds=(1, 2))
    story.evaluate(0, seed=1)
    assert story.state.finished == 0
    story.evaluate(0, seed=2)
    assert story.state.finished == 1


def test_a_search_is_finished_with_a_generation_when_it_was_told(story: "Story") -> None:
    story.score(1.0, 2.0, 3.0, 4.0)
    assert story.state.finished == 0
    assert story.state.current is not None
    story.tell()
    assert story.state.finished == 1
    assert story.state.current is None


def test_the_clock_of_a_record_counts_before_its_event(make_story: "MakeStory") -> None:
    story = make_story(caps=Caps(evaluations=8, hours=15_000 / MS_PER_HOUR))
    story.ask()
    story.elapsed_ms = 3000
    story.reserve(0)
    assert story.state.accounts.committed_wall_ms == 15_000
    story.elapsed_ms = 3001
    with pytest.raises(ImpossibleEventError, match="beyond the cap on wall clock"):
        story.reserve(1)


def test_an_attempt_lost_with_its_session_extends_that_session(story: "Story") -> None:
    story.ask()
    story.elapsed_ms = 500
    reservation = story.reserve(0)
    story.open()
    story.elapsed_ms = 40
    story.say(settlement(reservation, Status.LOST, charged_ms=12_000, recovered=True))
    assert story.state.accounts.sessions_ms == (12_500, 40)


# What cannot follow what. Each case says what came before, the impossible event, and why.


def two_in_flight(story: "Story") -> Reserved:
    """Candidate 0 is in flight in its second attempt, candidate 1 is done, 2 and 3 are owed."""
    story.ask()
    story.say(settlement(story.reserve(0), Status.LOST))
    story.evaluate(1)
    return story.reserve(0)


RESERVATION = Reserved(generation=0, candidate=2, seed=5, attempt=1, reserve_ms=12_000)
ASKED = GenerationAsked(generation=1, points=((0.0,),), seeds=(5,))
TOLD = GenerationTold(generation=0, digest="d", mean=(0.5,), sigma=0.1, axis_ratio=1.0)


CAPS = Caps(evaluations=8, device_hours=1.0, window=Window(hours=9))


def reservation(**fields: Any) -> Reserved:
    return replace(RESERVATION, **fields)


def amended(**caps: float) -> Amended:
    return Amended(caps=CAPS.model_copy(update=caps), generations=2, reason="so")


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (settlement(reservation()), r"attempt 1 of \(2, 5\) is not running"),
        (settlement(reservation(candidate=1)), r"attempt 1 of \(1, 5\) is not running"),
        (settlement(reservation(candidate=0)), r"attempt 1 of \(0, 5\) is not running"),
        (settlement(reservation(candidate=0, attempt=3)), r"attempt 3 of \(0, 5\) is not running"),
        (settlement(reservation(candidate=0, attempt=2, seed=6)), r"\(0, 6\) is not running"),
        (settlement(reservation(candidate=0, attempt=2, generation=1)), "generation 1 is not the"),
        (settlement(reservation(candidate=0, attempt=2), Status.NAN, score=1.0), "nan with score"),
        (settlement(reservation(candidate=0, attempt=2), score=None), "ok with score None"),
        (
            replace(settlement(reservation(candidate=0, attempt=2)), retry=True),
            "ok is not a",
        ),
        (reservation(attempt=2), "expected attempt 1, got 2"),
        (reservation(candidate=0, attempt=2), "expected attempt 3, got 2"),
        (reservation(candidate=0, attempt=3), r"\(None, 0, 0, 5\) already holds a reservation"),
        (reservation(candidate=1, attempt=2), "candidate 1, seed 5 is already paid for"),
        (reservation(candidate=4), "candidate 4, seed 5 was never asked for"),
        (reservation(candidate=-1), "candidate -1, seed 5 was never asked for"),
        (reservation(seed=6), "candidate 2, seed 6 was never asked for"),
        (reservation(generation=1), "generation 1 is not the one in progress"),
        (reservation(reserve_ms=10**9), "beyond the cap on device time"),
        (TOLD, "told before every evaluation is settled"),
        (replace(TOLD, generation=1), "generation 1 is not the one in progress"),
        (ASKED, "generation 0 is not told yet"),
        (replace(ASKED, generation=2), "generation 0 is not told yet"),
        (Planned(plan=small_plan()), "a run has one plan"),
        (amended(evaluations=1), "1 evaluation cannot pay for 2 generations"),
        (amended(device_hours=0.001), "more device time is spent or reserved"),
        (amended(cost=1.0), "the run began without a price"),
        (DONE, "attempts are still running"),
    ],
)
def test_an_event_that_cannot_follow_is_refused_by_record_and_changes_nothing(
    make_story: "MakeStory", event: Event, why: str
) -> None:
    story = make_story(caps=CAPS)
    two_in_flight(story)
    before, number = deepcopy(story.state), len(story.records)
    story.elapsed_ms = 1234  # time that a refused record shows is forgotten with it
    with pytest.raises(ImpossibleEventError, match=why) as refusal:
        story.say(event)
    place = f"record {number} at byte {100 * number} ({event.kind}) cannot follow"
    assert str(refusal.value).startswith(place)
    assert refusal.value.record.event == event
    assert story.state == before


# Fitness


def ranks(generation: Batch) -> list[int]:
    fitness = generation.fitness()
    return sorted(range(len(fitness)), key=fitness.__getitem__)


outcomes = st.lists(
    st.floats(-1e100, 1e100) | st.sampled_from([Status.NAN, Status.OOM, Status.ERROR]),
    min_size=2,
    max_size=24,
).filter(lambda drawn: any(not isinstance(o, Status) for o in drawn))


def generation_of(drawn: list[Any]) -> Batch:
    ends = []
    for candidate, outcome in enumerate(drawn):
        status = outcome if isinstance(outcome, Status) else Status.OK
        score = None if isinstance(outcome, Status) else outcome
        held = reservation(candidate=candidate)
        ends.append(settlement(held, status, score=score))
    return closed_batch(0, [(0.5,) for _ in drawn], ends)


@given(outcomes)
def test_fitness_is_finite_and_never_ties_a_failure_with_a_healthy_candidate(
    drawn: list[Any],
) -> None:
    generation = generation_of(drawn)
    fitness = generation.fitness()
    assert all(math.isfinite(f) for f in fitness)
    failed = [f for f, o in zip(fitness, drawn, strict=True) if isinstance(o, Status)]
    healthy = [f for f, o in zip(fitness, drawn, strict=True) if not isinstance(o, Status)]
    assert healthy == [o for o in drawn if not isinstance(o, Status)]
    assert failed == sorted(set(failed))
    assert not failed or failed[0] > max(healthy)


def test_several_seeds_are_averaged(make_story: "MakeStory") -> None:
    story = make_story(resolved=shape(2, seeds=3), caps=Caps(evaluations=12))
    story.ask(seeds=(1, 2, 3), candidates=2)
    for seed, score in ((1, 1.0), (2, 2.0), (3, 6.0)):
        story.evaluate(0, score, seed=seed)
        story.evaluate(1, 2 * score, seed=seed)
    assert story.current.scores() == [3.0, 6.0]
    assert story.current.fitness() == [3.0, 6.0]


def test_one_failed_seed_fails_the_candidate(make_story: "MakeStory") -> None:
    story = make_story(resolved=shape(2, seeds=2), caps=Caps(evaluations=8))
    story.ask(seeds=(1, 2), candidates=2)
    story.evaluate(0, 0.1, seed=1)
    assert story.current.score(0) is None  # half measured is not measured
    story.evaluate(0, Status.NAN, seed=2)
    story.evaluate(1, 5.0, seed=1)
    story.evaluate(1, 7.0, seed=2)
    assert story.current.scores() == [None, 6.0]
    assert ranks(story.current) == [1, 0]


def test_without_a_healthy_candidate_their_order_is_the_fitness(story: "Story") -> None:
    assert ranks(story.score(Status.OOM, Status.OOM, Status.NAN, Status.ERROR)) == [0, 1, 2, 3]


# Any interleaving


class AnyInterleaving(RuleBasedStateMachine):
    """Dispatches, results, losses, crashes and resumes over two small generations."""

    make_story: "MakeStory"

    @initialize(
        device_ms=st.none() | st.integers(12_000, 150_000),
        wall_ms=st.none() | st.integers(12_000, 60_000),
    )
    def begin(self, device_ms: int | None, wall_ms: int | None) -> None:
        self.caps = Caps(
            evaluations=12,
            device_hours=None if device_ms is None else device_ms / MS_PER_HOUR,
            hours=None if wall_ms is None else wall_ms / MS_PER_HOUR,
        )
        envelope = Envelope(population=3, generations=2, seeds_per_candidate=2)
        self.story = self.make_story(caps=self.caps, resolved=envelope)
        self.finals: dict[tuple[int, int, int], Settled] = {}

    @property
    def open(self) -> list[Attempt]:
        return self.story.state.running_attempts()

    @rule()
    def ask_or_tell(self) -> None:
        state = self.story.state
        if state.current is None and len(state.generations) < 2:
            self.story.ask(seeds=(11, 7))
        elif state.current is not None and state.current.closed:
            self.story.tell()

    @precondition(lambda self: self.story.state.current is not None)
    @rule()
    def dispatch(self) -> None:
        state, owed = self.story.state, self.story.current.pending
        reserve_ms = state.plan.limits.reserve_ms
        accounts = state.accounts.tick(self.story.elapsed_ms)
        if owed and len(self.open) < 2 and accounts.refusal(reserve_ms) is None:
            assert (self.story.current.number, *owed[0]) not in self.finals
            self.story.reserve(*owed[0])

    def settle(self, attempt: Attempt, status: Status, charged_ms: int) -> None:
        event = settlement(attempt.reserved, status, charged_ms=charged_ms)
        if status.final:
            key = (event.generation, event.candidate, event.seed)
            assert key not in self.finals
            self.finals[key] = event
        self.story.say(event)

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 1), status=st.sampled_from(Status), ms=st.integers(0, 12_000))
    def hear(self, which: int, status: Status, ms: int) -> None:
        """One attempt in flight ends, however it does."""
        attempt = self.open[which % len(self.open)]
        self.settle(attempt, status, ms)

    @rule(ms=st.integers(1, 3000))
    def wait(self, ms: int) -> None:
        """Time passes only for attempts in flight, and never past their reservations."""
        holds = self.story.state.accounts.holds.values()
        ends = [hold.since_ms + hold.reserve_ms for hold in holds]
        if ends:
            self.story.elapsed_ms = min(self.story.elapsed_ms + ms, *ends)

    @rule(adopted=st.lists(st.booleans(), min_size=2, max_size=2))
    def crash_and_resume(self, adopted: list[bool]) -> None:
        assert fold(self.story.records) == self.story.state
        self.story.state = fold(self.story.records)
        self.story.open()
        for attempt, finished in zip(self.open, adopted, strict=False):
            status = Status.OK if finished else Status.LOST
            self.settle(attempt, status, 2000 if finished else 12_000)

    @invariant()
    def every_evaluation_has_one_final_result_at_most(self) -> None:
        state = self.story.state
        told = {(g.number, r.candidate, r.seed): r for g in state.generations for r in g.results()}
        assert told == self.finals
        assert state.accounts.evaluations == len(self.finals)
        for generation in state.generations:
            order = [(r.candidate, r.seed) for r in generation.results()]
            assert order == sorted(order, key=lambda key: (key[0], (11, 7).index(key[1])))
            assert generation.closed == (len(order) == 6)
            assert generation.told is None or generation.closed

    @invariant()
    def spent_and_reserved_stay_within_every_cap(self) -> None:
        accounts, caps = self.story.state.accounts, self.caps
        device_ms = accounts.device_ms + accounts.reserved_ms
        assert accounts.evaluations + len(accounts.holds) <= caps.evaluations
        assert caps.device_hours is None or device_ms <= caps.device_hours * MS_PER_HOUR
        assert caps.hours is None or accounts.committed_wall_ms <= caps.hours * MS_PER_HOUR
        assert len(accounts.holds) == len(self.open)
        assert accounts.reserved_ms == 12_000 * len(self.open)


def test_any_interleaving_ends_every_evaluation_once_and_passes_no_cap(
    make_story: "MakeStory",
) -> None:
    class Machine(AnyInterleaving):
        pass

    Machine.make_story = staticmethod(make_story)
    run_state_machine_as_test(Machine, settings=settings(max_examples=80, stateful_step_count=40))


# A refusal changes nothing


@pytest.mark.parametrize("at", ["2030-13-01T00:00:00.000+00:00", "2030-01-01T25:00:00.000+00:00"])
@pytest.mark.parametrize("caps", [Caps(evaluations=8), Caps(evaluations=8, window=Window(hours=9))])
def test_a_time_of_day_that_is_none_is_refused_by_record(
    make_story: "MakeStory", at: str, caps: Caps
) -> None:
    story = make_story(caps=caps)
    before = deepcopy(story.state)
    record = story.records[1]._replace(seq=2, at=at)
    with pytest.raises(ImpossibleEventError, match=r"record 2 at byte 100 \(opened\)"):
        apply(story.state, record)
    assert story.state == before


def test_no_event_refused_after_the_end_changes_anything_at_all(make_story: "MakeStory") -> None:
    story = make_story(caps=Caps(evaluations=8, window=Window(hours=9)))
    story.finish()
    before_the_end = [record.event for record in story.records]
    story.say(DONE)
    before = deepcopy(story.state)
    for event in before_the_end:
        with pytest.raises(ImpossibleEventError):
            story.say(event)
        assert story.state == before, event.kind


@pytest.mark.parametrize(("points", "seeds"), [(3, 1), (5, 1), (4, 0), (4, 2), (0, 0)])
def test_a_generation_of_another_shape_than_planned_is_refused(
    story: "Story", points: int, seeds: int
) -> None:
    before = deepcopy(story.state)
    wrong = GenerationAsked(
        generation=0, points=((0.5, 0.5),) * points, seeds=tuple(range(5, 5 + seeds))
    )
    with pytest.raises(
        ImpossibleEventError,
        match=f"{points} points on {seeds} seeds, the plan has 4 on 1",
    ):
        story.say(wrong)
    assert story.state == before


def test_distances_are_of_every_point(story: "Story") -> None:
    with pytest.raises(ImpossibleEventError, match="4 points have 3 distances"):
        story.ask(distances=(1.0, 1.0, 1.0))
    assert story.ask(distances=(1.0, 2.0, 3.0, 4.0)).generations[0].distances == (1, 2, 3, 4)
