"""A compact GPT, to be read beside nanochat/gpt.py: the same places in the same order.

As in karpathy/nanochat: rotary embeddings, QK norm, untied weights of token embedding and head,
relu^2 in the MLP, norm after the token embedding and without learnable parameters, no bias,
key-value heads that several query heads share, logits softcapped at 15, projections into the
residual stream that start at zero.

What differs: `c_qkv` is one matrix where nanochat has three; embeddings start with standard
deviation 1 (nanochat: 0.8), `c_fc` without its factor of 0.4; the rotary base is 10,000 (100,000).
What is absent: `resid_lambdas` and `x0_lambdas`, value embeddings, smear, backout, the scale of 1.2
on queries and keys, window patterns, the KV cache of inference; in training (`optim`, `train`) the
refinements of Muon (NorMuon, Polar Express, cautious decay), schedules of momentum and decay, and
AdamW rates scaled by the width. Batches are windows at random offsets, across documents and without
BOS; gradients are clipped. What is added: `model = "synaptic"` puts synapses into the attention and
gains behind the MLP (`synaptic`).
"""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows it by
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from objectives.nanochat.config import VOCAB_SIZE, NanochatConfig
from objectives.nanochat.synaptic import PostSynapticGains, Release

SOFTCAP = 15.0
ROTARY_BASE = 10_000.0
HEAD_SD = 0.001  # so that an untrained model predicts every token alike

CosSin = tuple[Tensor, Tensor]


def norm(x: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],))


