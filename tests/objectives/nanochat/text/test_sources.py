import gzip
import json
import lzma
import sys
from collections.abc import Callable, Sequence
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from objectives.api import SetupError
from objectives.nanochat.text import data
from objectives.nanochat.text.columns import Hub
from objectives.nanochat.text.sources import parse

pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")  # has no types

DOCUMENTS = [f"document {i}\n\nsecond paragraph é".encode() for i in range(25)]
ORDERED = sorted(DOCUMENTS, key=lambda document: sha256(document).digest())


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def write_json_lines(path: Path, field: str = "text") -> None:
    rows = [json.dumps({"id": i, field: d.decode()}) for i, d in enumerate(DOCUMENTS)]
    path.write_text("\n\n".join(rows) + "\n")


def write_shard(path: Path, texts: Sequence[Any], column: str = "text") -> None:
    table = pyarrow.table({"id": list(range(len(texts))), column: texts})
    parquet.write_table(table, path, row_group_size=3)


def write_folder(folder: Path) -> None:
    (folder / "deep/er").mkdir(parents=True)
    for i, document in enumerate(DOCUMENTS):
        place = folder / ("deep/er" if i % 2 else ".") / f"{i}.{'md' if i % 3 else 'TXT'}"
        place.write_bytes(b"\r\n" + document.replace(b"\n", b"\r\n") + b" \n")


def parts(name: str) -> tuple[bytes, bytes]:
    corpus = data.load(name)
    return corpus.train.tobytes(), corpus.val.tobytes()


def joined(train: list[bytes], val: list[bytes]) -> tuple[bytes, bytes]:
    return b"\n\n".join(train) + b"\n", b"\n\n".join(val) + b"\n"


@pytest.mark.parametrize("packed", [bytes, gzip.compress, lzma.compress])
def test_a_text_file_is_split_on_blank_lines(
    tmp_path: Path, packed: Callable[[bytes], bytes]
) -> None:
    documents = [f"document {i}\nsecond line".encode() for i in range(25)]
    suffix = {gzip.compress: ".gz", lzma.compress: ".xz"}.get(packed, "")
    path = tmp_path / f"text.txt{suffix}"
    path.write_bytes(packed(b"\r\n \t\r\n\r\n".join(documents) + b"\r\n\n\n"))
    ordered = sorted(documents, key=lambda d: sha256(d).digest())
    assert parts(str(path)) == joined(ordered[:-2], ordered[-2:])
    assert data.fingerprint(str(path)) == sha256(path.read_bytes()).hexdigest()


def test_each_text_file_of_a_folder_is_a_document(folder: Path) -> None:
    write_folder(folder)
    (folder / "blank.txt").write_text(" \n")
    for ignored in (".hidden.txt", "LICENSE", "deep/.git/note.txt"):
        (folder / ignored).parent.mkdir(exist_ok=True)
        (folder / ignored).write_text("not a document")
    assert parts(str(folder)) == joined(ORDERED[:-2], ORDERED[-2:])


