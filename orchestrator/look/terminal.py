"""A run on a terminal: a picture that fits any size, and the lines of `status`."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group
from rich.text import Text

from budgets.course import next_step, pairing, search_is_over
from budgets.plain import printable
from budgets.words import duration, precise_duration
from orchestrator.look import text
from orchestrator.look.rows import Balance, Slot
from orchestrator.look.run import Run

FAINT, STRONG, GOOD, BAD, ODD = "dim", "bold", "green", "bold red", "yellow"
"""Colours repeat what words say: nothing is said by them alone."""

LABEL, WIDTH_FOR_LABELS = 13, 60
"""Columns of what a line is about; and from how many columns of the terminal on it is there."""

ENDLESS = 1000
"""Lines, where nobody counts them."""

SHARES = (
    ("run", 1),
    ("now", 1),
    ("time", 1),
    ("evaluations", 1),
    ("score", 1),
    ("next", 3),
    ("run", 3),
    ("time", 2),
    ("devices", 3),
    ("rules", 2),
    ("comparisons", 2),
    ("budget", 1),
    ("score", 4),
    ("evaluations", 2),
    ("budget", 5),
    ("devices", 8),
    ("comparisons", 8),
    ("next", 9),
    ("devices", ENDLESS),
    ("rules", ENDLESS),
)
"""Which part gets how many lines in all, the most important first."""

FOLDED = ("run", "time", "next", "evaluations", "score")
"""Parts whose lines go on in the next one where they are too long; others are cut off."""

BAR, LEAST_BAR, AMOUNTS = 24, 8, 44
"""Columns of a bar at most and at least; and of what is said beside the bar of a currency."""

WIDTH_FOR_BARS = 70
"""Columns from which on there is room for a bar beside other things."""

NAME, WHAT, TIME, SLOT_BAR = 16, 40, 16, 10
"""Columns at most of a device's name, its evaluation, how long it takes, its bar."""

SHORT_ID = 12
"""Characters of a GPU's name that tell it from the others."""

MOST_NOTES = 5
MOST_SLOTS = 16
"""Lines of devices, where a status is printed once."""


class Glyphs(NamedTuple):
    """What shapes are drawn with."""

    spent: str
    reserved: str
    empty: str
    about: str  # plus and minus


UNICODE = Glyphs("\u2588", "\u2592", "\u2591", "\u00b1")
ASCII = Glyphs("#", "=", "-", "+-")


def glyphs_for(encoding: str) -> Glyphs:
    """Those that can be written in that encoding."""
    try:
        "".join(UNICODE).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


class Picture:
    """A run in at most `height` lines. A rich renderable, as wide as what it is printed on."""

    def __init__(self, run: Run, height: int = ENDLESS) -> None:
        self._run, self._height = run, height

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        run, glyphs = self._run, glyphs_for(options.encoding)
        label = LABEL if options.max_width >= WIDTH_FOR_LABELS else 0
        width = max(1, options.max_width - label)
        parts = _parts(run, width, glyphs)
        for name in FOLDED:
            folded = (
                line.wrap(console, width, overflow="fold", no_wrap=False) for line in parts[name]
            )
            parts[name] = [part for lines in folded for part in lines]
        wanted = {name: len(lines) for name, lines in parts.items()} | {"devices": len(run.slots)}
        rows = _shares(wanted, self._height)
        parts["devices"] = device_lines(run.slots, rows["devices"], width, glyphs)
        if rows["budget"] < wanted["budget"]:
            parts["budget"] = [_line(text.spent(run))]
        for name, lines in parts.items():
            for number, line in enumerate(lines[: rows[name]]):
                said = f"{name if number == 0 else '':{label}s}" if label else ""
                yield _line((said, FAINT), line)


def listing(lines: list[str], height: int = ENDLESS) -> Group:
    """Plain lines, of which so many are shown; the others are counted."""
    if len(lines) > height:
        more = len(lines) - height + 1
        lines = [*lines[: height - 1], f"and {more} lines more"]
    return Group(*map(_line, lines))


