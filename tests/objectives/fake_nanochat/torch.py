"""Stands in for torch: as much of it as the shim and the fake training touch."""

from collections.abc import Callable
from typing import Any

_SEEDED = {"cpu": 0, "cuda": 0}


def manual_seed(seed: int) -> None:
    _SEEDED["cpu"] = seed


def initial_seed() -> int:
    return _SEEDED["cpu"]


class cuda:  # noqa: N801 - a module in torch
    @staticmethod
    def manual_seed(seed: int) -> None:
        _SEEDED["cuda"] = seed

    @staticmethod
    def initial_seed() -> int:
        return _SEEDED["cuda"]


def compile(model: Any = None, **options: Any) -> Any:  # noqa: A001 - torch's name for it
    """It moves a score, as the real one does."""

    def compiled(function: Callable[..., float]) -> Callable[..., float]:
        return lambda *arguments: function(*arguments) + 0.01

    return compiled if model is None else compiled(model)