@pytest.mark.parametrize("packed", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("field", ["text", "body"])
def test_each_json_line_is_a_document(
    tmp_path: Path, packed: Callable[[bytes], bytes], field: str
) -> None:
    suffix = {gzip.compress: ".gz", lzma.compress: ".xz"}.get(packed, "")
    path = tmp_path / f"rows.jsonl{suffix}"
    write_json_lines(path, field)
    path.write_bytes(packed(path.read_bytes()))
    name = f"jsonl:{path}" if field == "text" else f"jsonl:{path}:{field}"
    assert parts(name) == joined(ORDERED[:-2], ORDERED[-2:])


def test_the_last_parquet_file_is_held_out_and_nothing_is_reordered(folder: Path) -> None:
    texts = [document.decode() for document in DOCUMENTS]
    for name, some in (("shard_2", texts[20:]), ("shard_1", texts[8:20]), ("shard_0", texts[:8])):
        write_shard(folder / f"{name}.parquet", [*some, None, " "])
    assert parts(str(folder)) == joined(DOCUMENTS[:20], DOCUMENTS[20:])
    assert data.load(str(folder)).documents == 25


def test_parquet_documents_are_tokenised_as_any_other(folder: Path) -> None:
    texts = [document.decode() for document in DOCUMENTS]
    write_shard(folder / "0.parquet", texts[:20])
    write_shard(folder / "1.parquet", texts[20:])
    corpus = data.load(str(folder), "bpe:270")
    plain = data.load(str(folder))
    assert corpus.token_bytes[corpus.val].sum() == len(plain.val)
    assert corpus.token_bytes[corpus.train].sum() == len(plain.train)
    assert corpus.sha256 == plain.sha256


@pytest.mark.parametrize("form", ["text", "folder", "jsonl"])
def test_copies_are_left_out_and_counted(tmp_path: Path, folder: Path, form: str) -> None:
    texts = ["one", "two", "one", "three ", "one"]
    path = tmp_path / "file"
    for i, text in enumerate(texts):
        (folder / f"{i}.txt").write_text(text)
    separator = "\n\n" if form == "text" else "\n"
    lines = texts if form == "text" else [json.dumps({"text": text}) for text in texts]
    path.write_text(separator.join(lines))
    name = {"text": str(path), "folder": str(folder), "jsonl": f"jsonl:{path}"}[form]
    corpus = data.load(name)
    assert (corpus.documents, corpus.duplicates) == (3, 2)
    assert corpus.train_bytes + corpus.val_bytes == len("onetwothree")
    assert data.load(name).duplicates == 2  # from the cache


@pytest.mark.parametrize(
    ("name", "absolute"),
    [
        ("text.txt", "{here}/text.txt"),
        ("a/../text:1.txt", "{here}/a/../text:1.txt"),
        ("./odd:name", "{here}/odd:name"),
        ("~/text.txt", "{home}/text.txt"),
        ("jsonl:rows.jsonl", "jsonl:{here}/rows.jsonl:text"),
        ("jsonl:~/rows.jsonl:body", "jsonl:{home}/rows.jsonl:body"),
        ("jsonl:/a:b/rows.jsonl", "jsonl:/a:b/rows.jsonl:text"),
        ("hf:owner/name", "hf:owner/name"),
        ("hf:name:config", "hf:name:config"),
        ("hf:./saved", "hf:{here}/saved"),
        ("hf:/saved:1", "hf:/saved:1"),
        ("builtin:kjv-v1", "builtin:kjv-v1"),
    ],
)
def test_a_name_becomes_absolute_once(
    name: str, absolute: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    expected = absolute.format(here=tmp_path, home="/home/somebody")
    assert parse(name).name == expected
    assert parse(expected).name == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "data '' is not known: expected a UTF-8 text file"),
        ("builtin:nope", "'builtin:nope' is not known: .* one of builtin:wiki-v1, builtin:kjv-v1"),
        ("https://text.org/a.txt", "is not known: expected"),
        ("json:rows.jsonl", r"is not known: .*jsonl:PATH\[:FIELD\]"),
        ("jsonl:", "is incomplete: expected jsonl:PATH"),
        ("jsonl:rows.jsonl:", "is incomplete: expected jsonl:PATH"),
        ("jsonl::text", "is incomplete: expected jsonl:PATH"),
        ("hf:", "is incomplete: expected hf:NAME"),
        ("hf:name:", "is incomplete: expected hf:NAME"),
        ("~nobody-of-this-name/text.txt", "data '~nobody-of-this-name/text.txt': "),
    ],
)
def test_an_unknown_form_is_refused_in_one_line(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        data.absolute(name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a single document", "at least two documents that differ, got 1; .* blank line"),
        (b"same\n\nsame\n\nsame", "at least two documents that differ, got 1 in 3 copies"),
        (b" \n\n", "at least two documents that differ, got 0"),
        (b"one\n\ntwo \xff three", r"text.txt is not UTF-8 at byte 9 \(0xff\): convert it"),
    ],
)
def test_a_text_file_that_will_not_do_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    with pytest.raises(SetupError, match=message):
        data.load(str(path))


@pytest.mark.parametrize("name", ["none.txt", "none.jsonl.gz", "jsonl:none.jsonl"])
def test_a_missing_file_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SetupError, match=r"cannot read data '/.*none.*No such file or directory\)"):
        data.fingerprint(name)


