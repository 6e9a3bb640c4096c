"""Files that are whole or absent."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from budgets.ledger.storage import Disk, document, read_plain, write_aside


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


def test_a_plain_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\0whole\n")
    assert read_plain(path) == b"\0whole\n"


def test_a_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_plain(tmp_path / "file")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "directory"])
def test_what_is_no_file_is_not_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "file")
    with pytest.raises(ValueError, match="file is no plain file: expected one"):
        read_plain(tmp_path / "file")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "file").symlink_to("secret")
    with pytest.raises(ValueError, match="file is a symbolic link: expected a plain file"):
        read_plain(tmp_path / "file")


class Noted(Disk):
    """The disk, and what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def sync(self, handle: int) -> None:
        self.asked.append("sync")
        super().sync(handle)

    def rename(self, path: Path, to: Path) -> None:
        self.asked.append("rename")
        super().rename(path, to)

    def sync_directory(self, directory: Path) -> None:
        self.asked.append("sync the directory")
        super().sync_directory(directory)


@pytest.mark.parametrize(
    ("durable", "asked"),
    [(True, ["sync", "rename", "sync the directory"]), (False, ["rename"])],
)
def test_an_atomic_write_is_durable_before_and_after_it_takes_its_name(
    tmp_path: Path, durable: bool, asked: list[str]
) -> None:
    disk = Noted()
    write_aside(tmp_path / "file", b"new", storage=disk, durable=durable)
    assert disk.asked == asked


def test_a_document_is_json_that_a_person_can_read() -> None:
    assert document({"a": [1]}) == b'{\n  "a": [\n    1\n  ]\n}\n'
