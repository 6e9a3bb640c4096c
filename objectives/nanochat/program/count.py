"""FLOPs by part, by formula, and beside them what torch counts on a real micro-batch."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from objectives.nanochat import flops
from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.program.explain import explained
from objectives.nanochat.program.options import Resolved


def counted(config: NanochatConfig) -> float:
    """FLOPs that torch counts, forward and backward, on one micro-batch of random tokens.

    Computed on the CPU with explicit attention, whatever a run would use: the products are the
    same.
    """
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from objectives.nanochat.model import GPT
    from objectives.nanochat.synaptic import release_noise

    config = config.model_copy(update={"attention": "explicit"})
    generator = torch.Generator().manual_seed(0)
    model = GPT(config, generator, torch.device("cpu"))
    shape = (config.micro_batch_size, config.sequence_len + 1)
    tokens = torch.randint(config.vocab_size, shape, generator=generator)
    with FlopCounterMode(display=False) as counter:
        loss = model(tokens[:, :-1], tokens[:, 1:], release_noise(config, generator))
        torch.autograd.backward(loss)
    return float(counter.get_total_flops())


def document(resolved: Resolved, count: bool) -> dict[str, Any]:
    """FLOPs per token by part, and of the run; with `count` also what torch counts."""
    config = resolved.training
    cost = flops.per_token(config)
    run = explained(resolved)["run"]
    names = ("paid_by", "steps", "planned_flops", "train_flops", "evaluations", "eval_flops")
    found = {
        "per_token": {name: asdict(part) for name, part in flops.parts(config).items()},
        "forward": cost.forward,
        "backward": cost.backward,
        "per_step": cost.train * config.tokens_per_step,
        **{name: run[name] for name in names},
    }
    if count:
        formula = cost.train * config.micro_batch_size * config.sequence_len
        by_torch = counted(config)
        ratio = {"formula": formula, "torch": by_torch, "ratio": formula / by_torch}
        found["micro_batch"] = ratio
    return found


def as_text(found: dict[str, Any]) -> Iterator[str]:
    """`document` for a person, line by line."""
    yield f"{'FLOPs per token':22} {'forward':>14} {'backward':>14}"
    total = {"forward": found["forward"], "backward": found["backward"]}
    for name, part in {**found["per_token"], "together": total}.items():
        yield f"{name:22} {part['forward']:14,.0f} {part['backward']:14,.0f}"
    yield ""
    yield f"one step     {found['per_step']:.4g}"
    yield (
        f"the run      {found['train_flops']:.4g} in {found['steps']:,} steps "
        f"({found['paid_by']} decides), {found['planned_flops']:.4g} planned"
    )
    yield f"evaluations  {found['eval_flops']:.4g} besides, in {found['evaluations']}"
    if "micro_batch" in found:
        m = found["micro_batch"]
        yield (
            f"micro-batch  {m['formula']:,.0f} by formula, {m['torch']:,.0f} counted by torch: "
            f"ratio {m['ratio']:.4f}"
        )
