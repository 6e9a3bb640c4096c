"""What a person sees of a run: a progress bar on a terminal, plain lines elsewhere."""

import time
from datetime import timedelta
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from objectives.nanochat.program.sinks import Sink, Values


class Bar:
    """One line that moves, evaluations above it."""

    def __init__(self, console: Console, done: int, steps: int) -> None:
        self._progress = Progress(
            TextColumn("step"),
            MofNCompleteColumn(),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._progress.add_task("", total=steps, completed=done)

    def log(self, step: int, values: Values) -> None:
        if "val_bpb" in values:
            self._progress.console.print(evaluated(step, values), soft_wrap=True)
        else:
            self._progress.update(self._task, completed=step, description=trained(values))

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


class Lines:
    """A line for every report: for files, pipes and logs."""

    def __init__(self, console: Console, done: int, steps: int) -> None:
        self._console, self._from, self._steps = console, done, steps
        self._began = time.monotonic()

    def log(self, step: int, values: Values) -> None:
        if "val_bpb" in values:
            self._console.print(evaluated(step, values), soft_wrap=True)
            return
        seconds = (time.monotonic() - self._began) / max(1, step - self._from)
        left = timedelta(seconds=round(seconds * (self._steps - step)))
        line = f"step {step}/{self._steps}  {trained(values)}  ETA {left}"
        self._console.print(line, soft_wrap=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def watch(console: Console, done: int, steps: int) -> Sink:
    """Whichever of the two suits where `console` writes to."""
    return (Bar if console.is_terminal else Lines)(console, done, steps)


def trained(values: Values) -> str:
    return f"loss {values['loss']:.4f}  {values['tokens_per_second']:,.0f} tokens/s"


def evaluated(step: int, values: Values) -> str:
    return f"step {step}  validation {values['val_bpb']:.5f} bits per byte"
