"""A run in a notebook: its tables are the run's, whatever stands in the ledger."""

from orchestrator.look.notebook import Result
from tests.orchestrator.look.golden import golden


def test_a_notebook_shows_the_answers_and_no_markup_of_a_ledger() -> None:
    shown = Result(golden("go", run_id="<script>alert(1)</script>\x1b[2J"))._repr_html_()
    assert "<script" not in shown
    assert "\x1b" not in shown
    assert "&lt;script&gt;" in shown
    assert "Go that persists" in shown
