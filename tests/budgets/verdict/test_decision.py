"""Every verdict, reached by the shortest ledger that deserves it."""

from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Decided, Fired, Status
from budgets.plan import Calibration, Caps, Envelope, Plan
from budgets.verdict import decide

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.budgets.conftest import MakePlan, Outcome, Story

    Tell = Callable[..., Story]

NAN = Status.NAN
GAIN = (0.98, 0.978, 0.982, 0.979, 0.981, 0.98, 0.98, 0.98)  # 2 %, and surely above 1 %
NOISE = (0.02, -0.02, 0.015, -0.015, 0.01, -0.01, 0.0, 0.0)
KEPT, LOST = ((1.0, 1.0), (0.98, 0.98)), ((1.0, 1.0), (1.01, 1.01))
ALIVE = ((1.0, 1.2, 1.1, 1.3), (1.0, 1.2, 1.1, 1.3), (1.0, 1.2, 1.1, 1.3))


def around(score: float) -> "tuple[Outcome, ...]":
    """On 8 seeds, so noisily that less than 2 % is not shown."""
    return tuple(score + noise for noise in NOISE)


def verdict(story: "Story") -> tuple[str | None, Decided]:
    """The rule that fired, if any, and the decision: the records take both."""
    fired, decided = decide(story.state)
    story.say(*fired, decided)
    assert story.state.decided == decided
    return fired[0].rule if fired else None, decided


def stopped(tell: "Tell", **fields: Any) -> Fired:
    (fired,), _ = decide(tell(**fields).state)
    return fired


# Go


@pytest.mark.parametrize(
    ("rung", "grade"),
    [
        (None, "go"),
        (KEPT, "go_persists"),
        (((1.0, 1.0), (0.9895, 0.9894)), "go_persists"),  # a little more than half is kept
        (((1.0, 1.0), (0.99, 0.989)), "go"),  # ... which may be chance
        (((1.0, 1.0), (0.99, 0.96)), "go"),  # more than all of it, which may be chance
        (((1.0, 1.0), (0.995, 0.994)), "go"),  # a little less
        (((1.0, 1.0), (0.9999, 0.9999)), "go"),  # hardly anything
    ],
)
def test_a_go_persists_by_what_is_kept_on_the_rung(tell: "Tell", rung: Any, grade: str) -> None:
    rule, decided = verdict(tell(winner=GAIN, rung=rung))
    assert (rule, decided.grade, decided.no_go) == (None, grade, None)
    assert decided.configuration == "average"
    assert decided.point == (0.4, 0.6)
    assert decided.gain == pytest.approx(0.02)
    assert decided.lower is not None
    assert 0.015 < decided.lower < 0.02


def test_a_go_says_what_was_gained_here_and_on_the_rung(tell: "Tell") -> None:
    _, decided = verdict(tell(winner=GAIN, rung=KEPT))
    signal, _, rung = decided.evidence.partition("; ")
    assert signal.startswith("on 8 fresh seeds the search's winner is 2% better than the baseline")
    assert rung.startswith("with 4 x FLOPs the winner is 2% better than the baseline on 2 seeds")


def test_a_rung_on_which_the_baseline_fails_takes_no_go_away(tell: "Tell") -> None:
    _, decided = verdict(tell(winner=GAIN, rung=((NAN, NAN), (0.98, 0.98))))
    assert decided.grade == "go"
    assert "could not be measured" in decided.evidence


# No-Go


@pytest.mark.parametrize(
    "rung", [LOST, ((1.0, 1.0), (1.0, 1.0)), ((1.0, 1.0), (NAN, NAN))], ids=["worse", "0", "failed"]
)
def test_a_gain_that_is_gone_on_the_rung_does_not_persist(tell: "Tell", rung: Any) -> None:
    rule, decided = verdict(tell(winner=GAIN, rung=rung))
    assert (rule, decided.grade, decided.no_go) == (None, "no_go", "does_not_persist")
    assert decided.configuration == ""


def test_a_gain_that_is_one_candidates_does_not_persist(tell: "Tell") -> None:
    finalists = {"average": 1.1, "luckiest 1": 0.9}
    rule, decided = verdict(tell(finalists=finalists, winner=GAIN, best="luckiest 1"))
    assert (rule, decided.no_go, decided.configuration) == (None, "does_not_persist", "")
    assert decided.evidence.startswith("the mean of the search's distribution")


