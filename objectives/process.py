"""A program: its environment, its output line by line, its signs of life, its end."""

import codecs
import ctypes
import fcntl
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import TextIO

import psutil

from objectives.api import CommandLine, Context, OutOfMemoryError, ProgramFailedError, SetupError
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
    output = _Output(started, listener, heartbeat)
    try:
        output.listen()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()
        output.close()
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


def last_word(tail: Sequence[str]) -> str:
    """Return the last line with a word in it, without the frame that rich draws around errors."""
    lines = (line for line in reversed(tail) if re.search(r"\w", line))
    return next((line.strip(" \t\r\n│") for line in lines), "")


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


class _Stream:
    """One of the program's streams: copied to ours and cut into lines."""

    def __init__(self, descriptor: int, ours: TextIO) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor, self._ours, self._rest = descriptor, ours, ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read(self) -> tuple[int, list[str]]:
        """Return how many bytes were there, and the lines that end in them; 0 at the end."""
        with suppress(BlockingIOError):
            data = os.read(self._descriptor, READ_BYTES)
            self._ours.flush()
            self._ours.buffer.write(data)  # bytes: our own encoding may lack a character
            self._ours.buffer.flush()
            return len(data), self._lines(self._decoder.decode(data))
        return 0, []

    def rest(self) -> list[str]:
        """Return all that is left when the program is over, however much another process adds."""
        left, lines = fcntl.fcntl(self._descriptor, fcntl.F_GETPIPE_SZ), list[str]()
        while left > 0 and (found := self.read())[0]:
            left -= found[0]
            lines += found[1]
        return lines + self._lines(self._decoder.decode(b"", final=True) + "\n")

    def _lines(self, text: str) -> list[str]:
        *whole, rest = re.split(r"[\r\n]+", self._rest + text)
        self._rest = rest[:LONGEST_LINE]
        return list(filter(None, (_CONTROL.sub("", line[:LONGEST_LINE]) for line in whole)))


class _Output:
    """The program's two streams, read until it ends."""

    def __init__(
        self, started: subprocess.Popen[bytes], listener: Listener, heartbeat: Heartbeat
    ) -> None:
        assert started.stdout is not None
        assert started.stderr is not None
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self.out_of_memory = ""  # the last line, of all, that says so
        self._pipes = (started.stdout, started.stderr)
        self._started, self._listener, self._heartbeat = started, listener, heartbeat
        self._metrics: dict[str, float] = {}
        self._beat_at = self._checked_at = time.monotonic()
        self._is_alive, self._cpu_seconds = False, 0.0

    def listen(self) -> None:
        """Read until the program ends, though a process that it left may hold its streams open."""
        ours = zip(self._pipes, (sys.stdout, sys.stderr), strict=True)
        streams = {pipe.fileno(): _Stream(pipe.fileno(), text) for pipe, text in ours}
        end = os.pidfd_open(self._started.pid)
        try:
            with selectors.DefaultSelector() as selector:
                for descriptor in (*streams, end):
                    selector.register(descriptor, selectors.EVENT_READ)
                while self._started.poll() is None:
                    for key, _ in selector.select(BEAT_SECONDS):
                        if key.fd != end and not self._handle(*streams[key.fd].read()):
                            selector.unregister(key.fd)
                    self._beat()
        finally:
            os.close(end)
        for stream in streams.values():
            self._handle(0, stream.rest())
        if self._metrics:
            self._heartbeat(self._metrics)

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()

    def _handle(self, size: int, lines: list[str]) -> bool:
        """Keep what the lines say; return whether there was anything to read."""
        for line in lines:
            self.tail.append(line)
            if OUT_OF_MEMORY.search(line):
                self.out_of_memory = line.strip()
            self._metrics.update(self._listener(line))
        self._is_alive |= size > 0
        return size > 0

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
    """Return the CPU time of a process and its living descendants."""
    total = 0.0
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
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
