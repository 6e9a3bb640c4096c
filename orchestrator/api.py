"""The Python interface: `minimize`, `forecast`, and `Search` for a loop of one's own.

Each makes the run that the command line would: the same plan, ledger, supervision and verdict.
Of a `Search` the same loop runs in a thread, with an executor that hands each evaluation to the
caller. What was told is in the ledger, so that a killed program goes on where it was.
"""

import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Condition, Thread
from typing import Any, Self, TypedDict, Unpack

from pydantic import ValidationError

from budgets.events import Concluded, Event, Settled, Status
from budgets.formatting import one_line, printable
from budgets.plan import Devices
from budgets.state import Observer, RunState
from objectives.api import Measurement, ObjectiveSpec
from objectives.callable import spec_of
from objectives.registry import CALLABLE
from objectives.settings import in_words, unknown
from objectives.space import DeclaredKnob, Knob
from orchestrator.config import KEYS, Config, Flags, assign, resolve
from orchestrator.execution import api
from orchestrator.execution.api import Attempt, Outcome, Report
from orchestrator.execution.devices import make_devices
from orchestrator.look.notebook import Result, load
from orchestrator.look.reports import ReportFiles
from orchestrator.look.run import Run
from orchestrator.look.text import pace_line
from orchestrator.matrix.carry_out import carry_out_search
from orchestrator.plan.page import Page, page_of
from orchestrator.plan.resolve import engine_of, run_name, slots_of
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
    override: Mapping[str, str]  # rules that paused the run, each with a reason
    progress: bool  # whether to show it


NAMES = {"name": "search.run_id", "direction": "direction", **KEYS}
"""The keys of the configuration by the names of options."""

SHOWN_EVERY = 0.5  # seconds between two progress lines, at least


