"""A run on a terminal: the picture of a live view, and the lines of `status`."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from budgets.formatting import duration, plain, precise_duration, printable
from orchestrator.look import text
from orchestrator.look.answer import answer
from orchestrator.look.blocks import answer_in_lines, markdown
from orchestrator.look.rows import Slot
from orchestrator.look.run import Run
from orchestrator.look.sections import summary

STRONG, BAD, ODD, FAINT = "bold", "bold red", "yellow", "dim"
"""Colours repeat what words say: nothing is said by them alone."""

WIDEST = (16, 24, 40, 40)
"""Columns at most of a device's name, how long it has been busy, with what, how far it is."""

MOST_NOTES, MOST_SLOTS = 3, 16
"""Lines of rules, withdrawn devices and overrides in the picture; of devices in `status`."""


class Picture:
    """A run in at most `height` lines, as wide as what it is printed on. A rich renderable."""

    def __init__(self, run: Run, height: int) -> None:
        self._run, self._height = run, height

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        grid, before = Table.grid(padding=(0, 2, 0, 0)), ""
        grid.add_column(style=FAINT, no_wrap=True)
        grid.add_column(overflow="fold")
        for about, said, style in _rows(self._run):
            grid.add_row("" if about == before else about, harmless(said, style))
            before = about
        grid.add_row("done", ProgressBar(total=1.0, completed=self._run.pace.progress, width=40))
        head = console.render_lines(grid, options, pad=False)
        devices = device_lines(self._run.slots, max(4, self._height - len(head)))
        cut_off = options.update(no_wrap=True, overflow="ellipsis")
        tail = console.render_lines(Group(*devices), cut_off, pad=False)[: len(devices)]
        lines = [*head[: max(1, self._height - len(tail))], *tail]
        for line in lines[: self._height]:
            yield from line
            yield Segment.line()


def status_lines(directory: Path, run: Run) -> Iterator[str]:
    """Once: how it stands, what it has spent, when it ends, what each device does, what to do."""
    yield f"{directory}: {run.standing.whose}"
    yield text.sentence(run)
    yield from (f"  {line}" for line in _balances(run))
    if not run.is_over:
        yield _pace(run)
    if run.standing.kind == "running":
        yield from (f"  {line.plain}" for line in device_lines(run.slots, MOST_SLOTS))
    if run.standing.way_on:
        yield run.standing.way_on


def tell(run: Run, as_markdown: Callable[[str], None], say: Callable[[str], None]) -> None:
    """Details first; what they come to last, where a terminal shows it."""
    as_markdown(f"# {plain(run.plan.run_id)}\n\n{markdown(summary(run))}")
    say(f"Ledger: {run.state.records} records, head {run.state.head}.")
    say("")
    for line in answer_in_lines(answer(run)):
        say(line)


def harmless(said: str, style: str = "") -> Text:
    """One line, that steers no terminal."""
    return Text(printable(said).replace("\n", " "), style)


def _rows(run: Run) -> Iterator[tuple[str, str, str]]:
    """What it is about, what is said and in which style: the most important first."""
    plan, state, standing, counts = run.plan, run.state, run.standing, run.counts
    tier = "" if plan.tier is None else f", tier {plan.tier}"
    name = f"{plan.phase} {plan.run_id}{tier}, {run.objective}: {standing.whose}"
    yield "run", name, STRONG
    yield "now", text.sentence(run), ""
    if standing.way_on:
        yield "now", standing.way_on, ODD
    yield "time", _pace(run), ""
    notes = [
        *(("overridden", f"{one.rule}: {one.reason}", "") for one in state.overridden),
        *(("withdrawn", f"{gone.device}: {gone.why}", ODD) for gone in state.withdrawn),
        *(("rule", f"{fired.rule}: {fired.evidence}", BAD) for fired in state.fired),
    ]
    yield from notes[-MOST_NOTES:]
    failed = "".join(f", {number} {status}" for status, number in counts.failed.items())
    left = f"{counts.lost} lost, {counts.in_flight} in flight, {counts.to_come} left"
    yield "evaluations", f"{counts.ok} ok{failed}, {left}", ODD if failed else ""
    yield from (("score", said, "") for said in _scores(run))
    yield from (("budget", said, "") for said in _balances(run))
    for arm in (one for one in run.arms if one.settled < len(one.scores)):
        mean = "" if arm.mean is None else f", mean {arm.mean:.5g}"
        yield "comparison", f"{arm.name}: {arm.settled} of {len(arm.scores)}{mean}", ""


