"""Who caused a failure: the configuration, the machine, or the setup, which a person must repair.

Decided by what was observed (a loss, a signal, an exit without an exception) and by the types of
exceptions. A message alone never blames the infrastructure, except for what a device's own driver
reports in an exception of torch or CUDA. What the machine may have caused is retried once.
"""

import re
from typing import Literal, NamedTuple

from budgets.events import Status


class Cause(NamedTuple):
    """Who caused a failure, and its kind in words."""

    whose: Literal["configuration", "infrastructure", "ambiguous", "setup"]
    what: str
    device_failed: bool = False  # the device or its driver: nothing more should run there


_SETUP = Cause("setup", "nothing can be evaluated")
_DISK_FULL = Cause("infrastructure", "the run's disk was full")
_DEVICE = Cause("infrastructure", "the device or its driver failed", device_failed=True)
_LOST_AGAIN = Cause("configuration", "lost each time that it was tried")
_EXCEPTION = Cause("configuration", "an exception")

_SETUP_ERROR = r"^setuperror\b"
_USED_BY_OTHERS = r"the kernel ran out of memory|process \d+ has [\d.]+ [kmgt]ib memory in use"
_LAST_WORDS = (  # of a program
    r"^exited with status (\d+: [\w.]*(error|exception|exit)\b|2: .*\b(error|option)\b)"
)
_DRIVER = (  # reports a device that is gone or unusable
    r"(?s)^(?=(exited with status \d+: )?(\[rank\d+\]: )?"
    r"((torch|cupy\w*|pycuda|pynvml|numba\.cuda|jaxlib)\.|AcceleratorError|RuntimeError: "
    r"(CUDA|HIP|No CUDA GPUs|Found no NVIDIA|The NVIDIA|Unexpected error from cuda|Triton))).*"
    r"(uncorrectable|\becc error|\bxid\b|fallen off the bus|(gpu|device) (is |was )?lost"
    r"|no cuda-capable device|unavailable|no nvidia driver|driver/library|driver version"
    r"|driver initialization|unsupported display driver|not yet initialized|\bmps (server|client))"
)
_OF_THE_MACHINE = (  # a fault on the device, a connection or the storage
    r"illegal memory access|unspecified launch failure|misaligned address|cuda error: unknown error"
    r"|hardware stack error|launch timed out|\bnccl|cu(blas|dnn|solver)_status_(not_init|exec|int)"
    r"|^(exited with status \d+: )?[\w.]*(connection\w*error|brokenpipe|timeouterror|gaierror)"
    r"|connection (refused|reset|aborted|timed out)|network is unreachable|failure in name resol"
    r"|input/output error|no space left|quota exceeded|stale (nfs )?file|too many open files"
)

_CAUSES: tuple[tuple[Status, str, Cause], ...] = (
    (Status.NAN, "", Cause("configuration", "no score that can be compared")),
    (Status.OOM, _USED_BY_OTHERS, Cause("ambiguous", "out of memory that others use too")),
    (Status.OOM, "", Cause("configuration", "out of memory")),
    (Status.TIMEOUT, "", Cause("configuration", "over its time limit, or stalled")),
    (Status.CANCELLED, "", Cause("infrastructure", "cancelled")),
    (Status.LOST, _SETUP_ERROR, _SETUP),
    (Status.LOST, _DRIVER, _DEVICE),
    (Status.LOST, "disk is full", _DISK_FULL),
    (Status.LOST, "", Cause("infrastructure", "the worker, its node or the orchestrator died")),
    (Status.ERROR, r"^lost \d+ times: ", _LOST_AGAIN),  # the orchestrator gave it up
    (Status.ERROR, _SETUP_ERROR, _SETUP),
    (Status.ERROR, _DRIVER, _DEVICE),
    (Status.ERROR, _OF_THE_MACHINE, Cause("ambiguous", "perhaps the machine's")),
    (
        Status.ERROR,
        "^killed by signal|^keyboardinterrupt",
        Cause("ambiguous", "killed by a signal"),
    ),
    (Status.ERROR, _LAST_WORDS, _EXCEPTION),
    (Status.ERROR, "^exited with status", Cause("ambiguous", "ended without a message")),
    (Status.ERROR, "", _EXCEPTION),
)
"""Of a status, the first pattern that is found in the text decides."""

_AROUND = re.compile(r"^[\w.]*programfailederror: | at [^:]+:\d+$", re.IGNORECASE)
"""What is put before the end of a program, and the place that raised: neither decides anything."""


def cause_of(status: Status, text: str) -> Cause | None:
    """Who caused an end with that status and text; None where it is `ok`."""
    words = _AROUND.sub("", text)
    rules = ((pattern, cause) for own, pattern, cause in _CAUSES if own is status)
    return next((c for pattern, c in rules if re.search(pattern, words, re.IGNORECASE)), None)


def was_given_up(status: Status, text: str) -> bool:
    """Whether the attempt was settled without a result of its own, which may still come."""
    return status is Status.LOST or cause_of(status, text) is _LOST_AGAIN


def is_unexplained(status: Status, text: str) -> bool:
    """Whether the attempt was lost with its worker or device, which it may have caused itself."""
    return status is Status.LOST and cause_of(status, text) not in (_SETUP, _DISK_FULL)
