"""Runs taken up after their ledger lost records that evaluations in eval/ still know of."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Reserved, Settled, Status
from budgets.ledger import LEDGER, read
from orchestrator.execution.api import Attempt
from orchestrator.execution.files import CONFIG, STARTED, SUMMARY, read_summary
from orchestrator.records.runs import Result, attempt_place, load_state
from orchestrator.run.attempts import attempt_id
from orchestrator.verify import verify
from tests.ledgers import every
from tests.orchestrator.conftest import NOISY

RunSearch = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]
Cut = Callable[..., None]


def first_place(run: Path) -> Path:
    reserved = next(r.event for r in read(run / LEDGER).records if isinstance(r.event, Reserved))
    return run / "eval" / attempt_place(reserved)


def test_attempts_that_a_lost_record_reserved_are_charged_or_adopted_and_never_deleted(
    run: Path, run_search: RunSearch, found: Found, cut: Cut
) -> None:
    """Of the first evaluation attempt 1 began and has no end, attempt 2 has the result."""
    whole, place = found(run), first_place(run)
    state = load_state(run)
    reserved = next(
        t.reserved for t in state.generations[0].attempts[0, state.generations[0].seeds[0][0]]
    )
    second = place.with_name(f"{place.name}.2")
    shutil.copytree(place, second)
    (place / SUMMARY).unlink()
    again = reserved_again(reserved)
    for name in (CONFIG, STARTED, SUMMARY):
        text = (second / name).read_text()
        own = attempt_id(state, again)
        (second / name).write_text(text.replace(attempt_id(state, reserved), own))
    cut(run, 3)

    result = run_search(run.parent.parent, **NOISY)

    assert found(run) == whole
    first, adopted = [e for e in every(Settled, run) if e.candidate == 0 and e.generation == 0]
    assert (first.status, first.charged_ms) == (Status.LOST, reserved.reserve_ms)
    assert (adopted.attempt, adopted.recovered) == (2, True)
    assert result.state.accounts.device_ms >= reserved.reserve_ms
    assert verify(run).divergence is None


def reserved_again(reserved: Reserved) -> Reserved:
    return Reserved(
        generation=reserved.generation,
        candidate=reserved.candidate,
        seed=reserved.seed,
        attempt=2,
        reserve_ms=reserved.reserve_ms,
    )


def test_files_of_another_attempt_are_moved_beside_and_kept(
    run: Path, run_search: RunSearch, found: Found, cut: Cut
) -> None:
    whole, place = found(run), first_place(run)
    config = Attempt.model_validate_json((place / CONFIG).read_bytes())
    for name in (CONFIG, STARTED, SUMMARY):
        text = (place / name).read_text()
        (place / name).write_text(text.replace(config.attempt_id, "0" * 32))
    cut(run, 3)

    run_search(run.parent.parent, **NOISY)

    assert found(run) == whole
    kept = place.with_name(f"{place.name}.other")
    assert read_summary(kept, "0" * 32) is not None


@pytest.mark.parametrize("part", ["gen_0000", "gen_0000/cand_0000"])
def test_no_attempt_is_made_through_a_link(
    run: Path, run_search: RunSearch, cut: Cut, tmp_path: Path, part: str
) -> None:
    shutil.rmtree(run / "eval" / part)
    (tmp_path / "elsewhere").mkdir()
    (run / "eval" / part).symlink_to(tmp_path / "elsewhere")
    cut(run, 3)
    with pytest.raises(ValueError, match=f"{part} is a symbolic link"):
        run_search(run.parent.parent, **NOISY)
    assert not list((tmp_path / "elsewhere").iterdir())
