import math

import pytest
import torch
from torch import Tensor

from objectives.nanochat.config import BLOCK, NanochatConfig
from objectives.nanochat.model import GPT, CausalSelfAttention
from objectives.nanochat.synaptic import (
    PostSynapticGains,
    Release,
    block_chain,
    block_maps,
    pools,
    release_noise,
)

CONFIG = NanochatConfig(n_embd=16, n_head=4, n_kv_head=2, sequence_len=4 * BLOCK)
OFF = CONFIG.with_knobs(
    {
        "lambda_loge": 0.0,
        "barrier_strength": 0.0,
        "stochastic_train_frac": 0.0,
        "post_fast_lr": 0.0,
        "post_slow_lr": 0.0,
    }
)
LOUD = CONFIG.with_knobs(
    {"lambda_loge": 4.0, "barrier_strength": 0.5, "stochastic_train_frac": 0.4, "alpha_c": 1.0}
)
PLAIN = CONFIG.model_copy(update={"model": "gpt"})
CPU = torch.device("cpu")


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def model(config: NanochatConfig) -> GPT:
    """A model whose output projections are not zero, so that everything in it matters."""
    gpt = GPT(config, generator(), CPU)
    with torch.no_grad():
        for weight in gpt.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator(1)), alpha=0.3)
    return gpt


def gradients(gpt: GPT) -> list[Tensor]:
    return [weight.grad for weight in gpt.parameters() if weight.grad is not None]


def tokens(batch: int = 2) -> Tensor:
    return torch.randint(256, (batch, CONFIG.sequence_len), generator=generator(2))


def noise(config: NanochatConfig, seed: int = 0) -> Tensor | None:
    return release_noise(config, generator(seed))


@pytest.mark.parametrize("config", [PLAIN, LOUD], ids=["plain", "synaptic"])
@pytest.mark.parametrize("position", [1, BLOCK, 2 * BLOCK + 3])
def test_changing_a_token_changes_no_earlier_logit(config: NanochatConfig, position: int) -> None:
    gpt, before = model(config), tokens()
    after = before.clone()
    after[:, position] = (after[:, position] + 1) % 256
    one, other = gpt.logits(before, noise(config)), gpt.logits(after, noise(config))
    assert torch.equal(one[:, :position], other[:, :position])
    assert not torch.equal(one[:, position], other[:, position])


