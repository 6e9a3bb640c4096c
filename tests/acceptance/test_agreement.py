"""Golden runs still say what they said, and every surface that shows a number shows the same one.

The expected numbers are the test's own: from the raw scores of the ledgers.
"""

import html
import itertools
import json
import math
import re
import statistics
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.books import SEARCH, Books
from tests.acceptance.product import REPOSITORY, Product

GOLDEN = REPOSITORY / "tests/golden/runs"
RUNS = sorted(path.name for path in GOLDEN.iterdir())
SEARCHES = [name for name in RUNS if Books.of(GOLDEN / name).plan["phase"] in {"phase1", "phase2"}]
NUMBER = re.compile(r"(?<![\w.])[-+−]?(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(e[-+]?\d+)?")  # noqa: RUF001


def is_close(one: Any, other: Any) -> bool:
    """Equal, floating-point numbers up to their last bits."""
    if isinstance(one, float) or isinstance(other, float):
        return isinstance(other, int | float) and math.isclose(
            one, other, rel_tol=1e-9, abs_tol=1e-12
        )
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_close(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(is_close, one, other))
    return bool(one == other)


def leaves(document: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """The numbers of a JSON document by their path of keys."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from leaves(value, f"{place}/{key}")
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from leaves(value, f"{place}/{index}")
    elif isinstance(document, int | float) and not isinstance(document, bool):
        yield place, document


def shown(text: str) -> list[tuple[float, float]]:
    """The numbers in a text: value, and by how much rounding may have moved it."""
    found = []
    for match in NUMBER.finditer(text):
        digits = (match[2] or ".")[1:]
        exponent = int((match[3] or "e0")[1:])
        value = float(match[0].replace(",", "").replace("−", "-"))  # noqa: RUF001
        found.append((abs(value), 0.5000001 * 10.0 ** (exponent - len(digits))))
    return found


def shows(text: str, value: float) -> bool:
    """Whether a text shows that number, in at least two digits or exactly. Signs may be words."""
    value = abs(value)
    return any(
        abs(number - value) <= rounding
        and (number == value or rounding < 0.06 * max(value, number))
        for number, rounding in shown(text)
    )


def as_text(page: str) -> str:
    """What a person reads of a page: no drawings, no tags."""
    page = re.sub(r"<(svg|style|title)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", page))


@pytest.mark.parametrize("name", RUNS)
def test_a_golden_run_keeps_its_essence_and_replays(product: Product, name: str) -> None:
    run = product.stored(name)

    essence = json.loads((GOLDEN / name / "essence.json").read_text())
    assert is_close(json.loads(json.dumps(Books.of(run).kept)), essence)
    product("verify", run, "--accept-drift")


@pytest.mark.parametrize("name", [name for name in RUNS if name != "campaign"])
def test_documents_show_what_the_ledger_adds_up_to(product: Product, name: str) -> None:
    run, books = product.stored(name), Books.of(GOLDEN / name)
    documents = {command: product.json(command, run) for command in ("status", "report")}
    if books.plan["phase"] in {"phase1", "phase2"} and books.candidate_means:
        documents["best"] = product.json("best", "--anyway", run)
    product("report", run, "--rebuild")
    if (run / "best.json").exists():
        documents["best.json"] = json.loads((run / "best.json").read_text())

    status = documents["status"]
    balances = {row["currency"]: row for row in status["balances"]}
    final = [attempt.status for key, attempt in books.results.items() if key[0] == SEARCH]
    assert balances["evaluations"]["spent"] == len(final)
    assert status["evaluations_by_status"] == {end: final.count(end) for end in set(final)}
    device_hours = balances["device-hours"]
    assert is_close(device_hours["spent"], (books.device_ms + books.paid_before_ms) / 3_600_000)
    held = sum(attempt.reserved_ms for attempt in books.open_attempts)
    assert is_close(device_hours["reserved"], held / 3_600_000)
    for fired, said in zip(books.fired, status["triggers"], strict=True):
        assert fired.rule in said

    numbers = {name: dict(leaves(document)) for name, document in documents.items()}
    for one, other in itertools.combinations(numbers, 2):
        for place in numbers[one].keys() & numbers[other].keys():
            pair = numbers[one][place], numbers[other][place]
            assert is_close(*pair), f"{place}: {pair} in {one} and {other}"


def facts(books: Books) -> dict[str, float]:
    """What every surface that speaks of the result must show."""
    found = {"the baseline's mean": statistics.fmean(books.baseline)}
    if books.verdict is not None and books.verdict.gain is not None:
        found["the gain in percent"] = 100 * books.verdict.gain
        if books.verdict.lower is not None:
            found["its lower bound in percent"] = 100 * books.verdict.lower
    return found


@pytest.mark.parametrize("name", [name for name in SEARCHES if Books.of(GOLDEN / name).verdict])
def test_every_surface_shows_the_numbers_of_the_verdict(product: Product, name: str) -> None:
    run, books = product.stored(name), Books.of(GOLDEN / name)
    product("report", run, "--html", "--out", "page.html")
    product("report", run, "--md", "--out", "page.md")
    surfaces = {
        "terminal": product("report", run).out,
        "Markdown": (product.folder / "page.md").read_text(),
        "page": as_text((product.folder / "page.html").read_text()),
    }
    expected = facts(books) | {"the best candidate": min(books.candidate_means.values())}
    for surface, text in surfaces.items():
        for what, value in expected.items():
            assert shows(text, value), f"{surface}: {what} is {value}"
    brief = {"status": product("status", run).out, "best": product("best", run, "--anyway").out}
    for surface, text in brief.items():
        for what, value in facts(books).items():
            if "baseline" not in what:
                assert shows(text, value), f"{surface}: {what} is {value}\n{text}"
