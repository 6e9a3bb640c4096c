"""What each device does, as lines: the most interesting ones where there are too many."""

from collections import Counter

from budgets.words import duration, precise_duration
from orchestrator.watch.glyphs import ASCII, BAD, FAINT, Glyphs, Line, Piece, bar, padded
from orchestrator.watch.snapshot import DeviceRow

NAME, WHAT, TIME, BAR = 16, 26, 16, 10
"""Columns at most."""

ROOMY, NARROW = 86, 60
"""Columns of the terminal from which on there is room for bars; below which names are short."""


SHORT_ID = 12
"""Characters of a GPU's name that tell it from the others."""


def device_lines(rows: tuple[DeviceRow, ...], most: int, width: int, glyphs: Glyphs) -> list[Line]:
    """In so many lines at most; those that are left out are counted in the last one."""
    if most <= 0 or not rows:
        return []
    if len(rows) <= most:
        return _laid_out(sorted(rows, key=_place), width, glyphs)
    by_interest = sorted(rows, key=_interest)
    kept, left_out = by_interest[: most - 1], by_interest[most - 1 :]
    return [*_laid_out(kept, width, glyphs), ((_summary(left_out, bool(kept)), FAINT),)]


def told(rows: tuple[DeviceRow, ...], most: int) -> list[str]:
    """The same as plain text."""
    lines = device_lines(rows, most, WHAT + NARROW, ASCII)
    return ["".join(text for text, _ in line).rstrip() for line in lines]


def name_of(row: DeviceRow, *, with_host: bool = True) -> str:
    """As short as it can be told from the others: CPU slots by their number."""
    device, _, host = row.device.partition(" on ")
    at = f" on {host}" if host and with_host else ""
    if device in ("", "cpu"):
        return f"{device or 'slot'} {row.slot + 1}{at}"
    return f"gpu {device}{at}" if device.isdigit() else f"{device[:SHORT_ID]}{at}"


def _place(row: DeviceRow) -> tuple[bool, str, int]:
    is_gpu = row.device.partition(" on ")[0] not in ("", "cpu")
    return (not is_gpu, row.device if is_gpu else "", row.slot)


def _interest(row: DeviceRow) -> tuple[bool, bool, float, int]:
    """Overdue ones first, then those nearest to their end; idle ones last."""
    return (not row.is_overdue, row.doing == "idle", -row.share, row.slot)


def _summary(rows: list[DeviceRow], beside: bool) -> str:
    kinds = Counter("overdue" if row.is_overdue else row.doing for row in rows)
    order = ("overdue", "running", "starting", "idle")
    told = ", ".join(f"{kinds[kind]} {kind}" for kind in order if kinds[kind])
    return f"{'and ' * beside}{len(rows)}{' more' * beside}: {told}"


def _laid_out(rows: list[DeviceRow], width: int, glyphs: Glyphs) -> list[Line]:
    """Columns as wide as they need to be, within bounds."""
    hosts = {row.device.partition(" on ")[2] for row in rows}
    names = [name_of(row, with_host=len(hosts - {""}) > 1) for row in rows]
    name = min(max(map(len, names), default=0), NAME if width >= NARROW else NAME // 2)
    what = min(max((len(row.what) for row in rows), default=0), WHAT if width >= NARROW else 12)
    return [
        _line(row, padded(own, name, glyphs.cut), what, width, glyphs)
        for row, own in zip(rows, names, strict=True)
    ]


def _line(row: DeviceRow, name: str, what: int, width: int, glyphs: Glyphs) -> Line:
    if row.doing == "idle":
        since = "" if row.seconds is None else f" for {precise_duration(row.seconds)}"
        return ((f"{name}  ", None), (f"idle{since}", FAINT))
    pieces: list[Piece] = [(f"{name}  {padded(row.what, what, glyphs.cut)}  ", None)]
    pieces.append((f"{_time(row):{TIME}s}", None))
    share = _share(row) if width >= ROOMY else None
    if share is not None:
        pieces.append((f"  {bar(BAR, share, 0.0, glyphs)}", None))
    if row.is_overdue:
        limit = f", ends at {duration(row.limit_seconds)}" if row.limit_seconds else ""
        pieces.append((f"  overdue{limit}", BAD))
    pieces.append((_heartbeat(row, in_per_cent=share is None), None))
    return tuple(pieces)


def _time(row: DeviceRow) -> str:
    if row.seconds is None:
        return "interrupted"
    said = precise_duration(row.seconds)
    if row.expected_seconds is None:
        return said
    return f"{said} of ~{precise_duration(row.expected_seconds)}"


def _share(row: DeviceRow) -> float | None:
    if row.progress is not None:
        return row.progress
    if row.seconds is None or not row.expected_seconds:
        return None
    return min(1.0, row.seconds / row.expected_seconds)


def _heartbeat(row: DeviceRow, *, in_per_cent: bool) -> str:
    parts = ["starting"] if row.doing == "starting" else []
    if row.attempt > 1:
        parts.append(f"attempt {row.attempt}")
    if row.step is not None:
        parts.append(f"step {row.step:.0f}")
    if row.progress is not None and in_per_cent:
        parts.append(f"{row.progress:.0%}")
    if row.loss is not None:
        parts.append(f"loss {row.loss:.4g}")
    return f"  {', '.join(parts)}" if parts else ""
