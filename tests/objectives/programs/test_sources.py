"""The hash that says whether a program is still the one that a search was planned with."""

import os
import time
from pathlib import Path

import pytest

from objectives.api import SetupError
from objectives.programs import sources
from objectives.programs.sources import DEFAULT, digest, files, require_same


@pytest.fixture
def code(tmp_path: Path) -> Path:
    place = tmp_path / "code"
    for name in ("train.py", "model/gpt.py", "model/deep/attention.py", "conf/base.yaml"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(name)
    return place


def add(place: Path, name: str, text: str = "x = 1") -> None:
    (place / name).parent.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(text)


def test_the_same_files_have_the_same_hash_wherever_they_lie(code: Path, tmp_path: Path) -> None:
    before = digest(code, DEFAULT)
    code.rename(tmp_path / "elsewhere")
    assert digest(tmp_path / "elsewhere", DEFAULT) == before


@pytest.mark.parametrize("change", ["edit", "add", "remove", "rename", "swap"])
def test_any_change_of_a_source_changes_it(change: str, code: Path) -> None:
    before = digest(code, DEFAULT)
    train, model = code / "train.py", code / "model/gpt.py"
    match change:
        case "edit":
            train.write_text("train.pz")
        case "add":
            add(code, "new.py", "")
        case "remove":
            model.unlink()
        case "rename":
            model.rename(code / "model/gpt2.py")
        case "swap":
            train.write_text(model.read_text())
            model.write_text("train.py")
    assert digest(code, DEFAULT) != before


@pytest.mark.parametrize(
    "name",
    [
        *("notes.md", "conf/other.yaml", "__pycache__/train.py", ".git/hooks/hook.py"),
        *("venv/lib/x.py", "node_modules/x.py", "lib/site-packages/x.py", "wandb/run/files/x.py"),
        *(".hidden.py", "._train.py"),
    ],
)
def test_what_is_no_source_of_anybodys_changes_nothing(name: str, code: Path) -> None:
    before = digest(code, DEFAULT)
    add(code, name)
    assert digest(code, DEFAULT) == before


@pytest.mark.parametrize(
    "mark", ["pyvenv.cfg", "ledger.jsonl", ".hydra/config.yaml"], ids=["venv", "run", "hydra"]
)
def test_environments_runs_and_outputs_are_known_by_what_is_in_them(mark: str, code: Path) -> None:
    before = digest(code, DEFAULT)
    add(code, "any/name/inner/x.py")
    assert digest(code, DEFAULT) != before
    add(code, f"any/name/{mark}")
    assert digest(code, DEFAULT) == before


def test_the_directory_itself_counts_whatever_is_in_it(code: Path) -> None:
    before = digest(code, DEFAULT)
    add(code, "ledger.jsonl")
    assert digest(code, DEFAULT) == before
    add(code, "new.py")
    assert digest(code, DEFAULT) != before


def test_the_lock_file_of_an_editor_and_a_pipe_are_passed_over(code: Path) -> None:
    before = digest(code, DEFAULT)
    (code / ".#train.py").symlink_to("me@here.123")
    (code / "gone.py").symlink_to("nowhere.py")
    os.mkfifo(code / "pipe.py")
    assert digest(code, DEFAULT) == before


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (("*.py",), {"train.py", "model/gpt.py", "model/deep/attention.py"}),
        (("/train.py",), {"train.py"}),
        (("gpt.py",), {"model/gpt.py"}),
        (("model/*.py",), {"model/gpt.py", "model/deep/attention.py"}),
        (("/model/deep/*",), {"model/deep/attention.py"}),
        (("*/base.*", "train.py"), {"train.py", "conf/base.yaml"}),
        (("nothing",), set()),
    ],
)
def test_patterns_find_what_they_name(
    patterns: tuple[str, ...], found: set[str], code: Path
) -> None:
    everything = {path for path in code.rglob("*") if path.is_file()}
    before = digest(code, patterns)
    for path in everything:
        name, text = path.relative_to(code).as_posix(), path.read_text()
        path.write_text("changed")
        assert (digest(code, patterns) != before) == (name in found), name
        path.write_text(text)


def test_patterns_with_a_slash_look_nowhere_else(
    code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        add(code, f"data/part-{number}/x.txt")
    monkeypatch.setattr(sources, "MOST_NAMES", 20)
    digest(code, ("/train.py", "model/*.py"))
    with pytest.raises(SetupError, match=r"more than 20 files to look through.*setting sources"):
        digest(code, DEFAULT)


def test_other_files_count_by_what_they_are(code: Path, tmp_path: Path) -> None:
    add(tmp_path, "outside.sh", "one")
    also = (tmp_path / "outside.sh", code / "conf/base.yaml", code / "train.py")
    before = digest(code, DEFAULT, also)
    assert before != digest(code, DEFAULT)
    add(tmp_path, "outside.sh", "two")
    assert digest(code, DEFAULT, also) != before


def test_too_many_files_are_refused_with_the_setting_that_helps(
    code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MOST_FILES", 2)
    with pytest.raises(SetupError, match=r"more than 2 files of source.*sources = \["):
        digest(code, DEFAULT)


def test_a_data_set_is_refused_before_it_is_read(code: Path) -> None:
    with (code / "data.py").open("wb") as file:
        file.truncate(1 << 40)  # a hole
    with pytest.raises(SetupError, match="more than 64 MiB of source"):
        digest(code, DEFAULT)


def test_a_source_that_is_gone_is_named(code: Path) -> None:
    with pytest.raises(SetupError, match=r"cannot read the source .*gone\.sh: No such file"):
        digest(code, DEFAULT, (code / "gone.sh",))


def test_a_hundred_files_take_no_time(tmp_path: Path) -> None:
    for number in range(100):
        add(tmp_path, f"package{number % 10}/module{number}.py", "x = 1\n" * 2000)

    def seconds() -> float:
        began = time.perf_counter()
        digest(tmp_path, DEFAULT)
        return time.perf_counter() - began

    assert any(seconds() < 0.1 for _ in range(20))  # 5 ms on a quiet machine


def test_only_a_changed_hash_is_refused(code: Path) -> None:
    require_same("a" * 64, "a" * 64, code, list)
    with pytest.raises(SetupError, match=r"changed.*\(sha256 a{8} then, b{8} now\).*--run-id"):
        require_same("a" * 64, "b" * 64, code, list)


def test_of_a_changed_hash_the_files_are_named_the_last_changed_first(code: Path) -> None:
    for number, path in enumerate(looked_at := files(code, DEFAULT, (code / "conf/base.yaml",))):
        os.utime(path, (number, number))

    with pytest.raises(SetupError, match=r"the setting sources says\. They are.*: ") as refused:
        require_same("a" * 64, "b" * 64, code, lambda: looked_at)

    named = str(refused.value).rpartition(": ")[2]
    assert named == "train.py, model/gpt.py, model/deep/attention.py and 1 more"
