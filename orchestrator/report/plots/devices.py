"""What each device did when: a Gantt chart of attempts."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from budgets.campaign.names import shortened
from budgets.verdict.finalists import AVERAGE, BASELINE, INCUMBENT, LUCKIEST, MEAN
from budgets.words import counted, listed
from orchestrator.charts.chart import Axis, Chart, Mark, Plot, Points, Role, Rule, Spans
from orchestrator.report.model import Evaluation, InFlight, Report
from orchestrator.report.plots.words import Unit, seconds_unit, sentences

MOST_ROWS = 60

MOST_FLIGHTS = 12
"""Rows for attempts in flight: their devices are in no record."""

NAME_WIDTH = 28

AHEAD = 0.03
"""Of the time, that what is in flight reaches beyond the last record."""

OF_THE_SEARCH = (BASELINE, INCUMBENT, AVERAGE, MEAN, LUCKIEST)
"""Arms that are evaluated as the search's candidates are; others are controls."""

STRAGGLES = 2.0
"""Times the median of its kind: an attempt that took longer is a straggler."""

MOST_TIPS = 600
"""Bars that say what they are when they are pointed at."""

KINDS: tuple[tuple[str, Role, str], ...] = (
    ("search", "ok", "healthy"),
    ("panel", "winner", "healthy, of the comparison"),
    ("failed", "failed", "failed"),
    ("lost", "lost", "lost or cancelled"),
)


def timeline(report: Report) -> Plot | None:
    """Attempts by device; None where none is over or in flight."""
    own, flying = report.evaluations, report.in_flight
    if not own and not flying:
        return None
    rows = _rows(own)
    shown = rows[:MOST_ROWS] if len(rows) > MOST_ROWS else rows
    shown = sorted(shown, key=by_host)
    ends = [e.ended for e in own] + [s.ended for s in report.identity.sessions]
    last = max([*ends, *(f.began for f in flying)])
    unit, edge = seconds_unit(max(last, 1.0)), last * (1.0 + AHEAD * bool(flying))
    names = [
        *shortened(without_domain(shown), NAME_WIDTH),
        *(shortened([f.where], NAME_WIDTH)[0] for f in flying[:MOST_FLIGHTS]),
    ]
    slow = stragglers(own)
    marks = [
        *_session_rules(report, unit),
        *_spans(own, shown, unit),
        *_flights(flying[:MOST_FLIGHTS], len(shown), edge, unit),
        *_slow_marks(slow, shown, unit),
    ]
    x = Axis(f"time that the run was open ({unit.name})", low=0.0, high=unit.of(edge) or 1.0)
    return Plot(
        name="timeline",
        title="Evaluations by device",
        caption=sentences(
            "Gaps are time that was there and not used.",
            "What is in flight began where its bar does; on which device, no record says."
            if flying
            else "",
            f"{len(rows) - len(shown)} more devices are left out: those without failures that "
            "were least idle."
            if len(rows) > len(shown)
            else "",
            f"{len(flying) - MOST_FLIGHTS} more are in flight."
            if len(flying) > MOST_FLIGHTS
            else "",
        ),
        description=_description(report, rows, slow),
        charts=[Chart(x, Axis("", categories=names), marks)],
        aspect=min(1.4, 0.08 + 0.028 * max(len(names), 3)),
    )


def by_host(name: str) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Of `0 on node-1` the host, then its device."""
    device, _, host = name.partition(" on ")
    return natural(host), natural(device)


def without_domain(names: Sequence[str]) -> list[str]:
    """The names without the domain that all of them end with."""
    found = {name.partition(" on ")[2].partition(".")[2] for name in names}
    domain = f".{found.pop()}" if len(found) == 1 else ""
    return [name.removesuffix(domain) for name in names]


def natural(name: str) -> list[tuple[int, str]]:
    """So that worker 10 comes after worker 2."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)
    ]


def _rows(own: Sequence[Evaluation]) -> list[str]:
    """Devices: those with failures first, then the most idle."""
    busy: dict[str, float] = defaultdict(float)
    failed: dict[str, int] = defaultdict(int)
    for e in own:
        busy[e.device] += e.ended - e.began
        failed[e.device] += e.status != "ok"
    return sorted(busy, key=lambda name: (-failed[name], busy[name], natural(name)))


