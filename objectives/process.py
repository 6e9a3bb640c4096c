"""A program: its environment, its output line by line, its end."""

import codecs
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from io import IncrementalNewlineDecoder
from math import inf
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import TextIO

from objectives.api import Context, OutOfMemoryError, ProgramFailedError, SetupError
from objectives.secrets import HIDDEN, is_secret_name, redacted

_PR_SET_PDEATHSIG = 1

MARK = "ATTEMPT_ID"
"""The variable that marks all processes of an attempt, so that they are found after a crash."""

ALLOWED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM"),
    *("TMPDIR", "TEMP", "TMP", "XDG_*", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV"),
    *("LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "CC", "CXX", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH", "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_*"),
    *("*_NUM_THREADS", "PYTHONUNBUFFERED", "PYTHONHASHSEED", "HF_HOME", "HF_DATASETS_CACHE"),
    *("HF_HUB_OFFLINE", "TRANSFORMERS_CACHE", "TORCH_HOME", "TRITON_CACHE_DIR", MARK),
)
"""Names (`*`: any rest) that hold no secret, and tell no program that it is one of many."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

ONE_PROCESS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""With these a training believes to be one process of many, and waits for the others."""

PROGRAM = "program.json"
"""In an evaluation's directory: what was started, without secrets."""

TAIL_LINES = 30
LONGEST_LINE = 8192  # characters of a line that are read
READ_BYTES = 1 << 16
BEAT_SECONDS = 1.0  # between two heartbeats, at least
DRAIN_SECONDS = 10.0  # for what is left in the streams when the program is over
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class CommandLine:
    """A program as it is started, without a shell."""

    argv: tuple[str, ...]
    directory: Path  # where it is started
    environment: Mapping[str, str]  # the whole of it


Heartbeat = Callable[[Mapping[str, float]], None]
Listener = Callable[[str], Mapping[str, float]]
"""Gets each line of stdout and stderr; returns metrics, or raises to end the program."""

_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
"""Colours, cursor moves and window titles of a terminal."""

OUT_OF_MEMORY = re.compile(
    r"(?:CUDA|HIP|MPS|XPU)[ \w:]{0,40} out of memory|OutOfMemoryError|^MemoryError\b"
    r"|std::bad_alloc|(?:CUBLAS|CUDNN)_STATUS_ALLOC_FAILED|CUDA_ERROR_OUT_OF_MEMORY"
    r"|\bRESOURCE_EXHAUSTED\b|\b[Cc]annot allocate memory\b"
    r"|DefaultCPUAllocator: (?:can't allocate|not enough) memory"
)
"""As torch, JAX, CUDA, C++, Python and the system say it."""

_OVER = os.WEXITED | os.WNOWAIT  # not reaped: its pid stays its own
_SIGNALS = {one.value: one.name for one in signal.Signals}
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)  # the second as a shell reports it


def check_variables(variables: Mapping[str, str]) -> None:
    """Raises ValueError on a variable that looks like a secret, without repeating its value."""
    for name, value in variables.items():
        is_count = value.isdigit() and len(value) < 6  # of tokens, say
        if is_secret_name(name) and value and "{" not in value and not is_count:
            raise ValueError(
                f"environment.{name} looks like a secret, and settings are written to the ledger: "
                f'set {name} where you start the search, and say pass_environment = ["{name}"]'
            )


def program_environment(
    context: Context, also: Collection[str], variables: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of an evaluation's program, with its device and threads.

    It has what is allowed of our environment, the names in `also`, and the `variables`.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in also or any(fnmatchcase(name, pattern) for pattern in ALLOWED)
    }
    kept |= {"PYTHONUNBUFFERED": "1", **dict.fromkeys(THREADS, str(context.threads)), **variables}
    if context.device == "cpu":
        kept["CUDA_VISIBLE_DEVICES"] = ""
    if context.attempt_id:
        kept[MARK] = context.attempt_id
    return dict(sorted(kept.items()))


def record(line: CommandLine, directory: Path) -> None:
    """Write `program.json`: what is started, without secrets."""
    document = {
        "argv": [redacted(argument, os.environ) for argument in line.argv],
        "directory": str(line.directory),
        "environment": {
            name: HIDDEN if is_secret_name(name) else redacted(value, os.environ)
            for name, value in line.environment.items()
        },
    }
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(directory / PROGRAM, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=2) + "\n")


