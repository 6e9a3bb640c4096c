"""A guided search that has converged begins anew, each time with twice the population."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from budgets.state import Generation
from budgets.terms import SearchTerms
from orchestrator.records.diverged import ReplayError
from orchestrator.search import Search

if TYPE_CHECKING:
    from tests.orchestrator.search.conftest import Evaluated

TERMS = SearchTerms(method="guided", seed=3, sigma0=0.15, start=(0.4, 0.5))
POPULATION = 6
Searched = tuple[tuple[Generation, ...], tuple[int, ...]]


@pytest.fixture(scope="module")
def searched(evaluated: "Evaluated") -> Searched:
    """Generations of a search for 0.7, and whose seeds each was evaluated on."""
    search, done, seeded = Search(TERMS, POPULATION), [], []
    for number in range(60):
        seeded.append(search.seeded(number))
        generation = evaluated(search)
        done.append(replace(generation, told=search.tell(generation)))
    return tuple(done), tuple(seeded)


def descents(done: Sequence[Generation]) -> list[int]:
    return [each.told.descent for each in done if each.told is not None]


def test_it_begins_anew_elsewhere_when_no_knob_would_be_moved_any_more(
    searched: Searched,
) -> None:
    done, _ = searched
    numbers = descents(done)
    assert numbers == sorted(numbers)
    assert numbers[-1] >= 1
    last, first = numbers.index(1) - 1, numbers.index(1)
    spread = [max(p[0] for p in g.points) - min(p[0] for p in g.points) for g in done]
    assert spread[last] < 0.02
    assert spread[first] > 0.1


def test_a_larger_generation_is_asked_in_parts_on_the_seeds_of_the_first(
    searched: Searched,
) -> None:
    done, seeded = searched
    first = descents(done).index(1)
    assert seeded[: first + 4] == (*range(first), first, first, first + 2, first + 2)
    assert all(len(each.points) == POPULATION for each in done)
    parts = [done[first].told, done[first + 1].told]
    assert parts[0] is not None
    assert parts[1] is not None
    assert parts[0].favourite != parts[1].favourite  # it learned with the last part only
    before = Search(TERMS, POPULATION)
    before.replay(done[:first])
    start = before.landscape().favourite
    assert parts[0].favourite == pytest.approx(start, abs=1e-12)


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_a_replay_goes_through_a_restart_and_between_its_parts(
    cut: int, searched: Searched
) -> None:
    done, _ = searched
    end = descents(done).index(1) + cut
    replayed = Search(TERMS, POPULATION)
    replayed.replay(done[:end], with_models=True)
    assert replayed.ask() == done[end].points
    assert replayed.tell(done[end]) == done[end].told


def test_a_descent_that_is_not_on_record_is_a_divergence(searched: Searched) -> None:
    done, _ = searched
    number = descents(done).index(1)
    recorded = done[number].told
    assert recorded is not None
    other = replace(done[number], told=replace(recorded, descent=0))
    with pytest.raises(ReplayError, match=f"generation {number}"):
        Search(TERMS, POPULATION).replay([*done[:number], other, *done[number + 1 :]])


def test_other_methods_never_begin_anew(evaluated: "Evaluated") -> None:
    terms = TERMS.model_copy(update={"method": "mirrored-orthogonal"})
    search = Search(terms, POPULATION)
    assert {search.tell(evaluated(search)).descent for _ in range(80)} == {0}
