"""From runs' reports to what they are side by side."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean

from budgets.campaign.names import shortened
from budgets.statistics.comparison import Gain, gain
from budgets.verdict.finalists import BASELINE
from orchestrator.compare.facts import facts
from orchestrator.compare.model import Compared, Duel, Side, Step
from orchestrator.compare.scores import scores
from orchestrator.report.collect import report
from orchestrator.report.model import Report
from orchestrator.report.plots.candidates import is_search
from orchestrator.report.provenance import FINGERPRINT

NAME_WIDTH, LABEL_WIDTH = 68, 28
"""Characters: of a whole id and a number that tells it apart, and of what a plot has room for."""

MOST_ALL_PAIRS = 6
"""Runs of which each is compared with each."""


def compare(directories: Sequence[Path]) -> Compared:
    """The runs in those directories, side by side. Raises as `report` does, of each."""
    return compared([report(own) for own in directories], directories)


def compared(reports: Sequence[Report], directories: Sequence[Path]) -> Compared:
    """The same of reports in hand."""
    ids = [own.identity.run_id for own in reports]
    named = zip(shortened(ids, NAME_WIDTH), shortened(ids, LABEL_WIDTH), strict=True)
    runs = tuple(
        _side(*own_names, directory, own)
        for own_names, directory, own in zip(named, directories, reports, strict=True)
    )
    known = facts(reports)
    own = scores(runs, known)
    return Compared(
        runs=runs,
        scores=own,
        facts=known,
        duels=tuple(_duels(reports, own.groups)),
    )


def _side(name: str, label: str, directory: Path, own: Report) -> Side:
    findings = own.budget.findings
    return Side(
        name=name,
        label=label,
        directory=str(directory),
        identity=own.identity,
        answer=own.answer,
        fingerprint=own.provenance.search.get(FINGERPRINT, ""),
        baseline=_baseline(own),
        sd=None if own.noise is None else own.noise.sd,
        gain=_decisive(own),
        asked=None if findings is None else findings.asked,
        statuses=own.budget.evaluations_by_status,
        balances=own.budget.balances,
        timing=own.budget.timing,
        steps=tuple(_steps(own)),
        knobs=own.knobs,
    )


def _baseline(own: Report) -> float | None:
    """Its score as calibrated; where nothing was, on the fresh seeds of the comparison."""
    if own.noise is not None:
        return own.noise.mean
    known = own.fresh_scores("reference", BASELINE)
    return fmean(known.values()) if known else None


def _decisive(own: Report) -> Gain | None:
    return next((one.gain for one in own.comparisons if one.is_decisive), None)


def _steps(own: Report) -> Iterator[Step]:
    """Generation by generation; nothing where there is no baseline to be better than."""
    baseline = _baseline(own)
    if not baseline or not is_search(own):
        return
    final = Counter(e.generation for e in own.evaluations if e.is_final and e.panel is None)
    settled, hours = 0, 0.0
    for one in own.generations:
        settled += final[one.number]
        hours += one.useful_device_hours + one.wasted_device_hours
        yield Step(
            evaluations=settled,
            device_hours=hours,
            best=_over(baseline, one.best_so_far),
            mean=None if one.is_short else _over(baseline, one.mean),
        )


def _over(baseline: float, score: float | None) -> float | None:
    return None if score is None else (baseline - score) / abs(baseline)


def _duels(reports: Sequence[Report], groups: Sequence[Sequence[int]]) -> Iterator[Duel]:
    """Winners that were evaluated on the same seeds by the same measure, two at a time.

    Nobody was picked on these seeds, by any run.
    """
    for group in groups:
        for one, other in _pairs(group):
            own, others = (reports[n].fresh_scores("winner") for n in (one, other))
            decisive = filter(None, (_decisive(reports[n]) for n in (one, other)))
            level = next((comparison.level for comparison in decisive), 0.01)
            found = gain(own, others, level)
            if found.mean is not None:
                yield Duel(run=one, against=other, gain=found)


def _pairs(group: Sequence[int]) -> Iterable[tuple[int, int]]:
    """All of them; of many runs the first against each other one."""
    if len(group) <= MOST_ALL_PAIRS:
        return combinations(group, 2)
    return ((group[0], other) for other in group[1:])
