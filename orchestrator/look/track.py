"""Experiment trackers follow a run's ledger, each in a child process of the command.

A tracker's library may hang, leak, crash, print or ask for a password. It does so in a child,
`orchestrator track RUN --to NAME --watch`, with its own session, no terminal and a low priority.
The run calls no tracker and never waits for one; when its command ends, the children have some
seconds to finish. A child deletes what the tracker has of the run, sends the ledger from its first
record, and follows it. In the run's directory each tracker has

    trackers/wandb/       its own files
    trackers/wandb.log    what its library printed
"""

import math
import os
import re
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, Protocol, Self, cast

from budgets.events import Decided, GenerationTold, Settled
from budgets.formatting import command, one_line
from budgets.ledger import Record
from budgets.state import RunState
from objectives.process import die_with_parent
from objectives.secrets import redacted
from orchestrator.config import Tracker
from orchestrator.look.document import flat, plain_name, plain_values
from orchestrator.look.files import read_end
from orchestrator.look.run import Run, comparison_name
from orchestrator.records.runs import load_state
from orchestrator.records.standing import goes_on
from orchestrator.records.tables import IN_TIME, measured
from orchestrator.records.tail import Tail

PATIENCE_SECONDS = 15.0  # that children have to finish, before they are killed
POLL_SECONDS, NICENESS = 0.5, 10
PROJECT = "cmaes-orchestrator"  # in W&B; the experiment in MLflow


def figures(state: RunState, record: Record) -> dict[str, float]:
    """Return the finite numbers that a record adds, given the state as of it.

    No name begins the path of another: a tracker may keep names as files.
    """
    run, found = Run(state, datetime.fromisoformat(record.at)), dict[str, Any]()
    match record.event:
        case Settled(final=True) as event:
            name = plain_name(state.batch(event).configurations[event.candidate].name)
            kind = plain_name(comparison_name(event.comparison) or "condition")
            before = f"{kind}/{name}/" if name else ""  # scores of one kind make a curve
            own = measured(state, event)
            found = {name: own.pop(name) for name in ("evaluations", "elapsed_seconds", *IN_TIME)}
            own |= {f"objective/{plain_name(name)}": one for name, one in event.metrics.items()}
            found |= {f"{before}{name}": one for name, one in own.items()}
            found |= {f"spent/{plain_name(one.currency)}": one.spent for one in run.balances}
        case GenerationTold() as event:
            row = next(one for one in run.generations if one.number == event.generation)
            found = {f"generation/{name}": one for name, one in plain_values(row).items()}
        case Decided() as event:
            found = {"verdict/gain": event.gain, "verdict/lower": event.lower}
    return {k: float(v) for k, v in found.items() if type(v) in (int, float) and math.isfinite(v)}


# The trackers: files in a directory, without account or network; only a child imports a library

Values = Mapping[str, str | float]


class Sink(Protocol):
    """One run in one tracker. What it raises ends its own child process only."""

    def __init__(self, directory: Path, run: RunState, config: Values) -> None:
        """Open the run in an empty directory (absolute), with its plan as flat values."""

    def log(self, step: int, at: float, values: Mapping[str, float]) -> None:
        """Take the figures after `step` evaluations, at a time in seconds since 1970."""

    def end(self, *, is_over: bool) -> None:
        """Finish. Unless the run `is_over`, it may continue later."""


class TensorBoard:
    """An event file of scalars, by TensorBoard's own writer. Needs no torch."""

    def __init__(self, directory: Path, run: RunState, config: Values) -> None:  # noqa: ARG002
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer, self._event = EventFileWriter(str(directory), flush_secs=2), Event
        # A running TensorBoard then forgets what an earlier file had.
        start = SessionLog(status=SessionLog.START)
        self._writer.add_event(Event(wall_time=run.began_ms / 1000, session_log=start))

    def log(self, step: int, at: float, values: Mapping[str, float]) -> None:
        scalars = [{"tag": name, "simple_value": value} for name, value in values.items()]
        self._writer.add_event(self._event(wall_time=at, step=step, summary={"value": scalars}))

    def end(self, *, is_over: bool) -> None:  # noqa: ARG002
        self._writer.close()


class Wandb:
    """An offline W&B run, which `wandb sync` sends to an account."""

    def __init__(self, directory: Path, run: RunState, config: Values) -> None:
        places = ("WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR")
        os.environ |= dict.fromkeys(places, str(directory / ".own"))
        os.environ["WANDB_ERROR_REPORTING"] = "false"
        import wandb

        names = ("x_disable_meta", "x_disable_stats", "x_disable_machine_info")
        settings = wandb.Settings(mode="offline", console="off", **dict.fromkeys(names, True))
        self._run = wandb.init(
            dir=directory.parent,  # W&B adds `wandb`
            project=PROJECT,
            id=run.genesis[:16],
            name=run.plan.run_id,
            config=dict(config),
            settings=settings,
        )

    def log(self, step: int, at: float, values: Mapping[str, float]) -> None:
        self._run.log({**values, "_timestamp": at}, step=step)

    def end(self, *, is_over: bool) -> None:
        self._run.finish(exit_code=0 if is_over else 1)


