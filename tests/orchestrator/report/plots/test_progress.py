"""Score over generations."""

from typing import TYPE_CHECKING

from budgets.events import Status
from orchestrator.charts.chart import Intervals, Line, Mark, Points, Role, Rule, Stripe
from orchestrator.report.model import ArmScores, Report
from orchestrator.report.plots.progress import scores

if TYPE_CHECKING:
    from tests.orchestrator.report.plots.conftest import Made


def marks(report: Report, chart: int = 0) -> list[Mark]:
    plot = scores(report)
    assert plot is not None
    return list(plot.charts[chart].marks)


def points(report: Report, role: Role, chart: int = 0) -> list[Points]:
    return [m for m in marks(report, chart) if isinstance(m, Points) and m.role == role]


def lines(report: Report) -> dict[str, Line]:
    return {m.label: m for m in marks(report) if isinstance(m, Line)}


def test_every_candidate_is_a_dot_beside_its_generation(made: "Made") -> None:
    own = [made.evaluation(g, c) for g in range(2) for c in range(3)]
    (dots,) = points(made.report(own), "candidate")
    assert list(dots.x) == [-0.25, 0.0, 0.25, 0.75, 1.0, 1.25]
    assert list(dots.y) == [e.score for e in own]
    assert list(dots.tips)[4] == "generation 1, candidate 1: 0.91"


def test_a_candidate_is_the_mean_over_its_seeds(made: "Made") -> None:
    own = [made.evaluation(0, 0, seed=s, score=float(s)) for s in (1, 2, 3)]
    (dots,) = points(made.report(own), "candidate")
    assert list(dots.y) == [2.0]


def test_a_candidate_of_which_a_seed_failed_is_marked_at_the_top_edge(made: "Made") -> None:
    own = [made.evaluation(0, 0, seed=1), made.evaluation(0, 0, seed=2, status=Status.OOM)]
    own += [made.evaluation(0, 1)]
    report = made.report(own)
    (failed,) = points(report, "failed")
    plot = scores(report)
    assert plot is not None
    assert failed.shape == "cross"
    assert list(failed.y) == [plot.charts[0].y.high]
    assert list(failed.tips) == ["generation 0, candidate 0: oom"]
    assert "2 candidates in 1 generation, 1 of them failed." in plot.description


def test_an_attempt_that_was_tried_again_does_not_count(made: "Made") -> None:
    own = [
        made.evaluation(0, 0, status=Status.LOST, is_final=False),
        made.evaluation(0, 0, attempt=2, score=0.5),
    ]
    report = made.report(own)
    assert list(points(report, "candidate")[0].y) == [0.5]
    assert not points(report, "failed")


def test_the_band_is_two_sd_of_the_noise_about_the_baseline(made: "Made") -> None:
    found = marks(made.report([made.evaluation(0, 0)]))
    (band,) = [m for m in found if isinstance(m, Stripe)]
    (rule,) = [m for m in found if isinstance(m, Rule) and m.axis == "y"]
    assert (band.low, band.high, rule.value) == (0.96, 1.04, 1.0)


def test_without_a_calibration_there_is_no_band_and_the_caption_says_so(made: "Made") -> None:
    report = made.report([made.evaluation(0, 0)], noise=None)
    plot = scores(report)
    assert plot is not None
    assert not [m for m in marks(report) if isinstance(m, Stripe)]
    assert "noise is not known" in plot.caption


def test_best_so_far_and_luck_hold_over_the_width_of_a_generation(made: "Made") -> None:
    own = [made.evaluation(g, c) for g in range(3) for c in range(2)]
    found = lines(made.report(own))
    best, luck = found["best so far"], found["best expected by luck alone"]
    assert best.is_step
    assert list(best.x) == list(luck.x) == [-0.5, 0.5, 1.5, 2.5]
    assert list(best.y) == [1.0, 0.9, 0.8, 0.8]
    assert list(luck.y) == [0.98, 0.979, 0.978, 0.978]


def test_the_best_of_a_generation_is_marked_where_its_candidate_lies(made: "Made") -> None:
    own = [made.evaluation(0, c, score=s) for c, s in enumerate((2.0, 1.0, 3.0))]
    (best,) = points(made.report(own), "best")
    assert (list(best.x), list(best.y)) == ([0.0], [1.0])


