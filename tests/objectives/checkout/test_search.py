"""Searches over a checkout, from the calibration to the best: on a nanochat that trains nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Status
from orchestrator.execution.engine import Engine
from orchestrator.records.recorded import Result
from orchestrator.run.files import PlanChangedError
from tests.ledgers import cut

RunSearch = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]

SMALL = {"population": 4, "max_evals": 8, "assumed_seconds": 1.0}


def statuses(result: Result) -> list[Status]:
    return [one.status for batch in result.state.generations for one in batch.results()]


def test_a_search_finds_better_flags_than_nanochats_own(
    settings: Any, load: Any, attempts: Any, tmp_path: Path, run_search: RunSearch
) -> None:
    """A sibling of the one with two generations of eight on processes, below."""
    result = run_search(tmp_path / "runs", "nanochat", settings(), **SMALL)

    assert result.directory.name == "min-nanochat-checkout-s1"
    assert statuses(result) == [Status.OK] * 8
    scored = (one.score for batch in result.state.generations for one in batch.results())
    assert (
        min(score for score in scored if score is not None) < attempts.evaluate(load()).score - 0.02
    )


def test_a_candidate_that_diverges_is_a_result(
    settings: Any, tmp_path: Path, run_search: RunSearch
) -> None:
    """Half of what is searched has a matrix learning rate that is too high."""
    knobs = {"matrix-lr": {"kind": "log10", "min": 0.01, "max": 2.0, "baseline": 0.24}}
    result = run_search(tmp_path / "runs", "nanochat", settings(knobs=knobs), **SMALL)
    assert {Status.OK, Status.NAN} == set(statuses(result))


def test_a_search_goes_on_where_it_was_killed(
    settings: Any, tmp_path: Path, run_search: RunSearch, found: Found
) -> None:
    begun = run_search(tmp_path / "runs", "nanochat", settings(), **SMALL)
    whole = found(begun.directory)
    cut(begun.directory, 12)
    taken_up = run_search(tmp_path / "runs", "nanochat", settings(), **SMALL)
    assert found(taken_up.directory) == whole


def test_a_search_does_not_go_on_with_other_code(
    settings: Any, checkout: Path, tmp_path: Path, run_search: RunSearch
) -> None:
    begun = run_search(tmp_path / "runs", "nanochat", settings(), **SMALL)
    cut(begun.directory, 12)
    source = checkout / "scripts/base_train.py"
    source.write_text(source.read_text() + "\n# an improvement\n")
    with pytest.raises(PlanChangedError, match="code"):
        run_search(tmp_path / "runs", "nanochat", settings(), **SMALL)


@pytest.mark.slow  # the eight above are its quick sibling
def test_two_generations_of_eight_on_processes(
    settings: Any, tmp_path: Path, run_search: RunSearch, found: Found
) -> None:
    terms: dict[str, Any] = {"engine": Engine(kind="local", workers=2), "population": 8}
    begun = run_search(tmp_path / "runs", "nanochat", settings(), **terms)
    assert len(statuses(begun)) == 16
    assert set(statuses(begun)) <= {Status.OK, Status.NAN}
    before = found(begun.directory)
    cut(begun.directory, 20)
    again = run_search(tmp_path / "runs", "nanochat", settings(), **terms)
    assert found(again.directory) == before
