"""A salvage is refused if it saves nothing or would overwrite something."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from budgets.ledger import LEDGER
from tests.ledgers import cut

if TYPE_CHECKING:
    from tests.conftest import Command


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        ("no record", "holds no whole record to save. Begin again with: mv "),
        ("none", "is whole: there is nothing to salvage. Repeat the run's command"),
        ("a place in use", "--salvage: expected a new directory outside of "),
    ],
)
def test_a_salvage_that_cannot_be_is_refused(
    run: Path, command: "Command", tmp_path: Path, harm: str, why: str
) -> None:
    if harm == "no record":
        (run / LEDGER).write_bytes(b"")
    elif harm == "a place in use":
        cut(run, 24)
        (tmp_path / "saved").write_text("mine")
    answer = command("verify", run.name, "--salvage", "saved")
    assert (answer.code, why in answer.err) == (2, True), answer.err
    assert (tmp_path / "saved").exists() == (harm == "a place in use")
