"""A program: its environment, its output line by line, its signs of life, its end."""

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
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache, partial
from io import IncrementalNewlineDecoder
from math import inf
from pathlib import Path
from select import select
from threading import Lock, Thread
from typing import IO, TextIO

import psutil

from objectives.api import (
    CommandLine,
    Context,
    ObjectiveError,
    OutOfMemoryError,
    ProgramFailedError,
    SetupError,
)
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

PACKAGES = ("python", "torch", "numpy", "jax")
"""What of a program's interpreter is recorded."""

PYTHON_SECONDS = 60.0

_VERSIONS = """
import json, platform
from importlib.metadata import distributions
found = {one.metadata["Name"]: one.version for one in reversed([*distributions()])}
print(json.dumps({"python": platform.python_version(), **found}))
"""

TAIL_LINES = 30
LONGEST_LINE = 8192  # characters of a line that are read
READ_BYTES = 1 << 16
BEAT_SECONDS = 1.0
DRAIN_SECONDS = 10.0  # for what is left in the streams when the program is over
POLL_SECONDS = 0.1
CHECK_SECONDS = 5.0  # between two looks at the CPU time of a silent program
LEAST_CPU_SHARE = 0.01  # of the time between two looks: a program that only waits uses less

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
    """Return the environment of an evaluation's program: `cleaned`, with its device and threads."""
    own = {**dict.fromkeys(THREADS, str(context.threads)), **variables}
    if context.device == "cpu":
        own["CUDA_VISIBLE_DEVICES"] = ""
    if context.attempt_id:
        own[MARK] = context.attempt_id
    return cleaned(also, own)