def test_a_winner_whose_runs_are_sick_is_pathological(tell: "Tell") -> None:
    rule, decided = verdict(tell(winner=(NAN, NAN, *GAIN[2:])))
    assert (rule, decided.no_go) == (None, "pathological")
    rule, decided = verdict(tell(winner=GAIN, metrics={"exploding": 1.0}))
    assert (rule, decided.no_go) == (None, "pathological")
    assert decided.evidence.startswith("8 of the winner's 8 runs")


def test_a_search_that_kept_failing_is_unstable(tell: "Tell") -> None:
    generations = ((1.0, 1.1, 1.2, 1.3), (1.0, 1.1, 1.2, 1.3), (1.0, 1.1, 1.2, NAN))
    rule, decided = verdict(tell(generations=generations, winner=GAIN))
    assert (rule, decided.no_go) == (None, "unstable")
    assert decided.evidence.startswith("1 of 12 evaluations of the last 3 generations failed")


def test_everything_that_is_missing_is_said(tell: "Tell") -> None:
    """And the first of it gives the name."""
    generations = ((1.0, 1.1, 1.2, 1.3), (1.0, 1.1, 1.2, NAN))
    story = tell(generations=generations, winner=(NAN, NAN, *GAIN[2:]))
    _, decided = verdict(story)
    assert decided.no_go == "unstable"
    assert decided.evidence.count(";") >= 1
    assert "winner's 8 runs" in decided.evidence


def test_a_gain_that_is_shown_and_less_than_asked_is_not_recommended(tell: "Tell") -> None:
    rule, decided = verdict(tell(winner=tuple(score + 0.012 for score in GAIN)))
    assert (rule, decided.grade, decided.no_go) == (None, "no_go", "too_small")
    assert (decided.configuration, decided.point) == ("", None)
    assert decided.gain == pytest.approx(0.008)


def test_where_all_finalists_fail_nothing_is_found(tell: "Tell") -> None:
    story = tell(finalists={"average": (NAN, NAN, NAN), "mean": (NAN, NAN, NAN)})
    rule, decided = verdict(story)
    assert (rule, decided.no_go) == (None, "pathological")
    assert (decided.configuration, decided.point, decided.gain) == ("", None, None)
    assert decided.evidence == "every finalist failed on every fresh seed, so nothing was found"


# No gain is shown


def test_no_gain_in_a_space_that_moves_scores_is_below_noise(tell: "Tell") -> None:
    rule, decided = verdict(tell(generations=ALIVE, winner=around(0.995)))
    assert (rule, decided.no_go) == ("flat", "below_noise")
    assert (decided.configuration, decided.point) == ("", None)
    assert decided.gain == pytest.approx(0.005)


def test_candidates_that_differ_by_chance_alone_are_of_a_dead_space(tell: "Tell") -> None:
    near = 3 * (6 * (1.0, 1.002, 1.001, 1.003),)
    rule, decided = verdict(tell(generations=near, winner=around(0.995)))
    assert (rule, decided.no_go) == ("flat", "dead_space")
    assert decided.configuration == ""
    assert (
        "; candidates of one generation differ by no more than chance (sd 0.00114, by chance "
        in (decided.evidence)
    )


CHANCE = (sum(noise**2 for noise in NOISE) / 2 / 15) ** 0.5
"""Of `around`: half its squares, and 8 degrees of freedom of the finalists without any."""


def spreading(sd: float) -> tuple[tuple[float, ...], ...]:
    """Generations whose candidates' scores have that standard deviation."""
    own = sd * (23 / 24) ** 0.5
    return 3 * (12 * (1.0 + own, 1.0 - own),)


@pytest.mark.parametrize(("share", "no_go"), [(1.09, "dead_space"), (1.11, "below_noise")])
def test_a_dead_space_spreads_no_more_than_its_limit(
    tell: "Tell", share: float, no_go: str
) -> None:
    _, decided = verdict(tell(generations=spreading(share * CHANCE), winner=around(0.995)))
    assert decided.no_go == no_go


@pytest.mark.parametrize(("share", "no_go"), [(0.62, "dead_space"), (0.65, "below_noise")])
def test_candidates_on_three_seeds_spread_less_and_are_not_dead_for_it(
    make_confirmed_plan: "MakePlan", tell: "Tell", share: float, no_go: str
) -> None:
    """1.1 of the noise of a mean of three is 0.635 of that of one."""
    shape = Envelope(population=24, generations=3, seeds_per_candidate=3)
    plan = make_confirmed_plan(phase="phase2", resolved=shape, caps=Caps(evaluations=216))
    story = tell(plan, generations=spreading(share * CHANCE), winner=around(0.995))
    assert verdict(story)[1].no_go == no_go


