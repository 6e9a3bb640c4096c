"""What a ledger means, and which events cannot follow which."""

import math
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.events import Amended, Concluded, Event, GenerationTold, Planned, Reserved, Status
from budgets.plan import Caps, Envelope, Window
from budgets.state import Batch, ImpossibleEventError, apply, fold
from tests.budgets.conftest import Story, asked, make_story, settled, small_plan
from tests.ledgers import closed_batch

DONE = Concluded()


def test_a_ledger_begins_with_its_plan(story: Story) -> None:
    with pytest.raises(ImpossibleEventError, match=r"record 1 at byte 100 \(opened\)"):
        apply(None, story.records[1])
    with pytest.raises(ImpossibleEventError, match="begins with its plan"):
        fold(story.records[1:])


def test_a_moment_beyond_the_calendar_is_refused(story: Story) -> None:
    first, second = story.records
    with pytest.raises(ImpossibleEventError):
        fold([first, second._replace(at="0001-01-01T00:00:00+14:00")])


# What cannot follow what. Each case says what came before, the impossible event, and why.


def two_in_flight(story: Story) -> Reserved:
    """Candidate 0 is in flight in its second attempt, candidate 1 is done, 2 and 3 are pending."""
    story.ask()
    story.say(settled(story.reserve(0), Status.LOST))
    story.evaluate(1)
    return story.reserve(0)


RESERVATION = Reserved(generation=0, candidate=2, seed=5, attempt=1, reserve_ms=12_000)
ASKED = asked([(0.0, 0.0)], 1)
TOLD = GenerationTold(generation=0, digest="d", mean=(0.5, 0.5), sigma=0.1, axis_ratio=1.0)


CAPS = Caps(evaluations=8, device_hours=1.0, window=Window(hours=9))


def reservation(**fields: Any) -> Reserved:
    return RESERVATION.model_copy(update=fields)


def amended(**caps: float) -> Amended:
    return Amended(caps=CAPS.model_copy(update=caps), reason="so")


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (settled(reservation()), r"attempt 1 of \(2, 5\) is not running"),
        (settled(reservation(candidate=1)), r"attempt 1 of \(1, 5\) is not running"),
        (settled(reservation(candidate=0, attempt=2, seed=6)), r"\(0, 6\) is not running"),
        (settled(reservation(candidate=0, attempt=2, generation=1)), "generation 1 is not in"),
        (settled(reservation(candidate=0, attempt=2), Status.NAN, score=1.0), "nan with score"),
        (settled(reservation(candidate=0, attempt=2), score=None), "ok with score None"),
        (
            settled(reservation(candidate=0, attempt=2)).model_copy(update={"retry": True}),
            "ok is not a",
        ),
        (reservation(attempt=2), "expected attempt 1, got 2"),
        (reservation(candidate=0, attempt=3), "candidate 0, seed 5 is not pending"),
        (reservation(candidate=1, attempt=2), "candidate 1, seed 5 is not pending"),
        (reservation(candidate=4), "candidate 4, seed 5 is not pending"),
        (reservation(seed=6), "candidate 2, seed 6 is not pending"),
        (reservation(generation=1), "generation 1 is not in progress"),
        (reservation(reserve_ms=10**9), "beyond the cap on device time"),
        (TOLD, "told before every evaluation is settled"),
        (TOLD.model_copy(update={"generation": 1}), "generation 1 is not in progress"),
        (ASKED, "generation 0 is not told yet"),
        (asked(4 * [(0.1,)]), "every point needs 2 coordinates"),
        (Planned(plan=small_plan()), "a run has one plan"),
        (amended(evaluations=1), "1 evaluations do not pay for 1 generations"),
        (amended(device_hours=0.001), "more device time is spent or reserved"),
        (amended(cost=1.0), "the run began without a price"),
        (DONE, "attempts are still running"),
    ],
)
def test_an_event_that_cannot_follow_is_refused_by_record_and_changes_nothing(
    event: Event, why: str
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


@pytest.mark.parametrize(
    ("seeds", "why"),
    [
        (((5,), (5,), (5,)), "every configuration needs seeds"),
        (((5,), (), (5,), (5,)), "every configuration needs seeds"),
        (((5,), (6,), (5,), (5,)), "have the same seeds"),
        (4 * ((5, 6),), r"\(4, 2\) points and seeds, the plan has \(4, 1\)"),
    ],
)
def test_candidates_of_a_generation_share_as_many_seeds_as_are_planned(
    story: Story, seeds: tuple[tuple[int, ...], ...], why: str
) -> None:
    event = asked(4 * [(0.1, 0.2)]).model_copy(update={"seeds": seeds})
    with pytest.raises(ImpossibleEventError, match=why):
        story.say(event)


@pytest.mark.parametrize(("evaluations", "generations"), [(8, 2), (7, 1), (4, 1)])
def test_generations_are_as_many_whole_ones_as_are_paid_for(
    evaluations: int, generations: int
) -> None:
    story = make_story(caps=Caps(evaluations=8, hours=9.0))
    assert story.say(amended(evaluations=evaluations)).plan.resolved.generations == generations


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
    ends = [settled(reservation(candidate=n), outcome) for n, outcome in enumerate(drawn)]
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


def test_one_failed_seed_fails_the_candidate() -> None:
    story = make_story(
        resolved=Envelope(population=2, generations=2, seeds_per_candidate=2),
        caps=Caps(evaluations=8),
    )
    story.ask(seeds=(1, 2), candidates=2)
    story.evaluate(0, 0.1, seed=1)
    assert story.current.score(0) is None  # half measured is not measured
    story.evaluate(0, Status.NAN, seed=2)
    story.evaluate(1, 5.0, seed=1)
    story.evaluate(1, 7.0, seed=2)
    assert story.current.scores() == [None, 6.0]
    assert ranks(story.current) == [1, 0]
