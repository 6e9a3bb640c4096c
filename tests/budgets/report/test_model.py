"""What the report says, and that it claims no more than was measured."""

from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import (
    Amended,
    Concluded,
    Event,
    Fired,
    Overridden,
    PanelAsked,
    Reserved,
    Salvaged,
    Status,
    Withdrawn,
)
from budgets.fold import fold
from budgets.ledger.chain import read
from budgets.pace import remaining_hours
from budgets.report.markdown import amount, spent, to_markdown
from budgets.report.model import BudgetReport, balances, budget_report, changed
from budgets.report.sentence import more_of
from budgets.rules.triggers import Ruling, disk_full, unaffordable
from budgets.terms import Arm, Calibration, Caps, Envelope, Thresholds, Window
from budgets.verdict.decision import decide
from budgets.verdict.finalists import recommendation
from tests.budgets.conftest import settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.budgets.conftest import Disk, MakePlan, MakeStory, Story


def calibrating(make_story: "MakeStory", repeats: int = 2) -> "Story":
    envelope = Envelope(population=1, generations=1, seeds_per_candidate=repeats)
    story = make_story(
        phase="calibration", tier=None, resolved=envelope, search=None, calibration=None
    )
    story.ask(seeds=tuple(range(1, repeats + 1)))
    return story


# The sentence


def test_a_running_search_says_how_far_it_is(story: "Story") -> None:
    assert budget_report(story.state).sentence == "0 of 2 generations finished."
    story.score(1.0, 2.0, 3.0, 4.0)
    story.tell()
    assert budget_report(story.state).sentence == "1 of 2 generations finished."


def test_tier_min_says_the_plumbing_works_and_never_go(story: "Story") -> None:
    sentence = budget_report(story.finish()).sentence
    assert sentence == (
        "All 8 evaluations are settled, 0 of them failed. The plumbing works. Tier min is too "
        "small to say Go."
    )


def test_scores_that_are_all_the_same_say_that_the_knobs_do_not_arrive(story: "Story") -> None:
    for _ in range(2):
        story.score(1.5, 1.5, 1.5, Status.NAN)
        story.tell()
    sentence = budget_report(story.state).sentence
    assert sentence == (
        "All 8 evaluations are settled, 2 of them failed. All 6 scores are the same number, 1.5: "
        "the knobs do not seem to reach the score. See: dry-run, space check. Tier min is too "
        "small to say Go."
    )


@pytest.mark.parametrize("tier", ["target", "max"])
def test_a_larger_tier_says_no_go_without_fresh_seeds(make_story: "MakeStory", tier: str) -> None:
    story = make_story(tier=tier)
    story.score(1.0, 2.0, 3.0, Status.NAN)
    story.tell()
    sentence = budget_report(story.finish()).sentence
    assert sentence == (
        "All 8 evaluations are settled, 1 of them failed. The recommendation has not been scored "
        "on fresh seeds against the baseline, so this is no Go yet."
    )


def test_a_pause_gives_its_reason(story: "Story") -> None:
    story.score(1.0, 2.0, Status.OOM, Status.OOM)
    report = budget_report(story.state)
    assert report.decision == "pause"
    assert report.sentence == (
        "Paused: 2 of 4 evaluations of generation 0 failed (50.0%, limit 10%): oom (it was oom). "
        "Look into it; to go on all the same, repeat the command with --override crash_rate "
        '--reason "..."'
    )


def test_what_the_records_do_not_know_is_given(story: "Story") -> None:
    verdict = Ruling("pause", (disk_full(0, "no space is left"),), "no space is left")
    assert budget_report(story.state).decision == "continue"
    report = budget_report(story.state, verdict)
    assert (report.decision, report.sentence) == ("pause", "Paused: no space is left.")


def test_a_stop_gives_its_reason(make_story: "MakeStory") -> None:
    story = make_story(caps=Caps(evaluations=8, device_hours=0.001))
    report = budget_report(story.state)
    assert report.decision == "stop"
    assert report.sentence == (
        "Stopped: generation 0 is expected to need 18 s of device time (its last attempt's whole "
        "limit included), 3.6 s are free (--max-device-hours). To allow more: python -m "
        'orchestrator amend small --max-device-hours 0.005 --reason "..." (that much at least); '
        "then repeat the command."
    )


