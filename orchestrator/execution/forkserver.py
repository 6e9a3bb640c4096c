"""A small process that forks one supervisor per request, and its handle in the executor.

The server has imported what evaluations need, has one thread, and never touches CUDA, so a fork of
it starts an evaluation in milliseconds. A request is a line of JSON on stdin: the attempt's
directory, whose `config.json` is on disk, and the GPU. The server ends when stdin is closed. Its
supervisors survive it, each in a session of its own. (Ray kills the children of an actor that ends:
the server, but not its supervisors.)
"""

import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from objectives.api import SetupError, missing_package
from objectives.process import MARK
from orchestrator.execution import processes
from orchestrator.execution.api import EngineError
from orchestrator.execution.supervisor import Supervision, supervise

READY, MISSING = b"ready", b"missing "
"""What the server reports; a package that is not installed follows the second."""

READY_SECONDS = 180.0  # importing torch took 13 s on a loaded machine
START = """
import sys
package = sys.argv.pop(1)
if package not in sys.path:  # an installed package is there already, behind the standard library
    sys.path.insert(0, package)
from orchestrator.execution.forkserver import main
main(*sys.argv[1:])
"""
"""The server's program: the first argument is where this package is."""


def main(preload: str, ready: str, common: str) -> None:
    """Serve until stdin is closed. In a forked supervisor: supervise, then exit."""
    for name in filter(None, preload.split(",")):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            os.write(int(ready), MISSING + str(error.name).encode())
            raise
    gc.collect()
    gc.freeze()  # keeps the forks from copying every page at their first collection
    os.write(int(ready), READY)
    os.close(int(ready))
    # The kernel reaps the supervisors, also where process 1 never does.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        for line in sys.stdin.buffer:
            if os.fork() == 0:
                os.setsid()
                os.dup2(os.open(os.devnull, os.O_RDWR), 0)  # requests are for the server alone
                directory, gpu_id = json.loads(line)
                supervise(Path(directory), gpu_id, Supervision(**json.loads(common)))
                break
    finally:  # a supervisor never returns to the loop, whatever it raises
        sys.stdout.flush()
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        os._exit(0)


class ForkServer:
    """A running fork server; ready when constructed. Raises EngineError if it does not start."""

    def __init__(self, preload: Sequence[str], common: Supervision) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        ready_read, ready_write = os.pipe()
        package = str(Path(__file__).parents[2])
        arguments = [package, ",".join(preload), str(ready_write), json.dumps(asdict(common))]
        inherited = (common.notify, common.lifeline, common.lease, ready_write)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", START, *arguments],
                stdin=subprocess.PIPE,
                stdout=self._errors,
                stderr=self._errors,
                pass_fds=[descriptor for descriptor in inherited if descriptor is not None],
                start_new_session=True,  # a Ctrl-C in the terminal does not reach it
                env={
                    **os.environ,
                    "OMP_NUM_THREADS": str(common.threads),
                    "OPENBLAS_NUM_THREADS": "1",  # a process with threads must not be forked
                    "PYTHONUNBUFFERED": "1",
                    MARK: "-" * processes.MARK_LENGTH,  # room for it
                },
                bufsize=0,
            )
        finally:
            os.close(ready_write)
        has_answered = select.select([ready_read], [], [], READY_SECONDS)[0]
        answer = os.read(ready_read, 64) if has_answered else b""
        os.close(ready_read)
        if answer != READY:
            self._process.kill()
            output = os.pread(self._errors.fileno(), 1 << 20, 0).decode(errors="replace")
            self.close()
            if answer.startswith(MISSING):
                raise SetupError(missing_package(answer.removeprefix(MISSING).decode()))
            raise EngineError(f"the fork server did not start:\n{output.strip()[-2000:]}")

    def is_alive(self) -> bool:
        """Return False once the server has died; it is then reaped."""
        return self._process.poll() is None

    def ask(self, directory: Path, gpu_id: str | None) -> None:
        """Request a supervisor. If the server is dead, the attempt never starts."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps([str(directory), gpu_id]).encode() + b"\n")

    def close(self) -> None:
        """End the server by closing its stdin. Its supervisors live on."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        self._process.kill()
        self._process.wait()
        self._errors.close()
