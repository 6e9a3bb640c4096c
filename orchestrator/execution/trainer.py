"""The process that evaluates: forked from its supervisor, it writes `measurement.json` and exits.

The one broad `except` of the project is here: whatever an objective raises is a result.
"""

import json
import os
import signal
import sys
import sysconfig
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from budgets.events import Status
from objectives import process as kernel
from objectives import registry
from objectives.api import (
    Context,
    DivergedError,
    Measurement,
    ObjectiveError,
    OutOfMemoryError,
    ProgramFailedError,
    SetupError,
)
from objectives.secrets import redacted
from orchestrator.execution import processes
from orchestrator.execution.api import Attempt, no_score
from orchestrator.execution.files import MEASUREMENT, METRICS, Report, write_model
from orchestrator.execution.signals import Insisted

MAIN = "orchestrator.execution.trainer:main"
"""What runs in the process: a function of the attempt, the device's kind and the threads. It
answers with `measurement.json` in its working directory and returns 0."""

MOST_CHARACTERS = 1000  # of a cause


@dataclass(frozen=True)
class Launch:
    """An attempt and what it runs on."""

    attempt: Attempt
    entry: str  # see `MAIN`
    gpu_id: str | None  # None: on the CPU
    threads: int


@dataclass(frozen=True)
class Trainer:
    """A started trainer: its pid and the read ends of its output pipes."""

    pid: int
    stdout: int
    stderr: int


def environment_on(gpu_id: str | None, threads: int) -> dict[str, str]:
    """Added for an evaluation. A fork keeps the thread counts its libraries started with."""
    return {
        "CUDA_VISIBLE_DEVICES": gpu_id or "",
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        "PYTHONUNBUFFERED": "1",
    }


def fork_trainer(launch: Launch) -> Trainer:
    """Fork the process that evaluates."""
    supervisor = os.getpid()
    (out, stdout), (err, stderr) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _prepare(supervisor, launch, stdout, stderr)
            os._exit(_call(launch))
        finally:  # never back into the supervisor's code
            traceback.print_exc()
            os._exit(127)
    with suppress(PermissionError, ProcessLookupError):  # it does the same: whoever is first
        os.setpgid(pid, pid)
    os.close(stdout)
    os.close(stderr)
    return Trainer(pid, out, err)


def _prepare(supervisor: int, launch: Launch, stdout: int, stderr: int) -> None:
    os.setpgid(0, 0)
    kernel.die_with_parent(supervisor)
    processes.volunteer_for_the_oom_killer()
    for signum in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError, ValueError):
            signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with suppress(OSError):
                os.close(int(name))
    os.chdir(launch.attempt.directory)
    os.environ.update(environment_on(launch.gpu_id, launch.threads))
    processes.mark_this_process(launch.attempt.attempt_id)


def _call(launch: Launch) -> int:
    module, _, name = launch.entry.partition(":")
    device = "cpu" if launch.gpu_id is None else "cuda"
    try:
        entry = getattr(import_module(module), name)
        return int(entry(launch.attempt, device, launch.threads) or 0)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()


def main(attempt: Attempt, device: str, threads: int) -> int:
    """Evaluate the attempt and write `measurement.json` into its directory.

    Returns 0 also when the evaluation failed: what counts is that it was said how.
    """
    report = evaluate(attempt, device, threads)
    # Not synced: only the supervisor beside us reads it, and what it writes is synced.
    write_model(attempt.directory / MEASUREMENT, report, durable=False)
    return 0