@pytest.mark.parametrize("cap", ["device_hours", "hours", "cost"])
def test_of_a_cap_that_is_overdrawn_so_much_more_is_asked_for_that_it_is_enough(
    make_story: "MakeStory", cap: str
) -> None:
    caps = Caps.model_validate({"evaluations": 8, cap: 26 / 3600})
    story = make_story(caps=caps, price_per_device_hour=1.0)
    story.ask()
    for candidate in range(3):
        story.evaluate(candidate)
    last = story.reserve(3)
    story.elapsed_ms = 46_000
    story.say(settled(last, charged_ms=40_000))  # it could not be killed in time
    story.tell()
    fired = unaffordable(story.state)
    assert fired is not None

    _, enough = more_of(story.state, fired.fired()).split()
    caps = caps.model_copy(update={cap: float(enough)})
    story.say(Amended(caps=caps, generations=2, reason="more"))
    assert unaffordable(story.state) is None


def test_a_deadline_in_the_way_is_to_be_put_off(make_story: "MakeStory") -> None:
    window = Window(hours=0.001, margin_seconds=0.0)
    story = make_story(caps=Caps(evaluations=8, window=window))
    assert budget_report(story.state).sentence.endswith(
        'amend small --window MORE --reason "..."; then repeat the command.'
    )


HALF_AN_HOUR, TEN_MINUTES = Window(hours=5), Window(hours=5, margin_seconds=600)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            {"evaluations": 120, "device_hours": 2.0},
            {"evaluations": 60, "device_hours": 2.0, "window": HALF_AN_HOUR},
            "evaluations 120 -> 60, window no cap -> 5.0 hours",
        ),
        ({"hours": 5.0}, {"hours": 5.0000001}, "hours 5 -> 5.0000001"),
        ({"window": HALF_AN_HOUR}, {"window": TEN_MINUTES}, "safety margin 1800 s -> 600 s"),
        ({"window": HALF_AN_HOUR}, {"window": HALF_AN_HOUR}, ""),
    ],
)
def test_an_amendment_says_what_it_changed(
    before: dict[str, Any], after: dict[str, Any], said: str
) -> None:
    assert changed(*(Caps.model_validate({"evaluations": 8, **c}) for c in (before, after))) == said


def test_a_search_that_cannot_go_on_is_told_what_a_corrected_script_is(
    make_story: "MakeStory",
) -> None:
    story = make_story(objective=SCRIPT, thresholds=Thresholds(crash_count_pause=9))
    story.score(*4 * [Status.ERROR])
    assert budget_report(story.state).sentence.endswith(
        "the search needs 2. Look into it. A corrected script is another plan: begin it with "
        "--fork-run, or --run-id NAME."
    )


SCRIPT = {"name": "python:train:f", "settings": {"code": "0" * 64}}


def test_a_pause_of_a_script_says_that_a_corrected_one_is_another_plan(
    make_story: "MakeStory",
) -> None:
    story = make_story(objective=SCRIPT)
    story.score(Status.ERROR, Status.ERROR, 1.0, 1.0)
    assert budget_report(story.state).sentence.endswith(
        ". Look into it. A corrected script is another plan: begin it with --fork-run, or --run-id "
        "NAME. To go on all the same, repeat the command with --override crash_rate "
        '--reason "..."'
    )


@pytest.mark.parametrize("status", [Status.ERROR, Status.NAN])
def test_a_calibration_of_failures_alone_offers_no_override(
    make_story: "MakeStory", status: Status
) -> None:
    story = calibrating(make_story, 3)
    story.evaluate(0, status, seed=1)
    story.evaluate(0, status, seed=2)
    sentence = budget_report(story.state).sentence
    assert sentence.startswith("Paused: ")
    assert "--override" not in sentence
    assert sentence.endswith(
        ". Mend it and repeat the command: a changed script or setting is calibrated anew; if "
        'something else was wrong, calibrate with the same options and --again --reason "...".'
    )


def test_a_calibration_with_a_score_may_go_on(make_story: "MakeStory") -> None:
    story = calibrating(make_story, 3)
    story.evaluate(0, Status.ERROR, seed=1)
    story.evaluate(0, Status.ERROR, seed=2)
    story.evaluate(0, 1.0, seed=3)
    assert "--override crash_rate" in budget_report(story.state).sentence


def test_a_calibration_counts_its_healthy_evaluations_only(make_story: "MakeStory") -> None:
    story = calibrating(make_story, 3)
    story.evaluate(0, seed=1)
    story.evaluate(0, Status.NAN, seed=2)
    story.evaluate(0, seed=3)
    sentence = budget_report(story.state).sentence
    assert sentence == "Calibrated: 2 healthy evaluations of the baseline."


