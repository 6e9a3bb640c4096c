"""Synapses in attention: short-term plasticity of releases, and lasting post-synaptic gains.

Plasticity is a causal, conserving recurrence over blocks of queries.

Every key of every head is a synapse. A query that matches the key drives it: calcium flows in and
decays, calcium sets the odds of release, release depletes a pool of ready vesicles, and the spent
ones return by way of a reserve. What the synapse releases enters the attention logits.

Model: M. Tsodyks and H. Markram, "The neural code between neocortical pyramidal neurons depends on
neurotransmitter release probability", PNAS 94 (1997) 719-723; facilitation by residual calcium as
in M. Tsodyks, K. Pawelzik and H. Markram, "Neural networks with dynamic synapses", Neural
Computation 10 (1998) 821-835. The state a query sees is that at the start of its block, so that
within a block everything is one batch of arithmetic.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from objectives.nanochat.config import BLOCK, NanochatConfig

RELEASE_FLOOR = 0.01  # of what a fresh synapse surely releases; bounds log(release) from below
ODDS_MARGIN = 0.02  # keeps the random odds of a release between 1/49 and 49
FORGETTING = (0.05, 0.005)  # of the fast and the slow trace, per optimiser step
STRENGTH = 8.0  # of a trace in the exponent of the gain
SURPRISE = 3.0  # standard deviations at which an activity is cut off
TINY = 1e-6


def _through_sigmoid(gradient: Tensor, sigmoid: Tensor) -> Tensor:
    """Turn the gradient by a sigmoid into that by what went in, in place."""
    found: Tensor = torch.ops.aten.sigmoid_backward(gradient, sigmoid, grad_input=gradient)
    return found


class Release(nn.Module):
    """What the synapses of one attention layer add to its logits."""

    decay: Tensor
    chain: Tensor
    barrier: Tensor
    constants: Tensor

    def __init__(self, config: NanochatConfig) -> None:
        super().__init__()
        position = torch.arange(config.sequence_len)
        tables = {
            "decay": calcium_decay(config),
            "barrier": -config.barrier_strength * (position[:, None] - position),
            "chain": block_chain(config.prime_rate, config.rec_rate),
            "constants": torch.tensor([config.alpha_c, config.init_rrp, config.lambda_loge]),
        }
        for name, table in tables.items():
            self.register_buffer(name, table.float(), persistent=False)

    def forward(self, scores: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return logits for `scores` (batch, head, query, key), -inf where a query may not look.

        `noise` (head, query, key) is added to the log-odds of release; None adds nothing.
        """
        with torch.autocast(scores.device.type, enabled=False):
            logits: Tensor = _Release.apply(  # type: ignore[no-untyped-call]
                scores.to(self.decay.dtype),
                noise,
                self.decay,
                self.chain,
                self.barrier,
                self.constants,
            )
        return logits


