"""Golden runs still say what they said, and every surface that shows a number shows the same one.

The expected numbers are the test's own: from the raw scores of the ledgers.
"""

import itertools
import json
import re
import statistics
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from tests.product.approved import APPROVED
from tests.product.books import Books
from tests.product.product import REPOSITORY, Product

GOLDEN = REPOSITORY / "tests/golden/runs"
RUNS = sorted(path.name for path in GOLDEN.iterdir())
SEARCHES = [name for name in RUNS if Books.of(GOLDEN / name).plan["phase"] in {"phase1", "phase2"}]
NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?")


def leaves(document: Any, place: str = "") -> dict[str, Any]:
    """The values of a JSON document by their path of keys."""
    if isinstance(document, list):
        document = dict(enumerate(document))
    if not isinstance(document, dict) or not document:
        return {place: document}
    inner = [leaves(value, f"{place}/{key}") for key, value in document.items()]
    return {path: value for found in inner for path, value in found.items()}


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The places that both have, with another value each, beyond a number's last bits."""
    return [
        place
        for place in one.keys() & other.keys()
        if one[place] != other[place]
        and not (isinstance(one[place], float) and one[place] == pytest.approx(other[place], 1e-9))
    ]


def shows(text: str, value: float) -> bool:
    """Whether a text shows that number, in at least two digits or exactly. Signs may be words."""
    exact = Decimal(abs(value))
    found = (Decimal(number.replace(",", "")) for number in NUMBER.findall(text))
    return any(
        number == exact or (len(number.as_tuple().digits) > 1 and exact.quantize(number) == number)
        for number in found
    )


@pytest.mark.parametrize("name", RUNS)
def test_a_golden_run_keeps_its_essence_and_is_made_again_bit_for_bit(
    product: Product, name: str
) -> None:
    run = product.stored(name)
    kept = leaves(json.loads(json.dumps(Books.of(run).kept)))
    essence = leaves(json.loads((GOLDEN / name / "essence.json").read_text()))
    assert (kept.keys(), differing(kept, essence)) == (essence.keys(), [])
    product("verify", run)


@pytest.mark.parametrize("name", [name for name in RUNS if name != "campaign"])
def test_documents_show_what_the_ledger_adds_up_to(product: Product, name: str) -> None:
    run, books = product.stored(name), Books.of(GOLDEN / name)
    documents = {command: product.json(command, run) for command in ("status", "report")}
    for document in documents.values():
        document["pace"].pop("eta", None)  # of a run that goes on it depends on the moment
    assert documents["status"] == documents["report"]
    if books.plan["phase"] in {"phase1", "phase2"} and books.candidate_means:
        documents["best"] = product.json("best", run)
    product("report --rebuild", run)
    if (run / "best.json").exists():
        documents["best.json"] = json.loads((run / "best.json").read_text())

    status = documents["status"]
    books.check(status)
    ends = Counter(attempt.status for attempt in books.results.values())
    assert status["counts"]["ok"] == ends.pop("ok", 0)
    assert status["counts"]["failed"] == ends
    for fired, said in zip(books.fired, status["triggers"], strict=True):
        assert fired.rule in said
    for one, other in itertools.combinations(map(leaves, documents.values()), 2):
        assert all(isinstance(one[place], str) for place in differing(one, other))


@pytest.mark.parametrize("name", [name for name in SEARCHES if Books.of(GOLDEN / name).verdict])
def test_every_surface_shows_the_numbers_of_the_verdict(name: str) -> None:
    """On the approved pages; `test_approved` compares those with what is printed now."""
    books = Books.of(GOLDEN / name)
    assert books.verdict is not None
    shares = [books.verdict.gain, books.verdict.lower]
    gains = [100 * share for share in shares if share is not None]
    result = [*gains, statistics.fmean(books.baseline), min(books.candidate_means.values())]
    surfaces = dict.fromkeys(("report", "markdown", "html"), result)
    surfaces |= dict.fromkeys(("status", "best"), gains)
    files = {surface: APPROVED / surface / f"{name}.txt" for surface in surfaces}
    texts = {surface: file.read_text() for surface, file in files.items() if file.exists()}
    assert {"markdown", "status", "best"} <= texts.keys()
    for surface, text in texts.items():
        assert not [value for value in surfaces[surface] if not shows(text, value)], surface


def test_best_so_far_chance_and_noise_are_of_candidates(looker: Product) -> None:
    """Where a candidate has three seeds."""
    run = "no_go_noise"
    best = min(Books.of(looker.run_directory(run)).candidate_means.values())
    report = looker.json("report", run)
    last, baseline = report["generations"][-1], report["baseline"]
    assert last["best_so_far"] == pytest.approx(best)
    band = [baseline["mean"] + sds * baseline["sd"] / 3**0.5 for sds in (-2, 2)]
    assert report["noise_band"] == pytest.approx(band)
