"""A run on a terminal: the rows of `status` and of the live picture, and a line for each record."""

from collections import Counter
from collections.abc import Callable, Iterator

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from budgets.events import (
    ComparisonAsked,
    Decided,
    Event,
    Fired,
    GenerationTold,
    Opened,
    Overridden,
    Settled,
)
from budgets.formatting import duration, number, plain, precise_duration, printable
from budgets.verdict import title
from orchestrator.look import text, words
from orchestrator.look.answer import answer
from orchestrator.look.blocks import answer_in_lines, markdown
from orchestrator.look.campaign import matrix_lines
from orchestrator.look.rows import Slot
from orchestrator.look.run import Run, comparison_name
from orchestrator.look.sections import summary

STRONG, BAD, ODD, FAINT = "bold", "bold red", "yellow", "dim"
"""Colours repeat what words say: nothing is said by them alone."""

WIDEST = 40  # characters of a column about devices
MOST_NOTES, MOST_SLOTS = 3, 16  # lines of rules and overrides; of devices in `status`


class Picture:
    """A run in at most `height` lines, as wide as what it is printed on. A rich renderable."""

    def __init__(self, run: Run, height: int) -> None:
        self._run, self._height = run, height

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style=FAINT, no_wrap=True)
        grid.add_column(overflow="fold")
        for about, said, style in _rows(self._run):
            grid.add_row(about, harmless(said, style))
        grid.add_row("done", ProgressBar(total=1.0, completed=self._run.pace.progress, width=40))
        head = console.render_lines(grid, options, pad=False)
        devices = device_lines(self._run.slots, max(4, self._height - len(head)))
        cut_off = options.update(no_wrap=True, overflow="ellipsis")
        tail = console.render_lines(Group(*devices), cut_off, pad=False)[: len(devices)]
        lines = [*head[: max(1, self._height - len(tail))], *tail]
        for line in lines[: self._height]:
            yield from line
            yield Segment.line()


def status_lines(run: Run) -> Iterator[str]:
    """The rows of the picture once, and what each device does."""
    yield from (f"{about:11s}  {said}" for about, said, _ in _rows(run))
    if run.directory is not None:
        yield f"{'files':11s}  {run.directory}"
    if run.standing.kind == "running":
        yield from (f"  {line.plain}" for line in device_lines(run.slots, MOST_SLOTS))
    if run.matrix is not None:
        yield from ("", *matrix_lines(run.matrix))


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
    plan, state, counts, known = run.plan, run.state, run.counts, answer(run)
    tier = "" if plan.tier is None else f", tier {plan.tier}"
    name = f"{plan.phase} {plan.run_id}{tier}, {run.objective}: {run.standing.whose}"
    yield "run", name, STRONG
    yield "now", f"{known.title}: {known.sentence}", ""
    if known.mood == "trouble":
        yield "next", f"{known.next} {' '.join(known.commands[:1])}", ODD
    notes = [("overridden", f"{one.rule}: {one.reason}", "") for one in state.overridden]
    notes += [("rule", f"{one.rule}: {words.seen(state, one)}", BAD) for one in state.fired]
    yield from notes[-MOST_NOTES:]
    failed = "".join(f", {number} {status}" for status, number in counts.failed.items())
    left = f"{counts.lost} lost, {counts.in_flight} in flight, {counts.to_come} left"
    yield "evaluations", f"{counts.ok} ok{failed}, {left}", ODD if failed else ""
    if scores := ", ".join(_scores(run)):
        yield "score", scores, ""
    for place, own in enumerate(one for one in run.balances if one.counts):
        yield "" if place else "budget", text.balance(own), ""


def _scores(run: Run) -> Iterator[str]:
    """The last mean and the best, beside the baseline with its noise and what chance gives."""
    means = [one.mean for one in run.generations if one.mean is not None]
    if run.is_search and means:
        yield f"mean {means[-1]:.5g}"
    if run.baseline is not None:
        band = run.noise_band
        noise = "" if band is None else f" ± {(band[1] - band[0]) / 2:.2g}"
        yield f"baseline {run.baseline.mean:.5g}{noise}"
    if run.is_search and run.best_so_far is not None:
        yield f"best {run.best_so_far:.5g}"
        if run.best_by_chance is not None:
            yield f"by chance the best would be {run.best_by_chance:.5g}"


# Devices


