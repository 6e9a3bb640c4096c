"""Which conditions an effect weighs against which."""

from budgets.effects import cells_of, corners_of, moves, usable
from budgets.plan import Condition, Factor

FACTORS = (
    Factor(name="A", levels=("a0", "a1")),
    Factor(name="B", levels=("b0", "b1", "b2")),
    Factor(name="C", levels=("c0", "c1")),
)


def condition(name: str, *, control: bool = False, **levels: str) -> Condition:
    return Condition(name=name, settings={}, knobs={}, levels=levels, control=control)


def whole() -> dict[tuple[str, ...], int]:
    conditions = [
        condition(a + b + c, A=a, B=b, C=c)
        for a in FACTORS[0].levels
        for b in FACTORS[1].levels
        for c in FACTORS[2].levels
    ]
    return cells_of(FACTORS, conditions)


def test_the_signs_of_every_combination_add_up_to_nothing() -> None:
    found = list(moves(FACTORS))
    assert len(found) == (1 + 2 + 1) + (2 + 1 + 2)
    for moved in found:
        assert all(sum(one.values()) == 0 for one in corners_of(FACTORS, whole(), moved))


def test_an_effect_gives_no_weight_to_those_of_other_factors() -> None:
    """Orthogonal to them: every level of a factor that is not moved has signs that cancel."""
    cells = whole()
    for moved in moves(FACTORS):
        signs = {n: sign for one in corners_of(FACTORS, cells, moved) for n, sign in one.items()}
        for place, factor in enumerate(FACTORS):
            for level in factor.levels if place not in moved else ():
                assert not sum(signs.get(n, 0) for at, n in cells.items() if at[place] == level)


def test_a_factor_of_one_level_has_no_effect() -> None:
    factors = (Factor(name="A", levels=("a0",)), Factor(name="B", levels=("b0", "b1")))
    assert list(moves(factors)) == [{1: "b1"}]


def test_a_control_is_a_cell_only_where_no_condition_has_its_levels() -> None:
    factors = (Factor(name="A", levels=("a0", "a1")),)
    own = [
        condition("a0_base", control=True, A="a0"),
        condition("a0", A="a0"),
        condition("a1_base", control=True, A="a1"),
        condition("default_base", control=True),
    ]
    assert cells_of(factors, own) == {("a0",): 1, ("a1",): 2}


def test_a_campaign_without_factors_has_no_cells_and_no_effects() -> None:
    assert cells_of((), [condition("x"), condition("y")]) == {}
    assert list(moves(())) == []


def test_a_cell_is_usable_with_half_of_the_seeds_of_the_fullest() -> None:
    scores = {0: {1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0}, 1: {1: 1.0, 2: 1.0}, 2: {1: 1.0}, 3: {}}
    cells: dict[tuple[str, ...], int] = {("a",): 0, ("b",): 1, ("c",): 2, ("d",): 3}
    assert usable(cells, scores) == {("a",): 0, ("b",): 1}
    assert usable({("d",): 3}, scores) == {}


def test_a_condition_without_a_level_of_every_factor_is_no_cell() -> None:
    factors = FACTORS[:2]
    own = [condition("half", A="a0"), condition("whole", A="a0", B="b0")]
    assert cells_of(factors, own) == {("a0", "b0"): 1}
