"""The documents: their links lead somewhere, and they name what there is."""

import re
import tomllib
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from budgets.events import Event
from budgets.plan import Thresholds
from budgets.rules import DECISIONS, OVERRIDABLE
from orchestrator.cli.app import program
from orchestrator.config import SECTIONS

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
NAMING = [
    *(path for path in DOCUMENTS if path.name != "CHANGELOG.md"),  # it also names what is gone
    ROOT / "pyproject.toml",
]
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_to_a_file(document: Path) -> None:
    links = [link for link, _ in LINK.findall(document.read_text())]
    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", NAMING, ids=lambda path: path.name)
def test_every_path_of_ours_leads_to_a_file(document: Path) -> None:
    """A folder, a file, a pattern, a module without its `.py`, or a file or function of tests."""
    text, tests = document.read_text(), _tests()
    named = re.findall(r"\b(?:budgets|objectives|orchestrator|scripts)/[\w/.*-]*[\w/*]", text)
    named += re.findall(r"(?:\w+/)*\btest_\w+", text)
    places = [ROOT, ROOT / "tests"]
    lost = [name for name in named if not _found(name.removeprefix("tests/"), *places)]
    assert [name for name in lost if f"def {name}(" not in tests] == []


def _found(name: str, *places: Path) -> bool:
    names = [name, *([] if "*" in name else [f"{name}.py"])]
    return any(any(place.glob(one)) for place in places for one in names)


@cache
def _tests() -> str:
    return "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))


def test_the_readme_leads_to_every_document() -> None:
    linked = {link for link, _ in LINK.findall((ROOT / "README.md").read_text())}
    assert {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} <= linked


def _commands() -> list[str]:
    commands = getattr(program(is_whole=True), "commands")  # noqa: B009 - typer's type does not say so
    return [name for name, command in commands.items() if not command.hidden]


def _packages() -> list[str]:
    inits = (path for path in ROOT.glob("*/*/__init__.py") if "tests" not in path.parts)
    return [path.parent.name for path in inits]


def _keys_and_events() -> list[str]:
    keys = [key for table in SECTIONS.values() for key in table.model_fields]
    return keys + [event.model_fields["kind"].default for event in get_args(Event)]


@pytest.mark.parametrize(
    ("document", "names", "least"),
    [
        ("README.md", _commands, 10),
        ("docs/structure.md", _packages, 8),
        ("docs/reference.md", _keys_and_events, 50),
    ],
)
def test_a_document_names_all_that_there_is(
    document: str, names: Callable[[], list[str]], least: int
) -> None:
    text, every = (ROOT / document).read_text(), names()
    assert len(every) >= least
    assert [name for name in every if not re.search(rf"`{name}[` ]", text)] == []


def test_the_rules_page_has_every_rule_and_its_limits() -> None:
    text = (ROOT / "docs/reference.md").read_text()
    for name, decision in DECISIONS.items():
        row = text[text.index(f"| {name} |") :].partition("\n")[0]
        way_on = "can be overridden" if name in OVERRIDABLE else "no override"
        assert row.endswith(f"| {decision}, {way_on} |")
    limits = {name: 0 if value is None else value for name, value in Thresholds()}
    said = [f"`{name}` {value:g}" if value else f"`{name}` none" for name, value in limits.items()]
    assert [one for one in said if one not in text] == []


def test_the_layers_of_the_structure_are_those_that_are_checked() -> None:
    """In the same order, from the top."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (one["layers"] for one in contracts["contracts"] if one["type"] == "layers")
    text = (ROOT / "docs/structure.md").read_text()
    table = text[text.index("| layer | packages |") :]
    for above, below in pairwise(layers):
        for upper in above.split(" | "):
            for lower in below.split(" | "):
                assert table.index(f"`{upper}`") < table.index(f"`{lower}`")
