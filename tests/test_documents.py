"""The documents: their links lead somewhere, and they name what there is."""

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from typer.main import get_command

from orchestrator.cli.entry import app

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_to_a_file(document: Path) -> None:
    links = [link for link, _ in LINK.findall(document.read_text())]
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_the_readme_leads_to_every_document() -> None:
    linked = {link for link, _ in LINK.findall((ROOT / "README.md").read_text())}
    assert {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} <= linked


def test_the_readme_names_every_command() -> None:
    text = (ROOT / "README.md").read_text()
    commands = getattr(get_command(app), "commands")  # noqa: B009 - typer's type does not say so
    shown = [name for name, command in commands.items() if not command.hidden]
    assert shown
    assert [name for name in shown if f"`{name}" not in text] == []


def test_the_structure_names_every_package() -> None:
    text = (ROOT / "docs/structure.md").read_text()
    packages = [
        path.parent.name for path in ROOT.glob("*/*/__init__.py") if "tests" not in path.parts
    ]
    assert len(packages) > 20
    assert [name for name in packages if f"`{name}" not in text] == []


def test_the_layers_of_the_structure_are_those_that_are_checked() -> None:
    """In the same order, from the top."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (one["layers"] for one in contracts["contracts"] if one["type"] == "layers")
    text = (ROOT / "docs/structure.md").read_text()
    table = text[text.index("| layer | packages |") :]
    for above, below in pairwise(layers):
        for upper in above.split(" | "):
            for lower in below.split(" | "):
                if lower != "version":
                    assert table.index(f"`{upper}`") < table.index(f"`{lower}`")


def test_the_glossary_is_in_alphabetical_order() -> None:
    text = (ROOT / "docs/glossary.md").read_text()
    terms = re.findall(r"^\| \*\*(.+?)\*\*", text, re.MULTILINE)
    assert len(terms) > 40
    assert terms == sorted(terms, key=str.lower)
