"""The files that a program is, and the hashes that say whether they are still the same."""

import os
from pathlib import Path

import pytest

from objectives.api import SetupError
from objectives.program import hashes, matching, require_same, with_imports

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


def test_patterns_find_files_as_glob_does_without_what_others_installed(code: Path) -> None:
    for folder in ("__pycache__", ".git", "venv/lib", "lib/site-packages", "wandb/run"):
        (code / folder).mkdir(parents=True, exist_ok=True)
        (code / folder / "x.py").touch()
    os.mkfifo(code / "pipe.py")  # would never end
    assert names(matching(code, "/*.py"), code) == {"train.py"}
    assert names(matching(code, "**/*.py"), code) == set(FILES) - {"conf/base.yaml"}


def test_a_program_is_what_it_imports_and_not_what_it_writes(code: Path) -> None:
    expected = set(FILES) - {"model/unused.py", "conf/base.yaml", "runs/1/train.py"}
    assert names(with_imports([code / "train.py"], (code,)), code) == expected
    (code / "train.py").write_text("def (")
    assert names(with_imports([code / "train.py"], (code,)), code) == {"train.py"}


def test_any_change_of_a_pinned_file_is_refused_by_name_and_a_new_file_is_none(
    code: Path, tmp_path: Path
) -> None:
    pinned = hashes(code, matching(code, "**/*.py"))
    code = code.rename(tmp_path / "elsewhere")
    (code / "new.py").touch()
    require_same(pinned, code)
    (code / "model/unused.py").rename(code / "model/used.py")
    with pytest.raises(SetupError, match=r"model/unused\.py"):
        require_same(pinned, code)
    (code / "train.py").write_text("edited = 1")
    with pytest.raises(SetupError, match=r"model/unused\.py, train\.py"):
        require_same(pinned, code)
