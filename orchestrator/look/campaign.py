"""A campaign: what its conditions and factors do to the score, and how each of its cells stands."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import floor, log10
from pathlib import Path
from statistics import fmean
from typing import Any

from budgets.effects import (
    CampaignReport,
    Comparison,
    ConditionRow,
    Difference,
    Effect,
    campaign_report,
    telling,
)
from budgets.formatting import first_few, number, plain, shortened
from budgets.matrix import PENDING, RUNNING, Cell, Matrix
from budgets.plan import Thresholds
from budgets.storage import document, write_aside
from orchestrator.look.blocks import (
    Block,
    Figure,
    Heading,
    Items,
    Page,
    Section,
    Table,
    Text,
    headline,
    table_of,
)
from orchestrator.matrix.campaign_status import matrix_of_runs
from orchestrator.records import manifest as manifests

MOST_INTERACTIONS = 20
"""Those found are shown however many they are; of the rest the least likely by chance."""

MOST_CLAUSES = 3
"""Of the sentence."""

WIDTH, MEAN_WIDTH = 110, 10
"""Characters of a line, and of its last column."""

LEAST_NAME, MOST_NAME, MOST_NOTES = 16, 44, 8
"""Characters of a condition's name; cells that are said to need looking at."""


# A difference, an effect


def difference_in_words(own: Difference, level: float | None = None) -> str:
    """`3.1% better (2.2 to 4.0)`, in the score's own unit where there are no percents.

    With a level: `3.1% better (95%: 2.2 to 4.0)`. Negative bounds reach to the other side.
    """
    if own.mean is None:
        return "-"
    mean, lower, upper, unit = own.percent, own.percent_lower, own.percent_upper, "%"
    if mean is None:
        mean, lower, upper, unit = own.mean, own.lower, own.upper, ""
    reach = 0.0 if lower is None or upper is None else (upper - lower) / 2
    size = abs(reach or mean)  # decides the digits: two, or more where it is too small for them
    digits = 2 if not size else min(max(-floor(log10(size)), 2), 6)
    said, sign = f"{abs(mean):.{digits}f}", -1 if mean < 0 else 1
    if not float(said):
        said, sign = f"{said}{unit} apart", 1
    else:
        said = f"{said}{unit} {'better' if mean < 0 else 'worse'}"
    if lower is None or upper is None:
        return said
    low, high = sorted((sign * lower, sign * upper))
    sure = "" if level is None else f"{100 * (1 - level):g}%: "
    return f"{said} ({sure}{low:.{digits}f} to {high:.{digits}f})"


def name_of(effect: Effect) -> str:
    """`n_embd: 64 against 32`, `n_embd 64 with n_layer 4`."""
    if effect.is_interaction:
        pairs = zip(effect.factors, effect.levels, strict=True)
        return " with ".join(f"{factor} {level}" for factor, level in pairs)
    return f"{effect.factors[0]}: {effect.levels[0]} against {effect.against[0]}"


# The sentence


def campaign_sentence(found: CampaignReport, cells: str = "evaluations") -> str:
    """What was found, claiming no more than chance leaves. `cells`: what it is made of."""
    settled = found.evaluations - found.unsettled
    if not found.is_over:
        return f"{settled} of {found.evaluations} {cells} settled."
    failed = settled - found.statuses.get("ok", 0)
    begins = f"All {settled} {cells} are settled, {failed} of them failed."
    if found.unsettled:
        begins = f"{settled} of {found.evaluations} {cells} are settled, {failed} failed."
    said = first_few([*_effects_found(found), *_differing(found)], MOST_CLAUSES)
    return f"{begins} {said}." if said else f"{begins} {_nothing(found)}"


def _effects_found(found: CampaignReport) -> Iterator[str]:
    """A clause for each factor with an effect, then one for each interaction."""
    mains = [one for one in found.found if not one.is_interaction]
    for factor in dict.fromkeys(one.factors[0] for one in mains):
        levels = (
            f"{one.levels[0]} against {one.against[0]} is "
            f"{difference_in_words(one.difference, found.level)}"
            for one in mains
            if one.factors == (factor,)
        )
        yield f"{factor} moves the score: {', '.join(levels)}"
    for one in (one for one in found.found if one.is_interaction):
        size = difference_in_words(one.difference, found.level)
        pair = " and ".join(one.factors)
        yield f"{pair} act together: {name_of(one)} is {size} than the two add up to"