def knobs_of(space: Space) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the space as the setting `knobs`, and the names without a baseline of their own.

    Their baseline is the middle of the range. Raises ValueError, naming the knob.
    """
    if not isinstance(space, Mapping) or not space:
        example = "{'lr': (1e-4, 0.1, 'log')}"
        raise ValueError(f"space: expected knobs by name, such as {example}, got {space!r}")
    knobs, assumed = dict[str, dict[str, Any]](), list[str]()
    for name, given in space.items():
        knobs[name] = own = _declared(name, given)
        try:
            knob = DeclaredKnob.model_validate({"baseline": own.get("min"), **own}).named(name)
        except ValidationError as error:
            raise ValueError(f"space: {name}: {in_words(error)}") from None
        if "baseline" not in own:
            assumed.append(name)
            own["baseline"] = knob.rounded(knob.decode(0.5))
    return knobs, assumed


def _declared(name: str, given: Any) -> dict[str, Any]:
    if isinstance(given, Knob):
        ends = {"min": given.decode(0.0), "max": given.decode(1.0)}
        step = {"step": given.step} if given.kind == "int" else {}
        return {"kind": given.kind, "baseline": given.baseline, **ends, **step}
    if not isinstance(given, tuple | list) or not 2 <= len(given) <= 4:
        raise ValueError(
            f"space: {name}: expected (low, high), and after them kind and baseline if you like, "
            f"got {given!r}"
        )
    own = dict[str, Any](zip(("min", "max", "kind", "baseline"), given, strict=False))
    kind = own.get("kind", "linear")
    return {**own, "kind": KINDS.get(kind, kind)}


def requested(
    space: Space, options: Options, function: Callable[..., Any] | None = None
) -> tuple[Config, tuple[str, ...]]:
    """Return the configuration of a search, and notes on how it was understood.

    Without a `function` its caller makes the evaluations. Raises ValueError on a wrong value.
    """
    for option in options:
        if option not in Options.__annotations__:
            raise unknown("option", option, list(Options.__annotations__))
    knobs, assumed = knobs_of(space)
    runs_dir = str(options.get("runs_dir", runs.RUNS_DIR))
    if function is None:
        own = {"knobs": knobs, "directory": ".", "code": {}}
        spec = ObjectiveSpec(name=f"{CALLABLE}{options['name']}", settings=own)
    else:
        folder = Path(runs_dir, "functions")  # for those that are handed over as objects
        spec = spec_of(function, knobs, options.get("budget"), Path.cwd(), folder)
    executor = "ray" if options.get("address") else "local"
    given = {"tier": "target", "executor": executor, **options, "runs_dir": runs_dir}
    layered: Flags = {
        **{NAMES[key]: (value, key) for key, value in given.items() if key in NAMES},
        **{f"training.{key}": (value, key) for key, value in spec.settings.items()},
        "objective": (spec.name, "function"),
    }
    settings = options.get("settings", {})
    config = resolve(None, [assign(*one)[1] for one in settings.items()], layered)
    middle = "is compared with the middle of its range: no baseline was given"
    return config, tuple(f"{name} {middle}" for name in assumed)


def minimize(function: Callable[..., Any], space: Space, **options: Unpack[Options]) -> Result:
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
    config, notes = requested(space, options, function)
    overrides = tuple(options.get("override", {}).items())
    display = Progress(is_silent=not options.get("progress", True))
    with (
        Stop(config.backend.drain_seconds) as stop,
        session_of(config, display.observe, display.say, stop) as session,
    ):
        result = carry_out_search(session, config, slots_of(config), overrides)
    if stop.requested and result.ruling.decision == "continue":
        raise KeyboardInterrupt("the search is interrupted; call again with the same name to go on")
    run = Run(result.state, datetime.now(UTC), result.directory, result.ruling)
    return Result(run, notes)


def maximize(function: Callable[..., Any], space: Space, **options: Unpack[Options]) -> Result:
    """Search for the knobs with which `function` returns the most: see `minimize`."""
    options["direction"] = "maximize"
    return minimize(function, space, **options)


def forecast(function: Callable[..., Any], space: Space, **options: Unpack[Options]) -> Page:
    """Return what `minimize` with the same arguments would take and could tell; spend nothing.

    Its `tiers` have the plan, the `forecast` in hours and device-hours, and the detectable gain.
    Times are those of a calibration; before there is one, say
    `settings={"evaluation.assume_eval_seconds": 60}`. Raises ValueError as `minimize` does.
    """
    config, _ = requested(space, options, function)
    return page_of(config, slots_of(config))


# Carrying it out


def session_of(
    config: Config, observe: Observer, say: Callable[[str], None], stop: Stop
) -> Session:
    """Return a session for the runs that a configuration describes."""
    return Session(
        Path(config.runs_dir),
        engine_of(config),
        observe,
        say,
        stop=stop,
        max_concurrent=config.backend.max_concurrent,
        backpressure=config.backpressure.enabled,
        report=ReportFiles().write,
    )


@dataclass
class Progress:
    """Shows how far a run is in the last line of a terminal or of a notebook's cell."""

    is_silent: bool = False
    _shown_at: float = 0.0

    def say(self, line: str, end: str = "\n") -> None:
        """Show a message over the line that is shown, which `end` ends."""
        if not self.is_silent:
            width = shutil.get_terminal_size().columns - 1
            start = f"\r{'':{width}}\r" if self._shown_at else ""
            cut = printable(line)[:width] if end == "" else printable(line)
            sys.stderr.write(f"{start}{cut}{end}")
            sys.stderr.flush()

    def observe(self, state: RunState, event: Event) -> None:
        """Show where the run stands: at most twice a second, and once it is over."""
        now, is_over = time.monotonic(), isinstance(event, Concluded)
        is_live = sys.stderr.isatty() or "ipykernel" in sys.modules
        is_due = isinstance(event, Settled) and is_live and now - self._shown_at >= SHOWN_EVERY
        if self.is_silent or not (is_due or is_over):
            return
        run, self._shown_at = Run(state, datetime.now(UTC)), now if is_live else 0.0
        done = ("\N{FULL BLOCK}" * int(10 * run.pace.progress)).ljust(10, "\N{LIGHT SHADE}")
        counts = f"{run.counts.settled} of {run.counts.planned}"
        line = f"{done} {counts}. {pace_line(run)}"
        self.say(line, "\n" if is_over else "")


# A loop of one's own: ask for an evaluation, make it, tell its score

DEVICE = "caller"
"""On which evaluations are made, as outcomes and calibrations name it."""


@dataclass(frozen=True)
class Trial:
    """An evaluation to be made: a score of these knobs with this seed."""

    knobs: dict[str, int | float]
    seed: int
    attempt: Attempt = field(repr=False)
    began: float = field(repr=False)  # by the monotonic clock


