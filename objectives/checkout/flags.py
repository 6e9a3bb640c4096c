"""The checkout's command line: the flags that it has, and those that an evaluation gives it."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from objectives.api import SetupError
from objectives.checkout.config import CheckoutConfig, Flag, hyphened
from objectives.space import SearchSpace

NEVER = 1_000_000_000  # steps: no run has so many, so only step 0 and the last are scored

PINNED: Mapping[str, Flag] = {
    "run": "dummy",  # no wandb
    "core-metric-every": -1,  # it would download its tasks
    "sample-every": -1,
    "eval-every": NEVER,
}
"""Unless the configuration says otherwise, and only where the checkout has them."""


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