def _differing(found: CampaignReport) -> Iterator[str]:
    """Conditions that differ from a control, where no factor says it; controls always."""
    for row in found.rows:
        for one in row.comparisons:
            if one.difference.is_found and (row.is_control or not found.effects):
                size = difference_in_words(one.difference, found.level)
                yield f"{row.name} is {size} than {one.control}"


def _nothing(found: CampaignReport) -> str:
    """Why no effect is named."""
    if not any(row.healthy for row in found.rows):
        return "No condition has a score."
    if len(found.rows) == 1:
        return f"{found.rows[0].name} scores {number(found.rows[0].mean)}."
    if len(found.seeds) == 1:
        return "With one seed no difference can be told from chance."
    own = [e.difference for e in found.effects]
    own += [one.difference for row in found.rows for one in row.comparisons]
    if not own:
        return "There is no control and no factor to compare by."
    if all(one.chance is None for one in own):
        return "No two conditions share two seeds with a score: nothing can be told from chance."
    missed = found.detectable_percent
    power = "" if missed is None else f"; detectable main effect at 80 % power: {missed:.2g}%"
    return f"No difference is beyond chance{power}."


# As blocks


def campaign_blocks(found: CampaignReport) -> Iterator[Block]:
    """The conditions against the controls, the effects of the factors, and what they rest on."""
    yield from (Heading("Conditions"), Text(_basis(found)), _conditions(found))
    if found.effects and any(row.healthy for row in found.rows):
        yield Heading("Effects")
        yield from _effects(found)
    if notes := list(_notes(found)):
        yield Items(notes)


def _basis(found: CampaignReport) -> str:
    lower = f"Lower is better ({plain(found.measure)})."
    if len(found.seeds) == 1:
        return f"{lower} With one seed a condition, nothing here can be told from chance."
    judged = f"**Bold** is beyond chance: at most {found.rate:.0%} of it is expected to be chance"
    if not found.is_over:
        judged = "Nothing is judged before the last evaluation is settled"
    return (
        f"{lower} Differences are paired on {len(found.seeds)} seeds that all conditions share, in "
        f"percent of what is compared with; in brackets the {1 - found.level:.0%} interval. "
        f"{judged}."
    )


def _conditions(found: CampaignReport) -> Table:
    compared = {one.control for row in found.rows for one in row.comparisons}
    controls = [name for name in found.controls if name in compared]
    columns = ["condition", ">healthy", ">mean", ">sd"]
    rows = [
        [plain(row.name), _healthy(row, found), number(row.mean), number(row.sd, 3)]
        + [_against(row, control) for control in controls]
        for row in found.rows
    ]
    return Table("Conditions", columns + [f">against {plain(one)}" for one in controls], rows)


def _healthy(row: ConditionRow, found: CampaignReport) -> str:
    """`6 of 8 (2 oom)`."""
    others = [f"{count} {status}" for status, count in row.statuses.items() if status != "ok"]
    return f"{row.healthy} of {len(found.seeds)}" + (f" ({', '.join(others)})" if others else "")


def _against(row: ConditionRow, control: str) -> str:
    if row.name == control:
        return "(control)"
    own: Comparison | None = next((one for one in row.comparisons if one.control == control), None)
    return "" if own is None else _judged(own.difference, difference_in_words(own.difference))


def _judged(own: Difference, said: str) -> str:
    return f"**{said}**" if own.is_found else said


def _effects(found: CampaignReport) -> Iterator[Block]:
    mains = [effect for effect in found.effects if not effect.is_interaction]
    others = [effect for effect in found.effects if effect.is_interaction]
    shown = telling(others, MOST_INTERACTIONS)
    yield Text(
        f"Of moving a factor from its first level, averaged over all others; in percent of "
        f"{number(found.reference)}, the mean of {plain(found.reference_of)}."
    )
    yield _table("effect", mains, found)
    if shown:
        yield Text("Together: how much better or worse than what both moves add up to.")
        yield _table("two factors", shown, found)
    if len(shown) < len(others):
        yield Text(f"{len(others) - len(shown)} more of two factors are in effects.json.")


