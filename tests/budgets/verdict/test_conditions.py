"""What a Go needs, each with both sides of its boundary, and in words."""

from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Status
from budgets.plan import Caps, Envelope
from budgets.verdict import (
    Condition,
    conditions,
    gain_in_words,
    is_promising,
    persistence,
    rung,
    sanity,
    signal,
    stability,
    winner_gain,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.budgets.conftest import MakePlan, Outcome, Story

    Tell = Callable[..., Story]

NAN = Status.NAN


def level(score: float, *others: "Outcome", count: int = 8) -> "tuple[Outcome, ...]":
    """So many scores that are all `score`, but for the first ones."""
    return (*others, *((count - len(others)) * (score,)))


# Signal


def judged(tell: "Tell", winner: "Sequence[Outcome]", **fields: Any) -> Condition:
    return signal(tell(winner=winner, **fields).state)


@pytest.mark.parametrize(
    ("score", "met"), [(0.99, True), (0.98, True), (0.9901, False), (1.0, False), (1.02, False)]
)
def test_a_gain_must_be_as_large_as_asked(tell: "Tell", score: float, met: bool) -> None:
    found = judged(tell, level(score))
    assert (found.met, found.limit) == (met, 0.01)
    assert found.observed == pytest.approx(1 - score)


def test_a_gain_without_a_share_says_why(tell: "Tell") -> None:
    story = tell(baseline=11 * (0.0,), winner=8 * (0.98,))
    found = winner_gain(story.state)
    assert found is not None
    said = "a gain is a share of the baseline's score, and that is 0"
    assert gain_in_words(story.state, found) == said
    assert signal(story.state).evidence.startswith(f"{said} (a Go needs")


def test_a_gain_must_be_more_than_chance(tell: "Tell") -> None:
    """Of 2 % both, with a standard error that the bound of t(7) = 3.0 is above or below 0 by."""
    spread = (0.0186, -0.0186, 0.0186, -0.0186, 0.0186, -0.0186, 0.0186, -0.0186)
    sure = tuple(0.98 + 0.9 * s for s in spread)
    unsure = tuple(0.98 + 1.1 * s for s in spread)
    assert judged(tell, sure).met
    assert not judged(tell, unsure).met
    assert judged(tell, unsure).observed == pytest.approx(0.02)


def test_a_bound_of_exactly_0_is_no_gain(tell: "Tell", make_confirmed_plan: "MakePlan") -> None:
    plan = make_confirmed_plan(thresholds={"go_gain": 0.0})
    assert not judged(tell, level(1.0), plan=plan).met
    assert judged(tell, level(0.999), plan=plan).met


@pytest.mark.parametrize(("failed", "met"), [(3, True), (4, False)])
def test_five_pairs_are_enough_and_four_are_not(tell: "Tell", failed: int, met: bool) -> None:
    assert judged(tell, level(0.98, *failed * (NAN,))).met is met
    baseline = (1.0, 1.0, 1.0, *level(1.0, *failed * (NAN,)))
    assert judged(tell, level(0.98), baseline=baseline).met is met


def test_the_picking_seeds_are_no_evidence(tell: "Tell") -> None:
    """However good the winner was there, and however bad the baseline."""
    found = judged(tell, level(1.0), baseline=(9.0, 9.0, 9.0, *level(1.0)))
    assert found.observed == 0.0


@pytest.mark.parametrize(
    ("winner", "baseline", "said"),
    [
        (
            level(0.98, 0.97, 0.99),
            level(1.0),
            "on 8 fresh seeds the search's winner is 2% better than the baseline, with 99% "
            "confidence at least 1.43% better (a Go needs 1% or more, that bound above 0, and 5 "
            "seeds or more)",
        ),
        (
            level(1.01, 0.97, 1.05),
            level(1.0),
            "on 8 fresh seeds the search's winner is 1% worse than the baseline, with 99% "
            "confidence at worst 3.27% worse (",
        ),
        (
            level(0.98, *7 * (NAN,)),
            level(1.0),
            "on 1 of 8 fresh seeds the search's winner is 2% better than the baseline (a Go",
        ),
        (
            level(0.98),
            level(1.0),
            "on 8 fresh seeds the search's winner is 2% better than the baseline on each of them (",
        ),
        (level(0.98), 8 * (NAN,), "there is no fresh seed on which both the winner and "),
        (level(-0.1), (0.5, -0.5, *6 * (0.0,)), "a gain is a share of the baseline's score, and "),
    ],
)
def test_a_signal_says_what_was_found(
    tell: "Tell", winner: "Sequence[Outcome]", baseline: "Sequence[Outcome]", said: str
) -> None:
    assert judged(tell, winner, baseline=(*3 * (1.0,), *baseline)).evidence.startswith(said)


def test_before_the_winner_was_compared_there_is_no_signal(tell: "Tell") -> None:
    found = signal(tell().state)
    assert (found.met, found.observed) == (False, None)
    assert found.evidence.startswith("the winner has not been compared with the baseline")


def test_bounds_have_the_confidence_that_was_asked(
    tell: "Tell", make_confirmed_plan: "MakePlan"
) -> None:
    plan = make_confirmed_plan(thresholds={"go_level": 0.005, "go_gain": 0.015})
    said = judged(tell, level(0.98, 0.97, 0.99), plan=plan).evidence
    assert "with 99.5% confidence at least 1.34% better (a Go needs 1.5% or more" in said


# Stability


def failing(make_confirmed_plan: "MakePlan", tell: "Tell", *counts: int) -> Condition:
    """Generations of 20 candidates, so many of which failed in each."""
    shape = Envelope(population=20, generations=len(counts), seeds_per_candidate=1)
    plan = make_confirmed_plan(resolved=shape, caps=Caps(evaluations=20 * len(counts)))
    told = ((*(20 - n) * (1.0,), *n * (NAN,)) for n in counts)
    return stability(tell(plan, generations=told).state)


@pytest.mark.parametrize(
    ("counts", "met", "rate"),
    [((1, 1, 0), True, 2 / 60), ((1, 1, 1), False, 0.05), ((2,), False, 0.1)],
)
def test_a_go_needs_less_than_the_crash_rate(
    make_confirmed_plan: "MakePlan",
    tell: "Tell",
    counts: tuple[int, ...],
    met: bool,
    rate: float,
) -> None:
    found = failing(make_confirmed_plan, tell, *counts)
    assert found.met is met
    assert found.observed == pytest.approx(rate)


def test_only_the_last_generations_count(make_confirmed_plan: "MakePlan", tell: "Tell") -> None:
    found = failing(make_confirmed_plan, tell, 9, 9, 0, 1, 0)
    assert found.met
    assert found.evidence == (
        "1 of 60 evaluations of the last 3 generations failed (1.7%; a Go needs less than 5%)"
    )


def test_one_generation_is_one_generation(make_confirmed_plan: "MakePlan", tell: "Tell") -> None:
    assert "of the last generation failed (5.0%" in failing(make_confirmed_plan, tell, 1).evidence


def test_what_the_infrastructure_lost_is_not_counted(tell: "Tell") -> None:
    story = tell(generations=())
    story.ask()
    for candidate in range(4):
        story.evaluate(candidate, Status.LOST)
        story.evaluate(candidate, 1.0)
    story.tell()
    assert stability(story.state).observed == 0.0


# Persistence


def lasting(tell: "Tell", average: "Sequence[Outcome]", **fields: Any) -> Condition:
    """Of a search whose winner is one of its luckiest candidates."""
    finalists = {"average": average, "luckiest 1": 3 * (0.5,)}
    return persistence(
        tell(finalists=finalists, winner=level(0.5), best="luckiest 1", **fields).state
    )


@pytest.mark.parametrize(
    ("score", "met"), [(0.999, True), (1.0, False), (1.001, False)], ids=["above", "at", "below"]
)
def test_the_searchs_mean_must_be_better_too(tell: "Tell", score: float, met: bool) -> None:
    found = lasting(tell, 3 * (score,))
    assert (found.met, found.limit) == (met, 0.0)
    assert found.observed == pytest.approx(1 - score)


def test_where_the_mean_won_it_is_judged_on_seeds_that_nobody_was_picked_on(tell: "Tell") -> None:
    story = tell(finalists={"average": 0.5, "mean": 0.9}, winner=level(0.98))
    found = persistence(story.state)
    assert found.observed == pytest.approx(0.02)
    assert found.evidence == (
        "the mean of the search's distribution over its last third of generations is 2% better "
        "than the baseline on 8 fresh seeds (a Go needs more than 0: the gain is the search's, not "
        "one lucky candidate's)"
    )


def test_a_warm_start_need_not_improve_on_its_own_beginning(tell: "Tell") -> None:
    worse = tuple(tuple(0.9 + 0.01 * n for _ in range(4)) for n in range(3))
    assert lasting(tell, 3 * (0.95,), generations=worse).met


def test_candidates_that_spread_around_a_good_mean_may_be_worse_than_it(tell: "Tell") -> None:
    wide = tuple((1.5, 1.6, 1.7, 1.8) for _ in range(3))
    assert lasting(tell, 3 * (0.95,), generations=wide).met


def test_hard_seeds_at_the_end_are_no_setback(tell: "Tell") -> None:
    later = tuple(tuple(1.0 + n for _ in range(4)) for n in range(3))
    assert lasting(tell, 3 * (0.95,), generations=later).met


def test_a_mean_that_fails_persists_in_nothing(tell: "Tell") -> None:
    found = lasting(tell, (NAN, NAN, NAN))
    assert (found.met, found.observed) == (False, None)
    assert "could not be compared with the baseline" in found.evidence


def test_one_generation_persists_in_nothing(tell: "Tell") -> None:
    found = lasting(tell, 3 * (0.95,), generations=(4 * (1.0,),))
    assert (found.met, found.observed) == (False, None)
    assert found.evidence == "fewer than two generations say nothing of what persists"


# Sanity


@pytest.mark.parametrize(
    ("planned", "failed", "met"), [(8, 1, True), (8, 2, False), (5, 1, True), (10, 2, True)]
)
def test_one_in_five_runs_may_be_sick(
    make_confirmed_plan: "MakePlan", tell: "Tell", planned: int, failed: int, met: bool
) -> None:
    story = tell(finalists={"average": 0.98})
    story.compare(
        "winner",
        [story.state.comparisons["finalists"].configurations[0]],
        [{seed: NAN if seed < failed else 0.98 for seed in range(planned)}],
    )
    found = sanity(story.state)
    assert (found.met, found.limit) == (met, 0.2)
    assert found.observed == failed / planned


@pytest.mark.parametrize("flag", ["exploding", "unstable"])
@pytest.mark.parametrize(("value", "sick"), [(1.0, 8), (0.0, 0)])
def test_runs_that_say_so_are_sick(tell: "Tell", flag: str, value: float, sick: int) -> None:
    story = tell(finalists={"average": 0.98}, winner=level(0.98), metrics={flag: value})
    found = sanity(story.state)
    assert found.observed == sick / 8
    assert found.evidence == (
        f"{sick} of the winner's 8 runs on fresh seeds failed, exploded or were unstable (a Go "
        "allows 20%)"
    )


def test_a_controls_runs_are_not_the_winners(tell: "Tell") -> None:
    story = tell(control=5 * (1.0,), winner=level(0.98), equal=5 * (NAN,))
    assert sanity(story.state).observed == 0.0


# The rung


def kept(
    tell: "Tell", score: float, *, base: "Outcome" = 1.0, best: "Outcome | None" = None
) -> Condition:
    """Of a gain of 2 %, with this score on more FLOPs."""
    own = score if best is None else best
    found = rung(tell(winner=level(0.98), rung=((base, base), (own, own))).state)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("score", "met", "share", "said"),
    [
        (0.98, True, 1.0, "2% better than the baseline on 2 seeds: 100% of the gain is kept"),
        (0.9899, True, 0.505, "1.01% better than the baseline on 2 seeds: 50.5% of the gain"),
        (0.9901, False, 0.495, "0.99% better than the baseline on 2 seeds: 49.5% of the gain"),
        (1.0, False, 0.0, "no better than the baseline on 2 seeds: nothing of the gain is kept"),
        (1.02, False, -1.0, "2% worse than the baseline on 2 seeds: nothing of the gain is kept"),
    ],
)
def test_half_of_the_gain_must_be_kept(
    tell: "Tell", score: float, met: bool, share: float, said: str
) -> None:
    found = kept(tell, score)
    assert (found.met, found.limit) == (met, 0.5)
    assert found.observed == pytest.approx(share)
    assert f"with 4 x FLOPs the winner is {said}" in found.evidence


