"""What a person reads before anything is spent."""

from typing import Any

import pytest

from budgets.terms import Calibration, Devices, Sample
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.planning.page import Preview, calibration_lines, preview_tiers, to_markdown
from orchestrator.planning.request import Confirm, Request

DEVICES = Devices(count=8, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30)


def calibrated(*scores: float, failed: int = 0) -> Calibration:
    samples = (
        Sample(
            seed=n + 1,
            score=score,
            seconds=2.0 + n,
            startup_seconds=0.5,
            train_seconds=1.5 + n,
            cpu_seconds=2.0 + n,
            peak_memory_bytes=1 << 20,
            steps=0,
            tokens=0,
            train_flops=0.0,
            eval_flops=0.0,
        )
        for n, score in enumerate(scores)
    )
    return Calibration(samples=tuple(samples), failed=failed)


@pytest.mark.parametrize(
    ("calibration", "said"),
    [
        (calibrated(3.00, 3.02, 3.04), "median of 3; 2.0 to 4.0 s, nine in ten within 3.8 s"),
        (
            calibrated(3.00, 3.02, 3.04),
            "scores 3.02, sd 0.02 over 3 seeds (0.66%; 95% interval 0.34% to 4.16%)",
        ),
        (calibrated(3.0, 3.0), "scores 3 on each of 2 seeds."),
        (calibrated(3.0), "scores 3, on one seed."),
        (calibrated(3.0, 3.1), "None of 2 evaluations of the baseline failed (0.0%;"),
        (
            calibrated(3.00, 3.02, 3.04, failed=1),
            "1 of 4 evaluations of the baseline failed (25.0%; 95% interval 0.6% to 80.6%)",
        ),
    ],
)
def test_a_calibration_is_told_with_how_well_it_is_known(
    calibration: Calibration, said: str
) -> None:
    assert said in " ".join(calibration_lines(calibration))


def test_every_tier_says_how_often_luck_alone_would_pause_it() -> None:
    objective = registry.load(ObjectiveSpec(name="sphere"))
    text = to_markdown(preview_tiers(Request("phase1", "min", objective), DEVICES, None))

    assert text.count("It pauses when") == 3
    assert (  # 16 x 30: scipy.stats.binom.sf(1, 16, rate), and 1 - (1 - that) ** 30
        "It pauses when 2 of a generation's 16 evaluations fail; luck alone does that in 28.1% of "
        "runs (1.1% of generations) where 1% of all evaluations fail, in 92.3% of runs (8.2% of "
        "generations) where 3% of all evaluations fail."
    ) in text


# The verdict


def previews(calibration: Calibration | None, **fields: Any) -> list[Preview]:
    """Of the three tiers, of a sphere."""
    objective = registry.load(ObjectiveSpec(name="sphere"))
    return preview_tiers(Request("phase1", "min", objective, **fields), DEVICES, calibration)


def rows(text: str, tier: str) -> list[str]:
    """The tier's row, and those that belong to it."""
    lines = text.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(f"| {tier} |"))
    after = [n for n, line in enumerate(lines) if n > at and not line.startswith("|  |")]
    return lines[at : after[0]]


def test_tier_min_has_no_comparison_and_says_so() -> None:
    found = previews(calibrated(3.00, 3.02, 3.04))[0]
    assert found.apart is found.rung is None
    text = to_markdown([found])
    assert "No comparison on fresh seeds, so it can say that the plumbing works, and no more." in (
        text
    )


def test_the_comparison_and_the_rung_have_their_own_price() -> None:
    found = previews(calibrated(3.00, 3.02, 3.04))[1]
    assert found.apart is not None
    assert found.rung is not None
    assert (found.apart.evaluations, found.rung.evaluations) == (31, 4)
    assert found.apart.device_hours == pytest.approx(31 * 3 / 3600)
    assert found.rung.device_hours == pytest.approx(4 * 4 * 3 / 3600)  # each four times as long
    own, apart, rung = rows(to_markdown([found]), "target")
    assert own.startswith("| target | 16 x 7 x 1 | 112 |")
    assert apart.startswith("|  | and the verdict | 31 |")
    assert rung.startswith("|  | if Go: 4 x effort | 4 |")


def test_panels_wait_for_each_other() -> None:
    """On 8 devices: 11, 12 and 8 evaluations in two, two and one rounds of 3 s."""
    found = previews(calibrated(3.00, 3.02, 3.04))[1]
    assert found.apart is not None
    assert found.rung is not None
    assert found.apart.barrier_hours == pytest.approx(5 * 3 / 3600)
    assert found.apart.ideal_hours == pytest.approx(31 * 3 / 8 / 3600)
    assert found.rung.barrier_hours == pytest.approx(12 / 3600)


def test_without_a_rung_there_is_no_price_of_one() -> None:
    found = previews(calibrated(3.0, 3.1), confirm=Confirm(rung_factor=0))[1]
    assert found.rung is None
    assert len(rows(to_markdown([found]), "target")) == 2


def test_without_a_comparison_only_the_search_has_a_price() -> None:
    found = previews(calibrated(3.0, 3.1), confirm=Confirm(seeds=0))[1]
    assert found.apart is found.rung is None
    assert len(rows(to_markdown([found]), "target")) == 1


def test_without_a_calibration_the_numbers_of_evaluations_are_known() -> None:
    own, apart, rung = rows(to_markdown(previews(None)), "target")
    assert own.endswith("| 112 | ? | ? | ? | ? |")
    assert apart.endswith("| 31 | ? | ? | ? | ? |")
    assert rung.endswith("| 4 | ? | ? | ? | ? |")


@pytest.mark.parametrize(
    ("calibration", "said"),
    [
        (
            calibrated(1.00, 1.01, 0.99),
            "A Go asks for a gain of 1%; one of 1.98% would be seen 8 times of 10 with the noise "
            "that was calibrated. 3 seeds leave 1.03% to 12.44% possible, and less where a seed "
            "moves both scores alike.",
        ),
        (calibrated(1.0, 1.0), "; the calibrated scores do not differ, so any would be seen."),
        (calibrated(1.0), "A Go asks for a gain of 1%."),
        (Calibration(assumed_seconds=2.0), "A Go asks for a gain of 1%."),
        (None, "A Go asks for a gain of 1%."),
    ],
)
def test_a_plan_says_what_gain_its_verdict_would_see(
    calibration: Calibration | None, said: str
) -> None:
    text = to_markdown(previews(calibration)[1:2])
    assert "Then the best of 4 finalists meets the baseline on 8 fresh seeds. A Go asks" in text
    assert said in text
    assert ("would be seen 8 times" in text) == ("would be seen 8 times" in said)


def test_fewer_seeds_than_a_go_needs_are_said_to_be_so() -> None:
    text = to_markdown(previews(calibrated(3.0, 3.1), confirm=Confirm(seeds=4))[1:2])
    assert "no Go is possible: it needs 5 fresh seeds (go_seeds), the comparison has 4" in text


def test_a_program_gets_the_same_prices() -> None:
    found = previews(calibrated(3.00, 3.02, 3.04))[1].as_dict()
    assert found["expected_apart"]["evaluations"] == 31
    assert found["rung"]["evaluations"] == 4
    assert found["comparing"] is None
    assert found["plan"]["confirmation"]["seeds"] == 8
