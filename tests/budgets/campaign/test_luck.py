"""Campaigns of nothing but luck, and of a true effect: how often what is said is so."""

from itertools import product
from random import Random

from budgets.matrix import Cell, Matrix
from budgets.effects import CampaignReport, campaign_report
from budgets.plan import CampaignTerms, Condition, Factor

LEVELS = {"A": ("0", "1"), "B": ("0", "1", "2")}
SEEDS, NOISE, MANY = 4, 0.02, 300


def dice(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - nothing here is secret


def made(rng: Random, effect: float = 0.0) -> CampaignReport:
    """Scores of a seed move together; each has noise of its own; level 1 of A gains `effect`."""
    cells = list(product(*LEVELS.values()))
    conditions = [
        Condition(
            name="".join(cell),
            settings={},
            knobs={},
            levels=dict(zip(LEVELS, cell, strict=True)),
        )
        for cell in cells
    ]
    terms = CampaignTerms(
        name="luck",
        conditions=tuple(conditions),
        seeds=tuple(range(1, SEEDS + 1)),
        factors=tuple(Factor(name=name, levels=levels) for name, levels in LEVELS.items()),
    )
    seeds = [rng.gauss(3.0, 0.05) for _ in terms.seeds]
    rows = tuple(
        tuple(
            Cell(status="ok", score=seed - effect * (cell[0] == "1") + rng.gauss(0, NOISE))
            for seed in seeds
        )
        for cell in cells
    )
    return campaign_report(Matrix(terms=terms, rows=rows), 0.05, is_over=True)


def test_of_campaigns_of_nothing_but_luck_one_in_twenty_finds_an_effect() -> None:
    """300 of them: with a probability of 5 % each, 30 or more are found once in 1,000 times."""
    rng = dice(1)
    assert sum(bool(made(rng).found) for _ in range(MANY)) < 30


def test_intervals_hold_the_truth_19_times_of_20() -> None:
    rng = dice(2)
    held = total = 0
    for _ in range(MANY):
        for effect in made(rng).effects:
            own = effect.difference
            assert own.lower is not None
            assert own.upper is not None
            held += own.lower <= 0 <= own.upper
            total += 1
    assert 0.93 < held / total < 0.97


def test_an_effect_well_above_the_noise_is_found() -> None:
    """Its standard error is 0.02 * sqrt(2 / 3 / 4) = 0.008: ten of them."""
    rng = dice(3)
    found = [("1",) in {e.levels for e in made(rng, 0.08).found} for _ in range(100)]
    assert sum(found) >= 95
