"""Runs resumed after their ledger lost records whose evaluations are in eval/."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Reserved
from budgets.ledger import LEDGER, read
from orchestrator.execution.api import CONFIG, STARTED, SUMMARY, Attempt
from orchestrator.records.runs import Result, attempt_place
from tests.ledgers import state_of
from tests.orchestrator.conftest import NOISY

RunSearch = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]
Cut = Callable[..., None]


def first_place(run: Path) -> Path:
    reserved = next(r.event for r in read(run / LEDGER) if isinstance(r.event, Reserved))
    return run / "eval" / attempt_place(reserved)


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
    assert (kept / SUMMARY).exists()


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


def test_what_a_process_died_before_writing_is_written_when_the_command_is_repeated(
    run: Path, run_search: RunSearch
) -> None:
    state = state_of(run)
    shutil.rmtree(run / "reports")
    (run / "summary.md").write_text("of an older record")

    run_search(run.parent.parent, **NOISY)

    assert state.head in (run / "summary.md").read_text()
    assert len(list((run / "reports").iterdir())) == 4
