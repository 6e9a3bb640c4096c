"""A place for simulated disks: memory where there is some."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")  # noqa: S108 - a file system in memory, not a guessable name in it


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """An empty directory, on a file system in memory where the machine has one."""
    if not MEMORY.is_dir():
        yield tmp_path
        return
    directory = Path(tempfile.mkdtemp(prefix="simulation-", dir=MEMORY))
    yield directory
    shutil.rmtree(directory)
