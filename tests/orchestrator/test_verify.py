"""`verify` counts the evaluations whose files are gone."""

import shutil
from pathlib import Path

from orchestrator.verify import verify


def test_deleted_evaluations_are_counted_not_hidden(run: Path) -> None:
    shutil.rmtree(run / "eval/gen_0000")
    found = verify(run)
    assert found.divergence is None
    assert (found.files, found.without_files) == (8, 8)