def test_with_all_strengths_at_zero_training_is_that_of_the_plain_model_bit_for_bit() -> None:
    plain, synaptic = model(PLAIN), model(OFF)
    for gpt in (plain, synaptic):
        gpt(tokens(), tokens(), noise(gpt.config)).backward()
        gpt.adapt()
    assert torch.equal(plain.logits(tokens()), synaptic.logits(tokens()))
    for one, other in zip(gradients(plain), gradients(synaptic), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("config", [CONFIG, LOUD], ids=["default", "loud"])
@pytest.mark.parametrize("length", [BLOCK, 3 * BLOCK])
def test_the_gradient_of_a_release_is_that_of_its_arithmetic(
    config: NanochatConfig, length: int
) -> None:
    release = Release(config.model_copy(update={"sequence_len": length})).double()
    shape = (1, 2, length, length)
    scores = torch.randn(shape, generator=generator(), dtype=torch.float64, requires_grad=True)
    hidden = torch.full((length, length), -30.0, dtype=torch.float64).triu(1)
    odds = torch.randn(shape[1:], generator=generator(1), dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda s: release(s + hidden, odds), (scores,), fast_mode=True)
    assert torch.autograd.gradcheck(lambda s: release(s + hidden), (scores,), fast_mode=True)


def by_token(config: NanochatConfig, scores: Tensor, noise: Tensor) -> Tensor:
    """The logits of one head, written down token by token: `scores` and `noise` (query, key)."""
    length = len(scores)
    logits = torch.full((length, length), -torch.inf, dtype=torch.float64)
    for key in range(length):
        ready, reserve, spent, residual = 1.0, 1.0, 0.0, 0.0
        for start in range(0, length, BLOCK):
            calcium, released = config.alpha_c + residual, []
            for query in range(start, start + BLOCK):
                drive, p = 0.0, 0.0
                if query >= key:
                    score = scores[query, key].item()
                    drive = 1.0 / (1.0 + math.exp(-score))
                    odds = calcium * math.exp(score + noise[query, key].item())
                    p = odds / (1.0 + odds)
                    bias = config.lambda_loge * math.log(p * ready + 0.01)
                    logits[query, key] = score + bias - config.barrier_strength * (query - key)
                residual = config.tau_c * residual + config.alpha_c * drive
                released.append(p)
            for _ in range(BLOCK):
                gone = ready * sum(released) / BLOCK / config.init_rrp
                primed = config.prime_rate * (reserve - (ready - gone))
                back = config.rec_rate * spent
                ready, reserve, spent = (
                    ready - gone + primed,
                    reserve - primed + back,
                    spent + gone - back,
                )
    return logits


@pytest.mark.parametrize("config", [CONFIG, LOUD], ids=["default", "loud"])
def test_a_release_is_what_is_written_down_token_by_token(config: NanochatConfig) -> None:
    length = config.sequence_len
    scores = 2.0 * torch.randn(length, length, generator=generator(), dtype=torch.float64)
    odds = torch.randn(length, length, generator=generator(1), dtype=torch.float64)
    masked = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
    logits = Release(config).double()(masked[None, None], odds[None])[0, 0]
    assert torch.allclose(logits, by_token(config, scores, odds), atol=1e-6)


def run_pools(demand: Tensor, rates: tuple[float, float], vesicles: float, block: int) -> Tensor:
    return pools(block_maps(1.0 - demand / vesicles, block_chain(*rates, block=block)))


RATES = [(0.01, 0.2), (0.2, 0.01), (0.05, 0.05)]


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("vesicles", [1.0, 18.0])
def test_vesicles_are_neither_made_nor_lost(rates: tuple[float, float], vesicles: float) -> None:
    demand = torch.rand(3, 2, 50, 7, generator=generator(), dtype=torch.float64)
    ready, reserve = run_pools(demand, rates, vesicles, BLOCK)
    spent = 2.0 - ready - reserve
    for pool in (ready, reserve, spent):
        assert pool.min() >= -1e-9
        assert pool.max() <= 2.0 + 1e-9


def test_noise_touches_the_stated_share_of_the_edges_and_favours_no_side() -> None:
    config = NanochatConfig(sequence_len=208, stochastic_train_frac=0.3)
    added = noise(config)
    assert added is not None
    assert added.shape == (1, 208, 208)
    touched = added[added != 0.0]
    assert touched.numel() / added.numel() == pytest.approx(0.3, abs=0.01)
    share_of_odds = touched.sigmoid()  # uniform, but for the margin
    for share in (0.1, 0.25, 0.75, 0.9):
        assert share_of_odds.quantile(share).item() == pytest.approx(share, abs=0.02)
    assert added.abs().max() < 4.0


def gains(fast: float = 1e-2, slow: float = 1e-3) -> PostSynapticGains:
    config = NanochatConfig(n_layer=2, n_embd=4, post_fast_lr=fast, post_slow_lr=slow)
    return PostSynapticGains(config)


ACTIVITY = torch.tensor([4.0, 2.0, 1.0, 0.5]).expand(2, 8, 4)
EVEN = torch.ones(2, 8, 4)


def adapted(gain: PostSynapticGains, activity: Tensor, times: int) -> None:
    """The first layer sees `activity`, the second the same everywhere."""
    for _ in range(times):
        gain(activity, 0)
        gain(EVEN, 1)
        gain.adapt()


def test_active_channels_gain_and_the_slow_trace_outlasts_the_fast_one() -> None:
    gain = gains()
    adapted(gain, ACTIVITY, 20)
    assert gain.gain[0, 0] > 1.0 > gain.gain[0, 3]
    assert torch.equal(gain.gain[1], torch.ones(4))
    assert torch.equal(gain(EVEN, 0), gain.gain[0].expand(2, 8, 4))
    fast, slow = gain.traces.clone()
    adapted(gain, EVEN, 100)
    assert gain.traces[0].abs().max() < 0.01 * fast.abs().max()
    assert gain.traces[1].abs().max() > 0.5 * slow.abs().max()


@pytest.mark.parametrize("value", [0.0, 1e30, float("nan"), float("inf")])
def test_gains_stay_bounded_whatever_the_activity(value: float) -> None:
    gain = gains(fast=1e3, slow=1e3)
    adapted(gain, torch.tensor([value, 1.0, 2.0, 3.0]).expand(2, 8, 4), 5)
    assert gain.gain.isfinite().all()
    assert gain.gain.min() >= 0.36
    assert gain.gain.max() <= 2.72


def test_the_fused_kernel_attends_like_the_explicit_one() -> None:
    explicit, fused = model(PLAIN), model(PLAIN)
    for module in fused.modules():
        if isinstance(module, CausalSelfAttention):
            module.is_fused = True
    assert torch.allclose(explicit.logits(tokens()), fused.logits(tokens()), atol=1e-4)