def _table(what: str, effects: Sequence[Effect], found: CampaignReport) -> Table:
    rows = []
    for effect in effects:
        own = effect.difference
        said = difference_in_words(own) if own.seeds else _why_not(effect, found)
        chance = "-" if own.chance is None else f"{own.chance:.2g}"
        if own.chance is not None and own.chance < 0.0001:
            chance = "<0.0001"
        rows.append((plain(name_of(effect)), _judged(own, said), own.seeds, chance))
    return Table("Effects", [what, ">on the score", ">seeds", ">chance"], rows)


def _why_not(effect: Effect, found: CampaignReport) -> str:
    yet = "" if found.is_over else " yet"
    if not effect.averaged:
        return f"not estimated: a condition that it takes has no score{yet}"
    return f"not estimated: no seed has a score of all its conditions{yet}"


def _notes(found: CampaignReport) -> Iterator[str]:
    """What the figures above do not rest on."""
    if found.is_over and found.unsettled:
        yield (
            f"{found.unsettled} of {found.evaluations} evaluations were not made: the figures are "
            "of those that were."
        )
    partial = [e for e in found.effects if 0 < e.averaged < e.combinations]
    if partial:
        few = [f"{plain(name_of(e))} over {e.averaged} of {e.combinations}" for e in partial]
        yield (
            f"Averaged over fewer combinations of the other factors than there are, as a condition "
            f"is missing or mostly failed: {first_few(few, 4)}."
        )
    if any(e.is_interaction for e in found.found):
        yield (
            "Where two factors act together, read the effect of either as an average: it differs "
            "with the other's level."
        )


# The matrix on a terminal


def matrix_lines(matrix: Matrix, width: int = WIDTH) -> list[str]:
    """A line for each condition, a column for each seed; how far it is; what needs looking at.

    Where there is no room for the seeds, a condition says how many of its cells stand how.
    """
    columns = [f"s{seed}" for seed in matrix.terms.seeds]
    cells = [list(map(_cell, row)) for row in matrix.rows]
    cell_width = max(map(len, (*columns, *(cell for row in cells for cell in row))))
    names = [condition.name for condition in matrix.terms.conditions]
    room = width - (cell_width + 2) * len(columns) - MEAN_WIDTH
    if room < min(LEAST_NAME, max(map(len, names))):
        columns, cell_width = ["cells"], width - MOST_NAME - MEAN_WIDTH - 2
        cells = [[_counts(row)[:cell_width]] for row in matrix.rows]
        room = MOST_NAME
    names = shortened(names, min(room, MOST_NAME))
    widest = max(map(len, names))
    lines = [("", columns, "mean"), *zip(names, cells, map(_mean, matrix.rows), strict=True)]
    return [
        f"{name:{widest}}{''.join(f'  {it:>{cell_width}}' for it in own)}{mean:>{MEAN_WIDTH}}"
        for name, own, mean in lines
    ] + ["", *_ends(matrix)]


def _counts(row: Sequence[Cell]) -> str:
    """`7 ok, 1 oom`."""
    found = Counter(cell.status for cell in row)
    return ", ".join(f"{count} {status}" for status, count in found.most_common())


def _cell(cell: Cell) -> str:
    """`3.1385`, `oom`, `> 3m20`, `> 7/16`, `.`."""
    share = f" {cell.settled}/{cell.planned}"
    if cell.status == "ok":
        return number(cell.score, none="ok")
    if cell.status == PENDING:
        return f".{share}" if cell.planned > 1 and cell.settled else "."
    if cell.status == RUNNING and cell.planned > 1:
        return f">{share}"
    if cell.status == RUNNING and cell.seconds is not None:
        minutes, seconds = divmod(max(0, round(cell.seconds)), 60)
        hours, rest = divmod(minutes, 60)
        short = f"{minutes}m{seconds:02d}" if minutes else f"{seconds}s"
        return f"> {hours}h{rest:02d}" if hours else f"> {short}"
    return ">" if cell.status == RUNNING else cell.status