def test_a_calibration_that_failed_does_not_say_it_is_calibrated(make_story: "MakeStory") -> None:
    story = calibrating(make_story, 1)
    story.evaluate(0, Status.ERROR, seed=1)
    sentence = budget_report(story.state).sentence
    assert sentence == "Not calibrated: all 1 evaluations of the baseline failed."


# Balances


def test_spent_reserved_and_free_add_up_to_every_cap(make_story: "MakeStory") -> None:
    caps = Caps(evaluations=8, device_hours=0.02, hours=0.01, cost=0.04)
    story = make_story(caps=caps, price_per_device_hour=2.0)
    story.ask()
    story.elapsed_ms = 6000
    story.evaluate(0, charged_ms=3600)
    story.evaluate(1, Status.LOST, charged_ms=7200)
    story.reserve(2)
    story.reserve(3)

    found = {b.currency: b for b in balances(story.state)}

    assert list(found) == ["evaluations", "device-hours", "hours open", "cost"]
    evaluations, device = found["evaluations"], found["device-hours"]
    assert (evaluations.spent, evaluations.reserved, evaluations.free) == (1, 2, 5)
    assert (device.spent, device.reserved) == pytest.approx((0.003, 24 / 3600))
    assert (found["hours open"].spent, found["hours open"].reserved) == pytest.approx(
        (6 / 3600, 12 / 3600)
    )
    assert (found["cost"].spent, found["cost"].reserved) == pytest.approx((0.006, 48 / 3600))
    for balance in found.values():
        assert balance.free is not None
        assert balance.cap is not None
        assert balance.spent + balance.reserved + balance.free == pytest.approx(balance.cap)


def test_what_is_reserved_beside_the_search_is_counted_there(
    tell: "Callable[..., Story]", make_confirmed_plan: "MakePlan"
) -> None:
    story = tell(make_confirmed_plan(), generations=())
    story.ask()
    story.reserve(0)
    arm = Arm(name="average", point=(0.5, 0.5))
    story.say(PanelAsked(panel="winner", arms=(arm,), seeds=((7, 8),)))
    for seed in (7, 8):
        place: dict[str, Any] = {"panel": "winner", "generation": 0, "candidate": 0, "seed": seed}
        story.say(Reserved(**place, attempt=1, reserve_ms=12_000))
    own, beside = balances(story.state)[:2]
    assert (own.spent, own.reserved) == (0, 1)
    assert (beside.spent, beside.reserved) == (11, 2)


def test_what_is_spent_is_one_line_of_every_currency_that_counts(
    tell: "Callable[..., Story]", make_confirmed_plan: "MakePlan"
) -> None:
    plan = make_confirmed_plan(caps=Caps(evaluations=12, hours=2.0))
    assert spent(balances(tell(plan, generations=()).state)) == (
        "0 of 12 evaluations; 11 of 45 comparison evaluations; 0.0061 device-hours; "
        "0.0000 of 2.0000 hours open"
    )


def test_a_currency_without_a_cap_has_nothing_free_to_state(story: "Story") -> None:
    found = {b.currency: b for b in balances(story.state)}
    assert found["device-hours"].free is found["device-hours"].cap is None
    assert found["hours open"].free is found["cost"].free is None


def table(text: str, title: str) -> list[str]:
    section = text.split(f"## {title}\n")[1].split("\n## ", maxsplit=1)[0]
    return [line for line in section.splitlines() if line.startswith("|")]


def test_without_a_price_there_is_no_row_for_money(story: "Story") -> None:
    story.score(1.0, 2.0, 3.0, 4.0)
    assert table(to_markdown(budget_report(story.state)), "Budget") == [
        "| | spent | reserved | free | cap |",
        "|---|--:|--:|--:|--:|",
        "| evaluations | 4 | 0 | 4 | 8 |",
        "| device-hours | 0.0022 | 0.0000 | no cap | no cap |",
        "| hours open | 0.0000 | 0.0000 | no cap | no cap |",
    ]


def test_with_a_price_what_was_spent_has_a_row(make_story: "MakeStory") -> None:
    story = make_story(price_per_device_hour=900.0)
    assert not balances(story.state)[3].counts
    story.ask()
    story.evaluate(0)
    rows = table(to_markdown(budget_report(story.state)), "Budget")
    assert rows[-1] == "| cost | 0.5000 | 0.0000 | no cap | no cap |"