class _Release(torch.autograd.Function):
    """Scores to logits. The gradient is written out: autograd's own record of these many small
    steps took a third of a training step on a CPU."""

    @staticmethod
    def forward(  # noqa: PLR0913, PLR0917 - autograd takes its tensors one by one
        ctx: Any,
        scores: Tensor,
        noise: Tensor | None,
        decay: Tensor,
        chain: Tensor,
        barrier: Tensor,
        constants: Tensor,
    ) -> Tensor:
        influx, vesicles, weight = constants.unbind()
        batch, heads, length, _ = scores.shape
        blocks = (batch, heads, length // BLOCK, BLOCK, length)
        drive = scores.sigmoid()
        calcium = influx + torch.matmul(decay, drive)
        log_odds = scores.view(blocks) + calcium.log().unsqueeze(3)
        if noise is not None:
            log_odds += noise.view(blocks[1:])
        probability = log_odds.sigmoid_()
        maps = block_maps(1.0 - probability.sum(3) / (BLOCK * vesicles), chain)
        states = pools(maps)
        ctx.save_for_backward(drive, calcium, probability, states, maps, decay, constants)
        released = _released(probability, states).log_().view_as(scores)
        return torch.addcmul(scores, released, weight, out=released).add_(barrier)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        drive, calcium, probability, states, maps, decay, constants = ctx.saved_tensors
        _, vesicles, weight = constants.unbind()
        gradient = gradient.contiguous()
        released = _released(probability, states)  # made again, not kept
        to_released = torch.div(gradient.view_as(released), released, out=released).mul_(weight)
        room = to_released * probability
        to_kept = through_pools(room.sum(3), states, maps)
        to_demand = to_kept.contiguous().mul_(-1.0 / (BLOCK * vesicles)).unsqueeze(3)
        torch.addcmul(to_demand, to_released, states[0].unsqueeze(3), out=room)
        to_log_odds = _through_sigmoid(room, probability)
        to_drive = torch.matmul(decay.mT, to_log_odds.sum(3).div_(calcium))
        to_scores = to_log_odds.view_as(gradient).add_(gradient)
        return to_scores.add_(_through_sigmoid(to_drive, drive)), None, None, None, None, None


def _released(probability: Tensor, states: Tensor) -> Tensor:
    floor = probability.new_full((), RELEASE_FLOOR)
    return torch.addcmul(floor, probability, states[0].unsqueeze(3))


def calcium_decay(config: NanochatConfig) -> Tensor:
    """Return the calcium that each query's full drive leaves at a block's start (block, query)."""
    token = torch.arange(config.sequence_len)
    age = token[::BLOCK, None] - 1 - token
    left = config.alpha_c * config.tau_c ** age.clamp(min=0).double()
    return torch.where(age >= 0, left, 0.0)


def block_chain(prime_rate: float, rec_rate: float, block: int = BLOCK) -> Tensor:
    """Return the map of `block` tokens on (ready, reserve, 1), as polynomials in the kept share.

    Pools count in units of the ready pool at rest; the reserve is as large, so 2 is conserved and
    the spent are 2 - ready - reserve. Per token, of the ready a share `kept` is not released; of
    that, `prime_rate` goes back to the reserve, which gives as large a share of itself; `rec_rate`
    of the spent go to the reserve. At rest nothing moves.

    Returns (power of kept, 4, 3), float64: rows are ready, reserve and their slopes by `kept`. The
    chain is linear, so this is exact: an even demand has the same effect however tokens fall into
    blocks, and a few operations stand for all the steps of a block.
    """
    p, r = prime_rate, rec_rate
    fixed = torch.tensor([[0, p, 0], [-r, 1 - p - r, 2 * r], [0, 0, 1]], dtype=torch.float64)
    by_kept = torch.tensor([[1 - p, 0, 0], [p, 0, 0], [0, 0, 0]], dtype=torch.float64)
    powers = [torch.eye(3, dtype=torch.float64)]
    nothing = torch.zeros(3, 3, dtype=torch.float64)
    for _ in range(block):
        shifted = zip([*powers, nothing], [nothing, *powers], strict=True)
        powers = [fixed @ same + by_kept @ lower for same, lower in shifted]
    values = torch.stack(powers)[:, :2]
    exponents = torch.arange(1, block + 1, dtype=torch.float64).view(-1, 1, 1)
    slopes = torch.cat((values[1:] * exponents, torch.zeros(1, 2, 3, dtype=torch.float64)))
    return torch.cat((values, slopes), 1)


def block_maps(kept: Tensor, chain: Tensor) -> Tensor:
    """Return `chain` at the shares `kept` (batch, head, block, key) of every block but the last:
    (4, 3, block - 1, batch, head, key)."""
    kept = kept.movedim(2, 0)[:-1]
    powers, exact = kept.new_empty(len(chain) - 1, *kept.shape), kept.double()
    power = torch.ones_like(exact)
    for rounded in powers:  # on a CPU the bits of cumprod, in a seventh of its time
        rounded.copy_(power.mul_(exact))
    maps = torch.addmm(chain[0].reshape(-1, 1), chain[1:].flatten(1).T, powers.flatten(1))
    return maps.view(4, 3, *kept.shape)


def pools(maps: Tensor) -> Tensor:
    """Return ready and reserve at the start of every block (2, batch, head, block, key)."""
    states = [maps.new_ones(2, *maps.shape[3:])]
    by_ready, by_reserve, constant = (column.unbind(1) for column in maps[:2].unbind(1))
    for block in range(maps.shape[2]):
        states.append(_affine(constant[block], by_ready[block], by_reserve[block], states[-1]))
    return torch.stack(states, 3)


def through_pools(to_ready: Tensor, states: Tensor, maps: Tensor) -> Tensor:
    """Return the gradient by `kept` (batch, head, block, key) from that by the ready pools."""
    to_states = torch.stack((to_ready, torch.zeros_like(to_ready))).unbind(3)
    from_ready, from_reserve = (row.unbind(1) for row in maps[:2, :2])
    adjoints = [to_states[-1]]
    for block in range(maps.shape[2] - 1, 0, -1):
        earlier = _affine(to_states[block], from_ready[block], from_reserve[block], adjoints[-1])
        adjoints.append(earlier)
    slopes = maps[2:]
    by_kept = _affine(slopes[:, 2], slopes[:, 0], slopes[:, 1], states[..., :-1, :].movedim(3, 1))
    gradient = (torch.stack(adjoints[::-1], 1) * by_kept).sum(0)
    return torch.cat((gradient, torch.zeros_like(to_ready[None, :, :, 0]))).movedim(0, 2)


def _affine(constant: Tensor, by_ready: Tensor, by_reserve: Tensor, state: Tensor) -> Tensor:
    """Return `constant` plus the share of `state` (2, ...); all have a row for either pool."""
    return torch.addcmul(torch.addcmul(constant, by_ready, state[0]), by_reserve, state[1])


def release_noise(config: NanochatConfig, generator: torch.Generator) -> Tensor | None:
    """Return noise on the log-odds of release (head, query, key), one for a step's whole batch.

    Logistic on a share `stochastic_train_frac` of the edges, zero on the others; None if that
    share is zero. With it the release is the relaxed Bernoulli variable of C. Maddison et al., "The
    Concrete Distribution", ICLR 2017, at temperature 1: reparametrised, so gradients flow.
    """
    share = config.stochastic_train_frac
    if config.model == "gpt" or share == 0.0:
        return None
    shape = (config.n_head, config.sequence_len, config.sequence_len)
    uniform = torch.rand(shape, generator=generator, device=generator.device)
    within = (uniform / share).clamp_(ODDS_MARGIN, 1.0 - ODDS_MARGIN)
    return torch.where(uniform < share, within.logit_(), 0.0)


class PostSynapticGains(nn.Module):
    """Gains on the channels of each layer's activity, in [1/e, e], 1 at the start.

    A fast trace forgets soon and a slow one late; both follow the activity's standardised
    logarithm, without gradients, once per optimiser step. In evaluation nothing moves. The traces
    are part of a checkpoint.
    """

    traces: Tensor
    activity: Tensor
    gain: Tensor
    rates: Tensor
    kept: Tensor

    def __init__(self, config: NanochatConfig) -> None:
        super().__init__()
        shape = (config.n_layer, config.n_embd)
        self.register_buffer("traces", torch.zeros(2, *shape))  # fast, slow
        self.register_buffer("activity", torch.zeros(shape))
        self.register_buffer("gain", torch.ones(shape))
        rates = torch.tensor([config.post_fast_lr, config.post_slow_lr]).view(2, 1, 1)
        self.register_buffer("rates", rates, persistent=False)
        kept = 1.0 - torch.tensor(FORGETTING).view(2, 1, 1)
        self.register_buffer("kept", kept, persistent=False)

    def forward(self, y: Tensor, layer: int) -> Tensor:
        """Return `y` (batch, token, channel) times the layer's gains; training notes its level."""
        if self.training:
            with torch.no_grad():
                self.activity[layer] += y.detach().float().square().mean((0, 1))
        return y * self.gain[layer]

    @torch.no_grad()
    def adapt(self) -> None:
        """Move the gains by what the last step showed. A broken activity moves nothing."""
        level = self.activity.add_(TINY).log_()
        spread, middle = torch.std_mean(level, -1, correction=0, keepdim=True)
        surprise = (level - middle).div_(spread + TINY)
        surprise.nan_to_num_(0.0).clamp_(-SURPRISE, SURPRISE)
        self.traces.mul_(self.kept).addcmul_(self.rates, surprise)
        self.gain.copy_(self.traces.sum(0).mul_(STRENGTH).tanh_().exp_())
        self.activity.zero_()
