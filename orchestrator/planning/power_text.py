"""What a tier can tell, in a table."""

from collections.abc import Iterator

from budgets.table import table
from budgets.terms import Plan
from budgets.words import percent
from orchestrator.planning.page import Page, TierPage
from orchestrator.planning.plan import no_share
from orchestrator.planning.power import GAINS, Detected, Power


def power_lines(page: Page) -> list[str]:
    """The smallest gain that is seen, and how probably gains of some sizes are."""
    gains = (f">a gain of {percent(gain)}" for gain in GAINS)
    columns = ("tier", "", ">smallest seen 8 of 10 times", *gains)
    rows = [row for tier in page.tiers for row in _rows(tier)]
    known = any(tier.comparison or tier.power for tier in page.tiers)
    figures = [*table(columns, rows), ""] if known else []
    return ["## What it can tell", *figures, " ".join(_words(page))]


def _rows(tier: TierPage) -> Iterator[tuple[object, ...]]:
    name = tier.plan.tier
    if tier.plan.confirmation is None:
        yield name, "nothing: it has no verdict", "-", *("-" for _ in GAINS)
        return
    least = "?" if tier.smallest is None else f"{tier.smallest.gain:.2%}"
    chances = [f"{one.shown:.0%}, {one.go:.0%}" for one in tier.comparison] or ["?"] * len(GAINS)
    yield name, "were its winner so much better", least, *chances
    if tier.power is not None:
        yield "", "were so much to be found", "", *map(_rate, tier.power.detected)
        yield "", "... Go, 95% interval", "", *map(_interval, tier.power.detected)


def _rate(found: Detected) -> str:
    return f"{found.shown / found.runs:.0%}, {found.go / found.runs:.0%}"


def _interval(found: Detected) -> str:
    low, high = found.go_interval
    return f"{low:.0%} to {high:.0%}"


def _words(page: Page) -> Iterator[str]:
    compared = [tier for tier in page.tiers if tier.plan.confirmation is not None]
    if not compared:
        yield "Without a comparison on fresh seeds it can say that the plumbing works, and no more."
        return
    if compared[0].comparison:
        yield "With what probability a gain is shown, then that it is a Go."
    yield from _verdict(compared[0].plan)
    yield from _noise(compared[0], page)
    powers = [tier.power for tier in compared if tier.power is not None]
    if powers:
        yield from _imagined(powers)
    else:
        yield (
            "With what probability a search finds such a winner, `--power` simulates, in some 30 s "
            "a tier."
        )


def _verdict(plan: Plan) -> Iterator[str]:
    confirmation, limits = plan.confirmation, plan.thresholds
    assert confirmation is not None
    yield (
        f"The best of {2 + confirmation.luckiest} finalists meets the baseline on "
        f"{confirmation.seeds} fresh seeds; a Go asks for a gain of {percent(limits.go_gain)}, "
        f"and that luck alone does that once in {1 / limits.go_level:.0f}."
    )


def _noise(tier: TierPage, page: Page) -> Iterator[str]:
    own, calibration = page.basis.own_noise, page.basis.calibration
    if why := no_share(calibration):
        yield f"No gain can be told: {why}."
        return
    if own is None or calibration is None:
        yield "No noise was measured, so nobody knows what gain would be seen."
        return
    if own == 0:
        yield "The calibrated scores do not differ, so any gain would be seen."
        return
    latest = page.basis.latest
    if latest is not None and latest.own_noise is not None:
        yield (
            f"Two points on one seed differ by luck by {own:.2%} of the score each, as "
            f"{latest.run_id} has measured."
        )
    else:
        yield (
            f"Assumed: of the calibrated noise, {own:.2%} of the score, a seed moves none of two "
            "scores alike; where it does, smaller gains are seen."
        )
    if tier.smallest is not None:
        yield (
            f"{len(calibration.samples)} seeds leave {tier.smallest.low:.2%} to "
            f"{tier.smallest.high:.2%} possible as the smallest."
        )


def _imagined(powers: list[Power]) -> Iterator[str]:
    first = powers[0]
    runs = ", ".join(str(power.detected[0].runs) for power in powers)
    matter = first.assumptions.knobs_that_matter
    said = "as checks have shown" if first.assumptions.by_checks else "assumed"
    yield (
        f"The rows below each tier's first are simulated searches ({runs} of each gain): of "
        f"quadratics, the lowest point anywhere and better by so much; {matter:.0%} of the knobs "
        f"matter ({said}), each by itself, the steepest with "
        f"{first.assumptions.conditioning:g} times the curvature of the flattest (assumed); "
        "nothing fails."
    )
    if any(power.method != power.asked_method for power in powers):
        yield (
            f"Longer searches are simulated as {powers[-1].method}, which is quicker and finds a "
            "little less."
        )
