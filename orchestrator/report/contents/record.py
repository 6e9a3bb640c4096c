"""Loss curves, failures, what rules and people decided, where it all comes from."""

from collections.abc import Iterator, Mapping, Sequence

from budgets.blocks import Heading, Items, Table, Text
from budgets.plain import command, one_line, plain, printable
from budgets.words import precise_duration
from orchestrator.report.contents.blocks import Block, Commands, Figure, Log, why_none
from orchestrator.report.model import FailureGroup, Report

MOST_GROUPS = 20
"""Of failures."""


def training(report: Report, figures: list[Figure]) -> list[Block]:
    """Loss curves of the best and the baseline, or why there are none."""
    return [*figures] if figures else [why_none(report.no_curves or "there are no loss curves")]


def failures(report: Report, figures: list[Figure]) -> list[Block]:
    """Failures by cause, each with the last lines that one of them left."""
    if not report.failures:
        return [Text("Nothing has failed.")]
    shown = report.failures[:MOST_GROUPS]
    more = len(report.failures) - len(shown)
    return [
        _groups(shown),
        *figures,
        *(block for group in shown for block in _group(group)),
        *([Text(f"And {more} more kinds of failure, each rarer than these.")] if more else []),
    ]


def _groups(groups: Sequence[FailureGroup]) -> Table:
    return Table(
        "Attempts that failed, by whose doing it was and by cause; final: not retried",
        ["cause", "whose", ">attempts", ">final", "for example"],
        [
            [plain(g.what), g.whose, str(g.attempts), str(g.final), plain(one_line(g.example, 200))]
            for g in groups
        ],
    )


def _group(group: FailureGroup) -> Iterator[Block]:
    yield Heading(plain(group.what))
    if group.places:
        yield Text(f"For example {', '.join(f'`{_place(place)}`' for place in group.places)}.")
    if not group.log:
        yield Text("None of them left a log.")
        return
    yield Log(group.log_from, group.log)


def _place(place: str) -> str:
    return printable(place).replace("`", "'")


def rules(report: Report, _: list[Figure]) -> list[Block]:
    """What rules and people decided, and what happened to the ledger and the devices."""
    own = report.budget
    parts = (
        ("Rules that fired", own.triggers),
        ("Overrides: a person let it go on", own.overrides),
        ("Amendments: a person changed its caps", own.amendments),
        ("Salvaged: records of a damaged ledger", own.salvaged),
        ("Devices withdrawn", own.withdrawn),
    )
    found: list[Block] = []
    for title, entries in parts:
        if entries:
            found += [Heading(title), Items([plain(entry) for entry in entries])]
    nothing = "No rule fired, and nothing was overridden, amended, salvaged or withdrawn."
    return [
        *(found or [Text(nothing)]),
        Text(f"Every rule and what it sees: `{_explain(report)}`."),
    ]


def _explain(report: Report) -> str:
    return command("explain", report.identity.named)


def provenance(report: Report, _: list[Figure]) -> list[Block]:
    """What decides the scores, and how to get them again."""
    own = report.provenance
    tables = (
        ("Settings of the objective", "setting", own.settings),
        ("Data", "what", own.data),
        ("Search", "term", own.search),
        ("Caps", "cap", own.caps),
        ("Limits of one evaluation", "limit", own.limits),
        ("Versions", "package", own.versions),
    )
    return [
        Text(f"On {plain(own.devices)}.{_calibration(own.calibration)}"),
        *([Commands(own.commands)] if own.commands else []),
        *(_pairs(title, head, pairs) for title, head, pairs in tables if pairs),
        *([Items([plain(e) for e in own.changed_versions])] if own.changed_versions else []),
    ]


def _calibration(name: str | None) -> str:
    return "" if name is None else f" Noise and times: {plain(name)}."


def _pairs(title: str, head: str, pairs: Mapping[str, str]) -> Table:
    rows = [[plain(name), plain(one_line(value, 400))] for name, value in pairs.items()]
    return Table(title, [head, "value"], rows)


def ledger(report: Report, _: list[Figure]) -> list[Block]:
    """The sessions, and the hash that all of this rests on."""
    own = report.identity
    sessions = [
        [
            str(one.number + 1),
            f"{one.opened:%Y-%m-%d %H:%M:%S} UTC",
            precise_duration(one.ended - one.began),
            plain(one.host),
            str(one.workers),
        ]
        for one in own.sessions
    ]
    columns = [">session", "opened", ">open for", "host", ">slots"]
    return [
        *(
            [Table("Sessions: processes that had the ledger", columns, sessions)]
            if sessions
            else []
        ),
        Text(
            f"{own.records} records, the last of {own.last:%Y-%m-%d %H:%M:%S} UTC; head "
            f"`{own.head}`. Everything here follows from them and from the files of the attempts."
        ),
    ]
