"""The Python interface: `minimize`, `forecast` and what `Search` shares with them.

Each makes the run that the command line would: the same plan, ledger, supervision and verdict.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, TypedDict, Unpack

from pydantic import ValidationError

from budgets.events import Concluded, Decided, Event, Settled
from budgets.formatting import counted, printable
from budgets.state import RunState
from objectives.api import ObjectiveSpec
from objectives.callable import spec_of
from objectives.registry import CALLABLE
from objectives.settings import in_words, unknown
from objectives.space import DeclaredKnob, Knob
from orchestrator.config import Config, Flags, Layers, assign, resolve
from orchestrator.execution.engine import Engine, devices_of
from orchestrator.execution.signals import INTERRUPTS, SignalStop
from orchestrator.look.notebook import Result
from orchestrator.look.reports import ReportFiles
from orchestrator.look.run import Run
from orchestrator.look.text import pace_line
from orchestrator.matrix.matrix import carry_out_search
from orchestrator.plan.page import Page, page_of
from orchestrator.plan.resolve import engine_of, pacing_of, slots_of
from orchestrator.records import runs
from orchestrator.run.loop import Stop
from orchestrator.run.session import Session

Space = Mapping[str, Any]
"""By name: `(low, high)`, `(low, high, kind)`, `(low, high, kind, baseline)`, or a `Knob`. Kinds:
linear (the default), log, int, sigmoid01, tanh11."""

KINDS = {"log": "log10", "float": "linear"}
"""Kinds by what other tools call them."""


class Options(TypedDict, total=False):
    """What `minimize`, `forecast` and `Search` take, as the command line's options."""

    tier: str  # min, target (the default) or max
    name: str  # of the run
    seed: int  # of the candidates
    budget: float  # the function's third argument
    max_evals: int
    max_hours: float
    max_device_hours: float
    max_cost: float
    window: str  # "12h", or a moment
    workers: int  # evaluations at once
    executor: str  # "local" (the default without an address), "ray" or "inline"
    address: str  # of a Ray cluster
    device: str  # "auto" (the default), "cpu" or "cuda"
    direction: str  # "minimize" (the default), or "maximize"
    runs_dir: str | Path
    settings: Mapping[str, Any]  # any other key of the configuration, by its dotted name


KEYS = {
    **{name: f"budget.{name}" for name in Options.__annotations__ if name.startswith("max_")},
    **{name: f"backend.{name}" for name in ("workers", "executor", "address", "device")},
    **{name: f"search.{name}" for name in ("tier", "seed")},
    "name": "search.run_id",
    "window": "budget.window",
    "direction": "direction",
    "runs_dir": "runs_dir",
}
"""The keys of the configuration that options are."""

FUNCTIONS = "functions"
"""Below the runs' directory: functions that were handed over as objects."""

SHOWN_EVERY = 0.5  # seconds, at most


# What is asked for


def knobs_of(space: Space) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    """Return the space as the setting `knobs`, and the names without a baseline of their own.

    Their baseline is the middle of the range. Raises ValueError, naming the knob.
    """
    if not isinstance(space, Mapping) or not space:
        example = "{'lr': (1e-4, 0.1, 'log')}"
        raise ValueError(f"space: expected knobs by name, such as {example}, got {space!r}")
    knobs, assumed = {}, []
    for name, given in space.items():
        declared = _declared(name, given)
        try:
            if "baseline" not in declared:
                assumed.append(name)
                middle = DeclaredKnob.model_validate({**declared, "baseline": declared.get("min")})
                declared["baseline"] = middle.named(name).rounded(middle.named(name).decode(0.5))
            DeclaredKnob.model_validate(declared).named(name)
        except ValidationError as error:
            raise ValueError(f"space: {name}: {in_words(error)}") from None
        knobs[name] = declared
    return knobs, tuple(assumed)