def cleaned(also: Collection[str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return what is allowed of our environment, the names in `also`, and the `variables`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in also or any(fnmatchcase(name, pattern) for pattern in ALLOWED)
    }
    return dict(sorted((kept | {"PYTHONUNBUFFERED": "1"} | dict(variables)).items()))


def shown(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without its secrets."""
    return {
        name: HIDDEN if is_secret_name(name) else redacted(value, os.environ)
        for name, value in environment.items()
    }


def record(line: CommandLine | None, context: Context, facts: Mapping[str, str | int]) -> None:
    """Write `program.json`: the command (None: a function of this process) and the facts."""
    document: dict[str, object] = {"environment": shown(cleaned((), {}))}
    if line is not None:
        document = {
            "argv": [redacted(argument, os.environ) for argument in line.argv],
            "directory": str(line.directory),
            "environment": shown(line.environment),
        }
    path = context.directory / PROGRAM
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(json.dumps(document | dict(facts), indent=2) + "\n")


def run(line: CommandLine, listener: Listener, heartbeat: Heartbeat) -> tuple[str, ...]:
    """Run the program to its end, and return the last lines of both its streams.

    Its output goes to our own, and each line to `listener`. Output or CPU time is passed on as a
    heartbeat. When this returns or raises, the program's process group is dead. Raises SetupError
    if it cannot be started, and OutOfMemoryError or ProgramFailedError if it fails.
    """
    killed_before = oom_kills()
    started = _start(line)
    output = _Output(started.pid, listener)
    pipes = ((started.stdout, sys.stdout), (started.stderr, sys.stderr))
    readers = [Thread(target=output.read, args=pair, daemon=True) for pair in pipes]
    end = os.pidfd_open(started.pid)
    try:
        for reader in readers:
            reader.start()
        while not select([end], [], [], BEAT_SECONDS)[0]:
            output.beat(heartbeat)
    finally:
        output.kill()
        output.until = time.monotonic() + DRAIN_SECONDS
        for reader in readers:
            reader.join(DRAIN_SECONDS + 1)
        os.close(end)
        started.wait()
    if output.failure is not None:
        raise output.failure
    output.beat(heartbeat)
    code, reason = started.returncode, last_word(output.tail)
    if code == 0:  # a program may run out of memory, try with less and succeed
        return tuple(output.tail)
    how = f"exited with status {code}"
    if code < 0:
        how = f"killed by signal {-code} {_SIGNALS.get(-code, '')}".rstrip()
    if code in _KILLED and oom_kills() > killed_before:
        raise OutOfMemoryError(f"{how}: the kernel ran out of memory")
    if output.out_of_memory:
        raise OutOfMemoryError(f"{how}: {output.out_of_memory}")
    raise ProgramFailedError(f"{how}: {reason}" if reason else how)


def last_word(tail: Iterable[str]) -> str:
    """Return the last line with a word in it, without the frame that rich draws around errors."""
    words = (line.strip(" \t\r\n│") for line in tail if re.search(r"\w", line))
    return "".join(deque(words, maxlen=1))


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


class _Output:
    """What is heard of a program: two threads read its streams, a third passes heartbeats on."""

    def __init__(self, pid: int, listener: Listener) -> None:
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self.out_of_memory = ""  # the last line, of all, that says so
        self.failure: ObjectiveError | None = None  # what the listener raised
        self.until = inf  # when reading ends at the latest; set when the program is over
        self._pid, self._listener, self._lock = pid, listener, Lock()
        self._metrics: dict[str, float] = {}
        self._has_output, self._cpu_seconds, self._checked_at = False, 0.0, time.monotonic()

    def kill(self) -> None:
        """Kill the program's process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)

    def read(self, pipe: IO[bytes], ours: TextIO) -> None:
        """Copy a stream to ours, byte for byte, and hear each line of it.

        A process that the program left behind may hold the stream open: once the program is over,
        silence ends it too.
        """
        utf_8 = codecs.getincrementaldecoder("utf-8")("replace")
        decoder, rest = IncrementalNewlineDecoder(utf_8, translate=True), ""  # ends at \r too
        with pipe:
            while time.monotonic() < (until := self.until):
                if not select([pipe], [], [], POLL_SECONDS)[0]:
                    if until < inf:  # it was over before this look
                        break
                    continue
                if not (data := os.read(pipe.fileno(), READ_BYTES)):
                    break
                with suppress(OSError):  # a full disk costs the log, not the evaluation
                    ours.flush()
                    ours.buffer.write(data)  # bytes: our own encoding may lack a character
                    ours.buffer.flush()
                *lines, rest = (rest + decoder.decode(data)).split("\n")
                rest = rest[:LONGEST_LINE]
                self._hear(lines)
        self._hear((rest + decoder.decode(b"", final=True)).split("\n"))

    def _hear(self, lines: Iterable[str]) -> None:
        with self._lock:
            self._has_output = True
            for line in filter(None, (_CONTROL.sub("", one[:LONGEST_LINE]) for one in lines)):
                if self.failure is not None:
                    return
                self.tail.append(line)
                if OUT_OF_MEMORY.search(line):
                    self.out_of_memory = line.strip()
                try:
                    self._metrics.update(self._listener(line))
                except ObjectiveError as error:
                    self.failure = error
                    self.kill()

    def beat(self, heartbeat: Heartbeat) -> None:
        """Pass on what was heard since the last one, or that the program uses CPU time."""
        with self._lock:
            metrics, self._metrics = self._metrics, {}
            is_alive, self._has_output = self._has_output, False
        passed = time.monotonic() - self._checked_at
        if not is_alive and passed >= CHECK_SECONDS:
            used = cpu_seconds(self._pid)
            is_alive = used - self._cpu_seconds >= LEAST_CPU_SHARE * passed
            self._checked_at, self._cpu_seconds = self._checked_at + passed, used
        if is_alive:
            heartbeat(metrics)


@cache
def python_versions(python: str, setting: str) -> dict[str, str]:
    """Return `program_python`, and `program_NAME` of `PACKAGES` that the interpreter has.

    Raises SetupError, naming the setting, if that is not a Python interpreter.
    """
    program = str(Path(python).absolute()) if "/" in python else python
    try:
        answer = subprocess.run(
            (program, "-c", _VERSIONS),
            cwd="/",  # where no file of the user's passes for a module of the standard library
            env=cleaned((), {}),
            capture_output=True,
            check=True,
            text=True,
            timeout=PYTHON_SECONDS,
        ).stdout
        found = json.loads(answer)
        return {f"program_{name}": found[name] for name in PACKAGES if name in found}
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reason = getattr(error, "strerror", None) or f"{error}".partition("\n")[0]
        raise SetupError(
            f"expected a Python interpreter, got {python!r}: {reason}. Name another one with the "
            f"setting {setting}"
        ) from error


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its descendants, those that have ended included."""
    total = 0.0
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                total += sum(process.cpu_times()[:4])  # its own and that of ended children
    return total


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