def _pace(run: Run) -> str:
    """Where nobody carries it out it ends at no time."""
    eta = {"eta": None} if run.standing.way_on else {}
    return text.pace_line(run.pace.model_copy(update=eta), run.now)


def _scores(run: Run) -> Iterator[str]:
    """The last mean beside the baseline and its noise; the best beside what luck gives."""
    baseline, band = run.baseline, run.noise_band
    last = [one for one in run.generations if one.mean is not None][-1:]
    parts = []
    if last and run.is_search:
        outside = f"{last[0].outside} than noise" if last[0].outside else "within noise"
        beside = "" if band is None else f", {outside}"
        parts.append(f"mean{'' if last[0].is_told else ' so far'} {last[0].mean:.5g}{beside}")
    if baseline is not None:
        noise = "" if band is None else f" ± {(band[1] - band[0]) / 2:.2g}"
        parts.append(f"baseline {baseline.mean:.5g}{noise}")
    if parts:
        yield "; ".join(parts)
    if run.best_so_far is not None and run.is_search:
        luck = "" if run.luck_so_far is None else f"; luck alone would give {run.luck_so_far:.5g}"
        yield f"best {run.best_so_far:.5g}{luck}"


def _balances(run: Run) -> Iterator[str]:
    """A line a currency."""
    balances = [balance for balance in run.balances if balance.counts]
    width = max(len(balance.currency) for balance in balances)
    for one in balances:
        spent, reserved, free = (text.amount(one, of) for of in (one.spent, one.reserved, one.free))
        left = free if one.free is None else f"{free} free"
        yield f"{one.currency:{width}s}  {spent} spent, {reserved} reserved, {left}"


def device_lines(slots: tuple[Slot, ...], most: int) -> list[Text]:
    """In so many lines: if there are more, overdue ones first, and the last counts the others."""
    shown, more = slots, list[Text]()
    if len(slots) > most:
        ranked = sorted(slots, key=_rank)
        shown, others = tuple(ranked[: most - 1]), ranked[most - 1 :]
        kinds = Counter("overdue" if slot.is_overdue else slot.doing for slot in others)
        counts = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
        more = [harmless(f"{len(others)} more: {counts}", FAINT)]
    rows = [[printable(cell) for cell in _cells(slot)] for slot in shown]
    longest = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    widths = [min(most, length) for most, length in zip(WIDEST, longest, strict=False)]
    lines = ["  ".join(map(set_cell_size, row, widths)).rstrip() for row in rows]
    styles = [BAD if one.is_overdue else FAINT if one.doing == "idle" else "" for one in shown]
    return [*map(harmless, lines, styles), *more]


def _rank(slot: Slot) -> tuple[bool, bool, float]:
    """Overdue ones first, then those that have been at it for the longest; idle ones last."""
    return (not slot.is_overdue, slot.doing == "idle", -(slot.seconds or 0.0))


def _cells(slot: Slot) -> tuple[str, str, str, str]:
    """Which device, how long it has been busy, with what, how far it is."""
    name, on, host = slot.device.partition(" on ")
    own = f"gpu {name}" if name.isdigit() else name
    device = f"{name or 'slot'} {slot.slot + 1}" if name in ("", "cpu") else own
    took = "" if slot.seconds is None else precise_duration(slot.seconds)
    if took and slot.expected_seconds is not None:
        took += f" of ~{precise_duration(slot.expected_seconds)}"
    limit = f", killed after {duration(slot.limit_seconds)}" if slot.limit_seconds else ""
    parts = {
        slot.doing: slot.doing != "running",
        f"overdue{limit}": slot.is_overdue,
        f"attempt {slot.attempt}": slot.attempt > 1,
        f"step {slot.step or 0:.0f}": slot.step is not None,
        f"{slot.progress or 0:.0%}": slot.progress is not None,
        f"loss {slot.loss or 0:.4g}": slot.loss is not None,
    }
    notes = ", ".join(part for part, is_said in parts.items() if is_said)
    return f"{device}{on}{host}", took, slot.what, notes
