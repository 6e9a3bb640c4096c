"""A run at the moment as the head of its page: a snapshot in words, bars and tables."""

from datetime import datetime, timedelta

from budgets.plain import printable
from budgets.report.markdown import amount
from budgets.report.model import Balance
from budgets.report.pace import Pace
from budgets.report.pace_text import per_cent, track
from budgets.words import duration, number
from orchestrator.serve.entry import Entry
from orchestrator.serve.view import Bar, Cell, Row, Since, View
from orchestrator.watch import parts
from orchestrator.watch.glyphs import UNICODE, Line
from orchestrator.watch.rows import name_of
from orchestrator.watch.snapshot import DeviceRow, Snapshot

TERMS = (
    ("course", "Doing"),
    ("score", "Score"),
    ("best", "Best so far"),
    ("counts", "Evaluations"),
    ("ends", "Ends"),
)
"""What the head says, in this order: keys of its text, with their titles."""


def view(entry: Entry, snapshot: Snapshot | None, version: str) -> View:
    """The state of a run's page. Without a snapshot its ledger cannot be read: `entry` says why."""
    text = {"standing": entry.shown, "where": "", "sentence": ""}
    if snapshot is None:
        return View(
            title=f"{entry.name}: {entry.standing}",
            version=version,
            text=text,
            moods={"run": f"live mood-{entry.mood}"},
        )
    if entry.where:
        text["where"] = f"on {entry.where}"
    if snapshot.way_on:  # which its report cannot know
        text["sentence"] = entry.sentence
    text |= {key: printable(said) for key, said in _text(snapshot).items()}
    return View(
        title=_title(entry, snapshot),
        version=version,
        is_over=snapshot.is_over,
        text=text,
        bars={"progress": snapshot.pace.progress},
        moments={} if snapshot.last is None else {"heard": snapshot.last.isoformat()},
        moods={"run": f"live mood-{entry.mood}"},
        tables=_tables(snapshot),
    )


def _title(entry: Entry, snapshot: Snapshot) -> str:
    if entry.goes_on:
        return f"{per_cent(snapshot.pace.progress)} {entry.name}"
    return f"{entry.name}: {entry.shown}"


def _text(snapshot: Snapshot) -> dict[str, str]:
    return {
        "course": snapshot.course,
        "score": "".join(map(_said, parts.mean(snapshot, UNICODE))),
        "best": "".join(map(_said, parts.best(snapshot.scores))).removeprefix("best "),
        "counts": _said(parts.evaluations(snapshot)),
        "ends": "" if snapshot.way_on else _ends(snapshot.pace),
    }


def _said(line: Line) -> str:
    return "".join(text for text, _ in line)


def _ends(pace: Pace) -> str:
    """To the minute, so that it changes no more often."""
    if pace.eta is None or pace.remaining_hours is None:
        return ""
    over = (pace.eta + timedelta(seconds=30)).replace(second=0, microsecond=0).astimezone()
    return ", ".join(filter(None, (f"at about {over:%Y-%m-%d %H:%M}", track(pace))))


def _tables(snapshot: Snapshot) -> dict[str, list[Row]]:
    return {
        "budget": [_budget(balance) for balance in snapshot.balances if balance.counts],
        "devices": [_device(device, snapshot.now) for device in snapshot.devices],
        "arms": [
            _row(arm.name, f"{arm.settled} of {arm.planned}", number(arm.mean, none=""))
            for arm in snapshot.arms
        ],
        "notes": [_row(_said(line)) for line in parts.notes(snapshot)],
    }


def _budget(balance: Balance) -> Row:
    spent, reserved = amount(balance, balance.spent), amount(balance, balance.reserved)
    bar: Bar | None = None
    if balance.cap:
        share = min(1.0, balance.spent / balance.cap)
        bar = Bar(bar=share, label=f"share of {balance.label} that is spent")
    return _row(balance.label, bar, spent, reserved, amount(balance, balance.cap))


def _device(device: DeviceRow, now: datetime) -> Row:
    since: Since | None = None
    if device.seconds is not None:
        began = now - timedelta(seconds=device.seconds)
        millisecond = round(began.microsecond / 1000)  # the same at each look
        began = began.replace(microsecond=0) + timedelta(milliseconds=millisecond)
        since = Since(since=began.isoformat(timespec="milliseconds"))
    expected = device.expected_seconds
    heart = (
        "" if device.step is None else f"step {device.step:,.0f}",
        "" if device.loss is None else f"loss {device.loss:.4g}",
    )
    bar: Bar | None = None
    if device.progress is not None:
        bar = Bar(bar=round(device.progress, 3), label=f"progress of {printable(device.what)}")
    again = f", attempt {device.attempt}" if device.attempt > 1 else ""
    is_left = device.what and device.seconds is None  # by a process that is gone
    row = _row(
        name_of(device, with_host=True),
        f"{device.what}{again}" if device.what else device.doing,
        "interrupted" if is_left else since,
        "" if expected is None else duration(expected),
        ", ".join(filter(None, heart)),
        bar,
    )
    return Row(look="late" if device.is_overdue else "", cells=row["cells"])


def _row(*cells: Cell) -> Row:
    shown = [printable(cell) if isinstance(cell, str) else cell for cell in cells]
    return Row(look="", cells=shown)
