"""The files that a program is, and the hash that says whether it is still the same."""

import os
from pathlib import Path

import pytest
from objectives.programs import sources
from objectives.programs.sources import digest, matching, require_same, with_imports

from objectives.api import SetupError

FILES = {
    "train.py": "import model.gpt\nfrom model import deep\nimport numpy, absent",
    "model/__init__.py": "",
    "model/gpt.py": "from .deep.attention import heads",
    "model/deep/__init__.py": "",
    "model/deep/attention.py": "from ... import outside",
    "model/unused.py": "",
    "conf/base.yaml": "",
    "runs/1/train.py": "",
}


@pytest.fixture
def code(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / "code" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "code" / name).write_text(text)
    return tmp_path / "code"


def names(found: set[Path], code: Path) -> set[str]:
    return {path.relative_to(code).as_posix() for path in found}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", {"train.py"}),
        ("/train.py", {"train.py"}),
        ("conf/*", {"conf/base.yaml"}),
        ("model/**/*.py", set(FILES) - {"train.py", "conf/base.yaml", "runs/1/train.py"}),
        ("none.py", set()),
    ],
)
def test_patterns_find_files_as_glob_does(pattern: str, expected: set[str], code: Path) -> None:
    assert names(matching(code, (pattern,)), code) == expected


@pytest.mark.parametrize(
    "name",
    [
        *("__pycache__/x.py", ".git/hook.py", "venv/lib/x.py", "lib/site-packages/x.py"),
        *(".hidden.py", "wandb/run/x.py"),
    ],
)
def test_what_is_nobodys_source_is_passed_over(name: str, code: Path) -> None:
    before = matching(code, ("**/*.py",))
    (code / name).parent.mkdir(parents=True, exist_ok=True)
    (code / name).touch()
    os.mkfifo(code / "pipe.py")  # would never end
    assert matching(code, ("**/*.py",)) == before


def test_a_program_is_what_it_imports_and_not_what_it_writes(code: Path) -> None:
    expected = set(FILES) - {"model/unused.py", "conf/base.yaml", "runs/1/train.py"}
    assert names(with_imports([code / "train.py"], (code,)), code) == expected
    (code / "train.py").write_text("def (")
    assert names(with_imports([code / "train.py"], (code,)), code) == {"train.py"}


@pytest.mark.parametrize("change", ["edit", "add", "remove", "rename", "swap"])
def test_any_change_of_a_source_changes_the_hash(change: str, code: Path, tmp_path: Path) -> None:
    patterns = ("**/*.py",)
    pinned = digest(code, matching(code, patterns))
    code = code.rename(tmp_path / "elsewhere")
    require_same(pinned, code, matching(code, patterns))
    train, unused = code / "train.py", code / "model/unused.py"
    match change:
        case "edit":
            unused.write_text("x = 1")
        case "add":
            (code / "new.py").touch()
        case "remove":
            unused.unlink()
        case "rename":
            unused.rename(code / "model/used.py")
        case "swap":
            train.rename(code / "t")
            unused.rename(train)
            (code / "t").rename(unused)
    with pytest.raises(SetupError):
        require_same(pinned, code, matching(code, patterns))


def test_too_many_files_and_bytes_are_refused(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = matching(code, ("**/*.py",))
    monkeypatch.setattr(sources, "MOST_BYTES", 10)
    with pytest.raises(SetupError):
        digest(code, found)
    monkeypatch.setattr(sources, "MOST_FILES", 3)
    with pytest.raises(SetupError):
        matching(code, ("**/*.py",))
    with pytest.raises(SetupError):
        with_imports(found, (code,))


def test_a_source_that_is_gone_is_named(code: Path) -> None:
    with pytest.raises(SetupError, match=r"gone\.py"):
        digest(code, [code / "gone.py"])