def status_lines(directory: Path, run: Run) -> Iterator[str]:
    """Once: how it stands, what it has spent, when it ends, what each device does, what to do."""
    yield f"{directory}: {run.standing.whose}"
    yield text.sentence(run)
    balances = [balance for balance in run.balances if balance.counts]
    width = max(len(balance.currency) for balance in balances)
    for one in balances:
        spent, reserved, free = (text.amount(one, of) for of in (one.spent, one.reserved, one.free))
        left = free if one.free is None else f"{free} free"
        yield f"  {one.currency:{width}s}  {spent} spent, {reserved} reserved, {left}"
    if not run.is_over:
        eta = {"eta": None} if run.standing.way_on else {}  # nobody's run ends at no time
        yield text.pace_line(run.pace.model_copy(update=eta), run.now)
    if run.standing.kind == "running":
        for line in device_lines(run.slots, MOST_SLOTS, WIDTH_FOR_BARS, ASCII):
            yield f"  {line.plain.rstrip()}"
    if run.standing.way_on:
        yield run.standing.way_on


def _line(*pieces: str | tuple[str, str] | Text) -> Text:
    """One line of a terminal, which steers nothing; it is cut off where it is too long."""
    line = Text(no_wrap=True, overflow="ellipsis")
    for piece in pieces:
        if isinstance(piece, Text):
            line.append_text(piece)
        else:
            said, style = (piece, "") if isinstance(piece, str) else piece
            line.append(printable(said).replace("\n", " "), style)
    return line


def _shares(wanted: dict[str, int], height: int) -> Counter[str]:
    """How many lines each part gets."""
    rows: Counter[str] = Counter()
    for name, most in SHARES:
        more = min(wanted[name], most) - rows[name]
        rows[name] += max(0, min(more, height - rows.total()))
    return rows


# The parts of the picture


def _parts(run: Run, width: int, glyphs: Glyphs) -> dict[str, list[Text]]:
    """All there is to say, in reading order; of devices nothing, there may be hundreds."""
    return {
        "run": [_who(run)],
        "now": [_now(run, width, glyphs)],
        "time": [_time(run)],
        "next": list(_next(run)),
        "evaluations": [_evaluations(run)],
        "score": list(_score(run, glyphs)),
        "comparisons": list(_comparisons(run)),
        "budget": _budget(run, width, glyphs),
        "devices": [],
        "rules": list(_notes(run)),
    }


def _who(run: Run) -> Text:
    """Which run it is, and whether somebody carries it out."""
    plan, standing = run.plan, run.standing
    tier = "" if plan.tier is None else f", tier {plan.tier}"
    return _line(
        (f"{plan.phase} {plan.run_id}", STRONG),
        f"{tier}, {run.objective}: ",
        (standing.whose, ODD if standing.way_on else ""),
    )


def _now(run: Run, width: int, glyphs: Glyphs) -> Text:
    """What it does now, and how much of all is done."""
    done = run.pace.progress
    filled = f"  {bar(BAR, done, 0.0, glyphs)}" if width >= WIDTH_FOR_BARS else ""
    return _line((doing(run), STRONG), f", {text.per_cent(done)} done{filled}")


def doing(run: Run) -> str:
    """What it does now: `generation 6 (7 of 15)`, `comparing the finalists on fresh seeds`."""
    plan, state = run.plan, run.state
    of_all = plan.resolved.generations
    if plan.search is None and plan.proxy is None:
        what = {"calibration": "the baseline", "check": "each knob", "campaign": "conditions"}
        seeds = f"{what.get(plan.phase, 'candidates')} on {plan.resolved.seeds_per_candidate} seeds"
        return "over" if state.concluded is not None else seeds
    current = state.current
    if pairing(state) is not None and current is None:
        return f"generation {state.asked} short as well"
    if current is not None and not search_is_over(state):
        short = "" if current.is_full else ", short"
        return f"generation {current.number} ({current.number + 1} of {of_all}){short}"
    step = next_step(state)
    if step in ("decide", "over"):
        return "the verdict" if step == "decide" else "over"
    return text.COMPARING.get(step, f"generation {state.asked} ({state.asked + 1} of {of_all})")


def _time(run: Run) -> Text:
    """When it will be over, and whether it keeps to its plan."""
    pace, line = run.pace, _line()
    if not run.is_over and pace.remaining_hours is not None:
        line.append(f"{duration(3600 * pace.remaining_hours)} left, ")
        if run.standing.kind == "running" and pace.eta is not None:
            line.append(f"ends at {text.clock(pace.eta, run.now)}, ")
        if said := text.on_track(pace):
            line.append(f"{said}, ", ODD if said.startswith("off") else "")
    return line.append(f"{duration(3600 * pace.elapsed_hours)} open")


def _next(run: Run) -> Iterator[Text]:
    """What a person is to know or do where nothing goes on."""
    if run.decision != "continue":
        yield _line(text.sentence(run))
    elif run.standing.way_on:
        yield _line((run.standing.way_on, ODD))


