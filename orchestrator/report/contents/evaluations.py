"""When and where evaluations ran, how long it took; the slowest, the failed, those in flight."""

from collections.abc import Iterator, Sequence

from budgets.blocks import Table, Text
from budgets.events import Status
from budgets.plain import command, one_line, plain
from budgets.words import in_bytes, number, precise_duration
from orchestrator.report.contents.blocks import Block, Figure
from orchestrator.report.model import Evaluation, InFlight, Report

SLOWEST, MOST_FAILED, MOST_OF_FEW = 10, 30, 20
"""Rows of each table; a run of no more evaluations than the last shows all of them."""


def evaluations(report: Report, figures: list[Figure]) -> list[Block]:
    """The section."""
    return [_count(report), *figures, *_tables(report), *_flying(report)]


def _count(report: Report) -> Text:
    attempts, final = len(report.evaluations), sum(e.is_final for e in report.evaluations)
    if not attempts:
        return Text("No evaluation has ended yet.")
    recovered = sum(e.recovered for e in report.evaluations)
    again = "" if attempts == final else f" in {attempts} attempts"
    taken_up = "" if not recovered else f", {recovered} of them recovered from their own files"
    whole = command("ledger", "export", report.identity.named)
    return Text(f"{final} evaluations are settled{again}{taken_up}. All of them: `{whole}`.")


def _tables(report: Report) -> Iterator[Block]:
    own = report.evaluations
    if 0 < len(own) <= MOST_OF_FEW:
        yield _table("Every evaluation, in the order in which they ended", own)
        return
    healthy = sorted((e for e in own if e.status is Status.OK), key=lambda e: -e.seconds)
    if healthy:
        yield _table(
            f"The {min(SLOWEST, len(healthy))} slowest that gave a score", healthy[:SLOWEST]
        )
    failed = [e for e in own if e.status is not Status.OK]
    if failed:
        few = failed[-MOST_FAILED:]
        which = "" if len(few) == len(failed) else f": the last {len(few)} of {len(failed)}"
        yield _table(f"Attempts that gave no score{which}", few)


def _table(caption: str, own: Sequence[Evaluation]) -> Table:
    columns = ["evaluation", ">seed", "status", ">score", ">took", ">memory", "on", ">began"]
    is_caused = any(e.cause for e in own)
    if is_caused:
        columns.append("cause")
    rows = [_row(e, is_caused=is_caused) for e in own]
    return Table(f"{caption}; began: after the run did", columns, rows)


def _row(one: Evaluation, *, is_caused: bool) -> list[str]:
    cells = [
        which(one),
        f"{one.seed}{'' if one.attempt == 1 else f', attempt {one.attempt}'}",
        str(one.status),
        number(one.score),
        precise_duration(one.seconds),
        in_bytes(one.peak_memory_bytes),
        plain(one.device),
        precise_duration(one.began),
    ]
    return [*cells, plain(one_line(one.cause, 160))] if is_caused else cells


def which(one: Evaluation | InFlight) -> str:
    """`generation 3, candidate 2`, `winner, average`; of a campaign its condition."""
    return plain(one.arm if one.arm and one.panel is None else one.where)


def _flying(report: Report) -> Iterator[Block]:
    if not report.in_flight:
        return
    yield Table(
        "Reserved and not settled, as of the last record",
        ["evaluation", ">seed", ">attempt", ">began", ">set aside"],
        [
            [which(one), str(one.seed), str(one.attempt), precise_duration(one.began),
             precise_duration(one.reserved_seconds)]
            for one in report.in_flight
        ],
    )  # fmt: skip