def apply_rotary_emb(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate each pair of channels of `x` (batch, token, head, channel) by the token's angle."""
    x1, x2 = x.chunk(2, -1)
    return torch.addcmul(x * cos, torch.cat((x2, x1), -1), sin)


class CausalSelfAttention(nn.Module):
    """Attention to the token itself and earlier ones; `release` adds synapses to its logits."""

    def __init__(self, config: NanochatConfig, device: torch.device) -> None:
        super().__init__()
        self.config = config
        width = (config.n_head + 2 * config.n_kv_head) * config.head_dim
        self.c_qkv = nn.Parameter(torch.empty(width, config.n_embd))
        self.c_proj = nn.Parameter(torch.empty(config.n_embd, config.n_embd))
        self.release = Release(config) if config.model == "synaptic" else None
        self.is_fused = device.type == "cuda"  # plain attention

    def forward(self, x: Tensor, cos_sin: CosSin, mask: Tensor, noise: Tensor | None) -> Tensor:
        """`x` (batch, token, channel) -> the same shape. `noise` is (head, query, key)."""
        c = self.config
        B, T, C = x.shape  # noqa: N806 - as in nanochat
        qkv = F.linear(x, self.c_qkv).view(B, T, -1, c.head_dim)
        qk, v = torch.split(qkv, [c.n_head + c.n_kv_head, c.n_kv_head], dim=2)
        qk = norm(apply_rotary_emb(qk, *cos_sin))
        q, k = torch.split(qk, [c.n_head, c.n_kv_head], dim=2)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        if c.n_kv_head < c.n_head:
            k, v = (t.repeat_interleave(c.n_head // c.n_kv_head, 1) for t in (k, v))
        if self.release is None and self.is_fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = torch.matmul(self._weights(q, k, mask, noise), v)
        return F.linear(y.transpose(1, 2).reshape(B, T, C), self.c_proj)

    def _weights(self, q: Tensor, k: Tensor, mask: Tensor, noise: Tensor | None) -> Tensor:
        """Return the weight of each key in each query's mean (batch, head, query, key)."""
        shape = (*q.shape[:3], k.shape[2])
        q, k = (t.reshape(-1, *t.shape[2:]) for t in (q, k))
        scores = torch.baddbmm(mask, q, k.mT, alpha=self.config.head_dim**-0.5).view(shape)
        if self.release is not None:
            scores = self.release(scores, noise)
        weights: Tensor = scores.softmax(-1, dtype=torch.float32)
        return weights


class MLP(nn.Module):
    """Four times as wide inside, relu^2."""

    def __init__(self, config: NanochatConfig) -> None:
        super().__init__()
        self.c_fc = nn.Parameter(torch.empty(4 * config.n_embd, config.n_embd))
        self.c_proj = nn.Parameter(torch.empty(config.n_embd, 4 * config.n_embd))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(F.linear(x, self.c_fc).relu().square(), self.c_proj)


class Block(nn.Module):
    """Attention and MLP, each added to the residual stream; `gains` scale what the MLP adds."""

    def __init__(self, config: NanochatConfig, layer_idx: int, device: torch.device) -> None:
        super().__init__()
        self.layer_idx = layer_idx
        self.attn = CausalSelfAttention(config, device)
        self.mlp = MLP(config)

    def forward(
        self,
        x: Tensor,
        cos_sin: CosSin,
        mask: Tensor,
        gains: PostSynapticGains | None,
        noise: Tensor | None,
    ) -> Tensor:
        x = x + self.attn(norm(x), cos_sin, mask, noise)
        y: Tensor = self.mlp(norm(x))
        return x + (y if gains is None else gains(y, self.layer_idx))


class GPT(nn.Module):
    """Tokens in, the mean cross-entropy of the next ones out."""

    cos: Tensor
    sin: Tensor
    mask: Tensor

    def __init__(
        self, config: NanochatConfig, generator: torch.Generator, device: torch.device
    ) -> None:
        super().__init__()
        self.config = config
        self.wte = nn.Parameter(torch.empty(VOCAB_SIZE, config.n_embd))
        self.h = nn.ModuleList(Block(config, i, device) for i in range(config.n_layer))
        self.gains = PostSynapticGains(config) if config.model == "synaptic" else None
        self.lm_head = nn.Parameter(torch.empty(VOCAB_SIZE, config.n_embd))
        self._precompute_tables()
        self.init_weights(generator)
        self.to(device)

    @torch.no_grad()
    def init_weights(self, generator: torch.Generator) -> None:
        bound = (3.0 / self.config.n_embd) ** 0.5  # uniform with variance 1 / n_embd
        for name, weight in self.named_parameters():
            if name == "wte":
                weight.normal_(generator=generator)
            elif name == "lm_head":
                weight.normal_(std=HEAD_SD, generator=generator)
            elif name.endswith("c_proj"):
                weight.zero_()
            else:
                weight.uniform_(-bound, bound, generator=generator)

    def _precompute_tables(self) -> None:
        """Rotary angles, and the causal mask: -inf on later keys."""
        t = torch.arange(self.config.sequence_len)
        channel_range = torch.arange(self.config.head_dim // 2) / (self.config.head_dim // 2)
        freqs = t[:, None] * ROTARY_BASE**-channel_range
        cos, sin = freqs.cos(), freqs.sin()
        mask = torch.zeros(len(t), len(t)).masked_fill(t[:, None] < t, -torch.inf)
        self.register_buffer("cos", torch.cat((cos, cos), -1)[:, None], persistent=False)
        self.register_buffer("sin", torch.cat((sin, -sin), -1)[:, None], persistent=False)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, idx: Tensor, targets: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return the mean nats per token of `targets` (batch, sequence_len) after `idx`."""
        return F.cross_entropy(self.logits(idx, noise).flatten(0, 1), targets.flatten())

    def logits(self, idx: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return logits (batch, token, vocabulary) for `idx` (batch, sequence_len).

        They are 15 above nanochat's, which softmax ignores. `noise` (head, query, key) makes
        releases random; None is their median.
        """
        x = norm(F.embedding(idx, self.wte))
        for block in self.h:
            inputs = (x, (self.cos, self.sin), self.mask, self.gains, noise)
            if self.config.gradient_checkpointing and torch.is_grad_enabled():
                x = checkpoint(block, *inputs, use_reentrant=False, preserve_rng_state=False)
            else:
                x = block(*inputs)
        logits = F.linear(norm(x), self.lm_head).float()
        # c tanh(z / c) + c = 2 c sigmoid(2 z / c). Softmax ignores the constant, and tanh is slow.
        return 2.0 * SOFTCAP * torch.sigmoid(logits * (2.0 / SOFTCAP))

    def adapt(self) -> None:
        """Let the post-synaptic gains follow the activity: once per optimiser step."""
        if self.gains is not None:
            self.gains.adapt()