@pytest.mark.parametrize(("asked", "no_go"), [(23, "dead_space"), (24, "below_noise")])
def test_few_candidates_do_not_make_a_space_dead(
    make_confirmed_plan: "MakePlan", tell: "Tell", asked: int, no_go: str
) -> None:
    """24 of them have 23 degrees of freedom."""
    shape = Envelope(population=24, generations=3, seeds_per_candidate=1)
    plan = make_confirmed_plan(
        resolved=shape, caps=Caps(evaluations=72), thresholds={"dead_freedom": asked}
    )
    story = tell(plan, generations=spreading(CHANCE), winner=around(0.995))
    assert verdict(story)[1].no_go == no_go


def test_seeds_that_are_easy_or_hard_for_all_do_not_make_a_space_dead(tell: "Tell") -> None:
    """The baseline's scores over seeds differ far more than candidates on one seed do."""
    seeds = (0.0, 0.3, -0.3, 0.2, -0.2, 0.3, -0.3, 0.1, -0.1, 0.2, -0.2)
    winner = tuple(0.999 + s + 0.001 * n for s, n in zip(seeds[3:], (1, -1) * 4, strict=True))
    finalists = {"average": tuple(0.999 + s for s in seeds[:3])}
    generations = 3 * (6 * (1.00, 1.02, 1.01, 1.03),)
    _, decided = verdict(
        tell(
            baseline=tuple(1.0 + s for s in seeds),
            generations=generations,
            finalists=finalists,
            winner=winner,
        )
    )
    assert decided.no_go == "below_noise"


def test_where_nothing_is_noisy_equal_candidates_are_of_a_dead_space(tell: "Tell") -> None:
    rule, decided = verdict(
        tell(generations=3 * (24 * (1.0,),), winner=8 * (1.0,), finalists={"average": 1.0})
    )
    assert (rule, decided.no_go) == ("flat", "dead_space")


def test_where_nothing_is_noisy_unequal_ones_are_not(tell: "Tell") -> None:
    finalists = {"average": 1.1, "mean": 1.2}
    _, decided = verdict(tell(generations=ALIVE, winner=8 * (1.1,), finalists=finalists))
    assert decided.no_go == "below_noise"


def test_a_winner_that_is_worse_is_not_recommended(tell: "Tell") -> None:
    rule, decided = verdict(tell(generations=ALIVE, winner=8 * (1.1,)))
    assert (rule, decided.no_go, decided.configuration) == ("flat", "below_noise", "")
    assert "10% worse than the baseline" in decided.evidence


# Too few pairs


@pytest.mark.parametrize("failed", [4, 8])
def test_a_baseline_that_keeps_failing_leaves_nothing_to_compare(tell: "Tell", failed: int) -> None:
    baseline = (*3 * (1.0,), *failed * (NAN,), *(8 - failed) * (1.0,))
    rule, decided = verdict(tell(baseline=baseline, winner=GAIN))
    assert (rule, decided.no_go, decided.configuration) == (None, "unstable", "")
    assert decided.evidence.endswith(f"; the baseline failed on {failed} of 8")


def test_three_failures_of_the_baseline_leave_enough(tell: "Tell") -> None:
    baseline = (*3 * (1.0,), *3 * (NAN,), *5 * (1.0,))
    assert verdict(tell(baseline=baseline, winner=GAIN))[1].grade == "go"


def test_a_baseline_that_fails_on_the_picking_seeds_alone_hides_nothing(tell: "Tell") -> None:
    story = tell(baseline=(NAN, NAN, NAN, *8 * (1.0,)), winner=GAIN)
    assert verdict(story)[1].grade == "go"


def test_a_winner_that_keeps_failing_is_pathological_and_not_noisy(tell: "Tell") -> None:
    rule, decided = verdict(tell(winner=(*4 * (NAN,), *GAIN[4:])))
    assert (rule, decided.no_go, decided.configuration) == (None, "pathological", "")
    assert "; 4 of the winner's 8 runs" in decided.evidence


def test_fewer_seeds_than_a_go_needs_were_planned(
    tell: "Tell", make_confirmed_plan: "MakePlan"
) -> None:
    """No failure, no rule: only no Go, however good it looks."""
    confirmation = make_confirmed_plan().confirmation
    assert confirmation is not None
    few = confirmation.model_copy(update={"seeds": 3, "control_seeds": 3})
    plan = make_confirmed_plan(confirmation=few)
    rule, decided = verdict(tell(plan, baseline=6 * (1.0,), winner=GAIN[:3]))
    assert (rule, decided.no_go, decided.configuration) == (None, "below_noise", "")
    assert "and 5 seeds or more)" in decided.evidence


