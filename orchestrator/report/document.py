"""A report as one JSON document: the budget report's fields, and all of the rest beside them."""

from typing import Any

from orchestrator.report.model import Report

RENAMED = {"failures": "failure_groups"}
"""Parts whose names the budget report has for something else."""


def document(report: Report) -> dict[str, Any]:
    """Plain JSON. The budget report's own fields are at the top, as they always were."""
    parts = report.model_dump(mode="json", exclude={"budget"})
    own = {RENAMED.get(name, name): part for name, part in parts.items()}
    return {**report.budget.model_dump(), **own}
