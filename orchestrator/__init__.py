"""A CMA-ES search that spends a budget: plan, run, resume, verify."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.api import Search, forecast, maximize, minimize
    from orchestrator.look.notebook import Result, load

__all__ = ["Result", "Search", "forecast", "load", "maximize", "minimize"]


def __getattr__(name: str) -> Any:
    """Import the Python interface when a part of it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("orchestrator.api"), name)
