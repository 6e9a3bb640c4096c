"""The page that a person reads before anything is spent."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from budgets.plan import Calibration, Devices, Tier
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.plan.history import Known
from orchestrator.plan.page import Circumstances, Page, page_of, page_text
from orchestrator.plan.times import NOTHING, Times, calibration_lines
from tests.asking import config_for

Calibrated = Callable[..., Calibration]
DEVICES = Devices(count=8, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30)
TIERS: tuple[Tier, ...] = ("min", "target", "max")


def page(calibration: Calibration | None, counts: tuple[int, ...] = (), **fields: Any) -> Page:
    """Of a sphere on 8 devices."""
    objective = registry.load(ObjectiveSpec(name="sphere"))
    times = Times("none" if calibration is None else "measured", calibration, overheads=NOTHING)
    now, known = datetime(2026, 11, 22, 12, tzinfo=UTC), Known((), (), ("x0",))
    under = Circumstances(DEVICES, times, Path("/"), known, now)
    return page_of(config_for("phase1", "min", objective, **fields), under, TIERS, counts)


@pytest.mark.parametrize(
    ("scores", "failed", "said"),
    [
        ((3.00, 3.02, 3.04), 0, "median of 3; 2.0 to 4.0 s, nine in ten within 3.8 s"),
        ((3.00, 3.02, 3.04), 0, "sd 0.02 over 3 seeds (0.66%; 95% interval 0.34% to 4.16%)"),
        ((3.0, 3.0), 0, "on each of 2 seeds"),
        ((3.0,), 0, "on one seed"),
        ((3.0, 3.1), 0, "None of 2"),
        ((3.00, 3.02, 3.04), 1, "1 of 4 evaluations of the baseline failed (25.0%;"),
        ((0.1, 0.2, -0.3), 0, "cannot be told from 0"),
    ],
)
def test_a_calibration_is_told_with_how_well_it_is_known(
    calibrated: Calibrated, scores: tuple[float, ...], failed: int, said: str
) -> None:
    assert said in " ".join(calibration_lines(calibrated(scores, failed=failed)))


def test_a_page_is_ten_lines_and_has_the_rest_on_request(calibrated: Calibrated) -> None:
    found = page(calibrated((3.00, 3.02, 3.04)), price_per_device_hour=2.0)
    short, full = page_text(found), page_text(found, in_full=True)
    assert len([line for line in short.splitlines() if line and "---" not in line]) <= 10
    assert "| target | 16 x 7 x 1 | 112 + 31 |" in short
    assert short.splitlines()[2] in full
    assert "Beside the evaluations" in full


@pytest.mark.parametrize("in_full", [False, True])
def test_without_a_calibration_no_time_is_made_up(in_full: bool) -> None:
    found = page(None, counts=(1, 4))
    assert {tier.forecast for tier in (*found.tiers, *found.elsewhere)} == {None}
    assert "| target | 4 | 8 x 15 x 1 | ? | ? | ? |" in page_text(found, in_full=in_full)


def test_the_verdict_is_part_of_what_a_tier_takes(calibrated: Calibrated) -> None:
    both = (page(calibrated((3.0, 3.1)), confirm_seeds=n).tiers[1] for n in (0, 8))
    alone, compared = both
    assert (alone.verdict_evaluations, compared.verdict_evaluations) == (0, 31)
    assert alone.forecast is not None
    assert compared.forecast is not None
    more = compared.forecast.device_hours_p50 - alone.forecast.device_hours_p50
    assert more == pytest.approx(31 * 2.5 / 3600, rel=0.2)


def test_other_numbers_of_devices_stand_side_by_side(calibrated: Calibrated) -> None:
    found = page(calibrated((3.0, 3.1, 3.2)), counts=(1, 4, 64))
    hours = [t.forecast.hours_p50 for t in found.elsewhere if t.plan.tier == "max" and t.forecast]
    assert len(hours) == 3
    assert hours == sorted(hours, reverse=True)


def test_a_program_gets_all_of_it(calibrated: Calibrated) -> None:
    found = page(calibrated((3.00, 3.02, 3.04)), counts=(4,)).as_dict()
    own = found["tiers"][1]
    assert own["verdict_evaluations"] == 31
    assert own["forecast"]["hours_p90"] > own["forecast"]["hours_p50"]
    assert own["room"]["needed"] > own["room"]["ledger"]
    assert len(own["checklist"]) == 8
    assert found["times"]["origin"] == "measured"
    assert [tier["plan"]["devices"]["count"] for tier in found["elsewhere"]] == [4, 4, 4]
