"""A text written as nanochat's shards is the same text, split the same."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from objectives.api import SetupError
from objectives.nanochat import data, shards
from objectives.nanochat.shards import GROUP, write

if TYPE_CHECKING:
    from tests.conftest import Command

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
NAMES = ["shard_00000.parquet", "shard_00001.parquet", "shard_00002.parquet"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """750 documents that differ, some with what a table might lose, and a copy of one."""
    odd = ["Ünïcode 😀", "tab\there", 'quotes " and \\', "two\nlines", "\u00a0space"]
    documents = [*odd, *(f"document {n} " * (n % 7 + 1) for n in range(745)), odd[0]]
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join(documents))
    return path


@pytest.mark.parametrize("count", [1, 3, 675])
def test_what_is_read_back_is_the_same_text_split_the_same(
    count: int, text: Path, tmp_path: Path
) -> None:
    write(str(text), tmp_path / "shards", count)
    before, after = data.load(str(text)), data.load(str(tmp_path / "shards"))
    assert after.fingerprint == before.fingerprint
    assert after.train.tobytes() == before.train.tobytes()


def test_the_layout_is_nanochats_and_the_bytes_are_the_same_every_time(
    text: Path, tmp_path: Path
) -> None:
    out = tmp_path / "shards"
    assert write(str(text), out, 2)["files"] == NAMES
    write(str(text), tmp_path / "again", 2)
    assert sorted(path.name for path in out.iterdir()) == NAMES
    for name, rows in zip(NAMES, (337, 338, 75), strict=True):
        assert (out / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
        found = parquet.ParquetFile(out / name)
        assert found.schema_arrow == pyarrow.schema([("text", pyarrow.string())])
        groups = [found.metadata.row_group(n) for n in range(found.metadata.num_row_groups)]
        assert [group.num_rows for group in groups] == [GROUP] * (rows // GROUP) + [rows % GROUP]
        assert {group.column(0).compression for group in groups} == {"ZSTD"}


@pytest.mark.parametrize("there", ["file", "directory", "link"])
def test_nothing_that_is_there_is_touched(there: str, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "shards"
    if there == "link":
        out.symlink_to("nowhere")
    else:
        out.touch() if there == "file" else out.mkdir()
    with pytest.raises(ValueError, match="there is something already; name another"):
        write(str(text), out)
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "shards"}


@pytest.mark.parametrize("count", [0, 676])
def test_more_shards_than_documents_are_refused(count: int, text: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"--shards: expected 1 to 675 .* got {count}"):
        write(str(text), tmp_path / "shards", count)
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_a_text_that_changes_meanwhile_is_refused_and_nothing_left(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changing(rows: object, count: int) -> object:
        text.write_text("another\n\ntext")
        return iter(())

    monkeypatch.setattr(shards, "islice", changing)
    with pytest.raises(SetupError, match="changed while it was read: try again"):
        write(str(text), tmp_path / "shards")
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_the_command_says_what_is_where(
    text: Path, command: "Command", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("export", "shards", "--data", str(text), "--shards", "2", "--out")
    answer = command(*words, "shards")
    assert answer.code == 0, answer.err
    assert answer.out.startswith("shards: 675 documents of ")
    document = orjson.loads(command(*words, "again", "--json").out)
    assert document["files"] == NAMES
    assert (document["train_documents"], document["val_documents"]) == (675, 75)
    assert command("export", "shards", "--data", "nowhere", "--out", "third").code == 2
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = command(*words, "third")
    assert (answer.code, "cmaes-orchestrator[parquet]" in answer.err) == (2, True)
    assert not Path("third").exists()