def _evaluations(run: Run) -> Text:
    """How many are ok, failed, lost, in flight, left; how many an hour."""
    counts, rate = run.counts, run.pace.evals_per_hour
    line = _line(f"{counts.ok} ok")
    if counts.failed:
        kinds = ", ".join(f"{number} {status}" for status, number in counts.failed.items())
        line.append(f", {sum(counts.failed.values())} failed ({kinds})", BAD)
    if counts.lost:
        line.append(f", {counts.lost} lost", ODD)
    line.append(f", {counts.in_flight} in flight, {counts.to_come} left")
    return line if rate is None else line.append(f", {rate:,.0f} an hour")


def _score(run: Run, glyphs: Glyphs) -> Iterator[Text]:
    """The last mean beside the baseline and its noise; the best beside what luck gives."""
    base, band = "", run.noise_band
    if run.baseline is not None:
        noise = "" if band is None else f" {glyphs.about} {(band[1] - band[0]) / 2:.2g}"
        base = f"the baseline, {run.baseline.mean:.5g}{noise}"
    last = next((one for one in reversed(run.generations) if one.mean is not None), None)
    if last is not None and run.is_search:
        line = _line((f"mean{'' if last.is_told else ' so far'} {last.mean:.5g}", STRONG))
        if last.is_short:
            line.append(" of short evaluations")
        elif base and band is not None:
            beside = f", {last.outside} than" if last.outside else ", in"
            style = {"better": GOOD, "worse": BAD, None: ""}[last.outside]
            line.append(f"{beside} the noise of ", style).append(base)
        elif base:
            line.append(f"; {base}")
        yield line
    elif base:
        yield _line(base)
    if run.best_so_far is not None and run.is_search:
        luck = "" if run.luck_so_far is None else f"; luck alone would give {run.luck_so_far:.5g}"
        yield _line((f"best {run.best_so_far:.5g}", STRONG), luck)


def _comparisons(run: Run) -> Iterator[Text]:
    """Configurations of the comparisons under way; where none is, of the last one."""
    arms = [arm for arm in run.arms if arm.comparison != "short evaluations"]
    under_way = {(arm.comparison, arm.number) for arm in arms if arm.settled < len(arm.scores)} or {
        (arm.comparison, arm.number) for arm in arms[-1:]
    }
    for arm in arms:
        if (arm.comparison, arm.number) in under_way:
            mean = "" if arm.mean is None else f", mean {arm.mean:.5g}"
            yield _line(f"{arm.name}: {arm.settled} of {len(arm.scores)}{mean}")


def _budget(run: Run, width: int, glyphs: Glyphs) -> list[Text]:
    """A line a currency: spent, reserved, cap."""
    balances = [balance for balance in run.balances if balance.counts]
    name = 2 + max((len(balance.currency) for balance in balances), default=0)
    return [_balance(balance, name, width, glyphs) for balance in balances]


def _balance(one: Balance, name: int, width: int, glyphs: Glyphs) -> Text:
    columns, filled = min(BAR, width - name - AMOUNTS), ""
    if columns >= LEAST_BAR and one.cap:
        filled = f"{bar(columns, one.spent / one.cap, one.reserved / one.cap, glyphs)}  "
    elif columns >= LEAST_BAR:
        filled = " " * (columns + 2)
    reserved = f" + {text.amount(one, one.reserved)} reserved" if one.reserved else ""
    cap = "no cap" if one.cap is None else f"of {text.amount(one, one.cap)}"
    return _line(
        f"{one.currency:{name}s}{filled}{text.amount(one, one.spent)} spent{reserved}, {cap}"
    )


def _notes(run: Run) -> Iterator[Text]:
    """Rules that fired, devices withdrawn, overrides; the last ones first."""
    state = run.state
    for fired in reversed(state.fired[-MOST_NOTES:]):
        yield _line(("rule ", BAD), f"{fired.rule}: {fired.evidence}")
    for withdrawn in reversed(state.withdrawn[-MOST_NOTES:]):
        yield _line(("withdrawn ", ODD), f"{withdrawn.device}: {withdrawn.why}")
    for overridden in reversed(state.overridden[-MOST_NOTES:]):
        yield _line(f"overridden {overridden.rule}: {overridden.reason}")


# What each device does


