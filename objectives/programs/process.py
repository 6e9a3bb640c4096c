"""A program started, listened to, and gone when we are done with it."""

import codecs
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TextIO

import psutil

from objectives.api import CommandLine, ObjectiveError, OutOfMemoryError, SetupError

TAIL_LINES = 30
LONGEST_LINE = 8192
"""Characters of a line that are looked at; a program may write more without an end to it."""

READ_BYTES = 1 << 16
BEAT_SECONDS = 1.0
LOOK_SECONDS = 5.0
"""How often a silent program is asked for its CPU time."""

LEAST_CPU_SECONDS = 0.05
"""Of `LOOK_SECONDS`: what waits for ever uses less."""

Listener = Callable[[str], Mapping[str, float] | None]
"""Hears each line, of stdout and stderr alike; may answer with metrics, or raise to end it all."""


class ProgramFailedError(ObjectiveError):
    """The program ended otherwise than with 0."""


@dataclass(frozen=True)
class Ended:
    """How it ended."""

    code: int  # its exit status, or minus the signal that killed it
    tail: tuple[str, ...]  # its last lines, of both streams

    def require_success(self) -> None:
        """Raises OutOfMemoryError or ProgramFailedError unless it exited with 0."""
        if self.code == 0:
            return
        said = next((line for line in reversed(self.tail) if line.strip()), "")
        words = f": {said.strip()}" if said else ""
        if self.code > 0:
            raise ProgramFailedError(f"exited with status {self.code}{words}")
        name = signal.Signals(-self.code).name
        raise ProgramFailedError(f"killed by signal {-self.code} {name}{words}")


def run(
    line: CommandLine, hear: Listener, heartbeat: Callable[[Mapping[str, float]], None]
) -> Ended:
    """Run the program to its end. Its output goes to our own, and each line to `hear`.

    Output or CPU time is its sign of life, passed on as a heartbeat. Nothing of its process group
    is alive when this returns or raises. Raises SetupError if it cannot be started, and
    OutOfMemoryError if the kernel killed it for memory.
    """
    killed_before = _oom_kills()
    started = _start(line)
    try:
        ended = _Talk(started, hear, heartbeat).listen()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()
        for pipe in (started.stdout, started.stderr):
            assert pipe is not None
            pipe.close()
    if ended.code == -signal.SIGKILL and _oom_kills() > killed_before:
        raise OutOfMemoryError("killed by signal 9 SIGKILL: the kernel ran out of memory")
    return ended


def _start(line: CommandLine) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            line.argv,
            cwd=line.directory,
            env=dict(line.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
    except (OSError, ValueError) as error:  # ValueError: a NUL, which no argument can have
        reason = getattr(error, "strerror", None) or error
        raise SetupError(f"cannot start {line.argv[0]!r} in {line.directory}: {reason}") from error


@dataclass
class _Stream:
    """One of the program's streams, cut into lines."""

    ours: TextIO
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )
    _rest: str = ""

    def lines(self, data: bytes) -> list[str]:
        """The lines that end in `data`; at its end (no data) what is left."""
        text = self._decoder.decode(data, final=not data)
        self.ours.write(text)
        self.ours.flush()
        *whole, rest = re.split(r"[\r\n]+", self._rest + text)
        self._rest = rest[:LONGEST_LINE]
        if not data and rest:
            whole.append(rest)
        return [one[:LONGEST_LINE] for one in whole if one]


class _Talk:
    """The program's two streams, listened to until it ends."""

    def __init__(
        self,
        started: subprocess.Popen[bytes],
        hear: Listener,
        heartbeat: Callable[[Mapping[str, float]], None],
    ) -> None:
        self._started, self._hear, self._heartbeat = started, hear, heartbeat
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._news: dict[str, float] = {}
        self._beat_at = self._looked_at = time.monotonic()
        self._is_heard = False
        self._cpu_seconds = 0.0

    def listen(self) -> Ended:
        assert self._started.stdout is not None
        assert self._started.stderr is not None
        streams = {
            self._started.stdout.fileno(): _Stream(sys.stdout),
            self._started.stderr.fileno(): _Stream(sys.stderr),
        }
        with selectors.DefaultSelector() as selector:
            end = _end_of(self._started.pid)
            for descriptor in (*streams, *end):
                os.set_blocking(descriptor, False)
                selector.register(descriptor, selectors.EVENT_READ)
            try:
                self._until_it_ends(selector, streams)
            finally:
                for descriptor in end:
                    os.close(descriptor)
        return Ended(self._started.returncode, tuple(self._tail))

    def _until_it_ends(
        self, selector: selectors.BaseSelector, streams: Mapping[int, _Stream]
    ) -> None:
        """A process that it left behind may hold the streams open: its own end is the end."""
        pause = BEAT_SECONDS if len(selector.get_map()) > len(streams) else BEAT_SECONDS / 20
        while self._started.poll() is None:
            for key, _ in selector.select(pause):
                if key.fd in streams and not self._drain(key.fd, streams[key.fd]):
                    selector.unregister(key.fd)
            self._beat()
        for descriptor, stream in streams.items():
            while self._drain(descriptor, stream):
                pass
            self._said(stream.lines(b""))

    def _drain(self, descriptor: int, stream: _Stream) -> bool:
        """Hear what is there to be read. False: there will be, or is now, nothing more."""
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return False
        if data:
            self._said(stream.lines(data))
        return bool(data)

    def _said(self, lines: list[str]) -> None:
        for line in lines:
            self._is_heard = True
            self._tail.append(line)
            self._news.update(self._hear(line) or {})

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._beat_at < BEAT_SECONDS:
            return
        if not self._is_heard and now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            used = _cpu_seconds(self._started.pid)
            self._is_heard = used - self._cpu_seconds >= LEAST_CPU_SECONDS
            self._cpu_seconds = used
        if self._is_heard:
            self._heartbeat(self._news)
            self._news, self._is_heard, self._beat_at = {}, False, now


def _end_of(pid: int) -> tuple[int, ...]:
    """A descriptor that can be read when the process has ended, where there is such a thing."""
    return (os.pidfd_open(pid),) if hasattr(os, "pidfd_open") else ()


def _cpu_seconds(pid: int) -> float:
    """Of the process and of all that it started and that still lives."""
    total = 0.0
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
    return total


def _oom_kills() -> int:
    """Processes that this machine's kernel has killed for memory."""
    with suppress(OSError), open("/proc/vmstat", "rb") as file:
        for line in file:
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
    return 0
