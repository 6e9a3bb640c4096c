"""Post-synaptic gains: channels that were active in training come to weigh more."""

import torch
from torch import Tensor, nn

from objectives.nanochat.config import NanochatConfig

FORGETTING = (0.05, 0.005)  # of the fast and the slow trace, per optimiser step
STRENGTH = 8.0  # of a trace in the exponent of the gain
SURPRISE = 3.0  # standard deviations at which an activity is cut off
TINY = 1e-6


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
        """`y` (batch, token, channel) times the layer's gains; in training it is noted."""
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
