"""A report as one HTML page that needs nothing else: no network, no script."""

from collections.abc import Sequence

from orchestrator.report.contents.blocks import Lead, Section
from orchestrator.report.contents.sections import sections
from orchestrator.report.model import Report
from orchestrator.report.plots import plots
from orchestrator.report.rendering import filled, whole

TITLE_CHARACTERS = 120


def html(report: Report) -> str:
    """The whole document."""
    title = f"{report.answer.title}: {report.identity.run_id}"[:TITLE_CHARACTERS]
    return whole("report.html.j2", title, report=report, sections=sections(report, plots(report)))


def content(report: Report) -> str:
    """What is inside its <main>, to be put in the place of an earlier one."""
    return filled("content.html.j2", report=report, sections=sections(report, plots(report)))


def of_sections(lead: Lead, parts: Sequence[Section]) -> str:
    """A document of the same looks about something else than one run."""
    title = f"{lead.heading}: {lead.name}"[:TITLE_CHARACTERS]
    return whole("plain.html.j2", title, lead=lead, sections=parts)
