"""A campaign as a picture: its conditions on all seeds, and the effects with their intervals."""

from collections.abc import Callable
from pathlib import Path

from budgets.campaign.effects import CampaignReport
from budgets.ledger.storage import write_aside
from orchestrator.charts.forms import FORMS, MISSING, Form
from orchestrator.report.measured import UNITS

PICTURE = "effects.png"


def unit_of(objective: str, measure: str) -> str:
    """What an axis of scores is called: of searches, what stands for each."""
    unit = UNITS.get(objective, "score")
    return unit if measure == "score" else f"{unit}: {measure}"


def draw(report: CampaignReport, path: Path, unit: str) -> None:
    """Write the picture of a campaign to `path`, in the format that its name ends with.

    Raises ValueError on another ending, ImportError without matplotlib.
    """
    ending = path.suffix.removeprefix(".").lower()
    form = next((form for form in FORMS if form == ending), None)
    if form is None:
        raise ValueError(f"--plot: expected a name that ends with .{', .'.join(FORMS)}, got {path}")
    write_aside(path, picture(report, unit, form))


def picture(report: CampaignReport, unit: str, form: Form = "png") -> bytes:
    """The picture as a file of that format: the same bytes for the same campaign."""
    from orchestrator.charts import figure  # commands that draw nothing start without them
    from orchestrator.report.plots.campaigns import both_of

    return figure.picture(both_of(report, unit), form)


def draw_beside(
    directory: Path, report: CampaignReport, objective: str, say: Callable[[str], None]
) -> None:
    """`effects.png` in the campaign's directory, if there is anything to draw it with."""
    path = directory / PICTURE
    try:
        draw(report, path, unit_of(objective, report.measure))
    except ImportError:
        say(f"No {path}: {MISSING}.")
    else:
        say(f"Picture: {path}")
