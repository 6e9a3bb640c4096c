"""Whose a failure is, by its status and its cause in words: the machine's, or its configuration's.

The words are those of supervisors, of Python and torch, and of CUDA (the texts of
`cudaGetErrorString`). Of exceptions only those that torch or CUDA raise acquit a configuration.
What is not decided is ambiguous: it is retried once. Where nothing can be evaluated at
all, it is the doing of neither: somebody has to mend the setup.
"""

import re
from dataclasses import dataclass
from typing import Literal

from budgets.events import Status

Whose = Literal["configuration", "infrastructure", "ambiguous", "setup"]


@dataclass(frozen=True, slots=True)
class Cause:
    """Whose a failure is, and what it was: in the same words for all of a kind."""

    whose: Whose
    what: str
    device_failed: bool = False  # the device itself, or its driver: nothing more should run there


_DEVICE = Cause("infrastructure", "the device failed", device_failed=True)
_DRIVER = Cause("infrastructure", "the device's driver failed", device_failed=True)
_SETUP = Cause("setup", "nothing can be evaluated")
_LOST = Cause("infrastructure", "the worker, its node or the orchestrator died")
_CANCELLED = Cause("infrastructure", "cancelled")
_NO_ROOM = Cause("infrastructure", "the run's disk was full")
_LOST_AGAIN = Cause("configuration", "lost each time that it was tried")
_NAN = Cause("configuration", "no score that can be compared")
_STALLED = Cause("configuration", "stalled")
_SLOW = Cause("configuration", "over its time limit")
_MEMORY = Cause("configuration", "out of memory")
_SHARED_MEMORY = Cause("ambiguous", "out of memory that others use too")
_ASSERTION = Cause("configuration", "an assertion failed on the device")
_RAISED = Cause("configuration", "an exception")
_USAGE = Cause("configuration", "the program does not take these arguments")
_NO_ANSWER = Cause("configuration", "no result was left")
_FAULT = Cause("ambiguous", "a fault on the device")
_NCCL = Cause("ambiguous", "devices could not talk to each other")
_STORAGE = Cause("ambiguous", "storage failed")
_NETWORK = Cause("ambiguous", "a connection failed")
_SIGNAL = Cause("ambiguous", "killed by a signal")
_EXIT = Cause("ambiguous", "ended without a word")

_SAYS_SETUP = (r"^setuperror\b", _SETUP)
"""First of all, whatever else it says: it names what it found missing, a device perhaps."""

_SAYS_USAGE = (
    r"^exited with status \d+: .*(unrecognized arguments|arguments are required|invalid choice"
    r"|error: (ambiguous option|argument )|no such (option|command)|missing (option|argument)"
    r"|invalid value for|requires an argument|unexpected extra argument"
    r"|flags parsing error|unknown command line flag)",
    _USAGE,
)
"""As argparse, click and absl refuse a command line: on every device alike."""

_MACHINE: tuple[tuple[str, Cause], ...] = (
    (r"uncorrectable (ecc|nvlink)|\becc error|\bxid\b|fallen off the bus", _DEVICE),
    (r"(gpu|device) (is |was |has been )?lost|no cuda-capable device", _DEVICE),
    (r"device\(s\) is/are busy or unavailable|device (is )?unavailable", _DEVICE),
    (r"no nvidia driver|driver/library version|driver version is insufficient", _DRIVER),
    (r"driver initialization failed|unsupported display driver|driver shutting down", _DRIVER),
    (r"system not yet initialized|\bmps (server|client)", _DRIVER),
)
_DEVICE_ERROR = (
    r"(exited with status \d+: )?(\[rank\d+\]: )?"
    r"((torch|cupy\w*|pycuda|pynvml|numba\.cuda|jaxlib)\.[\w.]+|AcceleratorError"
    r"|RuntimeError: ((CUDA|HIP) (unknown )?error|CUDA driver|No CUDA GPUs|Found no NVIDIA driver"
    r"|The NVIDIA driver|Unexpected error from cuda|Triton Error \[CUDA\])):?"
)
"""How an exception of torch's or CUDA's begins: from others, words about devices prove nothing."""

_MACHINE_ITSELF = tuple((rf"(?s)^(?={_DEVICE_ERROR}).*({said})", cause) for said, cause in _MACHINE)