def _mean(row: Sequence[Cell]) -> str:
    healthy = [cell.score for cell in row if cell.score is not None]
    return f"{fmean(healthy):.5g}" if healthy else "-"


def _ends(matrix: Matrix) -> Iterator[str]:
    """How many cells stand where, and what is wrong with which."""
    counts = ", ".join(f"{count} {status}" for status, count in matrix.counts.items())
    settled = len(matrix.cells) - matrix.unsettled
    yield f"{settled} of {len(matrix.cells)} settled: {counts}."
    noted = [
        f"  {condition.name}, seed {seed}: {cell.status}: {cell.note}"
        for condition, row in zip(matrix.terms.conditions, matrix.rows, strict=True)
        for seed, cell in zip(matrix.terms.seeds, row, strict=True)
        if cell.note
    ]
    yield from noted[:MOST_NOTES]
    if len(noted) > MOST_NOTES:
        yield f"  and {len(noted) - MOST_NOTES} more; --json has them all."


# A campaign whose cells are runs of their own, as `export slurm` makes them


@dataclass(frozen=True)
class Exported:
    """A campaign of jobs as it stands: each cell is a run with a ledger of its own."""

    directory: Path
    matrix: Matrix
    report: CampaignReport

    @property
    def whose(self) -> str:
        """`finished`, `3 of 8 runs running`."""
        running = self.matrix.counts.get(RUNNING, 0)
        return "finished" if self.is_over else f"{running} of {self.size} runs running"

    @property
    def is_over(self) -> bool:
        return self.report.is_over

    @property
    def size(self) -> int:
        return len(self.matrix.cells)

    @property
    def sentence(self) -> str:
        return campaign_sentence(self.report, "runs")

    def lines(self, width: int = WIDTH) -> list[str]:
        """For a terminal of that width."""
        lines = [f"{self.directory}: {self.whose}", "", *matrix_lines(self.matrix, width)]
        return [*lines, self.sentence] if self.is_over else lines

    def document(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "directory": str(self.directory),
            "whose": self.whose,
            "sentence": self.sentence,
            "statuses": self.matrix.counts,
            "matrix": self.matrix.model_dump(mode="json"),
            "campaign": self.report.model_dump(mode="json"),
        }

    def page(self, *figures: Figure) -> Page:
        """What it found, and how each run stands."""
        heads = [f">seed {seed}" for seed in self.matrix.terms.seeds]
        rows = []
        for condition, cells in zip(self.matrix.terms.conditions, self.matrix.rows, strict=True):
            said = (f"{cell.status} {number(cell.score, none='')}" for cell in cells)
            rows.append({"condition": plain(condition.name), **dict(zip(heads, said, strict=True))})
        title = "Effects found" if self.report.found else "No effect found"
        sections = (
            Section("effects", "Effects", [*figures, *campaign_blocks(self.report)]),
            Section("runs", "Runs", table_of("How each run stands, and its score", rows)),
        )
        own = headline(title if self.is_over else "In progress", self.sentence)
        return Page(self.report.name, f"a campaign of {self.size} runs", own, sections)


def exported(run: str | None, root: Path, now: datetime) -> Exported | None:
    """The campaign of jobs of that name or in that directory; None where there is no manifest.

    Raises ValueError where the manifest cannot be read.
    """
    if run is None or (found := manifests.campaign_of_runs(run, root)) is None:
        return None
    matrix = matrix_of_runs(*found, now)
    level, is_over = Thresholds().alive_level, not matrix.unsettled
    return Exported(found[0], matrix, campaign_report(matrix, level, is_over=is_over))


def collect(own: Exported) -> None:
    """Write what the runs of a campaign came to into its `effects.json` and its manifest."""
    manifest = manifests.read_manifest(own.directory)
    assert manifest is not None, "it was read before"
    manifests.write_manifest(own.directory, manifests.with_statuses(manifest, own.matrix))
    effects = {"sentence": own.sentence, "campaign": own.report.model_dump()}
    write_aside(own.directory / "effects.json", document(effects))
