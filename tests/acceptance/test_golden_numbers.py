"""The numbers that the specification fixes, read from what the product prints."""

import re
from math import ceil, floor, log2, prod
from statistics import linear_regression
from typing import Any

import pytest

from tests.product.product import Product

MINUTE = "--objective sphere --executor inline --assume-eval-seconds 60"
TINY = "--set n_layer=1 --set n_embd=16 --set sequence_len=64 --set val_windows=8"
Shape = tuple[int, ...]


def shape(plan: dict[str, Any], which: str) -> Shape:
    one = plan["plan"][which]
    return one["population"], one["generations"], one["seeds_per_candidate"]


TIERS = {  # evaluations; P, G and seeds: nominal, and carried out on so many devices
    ("phase1", "min"): (16, (8, 2, 1), {1: (8, 2, 1), 4: (8, 2, 1)}),
    ("phase1", "target"): (120, (12, 10, 1), {1: (8, 15, 1), 4: (8, 15, 1)}),
    ("phase1", "max"): (480, (16, 30, 1), {1: (8, 60, 1), 4: (8, 60, 1)}),
    ("phase2", "min"): (180, (12, 5, 3), {8: (16, 3, 3), 12: (24, 2, 3)}),
    ("phase2", "target"): (720, (16, 15, 3), {8: (16, 15, 3), 12: (24, 10, 3)}),
    ("phase2", "max"): (2160, (24, 30, 3), {8: (16, 45, 3), 12: (24, 30, 3)}),
}


@pytest.mark.parametrize(
    ("words", "devices"),
    [
        ("", (1, 4)),
        ("--from go --variant robust --set dimension=4 --set noise=0.01", (8, 12)),
    ],
)
def test_tiers_and_their_hours_at_60_seconds(
    product: Product, words: str, devices: tuple[int, int]
) -> None:
    product.stored("go")
    at = f"plan {words} {MINUTE} --devices"
    tiers = [(count, one) for count in devices for one in product.json(at, count)["tiers"]]
    assert len(tiers) == 6
    phase = "phase2" if "--from" in words else "phase1"
    for count, one in tiers:
        evaluations, nominal, resolved = TIERS[phase, one["plan"]["tier"]]
        assert one["plan"]["caps"]["evaluations"] == evaluations
        assert (shape(one, "nominal"), shape(one, "resolved")) == (nominal, resolved[count])
        hours = prod(resolved[count]) / 60
        assert one["search"]["device_hours"] == pytest.approx(hours)
        assert one["search"]["ideal_hours"] == pytest.approx(hours / count)
        assert one["search"]["evals_per_hour"] == 60


@pytest.mark.parametrize(
    ("devices", "population", "generations", "words"),
    [
        (1, 8, 15, ""),  # 2 x devices, and 8 at least
        (3, 12, 10, ""),  # a multiple of the devices, and even
        (7, 14, 8, ""),  # whole generations only
        (9, 16, 7, ""),  # 16 at most
        (12, 12, 10, ""),  # and still a multiple of the devices, where one is left
        (8, 8, 2, "--tier min"),  # 16 a generation would leave one of them
        (1, 30, 4, "--set search.population=30"),
    ],
)
def test_the_population_is_twice_the_devices_within_its_limits(
    product: Product, devices: int, population: int, generations: int, words: str
) -> None:
    at = f"plan {MINUTE} --tier target {words} --devices {devices}"
    (one,) = product.json(at)["tiers"]
    assert shape(one, "resolved") == (population, generations, 1)
    rounds = generations * ceil(population / devices)
    assert one["search"]["barrier_hours"] == pytest.approx(rounds / 60)
    (*_, idle) = (0, *re.findall(r"leave (\d+) idle", " ".join(one["plan"]["reasons"])))
    assert int(idle) == -population % devices


