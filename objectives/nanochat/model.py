"""A compact GPT over bytes in the manner of nanochat, with or without synapses in its attention.

Rotary positions, normalised queries and keys, RMSNorm without gain, squared ReLU, untied head,
softcapped logits, output projections that start at zero.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows it by
from torch import Tensor, nn

from objectives.nanochat.config import BLOCK, NanochatConfig
from objectives.nanochat.flops import VOCABULARY
from objectives.nanochat.gain import PostSynapticGain
from objectives.nanochat.knobs import SynapticKnobs
from objectives.nanochat.synaptic import Release, random_odds

SOFTCAP = 15.0
ROTARY_BASE = 10_000.0
HEAD_SD = 0.001  # so that an untrained model predicts every byte alike


def norm(x: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],))


class Attention(nn.Module):
    """Causal self-attention; `release` adds the synaptic term to its logits."""

    def __init__(self, config: NanochatConfig, knobs: SynapticKnobs | None) -> None:
        super().__init__()
        self.config = config
        width = (config.n_head + 2 * config.n_kv_head) * config.head_dim
        self.qkv = nn.Parameter(torch.empty(width, config.n_embd))
        self.projection = nn.Parameter(torch.empty(config.n_embd, config.n_embd))
        self.release = Release(knobs, config.sequence_len) if knobs else None

    def forward(self, x: Tensor, tables: "Tables", odds: Tensor | None) -> Tensor:
        """`x` (batch, token, channel) -> the same shape."""
        c = self.config
        batch, length, _ = x.shape
        qkv = F.linear(x, self.qkv).view(batch, length, -1, c.head_dim).transpose(1, 2)
        q, k, v = torch.split(qkv, [c.n_head, c.n_kv_head, c.n_kv_head], dim=1)
        q, k = norm(tables.rotate(q)), norm(tables.rotate(k))
        if c.n_kv_head < c.n_head:
            groups = c.n_head // c.n_kv_head
            k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        q, k, v = (t.reshape(-1, length, c.head_dim) for t in (q, k, v))
        scores = torch.baddbmm(tables.mask, q, k.transpose(1, 2), alpha=c.head_dim**-0.5)
        if self.release is not None:
            scores = self.release(scores, odds)
        y = torch.bmm(scores.softmax(-1), v).view(batch, c.n_head, length, c.head_dim)
        return F.linear(y.transpose(1, 2).reshape(batch, length, c.n_embd), self.projection)


class MLP(nn.Module):
    """Four times as wide inside, squared ReLU; `gain` scales what comes out."""

    def __init__(self, config: NanochatConfig, knobs: SynapticKnobs | None) -> None:
        super().__init__()
        self.up = nn.Parameter(torch.empty(4 * config.n_embd, config.n_embd))
        self.down = nn.Parameter(torch.empty(config.n_embd, 4 * config.n_embd))
        self.gain = (
            PostSynapticGain(knobs, config.n_embd, config.sequence_len) if knobs else nn.Identity()
        )

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.gain(F.linear(F.linear(x, self.up).relu().square(), self.down))
        return y


class Tables(nn.Module):
    """Constants of position: rotary angles, and the mask with the barrier of distance.

    The mask is -inf on later keys and `-barrier` per block of distance on earlier ones.
    """

    cos: Tensor
    sin: Tensor
    mask: Tensor

    def __init__(self, config: NanochatConfig, barrier: float) -> None:
        super().__init__()
        position = torch.arange(config.sequence_len)
        pair = torch.arange(config.head_dim // 2) / (config.head_dim // 2)
        angle = position[:, None] * ROTARY_BASE**-pair
        distance = position[:, None] - position
        mask = torch.where(distance < 0, -torch.inf, -barrier / BLOCK * distance)
        for name, table in (("cos", angle.cos()), ("sin", angle.sin()), ("mask", mask)):
            self.register_buffer(name, table, persistent=False)

    def rotate(self, x: Tensor) -> Tensor:
        """Rotary positions: each pair of channels of `x` (..., token, channel) turned."""
        a, b = x.chunk(2, -1)
        return torch.cat((a * self.cos + b * self.sin, b * self.cos - a * self.sin), -1)


class GPT(nn.Module):
    """Bytes in, logits over the next byte out. `knobs` None is the plain transformer."""

    def __init__(
        self, config: NanochatConfig, knobs: SynapticKnobs | None, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.config = config
        self.noise_share = knobs.stochastic_train_frac if knobs else 0.0
        self.tables = Tables(config, knobs.barrier_strength if knobs else 0.0)
        self.embedding = nn.Parameter(torch.empty(VOCABULARY, config.n_embd))
        self.attentions = nn.ModuleList(Attention(config, knobs) for _ in range(config.n_layer))
        self.mlps = nn.ModuleList(MLP(config, knobs) for _ in range(config.n_layer))
        self.head = nn.Parameter(torch.empty(VOCABULARY, config.n_embd))
        self._initialise(generator)

    @torch.no_grad()
    def _initialise(self, generator: torch.Generator) -> None:
        bound = (3.0 / self.config.n_embd) ** 0.5  # uniform with variance 1 / n_embd
        for name, weight in self.named_parameters():
            if name == "embedding":
                weight.normal_(generator=generator)
            elif name == "head":
                weight.normal_(std=HEAD_SD, generator=generator)
            elif name.endswith(("projection", "down")):
                weight.zero_()
            else:
                weight.uniform_(-bound, bound, generator=generator)

    def forward(self, tokens: Tensor, noise: torch.Generator | None = None) -> Tensor:
        """Logits (batch, token, 256) for `tokens` (batch, sequence_len).

        `noise` makes a share of the edges release at random; None is the mean behaviour.
        """
        x = norm(F.embedding(tokens, self.embedding))
        for attention, mlp in zip(self.attentions, self.mlps, strict=True):
            x = x + attention(norm(x), self.tables, self._odds(tokens.shape[0], noise))
            x = x + mlp(norm(x))
        return SOFTCAP * torch.tanh(F.linear(norm(x), self.head) / SOFTCAP)

    def _odds(self, batch: int, noise: torch.Generator | None) -> Tensor | None:
        if noise is None or self.noise_share == 0.0:
            return None
        length = self.config.sequence_len
        shape = (batch * self.config.n_head, length, length)
        return random_odds(shape, self.noise_share, noise)

    def adapt(self) -> None:
        """Once per optimiser step: let the post-synaptic gains follow the activity."""
        for module in self.modules():
            if isinstance(module, PostSynapticGain):
                module.adapt()
