"""What a supervised process becomes: our own evaluation forked, or any program exec'd."""

import os
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import NoReturn

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.execution import processes
from orchestrator.execution.attempts import CONFIG
from orchestrator.execution.evaluate import Attempt, Launcher


class Program(BaseModel):
    """What is run for an attempt. Both forms get the same arguments:

    the path of `config.json`, the device (`cpu` or `cuda`), and the number of threads. Whatever it
    is, it answers with `measurement.json` (`attempts.Report`) in its working directory and exits
    with 0.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    # `fork` calls this with the list of arguments; `exec` runs that with them appended.
    entry: str = "orchestrator.execution.child:main"
    argv: tuple[str, ...] = Field(
        default=(sys.executable, "-P", "-m", "orchestrator.execution.child")
    )


class Launch(BaseModel):
    """One request to a fork server: start a supervisor for the attempt in this directory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    directory: Path
    launcher: Launcher
    program: Program
    gpu_id: str | None  # None: on the CPU
    threads: int

    @property
    def device(self) -> str:
        return "cpu" if self.gpu_id is None else "cuda"

    @property
    def arguments(self) -> list[str]:
        return [str(self.directory / CONFIG), self.device, str(self.threads)]

    @property
    def environment(self) -> dict[str, str]:
        """Added for the evaluation. A fork keeps the thread counts its libraries started with."""
        threads = str(self.threads)
        return {
            "CUDA_VISIBLE_DEVICES": self.gpu_id or "",
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "PYTHONUNBUFFERED": "1",
        }


def fork_trainer(launch: Launch, attempt: Attempt, stdout: int, stderr: int) -> int:
    """Fork the process that evaluates, with these pipes as its output; returns its pid."""
    supervisor = os.getpid()
    trainer = os.fork()
    if trainer == 0:
        try:
            _become_trainer(launch, attempt, supervisor, stdout, stderr)
        finally:  # never back into the supervisor's code
            traceback.print_exc()
            os._exit(127)
    with suppress(PermissionError, ProcessLookupError):  # it does the same: whoever is first
        os.setpgid(trainer, trainer)
    return trainer


def _become_trainer(
    launch: Launch, attempt: Attempt, supervisor: int, stdout: int, stderr: int
) -> NoReturn:
    os.setpgid(0, 0)
    processes.die_with_parent(supervisor)
    processes.volunteer_for_the_oom_killer()
    _default_signals()
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target)
    _close_above(2)
    os.chdir(attempt.directory)
    os.environ.update(launch.environment)
    if launch.launcher == "exec":
        os.environ[processes.MARK] = attempt.attempt_id
        argv = [*launch.program.argv, *launch.arguments]
        os.execvpe(argv[0], argv, os.environ)  # noqa: S606 - the very point
    processes.mark_this_process(attempt.attempt_id)
    status = _call(launch.program.entry, launch.arguments)
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _call(entry: str, arguments: list[str]) -> int:
    try:
        return int(resolve_name(entry)(arguments) or 0)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)


def _default_signals() -> None:
    for signum in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError, ValueError):
            signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _close_above(last: int) -> None:
    listing = "/proc/self/fd" if processes.LINUX else "/dev/fd"
    for name in os.listdir(listing):
        if int(name) > last:
            with suppress(OSError):
                os.close(int(name))
