"""Experiment trackers follow a run's ledger, each in a process of its own beside the run.

A tracker's library may hang, leak, crash, print or ask for a password. It does so in a child,
`python -m orchestrator track RUN --to NAME --watch`, that has a session of its own, no terminal and
little priority. The run calls no tracker and waits for none; at a command's end its children have
some seconds to finish. Of a tracker there is, in the run's directory:

    trackers/wandb/       its own files
    trackers/wandb.json   how far it has come
    trackers/wandb.log    what its library printed last
    trackers/wandb.lock   held by the process that feeds it

All of it can be deleted; then everything is sent again.
"""

import faulthandler
import fcntl
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, get_args

from pydantic import Field, ValidationError

from budgets.frozen import Frozen
from budgets.ledger.storage import read_plain, write_aside
from budgets.plain import command, one_line, shell_word
from budgets.state import RunState
from objectives import secrets
from objectives.programs.kernel import die_with_parent
from orchestrator.config.sections import Tracker, is_installed
from orchestrator.execution.processes import volunteer_for_the_oom_killer
from orchestrator.look.figures import Figures, Reading, config, summary
from orchestrator.look.run import Run
from orchestrator.look.sinks import Beginning, Sink, sink
from orchestrator.records.standing import goes_on
from orchestrator.records.tail import Tail

TRACKERS: tuple[Tracker, ...] = get_args(Tracker)

PATIENCE_SECONDS = 15.0
"""After a command's work: a tracker that has not got everything by then is killed."""

POLL_SECONDS = 0.5
BATCH = 200
"""Figures after which what was sent is remembered: after a kill no more are sent again."""

NICENESS = 10
LOG_BYTES = 1 << 20
"""Of what a library prints: then its log begins anew."""

_ERROR = "error: "
"""How the line begins in which a command says why it failed."""

_REMOTE = {"wandb": "WANDB_MODE", "mlflow": "MLFLOW_TRACKING_URI"}


class TrackerError(RuntimeError):
    """A tracker's library failed, in one line without secrets."""


# Which trackers there are


def known(names: Iterable[str]) -> tuple[Tracker, ...]:
    """The trackers of these names, each once. Raises ValueError on another name, or none."""
    given = set(names)
    if unknown := sorted(given.difference(TRACKERS)):
        raise ValueError(f"--to: expected {', '.join(TRACKERS)}, got {unknown[0]!r}")
    if not given:
        raise ValueError("--to: which tracker? tensorboard, wandb or mlflow; repeatable")
    return tuple(name for name in TRACKERS if name in given)


def refuse_missing(names: Iterable[str], flag: str = "--track") -> None:
    """Raises ValueError, naming the extra, where a tracker's library is not installed."""
    for name in names:
        if not is_installed(name):
            raise ValueError(
                f"{flag} {name}: {name} is not installed. Get it with: "
                f"pip install 'cmaes-orchestrator[{name}]'"
            )


def elsewhere(name: str, environment: Mapping[str, str]) -> str | None:
    """The variable by which a person sends figures elsewhere than into the run's directory."""
    variable = _REMOTE.get(name, "")
    value = environment.get(variable)
    is_here = value is None or (name == "wandb" and value in ("offline", "dryrun", "disabled"))
    return None if is_here else variable


# What a tracker has in a run's directory


class Sent(Frozen):
    """How much of a ledger a tracker has."""

    ledger: str  # digest of its first record
    records: int = Field(default=0, ge=0)
    step: int = Field(default=0, ge=0)  # evaluations that were over then
    is_ended: bool = False  # the summary as of these records was sent too


