from dataclasses import replace

import pytest
import torch

from objectives.nanochat.config import BLOCK, NanochatConfig
from objectives.nanochat.gain import PostSynapticGain
from objectives.nanochat.knobs import SPACE, SynapticKnobs
from objectives.nanochat.model import GPT
from objectives.nanochat.synaptic import pools, random_odds

KNOBS = SynapticKnobs.from_mapping(SPACE.decode(SPACE.baseline))
OFF = replace(
    KNOBS,
    lambda_loge=0.0,
    barrier_strength=0.0,
    stochastic_train_frac=0.0,
    post_fast_lr=0.0,
    post_slow_lr=0.0,
)
LOUD = replace(KNOBS, lambda_loge=4.0, barrier_strength=0.5, stochastic_train_frac=0.4, alpha_c=1.0)
CONFIG = NanochatConfig(n_embd=16, n_head=4, n_kv_head=2, sequence_len=4 * BLOCK)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def model(knobs: SynapticKnobs | None, config: NanochatConfig = CONFIG) -> GPT:
    """A model whose output projections are not zero, so that everything in it matters."""
    gpt = GPT(config, knobs, generator())
    with torch.no_grad():
        for weight in gpt.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator(1)), alpha=0.3)
    return gpt


def gradients(gpt: GPT) -> list[torch.Tensor]:
    return [weight.grad for weight in gpt.parameters() if weight.grad is not None]


def tokens(batch: int = 2) -> torch.Tensor:
    return torch.randint(256, (batch, CONFIG.sequence_len), generator=generator(2))


@pytest.mark.parametrize("knobs", [None, LOUD])
@pytest.mark.parametrize("position", [1, BLOCK - 1, BLOCK, 2 * BLOCK + 3, 4 * BLOCK - 1])
def test_changing_a_token_changes_no_earlier_logit(
    knobs: SynapticKnobs | None, position: int
) -> None:
    gpt, before = model(knobs), tokens()
    after = before.clone()
    after[:, position] = (after[:, position] + 1) % 256
    one, other = gpt(before, generator()), gpt(after, generator())
    assert torch.equal(one[:, :position], other[:, :position])
    assert not torch.equal(one[:, position], other[:, position])


def test_with_all_strengths_at_zero_training_is_that_of_the_plain_model_bit_for_bit() -> None:
    plain, synaptic = model(None), model(OFF)
    for gpt in (plain, synaptic):
        gpt(tokens(), generator()).logsumexp(-1).sum().backward()
        gpt.adapt()
    assert torch.equal(plain(tokens()), synaptic(tokens()))
    for one, other in zip(gradients(plain), gradients(synaptic), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("rate", [0.01, 0.2])
@pytest.mark.parametrize("vesicles", [1.0, 18.0])
def test_vesicles_are_neither_made_nor_lost(rate: float, vesicles: float) -> None:
    knobs = replace(KNOBS, prime_rate=rate, rec_rate=0.21 - rate, init_rrp=vesicles)
    demand = BLOCK * torch.rand(3, 50, 7, generator=generator())
    ready, reserve, spent = pools(demand, knobs)
    assert torch.allclose(ready + reserve + spent, torch.tensor(2 * vesicles), rtol=1e-5)
    for pool in (ready, reserve, spent):
        assert pool.min() >= -1e-5 * vesicles
        assert pool.max() <= 2 * vesicles * (1 + 1e-5)
    assert ready.max() <= vesicles * (1 + 1e-5)


def test_a_synapse_in_demand_is_depleted_and_one_at_rest_is_not() -> None:
    demand = torch.zeros(1, 4, 2)
    demand[..., 0] = BLOCK / 2
    ready, _, _ = pools(demand, KNOBS)
    assert ready[0, -1, 0] < KNOBS.init_rrp / 2
    assert ready[0, -1, 1] == KNOBS.init_rrp


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_gradients_are_finite_and_reach_every_weight_at_the_corners_of_the_space(
    end: float,
) -> None:
    gpt = model(SynapticKnobs.from_mapping(SPACE.decode([end] * SPACE.dimension)))
    gpt(tokens(), generator()).logsumexp(-1).sum().backward()
    for gradient in gradients(gpt):
        assert gradient.isfinite().all()
        assert gradient.any()


def test_releases_are_random_in_training_only_and_follow_their_generator() -> None:
    gpt = model(LOUD)
    assert torch.equal(gpt(tokens()), gpt(tokens()))
    assert torch.equal(gpt(tokens(), generator(3)), gpt(tokens(), generator(3)))
    assert not torch.equal(gpt(tokens(), generator(3)), gpt(tokens(), generator(4)))


def test_noise_touches_the_stated_share_of_the_edges_and_favours_no_side() -> None:
    odds = random_odds((4, 200, 200), 0.3, generator())
    touched = odds[odds != 1.0]
    assert touched.numel() / odds.numel() == pytest.approx(0.3, abs=0.01)
    assert (touched > 1.0).float().mean() == pytest.approx(0.5, abs=0.01)


def gains(fast: float = 1e-2, slow: float = 1e-3) -> PostSynapticGain:
    return PostSynapticGain(
        replace(KNOBS, post_fast_lr=fast, post_slow_lr=slow), channels=4, sequence_len=BLOCK
    )


ACTIVITY = torch.tensor([4.0, 2.0, 1.0, 0.5]).expand(8, 4)


def test_active_channels_gain_and_the_slow_trace_outlasts_the_fast_one() -> None:
    gain = gains()
    for _ in range(20):
        gain(ACTIVITY)
        gain.adapt()
    assert gain.gain[0] > 1.0 > gain.gain[3]
    fast, slow = gain.fast.clone(), gain.slow.clone()
    for _ in range(100):
        gain(torch.ones(8, 4))
        gain.adapt()
    assert gain.fast.abs().max() < 0.01 * fast.abs().max()
    assert torch.allclose(gain.slow, slow)


def test_evaluation_leaves_the_gains_alone() -> None:
    gain = gains()
    gain(ACTIVITY)
    gain.eval()
    before = gain.activity.clone()
    gain(2.0 * ACTIVITY.flip(1))
    assert torch.equal(gain.activity, before)


@pytest.mark.parametrize("value", [0.0, 1e30, float("nan"), float("inf")])
def test_gains_stay_bounded_whatever_the_activity(value: float) -> None:
    gain = gains(fast=1e3, slow=1e3)
    for _ in range(5):
        gain(torch.tensor([value, 1.0, 2.0, 3.0]).expand(8, 4))
        gain.adapt()
    assert gain.gain.isfinite().all()
    assert gain.gain.min() >= 0.36
    assert gain.gain.max() <= 2.72
