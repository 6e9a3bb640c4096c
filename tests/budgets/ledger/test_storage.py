"""Files that are whole or absent."""

import errno
import os
from pathlib import Path

import pytest

from budgets.ledger.storage import write_aside


def test_an_atomic_write_leaves_one_file_with_the_new_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_aside(path, b"old")
    write_aside(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_atomic_write_that_fails_leaves_the_old_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    path = tmp_path / "file"
    write_aside(path, b"old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output"):
        write_aside(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
