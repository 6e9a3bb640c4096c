"""A score that was computed otherwise than those before it is no score, whoever hears of it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Settled, Status
from orchestrator.records.recorded import Result
from orchestrator.verification.verify import verify
from tests.ledgers import cut, events_of, every, state_of

Run = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]
Mark = Callable[..., None]
QUICK: dict[str, Any] = {"assumed_seconds": 1.0, "population": 8, "settings": {"noise": 0.01}}
CAUSE = "same.fast is 0 here, 1 in the run so far: scores of the two cannot be compared"


def odd(*places: str, value: float = 0.0) -> Callable[[str], dict[str, float]]:
    """Marks that are `value` at those places, parts of directories, and 1 everywhere else."""

    def marks(directory: str) -> dict[str, float]:
        is_odd = any(place in f"{directory}/" for place in places)
        return {"same.fast": value if is_odd else 1.0, "loss": len(directory)}

    return marks


def failed(directory: Path) -> list[Settled]:
    return [end for end in every(Settled, directory) if end.status is not Status.OK]


def told(directory: Path) -> list[tuple[Any, ...]]:
    return [
        (e.generation, e.candidate, e.attempt, e.status, e.again, e.cause)
        for e in every(Settled, directory)
    ]


def first_tries(candidate: str, generation: int = 0) -> Callable[[str], dict[str, float]]:
    marks = odd(f"gen_{generation:04d}/cand_{candidate}")
    return lambda directory: marks(directory if "." not in Path(directory).name else "")


def test_what_differs_once_is_tried_again_and_changes_nothing(
    tmp_path: Path, run_search: Run, mark: Mark, found: Found
) -> None:
    undisturbed = run_search(tmp_path / "undisturbed", **QUICK)
    mark(first_tries("0003"))

    result = run_search(tmp_path / "run", **QUICK)

    (end,) = failed(result.directory)
    assert (end.status, end.again, end.score, end.cause) == (
        Status.ERROR,
        "elsewhere",
        None,
        CAUSE,
    )
    assert end.metrics["same.fast"] == 0.0
    assert found(result.directory) == found(undisturbed.directory)
    assert verify(result.directory).divergence is None


def test_what_differs_twice_has_failed(tmp_path: Path, run_search: Run, mark: Mark) -> None:
    mark(odd("gen_0001/cand_0002"))

    result = run_search(tmp_path, **QUICK)

    assert [(e.again, e.cause) for e in failed(result.directory)] == [
        ("elsewhere", CAUSE),
        (None, CAUSE),
    ]
    scores = result.state.generations[1].scores()
    assert [n for n, score in enumerate(scores) if score is None] == [2]
    assert result.ruling.decision == "done"
    assert verify(result.directory).divergence is None


def test_where_the_first_was_the_odd_one_the_run_is_soon_held_up(
    tmp_path: Path, run_search: Run, mark: Mark
) -> None:
    mark(odd("gen_0000/cand_0000", value=2.0))

    result = run_search(tmp_path, **QUICK)

    assert [trigger.rule for trigger in result.ruling.triggers] == ["crash_rate"]
    assert "same.fast is 1 here, 2 in the run so far" in result.ruling.reason


@pytest.mark.parametrize("panel", ["reference", "finalists", "winner", "rung"])
def test_panels_are_compared_with_the_search(
    panel: str, tmp_path: Path, search_confirmed: Run, mark: Mark
) -> None:
    mark(odd(f"{panel}_0000/cand_0000"))

    result = search_confirmed(tmp_path)

    found = failed(result.directory)
    assert {(end.panel, end.candidate, end.cause) for end in found} == {(panel, 0, CAUSE)}
    assert verify(result.directory).divergence is None


def twice_and_once(directory: str) -> dict[str, float]:
    """One evaluation differs whenever it is tried, another one at its first try."""
    is_odd = "gen_0000/cand_0002" in directory
    return first_tries("0005", 1)(directory) | ({"same.fast": 0.0} if is_odd else {})


@pytest.mark.parametrize("evaluations_gone", [False, True])
@pytest.mark.parametrize("share", [n / 8 for n in range(1, 8)])
def test_a_run_cut_anywhere_is_told_the_same(
    share: float,
    evaluations_gone: bool,
    tmp_path: Path,
    run_search: Run,
    mark: Mark,
    found: Found,
) -> None:
    mark(twice_and_once)
    run = run_search(tmp_path, **QUICK).directory
    whole, before = found(run), told(run)
    assert len(before) == 16 + 2
    cut(run, round(share * len(events_of(run))))
    if evaluations_gone:
        shutil.rmtree(run / "eval")

    run_search(tmp_path, **QUICK)

    assert found(run) == whole
    assert verify(run).divergence is None
    if not evaluations_gone:  # what was in flight is lost then, and tried again
        assert told(run) == before
    state = state_of(run)
    assert state.marks == {None: {"same.fast": 1.0}}
