"""What the head of a run's page says of a snapshot, in words."""

from datetime import datetime, timedelta

from budgets.pace import Pace
from budgets.report.pace_text import per_cent, track
from orchestrator.serve.entry import Entry
from orchestrator.watch import parts
from orchestrator.watch.glyphs import UNICODE, Line
from orchestrator.watch.snapshot import DeviceRow, Snapshot


def title(entry: Entry, snapshot: Snapshot | None) -> str:
    """In the browser's tab."""
    if snapshot is not None and entry.goes_on:
        return f"{per_cent(snapshot.pace.progress)} {entry.name}"
    return f"{entry.name}: {entry.shown}"


def terms(snapshot: Snapshot) -> dict[str, str]:
    """How it goes on; what is not known is empty."""
    return {
        "Doing": snapshot.course,
        "Score": "".join(map(_said, parts.mean(snapshot, UNICODE))),
        "Best so far": "".join(map(_said, parts.best(snapshot.scores))).removeprefix("best "),
        "Evaluations": _said(parts.evaluations(snapshot)),
        "Ends": "" if snapshot.way_on else _ends(snapshot.pace),
    }


def _said(line: Line) -> str:
    return "".join(text for text, _ in line)


def _ends(pace: Pace) -> str:
    """To the minute, so that it changes no more often."""
    if pace.eta is None or pace.remaining_hours is None:
        return ""
    over = (pace.eta + timedelta(seconds=30)).replace(second=0, microsecond=0).astimezone()
    return ", ".join(filter(None, (f"at about {over:%Y-%m-%d %H:%M}", track(pace))))


def notes(snapshot: Snapshot) -> list[str]:
    """Rules and overrides, the last first."""
    return [_said(line) for line in parts.notes(snapshot)]


def began(seconds: float, now: datetime) -> str:
    """The moment since which so many have passed, to the millisecond: the same at each look."""
    moment = now - timedelta(seconds=seconds)
    millisecond = round(moment.microsecond / 1000)
    moment = moment.replace(microsecond=0) + timedelta(milliseconds=millisecond)
    return moment.isoformat(timespec="milliseconds")


def heartbeat(device: DeviceRow) -> str:
    """What its evaluation said last."""
    step = "" if device.step is None else f"step {device.step:,.0f}"
    loss = "" if device.loss is None else f"loss {device.loss:.4g}"
    return ", ".join(filter(None, (step, loss)))
