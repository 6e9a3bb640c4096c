"""The search: CMA-ES by pycma, guided by a model of all scores so far.

The rest of the program uses `Search`. Only `strategy` imports cma.
"""

from orchestrator.search.cma_es import Point
from orchestrator.search.search import Search

__all__ = ["Point", "Search"]
