"""The files that a program is."""

from pathlib import Path

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


def test_a_program_is_what_it_imports_and_not_what_it_writes(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    expected = set(FILES) - {"model/unused.py", "conf/base.yaml", "runs/1/train.py"}
    program = tmp_path / "train.py"
    assert with_imports([program], (tmp_path,)) == {tmp_path / name for name in expected}
    program.write_text("def (")
    assert with_imports([program], (tmp_path,)) == {program}
