"""When short evaluations may stand in for full ones, on both sides of every boundary."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import nextafter
from typing import TYPE_CHECKING, Any

import pytest

from budgets.course import at_work, awaited, can_ask, next_step, still_apart
from budgets.events import Amended, PanelAsked, Reserved, Settled, Status
from budgets.fold import ImpossibleEventError, fold
from budgets.proxy.certificate import (
    Certificate,
    certificate,
    drift,
    fidelity,
    fidelity_of_next,
    last_certificate,
    length_of_next,
    outlook,
    paired_panel,
)
from budgets.proxy.replay import first_divergence
from budgets.proxy.report import ProxyReport, proxy_report
from budgets.rules import runaway_time
from budgets.ruling import judge, refusal_of
from budgets.state import RunState
from budgets.terms import Arm, Caps, Confirmation, Envelope, Plan, ProxyTerms, Varied
from budgets.verdict.findings import findings

if TYPE_CHECKING:
    from tests.budgets.conftest import MakePlan, Story

Outcome = float | Status
Paired = Callable[..., "Told"]

RISING = tuple(1.0 + 0.1 * c for c in range(8))
FALLING = RISING[::-1]
NEARLY = (*RISING[:2], 1.35, 1.25, *RISING[4:])
"""One pair in the other order: tau-b 26 / 28."""

CROSS = tuple(2 * [(0.75, 0.5), (0.25, 0.5), (0.5, 0.75), (0.5, 0.25)])
"""Eight points a quarter away from where the search starts."""

SHORT = {"effort": 0.25}
BASELINE = Arm(name="baseline", point=(0.5, 0.5))


def plan(make_plan: "MakePlan", generations: int = 8, **fields: Any) -> Plan:
    """P = 8, S = 1 with a proxy that is expected to take a quarter of the calibrated 2 s."""
    envelope = Envelope(population=8, generations=generations, seeds_per_candidate=1)
    names = {"agreement": "agreement", "drift": "drift", "lasts": "generations"}
    terms = {names[name]: fields.pop(name) for name in names if name in fields}
    varied = Varied(label="a quarter", settings=SHORT, length=0.25)
    values = {
        "nominal": envelope,
        "resolved": envelope,
        "caps": Caps(evaluations=envelope.evaluations),
        "proxy": ProxyTerms(varied=varied, **terms),
        **fields,
    }
    return make_plan(**values)


class Told:
    """A run told generation by generation, each as long as is its turn."""

    def __init__(self, story: "Story") -> None:
        self.story = story

    @property
    def state(self) -> RunState:
        return self.story.state

    def ask(self, points: Sequence[tuple[float, ...]] = CROSS) -> bool:
        """The next generation, and its panel if there is to be one; whether there is."""
        settings, length = length_of_next(self.state)
        self.story.ask(candidates=8, points=tuple(points), settings=settings, length=length)
        is_paired = next_step(self.state) == "proxy"
        if is_paired:
            self.story.say(self.panel())
        return is_paired

    def panel(self) -> PanelAsked:
        assert self.state.plan.proxy is not None
        return paired_panel(self.story.current, self.state.plan.proxy)

    def generation(
        self,
        scores: Sequence[Outcome] = RISING,
        short: Sequence[Outcome] = RISING,
        favourite: tuple[float, ...] = (0.5, 0.5),
        seconds: float = 2.0,
        short_seconds: float = 0.5,
    ) -> RunState:
        """One whole generation; `short` are the scores of its panel, if it has one."""
        is_paired, number = self.ask(), self.story.current.number
        took = seconds if self.story.current.is_full else short_seconds
        for candidate, outcome in enumerate(scores):
            self.evaluate(number, candidate, outcome, took)
        self.story.tell(favourite)
        for candidate, outcome in enumerate(short if is_paired else ()):
            self.evaluate(number, candidate, outcome, short_seconds, panel="proxy")
        return self.state

    def evaluate(
        self, number: int, candidate: int, outcome: Outcome, seconds: float, **place: Any
    ) -> None:
        where = {"generation": number, "candidate": candidate, "seed": 5, "attempt": 1, **place}
        status = outcome if isinstance(outcome, Status) else Status.OK
        self.story.say(
            Reserved(reserve_ms=12_000, **where),
            Settled(
                status=status,
                score=None if isinstance(outcome, Status) else outcome,
                charged_ms=round(1000 * seconds),
                seconds=seconds,
                cpu_seconds=seconds,
                **where,
            ),
        )


@pytest.fixture
def told(make_plan: "MakePlan", make_story: Any) -> Paired:
    """A run with a proxy on the small plan, with some fields or terms changed."""
    return lambda **fields: Told(make_story(plan(make_plan, **fields)))


def shown(state: RunState, number: int = 0) -> Certificate:
    found = certificate(state, number)
    assert found is not None
    return found


def report(state: RunState) -> ProxyReport:
    found = proxy_report(state)
    assert found is not None
    return found


# What a comparison shows


def test_a_comparison_says_how_far_both_lengths_agree(told: Paired) -> None:
    found = shown(told().generation(NEARLY, tuple(s + 3 for s in RISING)))
    assert (found.candidates, found.compared, found.healthy) == (8, 8, 8)
    assert found.tau == pytest.approx(26 / 28)
    assert found.lower is not None
    assert found.upper == 1
    assert 0.5 < found.lower < 26 / 28
    assert (found.top_half, found.top_quarter) == (1, 1)
    assert found.error == pytest.approx(0.275 / 8)  # the shift is none
    assert found.seconds_ratio == 0.25
    assert found.holds


def test_an_order_that_is_another_one_or_none_does_not_hold(told: Paired) -> None:
    against = shown(told().generation(RISING, FALLING))
    assert (against.tau, against.upper, against.holds) == (-1, -1, False)
    alike = shown(told().generation(RISING, 8 * (1.0,)))
    assert (alike.tau, alike.lower, alike.holds) == (None, None, False)


def test_the_lower_bound_decides_and_may_equal_what_is_asked(told: Paired) -> None:
    lower = shown(told().generation(NEARLY)).lower
    assert lower is not None
    for asked, holds in ((lower, True), (nextafter(lower, 1), False)):
        state = told(agreement=asked).generation(NEARLY)
        assert shown(state).holds == fidelity_of_next(state).short == holds


def test_the_interval_is_the_plans_and_the_generations_alone(told: Paired) -> None:
    run = told(generations=3)
    state = run.generation(NEARLY)
    assert certificate(fold(run.story.records), 0) == shown(state)
    other = told(search=state.plan.search.model_copy(update={"seed": 8}))  # type: ignore[union-attr]
    assert shown(other.generation(NEARLY)).lower != shown(state).lower


def test_a_candidate_that_fails_at_one_length_is_the_worst_there(told: Paired) -> None:
    alone = shown(told().generation((Status.NAN, *RISING[1:]), RISING))
    assert (alone.compared, alone.healthy) == (8, 7)
    assert alone.tau == pytest.approx((21 - 7) / 28)
    assert not alone.holds


def test_failing_at_both_lengths_is_no_agreement_and_seven_are_too_few(told: Paired) -> None:
    failed: tuple[Outcome, ...] = (Status.NAN, *RISING[1:])
    found = shown(told().generation(failed, failed))
    assert (found.compared, found.tau, found.lower) == (7, 1, 1)
    assert not found.holds


def test_all_failing_short_compares_nothing(told: Paired) -> None:
    found = shown(told().generation(RISING, 8 * (Status.ERROR,)))
    assert (found.healthy, found.tau, found.error, found.seconds_ratio) == (0, None, None, None)
    assert not found.holds


# How long it is believed


def lengths(run: Told) -> str:
    """`F` a full generation, `P` one that was compared, `s` a short one."""
    compared = {number for name, number in run.state.panels if name == "proxy"}
    return "".join(
        "s" if not g.is_full else "P" if g.number in compared else "F"
        for g in run.state.generations
    )


@pytest.mark.parametrize(
    ("generations", "lasts", "short", "expected"),
    [
        (9, 2, RISING, "PssPssPsF"),
        (9, 5, RISING, "PsssssPsF"),
        (8, 5, RISING, "PsssssFF"),  # nothing would be left to shorten
        (9, 2, FALLING, "PFFPFFPFF"),
        (3, 5, RISING, "PsF"),
        (2, 5, RISING, "FF"),
        (1, 5, RISING, "F"),
    ],
)
def test_generations_are_short_until_what_was_shown_has_to_be_shown_again(
    told: Paired, generations: int, lasts: int, short: tuple[float, ...], expected: str
) -> None:
    run = told(generations=generations, lasts=lasts)
    for _ in range(generations):
        run.generation(RISING, short)
    assert lengths(run) == expected
    assert first_divergence(run.story.records) is None


@pytest.mark.parametrize(
    ("x", "is_short"), [(0.75, True), (nextafter(0.75, 1), False), (0.25, True), (0.2, False)]
)
def test_a_mean_beyond_the_candidates_that_were_compared_has_to_be_shown_anew(
    told: Paired, x: float, is_short: bool
) -> None:
    state = told().generation(favourite=(x, 0.5))
    assert drift(state, 0, 1) == pytest.approx((abs(x - 0.5), 0.25))
    found = fidelity_of_next(state)
    assert (found.short, found.paired) == (is_short, not is_short)


def test_the_drift_that_is_allowed_is_in_the_plan(told: Paired) -> None:
    assert fidelity_of_next(told(drift=2.0).generation(favourite=(1.0, 0.5))).short
    assert fidelity_of_next(told(drift=0.5).generation(favourite=(0.65, 0.5))).paired


def test_it_is_the_mean_before_the_comparison_that_the_drift_is_from(told: Paired) -> None:
    run = told()
    run.generation(favourite=(0.9, 0.5))
    assert drift(run.generation(favourite=(0.8, 0.5)), 1, 2)[0] == pytest.approx(0.1)


def test_what_was_not_shown_is_tried_again_however_the_mean_moves(told: Paired) -> None:
    state = told().generation(RISING, FALLING, favourite=(1.0, 1.0))
    assert fidelity_of_next(state) == (False, False, "generation 0 did not show agreement")


def test_every_fidelity_has_its_reason(told: Paired, make_plan: "MakePlan") -> None:
    run = told(generations=3)
    assert fidelity_of_next(run.state) == (False, True, "nothing is known yet")
    assert fidelity_of_next(run.generation()) == (True, False, "generation 0 showed agreement")
    assert fidelity_of_next(run.generation()).why == "the last generation is always full"
    run.state.plan = make_plan()
    assert fidelity(run.state, 0) == (False, False, "the plan has no proxy")


def test_a_check_compares_its_only_generation(told: Paired) -> None:
    run = told(generations=1, search=None, phase="check", tier=None)
    assert fidelity_of_next(run.state).paired
    assert run.ask()


@pytest.mark.parametrize(
    ("generations", "expected"), [(1, (0, 0)), (2, (0, 0)), (3, (1, 1)), (9, (2, 6)), (30, (5, 24))]
)
def test_the_outlook_is_what_a_search_does_where_nothing_moves(
    told: Paired, generations: int, expected: tuple[int, int]
) -> None:
    run = told(generations=generations)
    terms = run.state.plan.proxy
    assert terms is not None
    assert outlook(terms, generations) == expected
    for _ in range(generations):
        run.generation()
    done = lengths(run)
    assert (done.count("P"), done.count("s")) == expected


# The walk


def test_the_panel_follows_its_generation_and_the_next_one_waits_for_it(told: Paired) -> None:
    run = told()
    assert can_ask(run.state)
    run.story.ask(candidates=8, points=CROSS)
    assert next_step(run.state) == "proxy"
    run.story.say(run.panel())
    panel = run.state.panels["proxy", 0]
    assert next_step(run.state) == "generation"
    assert at_work(run.state) == [run.story.current, panel]
    assert awaited(run.state) == [run.story.current]
    for candidate in range(8):
        run.evaluate(0, candidate, 1.0 + candidate, 2.0)
    run.story.tell()
    assert awaited(run.state) == [panel]
    assert not can_ask(run.state)
    assert judge(run.state).decision == "continue"
    for candidate in range(8):
        run.evaluate(0, candidate, 1.0 + candidate, 0.5, panel="proxy")
    assert awaited(run.state) == []
    assert can_ask(run.state)
    accounts = run.state.accounts
    assert (accounts.evaluations, accounts.apart) == (8, 8)


def test_a_search_that_is_over_leaves_a_comparison_unfinished(told: Paired) -> None:
    run = told(generations=3)
    run.ask()
    for candidate in range(8):
        run.evaluate(0, candidate, 1.0 + candidate, 2.0)
    run.story.tell()
    run.story.say(Amended(caps=Caps(evaluations=8), generations=1, reason="enough"))
    assert (at_work(run.state), still_apart(run.state).evaluations) == ([], 0)
    assert judge(run.state).decision == "done"
    assert certificate(run.state, 0) is None


def test_more_generations_may_have_more_comparisons(told: Paired) -> None:
    run = told(generations=3, caps=Caps(evaluations=80))
    assert run.state.accounts.apart_cap == 24
    run.story.say(Amended(caps=Caps(evaluations=80), generations=10, reason="more"))
    assert run.state.accounts.apart_cap == run.state.plan.apart == 80


def other_points(event: PanelAsked) -> PanelAsked:
    return replace(event, arms=event.arms[1:] + event.arms[:1])


def other_seeds(event: PanelAsked) -> PanelAsked:
    return replace(event, seeds=8 * ((6,),))


def other_settings(event: PanelAsked) -> PanelAsked:
    arms = tuple(arm.model_copy(update={"settings": {}}) for arm in event.arms)
    return replace(event, arms=arms)


def other_number(event: PanelAsked) -> PanelAsked:
    return replace(event, number=1)


@pytest.mark.parametrize("changed", [other_points, other_seeds, other_settings, other_number])
def test_a_panel_is_its_generation_evaluated_short_and_nothing_else(
    told: Paired, changed: Callable[[PanelAsked], PanelAsked]
) -> None:
    run = told()
    run.story.ask(candidates=8, points=CROSS)
    with pytest.raises(ImpossibleEventError, match="not generation 0 evaluated short"):
        run.story.say(changed(run.panel()))
    run.story.say(run.panel())
    with pytest.raises(ImpossibleEventError, match="generation 0 is evaluated short already"):
        run.story.say(run.panel())


def test_a_short_generation_and_a_plan_without_a_proxy_have_no_panel(
    told: Paired, make_story: Any, make_plan: "MakePlan"
) -> None:
    run = told()
    run.generation()
    run.ask()
    with pytest.raises(ImpossibleEventError, match="no generation to be evaluated short too"):
        run.story.say(run.panel())
    story = make_story(plan(make_plan).model_copy(update={"proxy": None}))
    story.ask(points=CROSS)
    with pytest.raises(ImpossibleEventError, match="no generation to be evaluated short too"):
        story.say(replace(run.panel(), number=0))


def test_no_generation_follows_one_that_is_not_compared_yet(told: Paired) -> None:
    run = told()
    run.ask()
    for candidate in range(8):
        run.evaluate(0, candidate, 1.0, 2.0)
    run.story.tell()
    with pytest.raises(ImpossibleEventError, match="generation 0 is not compared"):
        run.story.ask(candidates=8)


def test_settings_of_nobodys_proxy_are_refused(told: Paired, make_story: Any) -> None:
    for story in (told().story, make_story()):
        with pytest.raises(ImpossibleEventError, match="not those of the plan's proxy"):
            story.ask(settings={"effort": 0.5})


# What it costs


def test_the_comparison_is_set_aside_until_it_is_paid(told: Paired) -> None:
    run = told()
    assert still_apart(run.state).evaluations == 0
    run.ask()
    assert still_apart(run.state).evaluations == 8
    assert still_apart(run.state).device_hours == pytest.approx(8 * 0.5 / 3600)
    assert still_apart(run.state).hours == pytest.approx(4 * 0.5 / 3600)


@pytest.mark.parametrize(
    ("generations", "paid", "needed_seconds"),
    [
        (2, 0, 8 * 2.0),  # in full
        (3, 0, 8 * 2.5),  # in full and short
        (4, 1, 8 * 0.5),  # short
    ],
)
def test_a_generation_is_begun_if_it_fits_at_its_own_length(
    told: Paired, generations: int, paid: int, needed_seconds: float
) -> None:
    last = 12 - 2.0  # of the last reservation, beyond what it is expected to take
    for spare, decision_ in ((1e-6, "continue"), (-1e-6, "stop")):
        hours = (paid * 8 * 2.5 + needed_seconds + last) / 3600 + spare
        evaluations = 8 * generations
        run = told(generations=generations, caps=Caps(evaluations=evaluations, device_hours=hours))
        for _ in range(paid):
            run.generation()
        assert judge(run.state).decision == decision_


def test_a_comparison_leaves_the_verdict_its_due(told: Paired) -> None:
    confirmation = Confirmation(seeds=4, picking_seeds=1, luckiest=0, control_seeds=0)
    run = told(confirmation=confirmation, caps=Caps(evaluations=64, device_hours=60 / 3600))
    state = run.state
    run.ask()
    assert state.plan.proxy is not None
    panel = state.panels["proxy", 0]
    assert still_apart(state).evaluations == 8 + 5 + 2 + 4
    # 4 + 1 of the baseline, 2 finalists, 4 of the winner: 22 s; a reservation there and one here
    for spent_ms, fits in ((13_999, True), (14_001, False)):
        state.accounts = state.accounts._replace(device_ms=spent_ms)
        assert (refusal_of(state, panel, 0) is None) == fits


@pytest.mark.parametrize(("seconds", "fires"), [(3.0, False), (3.01, True)])
def test_short_evaluations_run_away_from_earlier_short_ones(
    told: Paired, seconds: float, fires: bool
) -> None:
    run = told()
    run.generation(short_seconds=1.5)  # a quarter of the FLOPs, three quarters of the time
    run.ask()
    for candidate in range(8):
        run.evaluate(1, candidate, 1.0, seconds)
    reading = runaway_time(run.state, run.story.current)
    assert reading.fires == fires


# What is never compared


def test_full_evaluations_run_away_from_the_calibrated_time(told: Paired) -> None:
    run = told()
    run.generation(short_seconds=0.5)
    run.generation(short_seconds=0.5)
    run.generation(favourite=(0.9, 0.5), short_seconds=0.5)
    run.generation()
    assert run.state.generations[3].is_full
    assert runaway_time(run.state, run.state.generations[3]).observed == 1.0


def test_luck_is_that_of_the_full_scores(told: Paired) -> None:
    confirmation = Confirmation(seeds=4, picking_seeds=1, luckiest=0, control_seeds=0)
    run = told(confirmation=confirmation)
    assert run.state.plan.confirmation is not None
    run.story.say(PanelAsked(panel="reference", arms=(BASELINE,), seeds=((1, 2, 3, 4, 6),)))
    before = findings(run.generation())
    after = findings(run.generation())
    assert before is not None
    assert after is not None
    assert before.luck == after.luck


# The report


def test_of_three_comparisons_each_has_its_own_generations(told: Paired) -> None:
    run = told(generations=9, lasts=2)
    for _ in range(9):
        run.generation()
    found = report(run.state)
    assert [one.certificate.generation for one in found.comparisons] == [0, 3, 6]
    assert [one.short for one in found.comparisons] == [(1, 2), (4, 5), (7,)]
    assert found.comparisons[-1].over == "the last generation is always full"


def test_what_did_not_hold_has_nothing_that_ended_it(told: Paired) -> None:
    run = told()
    run.generation(RISING, FALLING)
    run.generation(RISING, FALLING)
    (only,) = report(run.state).comparisons
    assert (only.holds, only.over) == (False, None)


def test_an_earlier_comparison_is_known_by_the_generation_before_which_it_was(
    told: Paired,
) -> None:
    run = told(generations=9, lasts=2)
    for _ in range(5):
        run.generation()
    assert last_certificate(run.state, 0) is None
    for before, number in ((1, 0), (3, 0), (4, 3)):
        found = last_certificate(run.state, before)
        assert found is not None
        assert found.generation == number


def test_comparing_takes_what_the_short_evaluations_were_charged_so_far(told: Paired) -> None:
    confirmation = Confirmation(seeds=2, picking_seeds=1, luckiest=0, control_seeds=0)
    run = told(confirmation=confirmation)
    run.story.compare("reference", [BASELINE], [{1: 1.0, 2: 1.0}])
    run.ask()
    run.evaluate(0, 0, 1.0, 0.5, panel="proxy")
    in_flight = Reserved(
        panel="proxy", generation=0, candidate=1, seed=5, attempt=1, reserve_ms=12_000
    )
    run.story.say(in_flight)
    assert report(run.state).comparing_seconds == 0.5


# Verification


def test_a_ledger_whose_lengths_are_its_own_doing_holds(told: Paired) -> None:
    run = told(generations=6)
    for favourite in ((0.5, 0.5), (0.9, 0.5), (0.9, 0.5), (0.5, 0.5)):
        run.generation(favourite=favourite)
    assert lengths(run) == "PsPs"
    assert first_divergence(run.story.records) is None


def test_a_generation_short_before_agreement_was_shown_is_named(told: Paired) -> None:
    run = told()
    run.story.ask(candidates=8, points=CROSS, settings=SHORT, length=0.25)
    assert first_divergence(run.story.records) == (
        "record 2 at byte 200: generation 0 was evaluated with {'effort': 0.25} settings changed "
        "and length 0.25, expected no and 1: nothing is known yet"
    )


def test_a_generation_full_although_agreement_was_shown_is_named(told: Paired) -> None:
    run = told()
    run.generation()
    run.story.ask(candidates=8, points=CROSS)
    assert "generation 0 showed agreement" in (first_divergence(run.story.records) or "")


def test_a_comparison_out_of_turn_is_named(told: Paired) -> None:
    run = told()
    run.generation(RISING, FALLING)
    run.ask()
    run.story.say(run.panel())
    assert (first_divergence(run.story.records) or "").endswith(
        "generation 1 was evaluated short as well, which was not its turn"
    )
