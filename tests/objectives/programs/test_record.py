"""`program.json`: what was started, fit to be read by others."""

import json
import stat
from pathlib import Path

import pytest

from objectives.api import CommandLine, Context
from objectives.programs.record import PROGRAM, note


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(tmp_path, "cpu", 1, lambda metrics: None)


def test_it_says_what_was_started_where_and_with_what(context: Context) -> None:
    line = CommandLine(("echo", "a b", "ä\n"), Path("/tmp"), {"WORD": "x"})  # noqa: S108
    note(line, context, {"seed": 7})
    assert json.loads((context.directory / PROGRAM).read_text()) == {
        "argv": ["echo", "a b", "ä\n"],
        "directory": "/tmp",  # noqa: S108
        "environment": {"WORD": "x"},
        "seed": 7,
    }
    assert stat.S_IMODE((context.directory / PROGRAM).stat().st_mode) == 0o600


def test_secrets_are_left_out(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "geheim123")
    environment = {"HF_TOKEN": "hf_abcdef", "URL": "https://me:word@host/", "ECHO": "geheim123"}
    note(CommandLine(("x", "--key=geheim123"), Path("/"), environment), context, {})
    text = (context.directory / PROGRAM).read_text()
    assert not [secret for secret in ("geheim123", "hf_abcdef", "word@") if secret in text]


def test_it_is_written_through_no_link(context: Context, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (context.directory / PROGRAM).symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        note(CommandLine(("x",), Path("/"), {}), context, {})
    assert (tmp_path / "victim").read_text() == "mine"