def test_winner_and_baseline_on_the_same_fresh_seeds_stand_at_the_right(made: "Made") -> None:
    report = made.whole()
    found = [m for m in marks(report) if isinstance(m, Intervals)]
    assert {m.role: m.mean[0] for m in found} == {"baseline": 1.0, "winner": 0.9}
    assert all(m.at[0] is not None and m.at[0] > 2.5 for m in found)
    plot = scores(report)
    assert plot is not None
    assert plot.charts[0].x.ticks[-1][1] == "fresh seeds"
    assert "On 3 fresh seeds the winner's mean is 0.9 (95%: " in plot.description


def test_seeds_that_only_one_of_both_has_a_score_on_do_not_count(made: "Made") -> None:
    arms = (
        ArmScores(panel="reference", number=0, name="baseline", scores={1: 1.0, 2: 9.0}),
        ArmScores(panel="winner", number=0, name="mean", scores={1: 0.5, 2: None}),
    )
    report = made.report([made.evaluation(0, 0)], arms=arms)
    found = [m for m in marks(report) if isinstance(m, Intervals)]
    assert [(m.mean[0], m.low[0]) for m in found] == [(1.0, None), (0.5, None)]


def test_generations_of_a_proxy_are_apart_and_the_mean_does_not_cross_them(made: "Made") -> None:
    own = [made.evaluation(g, c, is_short=g == 1) for g in range(3) for c in range(2)]
    generations = tuple(
        made.generation(g, [e for e in own if e.generation == g], is_short=g == 1) for g in range(3)
    )
    report = made.report(own, generations=generations)
    plot = scores(report)
    assert plot is not None
    assert len(plot.charts) == 2
    assert "comparable with one another only" in plot.charts[1].title
    assert list(lines(report)["generation's mean"].y) == [1.005, None, 0.805]
    assert list(points(report, "candidate", 1)[0].y) == [0.9, 0.91]
    assert plot.charts[0].x.low == plot.charts[1].x.low
    assert plot.charts[0].x.high == plot.charts[1].x.high


def test_a_few_scores_far_above_all_others_do_not_flatten_them(made: "Made") -> None:
    own = [made.evaluation(g, c) for g in range(5) for c in range(8)]
    own += [made.evaluation(4, 8, score=1e6)]
    report = made.report(own)
    plot = scores(report)
    assert plot is not None
    high = plot.charts[0].y.high
    assert high is not None
    assert high < 3
    (above,) = [m for m in points(report, "candidate") if m.label == "candidate above the plot"]
    assert (list(above.y), list(above.tips)) == ([high], ["generation 4, candidate 8: 1e+06"])


def test_a_run_of_failures_only_says_so_in_place_of_scores(made: "Made") -> None:
    own = [made.evaluation(0, c, status=Status.ERROR) for c in range(3)]
    plot = scores(made.report(own, noise=None))
    assert plot is not None
    assert plot.charts[0].empty == "No score yet: all 3 candidates that are settled failed."


def test_failures_are_shown_against_a_baseline_that_is_known(made: "Made") -> None:
    own = [made.evaluation(0, c, status=Status.ERROR) for c in range(3)]
    report = made.report(own)
    assert len(points(report, "failed")[0].x) == 3


def test_a_new_descent_and_a_new_session_are_rules_before_what_they_begin_with(
    made: "Made",
) -> None:
    own = [made.evaluation(g, c, session=int(g == 1 and c == 1)) for g in range(2) for c in (0, 1)]
    generations = tuple(
        made.generation(g, [e for e in own if e.generation == g], descent=g) for g in range(2)
    )
    sessions = (made.session(0, 0.0), made.session(1, 15.0))
    report = made.report(own, generations=generations, identity=made.identity(sessions=sessions))
    rules = [m for m in marks(report) if isinstance(m, Rule) and m.axis == "x"]
    assert {m.label: m.value for m in rules} == {"search begins anew": 0.5, "resumed": 1.24}


def test_what_is_no_search_has_no_such_plot(made: "Made") -> None:
    own = [made.evaluation(0, 0)]
    assert scores(made.report(own, identity=made.identity(phase="calibration"))) is None
    assert scores(made.report(())) is None
