"""A run's directory: what of it is resumed."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from budgets.events import Reserved
from orchestrator.execution.api import CONFIG, STARTED, SUMMARY, Attempt
from orchestrator.records.runs import Result
from tests.ledgers import cut, every, state_of
from tests.orchestrator.conftest import NOISY

RunSearch = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]


def test_files_of_another_attempt_are_moved_beside_and_kept(
    run: Path, run_search: RunSearch, found: Found
) -> None:
    whole, place = found(run), run / "eval" / every(Reserved, run)[0].place
    config = Attempt.model_validate_json((place / CONFIG).read_bytes())
    for name in (CONFIG, STARTED, SUMMARY):
        text = (place / name).read_text()
        (place / name).write_text(text.replace(config.attempt_id, "0" * 32))
    cut(run, 3)

    run_search(run.parent.parent, **NOISY)

    assert found(run) == whole
    kept = place.with_name(f"{place.name}.other")
    assert (kept / SUMMARY).exists()


def test_what_a_process_died_before_writing_is_written_when_the_command_is_repeated(
    run: Path, run_search: RunSearch
) -> None:
    state = state_of(run)
    shutil.rmtree(run / "reports")
    (run / "summary.md").write_text("of an older record")

    run_search(run.parent.parent, **NOISY)

    assert state.head in (run / "summary.md").read_text()
    assert len(list((run / "reports").iterdir())) == 4
