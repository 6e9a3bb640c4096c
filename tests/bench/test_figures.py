"""What many results come to."""

from collections.abc import Sequence
from math import inf

import pytest

from scripts.bench.figures import (
    Curves,
    crashes,
    finals,
    price,
    ratio,
    reached,
    regrets,
    row,
    spends,
)
from scripts.bench.race import Outcome
from scripts.bench.runs import Result


def some(contender: str, ends: Sequence[float], error: str = "") -> list[Result]:
    return [
        Result(
            "min", contender, f"own:f:{n}:0:white", "0", Outcome({0.5: 1.0, 1.0: r}, error=error)
        )
        for n, r in enumerate(ends)
    ]


def test_a_row_has_quartiles_wins_and_who_is_worse_than_the_default() -> None:
    own = some("a", [0.1, 0.2, 0.3, 0.4, 1.5])
    found = row("a", own, {"own:f:0:0:white": 0.2, "own:f:1:0:white": 0.2})
    assert found.over_all == pytest.approx((0.2, 0.3, 0.4))
    assert found.worse == 1
    assert found.shared_median == pytest.approx((0.15, 0.2))


def test_a_spend_is_found_between_two_on_the_logarithm_s_line() -> None:
    spends, falling = [1.0, 2.0, 4.0], [0.1, 0.01, 0.0001]
    assert reached(spends, falling, 0.01) == pytest.approx(2)
    assert reached(spends, falling, 0.001) == pytest.approx(3)
    assert reached(spends, falling, 0.1**0.5) == pytest.approx(0.5)
    assert reached(spends, falling, 1e-5) == inf
    assert reached(spends, falling, 1.0) == 0
    assert reached(spends, [1.2, 1.1, 0.5], 1.15) == 0


def curves(factor: float) -> Curves:
    """Regret 0.1 at spend 1 / factor, a tenth of it at twice that."""
    at = (0.25, 0.5, 1.0, 2.0, 4.0)
    return {str(n): {s: (0.9 + n / 500) * 0.1 ** (s * factor) for s in at} for n in range(100)}


def test_a_search_twice_as_fast_costs_the_other_twice_the_spend() -> None:
    found = ratio(curves(2), curves(1))
    assert found is not None
    assert found.value == pytest.approx(2, rel=0.02)
    assert found.low <= found.value <= found.high
    back = price(curves(2), curves(1))
    assert back is not None
    assert back.value == pytest.approx(0.5, rel=0.02)


def test_a_result_that_the_reference_never_has_is_beyond_what_was_seen() -> None:
    found = ratio(curves(5), curves(1))
    assert found is not None
    assert (found.value, found.most) == (inf, 4)
    assert ratio({}, curves(1)) is None


def test_the_tables_name_every_contender_and_every_crash() -> None:
    results = [*some("ours", [0.1, 0.2]), *some("pycma", [0.3, 0.4]), *some("x", [1, 1], "E: no")]
    table = "\n".join(regrets("min", results, "pycma", finals(some("pycma", [0.3, 0.4]))))
    assert "| 0.150 / 0.350 |" in table
    assert "| ours | 2 | 0.150 [0.125, 0.175] |" in table
    assert "> 1 " in "\n".join(spends("min", results, "pycma"))
    assert list(crashes(results)) == ["x crashed in 2 of 2 runs: E: no"]
