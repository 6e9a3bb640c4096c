"""What can be known to go wrong before anything is trained."""

from math import ceil
from pathlib import Path

from objectives.api import SetupError
from objectives.checkout import data, flags
from objectives.checkout.config import CheckoutConfig
from objectives.checkout.knobs import READY
from objectives.programs.environment import python_versions
from objectives.space import SearchSpace

SMALL_FLOPS = 1e15
"""Below, one step of the batch that nanochat would choose is a good part of the budget."""


def check(config: CheckoutConfig, space: SearchSpace) -> tuple[str, ...]:
    """Warnings for a person. Raises SetupError on what lets no evaluation come to a score."""
    if "program_torch" not in python_versions(config.python, "python"):
        raise SetupError(
            f"python: {config.python} has no torch: expected the interpreter that has nanochat's "
            "packages (in the checkout: uv sync, or pip install into .venv)"
        )
    data.shards(Path(config.data))
    data.tokenizer_sha256(Path(config.tokenizer))
    known = flags.declared(config.source)
    knobs = [knob.name for knob in space.knobs]
    program = f"{config.module} of {config.checkout}"
    flags.require((*flags.given(config, "cpu", known), *knobs), known, program)
    values = flags.Values(config, space, known)
    _require_scores(values)
    return (*_warnings(config, values), *_other_defaults(config, space, known))


def _require_scores(values: flags.Values) -> None:
    """Raises SetupError on flags with which nanochat ends well, and without a score."""
    every = values.config.flags.get(values.known.spelled("eval-every") or "eval-every", 1)
    if isinstance(every, str | bool) or every < 1:
        raise SetupError(f"flags.eval-every: expected 1 or more, got {every}: nothing is scored")
    sizes = values.numbers(("device-batch-size", "max-seq-len"))
    if sizes is None:
        return
    micro = int(sizes[0] * sizes[1])
    shown = f"device-batch-size x max-seq-len = {sizes[0]:.0f} x {sizes[1]:.0f} = {micro}"
    scored, batch = values.number("eval-tokens"), values.number("total-batch-size")
    if scored is not None and scored < micro:
        raise SetupError(
            f"eval-tokens {scored:.0f} is less than {shown} tokens: nothing would be scored (inf)"
        )
    if batch is not None and batch > 0 and (micro <= 0 or batch % micro):
        raise SetupError(
            f"total-batch-size {batch:.0f} is no multiple of {shown} tokens: nanochat refuses it"
        )


def _warnings(config: CheckoutConfig, values: flags.Values) -> list[str]:
    warnings = []
    if not config.seeds:
        warnings.append(
            "seeds = false: every seed is nanochat's own, so repeated evaluations tell nothing "
            "about noise, and no verdict can be trusted"
        )
    batch, warmup = values.number("total-batch-size"), values.number("warmup-steps")
    if (batch is None or batch <= 0) and config.target_flops < SMALL_FLOPS:
        warnings.append(
            "total-batch-size is not given: nanochat's own choice, 100,000 tokens and more, leaves "
            f"few steps or none of {config.target_flops:g} FLOPs"
        )
    steps = most_steps(values)
    if steps is not None and steps < 1:
        warnings.append(f"target_flops {config.target_flops:g} hardly pays for one step: raise it")
    elif steps is not None and warmup is not None and warmup > steps / 3:
        warnings.append(
            f"warmup-steps {warmup:.0f} is more than a third of the steps, {steps:.0f} at most, "
            "that target_flops pays for: lower it in flags"
        )
    return warnings


def most_steps(values: flags.Values) -> float | None:
    """More are not to be had: the matrices of the layers alone take 72 depth width² a token."""
    shape = values.numbers(("depth", "aspect-ratio", "head-dim", "total-batch-size"))
    if shape is None or min(shape) <= 0:
        return None
    depth, ratio, head, batch = shape
    width = ceil(depth * ratio / head) * head
    return float(values.config.target_flops / (72 * depth * width**2 * batch))


def _other_defaults(config: CheckoutConfig, space: SearchSpace, known: flags.Declared) -> list[str]:
    """Where a search would begin elsewhere than this checkout does."""
    return [
        f"{knob.name} begins at {knob.baseline:g}; this checkout's own default is "
        f"{known[knob.name]}: to begin there set it in flags"
        for knob in space.knobs
        if not config.knobs
        and knob.name in READY
        and knob.name not in config.flags
        and known.get(knob.name) not in (None, knob.baseline)
    ]
