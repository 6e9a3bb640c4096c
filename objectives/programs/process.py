"""A program started, listened to, and gone when we are done with it."""

import codecs
import fcntl
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
from functools import partial
from typing import TextIO

import psutil

from objectives.api import CommandLine, OutOfMemoryError, ProgramFailedError, SetupError
from objectives.programs import kernel

TAIL_LINES = 30
LONGEST_LINE = 8192
"""Characters of a line that are looked at; a program may write more without an end to it."""

READ_BYTES = 1 << 16
PIPE_BYTES = 1 << 20
"""What a pipe may hold where the system does not say."""

_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
"""What colours a terminal, moves its cursor or names its window: no part of what is said."""

BEAT_SECONDS = 1.0
CHECK_SECONDS = 5.0
"""How often a silent program is asked for its CPU time."""

LEAST_CPU_SHARE = 0.01
"""Of the time between two checks: what waits for ever uses less."""

Listener = Callable[[str], Mapping[str, float] | None]
"""Hears each line, of stdout and stderr alike; may answer with metrics, or raise to end it all."""

OUT_OF_MEMORY = re.compile(
    r"(?:CUDA|HIP|MPS|XPU)[ \w:]{0,40} out of memory|OutOfMemoryError|^MemoryError\b"
    r"|std::bad_alloc|(?:CUBLAS|CUDNN)_STATUS_ALLOC_FAILED|CUDA_ERROR_OUT_OF_MEMORY"
    r"|\bRESOURCE_EXHAUSTED\b|\b[Cc]annot allocate memory\b"
    r"|DefaultCPUAllocator: (?:can't allocate|not enough) memory"
)
"""As torch, JAX, CUDA, C++, Python and the system say it."""


_SAYS_LITTLE = re.compile(r"\W*(?:Pass --helpshort or --helpfull .*)?")
"""A frame's edge, as rich draws it, and absl's advice: what is wrong stands before them."""

_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
"""By the signal, or a shell says so of what it started."""


@dataclass(frozen=True)
class Exit:
    """How a program ended."""

    code: int  # its exit status, or minus the signal that killed it
    tail: tuple[str, ...]  # its last lines, of both streams
    out_of_memory: str = ""  # the last line of all that says so

    @property
    def last_line(self) -> str:
        """The last line that says something."""
        said = (line for line in reversed(self.tail) if not _SAYS_LITTLE.fullmatch(line))
        return next((line.strip(" \t\r\n│") for line in said), "")

    def require_success(self) -> None:
        """Raises OutOfMemoryError or ProgramFailedError unless it exited with 0.

        A program may run out of memory, try with less and succeed: what it says of its memory
        counts only where it fails.
        """
        if self.code == 0:
            return
        if self.code > 0:
            how = f"exited with status {self.code}"
        else:
            how = f"killed by signal {-self.code} {_signal_name(-self.code)}".rstrip()
        if self.out_of_memory:
            raise OutOfMemoryError(f"{how}: {self.out_of_memory}")
        raise ProgramFailedError(how + (self.last_line and f": {self.last_line}"))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return ""


def run(
    line: CommandLine, listener: Listener, heartbeat: Callable[[Mapping[str, float]], None]
) -> Exit:
    """Run the program to its end. Its output goes to our own, and each line to `listener`.

    Output or CPU time is its sign of life, passed on as a heartbeat. Nothing of its process group
    is alive when this returns or raises. Raises SetupError if it cannot be started, and
    OutOfMemoryError if the kernel killed it for memory.
    """
    if not line.directory.is_dir():
        raise SetupError(f"cannot start {line.argv[0]!r}: there is no directory {line.directory}")
    killed_before = kernel.oom_kills()
    started = _start(line)
    try:
        exit_ = _Conversation(started, listener, heartbeat).listen()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()
        for pipe in (started.stdout, started.stderr):
            assert pipe is not None
            pipe.close()
    if exit_.code in _KILLED and kernel.oom_kills() > killed_before:
        raise OutOfMemoryError("killed by signal 9 SIGKILL: the kernel ran out of memory")
    return exit_


