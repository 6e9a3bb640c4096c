"""What a release must have before it is built: `scripts/check_release` looks at what was built."""

import re
import tomllib
from datetime import date
from fnmatch import fnmatch
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def test_the_changelog_begins_with_what_is_unreleased_then_this_version() -> None:
    text = (REPOSITORY / "CHANGELOG.md").read_text()

    first, second, *_ = re.findall(r"^## (.+)$", text, re.MULTILINE)
    version, day = second.split(" - ")
    assert first == "[Unreleased]"
    assert version == f"[{PROJECT['project']['version']}]"
    assert date.fromisoformat(day)


def test_every_file_of_a_package_that_is_no_module_is_shipped() -> None:
    shipped = PROJECT["tool"]["setuptools"]["package-data"]
    patterns = [
        f"{package.replace('.', '/')}/{name}"
        for package, names in shipped.items()
        for name in names
    ]
    files = [
        str(path.relative_to(REPOSITORY))
        for package in ("budgets", "objectives", "orchestrator")
        for path in (REPOSITORY / package).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    ]

    assert files
    assert [f for f in files if not any(fnmatch(f, pattern) for pattern in patterns)] == []