def _declared(name: str, given: Any) -> dict[str, Any]:
    if isinstance(given, Knob):
        low, high = given.decode(0.0), given.decode(1.0)
        own = {"kind": given.kind, "min": low, "max": high, "baseline": given.baseline}
        return own | ({"step": given.step} if given.kind == "int" else {})
    if isinstance(given, Mapping):
        declared = dict(given)
    elif isinstance(given, tuple | list) and 2 <= len(given) <= 4:
        declared = dict(zip(("min", "max", "kind", "baseline"), given, strict=False))
    else:
        raise ValueError(
            f"space: {name}: expected (low, high), (low, high, kind) or (low, high, kind, "
            f"baseline), got {given!r}"
        )
    kind = declared.get("kind", "linear")
    return {**declared, "kind": KINDS.get(kind, kind)}


@dataclass(frozen=True)
class Request:
    """A configuration, and notes on how it was understood."""

    config: Config
    notes: tuple[str, ...] = ()


def requested(
    space: Space, options: Options, function: Callable[..., Any] | None = None, name: str = ""
) -> Request:
    """Return the configuration of a search: of `function`, or of what its caller evaluates.

    Raises ValueError on a wrong value, naming it.
    """
    for option in options:
        if option not in Options.__annotations__:
            raise unknown("option", option, list(Options.__annotations__))
    knobs, assumed = knobs_of(space)
    runs_dir = str(options.get("runs_dir", runs.RUNS_DIR))
    if function is None:
        own = {"knobs": knobs, "directory": ".", "code": {}}
        spec = ObjectiveSpec(name=f"{CALLABLE}{name}", settings=own)
    else:
        folder = Path(runs_dir, FUNCTIONS)
        spec = spec_of(function, knobs, options.get("budget"), Path.cwd(), folder)
    given: dict[str, Any] = {
        "tier": "target",
        "executor": "ray" if options.get("address") else "local",
    }
    given |= {**options, "runs_dir": runs_dir}
    layered: Flags = {
        **{KEYS[key]: (value, key) for key, value in given.items() if key in KEYS},
        **{f"training.{key}": (value, key) for key, value in spec.settings.items()},
        "objective": (spec.name, "function"),
    }
    settings = options.get("settings", {})
    config = resolve(Layers(None, [assign(*one)[1] for one in settings.items()], layered))
    if not assumed:
        return Request(config)
    note = (
        f"No baseline was given for {', '.join(assumed)}: the search is compared with the middle "
        "of the range."
    )
    return Request(config, (note,))


def minimize(
    function: Callable[..., Any],
    space: Space,
    *,
    override: Mapping[str, str] | None = None,
    progress: bool = True,
    **options: Unpack[Options],
) -> Result:
    """Search for the knobs with which `function` returns the least; resume where it stopped.

    `function(knobs, seed)` or `(knobs, seed, budget)` returns a number, lower is better (of
    `maximize` higher), and the same number for the same arguments. It is called in a process of its
    own. `space` declares its knobs (see `Space`), `options` how much to spend, and where (see
    `Options`). The run of that `name` is begun, or continued where it stands; another function or
    space under the same name is refused. `override` lets a run go on that a rule has paused:
    `{"crash_rate": "the reason"}`.

    Raises ValueError on what cannot be run, and KeyboardInterrupt after a Ctrl-C, once the
    evaluations that ran have ended; the same call continues.
    """
    request = requested(space, options, function)
    with conducting(request.config, Progress(is_silent=not progress)) as session:
        slots, overrides = slots_of(request.config), tuple((override or {}).items())
        result = carry_out_search(session, request.config, slots, overrides)
        stop = session.stop
    if stop.requested and result.ruling.decision == "continue":
        raise KeyboardInterrupt("the search is interrupted; call again with the same name to go on")
    run = Run(result.state, datetime.now(UTC), result.directory, result.ruling)
    return Result(run, request.notes)


