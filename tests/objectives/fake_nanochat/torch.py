"""Stands in for torch: as much of it as the shim and the fake training touch."""

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


def compile(model: Any, **_: Any) -> Any:  # noqa: A001 - torch's name for it
    return model
