"""Post-synaptic gains: channels that were active in training come to weigh more."""

import torch
from torch import Tensor, nn

from objectives.nanochat.config import NanochatConfig

FORGETTING = 0.05  # of the fast trace, per optimiser step
STRENGTH = 8.0  # of a trace in the exponent of the gain
SURPRISE = 3.0  # standard deviations at which an activity is cut off
TINY = 1e-6


class PostSynapticGain(nn.Module):
    """Gains on the channels of an activity, in [1/e, e], 1 at the start.

    A fast trace forgets and a slow one lasts; both follow the activity's standardised logarithm,
    without gradients, once per optimiser step. In evaluation nothing moves. The traces are part of
    a checkpoint.
    """

    fast: Tensor
    slow: Tensor
    gain: Tensor
    activity: Tensor

    def __init__(self, config: NanochatConfig) -> None:
        super().__init__()
        self.fast_rate, self.slow_rate = config.post_fast_lr, config.post_slow_lr
        for name in ("fast", "slow", "activity"):
            self.register_buffer(name, torch.zeros(config.n_embd))
        self.register_buffer("gain", torch.ones(config.n_embd))

    def forward(self, y: Tensor) -> Tensor:
        """`y` (..., channel) times the gains; in training its activity is noted."""
        if self.training:
            with torch.no_grad():
                self.activity += y.detach().float().square().flatten(0, -2).mean(0)
        return y * self.gain

    @torch.no_grad()
    def adapt(self) -> None:
        """Move the gains by what the last step showed. A broken activity moves nothing."""
        level = (self.activity + TINY).log()
        surprise = (level - level.mean()) / (level.std(correction=0) + TINY)
        surprise = surprise.nan_to_num(0.0).clamp_(-SURPRISE, SURPRISE)
        self.fast.mul_(1.0 - FORGETTING).add_(surprise, alpha=self.fast_rate)
        self.slow.add_(surprise, alpha=self.slow_rate)
        self.gain.copy_((self.fast + self.slow).mul_(STRENGTH).tanh_().exp_())
        self.activity.zero_()
