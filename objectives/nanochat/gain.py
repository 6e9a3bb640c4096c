"""Post-synaptic gains: channels that were active in training come to weigh more."""

import torch
from torch import Tensor, nn

from objectives.nanochat.config import BLOCK
from objectives.nanochat.knobs import SynapticKnobs

FORGETTING = 0.05  # of the fast trace, per optimiser step
SURPRISE = 3.0  # standard deviations at which an activity is cut off
TINY = 1e-6


class PostSynapticGain(nn.Module):
    """Gains on the channels of an activity, in [1/e, e], 1 at the start.

    A fast trace forgets and a slow one lasts; both follow the activity's standardised logarithm,
    without gradients, once per optimiser step. Rates count per block of tokens, like those of the
    release. In evaluation nothing moves.
    """

    fast: Tensor
    slow: Tensor
    gain: Tensor
    activity: Tensor

    def __init__(self, knobs: SynapticKnobs, channels: int, sequence_len: int) -> None:
        super().__init__()
        self.fast_rate = knobs.post_fast_lr * sequence_len / BLOCK
        self.slow_rate = knobs.post_slow_lr * sequence_len / BLOCK
        for name in ("fast", "slow", "activity"):
            self.register_buffer(name, torch.zeros(channels))
        self.register_buffer("gain", torch.ones(channels))

    def forward(self, y: Tensor) -> Tensor:
        """`y` (..., channel) times the gains; in training its activity is noted."""
        if self.training:
            self.activity = y.detach().square().flatten(0, -2).mean(0)
        return y * self.gain

    @torch.no_grad()
    def adapt(self) -> None:
        """Move the gains by what the last training step showed. A broken activity moves nothing."""
        level = (self.activity + TINY).log()
        surprise = (level - level.mean()) / (level.std(correction=0) + TINY)
        surprise = surprise.nan_to_num(0.0).clamp_(-SURPRISE, SURPRISE)
        self.fast.mul_(1.0 - FORGETTING).add_(surprise, alpha=self.fast_rate)
        self.slow.add_(surprise, alpha=self.slow_rate)
        self.gain.copy_((self.fast + self.slow).tanh_().exp_())
