"""`verify` finds what was done to a run, and says where."""

import shutil
from pathlib import Path

from orchestrator.verify import verify
from tests.ledgers import cut


def test_last_lines_that_are_gone_are_missed_by_the_mark_of_the_head(run: Path) -> None:
    cut(run, -5, keep_head=True)
    assert "is rolled back" in str(verify(run).divergence)


def test_deleted_evaluations_are_counted_not_hidden(run: Path) -> None:
    shutil.rmtree(run / "eval/gen_0000")
    found = verify(run)
    assert found.divergence is None
    assert (found.files, found.without_files) == (8, 8)