@pytest.mark.parametrize("suffix", ["gz", "xz"])
@pytest.mark.parametrize("form", ["", "jsonl:"])
def test_a_damaged_archive_is_refused(tmp_path: Path, suffix: str, form: str) -> None:
    pack = gzip.compress if suffix == "gz" else lzma.compress
    path = tmp_path / f"text.{suffix}"
    whole = pack(b'{"text": "one"}\n\n{"text": "two"}')
    flipped = whole[:15] + bytes([whole[15] ^ 255]) + whole[16:]
    for content in (b"not packed at all", whole[:-6], flipped):
        path.write_bytes(content)
        with pytest.raises(SetupError, match=str(path)):
            data.load(f"{form}{path}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"text": }', r"line 3: not JSON \(.*\); expected one object a line"),
        (b'["text"]', "line 3: expected an object, got list"),
        (b'{"body": "b", "id": 1}', "line 3: expected the field 'text', got body, id; another"),
        (b"{}", "line 3: expected the field 'text', got none"),
        (b'{"text": 7}', "line 3: expected text, got int"),
        (b'{"text": "\\ud83d"}', "line 3: character 0 is not Unicode text"),
        (b'{"text": "\xe9"}', r"rows.jsonl is not UTF-8 at byte 27 \(0xe9\)"),
    ],
)
def test_a_json_line_that_will_not_do_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"text": "one"}\n\n' + line + b'\n{"text": "two"}')
    with pytest.raises(SetupError, match=message):
        data.load(f"jsonl:{path}")


def test_a_file_of_another_form_is_not_taken_for_text(tmp_path: Path) -> None:
    for name, mend in (("rows.jsonl", "jsonl:PATH"), ("0.parquet", "the folder of two or more")):
        (tmp_path / name).write_text("one\n\ntwo")
        with pytest.raises(SetupError, match=f"no text file: set data to {mend}"):
            data.load(str(tmp_path / name))


def test_a_folder_holds_one_kind_of_data(folder: Path) -> None:
    with pytest.raises(SetupError, match=r"must hold .*; got 0 files of other kinds: keep"):
        data.fingerprint(str(folder))
    (folder / "rows.jsonl").write_text("{}")
    with pytest.raises(SetupError, match=r"must hold .*; got 1 files of other kinds: keep"):
        data.load(str(folder))
    (folder / "a.md").write_text("text")
    (folder / "b.parquet").write_text("")
    with pytest.raises(SetupError, match=r"must hold .*; got a.md and b.parquet: keep"):
        data.load(str(folder))


def test_a_file_of_a_folder_that_is_not_utf8_is_named(folder: Path) -> None:
    (folder / "a.txt").write_bytes(b"fine")
    (folder / "b.txt").write_bytes(b"caf\xe9")
    with pytest.raises(SetupError, match=r"folder/b.txt is not UTF-8 at byte 3 \(0xe9\)"):
        data.load(str(folder))


def test_shards_that_will_not_do_are_refused(folder: Path) -> None:
    write_shard(folder / "0.parquet", ["one", "two"])
    with pytest.raises(SetupError, match=r"at least two .*files, the last being held out; got 1"):
        data.load(str(folder))
    for texts, message in (
        ([], "the held-out part of data '.*folder' holds no document"),
        ([1, 2], "1.parquet, row 1: expected text, got int"),
    ):
        write_shard(folder / "1.parquet", texts)
        with pytest.raises(SetupError, match=message):
            data.load(str(folder))
    write_shard(folder / "1.parquet", ["one"], column="body")
    with pytest.raises(SetupError, match=r"1.parquet has no column 'text', only body, id: rename"):
        data.load(str(folder))
    (folder / "1.parquet").write_text("not parquet")
    with pytest.raises(SetupError, match=r"cannot read data '.*1.parquet' .*expected a Parquet"):
        data.load(str(folder))


def test_a_shard_that_is_not_utf8_names_the_row(folder: Path) -> None:
    write_shard(folder / "0.parquet", ["one", "two"])
    cells = pyarrow.array([b"fine", b"caf\xe9"], type=pyarrow.binary())
    column = pyarrow.StringArray.from_buffers(len(cells), cells.buffers()[1], cells.buffers()[2])
    parquet.write_table(pyarrow.table({"text": column}), folder / "1.parquet")
    with pytest.raises(SetupError, match=r"1.parquet, row 2 is not UTF-8 at byte 3 of it"):
        data.load(str(folder))


@pytest.mark.parametrize(("module", "extra"), [("pyarrow.parquet", "parquet"), ("datasets", "hf")])
def test_a_missing_package_names_the_command(
    module: str, extra: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("0.parquet", "1.parquet"):
        (folder / name).touch()
    monkeypatch.setitem(sys.modules, module, None)
    for name in {"parquet": [str(folder)], "hf": [f"hf:{folder}", "hf:owner/name"]}[extra]:
        with pytest.raises(SetupError, match=rf'pip install "cmaes-orchestrator\[{extra}\]"'):
            data.load(name)


def test_the_fingerprint_of_a_folder_follows_names_and_contents_not_its_place(
    tmp_path: Path,
) -> None:
    def write(name: str, **files: str) -> str:
        for file, text in files.items():
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / f"{file}.txt").write_text(text)
        return data.fingerprint(str(tmp_path / name))

    first = write("first", a="text", b="other")
    assert write("same", b="other", a="text") == first
    (tmp_path / "same" / "README").write_text("not used")
    assert data.fingerprint(str(tmp_path / "same")) == first
    others = {
        write("renamed", a="text", c="other"),
        write("changed", a="text", b="Other"),
        write("swapped", a="other", b="text"),
        write("more", a="text", b="other", c="third"),
    }
    assert len(others | {first}) == 5


