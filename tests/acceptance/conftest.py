"""What the acceptance suite needs: a user in a folder, who has the product's command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.product import REPOSITORY, Product, WarmStart


@pytest.fixture(scope="session")
def warm_start() -> Iterator[WarmStart]:
    warm = WarmStart()
    yield warm
    warm.close()


@pytest.fixture
def product(tmp_path: Path, warm_start: WarmStart) -> Iterator[Product]:
    folder = tmp_path / "user"
    folder.mkdir()
    user = Product(folder, warm_start)
    yield user
    user.end()


@pytest.fixture(scope="session")
def looker(tmp_path_factory: pytest.TempPathFactory, warm_start: WarmStart) -> Iterator[Product]:
    """A user who has all golden runs and only looks at them."""
    folder = tmp_path_factory.mktemp("looker") / "user"
    folder.mkdir()
    user = Product(folder, warm_start, {"TZ": "UTC"})
    for run in (REPOSITORY / "tests/golden/runs").iterdir():
        user.stored(run.name)
    yield user
    user.end()
