"""A report as one HTML page that needs nothing else: no network, no script."""

from collections.abc import Sequence

from orchestrator.report.contents.blocks import Section
from orchestrator.report.contents.sections import sections
from orchestrator.report.model import Mood, Report
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


def of_sections(
    name: str,
    about: str,
    heading: str,
    sentence: str,
    parts: Sequence[Section],
    mood: Mood = "open",
) -> str:
    """A document of the same looks about something else than one run.

    `name` says what it is about and `about` what that is; `heading` and `sentence` come first.
    """
    return whole(
        "plain.html.j2",
        f"{heading}: {name}"[:TITLE_CHARACTERS],
        name=name,
        about=about,
        heading=heading,
        sentence=sentence,
        sections=parts,
        mood=mood,
    )