@dataclass(frozen=True)
class Place:
    """One tracker's place in one run's directory."""

    run: Path
    name: str

    @property
    def files(self) -> Path:
        return self.run / "trackers" / self.name

    @property
    def log(self) -> Path:
        return self.run / "trackers" / f"{self.name}.log"

    @property
    def memory(self) -> Path:
        return self.run / "trackers" / f"{self.name}.json"

    def make(self) -> None:
        """Raises ValueError where a part is a link, OSError where it cannot be made."""
        for part in (self.files.parent, self.files):
            if part.is_symlink():
                raise ValueError(
                    f"{part} is a symbolic link: expected a directory of the run's own"
                )
            part.mkdir(mode=0o700, exist_ok=True)

    def recall(self, ledger: str) -> Sent:
        """What the tracker has of that ledger; nothing where nobody can tell."""
        with suppress(OSError, ValueError, ValidationError):
            sent = Sent.model_validate_json(read_plain(self.memory))
            if sent.ledger == ledger:
                return sent
        return Sent(ledger=ledger)

    def remember(self, sent: Sent) -> None:
        """Raises OSError."""
        write_aside(self.memory, sent.model_dump_json().encode() + b"\n", durable=False)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Raises ValueError where another process feeds this tracker."""
        path = self.files.with_name(f"{self.name}.lock")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(
                    f"another process is logging this run to {self.name} ({path} is held)"
                ) from None
            yield
        finally:
            os.close(handle)

    def view(self, environment: Mapping[str, str]) -> str:
        """The command that shows, or sends off, what the tracker has."""
        if (variable := elsewhere(self.name, environment)) is not None:
            return f"where {variable} says"
        files = self.files.absolute()
        match self.name:
            case "wandb":
                return f"wandb sync {shell_word(str(files))}/offline-run-*"
            case "mlflow":
                store = shell_word(files.as_uri())
                return f"MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {store}"
            case _:
                return f"{self.name} --logdir {shell_word(str(files))}"

    @property
    def later(self) -> str:
        """The command that feeds the tracker, now or again."""
        return command("track", str(self.run), "--to", self.name)


# In the child: one tracker follows one ledger


def follow(
    place: Place,
    released: Callable[[float], bool],
    *,
    watch: bool = False,
    rebuild: bool = False,
    make: Callable[[str], Sink] = sink,
) -> None:
    """Send all there is; to `watch`, what comes too, until the run is over or nobody has it.

    `released` waits so many seconds and says whether to send what is there and end. Raises
    TrackerError on whatever the library raises; ValueError, OSError on a place that is held or
    cannot be written, or a ledger that cannot be read.
    """
    place.make()
    with place.lock():
        if rebuild:
            place.memory.unlink(missing_ok=True)
        follower = _Follower(place, make)
        is_last = not watch
        follower.look()
        while not (is_last or follower.is_over):
            is_last = released(POLL_SECONDS) or follower.is_left
            follower.look()
        follower.end()


class _Follower:
    """Reads a ledger as it grows, and remembers how much of it was sent."""

    def __init__(self, place: Place, make: Callable[[str], Sink]) -> None:
        self._place, self._make = place, make
        self._tail, self._reading = Tail(place.run), Reading()
        self._sink: Sink | None = None
        self._sent: Sent | None = None  # None: no record was there yet
        self._first = 0  # step from which on the sink wants figures

    @property
    def is_over(self) -> bool:
        return self._tail.state is not None and self._tail.state.concluded is not None

    @property
    def is_left(self) -> bool:
        """Whether no process has the run."""
        state = self._tail.state
        return state is not None and not goes_on(state, datetime.now(UTC))

    def look(self) -> None:
        """Send what is new."""
        waiting = []
        for record in self._tail.news():
            assert self._tail.state is not None, "it has a record"
            if record.seq == 0 and self._sent is not None:
                raise ValueError(f"another ledger has taken the place of {self._place.run}'s")
            if (figures := self._reading.figures(self._tail.state, record)) is not None:
                waiting.append(figures)
        if (state := self._tail.state) is not None:
            self._sent = self._sent or self._recalled(state)
            if not self._has_all(state):
                self._send(state, waiting)

    def end(self) -> None:
        """Send the summary, unless it was sent and nothing is new."""
        state = self._tail.state
        if state is None or self._has_all(state):
            return
        own, run = self._opened(state), Run(state, datetime.now(UTC))
        with _in_one_line():
            own.end(summary(run, os.environ), is_over=self.is_over)
        assert self._sent is not None, "it was opened"
        self._remember(state.records, self._sent.step, is_ended=True)

    def _recalled(self, state: RunState) -> Sent:
        sent = self._place.recall(state.genesis)
        is_longer = sent.records > state.records  # than a ledger that was rolled back
        return Sent(ledger=state.genesis) if is_longer else sent

    def _has_all(self, state: RunState) -> bool:
        """Whether even the summary was sent as of the last record."""
        return (
            self._sent is not None and self._sent.is_ended and self._sent.records == state.records
        )

    def _send(self, state: RunState, waiting: Sequence[Figures]) -> None:
        own = self._opened(state)
        wanted = [figures for figures in waiting if figures.step >= self._first]
        for begin in range(0, len(wanted), BATCH):
            batch = wanted[begin : begin + BATCH]
            with _in_one_line():
                own.log(batch)
            self._remember(batch[-1].record + 1, batch[-1].step)

    def _opened(self, state: RunState) -> Sink:
        if self._sink is not None:
            return self._sink
        plan = state.planned
        assert self._sent is not None, "it was recalled"
        beginning = Beginning(
            run_id=plan.run_id,
            phase=plan.phase,
            tier=plan.tier or "",
            objective=str(plan.objective["name"]),
            key=state.genesis,
            config=config(plan, os.environ),
            directory=self._place.files.absolute(),
            sent=self._sent.step,
        )
        with _in_one_line():
            own = self._make(self._place.name)
            self._first = own.begin(beginning)
        self._sink = own
        return own

    def _remember(self, records: int, step: int, *, is_ended: bool = False) -> None:
        assert self._sent is not None, "it was recalled"
        self._sent = Sent(ledger=self._sent.ledger, records=records, step=step, is_ended=is_ended)
        self._place.remember(self._sent)


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Around calls of a library: whatever it raises, SystemExit too, is a TrackerError."""
    try:
        yield
    except (Exception, SystemExit) as error:
        traceback.print_exc()  # into its log
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise TrackerError(secrets.redacted(one_line(said), os.environ)) from error


