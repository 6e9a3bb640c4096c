import os
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from objectives.files import cache_directory
from objectives.nanochat.text import cache

HOUR = 3_600_000_000_000


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "cmaes-orchestrator"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("some text")
    return path


def later() -> int:
    return time.time_ns() + HOUR


def remember(path: Path, digest: str) -> None:
    """Puts another hash in the index, to see whether the file is read again."""
    cache.digests(path, clock=later)
    (index,) = (cache_directory() / "files").iterdir()
    (stamp,) = cache.recall(index).values()
    cache.store(index, {"": [*stamp[:-1], digest]})


def hashed(path: Path) -> tuple[int, str]:
    return len(path.read_bytes()), sha256(path.read_bytes()).hexdigest()


def test_the_hash_of_a_file_is_remembered(path: Path) -> None:
    assert cache.digests(path) == [hashed(path)]
    remember(path, "from the index")
    assert cache.digests(path) == [(9, "from the index")]


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text("more text than before"),
        lambda path: path.write_text("same size"),
        lambda path: os.utime(path, ns=(1, 1)),
        lambda path: os.replace(path.with_name("other"), path),
    ],
)
def test_a_file_that_was_touched_is_hashed_again(
    path: Path, change: Callable[[Path], None]
) -> None:
    path.with_name("other").write_text("some text")
    remember(path, "from the index")
    change(path)
    assert cache.digests(path) == [hashed(path)]


def test_a_file_that_changed_just_now_is_not_remembered(path: Path, directory: Path) -> None:
    changed = path.stat().st_ctime_ns
    cache.digests(path, clock=lambda: changed + cache.RACY_NS - 1)
    assert not directory.exists()
    cache.digests(path, clock=lambda: changed + cache.RACY_NS)
    assert len(list((directory / "files").iterdir())) == 1


def test_files_of_a_folder_are_remembered_by_name(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(name)
    both = cache.digests(tmp_path, ["a", "b"], clock=later)
    assert both == [hashed(tmp_path / "a"), hashed(tmp_path / "b")]
    assert cache.digests(tmp_path, ["b", "a"], clock=later) == both[::-1]


@pytest.mark.parametrize("found", ["", "{", "[]", "null", '{"content": {}, "sha256": "0"}'])
def test_a_damaged_index_is_ignored(path: Path, found: str, directory: Path) -> None:
    remember(path, "from the index")
    (index,) = (directory / "files").iterdir()
    index.write_text(found)
    assert cache.digests(path) == [hashed(path)]


def test_what_is_stored_is_recalled_whole_or_not_at_all(directory: Path) -> None:
    kept = directory / "kept.json"
    assert cache.recall(kept) is None
    cache.store(kept, {"name\udc80": [1, None, "é"]})
    assert cache.recall(kept) == {"name\udc80": [1, None, "é"]}
    kept.write_bytes(kept.read_bytes().replace(b"[1,", b"[2,"))
    assert cache.recall(kept) is None


def test_a_block_that_fails_leaves_the_old_file(directory: Path) -> None:
    kept = directory / "kept"

    def write(text: bytes, fail: bool) -> None:
        with cache.replacing(kept) as file:
            file.write(text)
            if fail:
                raise KeyboardInterrupt

    write(b"old", fail=False)
    with pytest.raises(KeyboardInterrupt):
        write(b"new", fail=True)
    assert [path.read_bytes() for path in directory.iterdir()] == [b"old"]


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    cache.store(cache_directory() / "kept", {})
    assert cache.digests(path, clock=later) == [hashed(path)]
