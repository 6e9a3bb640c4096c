"""What only another process can find out: asked there, with a limit on how long.

What a library does when it is imported, or a kernel when a process dies, happens to that process.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any

Answer = Mapping[str, Any]
Ask = Callable[[], Answer]
"""Gives the answer. Raises NoAnswerError."""

GRACE_SECONDS = 2.0  # to leave nothing half written behind


class NoAnswerError(Exception):
    """The process ended without an answer, or took too long; the message says which."""


class Asked:
    """A module run as a program of its own: it prints one JSON object last.

    It runs from the start on, beside others. Use as a context manager: whatever is still running is
    ended. `said` is JSON on its stdin, `environment` is laid over this process's own.
    """

    def __init__(
        self,
        module: str,
        *arguments: str,
        limit_seconds: float,
        said: Any = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._limit_seconds = limit_seconds
        self._began = time.monotonic()
        with tempfile.TemporaryFile() as file:  # a pipe might not take it all at once
            file.write(json.dumps(said).encode())
            file.seek(0)
            self._process = self._start(file, [module, *arguments], environment or {})

    def _start(
        self, stdin: IO[bytes], command: list[str], environment: Mapping[str, str]
    ) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-P", "-m", *command],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, **environment},
            start_new_session=True,
        )

    def __call__(self) -> Answer:
        """The answer. Raises NoAnswerError, also after the limit."""
        left = self._limit_seconds - (time.monotonic() - self._began)
        try:
            out, err = self._process.communicate(timeout=max(left, 0.0))
        except subprocess.TimeoutExpired:
            self.end()
            raise NoAnswerError(f"no answer within {self._limit_seconds:g} s") from None
        try:
            found = json.loads(out.splitlines()[-1])
        except (IndexError, ValueError):
            said = err.strip().splitlines()
            why = f": {said[-1][:200]}" if said else ""
            raise NoAnswerError(f"ended with {self._process.returncode}{why}") from None
        if not isinstance(found, dict):
            raise NoAnswerError(f"expected a JSON object, got {found!r:.200}")
        return found

    def end(self) -> None:
        """Interrupt it, so that it can clean up, and kill it if it does not."""
        for signum in (signal.SIGINT, signal.SIGKILL):
            if self._process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signum)
            with suppress(subprocess.TimeoutExpired):
                self._process.communicate(timeout=GRACE_SECONDS)
                return

    def __enter__(self) -> "Asked":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
