"""The checkout's command line: its flags, those that an evaluation gives it, and checks of them."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import NamedTuple

from objectives.api import SetupError
from objectives.checkout.config import DEFAULT_KNOBS, CheckoutConfig, Flag, hyphened
from objectives.space import SearchSpace

NEVER = 1_000_000_000  # steps: no run has so many, so only step 0 and the last are scored

PINNED: Mapping[str, Flag] = {
    "run": "dummy",  # no wandb
    "core-metric-every": -1,  # it would download its tasks
    "sample-every": -1,
    "eval-every": NEVER,
}
"""Unless the configuration says otherwise, and only where the checkout has them."""


SMALL_FLOPS = 1e15
"""Below, one step of the batch that nanochat would choose is a good part of the budget."""


class Declared(dict[str, Flag | None]):
    """A program's flags by their names, each with the default that its source plainly says."""

    def spelled(self, name: str) -> str | None:
        """The flag as this program spells it; None if it has none of that name."""
        return next((flag for flag in self if hyphened(flag) == name), None)


def declared(source: Path) -> Declared:
    """The flags that a source file declares by `add_argument`. It is read, not run.

    Raises SetupError if it cannot be read.
    """
    try:
        return _declared(source.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError) as error:  # ValueError: no UTF-8, a NUL
        raise SetupError(f"cannot read the flags of {source}: {error}") from error


@lru_cache(maxsize=16)
def _declared(text: str) -> Declared:
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return Declared(
        (name.removeprefix("--"), _default(call))
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"
        for name in _constants(call.args)
        if name.startswith("--")
    )


def _constants(nodes: Iterable[ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _default(call: ast.Call) -> Flag | None:
    """What the call says plainly: a number or text, or arithmetic on whole numbers."""
    for keyword in call.keywords:
        if keyword.arg == "default":
            return _plain(keyword.value)
    return None


def _plain(node: ast.expr) -> Flag | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _plain(node.left), _plain(node.right)
        return left * right if isinstance(left, int) and isinstance(right, int) else None
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, bool | int | float | str) else None


class Values(NamedTuple):
    """What the flags are when the knobs are at their baseline."""

    config: CheckoutConfig
    space: SearchSpace
    known: Declared

    def get(self, name: str) -> Flag | None:
        """The flag of that name in today's spelling; None where nothing tells."""
        given: dict[str, Flag | None] = {**self.known, **self.config.flags}
        given |= {knob.name: knob.baseline for knob in self.space.knobs}
        return next((value for flag, value in given.items() if hyphened(flag) == name), None)

    def number(self, name: str) -> float | None:
        value = self.get(name)
        return None if value is None or isinstance(value, str | bool) else float(value)

    def numbers(self, names: Iterable[str]) -> list[float] | None:
        """All of them, or None."""
        found = [value for name in names if (value := self.number(name)) is not None]
        return found if len(found) == len(tuple(names)) else None


def given(config: CheckoutConfig, device: str, known: Declared) -> dict[str, Flag]:
    """Every flag but the knobs, by the name that the checkout has for it."""
    ours: dict[str, Flag] = {}
    for name, value in {**PINNED, "device-type": device}.items():
        if (flag := known.spelled(name)) is not None:
            ours[flag] = value
    ours[known.spelled("target-flops") or "target-flops"] = config.target_flops
    return ours | config.flags


def as_arguments(flags: Mapping[str, Flag]) -> tuple[str, ...]:
    """`--name=value`; of a truth value the bare flag, or nothing."""
    return tuple(
        f"--{name}" if value is True else f"--{name}={as_words(value)}"
        for name, value in flags.items()
        if value is not False
    )


def as_words(value: Flag) -> str:
    return value if isinstance(value, str) else repr(value)


def require(names: Iterable[str], known: Iterable[str], program: str) -> None:
    """Raises SetupError on flags that are none of the program's, naming the nearest that is."""
    has = sorted(known)
    for name in names:
        if name not in has:
            near = get_close_matches(name, has, n=1)
            hint = f" Its nearest is --{near[0]}." if near else ""
            raise SetupError(
                f"{program} has no flag --{name}.{hint} Flags and knobs are named as its --help "
                "names them"
            )


def check(config: CheckoutConfig, space: SearchSpace) -> tuple[str, ...]:
    """Warnings for a person. Raises SetupError on flags with which no evaluation gets a score."""
    known = declared(config.source)
    knobs = [knob.name for knob in space.knobs]
    require((*given(config, "cpu", known), *knobs), known, f"{config.module} of {config.checkout}")
    values = Values(config, space, known)
    _require_scores(values)
    return (*_warnings(config, values), *_other_defaults(config, space, known))


def _require_scores(values: Values) -> None:
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


def _warnings(config: CheckoutConfig, values: Values) -> list[str]:
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


def most_steps(values: Values) -> float | None:
    """More are not to be had: the matrices of the layers alone take 72 depth width² a token."""
    shape = values.numbers(("depth", "aspect-ratio", "head-dim", "total-batch-size"))
    if shape is None or min(shape) <= 0:
        return None
    depth, ratio, head, batch = shape
    width = ceil(depth * ratio / head) * head
    return float(values.config.target_flops / (72 * depth * width**2 * batch))


def _other_defaults(config: CheckoutConfig, space: SearchSpace, known: Declared) -> list[str]:
    """Where a search would begin elsewhere than this checkout does."""
    return [
        f"{knob.name} begins at {knob.baseline:g}; this checkout's own default is "
        f"{known[knob.name]}: to begin there set it in flags"
        for knob in space.knobs
        if not config.knobs
        and knob.name in DEFAULT_KNOBS
        and knob.name not in config.flags
        and known.get(knob.name) not in (None, knob.baseline)
    ]
