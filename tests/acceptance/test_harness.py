"""The suite's own tools do what the tests take for granted."""

import re

import pytest

from tests.acceptance.product import REPOSITORY, Product


@pytest.mark.parametrize("words", [("plan", "phase1"), ("status", "nothing"), ("bad",)])
def test_a_command_started_warm_prints_what_a_fresh_one_does(
    product: Product, words: tuple[str, ...]
) -> None:
    warm, fresh = (product(*words, code=None, fresh=fresh) for fresh in (False, True))
    assert (warm.code, warm.out, warm.err) == (fresh.code, fresh.out, fresh.err)


def test_the_suite_knows_the_product_from_outside() -> None:
    """No test here imports the product's inside: only what the documentation calls public."""
    inside = re.compile(
        r"^\s*(?:from|import) (?:budgets|objectives|orchestrator)\b.*", re.MULTILINE
    )
    imports = {
        line.strip()
        for file in (REPOSITORY / "tests/acceptance").rglob("*.py")
        for line in inside.findall(file.read_text())
    }
    assert imports <= {"from orchestrator import load"}
