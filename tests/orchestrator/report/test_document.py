"""All of a report as JSON, and as the command printed it before."""

from pathlib import Path

import orjson

from budgets.report.model import BudgetReport, budget_report
from orchestrator.records.recorded import load_state
from orchestrator.report.collect import report
from orchestrator.report.document import RENAMED, document
from orchestrator.report.model import Report


def test_the_budget_reports_fields_are_at_the_top_as_before(confirmed_run: Path) -> None:
    found = document(report(confirmed_run))
    own = budget_report(load_state(confirmed_run)).model_dump()
    assert {name: found[name] for name in own} == own


def test_every_other_part_is_beside_them_under_a_name_of_its_own(confirmed_run: Path) -> None:
    found = report(confirmed_run)
    parts = set(Report.model_fields) - {"budget"}
    taken = parts & set(BudgetReport.model_fields)
    assert taken == set(RENAMED)
    names = {RENAMED.get(name, name) for name in parts}
    assert set(document(found)) == names | set(BudgetReport.model_fields)


def test_it_is_json_that_a_report_can_be_read_from_again(confirmed_run: Path) -> None:
    found = report(confirmed_run)
    read = orjson.loads(orjson.dumps(document(found)))
    parts = {
        name: read[RENAMED.get(name, name)] for name in Report.model_fields if name != "budget"
    }
    budget = {name: read[name] for name in BudgetReport.model_fields}
    assert Report.model_validate({**parts, "budget": budget}) == found
