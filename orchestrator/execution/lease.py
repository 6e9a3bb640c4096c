"""What ties an attempt to those who want its result: a lifeline, an owner, and perhaps a lease.

A lease is for an orchestrator on another machine, which may freeze, lose its network, or see this
machine freeze. It is renewed with a time of this machine's own clock: the orchestrator sends back
the time that the last answer from here carried. So a renewal that waited in the queue of a frozen
process extends nothing, and an orchestrator that has had no answer for the length of a lease
knows that the lease has run out.
"""

import os
import select
import struct
import tempfile
import time
from dataclasses import dataclass

from budgets.events import Owner
from orchestrator.execution import processes

_DEADLINE = struct.Struct("dd")  # monotonic time at which it ends; its length, for people


@dataclass(frozen=True)
class LeaseTerms:
    """How soon an orchestrator and a slot that hear nothing of each other give each other up."""

    renew_seconds: float = 10.0
    suspect_seconds: float = 30.0  # without an answer: warn, and start nothing there
    lease_seconds: float = 60.0  # without a renewal: what runs is ended
    margin_seconds: float = 10.0  # beyond lease and grace, until a silent slot is given up


class Lease:
    """A deadline that an executor shares with its supervisors through one inherited descriptor.

    It has run out until it is extended for the first time.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed in `close`
        self._write(0.0)

    @property
    def descriptor(self) -> int:
        return self._file.fileno()

    def extend(self, heard_at: float) -> bool:
        """The orchestrator has heard what was said here at that time. False: that is too old."""
        ends_at = heard_at + self.seconds
        if ends_at > lease_ends(self.descriptor)[0]:
            self._write(ends_at)
        return time.monotonic() <= ends_at

    def close(self) -> None:
        self._file.close()

    def _write(self, ends_at: float) -> None:
        os.pwrite(self.descriptor, _DEADLINE.pack(ends_at, self.seconds), 0)


def lease_ends(descriptor: int) -> tuple[float, float]:
    """When the lease runs out, on the monotonic clock, and how long one lasts."""
    ends_at, seconds = _DEADLINE.unpack(os.pread(descriptor, _DEADLINE.size, 0))
    return ends_at, seconds


@dataclass(frozen=True)
class Ties:
    """Everything that shows a supervisor whether somebody still wants its attempt's result."""

    owner: Owner
    lifeline: int  # the read end of a pipe whose write end only the executor's process holds
    lease: int | None  # descriptor of a `Lease`

    def broken(self) -> str:
        """Why nobody is left to use the result; empty while somebody may be."""
        if self.lease is not None:
            ends_at, seconds = lease_ends(self.lease)
            if time.monotonic() > ends_at:
                return f"the orchestrator has not renewed its lease for {seconds:g} s"
        hung_up = select.poll()
        hung_up.register(self.lifeline, 0)
        if hung_up.poll(0):
            return "the executor's process is gone"
        if processes.owner_is_gone(self.owner):
            return "the orchestrator's process is gone"
        return ""
