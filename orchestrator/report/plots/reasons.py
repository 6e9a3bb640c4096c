"""Why a run has nothing to show in a plot."""

from collections.abc import Mapping

from orchestrator.report.model import Report

NEEDS: Mapping[str, str] = {
    "scores": "a search with a candidate that is settled",
    "confirmations": "a search whose winner is compared with the baseline",
    "pairs": "two configurations with scores on the same seeds",
    "conditions": "a campaign",
    "effects": "a campaign with factors or a control",
    "liveness": "a check that has measured its baseline, and a knob",
    "baseline": "a calibration with an evaluation that is over",
    "budget": "device time that was paid or reserved",
    "currencies": "a budget",
    "spread": "a search with a generation that is over",
    "correlations": "a search with a generation that is over, and two knobs",
    "axes": "a search with a generation that is over, and two knobs",
    "paths": "a search with a candidate that is settled",
    "marginals": "a search with scores of several candidates",
    "parallel": "a search with a score, and two knobs",
    "timeline": "an attempt that is over or in flight",
    "times": "an evaluation that is over",
    "memory": "an evaluation whose memory was measured",
    "curves": "an evaluation that left a loss curve",
    "failures": "an attempt that failed",
}
"""What each plot takes."""


def why_not(report: Report, name: str) -> str:
    """Why the plot of that name is None for the run: `nothing failed`."""
    own = {
        "spread": report.no_distribution,
        "correlations": report.no_distribution,
        "axes": report.no_distribution,
        "curves": report.no_curves,
    }.get(name, "")
    return own or f"it takes {NEEDS[name]}"
