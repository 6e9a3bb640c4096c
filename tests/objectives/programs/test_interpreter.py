"""Other interpreters, asked what they have."""

import platform
import sys
from importlib import metadata
from pathlib import Path

import pytest

from objectives.api import SetupError
from objectives.programs.interpreter import is_python, versions


def test_an_interpreter_says_its_version_and_those_of_packages() -> None:
    found = versions(sys.executable)
    assert found["python"] == platform.python_version()
    assert found["numpy"] == metadata.version("numpy")
    assert "jax" not in found


def test_no_file_of_the_users_passes_for_the_standard_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('not me')")
    (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    assert versions("./python")["python"] == platform.python_version()


def test_a_program_that_answers_otherwise_is_none(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    with pytest.raises(SetupError, match=r"expected a Python interpreter, got .*setting argv"):
        versions(str(program), "argv")


def test_a_program_that_is_missing_is_none(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"No such file or directory.*setting python"):
        versions(str(tmp_path / "python"))


@pytest.mark.parametrize(
    "program", ["python", "python3", "/opt/venv/bin/python3.12", "./python3.13t", "pypy3"]
)
def test_what_is_called_as_pythons_are_is_one(program: str) -> None:
    assert is_python(program)


@pytest.mark.parametrize("program", ["python-config", "pythonic", "/opt/python/train", "uv", "sh"])
def test_what_is_called_otherwise_is_none(program: str) -> None:
    assert not is_python(program)
