"""The commit of a directory, for the record."""

import subprocess
from pathlib import Path

import pytest

from objectives.programs.git import revision


def git(directory: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    return subprocess.run(
        ["git", "-C", str(directory), *identity, *arguments],  # noqa: S607
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    place = tmp_path / "checkout"
    (place / "inner").mkdir(parents=True)
    (place / "train.py").write_text("print(1)\n")
    (place / "inner/model.py").write_text("x = 1\n")
    git(place, "init", "-q")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "All")
    return place


def test_a_clean_checkout_is_at_its_commit(checkout: Path) -> None:
    assert revision(checkout) == {"commit": git(checkout, "rev-parse", "HEAD"), "dirty": 0}


def test_a_changed_file_makes_it_dirty_and_a_new_one_does_not(checkout: Path) -> None:
    (checkout / "notes.txt").write_text("mine")
    assert revision(checkout)["dirty"] == 0
    (checkout / "train.py").write_text("print(2)\n")
    assert revision(checkout)["dirty"] == 1


def test_only_what_lies_below_the_directory_makes_it_dirty(checkout: Path) -> None:
    (checkout / "train.py").write_text("print(2)\n")
    assert revision(checkout / "inner")["dirty"] == 0


@pytest.mark.parametrize("place", [".", "nowhere"])
def test_without_git_nothing_is_known(place: str, tmp_path: Path) -> None:
    assert revision(tmp_path / place) == {}


def test_a_repository_without_a_commit_has_no_revision(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert revision(tmp_path) == {}


def test_git_of_somewhere_else_is_not_asked(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(checkout / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(checkout))
    assert revision(tmp_path) == {}


def test_a_monitor_that_the_directory_names_is_not_started(checkout: Path, tmp_path: Path) -> None:
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    monitor.chmod(0o755)
    git(checkout, "config", "core.fsmonitor", str(monitor))
    revision(checkout)
    assert not (tmp_path / "started").exists()
