"""A CMA-ES search that spends a budget: plan, run, resume, verify."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.api import Search, forecast, maximize, minimize
    from orchestrator.look.notebook import Result, load

_PLACES = {
    "Result": "look.notebook",
    "Search": "api",
    "forecast": "api",
    "load": "look.notebook",
    "maximize": "api",
    "minimize": "api",
}

__all__ = ["Result", "Search", "forecast", "load", "maximize", "minimize"]


def __getattr__(name: str) -> Any:
    """Import a part of the Python interface on first use."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"orchestrator.{_PLACES[name]}"), name)
