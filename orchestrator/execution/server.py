"""The fork server, seen from the executor's process."""

import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from objectives.api import SetupError, missing_package
from objectives.process import MARK
from orchestrator.execution import processes
from orchestrator.execution.attempts import to_json
from orchestrator.execution.forkserver import MISSING, READY
from orchestrator.execution.launch import Launch

READY_SECONDS = 180.0  # importing torch took 13 s on a loaded machine


class EngineError(Exception):
    """The machinery that runs evaluations failed: no candidate is to blame."""


class ForkServer:
    """A running fork server; ready when constructed. Raises EngineError if it does not start."""

    def __init__(
        self,
        preload: Sequence[str],
        threads: int,
        *,
        notify: int,
        lifeline: int,
        lease: int | None = None,
    ) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        ready_read, ready_write = os.pipe()
        command = [sys.executable, "-P", "-m", "orchestrator.execution.forkserver"]
        command += ["--preload", ",".join(preload), "--ready", str(ready_write)]
        command += ["--notify", str(notify), "--lifeline", str(lifeline)]
        command += [] if lease is None else ["--lease", str(lease)]
        inherited = [notify, lifeline, ready_write, *([] if lease is None else [lease])]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=self._errors,
                stderr=self._errors,
                pass_fds=inherited,
                start_new_session=True,  # a Ctrl-C in the terminal is not for it
                env=server_environment(os.environ, threads),
                bufsize=0,
            )
        finally:
            os.close(ready_write)
        try:
            self._wait_until_ready(ready_read)
        finally:
            os.close(ready_read)

    def _wait_until_ready(self, ready: int) -> None:
        ends = select.select([ready], [], [], READY_SECONDS)[0]
        answer = os.read(ready, 64) if ends else b""
        if answer == READY:
            return
        self._process.kill()
        self._process.wait()
        said = self.said()
        self.close()
        if answer.startswith(MISSING):
            raise SetupError(missing_package(answer.removeprefix(MISSING).decode()))
        raise EngineError(f"the fork server did not start; its last words:\n{said}")

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        """False once the server has died; it is then reaped."""
        return self._process.poll() is None

    def ask(self, launch: Launch) -> None:
        """Request a supervisor. If the server is dead, the attempt simply never starts."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(to_json(launch).encode() + b"\n")
        except BrokenPipeError:
            self._process.wait()

    def said(self) -> str:
        """The end of what the server and its supervisors printed."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 2000))
        return self._errors.read().decode(errors="replace").strip()

    def close(self) -> None:
        """End the server, which ends when its requests do. Supervisors are left alone."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()


def server_environment(base: Mapping[str, str], threads: int) -> dict[str, str]:
    """One thread in its libraries, a placeholder for the mark, this package importable."""
    environment = {
        **base,
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": "1",  # a library with threads must not be forked
        "PYTHONUNBUFFERED": "1",
        MARK: "-" * processes.MARK_LENGTH,
    }
    root = Path(__file__).parents[2]
    if root.name not in ("site-packages", "dist-packages"):
        known = base.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{root}{os.pathsep}{known}" if known else str(root)
    return environment
