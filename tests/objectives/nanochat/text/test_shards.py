"""A text written as nanochat's shards is the same text, split the same."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from objectives.api import SetupError
from objectives.nanochat.text import data, shards, sources
from objectives.nanochat.text.shards import GROUP, Written, write

if TYPE_CHECKING:
    from tests.conftest import Command

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


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
    out = tmp_path / "shards"
    expected = sources.parse(str(text)).documents()

    write(str(text), out, count)

    found = sources.parse(str(out)).documents()
    assert list(found.train) == list(expected.train)
    assert list(found.val) == list(expected.val)
    assert data.load(str(out)).sha256 == data.load(str(text)).sha256


def test_the_layout_is_nanochats(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "shards"

    written = write(str(text), out, 2)

    names = ("shard_00000.parquet", "shard_00001.parquet", "shard_00002.parquet")
    assert written == Written(out, names, 675, 75, written.train_bytes, written.val_bytes)
    assert sorted(path.name for path in out.iterdir()) == list(names)
    for name, rows in zip(names, (337, 338, 75), strict=True):
        found = parquet.ParquetFile(out / name)
        assert found.schema_arrow == pyarrow.schema([("text", pyarrow.string())])
        assert found.metadata.num_rows == rows
        groups = [found.metadata.row_group(n) for n in range(found.metadata.num_row_groups)]
        assert [group.num_rows for group in groups] == [GROUP] * (rows // GROUP) + [rows % GROUP]
        for group in groups:
            column = group.column(0)
            assert column.compression == "ZSTD"
            assert not column.has_dictionary_page


def test_the_same_text_gives_the_same_bytes(text: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    files = write(str(text), one, 2).files
    write(str(text), two, 2)

    assert [(one / name).read_bytes() for name in files] == [
        (two / name).read_bytes() for name in files
    ]


@pytest.mark.parametrize("there", ["file", "directory", "link"])
def test_nothing_that_is_there_is_touched(there: str, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "shards"
    if there == "file":
        out.write_text("mine")
    elif there == "directory":
        out.mkdir()
    else:
        out.symlink_to(tmp_path / "nowhere")

    with pytest.raises(ValueError, match="there is something already; name another"):
        write(str(text), out)
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "shards"}
    assert not list(out.glob("*")) if there == "directory" else True


@pytest.mark.parametrize("count", [0, -1, 676])
def test_more_shards_than_documents_are_refused(count: int, text: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"--shards: expected 1 to 675 .* got {count}"):
        write(str(text), tmp_path / "shards", count)
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_a_text_that_changes_meanwhile_is_refused_and_nothing_left(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changing(path: Path) -> None:
        text.write_text("another\n\ntext")

    monkeypatch.setattr(shards, "_sync", changing)

    with pytest.raises(SetupError, match="changed while it was read: try again"):
        write(str(text), tmp_path / "shards")
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_a_write_that_fails_leaves_nothing(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shards, "_sync", full)

    with pytest.raises(OSError, match="No space left"):
        write(str(text), tmp_path / "shards")
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_a_text_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"cannot read data .*nowhere"):
        write(str(tmp_path / "nowhere"), tmp_path / "shards")
    with pytest.raises(ValueError, match="there is no directory"):
        write("builtin:wiki-v1", tmp_path / "no/shards")
    assert not list(tmp_path.iterdir())


def test_the_command_says_what_is_where(text: Path, command: "Command", tmp_path: Path) -> None:
    answer = command("export", "shards", "--data", str(text), "--out", "shards", "--shards", "2")
    document = orjson.loads(
        command("export", "shards", "--data", str(text), "--out", "again", "--json").out
    )

    assert answer.code == 0, answer.err
    assert answer.out.startswith("shards: 675 documents of ")
    assert answer.out.endswith(" held out in shard_00002.parquet.\n")
    assert document["files"] == ["shard_00000.parquet", "shard_00001.parquet"]
    assert (document["train_documents"], document["val_documents"]) == (675, 75)
    assert (tmp_path / "again/shard_00001.parquet").exists()


def test_without_pyarrow_one_line_says_how_to_get_it(
    text: Path, command: "Command", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    answer = command("export", "shards", "--data", str(text), "--out", "shards")

    assert answer.code == 2
    assert answer.err == ("error: shards need pyarrow: pip install 'cmaes-orchestrator[parquet]'\n")
    assert not Path("shards").exists()
