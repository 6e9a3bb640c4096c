"""The tables and figures made of many results."""

from collections.abc import Sequence
from math import inf
from pathlib import Path

import pytest

from scripts.bench.figures import Curves, price, reached, rows, table
from scripts.bench.race import Outcome
from scripts.bench.runs import Result, Store


def some(contender: str, ends: Sequence[float], error: str = "") -> list[Result]:
    return [
        Result(
            "min", contender, f"own:f:{n}:0:white", "0", Outcome({0.5: 1.0, 1.0: r}, error=error)
        )
        for n, r in enumerate(ends)
    ]


def test_a_row_has_quartiles_and_how_often_the_default_is_better() -> None:
    results = [*some("a", [0.1, 0.2, 0.3, 0.4, 1.5]), *some("ours", [0.2, 0.2])]
    _, found = rows(results, "pycma")
    assert found.over_all == pytest.approx((0.2, 0.3, 0.4))
    assert found.worse == 1
    assert found.shared_median == pytest.approx((0.15, 0.2))


def test_a_spend_between_two_checkpoints_is_interpolated_on_the_logarithm() -> None:
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


def test_a_search_twice_as_fast_needs_half_the_spend() -> None:
    found, back = price(curves(2), curves(1)), price(curves(1), curves(2))
    assert found is not None
    assert back is not None
    assert (found.value, back.value) == pytest.approx((0.5, 2), rel=0.02)
    assert found.low <= found.value <= found.high
    beyond = price(curves(1), curves(5))
    assert str(beyond) == "> 4 (> 4 to > 4)"
    assert price({}, curves(1)) is None


def test_the_table_names_every_contender_and_every_crash() -> None:
    results = [*some("ours", [0.1, 0.2]), *some("pycma", [0.3, 0.4]), *some("x", [1, 1], "E: no")]
    text = "\n".join(table("min", results, "pycma"))
    assert "| ours | 2 | 0.150 [0.125, 0.175] | **0.150 [0.125, 0.175]** | 0 % (0 % to" in text
    assert "| > 1 (> 1 to > 1) |" in text
    assert "x crashed in 2 of 2 runs: E: no" in text


def test_a_line_that_a_kill_cut_off_is_skipped(tmp_path: Path) -> None:
    store, results = Store(tmp_path), some("ours", [0.1, 0.2])
    store.add(results)
    (tmp_path / "min.jsonl").write_bytes((tmp_path / "min.jsonl").read_bytes()[:-9])
    assert store.read() == results[:1]
