"""How a program ended: its exit status, its last words, and what they say."""

import re
import signal
from dataclasses import dataclass

from objectives.api import ObjectiveError, OutOfMemoryError

OUT_OF_MEMORY = re.compile(
    r"(?:CUDA|HIP|MPS|XPU)[ \w:]{0,40} out of memory|OutOfMemoryError|^MemoryError\b"
    r"|std::bad_alloc|(?:CUBLAS|CUDNN)_STATUS_ALLOC_FAILED|CUDA_ERROR_OUT_OF_MEMORY"
    r"|\bRESOURCE_EXHAUSTED\b|\b[Cc]annot allocate memory\b"
    r"|DefaultCPUAllocator: (?:can't allocate|not enough) memory"
)
"""As torch, JAX, CUDA, C++, Python and the system say it."""


_SAYS_LITTLE = re.compile(r"\W*(?:Pass --helpshort or --helpfull .*)?")
"""A frame's edge, as rich draws it, and absl's advice: what is wrong stands before them."""


class ProgramFailedError(ObjectiveError):
    """The program ended otherwise than with 0."""


@dataclass(frozen=True)
class Ended:
    """How it ended."""

    code: int  # its exit status, or minus the signal that killed it
    tail: tuple[str, ...]  # its last lines, of both streams
    short_of_memory: str = ""  # the last line of all that says so

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
        if self.short_of_memory:
            raise OutOfMemoryError(f"{how}: {self.short_of_memory}")
        raise ProgramFailedError(how + (self.last_line and f": {self.last_line}"))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return ""