def kind_of(evaluation: Evaluation) -> str:
    """`search`, `panel`, `failed` or `lost`."""
    if evaluation.status in ("lost", "cancelled"):
        return "lost"
    if evaluation.status != "ok":
        return "failed"
    return "search" if evaluation.panel is None else "panel"


def _spans(own: Sequence[Evaluation], shown: Sequence[str], unit: Unit) -> Iterator[Spans]:
    places = {name: float(row) for row, name in enumerate(shown)}
    has_tips = len(own) <= MOST_TIPS
    for kind, role, label in KINDS:
        found = [e for e in own if kind_of(e) == kind and e.device in places]
        if not found:
            continue
        is_told = has_tips or kind in ("failed", "lost")
        yield Spans(
            [places[e.device] for e in found],
            [unit.of(e.began) for e in found],
            [unit.of(e.ended) for e in found],
            role,
            label,
            tips=[named(e) for e in found] if is_told else (),
        )


def named(evaluation: Evaluation) -> str:
    """`generation 3, candidate 2, seed 7: ok in 5.9 s`."""
    again = f", attempt {evaluation.attempt}" if evaluation.attempt > 1 else ""
    took = seconds_unit(evaluation.seconds).said(evaluation.seconds)
    return f"{evaluation.where}, seed {evaluation.seed}{again}: {evaluation.status} in {took}"


def _flights(flying: Sequence[InFlight], row: int, edge: float, unit: Unit) -> Iterator[Spans]:
    if flying:
        yield Spans(
            [float(row + place) for place in range(len(flying))],
            [unit.of(f.began) for f in flying],
            [unit.of(edge) for f in flying],
            "reserved",
            "in flight",
        )


def stragglers(own: Sequence[Evaluation]) -> list[Evaluation]:
    """Healthy attempts that took more than twice the median of their like."""
    groups: dict[tuple[bool, str], list[Evaluation]] = defaultdict(list)
    for e in own:
        if e.status == "ok":
            groups[e.is_short, like(e)].append(e)
    slow = []
    for group in groups.values():
        limit = STRAGGLES * median(e.seconds for e in group)
        slow += [e for e in group if e.seconds > limit and len(group) > 3]
    return sorted(slow, key=lambda e: -e.seconds)


def like(evaluation: Evaluation) -> str:
    """What takes as long as it: `rung`, a control by its name, or the search and its panels."""
    if evaluation.panel is None:
        return evaluation.arm
    if evaluation.panel == "rung":
        return "rung"
    is_own = evaluation.panel == "proxy" or evaluation.arm.startswith(OF_THE_SEARCH)
    return "" if is_own else evaluation.arm


def _slow_marks(slow: Sequence[Evaluation], shown: Sequence[str], unit: Unit) -> Iterator[Points]:
    places = {name: float(row) for row, name in enumerate(shown)}
    found = [e for e in slow if e.device in places]
    if found:
        yield Points(
            [unit.of(e.ended) for e in found],
            [places[e.device] for e in found],
            "limit",
            f"took over {STRAGGLES:g} x the median",
            "triangle",
            tips=[named(e) for e in found],
        )


def _session_rules(report: Report, unit: Unit) -> list[Mark]:
    return [
        Rule(unit.of(s.began), "muted", "" if number else "resumed", axis="x")
        for number, s in enumerate(report.identity.sessions[1:])
    ]


def _description(report: Report, rows: Sequence[str], slow: Sequence[Evaluation]) -> str:
    own = report.evaluations
    counts = {kind: sum(kind_of(e) == kind for e in own) for kind, _, _ in KINDS}
    ways = [f"{counts['search'] + counts['panel']} healthy", f"{counts['failed'] or 'none'} failed"]
    ways.append(f"{counts['lost'] or 'none'} lost or cancelled")
    worst = "; ".join(f"{named(e)} on {e.device}" for e in slow[:3])
    if not own:
        return f"No attempt is over; {len(report.in_flight)} in flight."
    return sentences(
        f"{counted(len(own), 'attempt')} on {counted(len(rows), 'device')} in "
        f"{counted(len(report.identity.sessions), 'session')}: {listed(ways)}; "
        f"{len(report.in_flight) or 'none'} in flight.",
        f"{counted(len(slow), 'straggler')}, the slowest: {worst}." if slow else "",
    )
