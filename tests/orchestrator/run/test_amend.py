"""`amend` changes the caps of a run, with a reason."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from budgets.ledger import LEDGER
from tests.ledgers import cut

if TYPE_CHECKING:
    from tests.conftest import Command

WHY = ("--reason", "the reviewers want it")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--max-hours", "9"), "amend needs --reason"),
        (("--max-evals", "16", *WHY), "expected a cap other than the run's own"),
        (("--max-evals", "17", *WHY), "tier min has 16 evaluations at most"),
        (("--max-hours", "-1", *WHY), "--max-hours: Input should be greater than 0, got -1.0"),
        (("--max-cost", "5", *WHY), "the run began without a price"),
        (("--window", "20m", *WHY), "longer than the safety margin"),
    ],
)
def test_an_amendment_that_cannot_be_is_one_clear_error_and_changes_nothing(
    run: Path, command: "Command", arguments: tuple[str, ...], named: str
) -> None:
    cut(run, 20)  # a generation is told, nothing is in flight
    before = (run / LEDGER).read_bytes()
    answer = command("amend", run.name, *arguments)
    assert (answer.code, named in answer.err) == (2, True), answer.err
    assert "Traceback" not in answer.err
    assert (run / LEDGER).read_bytes() == before
