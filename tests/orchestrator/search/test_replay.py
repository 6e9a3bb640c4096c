"""The recorded advice of a model must be what the model gives again."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from budgets.plan import SearchTerms
from budgets.state import Batch
from orchestrator.records.runs import ReplayError
from orchestrator.search import Search

if TYPE_CHECKING:
    from tests.orchestrator.search.conftest import Evaluated

TERMS = SearchTerms(method="guided", seed=7, sigma0=0.15, start=(0.4,) * 3)


def told(evaluated: "Evaluated") -> list[Batch]:
    """Of a search in noise, whose step is held."""
    rng = np.random.default_rng(5)
    search, done = Search(TERMS, 6), []
    for _ in range(8):
        generation = evaluated(search, score=lambda p: sum(p) + float(rng.standard_normal()))
        done.append(replace(generation, told=search.tell(generation)))
    return done


@pytest.mark.parametrize("change", [{"sigma": 0.19}, {"sigma": None}, {"centre": (0.9, 0.1, 0.9)}])
def test_forged_advice_is_found_though_the_search_went_on_with_it(
    change: dict[str, object], evaluated: "Evaluated"
) -> None:
    done = told(evaluated)
    held = [g for g in done if g.told and g.told.guided and g.told.guided.sigma is not None]
    assert held[0].told is not None
    assert held[0].told.guided is not None
    number = held[0].number
    advice = held[0].told.guided.model_copy(update=change)
    search = Search(TERMS, 6)
    search.replay(done[:number])
    search.ask()
    search._learn(held[0])
    forged = [*done[:number], replace(held[0], told=search._follow(held[0], advice))]
    Search(TERMS, 6).replay(forged)  # resuming follows the record
    with pytest.raises(ReplayError, match=f"generation {number}"):
        Search(TERMS, 6).replay(forged, with_models=True)
    Search(TERMS, 6).replay(done, with_models=True)
