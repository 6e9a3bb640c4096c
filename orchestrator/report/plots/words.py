"""Sentences, counts and units of a plot's caption, description and axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TypeVar

Item = TypeVar("Item")


def sentences(*parts: str) -> str:
    """Those that say something, one after the other."""
    return " ".join(part for part in parts if part)


def thinned(items: Sequence[Item], most: int) -> Sequence[Item]:
    """Every second, third, ... of them, so that `most` remain at most."""
    return items[:: max(1, ceil(len(items) / most))]


def columns_for(count: int) -> int:
    """So that small multiples fill their rows."""
    if count <= 3:
        return max(count, 1)
    return 2 if count == 4 else 3


@dataclass(frozen=True)
class Unit:
    """What an axis counts in."""

    name: str
    size: float  # in the quantity's own unit

    def of(self, value: float) -> float:
        return value / self.size

    def said(self, value: float) -> str:
        """`41.2 s`."""
        return f"{value / self.size:.3g} {self.name}"


def seconds_unit(most: float) -> Unit:
    """In which seconds up to `most` are read."""
    if most < 1:
        return Unit("ms", 0.001)
    if most < 300:
        return Unit("s", 1)
    return Unit("min", 60) if most < 3 * 3600 else Unit("h", 3600)


def device_hours_unit(most: float) -> Unit:
    """In which device-hours up to `most` are read."""
    if most < 0.05:
        return Unit("device-seconds", 1 / 3600)
    return Unit("device-minutes", 1 / 60) if most < 2 else Unit("device-hours", 1)


def bytes_unit(most: float) -> Unit:
    """In which bytes up to `most` are read."""
    return Unit("MiB", 2**20) if most < 2**31 else Unit("GiB", 2**30)
