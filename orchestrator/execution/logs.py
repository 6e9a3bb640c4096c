"""A log file that keeps the beginning and the end of what a process prints."""

import os
from collections import deque
from pathlib import Path

from objectives.secrets import redacted


class CappedLog:
    """Drains one pipe into one file of about `cap_bytes`: the middle is dropped and counted.

    The first half is written as it comes; the last half is kept in memory until `close`.
    """

    def __init__(self, descriptor: int, path: Path, cap_bytes: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor: int | None = descriptor
        self.dropped_bytes = 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._head_room = cap_bytes - cap_bytes // 2
        self._tail_cap = cap_bytes // 2
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._end = b""

    def drain(self, at_most_bytes: int = 1 << 20) -> int:
        """Read what is there without waiting; returns the number of bytes, closes at EOF."""
        taken = 0
        while self.descriptor is not None and taken < at_most_bytes:
            try:
                chunk = os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                break
            if not chunk:
                os.close(self.descriptor)
                self.descriptor = None
            taken += len(chunk)
            self._end = (self._end + chunk)[-4096:]
            self._keep(chunk)
        return taken

    def last_line(self, limit: int = 200) -> str:
        """The last line with something on it, for a person, secrets left out."""
        lines = self._end.decode(errors="replace").splitlines()
        said = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return redacted(said, os.environ)[:limit]

    def _keep(self, chunk: bytes) -> None:
        head, rest = chunk[: self._head_room], chunk[self._head_room :]
        self._head_room -= len(head)
        self._write(head)
        if rest:
            self._tail.append(rest)
            self._tail_bytes += len(rest)
        while self._tail_bytes > self._tail_cap:
            excess = self._tail_bytes - self._tail_cap
            first = self._tail.popleft()
            if len(first) > excess:
                self._tail.appendleft(first[excess:])
            gone = min(excess, len(first))
            self._tail_bytes -= gone
            self.dropped_bytes += gone

    def close(self) -> None:
        """Append the kept end and close the file; whatever is still in the pipe is lost."""
        if self.dropped_bytes:
            self._write(f"\n[... {self.dropped_bytes} bytes dropped ...]\n".encode())
        self._write(b"".join(self._tail))
        os.close(self._file)
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError:  # a full disk costs the log, not the evaluation
            self.dropped_bytes += len(data)
