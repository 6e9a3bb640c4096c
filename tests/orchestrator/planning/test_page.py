"""What a person reads before anything is spent."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from budgets.terms import Calibration, Devices, Tier, Window
from budgets.words import duration
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.planning.basis import Basis, Latest, Origin
from orchestrator.planning.basis_text import calibration_lines
from orchestrator.planning.known_knobs import Known
from orchestrator.planning.overheads import NOTHING, Overheads
from orchestrator.planning.page import Circumstances, Page, TierPage, page_of, with_power
from orchestrator.planning.page_text import to_markdown
from orchestrator.planning.request import Confirm, Request

Calibrated = Callable[..., Calibration]
DEVICES = Devices(count=8, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30)
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
UNTRIED = Known((), (), tuple(f"x{place}" for place in range(10)))


def based_on(calibration: Calibration | None, **more: Any) -> Basis:
    origin: Origin = "measured"
    if calibration is None:
        origin = "none"
    elif calibration.assumed_seconds is not None:
        origin = "assumed"
    return Basis(origin, calibration, overheads=NOTHING, **more)


def page(
    basis: Basis | None,
    tiers: tuple[Tier, ...] = ("min", "target", "max"),
    counts: tuple[int, ...] = (),
    known: Known = UNTRIED,
    **fields: Any,
) -> Page:
    """Of a sphere on 8 devices."""
    objective = registry.load(ObjectiveSpec(name="sphere"))
    request = Request("phase1", "min", objective, **fields)
    under = Circumstances(DEVICES, basis or based_on(None), Path("/"), known, NOW)
    return page_of(request, under, tiers, counts)


def target(basis: Basis | None, **fields: Any) -> TierPage:
    return page(basis, ("target",), **fields).tiers[0]


def rows(text: str, tier: str) -> list[str]:
    """The tier's row of the first table, and those that belong to it."""
    lines = text.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(f"| {tier} |"))
    after = [n for n, line in enumerate(lines) if n > at and not line.startswith("|  |")]
    return lines[at : after[0]]


# What it rests on


@pytest.mark.parametrize(
    ("scores", "failed", "said"),
    [
        ((3.00, 3.02, 3.04), 0, "median of 3; 2.0 to 4.0 s, nine in ten within 3.8 s"),
        (
            (3.00, 3.02, 3.04),
            0,
            "scores 3.02, sd 0.02 over 3 seeds (0.66%; 95% interval 0.34% to 4.16%)",
        ),
        (
            (3.0, 3.0),
            0,
            "scores 3 on each of 2 seeds: the seed changes nothing (of a program: is it given",
        ),
        ((3.0,), 0, "scores 3, on one seed."),
        ((3.0, 3.1), 0, "None of 2 evaluations of the baseline failed (0.0%;"),
        (
            (3.00, 3.02, 3.04),
            1,
            "1 of 4 evaluations of the baseline failed (25.0%; 95% interval 0.6% to 80.6%)",
        ),
    ],
)
def test_a_calibration_is_told_with_how_well_it_is_known(
    calibrated: Calibrated, scores: tuple[float, ...], failed: int, said: str
) -> None:
    assert said in " ".join(calibration_lines(calibrated(scores, failed=failed)))


def test_a_fast_evaluation_is_told_to_three_digits_and_without_what_is_nothing(
    calibrated: Calibrated,
) -> None:
    of = calibrated((3.0, 3.1, 3.2), (0.1012, 0.1034, 0.1051))
    one_step = [s.model_copy(update={"steps": 1, "train_seconds": 0.09}) for s in of.samples]
    took, trained, *_ = calibration_lines(of.model_copy(update={"samples": tuple(one_step)}))
    assert "takes 0.103 s (median of 3; 0.101 to 0.105 s, nine in ten within 0.105 s)" in took
    assert trained == "It trains 1 step, in 1 MiB at most."
    alike, *_ = calibration_lines(calibrated((3.0, 3.1), (0.6, 0.6)))
    assert "takes 0.6 s (median of 2): start-up" in alike


def test_a_page_begins_with_what_it_rests_on(calibrated: Calibrated) -> None:
    assert "**Measured here:**\n\n- An evaluation takes 3.0 s" in to_markdown(
        page(based_on(calibrated((3.0, 3.1, 3.2))))
    )
    prior = replace(
        based_on(Calibration(assumed_seconds=7.0)), origin="prior", source="run r x 2.5"
    )
    assert "**Estimated, not calibrated here**: run r x 2.5. The run calibrates" in to_markdown(
        page(prior)
    )
    word = to_markdown(page(based_on(Calibration(assumed_seconds=7.0))))
    assert "**Assumed, not measured**: 7 s an evaluation." in word


