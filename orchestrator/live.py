"""What a person watching a run sees: one line an evaluation, a short budget a generation."""

import os
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from budgets.events import (
    Amended,
    Concluded,
    Decided,
    Event,
    Fired,
    GenerationAsked,
    GenerationTold,
    Guided,
    Late,
    Opened,
    Overridden,
    PanelAsked,
    Planned,
    Reserved,
    Salvaged,
    Settled,
    Withdrawn,
)
from budgets.liveness import label
from budgets.markdown import amount, duration
from budgets.pace import pace
from budgets.pace_text import pace_line
from budgets.plain import printable
from budgets.report import balances
from budgets.state import RunState
from budgets.verdict.findings import title


class Listener(Console):
    """A console whose reader may leave: that silences it and does not stop the run."""

    def on_broken_pipe(self) -> None:
        _silence(self)


def _silence(console: Console) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), console.file.fileno())


@dataclass
class Live:
    """Follows the records of one run after another. Use as a context manager.

    On a terminal a progress bar with the time left stays below the lines; elsewhere every line
    carries it.
    """

    console: Console
    _bar: Progress = field(init=False)
    _task: TaskID | None = None
    _run_id: str = ""

    def __post_init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self.console,
            disable=not self.console.is_terminal,
            transient=True,
        )

    def __enter__(self) -> "Live":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        self._print(printable(text), highlight=False, markup=False, soft_wrap=True)

    def markdown(self, text: str) -> None:
        """A whole report, laid out."""
        self._print(Markdown(text))

    def _print(self, content: RenderableType, **options: Any) -> None:
        try:
            self._bar.console.print(content, **options)
        except OSError:  # a terminal that went away
            _silence(self.console)

    def observe(self, state: RunState, event: Event) -> None:
        """One record was written."""
        self._advance(state)
        match event:
            case Settled():
                self.say(_evaluation(state, event))
            case GenerationTold():
                self.say(_generation(state, event))
            case Fired():
                self.say(f"Rule {event.rule}: {event.evidence}.")
            case PanelAsked():
                self.say(_panel(event))
            case Decided():
                self.say(f"{title(event.grade, event.no_go)}: {event.evidence}.")
            case Overridden():
                self.say(f"Rule {event.rule} is overridden: {event.reason}")
            case Opened():
                self._opened(state)
            case Late():
                self.say(
                    f"{_batch(event)}, candidate {event.candidate}, attempt {event.attempt} came "
                    f"late ({event.status}): charged, and told to nobody."
                )
            case Withdrawn():
                self.say(f"Device {event.device} gets no more work: {event.why}.")
            case Amended() | Salvaged():
                pass  # by commands that say it themselves
            case Planned() | GenerationAsked() | Reserved() | Concluded():
                pass

    def _opened(self, state: RunState) -> None:
        done, planned = state.accounts.evaluations, state.plan.resolved.evaluations
        verb = "Beginning" if len(state.opened) == 1 else "Taking up"
        self.say(f"{verb} {state.plan.phase} {state.plan.run_id}: {done} of {planned} settled.")

    def _advance(self, state: RunState) -> None:
        plan = state.plan
        if self._task is None or self._run_id != plan.run_id:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._run_id = plan.run_id
            total = plan.resolved.evaluations + plan.apart
            self._task = self._bar.add_task(plan.run_id, total=total, left="")
        done = state.accounts.evaluations + state.accounts.apart
        self._bar.update(self._task, completed=done, left=_left(state))


def _left(state: RunState) -> str:
    found = pace(state)
    if found.remaining_hours is None:
        return ""
    off = f", off track ({found.binding})" if found.on_track is False else ""
    return f"{duration(3600 * found.remaining_hours)} left{off}"


def _evaluation(state: RunState, event: Settled) -> str:
    plan, accounts = state.plan, state.accounts
    done, planned = accounts.evaluations, plan.resolved.evaluations
    if event.panel is not None:
        done, planned = accounts.apart, plan.apart
    where = _where(state, event)
    result = f"{event.status} {event.score:.5g}" if event.score is not None else event.status
    how = f"  ({event.cause})" if event.cause else ""
    adopted = "  recovered" if event.recovered else ""
    again = f"  to be tried again {event.again}" if event.again else ""
    return (
        f"[{done:{len(str(planned))}d}/{planned}]  {where}  {result}  in {event.seconds:.1f} s"
        f"{adopted}{how}{again}  {_left(state)}"
    )


def _batch(event: Late) -> str:
    where = "Generation" if event.panel is None else f"Panel {event.panel}"
    return f"{where} {event.generation}"


def _panel(event: PanelAsked) -> str:
    count = sum(map(len, event.seeds))
    if event.panel == "proxy":
        return (
            f"Generation {event.number} short as well, to see if both agree: {count} evaluations."
        )
    names = ", ".join(arm.name for arm in event.arms)
    where = {"reference": ", in slots that would be idle", "rung": ", with more FLOPs"}
    return f"On fresh seeds{where.get(event.panel, '')}: {names} ({count} evaluations)."


def _where(state: RunState, event: Settled) -> str:
    """Which evaluation it was, as wide as every other of the run."""
    if event.panel is not None:
        arms = state.panels[event.panel, event.generation].arms
        return f"{event.panel}  {arms[event.candidate].name}  seed {event.seed:10d}"
    if state.plan.search is not None or state.plan.proxy is not None:
        return f"generation {event.generation}  candidate {event.candidate:2d}"
    generation = state.generations[event.generation]
    labels = [label(state.plan, generation, c) for c in range(len(generation.points))]
    width = max(map(len, labels))
    return f"{labels[event.candidate]:{width}s}  seed {event.seed:10d}"


def _generation(state: RunState, event: GenerationTold) -> str:
    generation = state.generations[event.generation]
    healthy = [score for score in generation.scores() if score is not None]
    mean, best = sum(healthy) / len(healthy), min(healthy)
    calibration = state.plan.calibration
    baseline = calibration.mean_score if calibration else None
    against = "" if baseline is None or not generation.is_full else f", baseline {baseline:.5g}"
    short = "" if generation.is_full else ", short"
    anew = f", descent {event.descent + 1}" if event.descent else ""
    spent = "; ".join(
        f"{amount(b, b.spent)}{'' if b.cap is None else f' of {amount(b, b.cap)}'} {b.currency}"
        for b in balances(state)
        if b.counts
    )
    return (
        f"Generation {event.generation + 1} of {state.plan.resolved.generations}{short}{anew}: "
        f"best {best:.5g}, mean {mean:.5g}{against}, {len(generation.failed)} failed, "
        f"step size {event.sigma:.3g}{_by_the_model(event.guided)}.\n  Spent: {spent}."
        f"\n  {pace_line(pace(state))}"
    )


def _by_the_model(guided: Guided | None) -> str:
    """How far the generation's scores tell its candidates apart, where a model can say."""
    if guided is None:
        return ""
    held = ", so its step is held" if guided.sigma is not None else ""
    return (
        f"; by the model they truly spread by {guided.signal:.2g}, noise {guided.noise:.2g}{held}"
    )
