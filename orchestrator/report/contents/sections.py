"""All of a report in its order."""

from collections.abc import Callable, Iterable

from orchestrator.charts.chart import Plot
from orchestrator.report.contents.blocks import Block, Figure, Section
from orchestrator.report.contents.budget import budget
from orchestrator.report.contents.evaluations import evaluations
from orchestrator.report.contents.knobs import knobs
from orchestrator.report.contents.record import failures, ledger, provenance, rules, training
from orchestrator.report.contents.scores import scores
from orchestrator.report.contents.search import search
from orchestrator.report.contents.verdict import verdict
from orchestrator.report.model import Report
from orchestrator.report.plots import PLOTS

Write = Callable[[Report, list[Figure]], list[Block]]

SECTIONS: tuple[tuple[str, str, Write], ...] = (
    ("verdict", "Verdict", verdict),
    ("scores", "Scores", scores),
    ("budget", "Budget", budget),
    ("search", "Search", search),
    ("knobs", "Knobs", knobs),
    ("evaluations", "Evaluations", evaluations),
    ("training", "Training", training),
    ("failures", "Failures", failures),
    ("rules", "Rules and decisions", rules),
    ("provenance", "Provenance", provenance),
    ("ledger", "Ledger", ledger),
)


def sections(report: Report, plots: Iterable[Plot]) -> tuple[Section, ...]:
    """Every section; one with nothing to show says why."""
    figures: dict[str, list[Figure]] = {name: [] for name, _, _ in SECTIONS}
    for plot in plots:
        figures[PLOTS[plot.name].section].append(Figure(plot))
    return tuple(
        Section(name, title, write(report, figures[name])) for name, title, write in SECTIONS
    )