def test_overheads_that_nobody_measured_are_marked(calibrated: Calibrated) -> None:
    own = Overheads(12.0, 0.02, 0.5, ("between generations",))
    text = to_markdown(page(replace(based_on(calibrated((3.0, 3.1, 3.2))), overheads=own)))
    assert (
        "12.0 s until the first one may begin, 0.02 s of a device for each, 0.5 s between "
        "generations (assumed)."
    ) in text


# What it takes


def test_tier_min_has_no_comparison_and_says_so(calibrated: Calibrated) -> None:
    found = page(based_on(calibrated((3.00, 3.02, 3.04))), ("min",))
    (own,) = found.tiers
    assert own.preview.apart is own.preview.rung is None
    assert own.smallest is None
    assert own.comparison == ()
    text = to_markdown(found)
    assert "- **min**: " in text
    assert "; a smoke test without a verdict" in text
    assert "it can say that the plumbing works, and no more." in text


def test_the_comparison_and_the_rung_have_their_own_price(calibrated: Calibrated) -> None:
    found = page(based_on(calibrated((3.00, 3.02, 3.04))))
    own = found.tiers[1].preview
    assert own.apart is not None
    assert own.rung is not None
    assert (own.apart.evaluations, own.rung.evaluations) == (31, 4)
    assert own.apart.device_hours == pytest.approx(31 * 3 / 3600)
    assert own.rung.device_hours == pytest.approx(4 * 4 * 3 / 3600)  # each four times as long
    tier, apart, rung = rows(to_markdown(found), "target")
    assert tier.startswith("| target | 16 x 7 x 1 | 112 |")
    assert apart.startswith("|  | and the verdict | 31 |")
    assert rung.startswith("|  | if Go: 4 x effort | 4 |")


def test_panels_wait_for_each_other(calibrated: Calibrated) -> None:
    """On 8 devices: 11, 12 and 8 evaluations in two, two and one rounds of 3 s."""
    own = target(based_on(calibrated((3.00, 3.02, 3.04)))).preview
    assert own.apart is not None
    assert own.rung is not None
    assert own.apart.barrier_hours == pytest.approx(5 * 3 / 3600)
    assert own.apart.ideal_hours == pytest.approx(31 * 3 / 8 / 3600)
    assert own.rung.barrier_hours == pytest.approx(12 / 3600)


def test_without_a_rung_there_is_no_price_of_one(calibrated: Calibrated) -> None:
    found = page(based_on(calibrated((3.0, 3.1))), confirm=Confirm(rung_factor=0))
    assert found.tiers[1].preview.rung is None
    assert len(rows(to_markdown(found), "target")) == 2


def test_without_a_comparison_only_the_search_has_a_price(calibrated: Calibrated) -> None:
    found = page(based_on(calibrated((3.0, 3.1))), confirm=Confirm(seeds=0))
    assert found.tiers[1].preview.apart is found.tiers[1].preview.rung is None
    assert len(rows(to_markdown(found), "target")) == 1


def test_without_a_calibration_the_numbers_of_evaluations_are_known() -> None:
    found = page(None)
    own, apart, rung = rows(to_markdown(found), "target")
    assert own.endswith("| 112 | ? | ? | ? | ? |")
    assert apart.endswith("| 31 | ? | ? | ? | ? |")
    assert rung.endswith("| 4 | ? | ? | ? | ? |")


def test_without_a_calibration_no_time_and_no_chance_is_made_up() -> None:
    found = page(None, counts=(1, 4))
    for tier in (*found.tiers, *found.elsewhere):
        assert (tier.simulated, tier.smallest, tier.power) == (None, None, None)
        assert tier.comparison == ()
    text = to_markdown(found)
    assert "## How long it takes" not in text
    assert "nobody knows what gain would be seen" in text
    assert "were its winner so much better" not in text
    assert "| target | 4 | 8 x 15 x 1 | ? | ? | ? | ? | ? |" in text


def test_a_tier_in_short_is_its_evaluations_its_times_its_price_and_the_gain_it_shows(
    calibrated: Calibrated,
) -> None:
    basis = based_on(calibrated((3.00, 3.02, 3.04)))
    found = page(basis, ("target",), price_per_device_hour=2.0, max_hours=0.001)
    times, smallest = found.tiers[0].simulated, found.tiers[0].smallest
    assert times is not None
    assert smallest is not None
    line = next(one for one in to_markdown(found).splitlines() if one.startswith("- **target**"))
    half, most = duration(3600 * times.hours_p50), duration(3600 * times.hours_p90)
    hours = times.device_hours_p50
    assert line == (
        "- **target**: 112 evaluations and up to 35 for the verdict; "
        f"half end within {half}, nine in ten within {most}; "
        f"{hours:.3g} device-hours for {2 * hours:.2f}; "
        f"shows a gain of {smallest.gain:.2%} 8 times of 10; **fails 2 checks below**."
    )