def evaluate(attempt: Attempt, device: str, threads: int) -> Report:
    """Run the objective and name how it ended; raises nothing but Insisted."""
    called_at = None
    try:
        objective = registry.load(attempt.objective)
        context = Context(
            directory=attempt.directory,
            device=device,
            threads=threads,
            heartbeat=heartbeat_into(attempt.directory / METRICS),
            attempt_id=attempt.attempt_id,
            pinned=attempt.pinned,
        )
        called_at = time.monotonic()
        measurement = objective.evaluate(attempt.knobs, attempt.seed, context)
        status, cause = judge(measurement)
        kept = measurement if status is not Status.ERROR else None
    except Insisted:
        raise
    except BaseException as error:  # see the module's first lines
        if not isinstance(error, ProgramFailedError):  # its own last words are what helps
            traceback.print_exc()
        status, cause, kept = classify(error), in_one_line(error), None
    return Report(
        attempt_id=attempt.attempt_id,
        status=status,
        cause=cause,
        measurement=kept,
        called_at=called_at,
    )


def judge(measurement: object) -> tuple[Status, str]:
    """Status and cause of an evaluation that returned."""
    if not isinstance(measurement, Measurement):
        return Status.ERROR, f"expected a Measurement, got {type(measurement).__name__}"
    why = no_score(measurement.score)
    return (Status.NAN, why) if why else (Status.OK, "")


def classify(error: BaseException) -> Status:
    """What an exception says about the evaluation. Knows torch's by name, never imports it."""
    if isinstance(error, DivergedError):
        return Status.NAN
    names = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, OutOfMemoryError | MemoryError) or "OutOfMemoryError" in names:
        return Status.OOM
    text = "".join(traceback.format_exception_only(error)).lower()  # whatever its __str__ does
    if isinstance(error, RuntimeError) and (
        "out of memory" in text or "can't allocate memory" in text or "alloc_failed" in text
    ):
        return Status.OOM
    return Status.ERROR


def in_one_line(error: BaseException) -> str:
    """`Kind: message at train.py:12`, the first line of the message alone, secrets left out.

    CUDA says there what went wrong, and goes on with several lines of advice. Our own kinds go
    without their module, every kind of SetupError by that name: the ledger knows them so.
    """
    lines = "".join(traceback.format_exception_only(error)).strip().splitlines()
    name = type(error).__name__
    said = next((line for line in lines if name in line.partition(":")[0]), name)
    if isinstance(error, ObjectiveError):
        known = "SetupError" if isinstance(error, SetupError) else name
        said = known + "".join(said.partition(": ")[1:])
    said = said.encode("utf-8", "backslashreplace").decode()  # no file holds half a character
    where = "" if isinstance(error, ObjectiveError) else _where_raised(error)
    return redacted(said, os.environ)[: MOST_CHARACTERS - len(where)] + where


def _where_raised(error: BaseException) -> str:
    """The innermost line that is the user's: neither ours nor a library's; empty without one."""
    frames = traceback.walk_tb(error.__traceback__)
    lines = [(Path(frame.f_code.co_filename), number) for frame, number in frames]
    own = [(file, number) for file, number in lines if _is_the_users(file)]
    return f" at {own[-1][0].name}:{own[-1][1]}" if own else ""


def _is_the_users(file: Path) -> bool:
    if not file.is_absolute() or {"site-packages", "dist-packages"} & set(file.parts):
        return False  # such as <frozen importlib._bootstrap>
    return not any(map(file.is_relative_to, _NOT_THE_USERS))


_HERE = Path(__file__).parents[2]
_NOT_THE_USERS = (
    *(_HERE / package for package in ("budgets", "objectives", "orchestrator")),
    Path(sysconfig.get_path("stdlib")),
)


def heartbeat_into(path: Path) -> Callable[[Mapping[str, float]], None]:
    """A heartbeat that appends one line of JSON per call.

    On a full disk it only says that the evaluation lives: the next line may be written.
    """

    def beat(metrics: Mapping[str, float]) -> None:
        said = {"t": time.time(), **{k: float(v) for k, v in metrics.items()}}
        line = json.dumps(said).encode() + b"\n"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(descriptor, line)
            finally:
                os.close(descriptor)
        except OSError:
            with suppress(OSError):
                os.utime(path)

    return beat
