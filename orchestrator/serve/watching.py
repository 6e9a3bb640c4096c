"""A run at the moment as the head of its page: a snapshot in words, bars and tables."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from budgets.markdown import amount, duration
from budgets.plain import printable
from budgets.report import Balance
from orchestrator.serve.entry import Entry
from orchestrator.serve.view import Bar, Cell, Row, Since, View
from orchestrator.watch.snapshot import Counts, DeviceRow, Snapshot, Timing

TERMS = (
    ("course", "Doing"),
    ("counts", "Evaluations"),
    ("best", "Best so far"),
    ("mean", "Mean"),
    ("left", "Ends"),
    ("track", "Its plan"),
)
"""What the head says, in this order: keys of its text, with their titles."""


def view(entry: Entry, snapshot: Snapshot | None, version: str) -> View:
    """The state of a run's page. Without a snapshot its ledger cannot be read: `entry` says why."""
    text = {"name": entry.name, "standing": entry.verdict or entry.standing, "where": ""}
    if snapshot is None:
        return View(
            title=f"{entry.name}: {entry.standing}",
            version=version,
            text=text | {"sentence": ""},
            moods={"run": f"live mood-{entry.mood}"},
        )
    text |= {"where": f"on {entry.where}" if entry.where else "", "sentence": ""}
    if entry.standing == "interrupted":  # which its report cannot know
        text["sentence"] = entry.sentence
    text |= {key: printable(said) for key, said in _text(snapshot).items()}
    return View(
        title=_title(entry, snapshot),
        version=version,
        is_over=snapshot.is_over,
        text=text,
        bars={"progress": snapshot.timing.progress},
        moments={} if snapshot.last is None else {"heard": snapshot.last.isoformat()},
        moods={"run": f"live mood-{entry.mood}"},
        tables=_tables(snapshot),
    )


def _title(entry: Entry, snapshot: Snapshot) -> str:
    if entry.standing == "running":
        return f"{snapshot.timing.progress:.0%} {entry.name}"
    return f"{entry.name}: {entry.verdict or entry.standing}"


def _text(snapshot: Snapshot) -> dict[str, str]:
    return {
        "course": snapshot.course,
        "counts": _counts(snapshot.counts),
        "best": _best(snapshot),
        "mean": _mean(snapshot),
        "left": _left(snapshot.timing),
        "track": _track(snapshot.timing),
    }


def _counts(counts: Counts) -> str:
    """`12 of 40 settled: 11 ok, 1 failed (error 1); 2 in flight`."""
    parts = [f"{counts.ok} ok"]
    if counts.failed:
        kinds = ", ".join(f"{status} {number}" for status, number in counts.failed.items())
        parts.append(f"{sum(counts.failed.values())} failed ({kinds})")
    if counts.lost:
        parts.append(f"{counts.lost} attempts without a result")
    flying = f"; {counts.in_flight} in flight" if counts.in_flight else ""
    return f"{counts.settled} of {counts.planned} settled: {', '.join(parts)}{flying}"


def _best(snapshot: Snapshot) -> str:
    scores = snapshot.scores
    if scores.best is None:
        return ""
    luck = "" if scores.best_by_luck is None else f"; luck alone: {scores.best_by_luck:.5g}"
    return f"{scores.best:.5g}{luck}"


def _mean(snapshot: Snapshot) -> str:
    """Of the last generation that has one, beside the baseline and its noise."""
    scores = snapshot.scores
    known = [generation for generation in scores.generations if generation.mean is not None]
    if not known:
        return "" if scores.baseline is None else f"baseline {scores.baseline:.5g}"
    last = known[-1]
    said = f"{last.mean:.5g} in generation {last.number + 1}"
    if not last.is_full:
        return f"{said}, short"
    if scores.baseline is None or scores.band is None:
        return said
    low, high = scores.band
    noise = f"baseline {scores.baseline:.5g}, its noise {low:.5g} to {high:.5g}"
    return f"{said}, {last.outside or 'within the noise'} ({noise})"


def _left(timing: Timing) -> str:
    """To the minute, so that it changes no more often."""
    if timing.eta is None or timing.remaining_seconds is None:
        return ""
    rate = "" if timing.evals_per_hour is None else f", {timing.evals_per_hour:,.0f} an hour"
    over = (timing.eta + timedelta(seconds=30)).replace(second=0, microsecond=0).astimezone()
    return f"over at about {over:%Y-%m-%d %H:%M}{rate}"


def _track(timing: Timing) -> str:
    if timing.on_track is None:
        return ""
    if timing.on_track:
        return "on track"
    short = "" if timing.slack_seconds is None else f", {duration(-timing.slack_seconds)} short"
    return f"off track ({timing.binding}{short})"


def _tables(snapshot: Snapshot) -> dict[str, list[Row]]:
    return {
        "budget": [_budget(balance) for balance in snapshot.balances if balance.counts],
        "devices": [_device(device, snapshot.now) for device in snapshot.devices],
        "arms": [
            _row(f"{arm.panel}: {arm.name}", f"{arm.settled} of {arm.planned}", _score(arm.mean))
            for arm in snapshot.arms
        ],
        "notes": [_row(text) for text in _notes(snapshot)],
    }


def _notes(snapshot: Snapshot) -> Iterator[str]:
    yield from (f"Rule {text}" for text in snapshot.triggers)
    yield from (f"Overridden {text}" for text in snapshot.overrides)
    yield from (f"Withdrawn {text}" for text in snapshot.withdrawn)


def _budget(balance: Balance) -> Row:
    spent, reserved = amount(balance, balance.spent), amount(balance, balance.reserved)
    bar: Bar | None = None
    if balance.cap:
        share = min(1.0, balance.spent / balance.cap)
        bar = Bar(bar=share, label=f"share of {balance.currency} that is spent")
    return _row(balance.currency, bar, spent, reserved, amount(balance, balance.cap))


def _device(device: DeviceRow, now: datetime) -> Row:
    since: Since | None = None
    if device.seconds is not None:
        began = now - timedelta(seconds=device.seconds)
        millisecond = round(began.microsecond / 1000)  # the same at each look
        began = began.replace(microsecond=0) + timedelta(milliseconds=millisecond)
        since = Since(since=began.isoformat(timespec="milliseconds"))
    expected = device.expected_seconds
    parts = (
        "" if device.step is None else f"step {device.step:,.0f}",
        "" if device.loss is None else f"loss {device.loss:.4g}",
    )
    bar: Cell = None
    if device.progress is not None:
        bar = Bar(bar=round(device.progress, 3), label=f"progress of {printable(device.what)}")
    again = f", attempt {device.attempt}" if device.attempt > 1 else ""
    row = _row(
        device.device or f"slot {device.slot}",
        f"{device.what}{again}" if device.what else device.doing,
        since,
        "" if expected is None else f"{duration(expected)}",
        ", ".join(filter(None, parts)),
        bar,
    )
    return Row(look="late" if device.is_overdue else "", cells=row["cells"])


def _score(score: float | None) -> str:
    return "" if score is None else f"{score:.5g}"


def _row(*cells: Cell) -> Row:
    shown = [printable(cell) if isinstance(cell, str) else cell for cell in cells]
    return Row(look="", cells=shown)