def test_half_and_nine_in_ten_of_the_runs_are_told_with_idle_time_and_money(
    calibrated: Calibrated,
) -> None:
    found = target(based_on(calibrated((3.00, 3.02, 3.04))), price_per_device_hour=2.0)
    own = found.simulated
    assert own is not None
    assert found.preview.expected is not None
    assert own.search_hours_p50 > found.preview.expected.barrier_hours
    assert own.search_hours_p50 < own.hours_p50 < own.hours_p90
    text = to_markdown(page(based_on(calibrated((3.0, 3.1))), price_per_device_hour=2.0))
    assert "| tier | half end within | nine in ten within | idle | device-hours |" in text


def test_a_time_without_a_spread_is_no_simulation_of_luck(calibrated: Calibrated) -> None:
    assert "nothing of its spread" in to_markdown(page(based_on(Calibration(assumed_seconds=3.0))))
    assert "From 400 simulated runs of each tier" in to_markdown(
        page(based_on(calibrated((3.0, 3.1, 3.2))))
    )


def test_other_numbers_of_devices_stand_side_by_side(calibrated: Calibrated) -> None:
    found = page(based_on(calibrated((3.0, 3.1, 3.2))), ("target",), counts=(1, 4, 64))
    assert [tier.plan.devices.count for tier in found.elsewhere] == [1, 4, 64]
    hours = [tier.simulated.hours_p50 for tier in found.elsewhere if tier.simulated is not None]
    assert hours == sorted(hours, reverse=True)
    text = to_markdown(found)
    assert "Times are those of 8 devices: assumed for other numbers" in text
    fails = [item for item in found.elsewhere[-1].items if item.verdict == "fail"]
    assert any("on 64: 48 never have one" in item.why for item in fails)


# What it can tell


@pytest.mark.parametrize(
    ("scores", "least", "said"),
    [
        ((1.00, 1.01, 0.99), 0.0198, "3 seeds leave 1.03% to 12.44% possible as the smallest."),
        ((1.0, 1.0), 0.0, "The calibrated scores do not differ, so any gain would be seen."),
        ((0.1, 0.2, -0.3), None, "No gain can be told: the baseline scores"),
        ((1.0,), None, "No noise was measured, so nobody knows what gain would be seen."),
        ((), None, "No noise was measured, so nobody knows what gain would be seen."),
    ],
)
def test_a_plan_says_what_gain_its_verdict_would_see(
    calibrated: Calibrated, scores: tuple[float, ...], least: float | None, said: str
) -> None:
    measured = calibrated(scores) if scores else Calibration(assumed_seconds=2.0)
    found = page(based_on(measured), ("target",))
    smallest = found.tiers[0].smallest
    assert (None if smallest is None else round(smallest.gain, 4)) == least
    text = to_markdown(found)
    assert "The best of 4 finalists meets the baseline on 8 fresh seeds; a Go asks for" in text
    assert said in text


def test_what_a_seed_adds_to_all_alike_hides_no_gain(calibrated: Calibrated) -> None:
    whole = based_on(calibrated((1.00, 1.02, 0.98)))
    seen = Latest("r", 3.0, 16, own_noise=0.004, overheads=NOTHING)
    both = [target(basis) for basis in (whole, replace(whole, latest=seen))]
    worst, measured = (tier.comparison[0].shown for tier in both)
    assert worst < 0.2
    assert measured > 0.5
    assert "as r has measured" in to_markdown(page(replace(whole, latest=seen)))


def test_fewer_seeds_than_a_go_needs_are_said_to_be_so(calibrated: Calibrated) -> None:
    found = page(based_on(calibrated((3.0, 3.1))), ("target",), confirm=Confirm(seeds=4))
    assert [one.go for one in found.tiers[0].comparison] == [0.0, 0.0, 0.0]
    assert (
        "no Go is possible: it needs 5 fresh seeds (go_seeds), the comparison has 4"
        in to_markdown(found)
    )