@pytest.mark.parametrize(
    ("campaign", "at_once", "seconds"),
    [
        ("max_workers = 2", 2, 12 * 60 / 2),
        ("max_workers = 2\nstagger_seconds = 8", 2, 12 * 60 / 2 + 8),
        ("max_workers = 2\nstagger_seconds = 8\nparallel = false", 1, 12 * 60),
        ("max_workers = 2\nstagger_seconds = 8\n[backend]\nmax_concurrent = 1", 1, 12 * 60),
    ],
)
def test_a_campaign_takes_its_runs_by_the_effective_parallelism_and_the_stagger(
    product: Product, campaign: str, at_once: int, seconds: float
) -> None:
    """And its runs are called {factor}{level}_..._s{seed}."""
    factors = "noise = [0.0, 0.01]\nsize.A = {dimension = 4}\nsize.B = {dimension = 6}"
    head = f'objective = "sphere"\n[evaluation]\nassume_eval_seconds = 60\n[factors]\n{factors}'
    product.write("c.toml", f"{head}\n[campaign]\ncontrols = false\nseeds = [1, 2, 3]\n{campaign}")
    plan = product.json("plan c.toml --set backend.executor=inline")
    assert plan["effective_parallelism"] == at_once
    assert plan["rule_of_thumb_hours"] == pytest.approx(seconds / 3600)
    cells = ("noise0_sizeA", "noise0_sizeB", "noise0.01_sizeA", "noise0.01_sizeB")
    assert plan["runs"] == [f"{cell}_s{seed}" for cell in cells for seed in (1, 2, 3)]


def test_8x1_4x2_and_2x4_are_the_same_training(product: Product) -> None:
    conditions = "".join(
        f'[[campaign.conditions]]\nname = "{micro}x{steps}"\ntraining.micro_batch_size = {micro}\n'
        f"training.gradient_accumulation_steps = {steps}\n"
        for micro, steps in ((8, 1), (4, 2), (2, 4), (4, 1))
    )
    product.write("batch.toml", f"[campaign]\nseeds = [1]\ncontrols = false\n{conditions}")
    product(f"run batch.toml {TINY} --set target_flops=6e8 --executor inline")
    product.verify()
    runs = product.json("plan batch.toml --set campaign.controls=true --assume-eval-seconds 1")[
        "runs"
    ]
    assert {"default_base_s1", "synapses-off_base_s1"} <= set(runs)
    scores = [one.score or 0.0 for one in product.books().searched]
    assert scores[:3] == pytest.approx([scores[0]] * 3, rel=1e-3)
    assert scores[3] != pytest.approx(scores[0], rel=1e-2), "another batch, another training"


def test_the_hours_of_a_training_are_its_tokens_by_their_throughput(product: Product) -> None:
    words = "plan --tier min --assume-eval-seconds 60 --set target_flops=1e14"
    for profile, length in {"fast": 1024, "balanced": 2048, "quality": 4096}.items():
        one = product.json(f"{words} --set profile={profile}")["evaluation"]
        assert one["tokens"] == one["steps"] * 32 * length
        assert one["seconds"] == pytest.approx(one["tokens"] / one["tokens_per_second"])


@pytest.mark.parametrize(
    ("sizes", "share"), [((2, 8), 0.7), pytest.param((4,), 0.6, marks=pytest.mark.slow)]
)
def test_the_largest_micro_batch_is_a_power_of_two_that_memory_is_safe_for(
    product: Product, sizes: tuple[int, ...], share: float
) -> None:
    """By the line through the measured peaks; of one size, through the origin."""
    words = f"--executor inline {' '.join(f'--size {size}' for size in sizes)}"
    found = product.json(
        f"check memory {TINY} --set target_flops=6e8 --set micro_batch_size=8 {words}"
    )
    peaks = [found["peak_bytes"][str(size)] for size in sizes]
    line = ((0, *sizes), (0, *peaks)) if len(sizes) == 1 else (sizes, peaks)
    each, base = linear_regression(*line)
    room = share * found["memory_bytes"] - base
    safe = None if each <= 0 else 2 ** floor(log2(room / each)) if room >= each else 0
    assert (found["safe_share"], found["largest"]) == (share, safe)
