"""What was found: the verdict with its evidence; of a check its knobs, of a campaign effects."""

from collections.abc import Iterator

from budgets.blocks import Items, Table, Text
from budgets.plain import plain
from budgets.report.markdown import evidence
from budgets.terms import PanelName
from budgets.verdict.findings import Findings
from budgets.verdict.findings_text import gain_lines, judged
from budgets.words import number
from orchestrator.report.contents.blocks import Block, Figure, without_headings
from orchestrator.report.model import ArmScores, Report


def verdict(report: Report, figures: list[Figure]) -> list[Block]:
    """The section."""
    return [*_on_record(report), *_beginning(report), *_found(report, figures)]


def _on_record(report: Report) -> Iterator[Block]:
    """The decision in the ledger's own words; what else the headline says is not said twice."""
    if report.budget.findings is not None and report.budget.findings.grade is not None:
        yield Text(f"On record: {plain(report.budget.sentence)}")


def _beginning(report: Report) -> Iterator[Block]:
    if report.budget.follows is not None:
        yield Text(plain(report.budget.follows))


def _found(report: Report, figures: list[Figure]) -> list[Block]:
    budget = report.budget
    if budget.campaign is not None or budget.phase == "check":
        return [*figures, *without_headings(evidence(budget))]
    if budget.findings is None:
        return [Text(_no_comparison(report))]
    return list(_evidence(report, budget.findings, figures))


def _no_comparison(report: Report) -> str:
    if report.identity.phase == "calibration":
        return "A calibration compares nothing: it measures what others are compared with."
    return (
        "No comparison with the baseline on fresh seeds is part of this run, so it cannot end in a "
        "Go or a No-Go."
    )


def _evidence(report: Report, found: Findings, figures: list[Figure]) -> Iterator[Block]:
    yield Items(list(gain_lines(found, is_drawn=False)))
    yield from figures
    yield from judged(found)
    yield from _scores(report.arms, found.rung_label)


def _scores(arms: tuple[ArmScores, ...], more: str | None) -> Iterator[Block]:
    """A row a seed: what differs along it is the configuration's doing."""
    own = [arm for arm in arms if arm.panel != "proxy"]
    titles = list(dict.fromkeys(arm.name for arm in own))
    if not titles:
        return
    why = {**_WHY, "rung": more or _WHY["rung"]}
    yield Table(
        "Scores on fresh seeds, which no candidate of the search was evaluated on",
        ["seed", "there for", *(f">{plain(title)}" for title in titles)],
        [
            [str(seed), why[panel], *(_score(own, panel, name, seed) for name in titles)]
            for panel, seed in _seeds(own)
        ],
    )


_WHY: dict[PanelName, str] = {
    "finalists": "picking",
    "winner": "the verdict",
    "reference": "fresh",
    "rung": "more training",
}


def _seeds(arms: list[ArmScores]) -> Iterator[tuple[PanelName, int]]:
    """Each seed with the panel that it is there for; the baseline has those of all but the rung."""
    known = set[int]()
    for panel in _WHY:
        for arm in arms:
            if arm.panel == panel:
                yield from ((panel, seed) for seed in arm.scores if seed not in known)
                known |= arm.scores.keys()


def _score(arms: list[ArmScores], panel: PanelName, name: str, seed: int) -> str:
    is_rung = panel == "rung"
    for arm in arms:
        if arm.name == name and seed in arm.scores and (arm.panel == "rung") == is_rung:
            return number(arm.scores[seed], none="none")
    return ""
