"""Where a tracker's things lie, and what is remembered of it."""

import os
import time
from pathlib import Path

import pytest

from orchestrator.trackers.place import Place, Told, empty


@pytest.fixture
def its(tmp_path: Path) -> Place:
    found = Place(tmp_path, "mlflow")
    found.make()
    return found


def test_what_was_told_is_remembered_of_that_ledger_only(its: Place) -> None:
    told = Told(ledger="abc", records=7, step=3)
    its.remember(told)
    assert its.recall("abc") == told
    assert its.recall("other") == Told(ledger="other")
    its.forget()
    its.forget()
    assert its.recall("abc") == Told(ledger="abc")


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b'{"ledger": "abc", "records": -1}'])
def test_what_cannot_be_read_is_nothing_told(its: Place, content: bytes) -> None:
    (its.directory / "mlflow.json").write_bytes(content)
    assert its.recall("abc") == Told(ledger="abc")


@pytest.mark.parametrize("name", ["trackers", "trackers/mlflow"])
def test_a_link_is_not_followed(tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="is a symbolic link"):
        Place(tmp_path, "mlflow").make()
    assert not any((tmp_path / "elsewhere").iterdir())


def test_one_process_tells_at_a_time(its: Place) -> None:
    first = its.lock(0.0, lambda: False)
    began = time.monotonic()
    with pytest.raises(ValueError, match="another process is logging this run to mlflow"):
        its.lock(0.1, lambda: False)
    with pytest.raises(ValueError, match="another process"):
        its.lock(60.0, lambda: True)
    assert time.monotonic() - began < 30
    os.close(first)
    os.close(its.lock(0.0, lambda: False))


def test_a_directory_is_emptied_of_its_own_things_only(tmp_path: Path) -> None:
    (tmp_path / "own/inner").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("kept")
    (tmp_path / "own/link").symlink_to(tmp_path / "other")
    (tmp_path / "own/inner/link").symlink_to(tmp_path / "other")
    empty(tmp_path / "own")
    assert not any((tmp_path / "own").iterdir())
    assert (tmp_path / "other/file").read_text() == "kept"