def test_a_cap_on_money_has_a_row_before_anything_is_spent(make_story: "MakeStory") -> None:
    story = make_story(price_per_device_hour=1.0, caps=Caps(evaluations=8, cost=3.0))
    rows = table(to_markdown(budget_report(story.state)), "Budget")
    assert rows[-1] == "| cost | 0.0000 | 0.0000 | 3.0000 | 3.0000 |"


# Time that is left


def test_before_anything_ran_the_calibrated_median_foretells(story: "Story") -> None:
    # two generations of two rounds of 2 s
    assert remaining_hours(story.state) == pytest.approx(8 / 3600)


def test_the_median_seen_so_far_foretells_what_is_left(story: "Story") -> None:
    story.ask()
    for candidate, seconds in enumerate((3.0, 100.0, 5.0)):
        story.evaluate(candidate, seconds=seconds)
    # one owed: a round, and two rounds of the second generation, at 5 s
    assert remaining_hours(story.state) == pytest.approx(15 / 3600)


def test_what_is_in_flight_is_still_to_come(story: "Story") -> None:
    story.ask()
    story.evaluate(0)
    story.evaluate(1)
    before = remaining_hours(story.state)
    story.reserve(2)
    assert remaining_hours(story.state) == before == pytest.approx(6 / 3600)


def test_nothing_is_left_at_the_end(story: "Story") -> None:
    assert remaining_hours(story.finish()) == 0


def test_without_any_time_measured_nothing_is_foretold(make_story: "MakeStory") -> None:
    story = calibrating(make_story)
    assert remaining_hours(story.state) is None
    assert "still to run" not in to_markdown(budget_report(story.state))


def test_a_running_search_states_what_is_left_and_a_paused_one_does_not(story: "Story") -> None:
    text = to_markdown(budget_report(story.state))
    assert "Generation 0 of 2 on 2 x some processor. About 8 s of evaluations are still" in text
    story.score(1.0, 2.0, Status.OOM, Status.OOM)
    assert "still to run" not in to_markdown(budget_report(story.state))


# Scores


def test_rows_are_over_the_healthy_candidates(story: "Story") -> None:
    story.ask()
    outcomes: tuple[float | Status, ...] = (3.0, Status.NAN, 1.0, 2.0)
    for candidate, outcome in enumerate(outcomes):
        story.evaluate(candidate, outcome, seconds=1.0 + candidate)
    report = budget_report(story.tell())
    row = report.rows[0]
    assert (row.healthy, row.failed, row.best, row.mean) == (3, 1, 1.0, 2.0)
    assert (row.sigma, row.eval_seconds) == (0.2, 2.5)
    assert report.evaluations_by_status == {"ok": 3, "nan": 1}
    assert report.eval_seconds == 3.0  # of the healthy


def test_a_generation_without_results_has_dashes(story: "Story") -> None:
    story.ask()
    assert "| 0 | - | - | 0 | 0 | - | - |  |" in to_markdown(budget_report(story.state))


def test_bars_run_from_the_lowest_mean_to_the_highest(make_story: "MakeStory") -> None:
    story = make_story(
        resolved=Envelope(population=4, generations=4, seeds_per_candidate=1),
        caps=Caps(evaluations=16),
    )
    for score in (5.0, 3.0, 1.0):
        story.score(*4 * [score])
        story.tell()
    story.ask()
    rows = table(to_markdown(budget_report(story.state)), "Scores")[2:]
    assert [row.count("█") for row in rows] == [12, 7, 1, 0]


def test_equal_means_have_equal_bars(story: "Story") -> None:
    story.finish()
    rows = table(to_markdown(budget_report(story.state)), "Scores")[2:]
    assert [row.count("█") for row in rows] == [1, 1]


def test_the_luckiest_score_is_compared_with_pure_luck(story: "Story") -> None:
    story.score(1.0, 0.7, 3.0, Status.NAN)
    report = budget_report(story.state)
    assert report.baseline is not None
    assert (report.baseline.mean, report.baseline.sd) == pytest.approx((1.0, 0.1))
    assert report.baseline.seeds == 3
    assert report.luckiest_score == 0.7
    assert report.luckiest_of_noise == pytest.approx(0.915, abs=5e-3)  # best of 3
    text = to_markdown(report)
    assert "Baseline: 1 over 3 seeds, sd 0.1." in text
    assert "Luckiest score: 0.7. Were every candidate just the baseline" in text
    assert "only fresh seeds tell." in text.replace("\n", " ")