def test_exactly_half_is_kept(tell: "Tell") -> None:
    """In numbers that a float holds exactly."""
    story = tell(
        baseline=11 * (4.0,),
        winner=8 * (3.0,),
        rung=((4.0, 4.0), (3.5, 3.5)),
        finalists={"average": 3.0},
    )
    found = rung(story.state)
    assert found is not None
    assert (found.met, found.observed) == (True, 0.5)
    assert found.evidence.endswith("(to persist, 50% or more must be, above chance)")


def test_what_is_kept_within_chance_does_not_persist(tell: "Tell") -> None:
    """Rules that a run was planned with stay its own."""
    compared = {"winner": 8 * (0.98,), "rung": ((1.0, 1.0), (0.99, 0.97))}
    plan = tell(**compared).state.plan
    found = rung(tell(plan, **compared).state)
    assert found is not None
    assert not found.met
    assert found.observed == pytest.approx(1.0)


def test_a_winner_that_fails_on_the_rung_keeps_nothing(tell: "Tell") -> None:
    found = kept(tell, 0.0, best=NAN)
    assert (found.met, found.observed) == (False, 0.0)
    assert found.evidence.startswith("with 4 x FLOPs the winner fails on every seed (")


def test_a_baseline_that_fails_on_the_rung_leaves_it_unmeasured(tell: "Tell") -> None:
    found = kept(tell, 0.98, base=Status.OOM)
    assert (found.met, found.observed) == (False, None)
    assert "could not be measured: the baseline has no score there" in found.evidence


