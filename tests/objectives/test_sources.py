"""The files that a program is."""

from pathlib import Path

import pytest

from objectives.program import with_imports

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


def test_a_program_is_what_it_imports_and_not_what_it_writes(code: Path) -> None:
    expected = set(FILES) - {"model/unused.py", "conf/base.yaml", "runs/1/train.py"}
    assert names(with_imports([code / "train.py"], (code,)), code) == expected
    (code / "train.py").write_text("def (")
    assert names(with_imports([code / "train.py"], (code,)), code) == {"train.py"}
