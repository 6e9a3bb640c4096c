from typing import Literal

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from objectives.api import SetupError
from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.flops import (
    forward_flops_per_token,
    matmul_flops_per_token,
    plan,
    synaptic_flops_per_token,
)
from objectives.nanochat.knobs import SPACE, SynapticKnobs
from objectives.nanochat.model import GPT

SHAPES = [
    NanochatConfig(),
    NanochatConfig(n_layer=3, n_embd=48, n_head=4, n_kv_head=2, sequence_len=64),
]


@pytest.mark.parametrize("config", SHAPES)
@pytest.mark.parametrize("model", ["gpt", "synaptic"])
def test_the_formula_agrees_with_torch_on_the_matrix_products(
    config: NanochatConfig, model: Literal["gpt", "synaptic"]
) -> None:
    config = config.model_copy(update={"model": model})
    knobs = SynapticKnobs.from_mapping(SPACE.decode(SPACE.baseline))
    gpt = GPT(config, knobs if model == "synaptic" else None, torch.Generator().manual_seed(0))
    tokens = torch.zeros(2, config.sequence_len, dtype=torch.long)
    with FlopCounterMode(display=False) as counted:
        gpt(tokens).sum().backward()
    formula = 3 * matmul_flops_per_token(config) * tokens.numel()
    if model == "synaptic":  # one product by a constant kernel: the backward pass costs it once
        kernel = 2 * config.sequence_len * (config.sequence_len // 16) * config.n_head
        formula += 2 * config.n_layer * kernel * 2 * config.sequence_len
    assert counted.get_total_flops() == pytest.approx(formula, rel=0.02)


def test_synapses_are_counted_only_where_there_are_any() -> None:
    synaptic, plain = NanochatConfig(), NanochatConfig(model="gpt")
    assert synaptic_flops_per_token(plain) == 0
    assert 0.03 < synaptic_flops_per_token(synaptic) / forward_flops_per_token(plain) < 0.15


@pytest.mark.parametrize("target", [2.6e9, 1e10, 3e10, 3.0000001e12])
@pytest.mark.parametrize("model", ["gpt", "synaptic"])
def test_the_target_is_never_exceeded_and_falls_short_by_less_than_a_step(
    target: float, model: Literal["gpt", "synaptic"]
) -> None:
    bought = plan(NanochatConfig(model=model, target_flops=target))
    assert 0 <= target - bought.train_flops < bought.flops_per_step


def test_the_default_buys_two_hundred_steps() -> None:
    assert plan(NanochatConfig()).steps >= 200


def test_a_plan_of_fewer_than_twenty_steps_is_refused_with_the_target_that_would_do() -> None:
    with pytest.raises(SetupError, match="set target_flops to at least") as error:
        plan(NanochatConfig(target_flops=1e9))
    enough = float(str(error.value).split("at least ")[2].split()[0])
    assert plan(NanochatConfig(target_flops=enough)).steps == 20
