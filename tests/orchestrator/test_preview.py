"""What a person reads before anything is spent."""

import pytest

from budgets.terms import Calibration, Devices, Sample
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.plan import Request
from orchestrator.preview import calibration_lines, preview_tiers, to_markdown

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
