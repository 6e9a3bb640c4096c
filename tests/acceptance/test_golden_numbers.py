"""The numbers that the specification fixes, read from what the product prints."""

from math import ceil, floor, log2
from statistics import linear_regression
from typing import Any

import pytest

from tests.acceptance.books import Books
from tests.acceptance.product import Product

SPHERE = ("--objective", "sphere", "--executor", "inline")
MINUTE = (*SPHERE, "--assume-eval-seconds", 60)
TINY = ("n_layer=1", "n_embd=16", "sequence_len=64", "target_flops=6e8", "val_windows=8")


def shape(plan: dict[str, Any], which: str) -> tuple[int, int, int]:
    one = plan["plan"][which]
    return one["population"], one["generations"], one["seeds_per_candidate"]


@pytest.mark.parametrize(
    ("tier", "nominal", "evaluations", "one_device", "four_devices"),
    [
        ("min", (8, 2, 1), 16, 0.27, 0.07),
        ("target", (12, 10, 1), 120, 2.0, 0.5),
        ("max", (16, 30, 1), 480, 8.0, 2.0),
    ],
)
def test_tiers_of_phase_1_and_their_hours_at_60_seconds(
    product: Product, tier: str, nominal: object, evaluations: int, one_device: float,
    four_devices: float,
) -> None:  # fmt: skip
    plan = product.json("plan", "phase1", *MINUTE, "--tier", tier, "--devices", "1,4")
    assert {shape(one, "nominal") for one in plan["elsewhere"]} == {nominal}
    for one, hours in zip(plan["elsewhere"], (one_device, four_devices), strict=True):
        assert one["plan"]["caps"]["evaluations"] == evaluations
        assert round(one["expected"]["ideal_hours"], 2) == hours
        assert one["expected"]["device_hours"] == pytest.approx(evaluations / 60)
        assert one["expected"]["evals_per_hour"] == 60


def test_tiers_of_phase_2(product: Product) -> None:
    go = ("--run-id", "go", "--generations", 3, "--population", 8, "--rung", 0)
    product("phase1", *SPHERE, "--tier", "target", "--set", "noise=0.001", *go)
    product.verify("go")
    plan = product.json("plan", "phase2", *SPHERE, "--set", "noise=0.001", "--from", "go",
                        "--variant", "robust", "--devices", "8,12")  # fmt: skip
    plans = {(one["plan"]["tier"], one["plan"]["devices"]["count"]): one
             for one in plan["elsewhere"]}  # fmt: skip
    golden = {
        "min": ((12, 5, 3), 180, (16, 3, 3), (24, 2, 3)),
        "target": ((16, 15, 3), 720, (16, 15, 3), (24, 10, 3)),
        "max": ((24, 30, 3), 2160, (16, 45, 3), (24, 30, 3)),
    }
    for tier, (nominal, evaluations, *resolved) in golden.items():
        both = [plans[tier, count] for count in (8, 12)]
        assert [shape(one, "nominal") for one in both] == [nominal] * 2
        assert [one["plan"]["caps"]["evaluations"] for one in both] == [evaluations] * 2
        assert [shape(one, "resolved") for one in both] == resolved


POPULATIONS = {  # of tier target (120 evaluations), by devices: P and G
    1: (8, 15),  # 2 x devices, and 8 at least
    3: (12, 10),  # a multiple of the devices, and even
    4: (8, 15),
    5: (10, 12),
    7: (14, 8),  # whole generations only
    8: (16, 7),
    9: (16, 7),  # 16 at most
    12: (12, 10),  # and still a multiple of the devices, where one is left
    24: (16, 7),
}


def test_the_population_is_twice_the_devices_within_its_limits(product: Product) -> None:
    devices = ",".join(map(str, POPULATIONS))
    words = ("--tier", "target", "--devices", devices)
    for one in product.json("plan", "phase1", *MINUTE, *words)["elsewhere"]:
        count, (population, generations, seeds) = (
            one["plan"]["devices"]["count"],
            shape(one, "resolved"),
        )
        assert (population, generations) == POPULATIONS[count], count
        assert population * generations <= 120
        rounds = generations * ceil(population * seeds / count)
        assert one["expected"]["barrier_hours"] == pytest.approx(rounds / 60)
        assert any("idle" in why for why in one["plan"]["reasons"]) == (population % count > 0)
    (one,) = product.json("plan", "phase1", *MINUTE, "--tier", "target", "--population", 30)[
        "tiers"
    ]
    assert shape(one, "resolved") == (30, 4, 1)
    words = ("--tier", "min", "--devices", "8")  # 16 a generation would leave one of them
    assert shape(product.json("plan", "phase1", *MINUTE, *words)["elsewhere"][0], "resolved") == (
        *(8, 2, 1),
    )