def test_without_a_measured_baseline_nothing_is_compared_with_it(make_story: "MakeStory") -> None:
    story = make_story(calibration=Calibration(assumed_seconds=60.0))
    story.score(1.0, 2.0, 3.0, 4.0)
    report = budget_report(story.state)
    assert report.baseline is None
    assert report.luckiest_of_noise is None
    assert report.expected_seconds == 60.0
    text = to_markdown(report)
    assert "Baseline:" not in text
    assert "Luckiest" not in text


def test_a_single_baseline_seed_has_no_spread(make_story: "MakeStory") -> None:
    calibration = make_story().state.plan.calibration
    assert calibration is not None
    story = make_story(calibration=Calibration(samples=calibration.samples[:1]))
    story.score(1.0, 2.0, 3.0, 4.0)
    text = to_markdown(budget_report(story.state))
    assert "Baseline: 0.9 over 1 seeds." in text
    assert "Luckiest" not in text


def test_a_run_with_no_result_has_no_luckiest_score(story: "Story") -> None:
    report = budget_report(story.state)
    assert report.luckiest_score is None
    assert "Evaluations: none settled." in to_markdown(report)


# The recommendation


@pytest.mark.parametrize(
    ("told", "expected"),
    [(0, None), (1, (0.0,)), (2, (0.1,)), (3, (0.2,)), (4, (0.25,)), (6, (0.45,))],
)
def test_the_recommendation_is_the_mean_over_the_last_third_of_generations(
    make_story: "MakeStory", told: int, expected: tuple[float, ...] | None
) -> None:
    story = make_story(
        resolved=Envelope(population=4, generations=6, seeds_per_candidate=1),
        caps=Caps(evaluations=24),
    )
    for number in range(told):
        story.score(1.0, 2.0, 3.0, 4.0)
        story.tell((0.1 * number,))
    assert recommendation(story.state) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(("score", "expected"), [(0.98, (0.4, 0.61)), (1.0, None)])
def test_a_decided_run_recommends_who_won_or_nobody(
    tell: "Callable[..., Story]", score: float, expected: tuple[float, float] | None
) -> None:
    finalists = {"average": 0.99, "luckiest 1": 0.98}
    story = tell(finalists=finalists, winner=8 * (score,), best="luckiest 1")
    story.say(decide(story.state)[1])
    assert recommendation(story.state) == expected


def test_a_knob_is_shown_with_its_place_in_its_range(story: "Story") -> None:
    story.score(1.0, 2.0, 3.0, 4.0)
    story.tell((0.0, 1.0))
    text = to_markdown(budget_report(story.state), {"tau": 0.7, "rate": 1e-3})
    assert table(text, "Recommendation")[2:] == [
        "| tau | 0.7 | ●·········· 0.00 |",
        "| rate | 0.001 | ··········● 1.00 |",
    ]
    assert "It has not been\nscored on fresh seeds." in text


@pytest.mark.parametrize(
    ("best", "what"),
    [
        ("average", "the mean of the search distribution, averaged"),
        ("luckiest 1", "one of the luckiest candidates"),
    ],
)
def test_a_recommendation_that_won_says_what_it_is(
    tell: "Callable[..., Story]", best: str, what: str
) -> None:
    finalists = {"average": 0.99, "luckiest 1": 0.99, best: 0.98}
    story = tell(finalists=finalists, winner=8 * (0.98,), best=best)
    story.say(decide(story.state)[1])
    text = to_markdown(budget_report(story.state), {"tau": 0.7, "rate": 1e-3})
    assert f"\nWhat won on fresh seeds: {what}" in text
    assert "It has not been\nscored" not in text


def test_without_knobs_there_is_no_recommendation(story: "Story") -> None:
    assert "## Recommendation" not in to_markdown(budget_report(story.finish()))


# The rest


def test_losses_and_overruns_are_stated_when_there_are_some(story: "Story") -> None:
    text = to_markdown(budget_report(story.state))
    assert "lost or cancelled" not in text
    assert "beyond their reservation" not in text
    story.ask()
    story.evaluate(0, Status.LOST, charged_ms=3600)
    story.evaluate(0, Status.CANCELLED, charged_ms=3600)
    story.evaluate(0, charged_ms=30_000)
    text = to_markdown(budget_report(story.state))
    assert "2 attempts were lost or cancelled and cost 0.002 device-hours." in text
    assert "0.005 device-hours went beyond their reservation." in text


