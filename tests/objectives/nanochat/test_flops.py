from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from objectives.api import SetupError
from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.flops import estimate_flops, parameters, plan, require_steps
from objectives.nanochat.model import GPT
from objectives.nanochat.synaptic import release_noise

TRAIN_TOKENS = 1_000_000
SHAPES = [
    {},
    {"n_layer": 3, "n_embd": 48, "n_head": 4, "n_kv_head": 2, "sequence_len": 64},
    {"n_embd": 64, "sequence_len": 256, "n_head": 2},
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("model", ["gpt", "synaptic"])
def test_the_formula_agrees_with_torch_forward_and_backward(
    shape: dict[str, Any], model: str
) -> None:
    config = NanochatConfig(**shape, model=model)
    generator = torch.Generator().manual_seed(0)
    gpt = GPT(config, generator, torch.device("cpu"))
    tokens = torch.zeros(2, config.sequence_len, dtype=torch.long)
    with FlopCounterMode(display=False) as forward:
        loss = gpt(tokens, tokens, release_noise(config, generator))
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    formula = [per_token * tokens.numel() for per_token in estimate_flops(config)]
    assert [forward.get_total_flops(), backward.get_total_flops()] == pytest.approx(formula)
    assert parameters(config) == sum(weight.numel() for weight in gpt.parameters())


@pytest.mark.parametrize(
    ("settings", "steps", "paid_by"),
    [
        ({"num_batches": 77}, 77, "num_batches"),
        ({"num_epochs": 0.5}, 1302, "num_epochs"),
        ({"num_batches": 77, "num_epochs": 2}, 77, "num_batches"),
        ({"num_batches": 77, "target_flops": 3e10, "num_epochs": 2}, 253, "target_flops"),
    ],
)
def test_target_flops_decides_before_batches_and_batches_before_epochs(
    settings: dict[str, float], steps: int, paid_by: str
) -> None:
    bought = plan(NanochatConfig(**settings), TRAIN_TOKENS)
    assert (bought.steps, bought.paid_by) == (steps, paid_by)
    if paid_by == "target_flops":
        assert 0 <= 3e10 - bought.train < bought.per_step


def test_a_plan_of_fewer_than_twenty_steps_is_refused_with_the_target_that_would_do() -> None:
    with pytest.raises(SetupError, match="set target_flops to at least") as error:
        require_steps(plan(NanochatConfig(target_flops=1e9), TRAIN_TOKENS))
    enough = float(str(error.value).split("at least ")[2].split()[0])
    assert plan(NanochatConfig(target_flops=enough), TRAIN_TOKENS).steps == 20