def device_lines(slots: tuple[Slot, ...], most: int) -> list[Text]:
    """In so many lines: if there are more, overdue ones first, and the last counts the others."""
    shown, more = slots, list[Text]()
    if len(slots) > most:
        rank = lambda one: (not one.is_overdue, one.doing == "idle", -(one.seconds or 0))  # noqa: E731
        ranked = sorted(slots, key=rank)
        shown, others = tuple(ranked[: most - 1]), ranked[most - 1 :]
        kinds = Counter("overdue" if slot.is_overdue else slot.doing for slot in others)
        counts = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
        more = [harmless(f"{len(others)} more: {counts}", FAINT)]
    rows = [[printable(cell) for cell in _cells(slot)] for slot in shown]
    widths = [min(WIDEST, max(map(cell_len, column))) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(set_cell_size, row, widths)).rstrip() for row in rows]
    styles = [BAD if one.is_overdue else FAINT if one.doing == "idle" else "" for one in shown]
    return [*map(harmless, lines, styles), *more]


def _cells(slot: Slot) -> tuple[str, str, str, str]:
    """Which device, how long it has been busy, with what, how far it is."""
    name, on, host = slot.device.partition(" on ")
    own = f"gpu {name}" if name.isdigit() else name
    device = f"{name or 'slot'} {slot.slot + 1}" if name in ("", "cpu") else own
    took = "" if slot.seconds is None else precise_duration(slot.seconds)
    if took and slot.expected_seconds is not None:
        took += f" of ~{precise_duration(slot.expected_seconds)}"
    limit = f", killed after {duration(slot.limit_seconds)}" if slot.limit_seconds else ""
    notes: list[str] = [slot.doing] if slot.doing != "running" else []
    notes += [f"overdue{limit}"] if slot.is_overdue else []
    notes += [f"attempt {slot.attempt}"] if slot.attempt > 1 else []
    notes += [f"step {slot.step:.0f}"] if slot.step is not None else []
    notes += [f"{slot.progress:.0%}"] if slot.progress is not None else []
    notes += [f"loss {slot.loss:.4g}"] if slot.loss is not None else []
    return f"{device}{on}{host}", took, slot.what, ", ".join(notes)


# A line for each record


def line_of(run: Run, event: Event, *, brief: bool = False) -> str | None:
    """What a record says, the run being as of it; None of one that says nothing new.

    In `brief` without what a picture shows: healthy evaluations, what is spent, the pace.
    """
    said: str | None = None  # said by the commands that write it, or by the next record
    match event:
        case Settled():
            said = None if brief and event.score is not None else _evaluation(run, event)
        case GenerationTold():
            also = "" if brief else f"\n  Spent: {text.spent(run)}.\n  {text.pace_line(run)}"
            said = f"{_generation(run, event)}{also}"
        case ComparisonAsked():
            names = [one.name for one in event.configurations]
            named = ", ".join(names) if len(names) < 7 else f"{len(names)} configurations"
            count = sum(map(len, event.seeds))
            said = (
                f"Comparison ({comparison_name(event.comparison)}): {named} ({count} evaluations)."
            )
        case Opened():
            done, planned = run.state.accounts.evaluations, run.plan.resolved.evaluations
            verb = "Starting" if len(run.state.opened) == 1 else "Resuming"
            said = f"{verb} {run.plan.phase} {run.plan.run_id}: {done} of {planned} settled."
        case Fired():
            said = f"Rule {event.rule}: {words.seen(run.state, event)}."
        case Decided():
            said = f"{title(event.grade, event.no_go)}: {words.decision(run.state, event)}."
        case Overridden():
            said = f"Rule {event.rule} is overridden: {event.reason}"
    return said


def _evaluation(run: Run, event: Settled) -> str:
    plan, accounts, remaining = run.plan, run.state.accounts, run.pace.remaining_hours
    done, planned = accounts.evaluations, plan.resolved.evaluations
    if event.comparison is not None:
        done, planned = accounts.comparisons, plan.comparison_evaluations
    which = "baseline" if plan.phase == "calibration" else run.which(event)
    seed = "" if run.is_search and event.comparison is None else f", seed {event.seed}"
    score = "" if event.score is None else f" {event.score:.5g}"
    parts = [f"[{done:{len(str(planned))}d}/{planned}]", f"{which}{seed}", f"{event.status}{score}"]
    parts.append(f"in {precise_duration(event.seconds)}")
    parts += ["recovered"] if event.recovered and event.final else []
    parts += [f"({event.cause})"] if event.cause else []
    parts += ["to be retried elsewhere"] if event.retry else []
    parts += [] if remaining is None else [f"{duration(3600 * remaining)} left"]
    return "  ".join(parts)


def _generation(run: Run, event: GenerationTold) -> str:
    own = next(one for one in run.generations if one.number == event.generation)
    against = "" if run.baseline is None else f", baseline {run.baseline.mean:.5g}"
    return (
        f"Generation {own.number} ({own.number + 1} of {run.plan.resolved.generations}): best "
        f"{number(own.best)}, mean {number(own.mean)}{against}, {own.failed} failed, step size "
        f"{event.sigma:.3g}."
    )