@pytest.mark.parametrize(
    ("campaign", "at_once", "seconds"),
    [
        ("max_workers = 2", 2, 12 * 60 / 2),
        ("max_workers = 2\nstagger_seconds = 8", 2, 12 * 60 / 2 + 8),
        ("max_workers = 1\nstagger_seconds = 8", 1, 12 * 60),
        ("max_workers = 2\nstagger_seconds = 8\nparallel = false", 1, 12 * 60),
        ("max_workers = 2\nstagger_seconds = 8\n[backend]\nmax_concurrent = 1", 1, 12 * 60),
    ],
)
def test_a_campaign_takes_its_runs_by_the_effective_parallelism_and_the_stagger(
    product: Product, campaign: str, at_once: int, seconds: float
) -> None:
    """And its runs are called {factor}{level}_..._s{seed}; at a setting's default, a control."""
    factors = "[factors]\nnoise = [0.0, 0.01]\n[factors.size]\nA = {dimension = 4}\n"
    product.write("c.toml", f"""
objective = "sphere"
[evaluation]
assume_eval_seconds = 60
{factors}B = {{dimension = 6}}
[campaign]
controls = false
seeds = [1, 2, 3]
{campaign}
""")  # fmt: skip
    plan = product.json("plan", "campaign", "c.toml", "--set", "backend.executor=inline")
    assert plan["effective_parallelism"] == at_once
    assert plan["rule_of_thumb_hours"] == pytest.approx(seconds / 3600)
    cells = ("noise0_sizeA", "noise0_sizeB", "noise0.01_sizeA", "noise0.01_sizeB")
    assert plan["runs"] == [f"{cell}_s{seed}" for cell in cells for seed in (1, 2, 3)]
    assert plan["total_runs"] == 12


def test_controls_end_in_base(product: Product) -> None:
    product.write("f.toml", "[training]\ntarget_flops = 3e10\n[factors]\nn_layer = [1, 3]\n"
                  "[campaign]\nseeds = [7]\n[evaluation]\nassume_eval_seconds = 60\n")  # fmt: skip
    names = {one["name"] for one in product.json("plan", "campaign", "f.toml")["conditions"]}
    assert names == {"n_layer1", "n_layer3", "default_base", "synapses-off_base"}


def test_8x1_4x2_and_2x4_are_the_same_training(product: Product) -> None:
    cuts = ((8, 1), (4, 2), (2, 4), (4, 1))
    conditions = "".join(
        f'[[campaign.conditions]]\nname = "{micro}x{steps}"\ntraining.micro_batch_size = {micro}\n'
        f"training.gradient_accumulation_steps = {steps}\n"
        for micro, steps in cuts
    )
    product.write("batch.toml", f"[campaign]\nseeds = [1]\ncontrols = false\n{conditions}")
    sets = [word for setting in TINY for word in ("--set", setting)]
    product("run", "batch.toml", *sets, "--set", "backend.executor=inline")
    product.verify()
    same_1, same_2, same_4, other = (
        one.score or 0.0 for one in Books.of(product.run_directory()).searched
    )
    assert (same_2, same_4) == pytest.approx((same_1, same_1), rel=1e-3)
    assert other != pytest.approx(same_1, rel=1e-2), "another effective batch is another training"


@pytest.mark.parametrize(("sizes", "share"), [("2,8", 0.7), ("4", 0.6)])
def test_the_largest_micro_batch_is_a_power_of_two_that_memory_is_safe_for(
    product: Product, sizes: str, share: float
) -> None:
    """By the line through the measured peaks; of one size, through the origin."""
    sets = [word for setting in (*TINY, "micro_batch_size=8") for word in ("--set", setting)]
    words = ("--executor", "inline", "--seeds", 1, "--micro-batches", sizes)
    found = product.json("calibrate", *sets, *words)
    peaks = {int(size): peak for size, peak in found["peak_bytes"].items()}
    assert sorted(peaks) == [int(size) for size in sizes.split(",")]
    each, base = (
        linear_regression(list(peaks), list(peaks.values()))
        if len(peaks) > 1
        else (peaks[int(sizes)] / int(sizes), 0.0)
    )
    room = share * found["memory_bytes"] - base
    safe = None if each <= 0 else 2 ** floor(log2(room / each)) if room >= each else 0
    assert (found["safe_share"], found["largest"]) == (share, safe)
