"""Files of this host that are locked by whoever uses them: the kernel frees them when it dies.

A lock is on an open file, which a forked child shares. So that it frees with its process all the
same, a descriptor does not survive exec (O_CLOEXEC) and is closed in a child that is only forked.
"""

import fcntl
import os
import weakref
from contextlib import suppress
from pathlib import Path

from orchestrator.execution.server import EngineError


class Held:
    """Descriptors of locked files, by name. Closed in every child that this process forks."""

    def __init__(self) -> None:
        self._descriptors: dict[str, int] = {}
        forget = weakref.WeakMethod(self._forget)

        def in_child() -> None:
            if (alive := forget()) is not None:
                alive()

        os.register_at_fork(after_in_child=in_child)

    def __len__(self) -> int:
        return len(self._descriptors)

    def __contains__(self, name: str) -> bool:
        return name in self._descriptors

    def take(self, directory: Path, name: str) -> bool:
        """Lock that file, made if it is not there; False where somebody has it.

        Raises EngineError when it cannot be used at all.
        """
        descriptor = locked(directory / name, fcntl.LOCK_EX)
        if descriptor is None:
            return False
        os.utime(descriptor)  # whoever cleans up old files shall see that it is in use
        self._descriptors[name] = descriptor
        return True

    def write(self, name: str, data: bytes) -> None:
        """Into a file that is held, from its beginning, in one call."""
        os.pwrite(self._descriptors[name], data, 0)

    def give_back(self, name: str | None = None) -> None:
        """Unlock a file, any of them without a name: also for a child that shares it."""
        if name is None:
            name, descriptor = self._descriptors.popitem()
        else:
            descriptor = self._descriptors.pop(name)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)

    def _forget(self) -> None:
        """In a forked child: the lock is the parent's, and stays there."""
        for descriptor in self._descriptors.values():
            with suppress(OSError):
                os.close(descriptor)
        self._descriptors = {}


def locked(path: Path, kind: int, *, make: bool = True) -> int | None:
    """A descriptor of the file with that lock (`fcntl.LOCK_EX` or `LOCK_SH`); None if refused.

    None also where it was removed meanwhile, or is not there and shall not be made. Raises
    EngineError when it cannot be opened.
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if make else 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileNotFoundError:
        if make:
            raise EngineError(f"{path.parent} is gone: repeat the command") from None
        return None
    except OSError as error:
        raise EngineError(
            f"cannot use the slots in {path.parent}: {path.name}: {error.strerror}. They belong to "
            "one user; name another directory with backend.slots_dir"
        ) from error
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
    except OSError:  # somebody has it, or it was removed
        pass
    os.close(descriptor)
    return None
