import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from objectives.nanochat.program.identity import Identity, versions
from objectives.nanochat.program.store import (
    MANIFEST,
    PARTIAL,
    Entry,
    Store,
    alone_in,
    kept,
    read_manifest,
)

IDENTITY = Identity(
    settings={"n_embd": 16},
    seed=0,
    device="cpu",
    data_sha256="d",
    tokenizer_sha256="",
    threads=1,
    versions=versions(),
)


class PowerCut(BaseException):
    """Nobody handles it."""


def store(directory: Path, last: int = 2, best: bool = True) -> Store:
    return Store(directory, IDENTITY, last, best)


def content(step: int) -> Callable[[IO[bytes]], None]:
    def write(file: IO[bytes]) -> None:
        file.write(f"checkpoint {step}".encode())

    return write


def newest(directory: Path) -> tuple[int, list[str]] | None:
    """The step that a new process goes on from, and what it is told."""
    said: list[str] = []
    for entry, path in store(directory).whole(said.append):
        assert path.read_bytes() == f"checkpoint {entry.step}".encode()
        return entry.step, said
    return None


def entry(step: int, bpb: float | None = None, name: str = "") -> Entry:
    return Entry(name=name or f"{step}.pt", step=step, bpb=bpb, sha256="", bytes=1)


def test_the_last_and_the_best_are_kept_and_the_best_may_be_one_of_them() -> None:
    entries = [entry(1, 3.0), entry(2, 2.0), entry(3), entry(4, 2.5), entry(5)]
    assert [e.step for e in kept(entries, 2, best=True)] == [2, 4, 5]
    assert [e.step for e in kept(entries, 2, best=False)] == [4, 5]
    assert [e.step for e in kept(entries, 4, best=True)] == [2, 3, 4, 5]


def test_of_one_step_the_newest_is_kept() -> None:
    entries = [entry(1), entry(1, 3.0, "1-2.pt")]
    assert [e.name for e in kept(entries, 3, best=True)] == ["1-2.pt"]


def test_files_that_are_not_listed_are_never_touched_whatever_their_name(tmp_path: Path) -> None:
    theirs = {"step-00000001.pt": "a", "step-00000004.pt": "b", "notes.txt": "c"}
    for name, text in theirs.items():
        (tmp_path / name).write_text(text)
    ours = store(tmp_path, last=1, best=False)
    for step in range(1, 6):
        ours.add(step, None, content(step))
    assert {name: (tmp_path / name).read_text() for name in theirs} == theirs
    assert {p.name for p in tmp_path.iterdir()} == {*theirs, MANIFEST, "step-00000005.pt"}


def test_old_checkpoints_go_and_the_best_stays(tmp_path: Path) -> None:
    ours = store(tmp_path)
    for step, bpb in ((1, 3.0), (2, 1.0), (3, None), (4, 2.0), (5, None)):
        ours.add(step, bpb, content(step))
    assert [e.step for e in ours.entries] == [2, 4, 5]
    assert len(list(tmp_path.glob("*.pt"))) == 3


@pytest.mark.parametrize("damage", ["truncated", "changed", "deleted"])
def test_a_damaged_checkpoint_is_reported_and_the_one_before_it_used(
    tmp_path: Path, damage: str
) -> None:
    ours = store(tmp_path)
    path = tmp_path / [ours.add(step, None, content(step)).name for step in (1, 2)][-1]
    if damage == "truncated":
        os.truncate(path, 3)
    elif damage == "changed":
        path.write_bytes(path.read_bytes().swapcase())
    else:
        path.unlink()
    found = newest(tmp_path)
    assert found is not None
    assert found[0] == 1
    assert path.name in found[1][0]
    assert newest(tmp_path) == (1, [])
    assert path.exists() == (damage != "deleted")


@pytest.mark.parametrize("call", ["fsync", "replace", "unlink"])
@pytest.mark.parametrize("moment", range(4))
def test_wherever_the_power_fails_the_newest_whole_checkpoint_is_found_and_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, moment: int
) -> None:
    ours = store(tmp_path, last=1, best=False)
    ours.add(1, None, content(1))
    calls = 0

    def failing(real: Callable[..., Any]) -> Callable[..., Any]:
        def act(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > moment:
                raise PowerCut
            return real(*arguments, **named)

        return act

    with monkeypatch.context() as failure:
        owner: Any = os if call == "fsync" else Path
        failure.setattr(owner, call, failing(getattr(owner, call)))
        try:
            ours.add(2, None, content(2))
        except PowerCut:
            pass
        else:
            assert moment >= calls
    found = newest(tmp_path)
    assert found is not None
    assert found[0] in (1, 2)
    again = store(tmp_path, last=1, best=False)
    again.add(3, None, content(3))
    assert newest(tmp_path) == (3, [])
    assert {p.name for p in tmp_path.iterdir()} <= {
        MANIFEST,
        "step-00000003.pt",
        f"{MANIFEST}.partial",
    }


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    def full(file: IO[bytes]) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    ours = store(tmp_path)
    ours.add(1, None, content(1))
    with pytest.raises(OSError, match="No space left"):
        ours.add(2, None, full)
    assert newest(tmp_path) == (1, [])
    assert not (tmp_path / PARTIAL).exists()


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"settings": {"n_embd": 32}}, "n_embd was 16, is 32"),
        ({"seed": 1}, "seed was 0, is 1"),
        ({"data_sha256": "e"}, "data_sha256 was 'd', is 'e'"),
        ({"device": "cuda"}, "device was 'cpu', is 'cuda'"),
        ({"settings": {}}, "n_embd was 16, is None"),
    ],
)
def test_another_run_is_refused_with_what_differs(
    tmp_path: Path, change: dict[str, Any], difference: str
) -> None:
    store(tmp_path)
    other = IDENTITY.model_copy(update=change)
    with pytest.raises(ValueError, match=difference):
        Store(tmp_path, other, 1, best=True)


def test_other_versions_and_threads_go_on_but_are_told() -> None:
    other = IDENTITY.model_copy(update={"threads": 2, "versions": {**versions(), "torch": "9.9"}})
    assert IDENTITY.differences(other) == []
    assert [line.split(" ")[0] for line in IDENTITY.drift(other)] == ["torch", "threads"]
    assert IDENTITY.drift(IDENTITY) == []


@pytest.mark.parametrize("name", ["metrics.jsonl", "summary.json", PARTIAL])
def test_a_directory_with_somebodys_file_of_our_name_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match=f"has {name} but no {MANIFEST}"):
        store(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("text", ["{", "{}", json.dumps({"format": 2})])
def test_a_damaged_manifest_is_no_empty_one(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(ValueError, match="is damaged or not ours"):
        read_manifest(tmp_path)


def test_two_do_not_train_in_one_directory(tmp_path: Path) -> None:
    directory = tmp_path / "new"
    with (
        alone_in(directory),
        pytest.raises(ValueError, match="another process trains"),
        alone_in(directory),
    ):
        pass
    with alone_in(directory):
        pass


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"checkpoint_dir .*file"), alone_in(tmp_path / "file"):
        pass