def device_lines(slots: tuple[Slot, ...], most: int, width: int, glyphs: Glyphs) -> list[Text]:
    """In so many lines at most: overdue ones and those nearest to their end; the rest counted."""
    if most <= 0 or not slots:
        return []
    if len(slots) <= most:
        return _laid_out(sorted(slots, key=_place), width, glyphs)
    by_interest = sorted(slots, key=_interest)
    kept, left_out = by_interest[: most - 1], by_interest[most - 1 :]
    kinds = Counter("overdue" if slot.is_overdue else slot.doing for slot in left_out)
    order = ("overdue", "running", "starting", "idle")
    counts = ", ".join(f"{kinds[kind]} {kind}" for kind in order if kinds[kind])
    more = f"and {len(left_out)} more" if kept else str(len(left_out))
    return [*_laid_out(kept, width, glyphs), _line((f"{more}: {counts}", FAINT))]


def _laid_out(slots: list[Slot], width: int, glyphs: Glyphs) -> list[Text]:
    """Columns as wide as they need to be, within bounds."""
    if not slots:
        return []
    hosts = {slot.device.partition(" on ")[2] for slot in slots} - {""}
    names = [device_name(slot, with_host=len(hosts) > 1) for slot in slots]
    name = min(max(map(cell_len, names)), NAME)
    what = max(cell_len(slot.what) for slot in slots)
    columns = name, max(12, min(what, WHAT, width - name - TIME - 4))
    return [
        _device_line(slot, own, columns, width, glyphs)
        for slot, own in zip(slots, names, strict=True)
    ]


def _device_line(
    slot: Slot, name: str, columns: tuple[int, int], width: int, glyphs: Glyphs
) -> Text:
    line = _line(f"{set_cell_size(printable(name), columns[0])}  ")
    if slot.doing == "idle":
        since = "" if slot.seconds is None else f" for {precise_duration(slot.seconds)}"
        return line.append(f"idle{since}", FAINT)
    took = "interrupted" if slot.seconds is None else precise_duration(slot.seconds)
    if slot.seconds is not None and slot.expected_seconds is not None:
        took += f" of ~{precise_duration(slot.expected_seconds)}"
    share = _share(slot) if width >= WIDTH_FOR_BARS else None
    filled = "" if share is None else f"  {bar(SLOT_BAR, share, 0.0, glyphs)}"
    line.append(f"{set_cell_size(printable(slot.what), columns[1])}  {took:{TIME}s}{filled}")
    if slot.is_overdue:
        limit = f", ends at {duration(slot.limit_seconds)}" if slot.limit_seconds else ""
        line.append(f"  overdue{limit}", BAD)
    parts = ["starting"] if slot.doing == "starting" else []
    parts += [f"attempt {slot.attempt}"] if slot.attempt > 1 else []
    parts += [] if slot.step is None else [f"step {slot.step:.0f}"]
    parts += [] if slot.progress is None or filled else [f"{slot.progress:.0%}"]
    parts += [] if slot.loss is None else [f"loss {slot.loss:.4g}"]
    return line.append(f"  {', '.join(parts)}") if parts else line


def device_name(slot: Slot, *, with_host: bool = True) -> str:
    """As short as it can be told from the others: CPU slots by their number."""
    device, _, host = slot.device.partition(" on ")
    at = f" on {host}" if host and with_host else ""
    if device in ("", "cpu"):
        return f"{device or 'slot'} {slot.slot + 1}{at}"
    return f"gpu {device}{at}" if device.isdigit() else f"{device[:SHORT_ID]}{at}"


def _place(slot: Slot) -> tuple[bool, str, int]:
    is_gpu = slot.device.partition(" on ")[0] not in ("", "cpu")
    return (not is_gpu, slot.device if is_gpu else "", slot.slot)


def _interest(slot: Slot) -> tuple[bool, bool, float, int]:
    """Overdue ones first, then those nearest to their end; idle ones last."""
    return (not slot.is_overdue, slot.doing == "idle", -(_share(slot) or 0.0), slot.slot)


def _share(slot: Slot) -> float | None:
    """How much of it is done, as it says itself, or by its time."""
    if slot.progress is not None or slot.seconds is None or not slot.expected_seconds:
        return slot.progress
    return min(1.0, slot.seconds / slot.expected_seconds)


def bar(width: int, spent: float, reserved: float, glyphs: Glyphs) -> str:
    """A bar of that width, filled by two shares of it that are 1 together at most."""
    full = min(width, round(width * max(0.0, spent)))
    both = min(width, max(full, round(width * max(0.0, spent + reserved))))
    return glyphs.spent * full + glyphs.reserved * (both - full) + glyphs.empty * (width - both)
