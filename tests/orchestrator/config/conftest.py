"""Configuration files, and what they and the command line amount to."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from typer import Context
from typer.main import get_command

from orchestrator.cli.options import (
    FOLLOWING,
    SEARCH,
    Asked,
    ConfigurationFile,
    asked_for_file,
    taking,
)
from orchestrator.config import Config, Layers, resolve

SPHERE = """
objective = "sphere"
[training]
dimension = 2
[search]
tier = "min"
[evaluation]
assume_eval_seconds = 1.0
[backend]
executor = "inline"
workers = 1
"""
"""A search that takes a moment, as a file."""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write(text, name="run.toml")`: that file, in the test's own directory."""

    def write_text(text: str = SPHERE, name: str = "run.toml") -> Path:
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return file

    return write_text


@pytest.fixture
def resolved(write: Write) -> Callable[..., Config]:
    """`resolved(text, sets, flags=...)`: what such a file comes to."""

    def of(text: str = SPHERE, sets: Sequence[str] = (), **given: Any) -> Config:
        return resolve(Layers(file=write(text), assignments=sets, **given))

    return of


@pytest.fixture
def typed() -> Callable[..., Asked]:
    """`typed(file, "--seed", "5")`: what `orchestrator run` is asked for by that command line."""

    def ask(*arguments: str | Path) -> Asked:
        heard: list[Asked] = []
        app = typer.Typer()

        @app.command()
        @taking(FOLLOWING, SEARCH)
        def run(context: Context, file: ConfigurationFile) -> None:
            heard.append(asked_for_file(context, file, as_json=False))

        get_command(app).main([str(a) for a in arguments], standalone_mode=False)
        return heard[0]

    return ask