def test_power_is_imagined_where_there_is_a_verdict_and_a_noise(calibrated: Calibrated) -> None:
    ticks = iter(range(0, 10_000, 40))  # each look at the clock finds all the time gone
    seen: list[tuple[str, int]] = []
    known = Known(tuple(f"x{place}" for place in range(5)), ("x5", "x6", "x7", "x8", "x9"), ())
    found = with_power(
        page(based_on(calibrated((1.0, 1.01, 0.99))), ("min", "target")),
        known,
        lambda: float(next(ticks)),
        lambda tier, done, _: seen.append((tier, done)),
    )
    small, large = found.tiers
    assert small.power is None
    assert large.power is not None
    assert seen == [("target", 1)]
    assert [one.runs for one in large.power.detected] == [1, 1, 1]
    assert large.power.assumptions.knobs_that_matter == 0.5
    text = to_markdown(found)
    assert "50% of the knobs matter (as checks have shown)" in text
    assert "|  | were so much to be found |  |" in text


def test_power_needs_a_noise() -> None:
    before = page(based_on(Calibration(assumed_seconds=2.0)), ("target",))
    assert with_power(before, UNTRIED, lambda: 0.0, lambda *_: None) == before


# Whether to begin


def verdicts(found: TierPage) -> dict[str, str]:
    return {item.question.split(" ")[-1]: item.verdict for item in found.items}


def test_a_run_of_a_measured_objective_within_its_window_passes(calibrated: Calibrated) -> None:
    basis = based_on(
        calibrated((3.00, 3.02, 3.04), (3.0, 3.1, 3.2)),
        measured_at=NOW - timedelta(days=2),
        attempts=3,
        evaluation_bytes=30_000,
    )
    known = Known(tuple(f"x{place}" for place in range(10)), (), ())
    found = target(basis, known=known, window=Window(hours=2.0))
    assert {item.verdict for item in found.items} == {"pass"}


@pytest.mark.parametrize(
    ("fields", "failing"),
    [
        ({"window": Window(until=NOW + timedelta(minutes=32))}, "--window"),
        ({"max_hours": 0.02}, "--max-hours: "),
        ({"max_device_hours": 0.05}, "--max-device-hours: "),
        ({"max_cost": 0.1, "price_per_device_hour": 2.0}, "--max-cost: "),
    ],
)
def test_a_cap_that_it_would_not_keep_within_fails(
    calibrated: Calibrated, fields: dict[str, Any], failing: str
) -> None:
    found = target(based_on(calibrated((3.00, 3.02, 3.04))), **fields)
    (item,) = (item for item in found.items if item.question == "Does it fit under every cap?")
    assert item.verdict == "fail"
    assert failing in item.why


def test_a_window_that_is_over_leaves_nothing(calibrated: Calibrated) -> None:
    late = Window(until=NOW - timedelta(hours=1))
    found = target(based_on(calibrated((3.00, 3.02, 3.04))), window=late)
    (item,) = (item for item in found.items if item.question == "Is the wall clock acceptable?")
    assert (item.verdict, item.why.split(", ")[1]) == ("fail", "0 s are there")


def test_tiers_with_the_same_answer_share_a_row(calibrated: Calibrated) -> None:
    text = to_markdown(page(based_on(calibrated((3.00, 3.02, 3.04)))))
    assert "| Smoke test or full run? | min | pass | a smoke test: it decides nothing |" in text
    assert "|  | target, max | pass | full: it ends with a verdict |" in text
    assert "| Are the knobs shown to be alive? | all | unknown |" in text


def test_every_tier_says_how_often_luck_alone_would_pause_it() -> None:
    text = to_markdown(page(None))
    assert (  # 16 x 30: scipy.stats.binom.sf(1, 16, rate), and 1 - (1 - that) ** 30
        "| max | 2 of 16 failed | 28.1% of runs (1.1% of generations) | 92.3% of runs (8.2% of "
        "generations) |"
    ) in text


# For a program


def test_a_program_gets_all_of_it(calibrated: Calibrated) -> None:
    found = page(based_on(calibrated((3.00, 3.02, 3.04))), counts=(4,)).as_dict()
    own = found["tiers"][1]
    assert own["expected_apart"]["evaluations"] == 31
    assert own["rung"]["evaluations"] == 4
    assert own["comparing"] is None
    assert own["plan"]["confirmation"]["seeds"] == 8
    assert own["simulated"]["hours_p90"] > own["simulated"]["hours_p50"]
    assert [one["gain"] for one in own["comparison"]] == [0.01, 0.02, 0.05]
    assert own["room"]["needed"] > own["room"]["ledger"]
    assert len(own["checklist"]) == 8
    assert own["power"] is None
    assert found["basis"]["origin"] == "measured"
    assert [tier["plan"]["devices"]["count"] for tier in found["elsewhere"]] == [4, 4, 4]
