"""The process that evaluates: forked from its supervisor, it writes `measurement.json` and exits.

The only broad `except` of the product is here: whatever an objective raises is a result.
"""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

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
from orchestrator.execution import Insisted, api, processes
from orchestrator.execution.api import Attempt, Report, Reported

CAUSE_CHARACTERS = 1000  # longest text of a cause


def fork_trainer(attempt: Attempt, gpu_id: str | None, threads: int, logs: Sequence[int]) -> int:
    """Fork the evaluation's process with these files for stdout and stderr; return its pid."""
    supervisor = os.getpid()
    if pid := os.fork():
        return pid
    try:
        _prepare(supervisor, logs)
        os.chdir(attempt.directory)
        os.environ |= {  # for programs that it starts
            "CUDA_VISIBLE_DEVICES": gpu_id or "",
            "OMP_NUM_THREADS": str(threads),
            "OPENBLAS_NUM_THREADS": str(threads),
        }
        processes.mark_this_process(attempt.attempt_id)
        main(attempt, "cpu" if gpu_id is None else "cuda", threads)
        with suppress(OSError):  # a full disk costs the log, not the result
            sys.stdout.flush()
        os._exit(0)
    finally:  # never return into the supervisor's code
        try:
            traceback.print_exc()  # raises on a full disk
        finally:
            os._exit(127)


def _prepare(supervisor: int, logs: Sequence[int]) -> None:
    """Leave nothing of the supervisor in this process but the files for its output."""
    os.setpgid(0, 0)
    kernel.die_with_parent(supervisor)
    with suppress(OSError):  # when memory runs out, it is to be killed first
        Path("/proc/self/oom_score_adj").write_text("1000")
    for signum in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError, ValueError):
            signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for target, source in enumerate((os.open(os.devnull, os.O_RDONLY), *logs)):
        os.dup2(source, target)
    os.closerange(3, 1 << 20)


def main(attempt: Attempt, device: str, threads: int) -> None:
    """Evaluate the attempt and write `measurement.json`, which only this machine reads."""
    report = evaluate(attempt, device, threads)
    api.write_model(attempt.directory, report, durable=False)


def evaluate(attempt: Attempt, device: str, threads: int) -> Report:
    """Run the objective and report how it ended; raises nothing but Insisted."""
    name, heartbeat = attempt.attempt_id, partial(beat, attempt.directory / api.METRICS)
    context = Context(attempt.directory, device, threads, heartbeat, name, attempt.pinned)
    found: dict[str, Any] = {"attempt_id": name}
    try:
        objective = registry.load(attempt.objective)
        found["called_at"] = time.monotonic()
        answer = objective.evaluate(attempt.knobs, attempt.seed, context)
        if not isinstance(answer, Measurement):
            raise TypeError(f"expected a Measurement, got {type(answer).__name__}")
    except Insisted:
        raise
    except BaseException as error:  # see the docstring of the module
        if not isinstance(error, ProgramFailedError):  # the program's own output is what helps
            with suppress(OSError):  # a full disk
                traceback.print_exc()
        return Report(status=classify(error), cause=in_one_line(error), **found)
    return Report(status=Status.OK, measurement=answer, **found)


def classify(error: BaseException) -> Reported:
    """Return the status for an exception. torch's are recognised by text, without importing it."""
    if isinstance(error, DivergedError):
        return Status.NAN
    text = "".join(traceback.format_exception_only(error))  # safe if __str__ raises
    is_said = isinstance(error, RuntimeError) and kernel.OUT_OF_MEMORY.search(text)
    is_memory = is_said or isinstance(error, OutOfMemoryError | MemoryError)
    return Status.OOM if is_memory else Status.ERROR


def in_one_line(error: BaseException) -> str:
    """Return `Kind: message` without secrets; the traceback is in stderr.txt.

    Only the first line of the message is kept: CUDA says there what went wrong, followed by advice.
    Our own exceptions are named without their module, and every kind of SetupError by that name:
    `budgets.failure_causes` looks for these names.
    """
    lines = "".join(traceback.format_exception_only(error)).strip().splitlines()
    name = type(error).__name__
    text = next((line for line in lines if name in line.partition(":")[0]), name)
    if isinstance(error, ObjectiveError):
        name = "SetupError" if isinstance(error, SetupError) else name
        text = name + "".join(text.partition(": ")[1:])
    text = text.encode("utf-8", "backslashreplace").decode()  # no file takes half a surrogate pair
    return redacted(text, os.environ)[:CAUSE_CHARACTERS]


def beat(path: Path, metrics: Mapping[str, float]) -> None:
    """Append a line of JSON to the file of heartbeats.

    On a full disk it only touches the file, so the evaluation still counts as alive.
    """
    values = {"t": time.time(), **{name: float(value) for name, value in metrics.items()}}
    with suppress(OSError):
        path.touch(mode=0o600)
        with path.open("a") as file:
            file.write(json.dumps(values) + "\n")
