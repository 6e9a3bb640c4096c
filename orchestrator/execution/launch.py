"""What a supervised process becomes: our own evaluation forked, or any program exec'd."""

import os
import signal
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn

from pydantic import Field

from budgets.plan import Frozen
from objectives.programs import kernel
from objectives.programs.environment import MARK
from objectives.programs.kernel import LINUX
from orchestrator.execution import processes
from orchestrator.execution.attempts import CONFIG, to_json
from orchestrator.execution.evaluate import Attempt, Launcher


class Program(Frozen):
    """What is run. It gets the attempt, the device (`cpu` or `cuda`) and the number of threads.

    Whatever it is, it answers with `measurement.json` (`attempts.Report`) in its working directory
    and exits with 0.
    """

    # `fork` calls this with them; `exec` runs that with the path of `config.json` for the first.
    entry: str = "orchestrator.execution.child:main"
    argv: tuple[str, ...] = Field(
        default=(sys.executable, "-P", "-m", "orchestrator.execution.child")
    )


class Launch(Frozen):
    """One request to a fork server: supervise this attempt, whose `config.json` is on disk."""

    attempt: Attempt
    launcher: Launcher
    program: Program
    gpu_id: str | None  # None: on the CPU
    host: str = ""  # part of the device's name, on a cluster
    threads: int

    @property
    def device(self) -> str:
        return "cpu" if self.gpu_id is None else "cuda"

    @property
    def arguments(self) -> list[str]:
        return [str(self.attempt.directory / CONFIG), self.device, str(self.threads)]

    @property
    def environment(self) -> dict[str, str]:
        return environment_on(self.gpu_id, self.threads)


def environment_on(gpu_id: str | None, threads: int) -> dict[str, str]:
    """Added for an evaluation. A fork keeps the thread counts its libraries started with."""
    return {
        "CUDA_VISIBLE_DEVICES": gpu_id or "",
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        "PYTHONUNBUFFERED": "1",
    }


@dataclass(frozen=True)
class Spare:
    """A process forked ahead. It becomes a trainer when told of a launch, and ends otherwise."""

    pid: int
    stdin: int  # the ends of its pipes
    stdout: int
    stderr: int

    def start(self, launch: Launch) -> None:
        """Let it evaluate. If it has died meanwhile, its exit code will say so."""
        with suppress(BrokenPipeError), os.fdopen(self.stdin, "wb") as orders:
            orders.write(to_json(launch).encode())


def fork_spare() -> Spare:
    """Fork a process that has done all that a trainer does before it knows what to evaluate."""
    supervisor = os.getpid()
    (orders, stdin), (out, stdout), (err, stderr) = os.pipe(), os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _prepare(supervisor, orders, stdout, stderr)
            _become_trainer()
        finally:  # never back into the supervisor's code
            traceback.print_exc()
            os._exit(127)
    with suppress(PermissionError, ProcessLookupError):  # it does the same: whoever is first
        os.setpgid(pid, pid)
    for descriptor in (orders, stdout, stderr):
        os.close(descriptor)
    return Spare(pid, stdin, out, err)


def _prepare(supervisor: int, orders: int, stdout: int, stderr: int) -> None:
    os.setpgid(0, 0)
    kernel.die_with_parent(supervisor)
    processes.volunteer_for_the_oom_killer()
    _default_signals()
    for source, target in ((orders, 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target)
    _close_above(2)


def _become_trainer() -> NoReturn:
    with os.fdopen(0, "rb", closefd=False) as orders:
        said = orders.read()
    if not said:
        os._exit(0)  # the supervisor is gone or needs none
    launch = Launch.model_validate_json(said)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.chdir(launch.attempt.directory)
    os.environ.update(launch.environment)
    if launch.launcher == "exec":
        os.environ[MARK] = launch.attempt.attempt_id
        argv = [*launch.program.argv, *launch.arguments]
        os.execvpe(argv[0], argv, os.environ)  # noqa: S606 - the very point
    processes.mark_this_process(launch.attempt.attempt_id)
    status = _call(launch)
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _call(launch: Launch) -> int:
    module, _, name = launch.program.entry.partition(":")
    try:
        entry = getattr(import_module(module), name)
        return int(entry(launch.attempt, launch.device, launch.threads) or 0)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)


def _default_signals() -> None:
    for signum in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError, ValueError):
            signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _close_above(last: int) -> None:
    listing = "/proc/self/fd" if LINUX else "/dev/fd"
    for name in os.listdir(listing):
        if int(name) > last:
            with suppress(OSError):
                os.close(int(name))
