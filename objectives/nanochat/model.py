"""A compact GPT in the manner of nanochat, with or without synapses in its attention.

Rotary positions, normalised queries and keys, RMSNorm without gain, squared ReLU, untied head,
softcapped logits, output projections that start at zero.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows it by
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.synaptic import PostSynapticGains, Release

SOFTCAP = 15.0
ROTARY_BASE = 10_000.0
HEAD_SD = 0.001  # so that an untrained model predicts every token alike


def norm(x: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],))


class Attention(nn.Module):
    """Causal self-attention; `release` adds the synaptic term to its logits."""

    def __init__(self, config: NanochatConfig, device: torch.device) -> None:
        super().__init__()
        self.config = config
        width = (config.n_head + 2 * config.n_kv_head) * config.head_dim
        self.qkv = nn.Parameter(torch.empty(width, config.n_embd))
        self.projection = nn.Parameter(torch.empty(config.n_embd, config.n_embd))
        self.release = Release(config) if config.model == "synaptic" else None
        chosen = "fused" if device.type == "cuda" else "explicit"
        self.kernel = chosen if config.attention == "auto" else config.attention

    def forward(self, x: Tensor, tables: "Tables", noise: Tensor | None) -> Tensor:
        """`x` (batch, token, channel) -> the same shape. `noise` is (head, query, key)."""
        c = self.config
        batch, length, _ = x.shape
        qkv = F.linear(x, self.qkv).view(batch, length, -1, c.head_dim)
        qk, v = torch.split(qkv, [c.n_head + c.n_kv_head, c.n_kv_head], dim=2)
        qk = norm(tables.rotate(qk))
        q, k = torch.split(qk, [c.n_head, c.n_kv_head], dim=2)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        if c.n_kv_head < c.n_head:
            k, v = (t.repeat_interleave(c.n_head // c.n_kv_head, 1) for t in (k, v))
        if self.release is None and self.kernel == "fused":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = torch.matmul(self._weights(q, k, tables.mask, noise), v)
        return F.linear(y.transpose(1, 2).reshape(batch, length, c.n_embd), self.projection)

    def _weights(self, q: Tensor, k: Tensor, mask: Tensor, noise: Tensor | None) -> Tensor:
        """How much each query takes from each key (batch, head, query, key)."""
        shape = (*q.shape[:3], k.shape[2])
        q, k = (t.reshape(-1, *t.shape[2:]) for t in (q, k))
        scores = torch.baddbmm(mask, q, k.mT, alpha=self.config.head_dim**-0.5).view(shape)
        if self.release is not None:
            scores = self.release(scores, noise)
        weights: Tensor = scores.softmax(-1, dtype=torch.float32)
        return weights


class MLP(nn.Module):
    """Four times as wide inside, squared ReLU."""

    def __init__(self, config: NanochatConfig) -> None:
        super().__init__()
        self.up = nn.Parameter(torch.empty(4 * config.n_embd, config.n_embd))
        self.down = nn.Parameter(torch.empty(config.n_embd, 4 * config.n_embd))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(F.linear(x, self.up).relu().square(), self.down)


class Block(nn.Module):
    """Attention and MLP, each added to what came in; `gains` scale what the MLP adds."""

    def __init__(self, config: NanochatConfig, number: int, device: torch.device) -> None:
        super().__init__()
        self.number = number
        self.attention = Attention(config, device)
        self.mlp = MLP(config)

    def forward(
        self, x: Tensor, tables: "Tables", gains: PostSynapticGains | None, noise: Tensor | None
    ) -> Tensor:
        x = x + self.attention(norm(x), tables, noise)
        y: Tensor = self.mlp(norm(x))
        return x + (y if gains is None else gains(y, self.number))


class Tables(nn.Module):
    """Constants of position: rotary angles, and the mask, -inf on later keys."""

    cos: Tensor
    sin: Tensor
    mask: Tensor

    def __init__(self, config: NanochatConfig) -> None:
        super().__init__()
        position = torch.arange(config.sequence_len)
        pair = torch.arange(config.head_dim // 2) / (config.head_dim // 2)
        angle = position[:, None] * ROTARY_BASE**-pair
        cos, sin = angle.cos(), angle.sin()
        distance = position[:, None] - position
        tables = {
            "cos": torch.cat((cos, cos), -1)[:, None],
            "sin": torch.cat((sin, -sin), -1)[:, None],
            "mask": torch.zeros(distance.shape).masked_fill(distance < 0, -torch.inf),
        }
        for name, table in tables.items():
            self.register_buffer(name, table, persistent=False)

    def rotate(self, x: Tensor) -> Tensor:
        """Rotary positions: each pair of channels of `x` (batch, token, head, channel) turned."""
        a, b = x.chunk(2, -1)
        return torch.addcmul(x * self.cos, torch.cat((b, a), -1), self.sin)


class GPT(nn.Module):
    """Tokens in, the mean cross-entropy of the next ones out."""

    def __init__(
        self, config: NanochatConfig, generator: torch.Generator, device: torch.device
    ) -> None:
        super().__init__()
        self.config = config
        self.tables = Tables(config)
        self.embedding = nn.Parameter(torch.empty(config.vocab_size, config.n_embd))
        self.layers = nn.ModuleList(Block(config, i, device) for i in range(config.n_layer))
        self.gains = PostSynapticGains(config) if config.model == "synaptic" else None
        self.head = nn.Parameter(torch.empty(config.vocab_size, config.n_embd))
        self._initialise(generator)
        self.to(device)

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

    def matrices(self) -> list[nn.Parameter]:
        """The matrices inside the layers."""
        return list(self.layers.parameters())

    def logits(self, tokens: Tensor, noise: Tensor | None = None) -> Tensor:
        """Logits (batch, token, vocabulary) up to a constant, for `tokens` (batch, sequence_len).

        `noise` (head, query, key) makes releases random; None is their median.
        """
        x = norm(F.embedding(tokens, self.embedding))
        for layer in self.layers:
            inputs = (x, self.tables, self.gains, noise)
            if self.config.gradient_checkpointing and torch.is_grad_enabled():
                x = checkpoint(layer, *inputs, use_reentrant=False, preserve_rng_state=False)
            else:
                x = layer(*inputs)
        raw = F.linear(norm(x), self.head).float()
        # 2 c sigmoid(2 z / c) is c tanh(z / c) + c, and softmax knows no constants; tanh is slow.
        return 2.0 * SOFTCAP * torch.sigmoid(raw * (2.0 / SOFTCAP))

    def forward(self, tokens: Tensor, targets: Tensor, noise: Tensor | None = None) -> Tensor:
        """Mean nats per token of `targets` (batch, sequence_len) after `tokens`."""
        return F.cross_entropy(self.logits(tokens, noise).flatten(0, 1), targets.flatten())

    def adapt(self) -> None:
        """Once per optimiser step: let the post-synaptic gains follow the activity."""
        if self.gains is not None:
            self.gains.adapt()
