"""What the acceptance suite needs: a user in a folder, who has the product's command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.product import Product, WarmStart


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
