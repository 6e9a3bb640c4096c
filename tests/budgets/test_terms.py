"""What terms are refused, and in which words."""

import pytest

from budgets.plan import Condition, Confirmation, Envelope, Inherited, SearchTerms

Rows = tuple[tuple[float, ...], ...]


def terms(shape: Rows | None) -> SearchTerms:
    return SearchTerms(seed=1, sigma0=0.2, start=(0.5, 0.5), shape=shape)


def test_a_search_has_no_shape_unless_it_is_given_one() -> None:
    assert terms(None).shape is None
    assert SearchTerms(seed=1, sigma0=0.2, start=(0.5, 0.5)) == terms(None)


def test_a_shape_survives_json() -> None:
    given = terms(((1.5, 0.1 + 0.2), (0.1 + 0.2, 0.5)))
    assert SearchTerms.model_validate_json(given.model_dump_json()) == given


@pytest.mark.parametrize(
    ("shape", "complaint"),
    [
        (((1.0,),), "expected 2 rows of 2 numbers, got rows of 1"),
        (((1.0, 0.0), (0.0,)), "expected 2 rows of 2 numbers, got rows of 2, 1"),
        (((1.0, 0.0), (0.1, 1.0)), "expected a symmetric matrix, got 0.1 and 0.0 at 1, 0 and 0, 1"),
        (((2.0, 0.0), (0.0, 1.0)), "expected a mean diagonal of 1, sigma0 is the scale; got 1.5"),
        (((1.0, float("nan")), (float("nan"), 1.0)), "finite number"),
    ],
)
def test_a_shape_that_is_no_covariance_matrix_of_the_search_is_refused(
    shape: Rows, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        terms(shape)


def test_a_condition_at_its_own_baseline_is_written_as_it_always_was() -> None:
    here = Condition(name="here", settings={}, knobs={"x": 0.5})
    assert "point" not in here.model_dump()
    there = here.model_copy(update={"point": (0.25, 1.0)})
    assert Condition.model_validate_json(there.model_dump_json()) == there


@pytest.mark.parametrize("point", [(1.5,), (-0.1,), (0.5, 1.5), (float("nan"),)])
def test_a_condition_stands_in_the_unit_cube(point: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"unit cube|finite"):
        Condition(name="far", settings={}, knobs={}, point=point)


@pytest.mark.parametrize("point", [(0.5,), (0.5, 0.5, 0.5), (0.5, 1.01), (-0.01, 0.5)])
def test_a_known_setting_is_a_point_of_the_searched_cube(point: tuple[float, ...]) -> None:
    known = ((0.0, 1.0), point)
    with pytest.raises(ValueError, match="known: expected points of the unit cube, got"):
        SearchTerms(seed=1, sigma0=0.2, start=(0.5, 0.5), known=known)
    assert SearchTerms(seed=1, sigma0=0.2, start=(0.5, 0.5), known=known[:1]).known == known[:1]


def test_controls_have_no_seeds_beyond_the_verdicts() -> None:
    fields = {"seeds": 5, "picking_seeds": 3, "luckiest": 0}
    assert Confirmation.model_validate({**fields, "control_seeds": 5}).control_seeds == 5
    with pytest.raises(ValueError, match="controls have 6 seeds, of only 5"):
        Confirmation.model_validate({**fields, "control_seeds": 6})


def test_an_envelope_reads_as_the_product_that_it_is() -> None:
    assert Envelope(population=12, generations=10, seeds_per_candidate=1).in_words == "12 x 10 x 1"


def test_knobs_that_are_new_or_had_another_range_are_unlearned() -> None:
    inherited = Inherited(run_id="before", head="0", new=("a",), moved=("b",))
    assert inherited.unlearned == ("a", "b")