_SAYS_LOST_AGAIN = (r"^lost \d+ times: ", _LOST_AGAIN)
"""What the orchestrator says of an evaluation that it gives up."""

_NO_CONNECTION = r"[\w.]*(connection\w*error|brokenpipeerror|timeouterror|gaierror)\b"
_NOT_DECIDED: tuple[tuple[str, Cause], ...] = (
    (r"device-side assert triggered", _ASSERTION),
    (r"illegal memory access|unspecified launch failure|misaligned address", _FAULT),
    (r"illegal instruction was|invalid program counter|hardware stack error", _FAULT),
    (r"launch timed out|cuda error: unknown error", _FAULT),
    (r"cu(blas|dnn|solver)_status_(not_init|execution_f|internal_e|mapping_e)", _FAULT),
    (r"\bnccl", _NCCL),
    (r"input/output error|no space left|quota exceeded|stale (nfs )?file handle", _STORAGE),
    (r"read-only file system|transport endpoint|too many open files|remote i/o", _STORAGE),
    (f"^{_NO_CONNECTION}", _NETWORK),
    (r"connection (refused|reset|aborted|timed out)|network is unreachable", _NETWORK),
    (r"no route to host|name or service not known|failure in name resolution", _NETWORK),
    (r"^killed by signal|^keyboardinterrupt", _SIGNAL),
    _SAYS_USAGE,
    (r"^exited with status \d+: [\w.]*(error|exception|exit)\b", _RAISED),
    (r"^exited with status", _EXIT),
    (r"^exited with 0|^NoScoreError: ", _NO_ANSWER),
)
_OTHERS_USE = r"the kernel ran out of memory|process \d+ has [\d.]+ [kmgt]ib memory in use"

_RULES: dict[Status, tuple[tuple[str, Cause], ...]] = {
    Status.NAN: (("", _NAN),),
    Status.OOM: ((_OTHERS_USE, _SHARED_MEMORY), ("", _MEMORY)),
    Status.TIMEOUT: ((r"^stalled", _STALLED), ("", _SLOW)),
    Status.ERROR: (
        _SAYS_LOST_AGAIN,
        _SAYS_SETUP,
        *_MACHINE_ITSELF,
        *_NOT_DECIDED,
        ("", _RAISED),
    ),
    Status.LOST: (_SAYS_SETUP, *_MACHINE, (r"disk is full", _NO_ROOM), ("", _LOST)),
    Status.CANCELLED: (("", _CANCELLED),),
}
"""The first pattern that is found in the text decides."""


_PROGRAM = re.compile(r"^[\w.]*programfailederror: ", re.IGNORECASE)
"""What an evaluation says of a program that it started, before how that ended."""

_WHERE = re.compile(r" at [^:]+:\d+$")
"""What an evaluation adds of where an exception was raised: a file's name says nothing of it."""

_OF_A_PROGRAM = ((rf"^exited with status \d+: {_NO_CONNECTION}", _NETWORK),)
"""Its last words are an exception's: an evaluation that raised it would be judged so too."""


def cause_of(status: Status, text: str) -> Cause | None:
    """Whose an end with that status and that cause in words is; None of what is `ok`."""
    rules, said = _RULES.get(status, ()), _WHERE.sub("", text)
    words = _PROGRAM.sub("", said)
    if words != said:
        rules = (*_OF_A_PROGRAM, *rules)
    return next((c for pattern, c in rules if re.search(pattern, words, re.IGNORECASE)), None)


def is_lost(status: Status, text: str) -> bool:
    """Whether the infrastructure lost an attempt that was settled so."""
    return status is Status.LOST and not is_setup(status, text)


def was_given_up(status: Status, text: str) -> bool:
    """Whether an attempt was settled without its own word, which may still come."""
    return status is Status.LOST or cause_of(status, text) is _LOST_AGAIN


def is_unexplained(status: Status, text: str) -> bool:
    """Whether an attempt was lost with its worker or device: by its own doing, perhaps."""
    return status is Status.LOST and cause_of(status, text) not in (_SETUP, _NO_ROOM)


def is_setup(status: Status, text: str) -> bool:
    """Whether an attempt that was settled so found that nothing can be evaluated."""
    return status is Status.LOST and bool(re.search(_SAYS_SETUP[0], text, re.IGNORECASE))