def test_device_hours_next_to_nothing_are_given_in_seconds(story: "Story") -> None:
    story.ask()
    story.evaluate(0, Status.LOST, charged_ms=79)
    text = to_markdown(budget_report(story.state))
    assert "cost 0.079 device-seconds." in text


@pytest.mark.parametrize(("seconds", "is_said"), [(60, False), (96, True)])
def test_a_run_that_was_open_beyond_its_cap_says_so(
    make_story: "MakeStory", seconds: int, is_said: bool
) -> None:
    story = make_story(caps=Caps(evaluations=8, hours=60 / 3600))
    story.elapsed_ms = 1000 * seconds
    story.ask()
    text = to_markdown(budget_report(story.state))
    assert ("The run was open for 0.01 hours beyond its cap." in text) == is_said
    assert ("beyond its cap" in text) == is_said


def test_what_was_withdrawn_and_what_was_lost_of_the_ledger_is_listed(story: "Story") -> None:
    story.say(
        Withdrawn(device="gpu 1 on here", why="another process holds its memory"),
        Salvaged(lost_records=3, lost_bytes=900, why="record 7 is damaged"),
    )
    report = budget_report(story.state)
    assert report.withdrawn == ("gpu 1 on here: another process holds its memory",)
    text = to_markdown(report)
    assert "gpu 1 on here: another process holds its memory" in text
    assert "## Salvaged\n\n- 3 records lost: record 7 is damaged\n" in text


def test_a_ledger_may_be_salvaged_when_the_run_is_over(story: "Story") -> None:
    story.finish()
    lost = Salvaged(lost_records=0, lost_bytes=9, why="the last line was torn")
    assert story.say(Concluded(reason="all is settled"), lost).salvaged == [lost]


def test_healthy_times_are_set_against_the_calibrated_one(
    story: "Story", make_story: "MakeStory"
) -> None:
    story.ask()
    story.evaluate(0, seconds=3.0)
    text = to_markdown(budget_report(story.state))
    assert "A healthy evaluation takes 3.0 s (expected: 2.0 s)." in text
    calibration = calibrating(make_story)
    calibration.evaluate(0, seed=1)
    assert "A healthy evaluation takes 2.0 s." in to_markdown(budget_report(calibration.state))


def test_rules_that_fired_and_overrides_are_listed_when_there_are_some(story: "Story") -> None:
    text = to_markdown(budget_report(story.state))
    assert "## Rules that fired" not in text
    assert "## Overrides" not in text
    story.say(
        Fired(
            rule="crash_rate",
            generation=0,
            decision="pause",
            observed=1.0,
            limit=0.1,
            evidence="all failed",
        ),
        Overridden(rule="crash_rate", generation=0, reason="the disk was full"),
    )
    text = to_markdown(budget_report(story.state))
    assert "## Rules that fired\n\n- crash_rate, generation 0: all failed\n" in text
    assert "## Overrides\n\n- crash_rate, generation 0: the disk was full\n" in text


def test_the_title_names_run_objective_phase_and_tier(
    story: "Story", make_story: "MakeStory"
) -> None:
    text = to_markdown(budget_report(story.state))
    assert text.startswith("# small: sphere, phase1, tier min\n\n**")
    calibration = to_markdown(budget_report(calibrating(make_story).state))
    assert calibration.startswith("# small: sphere, calibration\n")


def test_the_last_line_is_the_seal_of_the_ledger(disk: "Disk", whole: list[Event]) -> None:
    records = read(disk.write(whole)).records
    text = to_markdown(budget_report(fold(records)))
    assert text.endswith(f"\nLedger: {len(whole)} records, head `{records[-1].digest}`.\n")


def test_a_report_survives_json_at_every_moment_of_a_run(disk: "Disk", whole: list[Event]) -> None:
    records = read(disk.write(whole)).records
    for length in range(1, len(records) + 1):
        report = budget_report(fold(records[:length]))
        again = BudgetReport.model_validate_json(report.model_dump_json())
        assert again == report
        assert to_markdown(again) == to_markdown(report)
        assert report.records == length


@pytest.mark.parametrize(
    ("place", "value", "text"),
    [(0, 7.0, "7"), (1, 7.0, "7.0000"), (1, None, "no cap"), (0, None, "no cap")],
)
def test_amounts_are_whole_evaluations_and_fractions_of_hours(
    story: "Story", place: int, value: Any, text: str
) -> None:
    assert amount(balances(story.state)[place], value) == text