class CallersExecutor:
    """Hands attempts to a caller, who tells how they ended. At most `slots.count` at once.

    The loop's thread submits and waits; the caller takes and ends. All of it is under one lock.
    """

    warnings: tuple[str, ...] = ()

    def __init__(self, slots: Devices) -> None:
        self.slots = slots
        self._changed = Condition()
        self._open: dict[str, Trial] = {}  # by attempt: submitted, and not told
        self._ready: deque[Trial] = deque()  # those of them that were not taken
        self._ended: list[Outcome] = []  # told, and not returned by `wait`
        self._waits_for_caller = self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End what was not told: it is made again when the search goes on. Nothing more comes."""
        with self._changed:
            for trial in list(self._open.values()):
                self.end(trial, Status.CANCELLED, cause="the search was closed")
            self._is_over = True
            self._changed.notify_all()

    def free(self) -> int:
        with self._changed:  # `end` moves a trial from one to the other
            return self.slots.count - len(self._open) - len(self._ended)

    def submit(self, attempt: Attempt) -> None:
        api.write_started(attempt, DEVICE)
        trial = Trial(dict(attempt.knobs), attempt.seed, attempt, time.monotonic())
        with self._changed:
            self._open[attempt.attempt_id] = trial
            self._ready.append(trial)
            self._changed.notify_all()

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        with self._changed:
            if self._open and not self._ended:
                self._waits_for_caller = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._ended, timeout_seconds)
                self._waits_for_caller = False
            ended, self._ended = self._ended, []
            return ended

    def take(self, *, wait: bool) -> Trial | None:
        """Return the next trial; None at the end, or without `wait` if it waits for open ones."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._ready or self._is_over or (self._waits_for_caller and not wait)
            )
            return self._ready.popleft() if self._ready and not self._is_over else None

    def end(
        self, trial: Trial, status: Status, score: float | None = None, cause: str = ""
    ) -> None:
        """Put the end of a trial on disk, then let the loop have it.

        Raises ValueError where it is over already.
        """
        attempt, name, report = trial.attempt, trial.attempt.attempt_id, None
        if score is not None:
            report = Report(
                attempt_id=name, status=status, measurement=Measurement(score=float(score))
            )
        outcome = api.outcome_of(attempt, status, cause, trial.began, report, device=DEVICE)
        with self._changed:
            if self._open.pop(name, None) is None:
                raise ValueError("this trial is over: its score was told, or its search was closed")
            self._ended.append(api.write_summary(attempt.directory, outcome))
            self._waits_for_caller = False
            self._changed.notify_all()


class Search:
    """A search whose evaluations its caller makes. A context manager; leaving it closes it.

    `space` and `options` are those of `minimize`. The `name` says what is tuned, too; `workers` is
    how many trials may be open at once. The first trials measure the baseline, the last ones
    compare what was found with it on fresh seeds. Nothing ends a trial that takes longer than its
    reservation (six times the baseline's time, or `evaluation.limit_seconds`).
    """

    def __init__(self, space: Space, **options: Unpack[Options]) -> None:
        if "name" not in options:
            raise ValueError("Search: expected name=..., which says what is tuned")
        self._overrides = tuple(options.get("override", {}).items())
        self._config, self._notes = requested(space, options)
        slots = make_devices(self._config.backend.workers or 1, "cpu", DEVICE)
        self._executor, self._stop = CallersExecutor(slots), Stop()
        self._display = Progress(is_silent=not options.get("progress", False))
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._carry_out, daemon=True)
        self._thread.start()

    def _carry_out(self) -> None:
        try:
            display, config = self._display, self._config
            with session_of(config, display.observe, display.say, self._stop) as session:
                session.executor = self._executor
                carry_out_search(session, config, self._executor.slots, self._overrides)
        except BaseException as error:  # raised where a caller asks
            self._failure = error
        finally:
            self._executor.__exit__()

    def ask(self, *, wait: bool = False) -> Trial | None:
        """Return the next evaluation to make, once it is known.

        None when the search is over, or when the next one waits for those that are open. With
        `wait`, for a program with several threads, None only when the search is over.
        """
        trial = self._executor.take(wait=wait)
        self._raise_failure()
        return trial

    def tell(self, trial: Trial, score: float | None = None, *, error: str = "") -> None:
        """Say what an evaluation came to: its score, or why there is none."""
        cause = "" if score is not None else one_line(error) or "it gave no score"
        self._executor.end(trial, Status.ERROR if cause else Status.OK, score, cause)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is asked: the verdict is reached, or a rule holds the run up."""
        self._raise_failure()
        return not self._thread.is_alive()

    def result(self) -> Result:
        """Return the run as it stands. Raises ValueError before its first evaluation."""
        root, phase = Path(self._config.runs_dir), self._config.search.phase
        found = load(root / phase / run_name(self._config))
        return replace(found, notes=self._notes)

    def close(self) -> None:
        """Leave the run; another `Search` of that name goes on with it."""
        self._stop.requested, self._stop.kill_at = True, 0.0
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _raise_failure(self) -> None:
        """Raise what ended the thread, if an error did."""
        if self._failure is not None:
            raise self._failure