def maximize(
    function: Callable[..., Any],
    space: Space,
    *,
    override: Mapping[str, str] | None = None,
    progress: bool = True,
    **options: Unpack[Options],
) -> Result:
    """Search for the knobs with which `function` returns the most: see `minimize`."""
    options["direction"] = "maximize"
    return minimize(function, space, override=override, progress=progress, **options)


def forecast(function: Callable[..., Any], space: Space, **options: Unpack[Options]) -> Page:
    """Return what `minimize` with the same arguments would take and could tell; spend nothing.

    Its `tiers` have the plan, the `forecast` in hours and device-hours, and the detectable gain.
    Times are those of a calibration; before there is one, say
    `settings={"evaluation.assume_eval_seconds": 60}`. Raises ValueError as `minimize` does.
    """
    config = requested(space, options, function).config
    return page_of(config, devices_of(slots_of(config)))


# Carrying it out


@dataclass
class NoSignals:
    """A stop for threads, where no signal arrives: somebody sets `requested`."""

    requested: bool = False
    signum: int = 0
    now: bool = False

    def install(self) -> None:
        """Nothing to listen to."""


@contextmanager
def conducting(
    config: Config,
    display: "Progress",
    stop: Stop | None = None,
    engine: Engine | None = None,
) -> Iterator[Session]:
    """Yield a session; afterwards signals are handled as before."""
    is_main = threading.current_thread() is threading.main_thread()
    before = {signum: signal.getsignal(signum) for signum in INTERRUPTS} if is_main else {}
    if stop is None:
        stop = SignalStop(config.backend.drain_seconds) if is_main else NoSignals()
    try:
        with (
            display,
            Session(
                Path(config.runs_dir),
                engine or engine_of(config),
                display.observe,
                display.say,
                stop=stop,
                allow_network_fs=config.backend.allow_network_fs,
                pacing=pacing_of(config),
                reports=ReportFiles(),
            ) as session,
        ):
            yield session
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


@dataclass
class Progress:
    """Shows how far a run is: a line of a terminal, or an element of a notebook."""

    is_silent: bool = False
    _shown_at: float = 0.0
    _handle: Any = None
    _last: str = field(default="", repr=False)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._last and not self.is_silent and self._notebook() is None and sys.stderr.isatty():
            sys.stderr.write("\n")

    def say(self, line: str) -> None:
        """Show a message of its own."""
        if not self.is_silent:
            self._clear()
            sys.stderr.write(f"{printable(line)}\n")
            sys.stderr.flush()

    def observe(self, state: RunState, event: Event) -> None:
        """Show where the run stands: at most twice a second, and once its search is over."""
        now, is_due = time.monotonic(), isinstance(event, Decided | Concluded)
        is_due |= isinstance(event, Settled) and now - self._shown_at >= SHOWN_EVERY
        if is_due and not self.is_silent:
            self._shown_at = now
            self._paint(Run(state, datetime.now(UTC)))

    def _paint(self, run: Run) -> None:
        settled, planned = run.counts.settled, run.counts.planned
        text = f"{settled} of {counted(planned, 'evaluation')}. {pace_line(run)}"
        if (display := self._notebook()) is not None:
            bar = f'<progress value="{settled}" max="{planned}"></progress> {escape(text)}'
            if self._handle is None:
                self._handle = display.display(display.HTML(bar), display_id=True)
            else:
                self._handle.update(display.HTML(bar))
        elif sys.stderr.isatty():
            width = os.get_terminal_size(sys.stderr.fileno()).columns
            self._clear()
            self._last = printable(text)[: width - 1]
            sys.stderr.write(self._last)
            sys.stderr.flush()

    def _clear(self) -> None:
        if self._last and sys.stderr.isatty():
            sys.stderr.write("\r\x1b[2K")
        self._last = ""

    @staticmethod
    def _notebook() -> Any:
        """IPython's display in a notebook; None elsewhere."""
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        if type(shell).__name__ != "ZMQInteractiveShell":
            return None
        from IPython import display

        return display