def test_a_baseline_of_0_has_no_shares(tell: "Tell") -> None:
    rule, decided = verdict(tell(baseline=11 * (0.0,), winner=GAIN))
    assert (rule, decided.no_go) == (None, "below_noise")
    assert decided.gain is None


def test_a_baseline_below_0_is_gained_over(tell: "Tell", make_confirmed_plan: "MakePlan") -> None:
    plan = make_confirmed_plan(calibration=Calibration(assumed_seconds=2.0))
    finalists = {"average": -1.1, "mean": -1.05}
    generations = ((-1.0, -0.9), (-1.0, -0.9), (-1.05, -1.0))
    shape = Envelope(population=2, generations=3, seeds_per_candidate=1)
    plan = plan.model_copy(update={"resolved": shape})
    story = tell(
        plan,
        baseline=11 * (-1.0,),
        generations=generations,
        finalists=finalists,
        winner=8 * (-1.1,),
    )
    assert verdict(story)[1].grade == "go"


# Stop rules


@pytest.fixture
def unmeasured(make_confirmed_plan: "MakePlan") -> Plan:
    """Nobody has measured how far luck goes."""
    return make_confirmed_plan(calibration=Calibration(assumed_seconds=2.0))


def test_a_promise_that_fresh_seeds_refute_was_luck(tell: "Tell", unmeasured: Plan) -> None:
    lucky = ((0.9, 1.2, 1.1, 1.3), (1.0, 1.2, 1.1, 1.3), (1.0, 1.2, 1.1, 1.3))
    fired = stopped(tell, plan=unmeasured, generations=lucky, winner=around(0.995))
    assert (fired.rule, fired.decision, fired.generation) == ("seed_luck", "stop", 2)
    assert (fired.observed, fired.limit) == pytest.approx((0.1, 0.0203), abs=1e-4)
    assert fired.evidence == (
        "the search's best score seemed 10% better than the baseline; on fresh seeds the winner is "
        "0.5% better, or 2.03% better at most: what seemed more was luck of the seed"
    )


@pytest.mark.parametrize(("best", "rule"), [(0.981, "flat"), (0.979, "seed_luck")])
def test_a_promise_that_fresh_seeds_do_not_refute_is_no_luck(
    tell: "Tell", unmeasured: Plan, best: float, rule: str
) -> None:
    """Their upper bound is 2.03 %."""
    generations = ((best, 1.2, 1.1, 1.3), *ALIVE[1:])
    fired = stopped(tell, plan=unmeasured, generations=generations, winner=around(0.995))
    assert fired.rule == rule


@pytest.mark.parametrize(("best", "rule"), [(0.9901, "flat"), (0.9899, "seed_luck")])
def test_a_promise_below_what_was_asked_is_none(
    tell: "Tell", unmeasured: Plan, best: float, rule: str
) -> None:
    generations = ((best, 1.2, 1.1, 1.3), *ALIVE[1:])
    fired = stopped(tell, plan=unmeasured, generations=generations, winner=around(1.02))
    assert fired.rule == rule


@pytest.mark.parametrize(("best", "rule"), [(0.985, "flat"), (0.984, "seed_luck")])
def test_a_promise_that_the_measured_noise_explains_is_no_luck_of_the_seed(
    tell: "Tell", best: float, rule: str
) -> None:
    """Of 12 baselines with sd 0.5 % the best is 1.57 % better once in a hundred times."""
    generations = ((best, 1.2, 1.1, 1.3), *ALIVE[1:])
    assert stopped(tell, generations=generations, winner=around(1.02)).rule == rule


def test_a_flat_search_says_how_much_it_took(tell: "Tell") -> None:
    assert stopped(tell, generations=ALIVE, winner=around(0.995)).evidence == (
        "after 12 evaluations nothing is shown to be better than the baseline: on fresh seeds the "
        "winner is 0.5% better"
    )


def test_without_a_calibration_both_rules_still_speak(
    make_confirmed_plan: "MakePlan", tell: "Tell"
) -> None:
    plan = make_confirmed_plan(calibration=Calibration(assumed_seconds=2.0))
    lucky = ((0.9, 1.2, 1.1, 1.3), *ALIVE[1:])
    assert stopped(tell, plan=plan, generations=lucky, winner=around(0.995)).rule == "seed_luck"
    assert stopped(tell, plan=plan, generations=ALIVE, winner=around(0.995)).rule == "flat"
