"""Loss curves of the baseline, the recommended and the best configuration."""

from collections.abc import Iterator, Sequence

from budgets.words import counted, number
from orchestrator.charts.chart import SERIES, Axis, Chart, Line, Plot, Points, Role
from orchestrator.report.model import Curve, Report
from orchestrator.report.plots.words import sentences, thinned

MOST_STEPS = 400
"""Of one curve: a page is no wider."""

ROLES: dict[str, Role] = {"baseline": "baseline", "recommended": "winner"}

BEST: Role = "best"

LONG = 100.0
"""Last step by first, from which on the steps are on a logarithmic scale."""


def curves(report: Report) -> Plot | None:
    """Losses over steps, a chart for each quantity; None where no attempt left any."""
    own = [curve for curve in report.curves if curve.steps]
    if not own:
        return None
    quantities = list(dict.fromkeys(curve.quantity for curve in own))
    charts = [
        _chart(quantity, [c for c in own if c.quantity == quantity]) for quantity in quantities
    ]
    return Plot(
        name="curves",
        title="Loss curves",
        caption="What a configuration gains early and loses again later is no gain: look whether "
        "the curves still part where they end.",
        description=sentences(*map(_said, own)),
        charts=charts,
        columns=min(len(charts), 2),
        aspect=0.5,
    )


def _chart(quantity: str, own: Sequence[Curve]) -> Chart:
    first = min(curve.steps[0] for curve in own)
    last = max(curve.steps[-1] for curve in own)
    is_long = first > 0 and last > LONG * first
    x = Axis("step", "log" if is_long else "linear", is_whole=not is_long)
    return Chart(x, Axis(quantity), list(_lines(own)))


def _lines(own: Sequence[Curve]) -> Iterator[Line | Points]:
    named: set[str] = set()
    others = [name for name in dict.fromkeys(curve.name for curve in own) if name not in ROLES]
    is_campaign = len(others) > 1  # none of its conditions is the best
    roles = dict(zip(others, SERIES if is_campaign else (BEST,), strict=False))
    for curve in own:
        label = "" if curve.name in named else curve.name
        named.add(curve.name)
        role = ROLES.get(curve.name) or roles.get(curve.name, "muted")
        pairs = thinned(list(zip(curve.steps, curve.values, strict=True)), MOST_STEPS)
        x, y = [step for step, _ in pairs], [value for _, value in pairs]
        if len(x) == 1:
            yield Points(x, y, role, label)
        else:
            yield Line(x, y, role, label, is_dashed=curve.name == "baseline")


def _said(curve: Curve) -> str:
    return (
        f"{curve.name}, seed {curve.seed}: {curve.quantity} from {number(curve.values[0])} at step "
        f"{curve.steps[0]:g} to {number(curve.values[-1])} at step {curve.steps[-1]:g}, "
        f"{counted(len(curve.steps), 'value')}."
    )
