"""Who caused a failure, by its status and its text: the configuration, the machine or the setup.

Only exceptions that torch or CUDA raise blame a device: other programs may speak of devices too.
An ambiguous failure is retried once. Where nothing can be evaluated at all, the setup
must be repaired. The texts are those of supervisors, Python, torch and `cudaGetErrorString`.
"""

import re
from dataclasses import dataclass
from typing import Literal

from budgets.events import Status

Whose = Literal["configuration", "infrastructure", "ambiguous", "setup"]


@dataclass(frozen=True, slots=True)
class Cause:
    """Who caused a failure, and its kind in words."""

    whose: Whose
    what: str
    device_failed: bool = False  # the device or its driver: nothing more should run there


_SETUP = Cause("setup", "nothing can be evaluated")
_DEVICE = Cause("infrastructure", "the device or its driver failed", device_failed=True)
_DISK_FULL = Cause("infrastructure", "the run's disk was full")
_LOST_AGAIN = Cause("configuration", "lost each time that it was tried")
_NETWORK = Cause("ambiguous", "a connection failed")
_NO_CONNECTION = r"[\w.]*(connection\w*error|brokenpipeerror|timeouterror|gaierror)\b"

_DEVICE_TEXT = (
    r"uncorrectable (ecc|nvlink)|\becc error|\bxid\b|fallen off the bus"
    r"|(gpu|device) (is |was |has been )?lost|no cuda-capable device"
    r"|device\(s\) is/are busy or unavailable|device (is )?unavailable"
    r"|no nvidia driver|driver/library version|driver version is insufficient"
    r"|driver initialization failed|unsupported display driver|driver shutting down"
    r"|system not yet initialized|\bmps (server|client)"
)
_RAISED_BY_A_DEVICE = (
    r"(exited with status \d+: )?(\[rank\d+\]: )?"
    r"((torch|cupy\w*|pycuda|pynvml|numba\.cuda|jaxlib)\.[\w.]+|AcceleratorError"
    r"|RuntimeError: ((CUDA|HIP) (unknown )?error|CUDA driver|No CUDA GPUs|Found no NVIDIA driver"
    r"|The NVIDIA driver|Unexpected error from cuda|Triton Error \[CUDA\])):?"
)
_DEVICE_FAULT = (
    "illegal memory access|unspecified launch failure|misaligned address|illegal instruction was"
    r"|invalid program counter|hardware stack error|launch timed out|cuda error: unknown error"
    r"|\bnccl|cu(blas|dnn|solver)_status_(not_init|execution_f|internal_e|mapping_e)"
)
_STORAGE = (
    "input/output error|no space left|quota exceeded|stale (nfs )?file handle|remote i/o"
    "|read-only file system|transport endpoint|too many open files"
)

_RULES: dict[Status, tuple[tuple[str, Cause], ...]] = {
    Status.NAN: (("", Cause("configuration", "no score that can be compared")),),
    Status.OOM: (
        (
            r"the kernel ran out of memory|process \d+ has [\d.]+ [kmgt]ib memory in use",
            Cause("ambiguous", "out of memory that others use too"),
        ),
        ("", Cause("configuration", "out of memory")),
    ),
    Status.TIMEOUT: (
        ("^stalled", Cause("configuration", "stalled")),
        ("", Cause("configuration", "over its time limit")),
    ),
    Status.CANCELLED: (("", Cause("infrastructure", "cancelled")),),
    Status.LOST: (
        (r"^setuperror\b", _SETUP),
        (_DEVICE_TEXT, _DEVICE),
        ("disk is full", _DISK_FULL),
        ("", Cause("infrastructure", "the worker, its node or the orchestrator died")),
    ),
    Status.ERROR: (
        (r"^lost \d+ times: ", _LOST_AGAIN),  # the orchestrator's words for giving it up
        (r"^setuperror\b", _SETUP),
        (f"(?s)^(?={_RAISED_BY_A_DEVICE}).*({_DEVICE_TEXT})", _DEVICE),
        ("device-side assert triggered", Cause("configuration", "an assertion on the device")),
        (_DEVICE_FAULT, Cause("ambiguous", "a fault on the device")),
        (_STORAGE, Cause("ambiguous", "storage failed")),
        (f"^{_NO_CONNECTION}", _NETWORK),
        (
            "connection (refused|reset|aborted|timed out)|network is unreachable|no route to host"
            "|name or service not known|failure in name resolution",
            _NETWORK,
        ),
        ("^killed by signal|^keyboardinterrupt", Cause("ambiguous", "killed by a signal")),
        (
            r"^exited with status (\d+: [\w.]*(error|exception|exit)\b|2: .*\b(error|option)\b)",
            Cause("configuration", "an exception"),
        ),
        ("^exited with status", Cause("ambiguous", "ended without a word")),
        ("^exited with 0|^NoScoreError: ", Cause("configuration", "no result was left")),
        ("", Cause("configuration", "an exception")),
    ),
}
"""The first pattern that is found in the text decides."""

_PROGRAM = re.compile(r"^[\w.]*programfailederror: ", re.IGNORECASE)
"""What an evaluation puts before the end of a program that it started."""

_WHERE = re.compile(r" at [^:]+:\d+$")
"""The file and line that raised: their names decide nothing."""


def cause_of(status: Status, text: str) -> Cause | None:
    """Who caused an end with that status and text; None where it is `ok`."""
    rules, said = _RULES.get(status, ()), _WHERE.sub("", text)
    words = _PROGRAM.sub("", said)
    if words != said:
        rules = ((rf"^exited with status \d+: {_NO_CONNECTION}", _NETWORK), *rules)
    return next((c for pattern, c in rules if re.search(pattern, words, re.IGNORECASE)), None)


def is_setup(status: Status, text: str) -> bool:
    """Whether the attempt found that nothing can be evaluated."""
    return status is Status.LOST and cause_of(status, text) is _SETUP


def was_given_up(status: Status, text: str) -> bool:
    """Whether the attempt was settled without a result of its own, which may still come."""
    return status is Status.LOST or cause_of(status, text) is _LOST_AGAIN


def is_unexplained(status: Status, text: str) -> bool:
    """Whether the attempt was lost with its worker or device, perhaps by its own doing."""
    return status is Status.LOST and cause_of(status, text) not in (_SETUP, _DISK_FULL)
