"""What a model advised is on record; made again, it must be the same."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from budgets.events import GenerationTold, Guided
from budgets.plan import SearchTerms
from budgets.state import Batch
from orchestrator.records.diverged import ReplayError
from orchestrator.search import Search
from orchestrator.search.replay import compare_guided

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


@pytest.mark.parametrize("accept_drift", [False, True])
@pytest.mark.parametrize("change", [{"sigma": 0.19}, {"sigma": None}, {"centre": (0.9, 0.1, 0.9)}])
def test_forged_advice_is_found_though_the_search_went_on_with_it(
    change: dict[str, object], *, accept_drift: bool, evaluated: "Evaluated"
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
    forged = [*done[:number], replace(held[0], told=search._tell(held[0], lambda _: advice))]
    Search(TERMS, 6).replay(forged)  # resuming follows the record
    with pytest.raises(ReplayError, match=f"generation {number}"):
        Search(TERMS, 6).replay(forged, with_models=True, accept_drift=accept_drift)
    Search(TERMS, 6).replay(done, with_models=True)


ADVICE = Guided(centre=(0.5, 0.5), sigma=0.1, signal=0.1, noise=0.2)
AS_RECORDED = GenerationTold(
    generation=3, digest="d", mean=(0.5, 0.5), sigma=0.1, axis_ratio=1.0, guided=ADVICE
)


def moved(by: float) -> Guided:
    return ADVICE.model_copy(update={"centre": (0.5, 0.5 + by)})


def test_the_same_advice_is_the_same() -> None:
    compare_guided(AS_RECORDED, ADVICE, accept_drift=False)
    compare_guided(replace(AS_RECORDED, guided=None), None, accept_drift=False)


def test_advice_that_differs_in_its_last_digits_is_accepted_only_when_asked_for() -> None:
    compare_guided(AS_RECORDED, moved(0.009), accept_drift=True)
    with pytest.raises(ReplayError, match=r"the same search, but not bit for bit \(off by 0\.009"):
        compare_guided(AS_RECORDED, moved(0.009), accept_drift=False)


@pytest.mark.parametrize("by", [0.011, -0.011])
def test_advice_of_another_place_is_never_accepted(by: float) -> None:
    with pytest.raises(ReplayError, match=r"the model puts the mean 0\.011 from where the record"):
        compare_guided(AS_RECORDED, moved(by), accept_drift=True)


@pytest.mark.parametrize(("sigma", "said"), [(0.1001, "0.1"), (None, "0")])
def test_another_step_is_never_accepted(sigma: float | None, said: str) -> None:
    other = ADVICE.model_copy(update={"sigma": sigma})
    with pytest.raises(
        ReplayError, match=f"a step of 0.1 was held, says the record, and not {said}"
    ):
        compare_guided(AS_RECORDED, other, accept_drift=True)


def test_advice_where_there_was_none_or_none_where_there_was_is_found() -> None:
    with pytest.raises(ReplayError, match="a model advised the search, says the record"):
        compare_guided(AS_RECORDED, None, accept_drift=True)
    with pytest.raises(ReplayError, match="no model advised the search, says the record"):
        compare_guided(replace(AS_RECORDED, guided=None), ADVICE, accept_drift=True)