class MlFlow:
    """A run in an MLflow file store, which `mlflow-skinny` can write."""

    def __init__(self, directory: Path, run: RunState, config: Values) -> None:
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # MLflow 3 refuses one without it
        os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
        from mlflow.tracking import MlflowClient

        os.chdir(directory)  # MLflow finds no run in a store whose path has a part `artifacts`
        self._client = MlflowClient(tracking_uri=".")
        experiment = self._client.create_experiment(PROJECT)
        self._id = self._client.create_run(experiment, run_name=run.plan.run_id).info.run_id
        for name, value in config.items():
            self._client.log_param(self._id, name, value)

    def log(self, step: int, at: float, values: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        metrics = [Metric(name, one, round(1000 * at), step) for name, one in values.items()]
        self._client.log_batch(self._id, metrics=metrics)

    def end(self, *, is_over: bool) -> None:
        self._client.set_terminated(self._id, "FINISHED" if is_over else "KILLED")


SINKS: Mapping[Tracker, type[Sink]] = {"tensorboard": TensorBoard, "wandb": Wandb, "mlflow": MlFlow}


# In the child: one tracker follows one ledger


def main() -> None:
    """Run `follow` in a child of `Trackers`, which is killed when its parent ends.

    Its arguments: the run, the tracker, the parent's process id, and 1 to watch or 0. A failure is
    the last line of its log.
    """
    run, name, parent, watch = sys.argv[1:]
    die_with_parent(int(parent))
    os.nice(NICENESS)
    os.umask(0o077)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # no library looks at the run's GPUs
    pipe = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # no library reads the pipe
    try:
        follow(Path(run), name, SINKS[cast("Tracker", name)], pipe, watch=watch == "1")
    except (Exception, SystemExit) as error:
        sys.stderr.write(redacted(traceback.format_exc(), os.environ))
        said = one_line(redacted(f"{type(error).__name__}: {error}", os.environ))
        sys.exit(f"error: {said}")


def follow(run: Path, name: str, make: Callable[..., Sink], pipe: int, *, watch: bool) -> None:
    """Send the whole ledger; with `watch` also what is added, until the run ends or is left.

    A byte in the pipe asks to send what is there and end.
    """
    directory = run.absolute() / "trackers" / name
    if os.path.lexists(directory):
        shutil.rmtree(directory)  # raises on a link
    directory.mkdir(mode=0o700)
    state, tail, is_last = load_state(run), Tail(run), not watch
    sink = make(directory, state, flat(state.planned.model_dump(mode="json")))
    while True:
        for record in tail.news():
            state = tail.state or state
            if found := figures(state, record):
                step = state.accounts.evaluations + state.accounts.comparisons
                sink.log(step, datetime.fromisoformat(record.at).timestamp(), found)
        if is_last or state.concluded is not None:
            break
        is_asked = bool(select.select([pipe], [], [], POLL_SECONDS)[0])
        is_last = is_asked or not goes_on(state, datetime.now(UTC))
    sink.end(is_over=state.concluded is not None)


# In the command: its children


@dataclass
class Trackers:
    """The trackers of one command, over all of its runs. A failure is reported once."""

    names: Sequence[str]
    say: Callable[[str], None]
    patience_seconds: float = PATIENCE_SECONDS
    errors: dict[str, str] = field(default_factory=dict)
    _children: list[tuple[Popen[bytes], Path, str]] = field(default_factory=list)

    def begin(self, run: Path, *, watch: bool = True) -> None:
        """Send the run to each tracker; with `watch` until it is over."""
        for name in self.names:
            try:
                self._children.append((_started(run, name, watch=watch), run, name))
            except (OSError, ValueError) as error:
                self._failed(run, name, one_line(str(error)))

    def look(self) -> bool:
        """Report new failures; return whether a child is still running."""
        for ended in [one for one in self._children if one[0].poll() is not None]:
            self._children.remove(ended)
            child, run, name = ended
            child.communicate()  # closes the pipe
            if child.returncode:
                log = read_end(run, f"trackers/{name}.log", 4096).decode(errors="replace")
                said = re.findall("^error: (.*)", log, re.MULTILINE)[-1:]
                code = f"it ended with exit code {child.returncode}: see trackers/{name}.log"
                self._failed(run, name, one_line(said[0]) if said else code)
        return bool(self._children)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let the children send what is there, for a bounded time."""
        for pipe in (one[0].stdin for one in self._children):
            assert pipe is not None, "it is one"
            with suppress(OSError):
                pipe.write(b".")  # closing is not enough: evaluations may hold the pipe
        end = time.monotonic() + self.patience_seconds
        while self.look() and time.monotonic() < end:
            time.sleep(0.05)
        for child, run, name in self._children:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            self._failed(run, name, "it did not end in time and was killed")

    def _failed(self, run: Path, name: str, why: str) -> None:
        self.errors[name] = why
        again = command("track", str(run), "--to", name)
        self.say(f"Tracker {name} failed: {why}. The run is not touched; later: {again}")


def _started(run: Path, name: str, *, watch: bool) -> Popen[bytes]:
    """Start a child. Raises OSError, and ValueError where a link leads out of the run."""
    place, flags = run / "trackers", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    if place.is_symlink():
        raise ValueError(f"{place} is a symbolic link: expected the run's own directory")
    place.mkdir(mode=0o700, exist_ok=True)
    words = (str(run.absolute()), name, str(os.getpid()), str(int(watch)))
    args = [sys.executable, "-P", "-m", "orchestrator.look.track", *words]
    with os.fdopen(os.open(place / f"{name}.log", flags | os.O_APPEND, 0o600), "wb") as log:
        return Popen(args, 0, stdin=PIPE, stdout=log, stderr=log, start_new_session=True)


if __name__ == "__main__":
    main()
