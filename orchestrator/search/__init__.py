"""How candidates are proposed: CMA-ES by pycma, guided by a model of everything evaluated so far.

`Search` is the whole of it for the rest of the program. `strategy` alone imports cma.
"""

from orchestrator.search.landscape import Point
from orchestrator.search.search import Search, landscape_by_chance, landscape_of_noise

__all__ = ["Point", "Search", "landscape_by_chance", "landscape_of_noise"]
