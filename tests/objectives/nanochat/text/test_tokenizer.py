import sys
from hashlib import sha256
from pathlib import Path

import pytest

from objectives.api import SetupError
from objectives.nanochat.text import cache, tokenizer
from objectives.nanochat.text.tokenizer import learn, vocab_size

TEXTS = [b"the cat sat on the mat\n\n" * 3, "ein Bär, naïve 東京 😀 \t \n\n".encode() * 3]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "kept.json"


def test_a_vocabulary_has_a_size() -> None:
    assert [vocab_size(name) for name in ("bytes", "bpe:257", "bpe:65536")] == [256, 257, 65536]


@pytest.mark.parametrize(
    "name", ["", "byte", "bpe", "bpe:", "bpe:256", "bpe:65537", "bpe:0300", "bpe:+300", "bpe:٣٠٠"]
)
def test_any_other_tokenizer_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(ValueError, match="expected bytes or bpe:N") as error:
        vocab_size(name)
    assert "\n" not in str(error.value)


def test_bytes_are_their_own_tokens(kept: Path) -> None:
    found = learn("bytes", TEXTS, kept)
    assert found.encode(TEXTS).tobytes() == b"".join(TEXTS)
    assert found.sha256 == ""
    assert not kept.exists()


def test_any_text_is_spelled_by_bpe_also_what_was_never_seen(kept: Path) -> None:
    found = learn("bpe:290", TEXTS, kept)
    texts = ["\x00\r\n  \u3000é\u0301".encode(), "東京の猫 ".encode() * 9]
    tokens = found.encode(texts)
    assert found.token_bytes[tokens].sum() == sum(map(len, texts))
    assert found.token_bytes[found.encode(TEXTS)].sum() == sum(map(len, TEXTS))
    assert len(found.encode(TEXTS)) < sum(map(len, TEXTS)) / 2


def test_documents_are_tokenised_one_by_one(kept: Path) -> None:
    found = learn("bpe:290", TEXTS, kept)
    together = found.encode(TEXTS).tolist()
    assert together == found.encode(TEXTS[:1]).tolist() + found.encode(TEXTS[1:]).tolist()


def test_what_was_learnt_is_kept_in_canonical_form(kept: Path) -> None:
    first = learn("bpe:290", TEXTS, kept)
    assert first.sha256 == sha256(cache.canonical(cache.recall(kept))).hexdigest()
    second = learn("bpe:290", [], kept)  # nothing is learnt again
    assert second.sha256 == first.sha256
    assert second.encode(TEXTS).tolist() == first.encode(TEXTS).tolist()


def test_more_text_than_enough_is_not_learnt_from(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = learn("bpe:265", TEXTS[:1], kept)
    monkeypatch.setattr(tokenizer, "LEARN_BYTES", len(TEXTS[0]))
    kept.unlink()
    assert learn("bpe:265", TEXTS, kept).sha256 == first.sha256


def test_a_vocabulary_the_text_cannot_fill_is_refused(kept: Path) -> None:
    with pytest.raises(SetupError, match=r"gives only (\d+) tokens.*use tokenizer bpe:\1 or more"):
        learn("bpe:4096", TEXTS, kept)
    with pytest.raises(SetupError, match=r"only 256 tokens, .*use tokenizer bytes or more text"):
        learn("bpe:300", [b"a"], kept)
    assert not kept.exists()


def test_a_missing_library_names_the_command(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(SetupError, match=r'pip install "cmaes-orchestrator\[bpe\]"'):
        learn("bpe:300", TEXTS, kept)
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(SetupError, match="needs the package tokenizers"):
        tokenizer.library("bpe:300")


def test_the_version_of_the_library_is_known_without_importing_it() -> None:
    assert tokenizer.library("bytes") == ""
    assert tokenizer.library("bpe:300").startswith("tokenizers 0.")
