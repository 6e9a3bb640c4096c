"""Short-term synaptic plasticity as a causal, conserving recurrence over blocks of queries.

Every key of every head is a synapse. A query that matches the key drives it: calcium flows in and
decays, calcium sets the release probability, release depletes a pool of ready vesicles, and the
spent vesicles return by way of a reserve. What the synapse releases enters the attention logits.

Model: M. Tsodyks and H. Markram, "The neural code between neocortical pyramidal neurons depends on
neurotransmitter release probability", PNAS 94 (1997) 719-723; facilitation by residual calcium as
in M. Tsodyks, K. Pawelzik and H. Markram, "Neural networks with dynamic synapses", Neural
Computation 10 (1998) 821-835. The state a query sees is that at the start of its block, so that
within a block everything is one batch of arithmetic.
"""

import torch
from torch import Tensor, nn

from objectives.nanochat.config import BLOCK
from objectives.nanochat.knobs import SynapticKnobs

SITES = 4.0  # release sites of a synapse: a pool larger than this lasts, a smaller one fades
RELEASE_FLOOR = 0.01  # vesicles; bounds log(release) from below
ODDS_MARGIN = 0.02  # keeps the random odds of a release between 1/49 and 49


class Release(nn.Module):
    """What the synapses of one attention layer add to its logits."""

    decay: Tensor

    def __init__(self, knobs: SynapticKnobs, sequence_len: int) -> None:
        super().__init__()
        self.knobs = knobs
        token = torch.arange(sequence_len)
        age = token[::BLOCK, None] - 1 - token  # of a query's influx at the start of each block
        decay = knobs.alpha_c * knobs.tau_c ** age.clamp(min=0).double()
        decay = torch.where(age >= 0, decay, 0.0)
        self.register_buffer("decay", decay.float(), persistent=False)

    def forward(self, scores: Tensor, odds: Tensor | None = None) -> Tensor:
        """Logits for `scores` (batch, query, key), which are -inf where a query may not look.

        `odds` (same shape) multiplies the odds of release on each edge; None leaves them alone.
        """
        batch, length, _ = scores.shape
        blocks = (batch, length // BLOCK, BLOCK, length)
        drive = scores.sigmoid()
        residual = torch.matmul(self.decay, drive).unsqueeze(2)  # (batch, block, 1, key)
        calcium = torch.add(residual, drive.view(blocks), alpha=self.knobs.alpha_c)
        if odds is not None:
            calcium = calcium * odds.view(blocks)
        probability = 1.0 - (1.0 + calcium).reciprocal()
        ready, _, _ = pools(probability.sum(2), self.knobs)
        available = ready * SITES / (SITES + ready)
        released = probability * available.unsqueeze(2)
        return scores.add(
            (released + RELEASE_FLOOR).log().view_as(scores), alpha=self.knobs.lambda_loge
        )


def pools(demand: Tensor, knobs: SynapticKnobs) -> tuple[Tensor, Tensor, Tensor]:
    """Ready, reserve and spent vesicles at the start of every block, each like `demand`.

    `demand` (batch, block, key) is the sum of the release probabilities over a block's queries.
    Only the vesicles at a release site can go, the share `SITES / (SITES + ready)`. Release obeys
    d ready / dt = -probability * share * ready, which over a block leaves exp(-demand * share) of
    the pool. Priming fills empty places, in proportion to them and to the reserve's share of all
    vesicles. At the start `init_rrp` are ready and as many in reserve; the three always add up.
    """
    primed = 1.0 - (1.0 - knobs.prime_rate) ** BLOCK
    recycled = 1.0 - (1.0 - knobs.rec_rate) ** BLOCK
    places, total = knobs.init_rrp, 2.0 * knobs.init_rrp
    ready = reserve = torch.full_like(demand[:, 0], places)
    all_vesicles = torch.full_like(ready, total)
    readies, reserves = [ready], [reserve]
    for exponent in (demand[:, :-1] * -SITES).unbind(1):
        kept = ready * (exponent / (ready + SITES)).exp()
        returned = torch.lerp(reserve + kept, all_vesicles, recycled)  # with a share of the spent
        ready = torch.addcmul(kept, reserve, places - kept, value=primed / total)
        reserve = returned - ready
        readies.append(ready)
        reserves.append(reserve)
    ready, reserve = torch.stack(readies, 1), torch.stack(reserves, 1)
    return ready, reserve, total - ready - reserve


def random_odds(shape: tuple[int, ...], share: float, generator: torch.Generator) -> Tensor:
    """Factors on the odds of release: logistic noise on a `share` of the edges, 1 on the others.

    With them `odds * c / (1 + odds * c)` is the relaxed Bernoulli variable of C. Maddison et al.,
    "The Concrete Distribution", ICLR 2017, at temperature 1: reparametrised, so gradients flow.
    """
    uniform = torch.rand(shape, generator=generator, device=generator.device)
    within = (uniform / share).clamp(ODDS_MARGIN, 1.0 - ODDS_MARGIN)
    return torch.where(uniform < share, within / (1.0 - within), 1.0)
