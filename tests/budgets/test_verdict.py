"""Every verdict, reached by the shortest ledger that deserves it; the finalists and the winner."""

from pathlib import Path
from typing import Any

import pytest

from budgets.events import Decided, Status
from budgets.plan import Calibration, Envelope
from budgets.verdict import best_point, decide, finalists, stood_for, winner
from orchestrator.look import text
from orchestrator.records.runs import load_state
from tests.budgets.conftest import Outcome, Story, confirmed_plan, told_of

GO_RUN = Path(__file__).parents[1] / "golden/runs/go"
ELSEWHERE = (0.125, 0.125)
NAN = Status.NAN
GAIN = (0.98, 0.978, 0.982, 0.979, 0.981, 0.98, 0.98, 0.98)  # 2 %, and surely above 1 %
ALIVE = 3 * ((1.0, 1.2, 1.1, 1.3),)


def around(score: float) -> tuple[Outcome, ...]:
    """On 8 seeds, so noisily that less than 2 % is not shown."""
    return tuple(score + n for n in (0.02, -0.02, 0.015, -0.015, 0.01, -0.01, 0.0, 0.0))


def decided(story: Story) -> tuple[str | None, Decided]:
    """The rule that fired, if any, and the decision: the ledger takes both, and both have words."""
    fired, found = decide(story.state)
    story.say(*fired, found)
    assert text.decision(story.state, found)
    assert all(text.rule(story.state, one) for one in fired)
    return fired[0].rule if fired else None, found


def pair(baseline: Outcome, *best: Outcome) -> tuple[Any, Any]:
    """Both on the long run's two seeds."""
    return (baseline, baseline), best


# The decision


@pytest.mark.parametrize(
    ("long_run", "grade"),
    [
        (None, "go"),
        (pair(1.0, 0.9895, 0.9894), "go_persists"),  # a little more than half is kept
        (pair(1.0, 0.99, 0.989), "go"),  # ... which may be chance
        (pair(1.0, 0.995, 0.994), "go"),  # a little less
        (pair(NAN, 0.98, 0.98), "go"),  # not to be measured
        (pair(1.0, 1.0, 1.0), "no_go"),
        (pair(1.0, NAN, NAN), "no_go"),
    ],
)
def test_a_go_persists_by_the_share_kept_with_more_flops(long_run: Any, grade: str) -> None:
    rule, found = decided(told_of(winner=GAIN, long_run=long_run))
    assert (rule, found.grade) == (None, grade)
    assert found.no_go == ("does_not_persist" if grade == "no_go" else None)
    is_go = grade != "no_go"
    assert (found.configuration, found.point) == (("average", (0.4, 0.6)) if is_go else ("", None))


ONE_CANDIDATE = {"average": 1.1, "best candidate 1": 0.9}
NO_GOS: dict[str, tuple[dict[str, Any], str | None, str]] = {
    "the gain is one candidate's": (
        {"finalists": ONE_CANDIDATE, "winner": GAIN, "best": "best candidate 1"},
        None,
        "does_not_persist",
    ),
    "one generation says nothing about persistence": (
        {"generations": ((1.0, 1.1, 1.2, 1.3),), "winner": GAIN},
        None,
        "does_not_persist",
    ),
    "the winner fails": ({"winner": (NAN, NAN, *GAIN[2:])}, None, "pathological"),
    "it fails on half": ({"winner": (*4 * (NAN,), *GAIN[4:])}, None, "pathological"),
    "it explodes": ({"winner": GAIN, "metrics": {"exploding": 1.0}}, None, "pathological"),
    "it is unstable": ({"winner": GAIN, "metrics": {"unstable": 1.0}}, None, "pathological"),
    "all finalists fail": ({"finalists": {"mean": 3 * (NAN,)}}, None, "pathological"),
    "candidates fail": (
        {"winner": GAIN, "generations": (*2 * ((1.0, 1.1, 1.2, 1.3),), (1.0, 1.1, 1.2, NAN))},
        None,
        "unstable",
    ),
    "the baseline fails": (
        {"winner": GAIN, "baseline": (*3 * (1.0,), *4 * (NAN,), *4 * (1.0,))},
        None,
        "unstable",
    ),
    "less than asked": ({"winner": tuple(s + 0.012 for s in GAIN)}, None, "too_small"),
    "the baseline scores 0": ({"winner": GAIN, "baseline": 11 * (0.0,)}, None, "below_noise"),
    "no gain is shown": ({"generations": ALIVE, "winner": around(0.995)}, "flat", "below_noise"),
    "it is worse": ({"generations": ALIVE, "winner": 8 * (1.1,)}, "flat", "below_noise"),
}


@pytest.mark.parametrize("case", NO_GOS)
def test_a_no_go_has_a_name_and_recommends_nothing(case: str) -> None:
    fields, rule, name = NO_GOS[case]
    fired, found = decided(told_of(**fields))
    assert (fired, found.grade, found.no_go) == (rule, "no_go", name)
    assert (found.configuration, found.point) == ("", None)