def test_the_fingerprint_of_json_lines_follows_the_field(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_text('{"text": "one", "body": "two"}')
    marks = {data.fingerprint(name) for name in (str(path), f"jsonl:{path}", f"jsonl:{path}:body")}
    assert len(marks) == 3


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = pytest.importorskip(
        "datasets", reason="datasets is not installed: pip install 'cmaes-orchestrator[hf]'"
    )
    monkeypatch.setattr(module.config, "HF_DATASETS_CACHE", tmp_path / "hub")
    return module


def test_a_saved_data_set_is_split_as_a_text_is(tmp_path: Path, datasets: Any) -> None:
    texts = [document.decode() for document in DOCUMENTS]
    rows = datasets.Dataset.from_dict({"text": [*texts, texts[0], None, " "]})
    rows.save_to_disk(tmp_path / "rows")
    datasets.DatasetDict({"train": rows, "test": rows}).save_to_disk(tmp_path / "splits")
    for name in (f"hf:{tmp_path}/rows", f"hf:{tmp_path}/splits"):
        assert parts(name) == joined(ORDERED[:-2], ORDERED[-2:])
        assert data.load(name).duplicates == 1


def test_a_validation_split_is_held_out_in_its_own_order(tmp_path: Path, datasets: Any) -> None:
    texts = [document.decode() for document in DOCUMENTS]
    some = {"train": texts[:8], "validation": texts[8:]}
    splits = {name: datasets.Dataset.from_dict({"text": rows}) for name, rows in some.items()}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "saved")
    assert parts(f"hf:{tmp_path}/saved") == joined(DOCUMENTS[:8], DOCUMENTS[8:])
    before = data.fingerprint(f"hf:{tmp_path}/saved")
    (tmp_path / "saved/validation/state.json").write_text("{}")
    assert data.fingerprint(f"hf:{tmp_path}/saved") != before


def test_a_data_set_that_will_not_do_is_refused(tmp_path: Path, datasets: Any) -> None:
    body = datasets.Dataset.from_dict({"body": ["one", "two"]})
    body.save_to_disk(tmp_path / "body")
    numbers = datasets.Dataset.from_dict({"text": [1, 2]})
    numbers.save_to_disk(tmp_path / "numbers")
    datasets.DatasetDict({"test": body}).save_to_disk(tmp_path / "test")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    for name, message in (
        ("body", "split train has no column 'text', only body: rename"),
        ("numbers", "split train, row 1: expected text, got int"),
        ("test", "has no split 'train', only test"),
        ("other", r"cannot read data 'hf:.*other' .*expected a folder written by save_to_disk"),
        ("none", "No such file or directory"),
    ):
        with pytest.raises(SetupError, match=message):
            data.load(f"hf:{tmp_path / name}")


def test_a_data_set_is_loaded_as_from_the_hub(tmp_path: Path, datasets: Any) -> None:
    (tmp_path / "mine").mkdir()
    write_json_lines(tmp_path / "mine/train.jsonl")
    held_out = [b"another", DOCUMENTS[0]]
    lines = [json.dumps({"text": text.decode()}) for text in held_out]
    (tmp_path / "mine/validation.jsonl").write_text("\n".join(lines))
    hub = Hub(str(tmp_path / "mine"))  # which `datasets` reads as it reads the hub
    documents = hub.documents()
    assert list(documents.train) == list(documents.train) == DOCUMENTS[1:]
    assert list(documents.val) == held_out
    assert documents.left_out == 1
    assert hub.fingerprint() == Hub(hub.dataset).fingerprint()
    with pytest.raises(SetupError, match=r"cannot read data .*BuilderConfig 'none' not found"):
        Hub(hub.dataset, "none").fingerprint()


def test_a_folder_is_not_taken_for_a_name_on_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner/name").mkdir(parents=True)
    with pytest.raises(SetupError, match=r"'hf:owner/name' names a folder in .*: expected a data"):
        data.fingerprint("hf:owner/name")
