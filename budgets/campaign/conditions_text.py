"""A campaign's conditions against its controls, as tables."""

from collections.abc import Iterator, Sequence

from budgets.blocks import Table
from budgets.campaign.words import in_words
from budgets.effects import CampaignReport, Comparison, ConditionRow
from budgets.formatting import number, plain, shortened

MOST_NAME = 24
"""Characters: with longer names a line has room for one control."""

CAPTION = "Conditions"

NAME_WIDTH = 50
"""Characters that a line has for a name beside one control."""


def condition_tables(report: CampaignReport) -> Iterator[Table]:
    """One, or as many as it takes to have the controls fit on the lines."""
    found = _with_short_names(report)
    per_table = 2 if max(len(row.name) for row in found.rows) <= MOST_NAME else 1
    named = [c for c in found.controls if any(_against(row, c) for row in found.rows)]
    own = named[:per_table]
    rows = [_line(row, _own(row, len(found.seeds)), own) for row in found.rows]
    yield Table(CAPTION, ["condition", ">healthy", ">mean", ">sd", *_heads(own)], rows)
    for start in range(per_table, len(named), per_table):
        yield _further_table(found, named[start : start + per_table])


def _further_table(found: CampaignReport, controls: Sequence[str]) -> Table:
    """Of the conditions that are compared with any of these controls."""
    rows = [row for row in found.rows if any(_against(row, control) for control in controls)]
    columns = ["condition", *_heads(controls)]
    return Table(CAPTION, columns, [_line(row, (), controls) for row in rows])


def _heads(controls: Sequence[str]) -> Iterator[str]:
    return (f">against {plain(control)}" for control in controls)


def _line(row: ConditionRow, own: Sequence[str], controls: Sequence[str]) -> list[str]:
    compared = (
        "(control)" if row.name == control else _in_bold(_against(row, control))
        for control in controls
    )
    return [plain(row.name), *own, *compared]


def _own(row: ConditionRow, seeds: int) -> tuple[str, ...]:
    """`6 of 8 (2 oom)`, mean and sd."""
    others = [f"{count} {status}" for status, count in row.statuses.items() if status != "ok"]
    healthy = f"{row.healthy} of {seeds}" + (f" ({', '.join(others)})" if others else "")
    return healthy, number(row.mean), number(row.sd, 3)


def _against(row: ConditionRow, control: str) -> Comparison | None:
    return next((one for one in row.comparisons if one.control == control), None)


def _in_bold(one: Comparison | None) -> str:
    if one is None:
        return ""
    said = in_words(one.difference)
    return f"**{said}**" if one.difference.is_found else said


def _with_short_names(found: CampaignReport) -> CampaignReport:
    names = [row.name for row in found.rows]
    short = dict(zip(names, shortened(names, NAME_WIDTH), strict=True))
    if all(name == cut for name, cut in short.items()):
        return found
    rows = (
        row.model_copy(
            update={
                "name": short[row.name],
                "comparisons": tuple(
                    one.model_copy(update={"control": short[one.control]})
                    for one in row.comparisons
                ),
            }
        )
        for row in found.rows
    )
    return found.model_copy(update={"rows": tuple(rows)})
