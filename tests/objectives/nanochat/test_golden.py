"""Scores, steps, FLOPs and data as stored in `golden.json`; `--approve` stores them again.

A rewrite of the training core changes none of them. Scores are compared bit for bit where torch
and its vector instructions are those of the stored file, and to 1e-4 elsewhere.
"""

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch

from objectives.api import Measurement
from objectives.nanochat.objective import NanochatObjective

GOLDEN = Path(__file__).with_name("golden.json")
CORE = f"{torch.__version__} {torch.backends.cpu.get_cpu_capability()}"

SETTINGS: dict[str, dict[str, Any]] = {
    "gpt": {"model": "gpt"},
    "synaptic": {},
    "synaptic by flops": {"target_flops": 3e8},
    "deep, grouped heads": {"n_layer": 3, "n_head": 4, "n_kv_head": 2, "n_embd": 32},
    "accumulation": {"gradient_accumulation_steps": 2, "micro_batch_size": 1},
    "checkpointing": {"gradient_checkpointing": True, "target_flops": 3e8},
    "bfloat16": {"dtype": "bfloat16"},
    "schedule": {"warmup_ratio": 0.3, "warmdown_ratio": 0.9, "weight_decay": 0.2},
    "loud synapses": {"stochastic_train_frac": 0.4, "lambda_loge": 3.0, "post_fast_lr": 0.01},
    "epochs": {"model": "gpt", "num_epochs": 0.2, "num_batches": None},
    "more than one chunk of batches": {"model": "gpt", "num_batches": 70},
}


def check(name: str, now: dict[str, Any], request: pytest.FixtureRequest) -> dict[str, Any]:
    """What is stored under that name; with `--approve` what is now."""
    if request.config.getoption("--approve"):
        golden = json.loads(GOLDEN.read_text())
        GOLDEN.write_text(json.dumps(golden | {name: now}, indent=1, sort_keys=True) + "\n")
    stored: dict[str, Any] = json.loads(GOLDEN.read_text())[name]
    return stored


@pytest.mark.parametrize("name", SETTINGS)
def test_an_evaluation_scores_what_is_stored(
    name: str,
    objective: Callable[..., NanochatObjective],
    evaluate: Callable[..., Measurement],
    request: pytest.FixtureRequest,
) -> None:
    beats: list[Mapping[str, float]] = []
    measured = evaluate(objective(25, **SETTINGS[name]), 7, beats)
    assert beats[-1]["step"] == measured.steps
    curve = [beat["loss"] for beat in beats if "loss" in beat and beat["step"] % 10 == 0]
    now = {
        "core": CORE,
        "score": measured.score,
        "steps": measured.steps,
        "tokens": measured.tokens,
        "train_flops": measured.train_flops,
        "eval_flops": measured.eval_flops,
        "losses_sha256": sha256(json.dumps(curve).encode()).hexdigest(),
    }
    expected = check(name, now, request)
    if expected["core"] != CORE:
        for found in (now, expected):
            del found["core"], found["losses_sha256"]
        assert now == pytest.approx(expected, rel=1e-4)
    else:
        assert now == expected


def test_the_built_in_texts_are_those_that_are_stored(request: pytest.FixtureRequest) -> None:
    found = {}
    for name in ("builtin:wiki-v1", "builtin:kjv-v1"):
        found[name] = dict(NanochatObjective.from_settings("nanochat", {"data": name}).provenance)
        del found[name]["data"]
    assert found == check("data", found, request)