def test_one_seed_of_the_rung_is_one_seed(tell: "Tell") -> None:
    found = rung(tell(winner=level(0.98), rung=((1.0, NAN), (0.98, 0.98))).state)
    assert found is not None
    assert "on 1 seed:" in found.evidence


def test_a_rung_that_was_not_tried_is_no_condition(tell: "Tell") -> None:
    state = tell(winner=level(0.98)).state
    assert rung(state) is None
    assert [c.rule for c in conditions(state)] == ["signal", "stability", "persistence", "sanity"]


# All of them


def test_before_the_winner_was_compared_there_are_no_conditions(tell: "Tell") -> None:
    assert conditions(tell().state) == ()
    assert conditions(tell(generations=()).state) == ()


def test_only_a_go_at_this_budget_is_worth_the_rung(tell: "Tell") -> None:
    assert is_promising(tell(winner=level(0.98)).state)
    assert not is_promising(tell(winner=level(1.0)).state)
    assert not is_promising(tell(winner=level(0.98, NAN, NAN)).state)
    assert not is_promising(tell().state)
    assert not is_promising(tell(generations=()).state)


@pytest.mark.parametrize(("baseline", "met"), [((1.0, 1.0), True), ((1.0, NAN), False)])
def test_one_seed_of_two_that_is_left_shows_nothing_that_persists(
    tell: "Tell", baseline: Any, met: bool
) -> None:
    found = rung(tell(winner=8 * (0.98,), rung=(baseline, (0.98, 0.98))).state)
    assert found is not None
    assert found.met == met
