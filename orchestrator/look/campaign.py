"""A campaign: the effects of its conditions and factors, and how each of its cells stands."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from budgets.effects import CampaignReport, Difference, Effect, campaign_report
from budgets.formatting import better_when, listed, number, plain, sentence_case, shortened
from budgets.matrix import RUNNING, Cell, Matrix
from budgets.plan import Direction, Thresholds
from budgets.storage import document, write_aside
from orchestrator.look.page import Block, Figure, Page, Section, headline, items, table
from orchestrator.matrix import manifest as manifests

MOST_CLAUSES, MOST_NOTES = 3, 8  # of the sentence; cells whose notes are printed
WIDTH = 110  # characters of a line on a terminal


def difference_in_words(own: Difference, direction: Direction) -> str:
    """Return `3.1% better (2.2 to 4.0)`; in the score's unit where there are no percents.

    A negative bound is on the other side of none.
    """
    if own.mean is None:
        return "-"
    mean, lower, upper, digits, unit = own.percent, own.percent_lower, own.percent_upper, ".2f", "%"
    if mean is None:
        mean, lower, upper, digits, unit = own.mean, own.lower, own.upper, ".3g", ""
    is_better = (mean < 0) == (direction == "minimize")
    said = f"{abs(mean):{digits}}{unit} {'better' if is_better else 'worse'}"
    if lower is None or upper is None:
        return said
    low, high = sorted((-lower, -upper) if mean < 0 else (lower, upper))
    return f"{said} ({low:{digits}} to {high:{digits}})"


def name_of(effect: Effect) -> str:
    """Return `n_embd: 64 against 32`."""
    return f"{effect.factor}: {effect.level} against {effect.against}"


def differences(found: CampaignReport) -> list[Difference]:
    """Return every difference that is judged: effects, and conditions against controls."""
    own = [effect.difference for effect in found.effects]
    return own + [one.difference for row in found.rows for one in row.comparisons]


# The sentence


def campaign_sentence(found: CampaignReport, cells: str = "evaluations") -> str:
    """Return what was found beyond chance. `cells`: what the campaign consists of."""
    settled = found.evaluations - found.unsettled
    if not found.is_over:
        return f"{settled} of {found.evaluations} {cells} settled."
    failed = settled - found.statuses.get("ok", 0)
    said = listed(_clauses(found), MOST_CLAUSES + 1)
    said = f"Beyond chance: {said}." if said else _nothing(found)
    return f"{settled} of {found.evaluations} {cells} settled, {failed} failed. {said}"


def _clauses(found: CampaignReport) -> Iterator[str]:
    """Yield each effect; without factors, each condition that differs from a control."""
    for one in found.found:
        yield f"{name_of(one)} is {difference_in_words(one.difference, found.direction)}"
    for row in found.rows:
        for against in row.comparisons:
            if against.difference.is_found and (row.is_control or not found.effects):
                size = difference_in_words(against.difference, found.direction)
                yield f"{row.name} is {size} than {against.control}"


def _nothing(found: CampaignReport) -> str:
    """Return why no effect is named."""
    if len(found.rows) == 1:
        return f"{found.rows[0].name} scores {number(found.rows[0].mean)}."
    if len(found.seeds) == 1:
        return "With one seed no difference can be told from chance."
    least = found.detectable_percent
    power = "" if least is None else f"; detectable main effect at 80 % power: {least:.2g}%"
    return f"No difference is beyond chance{power}."


# As blocks


def campaign_blocks(found: CampaignReport) -> Iterator[Block]:
    """Yield the conditions against the controls, and the effects of the factors."""
    said = f"{sentence_case(better_when(found.direction))} ({plain(found.measure)})."
    if len(found.seeds) == 1:
        yield f"{said} With one seed a condition, nothing here can be told from chance."
    else:
        judged = "nothing is judged before the last evaluation is settled"
        if found.is_over:
            judged = f"**bold** is beyond chance, of which at most {found.rate:.0%} is chance"
        yield (
            f"{said} Differences are paired on {len(found.seeds)} seeds, in percent of the "
            f"control's mean, with the {1 - found.level:.0%} interval in brackets; {judged}."
        )
    yield from _conditions(found)
    yield from _effects(found)


def _conditions(found: CampaignReport) -> list[str]:
    compared = {one.control for row in found.rows for one in row.comparisons}
    rows = []
    for row in found.rows:
        failed = {status: n for status, n in row.statuses.items() if status != "ok"}
        healthy = f"{row.healthy} of {len(found.seeds)}"
        if failed:
            healthy += f" ({', '.join(f'{n} {status}' for status, n in failed.items())})"
        cells = {">healthy": healthy, ">mean": number(row.mean), ">sd": number(row.sd, 3)}
        own = {one.control: _judged(one.difference, found) for one in row.comparisons}
        for control in filter(compared.__contains__, found.controls):
            said = "(control)" if control == row.name else own.get(control, "")
            cells[f">against {plain(control)}"] = said
        rows.append({"condition": plain(row.name), **cells})
    return table("Conditions", rows)


def _judged(own: Difference, found: CampaignReport) -> str:
    said = "not estimated: a condition has no score"
    if own.seeds:
        said = difference_in_words(own, found.direction)
    return f"**{said}**" if own.is_found else said


def _effects(found: CampaignReport) -> Iterator[Block]:
    rows = []
    for one in found.effects:
        own = one.difference
        chance = "-" if own.chance is None else f"{max(own.chance, 1e-4):.2g}"
        cells = {">on the score": _judged(own, found), ">seeds": own.seeds, ">chance": chance}
        rows.append({"effect": plain(name_of(one)), **cells})
    if rows:
        yield from table("Effects", rows)
        yield (
            f"Averaged over the other factors, in percent of {number(found.reference)}, the mean "
            f"of {plain(found.reference_of)}."
        )


# The matrix on a terminal


def matrix_lines(matrix: Matrix, width: int = WIDTH) -> list[str]:
    """Return a line for each condition: its name, how its cells stand, and their mean score."""
    stands = list(map(_stands, matrix.rows))
    most = min(max(map(len, stands)), width // 2)
    names = shortened([one.name for one in matrix.terms.conditions], width - most - 20)
    widest = max(map(len, names))
    lines = []
    for name, said, row in zip(names, stands, matrix.rows, strict=True):
        scores = [cell.score for cell in row if cell.score is not None]
        mean = f"{fmean(scores):.5g}" if scores else "-"
        lines.append(f"{name:{widest}}  {said[:most]:{most}}  {mean:>10}")
    noted = [
        f"  {condition.name}, seed {seed}: {cell.status}: {cell.note}"
        for condition, row in zip(matrix.terms.conditions, matrix.rows, strict=True)
        for seed, cell in zip(matrix.terms.seeds, row, strict=True)
        if cell.note
    ]
    more = [f"  and {len(noted) - MOST_NOTES} more; --json has them all."]
    return [*lines, *noted[:MOST_NOTES], *more * (len(noted) > MOST_NOTES)]


def _stands(row: Sequence[Cell]) -> str:
    found = Counter(cell.status for cell in row).most_common()
    return ", ".join(f"{count} {status}" for status, count in found)


# A campaign whose cells are runs of their own, as `export slurm` makes them


@dataclass(frozen=True)
class Exported:
    """A campaign of jobs: each cell is a run with its own ledger."""

    directory: Path
    matrix: Matrix
    report: CampaignReport

    @property
    def is_over(self) -> bool:
        return self.report.is_over

    @property
    def whose(self) -> str:
        """`finished`, `3 of 8 runs running`."""
        running = f"{self.matrix.counts.get(RUNNING, 0)} of {len(self.matrix.cells)} runs running"
        return "finished" if self.is_over else running

    @property
    def sentence(self) -> str:
        return campaign_sentence(self.report, "runs")

    def lines(self, width: int = WIDTH) -> list[str]:
        """Return it for a terminal of that width."""
        matrix = matrix_lines(self.matrix, width)
        return [f"{self.directory}: {self.whose}", "", *matrix, "", self.sentence]

    def document(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "directory": str(self.directory),
            "whose": self.whose,
            "sentence": self.sentence,
            "statuses": self.matrix.counts,
            "matrix": self.matrix.model_dump(mode="json"),
            "campaign": self.report.model_dump(mode="json"),
        }

    def page(self, *figures: Figure) -> Page:
        """Return what it found, and how each run stands."""
        title = "Effects found" if self.report.found else "No effect found"
        sections = (
            Section("effects", "Effects", [*figures, *campaign_blocks(self.report)]),
            Section("runs", "Runs", [items(plain(line) for line in matrix_lines(self.matrix))]),
        )
        own = headline(title if self.is_over else "In progress", self.sentence)
        about = f"a campaign of {len(self.matrix.cells)} runs"
        return Page(self.report.name, about, own, sections)


def exported(run: str | None, root: Path, now: datetime) -> Exported | None:
    """Return the campaign of jobs with that name or directory; None without a manifest.

    Raises ValueError where the manifest cannot be read.
    """
    if run is None or (found := manifests.exported_campaign(run, root)) is None:
        return None
    matrix = manifests.matrix_of_runs(*found, now)
    level, is_over = Thresholds().alive_level, not matrix.unsettled
    return Exported(found[0], matrix, campaign_report(matrix, level, is_over=is_over))


def collect(own: Exported) -> None:
    """Write the effects that a campaign of jobs found to its `effects.json`."""
    effects = {"sentence": own.sentence, "campaign": own.report.model_dump()}
    write_aside(own.directory / "effects.json", document(effects))