def _start(line: CommandLine) -> subprocess.Popen[bytes]:
    kernel.libc()
    try:
        return subprocess.Popen(
            line.argv,
            cwd=line.directory,
            env=dict(line.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
            # Also when we are killed. It takes no lock that another thread of ours could hold.
            preexec_fn=partial(kernel.die_with_parent, os.getpid()),  # noqa: PLW1509
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
        self._pass_on(data)
        text = self._decoder.decode(data, final=not data)
        *whole, rest = re.split(r"[\r\n]+", self._rest + text)
        self._rest = rest[:LONGEST_LINE]
        if not data and rest:
            whole.append(rest)
        said = (_CONTROL.sub("", one[:LONGEST_LINE]) for one in whole)
        return [one for one in said if one]

    def _pass_on(self, data: bytes) -> None:
        """Byte for byte: our own encoding may not have what the program writes."""
        self.ours.flush()
        self.ours.buffer.write(data)
        self.ours.buffer.flush()


class _Conversation:
    """The program's two streams, listened to until it ends."""

    def __init__(
        self,
        started: subprocess.Popen[bytes],
        listener: Listener,
        heartbeat: Callable[[Mapping[str, float]], None],
    ) -> None:
        self._started, self._listener, self._heartbeat = started, listener, heartbeat
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._metrics: dict[str, float] = {}
        self._beat_at = self._checked_at = time.monotonic()
        self._is_alive = False
        self._cpu_seconds = 0.0
        self._out_of_memory = ""

    def listen(self) -> Exit:
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
        if self._metrics:
            self._heartbeat(self._metrics)
        return Exit(self._started.returncode, tuple(self._tail), self._out_of_memory)

    def _until_it_ends(
        self, selector: selectors.BaseSelector, streams: Mapping[int, _Stream]
    ) -> None:
        """A process that it left behind may hold the streams open: its own end is the end."""
        pause = BEAT_SECONDS if len(selector.get_map()) > len(streams) else BEAT_SECONDS / 20
        while self._started.poll() is None:
            for key, _ in selector.select(pause):
                if key.fd in streams and self._drain(key.fd, streams[key.fd]) == 0:
                    selector.unregister(key.fd)
            self._beat()
        for descriptor, stream in streams.items():
            self._finish(descriptor, stream)

    def _drain(self, descriptor: int, stream: _Stream) -> int | None:
        """Hear what is there to be read, so many bytes. 0: there never will be more. None: now."""
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return None
        if data:
            self._is_alive = True
            self._handle(stream.lines(data))
        return len(data)

    def _finish(self, descriptor: int, stream: _Stream) -> None:
        """Hear what the pipe holds: all that it wrote itself, however much another one adds."""
        left = _capacity(descriptor)
        while left > 0 and (taken := self._drain(descriptor, stream)):
            left -= taken
        self._handle(stream.lines(b""))

    def _handle(self, lines: list[str]) -> None:
        for line in lines:
            self._tail.append(line)
            if OUT_OF_MEMORY.search(line):
                self._out_of_memory = line.strip()
            self._metrics.update(self._listener(line) or {})

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._beat_at < BEAT_SECONDS:
            return
        passed = now - self._checked_at
        if not self._is_alive and passed >= CHECK_SECONDS:
            used = cpu_seconds(self._started.pid)
            self._is_alive = used - self._cpu_seconds >= LEAST_CPU_SHARE * passed
            self._checked_at, self._cpu_seconds = now, used
        if self._is_alive:
            self._heartbeat(self._metrics)
            self._metrics, self._is_alive, self._beat_at = {}, False, now


def _end_of(pid: int) -> tuple[int, ...]:
    """A descriptor that can be read when the process has ended, where there is such a thing."""
    return (os.pidfd_open(pid),) if hasattr(os, "pidfd_open") else ()


def _capacity(descriptor: int) -> int:
    """The most bytes that a pipe holds."""
    get_size = getattr(fcntl, "F_GETPIPE_SZ", None)  # Linux alone has it
    return PIPE_BYTES if get_size is None else fcntl.fcntl(descriptor, get_size)


def cpu_seconds(pid: int, *, itself: bool = True) -> float:
    """Of all that a process started and that still lives, and of the process itself."""
    total = 0.0
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in (*([root] if itself else []), *root.children(recursive=True)):
            with suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
    return total