def run(line: CommandLine, listener: Listener, heartbeat: Heartbeat) -> tuple[str, ...]:
    """Run the program to its end, and return the last lines of both its streams.

    Its output goes to our own, and each line to `listener`, whose numbers are passed on as
    heartbeats, one a second at most and with the next line. When this returns or raises, the
    program's process group is dead. Raises SetupError if it cannot be started, and OutOfMemoryError
    or ProgramFailedError if it fails.
    """
    killed_before, tail = oom_kills(), deque[str](maxlen=TAIL_LINES)
    out_of_memory, metrics, beat_at = "", dict[str, float](), time.monotonic()
    with ExitStack() as cleanup:
        program = _start(line)
        cleanup.callback(program.wait)
        cleanup.callback(_kill_group, program.pid)
        for text in _lines(program):
            tail.append(text)
            if OUT_OF_MEMORY.search(text):
                out_of_memory = text.strip()
            metrics.update(listener(text))
            if metrics and time.monotonic() - beat_at >= BEAT_SECONDS:
                heartbeat(metrics)
                metrics, beat_at = {}, time.monotonic()
    if metrics:
        heartbeat(metrics)
    code, reason = program.returncode, last_word(tail)
    if code == 0:  # a program may run out of memory, try with less and succeed
        return tuple(tail)
    how = how_it_ended(code)
    if code in _KILLED and oom_kills() > killed_before:
        raise OutOfMemoryError(f"{how}: the kernel ran out of memory")
    if out_of_memory:
        raise OutOfMemoryError(f"{how}: {out_of_memory}")
    raise ProgramFailedError(f"{how}: {reason}" if reason else how)


def how_it_ended(code: int) -> str:
    """Return the words for a program's exit code, which is negative after a signal."""
    if code < 0:
        return f"killed by signal {-code} {_SIGNALS.get(-code, '')}".rstrip()
    return f"exited with status {code}"


def last_word(tail: Iterable[str]) -> str:
    """Return the last line with a word in it, without the frame that rich draws around errors."""
    words = (line.strip(" \t\r\n│") for line in tail if re.search(r"\w", line))
    return "".join(deque(words, maxlen=1))


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _start(line: CommandLine) -> subprocess.Popen[bytes]:
    libc()
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
            preexec_fn=partial(die_with_parent, os.getpid()),  # noqa: PLW1509
        )
    except (OSError, ValueError) as error:  # ValueError: a NUL, which no argument can have
        reason = getattr(error, "strerror", None) or error
        raise SetupError(f"cannot start {line.argv[0]!r} in {line.directory}: {reason}") from error


def _lines(program: subprocess.Popen[bytes]) -> Iterator[str]:
    """Yield the lines of both streams as they come, and copy the streams to ours, byte for byte.

    A process that the program left behind may hold the streams open: once the program is over, they
    end with their first silence, and after DRAIN_SECONDS at the latest.
    """
    assert program.stdout is not None
    assert program.stderr is not None
    with program.stdout, program.stderr, DefaultSelector() as ready:
        ready.register(program.stdout, EVENT_READ, _Stream(sys.stdout))
        ready.register(program.stderr, EVENT_READ, _Stream(sys.stderr))
        until = inf
        while ready.get_map() and time.monotonic() < until:
            if until == inf and os.waitid(os.P_PID, program.pid, _OVER | os.WNOHANG):
                _kill_group(program.pid)
                until = time.monotonic() + DRAIN_SECONDS
            found = ready.select(POLL_SECONDS)
            if until < inf and not found:
                break
            for key, _ in found:
                data = os.read(key.fd, READ_BYTES)
                yield from key.data.lines(data)
                if not data:
                    ready.unregister(key.fileobj)
        for key in ready.get_map().values():
            yield from key.data.lines(b"")
    os.waitid(os.P_PID, program.pid, _OVER)  # it may go on without streams


class _Stream:
    """One stream of a program: its bytes go to one of ours, and come back as lines."""

    def __init__(self, ours: TextIO) -> None:
        utf_8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._decoder = IncrementalNewlineDecoder(utf_8, translate=True)  # a line ends at \r too
        self._ours, self._rest = ours, ""

    def lines(self, data: bytes) -> Iterator[str]:
        """Yield the lines that end in the data, without control characters; no data: the rest."""
        with suppress(OSError):  # a full disk costs the log, not the evaluation
            self._ours.flush()
            self._ours.buffer.write(data)  # bytes: our own encoding may lack a character
            self._ours.buffer.flush()
        *lines, rest = (self._rest + self._decoder.decode(data, final=not data)).split("\n")
        self._rest = rest[:LONGEST_LINE]
        for line in lines if data else (*lines, rest):
            if text := _CONTROL.sub("", line[:LONGEST_LINE]):
                yield text


def die_with_parent(parent: int) -> None:
    """Ask for SIGKILL when the parent dies; exit at once if it is dead already."""
    libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


@cache
def libc() -> ctypes.CDLL:
    """Return the C library. Call it before a fork whose child needs it."""
    return ctypes.CDLL(None, use_errno=True)


def oom_kills() -> int:
    """Return how many processes the kernel has killed for lack of memory on this machine."""
    with suppress(OSError), open("/proc/vmstat", "rb") as file:
        for line in file:
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
    return 0
