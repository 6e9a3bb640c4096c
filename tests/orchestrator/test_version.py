"""One version: pyproject.toml has it, the command line prints it, every ledger keeps it."""

import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from orchestrator.records.runs import Result
from orchestrator.version import version
from tests.ledgers import state_of

if TYPE_CHECKING:
    from tests.conftest import Command

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
OURS = tomllib.loads(PROJECT.read_text())["project"]["version"]


def test_the_command_line_prints_the_version(command: "Command") -> None:
    answer = command("--version")

    assert (answer.code, answer.out) == (0, f"orchestrator {OURS}\n")


def test_a_ledger_keeps_the_version_that_wrote_it(
    run_search: Callable[..., Result], tmp_path: Path
) -> None:
    result = run_search(tmp_path)

    state = state_of(result.directory)
    assert state.opened[-1].versions["orchestrator"] == OURS


def test_sources_that_are_not_installed_have_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> NoReturn:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", nothing)

    assert version() == "unknown"
