"""Files below a run's directory are read only as far as that is safe."""

import os
from pathlib import Path

import pytest

from orchestrator.report.files import read_end, read_whole

PLACE = "eval/gen_0000/stderr.txt"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / PLACE
    path.parent.mkdir(parents=True)
    path.write_bytes(b"first line\nsecond line\n")
    return path


def test_a_plain_file_is_read(log: Path, tmp_path: Path) -> None:
    assert read_whole(tmp_path, PLACE, 100) == log.read_bytes()
    assert read_end(tmp_path, PLACE, 100) == log.read_bytes()


def test_a_file_of_just_that_size_is_not_too_large(log: Path, tmp_path: Path) -> None:
    assert read_whole(tmp_path, PLACE, log.stat().st_size) == log.read_bytes()
    with pytest.raises(ValueError, match="larger than 22 bytes"):
        read_whole(tmp_path, PLACE, log.stat().st_size - 1)


@pytest.mark.usefixtures("log")
def test_the_end_of_a_large_file_begins_with_a_line(tmp_path: Path) -> None:
    assert read_end(tmp_path, PLACE, 15) == b"second line\n"
    assert read_end(tmp_path, PLACE, 5) == b""  # half a line may be half a secret


@pytest.mark.parametrize("part", ["eval", "eval/gen_0000", PLACE])
@pytest.mark.usefixtures("log")
def test_nothing_is_reached_by_a_link(tmp_path: Path, part: str) -> None:
    there = tmp_path / part
    elsewhere = tmp_path / "elsewhere"
    there.rename(elsewhere)
    there.symlink_to(elsewhere)
    assert (tmp_path / PLACE).read_bytes() == b"first line\nsecond line\n"

    for read in (read_whole, read_end):
        with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
            read(tmp_path, PLACE, 100)


def test_a_pipe_is_no_file(log: Path, tmp_path: Path) -> None:
    log.unlink()
    os.mkfifo(log)

    with pytest.raises(OSError, match="no plain file"):
        read_whole(tmp_path, PLACE, 100)


def test_no_descriptor_is_left_open(log: Path, tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    log.unlink()

    for _ in range(5):
        with pytest.raises(FileNotFoundError):
            read_whole(tmp_path, PLACE, 100)

    assert len(os.listdir("/proc/self/fd")) == len(before)
