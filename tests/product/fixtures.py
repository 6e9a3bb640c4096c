"""Users: each in a folder, with the command line of the product; some have the golden runs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.product.product import REPOSITORY, Product


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    user = Product(tmp_path / "user")
    yield user
    user.end()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A user whose runs all tests of a file look at."""
    user = Product(tmp_path_factory.mktemp("shared") / "user")
    yield user
    user.end()


@pytest.fixture(scope="session")
def looker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A user who has all golden runs and only looks at them."""
    user = Product(tmp_path_factory.mktemp("looker") / "user", {"TZ": "UTC"})
    for run in (REPOSITORY / "tests/golden/runs").iterdir():
        user.stored(run.name)
    yield user
    user.end()


@pytest.fixture(scope="session")
def page_of(looker: Product) -> Callable[[str], str]:
    """The page of a golden run, as `report --html` writes it: drawn once."""
    pages: dict[str, str] = {}

    def page(run: str) -> str:
        if run not in pages:
            pages[run] = looker("report", run, "--html", "--out", "-").out
        return pages[run]

    return page