def test_fewer_seeds_than_a_go_needs_give_no_go_whatever_they_show() -> None:
    plan = confirmed_plan()
    assert plan.confirmation is not None
    few = plan.confirmation.model_copy(update={"seeds": 3, "control_seeds": 3})
    story = told_of(confirmed_plan(confirmation=few), baseline=6 * (1.0,), winner=GAIN[:3])
    rule, found = decided(story)
    assert (rule, found.no_go, found.configuration) == (None, "below_noise", "")


@pytest.mark.parametrize(
    ("best", "winner", "is_measured", "rule"),
    [
        (0.981, 0.995, False, "flat"),  # the upper bound on fresh seeds is 2.03 %
        (0.979, 0.995, False, "seed_luck"),
        (0.9901, 1.02, False, "flat"),  # no more than was asked
        (0.9899, 1.02, False, "seed_luck"),
        (0.985, 1.02, True, "flat"),  # the best of 12 baselines: 1.57 % once in a hundred times
        (0.984, 1.02, True, "seed_luck"),
    ],
)
def test_a_best_score_beyond_fresh_seeds_and_noise_was_luck_of_the_seed(
    best: float, winner: float, is_measured: bool, rule: str
) -> None:
    fields = {} if is_measured else {"calibration": Calibration(assumed_seconds=2.0)}
    generations = ((best, 1.2, 1.1, 1.3), *ALIVE[1:])
    story = told_of(confirmed_plan(**fields), generations=generations, winner=around(winner))
    (fired,), _ = decide(story.state)
    assert (fired.rule, fired.decision, fired.generation) == (rule, "stop", 2)


# The finalists

FLAT = (1.0, 1.0, 1.0, 1.0)


def searched(*generations: tuple[Outcome, ...], **fields: Any) -> Story:
    """A search of so many generations, each with its outcomes, whose mean moves to (n / 10, 0)."""
    shape = Envelope(population=4, generations=max(7, len(generations)), seeds_per_candidate=1)
    story = told_of(confirmed_plan(resolved=shape, caps={"evaluations": 99}), generations=())
    for number, outcomes in enumerate(generations):
        story.ask(**fields)
        for candidate, outcome in enumerate(outcomes):
            story.evaluate(candidate, outcome)
        story.tell((number / 10, 0.0))
    return story


@pytest.mark.parametrize(("count", "expected"), [(1, 0.0), (3, 0.2), (4, 0.25), (7, 0.5)])
def test_the_average_is_over_the_last_third_of_generations(count: int, expected: float) -> None:
    assert stood_for(searched().state) is None
    assert stood_for(searched(*count * (FLAT,)).state) == pytest.approx((expected, 0.0))


def test_finalists_are_both_means_and_the_best_candidates_and_none_twice() -> None:
    story = searched(FLAT, FLAT, FLAT, (3.0, 1.0, 2.0, 4.0))
    assert {one.name: one.point for one in finalists(story.state)} == {
        "average": pytest.approx((0.25, 0.0)),
        "mean": (0.3, 0.0),
        "best candidate 1": story.state.completed[3].points[1],
        "best candidate 2": story.state.completed[3].points[2],
    }
    same = ((0.2, 0.0), (0.2, 0.0), (0.7, 0.7), (0.9, 0.9))
    (found,) = finalists(searched(FLAT, FLAT, (1.0, 1.1, 2.0, 3.0), points=same).state)
    assert (found.name, found.point) == ("average", (0.2, 0.0))


# The winner


@pytest.mark.parametrize(
    ("average", "mean", "expected"),
    [
        ((1.0, 1.0, 1.0), (0.8, 1.0, 1.1), "mean"),
        ((1.0, 0.9, 0.8), (0.8, 0.9, 1.0), "average"),  # equal: the more promising
        ((0.1, 0.1, NAN), (9.0, 9.0, 9.0), "mean"),
        ((1.0, NAN, NAN), (NAN, 0.9, NAN), "mean"),
        ((NAN, NAN, NAN), (NAN, NAN, NAN), None),
    ],
)
def test_the_best_mean_of_those_that_failed_least_wins(
    average: Any, mean: Any, expected: str | None
) -> None:
    state = told_of(finalists={"average": average, "mean": mean}).state
    found = winner(state)
    assert (None if found is None else found.name) == expected


def test_after_a_no_go_what_is_trained_or_shown_is_what_was_compared() -> None:
    """The search's winner is not the mean that it would recommend."""
    state = load_state(GO_RUN)
    assert state.decided is not None
    state.decided = state.decided.model_copy(
        update={"grade": "no_go", "no_go": "below_noise", "point": None}
    )
    batch = state.comparisons["finalists"]
    batch.configurations = tuple(
        one.model_copy(update={"point": ELSEWHERE}) for one in batch.configurations
    )
    assert best_point(state) == ELSEWHERE != stood_for(state)