def beside(parent: int, *, is_niced: bool) -> Callable[[float], bool]:
    """Make this process a child of a command; return `follow`'s `released`.

    It is killed when its parent is gone. stdin is a pipe on which the parent says when to end;
    until then it steps back for the run, if it `is_niced`.
    """
    die_with_parent(parent)
    pipe, null = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)  # no library reads the pipe
    os.umask(0o077)
    if is_niced:
        os.nice(NICENESS)
        _weigh_session(NICENESS)
    volunteer_for_the_oom_killer()
    faulthandler.enable()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # no library looks at the run's GPUs

    def released(seconds: float) -> bool:
        if os.fstat(2).st_size > LOG_BYTES:
            os.ftruncate(2, 0)
        is_released = bool(select.select([pipe], [], [], seconds)[0])
        if is_released:
            _weigh_session(0)  # there is little time, and no run to step back for
        return is_released

    return released


def _weigh_session(niceness: int) -> None:
    """How much CPU this session gets where Linux shares it out by sessions first."""
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(niceness))


# In the command: its children


class Child:
    """One tracker's process. Raises OSError, ValueError where it cannot be started."""

    def __init__(self, place: Place, *options: str) -> None:
        self.place = place
        self.error: str | None = None  # why it failed, once it has
        place.make()
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        log = os.open(place.log, flags, 0o600)
        own = ("track", str(place.run.absolute()), "--to", place.name)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "orchestrator", *own, *options, "--child-of",
                 str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(log)

    def has_ended(self) -> bool:
        """Return whether it is over, and `error` says how; never waits."""
        code = self._process.poll()
        if code and self.error is None:
            self.error = self._why(code)
        return code is not None

    def release(self) -> None:
        """Let it send what is there, and end."""
        pipe = self._process.stdin
        if pipe is not None and not pipe.closed:
            with suppress(OSError):
                pipe.write(b"\n")  # for whoever else may hold the pipe open
                pipe.flush()
            with suppress(OSError):
                pipe.close()

    def kill(self, why: str) -> None:
        """Kill it with what it has started in its session; nothing if it has ended by itself."""
        if not self.has_ended():
            self.error = why
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self.release()

    def _why(self, code: int) -> str:
        if code < 0:
            with suppress(ValueError):
                return f"it was killed by {signal.Signals(-code).name}; see {self.place.log}"
        with suppress(OSError, ValueError):
            lines = read_plain(self.place.log).decode(errors="replace").splitlines()
            said = [line for line in lines if line.startswith(_ERROR)]
            if said:
                return one_line(said[-1].removeprefix(_ERROR))
        return f"it ended with exit code {code}; see {self.place.log}"


class Trackers:
    """The trackers of one command, over all of its runs. A failure is said once."""

    def __init__(
        self,
        names: Sequence[str],
        say: Callable[[str], None],
        is_hurried: Callable[[], bool] = lambda: False,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._names, self._say, self._is_hurried = names, say, is_hurried
        self._patience = patience_seconds
        self._children: list[Child] = []

    def begin(self, run: Path) -> None:
        """Have each tracker follow that run."""
        for place in (Place(run, name) for name in self._names):
            try:
                self._children.append(Child(place, "--watch"))
            except (OSError, ValueError) as error:
                self._failed(place, one_line(str(error)))

    def look(self) -> None:
        """Say which have failed since. Takes microseconds."""
        for child in [child for child in self._children if child.has_ended()]:
            self._children.remove(child)
            child.release()
            if child.error is not None:
                self._failed(child.place, child.error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let them finish, for a bounded time; somebody in a hurry waits for a quarter of it."""
        hurried = self._is_hurried()
        finish(self._children, self._patience / 4 if hurried else self._patience,
               lambda: self._is_hurried() != hurried)  # fmt: skip
        self.look()

    def _failed(self, place: Place, why: str) -> None:
        self._say(
            f"Tracker {place.name} failed: {why}. The run is not touched; later: {place.later}"
        )


def finish(
    children: Sequence[Child], seconds: float, is_cut_short: Callable[[], bool] = lambda: False
) -> None:
    """Let the children send what is there, and kill those that have not ended by then."""
    for child in children:
        child.release()
    began = time.monotonic()
    while not all(child.has_ended() for child in children):
        waited = time.monotonic() - began
        if waited > seconds or is_cut_short():
            for child in children:
                child.kill(f"it had not logged everything {waited:.0f} s after the run, and was "
                           "killed")  # fmt: skip
            return
        time.sleep(0.05)
