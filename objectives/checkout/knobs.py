"""The ready search space: nanochat's eight continuous knobs, each around what it is set to."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from objectives.checkout.config import CheckoutConfig, Flag
from objectives.programs.knobs import DeclaredKnob, space_of
from objectives.settings import unknown
from objectives.space import SearchSpace


class _Ready(NamedTuple):
    default: float  # nanochat's own, in July 2026
    around: Callable[[float], DeclaredKnob]


def _rate(value: float) -> DeclaredKnob:
    """A decade down and a decade up."""
    return DeclaredKnob(kind="log10", min=value / 10, max=value * 10, baseline=value)


def _decay(value: float) -> DeclaredKnob:
    return DeclaredKnob(min=0.0, max=2 * value or 0.5, baseline=value)


def _steps(value: float) -> DeclaredKnob:
    return DeclaredKnob(kind="int", min=0, max=max(2 * value, 10), baseline=value)


def _ratio(value: float) -> DeclaredKnob:
    return DeclaredKnob(min=0.0, max=1.0, baseline=value)


def _fraction(value: float) -> DeclaredKnob:
    """Of the learning rate, at the end: half of it is more than anybody leaves."""
    return DeclaredKnob(min=0.0, max=0.5 if value <= 0.5 else 1.0, baseline=value)


READY: Mapping[str, _Ready] = {
    "embedding-lr": _Ready(0.3, _rate),
    "unembedding-lr": _Ready(0.008, _rate),
    "matrix-lr": _Ready(0.02, _rate),
    "scalar-lr": _Ready(0.5, _rate),
    "weight-decay": _Ready(0.28, _decay),
    "warmup-steps": _Ready(40, _steps),
    "warmdown-ratio": _Ready(0.65, _ratio),
    "final-lr-frac": _Ready(0.05, _fraction),
}


def space(config: CheckoutConfig) -> SearchSpace:
    """The declared knobs, else the ready ones that `space` picks.

    Raises ValueError on one that is not ready, and where it is set to what it cannot be.
    """
    if config.knobs:
        return space_of(config.knobs)
    return space_of({name: _around(name, config.flags) for name in picked(config)})


def picked(config: CheckoutConfig) -> tuple[str, ...]:
    """The ready knobs that are searched. Raises ValueError on an unknown one."""
    if not config.space:
        return tuple(READY)
    names = tuple(name.strip() for name in config.space.split("+"))
    for name in names:
        if name not in READY:
            raise unknown("ready knob", name, READY)
    if len(set(names)) < len(names):
        raise ValueError(f"space {config.space}: expected each knob once")
    return names


def _around(name: str, flags: Mapping[str, Flag]) -> DeclaredKnob:
    ready = READY[name]
    value = flags.get(name, ready.default)
    if isinstance(value, str | bool) or value < 0:
        raise ValueError(f"flags.{name}: expected a number that a search can begin at, got {value}")
    try:
        return ready.around(float(value))
    except ValueError:
        raise ValueError(
            f"flags.{name}: a search cannot begin at {value}: leave it out of space, or declare "
            f"its bounds as [training.knobs.{name}]"
        ) from None
