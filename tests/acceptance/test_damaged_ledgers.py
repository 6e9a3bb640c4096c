"""A ledger that is not what was written is refused, and nothing of it is changed or lost."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.books import HEAD, LEDGER, Books, cut, sealed
from tests.acceptance.product import Product, WarmStart

SPHERE = ("phase1", "--tier", "min", "--objective", "sphere", "--set", "noise=0.01")
SEARCH = (*SPHERE, "--executor", "inline", "--assume-eval-seconds", "1", "--run-id", "mine")
Lines = list[bytes]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, warm_start: WarmStart) -> Iterator[Path]:
    """The folder of a user whose search is done."""
    folder = tmp_path_factory.mktemp("finished") / "user"
    folder.mkdir()
    user = Product(folder, warm_start)
    user(*SEARCH)
    user.verify("mine")
    yield folder
    user.end()


@pytest.fixture
def run(product: Product, finished: Path) -> Path:
    """A copy of that search, in the folder of a user of this test's own."""
    shutil.copytree(finished, product.folder, dirs_exist_ok=True)
    return product.run_directory("mine")


def flipped(lines: Lines) -> Lines:
    line = bytearray(lines[9])
    line[len(line) // 2] ^= 1
    return [*lines[:9], bytes(line), *lines[10:]]


DAMAGE: dict[str, Callable[[Lines], Lines]] = {
    "a flipped bit": flipped,
    "a piece cut out of the middle": lambda lines: [*lines[:9], lines[9][:40] + lines[11][90:]],
    "two records swapped": lambda lines: [*lines[:9], lines[10], lines[9], *lines[11:]],
    "a record missing": lambda lines: [*lines[:9], *lines[10:]],
    "a record twice": lambda lines: [*lines[:10], *lines[9:]],
    "another end of line": lambda lines: [line[:-1] + b"\r\n" for line in lines],
    "a mark before the first byte": lambda lines: [b"\xef\xbb\xbf" + lines[0], *lines[1:]],
    "no first record": lambda lines: lines[1:],
    "rubbish": lambda _: [b"rubbish\n"] * 100,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_refused_with_its_place_and_nothing_is_changed(
    product: Product, run: Path, damage: str
) -> None:
    cut(run, 20)  # half of the search
    ledger = run / LEDGER
    found = b"".join(DAMAGE[damage](ledger.read_bytes().splitlines(keepends=True)))
    ledger.write_bytes(found)

    for words in (("verify", "mine"), ("status", "mine"), SEARCH):
        said = product(*words, code=6).text
        assert str(ledger.relative_to(product.folder)) in said.replace("\n", "")
        assert "Traceback" not in said
    assert ledger.read_bytes() == found


Events = list[dict[str, Any]]
Edit = Callable[[Events], None]


def first(events: Events, kind: str) -> dict[str, Any]:
    return next(event for event in events if event["kind"] == kind)


def taken_out(events: Events) -> None:
    """An evaluation vanishes, with its price."""
    del events[events.index(first(events, "reserved"))]
    del events[events.index(first(events, "settled"))]


def another_point(events: Events) -> None:
    asked = first(events, "generation_asked")
    asked["points"][0][0] = 1 - asked["points"][0][0]


FAILED = {"status": "error", "score": None, "cause": "x"}
LIES: dict[str, Edit] = {
    "a better score": lambda events: first(events, "settled").update(score=1e-9),
    "a failure": lambda events: first(events, "settled").update(FAILED),
    "a smaller charge": lambda events: first(events, "settled").update(charged_ms=0),
    "a smaller reservation": lambda events: first(events, "reserved").update(reserve_ms=1),
    "another point": another_point,
    "another seed": lambda events: first(events, "generation_asked").update(seeds=[5]),
    "an evaluation left out": taken_out,
    "another digest": lambda events: first(events, "generation_told").update(digest="0" * 32),
    "another search": lambda events: events[0]["plan"]["search"].update(sigma0=0.1),
    "a score nobody can compute with": lambda events: first(events, "settled").update(score=1e308),
}


def edited(run: Path, edit: Edit) -> None:
    """Lie as one who knows how a ledger is sealed, and leave nothing that names its head."""
    lines = list(Books.of(run).lines)
    events = [line["event"] for line in lines]
    edit(events)
    fewer = lines[: len(events)]
    (run / LEDGER).write_bytes(
        sealed({**line, "event": event} for line, event in zip(fewer, events, strict=True))
    )
    (run / HEAD).unlink(missing_ok=True)
    shutil.rmtree(run / "reports", ignore_errors=True)


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_that_is_sealed_as_it_should_be_is_found(
    product: Product, run: Path, lie: str
) -> None:
    edited(run, lambda _: None)
    product.verify("mine")  # it is the lie that is found, not who sealed it
    edited(run, LIES[lie])
    assert "Traceback" not in product("verify", "mine", code=6).text


def test_a_score_that_nobody_can_compute_with_ends_no_command_in_a_traceback(
    product: Product, run: Path
) -> None:
    edited(run, LIES["a score nobody can compute with"])
    for command in ("status", "report", "best"):
        assert "Traceback" not in product(command, "mine", code=6).text


@pytest.mark.parametrize("records", [1, 5])
def test_an_older_copy_of_a_ledger_is_refused_where_its_head_is_known(
    product: Product, run: Path, records: int
) -> None:
    """The records that it lacks were paid for."""
    lines = (run / LEDGER).read_bytes().splitlines(keepends=True)
    (run / LEDGER).write_bytes(b"".join(lines[:-records]))
    older = (run / LEDGER).read_bytes()

    for words in (("verify", "mine"), SEARCH):
        assert "salvage" in product(*words, code=6).text
    assert (run / LEDGER).read_bytes() == older


def test_what_is_whole_of_a_damaged_ledger_is_salvaged_and_the_search_ends_as_it_would_have(
    product: Product, run: Path
) -> None:
    whole = Books.of(run).essence
    lines = (run / LEDGER).read_bytes().splitlines(keepends=True)
    (run / LEDGER).write_bytes(b"".join([*lines[:20], flipped(lines[20:])[9], *lines[30:]]))
    damaged = (run / LEDGER).read_bytes()

    product("ledger", "salvage", "mine", "--out", run.with_name("saved"))
    assert (run / LEDGER).read_bytes() == damaged
    run.rename(run.with_name("damaged"))
    run.with_name("saved").rename(run)
    product(*SEARCH)

    books = Books.of(run)
    assert books.essence == whole
    assert [attempt.number for attempt in books.results.values()] == [1] * 16
    product.verify("mine")


def unreserved(run: Path) -> int:
    """How many records come before the first reservation."""
    kinds = [line["event"]["kind"] for line in Books.of(run).lines]
    return kinds.index("reserved")


@pytest.mark.parametrize("written", ["nothing", "half of its configuration"])
@pytest.mark.parametrize("reserved", [False, True])
def test_an_attempt_that_was_never_asked_for_costs_nothing(
    product: Product, run: Path, written: str, reserved: bool
) -> None:
    whole = Books.of(run).essence
    cut(run, unreserved(run) + reserved)
    config = next(run.glob("eval/gen_0000/cand_0000/*/config.json"))
    data = config.read_bytes()
    shutil.rmtree(run / "eval")
    config.parent.mkdir(parents=True)
    if written != "nothing":
        config.write_bytes(data[: len(data) // 2])

    product(*SEARCH)

    attempts = Books.of(run).attempts
    assert [one.charged_ms for one in attempts if one.status == "lost"] == [0] * reserved
    assert len(attempts) == 16 + reserved
    assert Books.of(run).essence == whole
    product.verify("mine")


def test_nothing_is_set_aside_for_an_attempt_that_has_no_place(product: Product, run: Path) -> None:
    """Who dies between making an attempt's directory and its reservation owes nothing."""
    cut(run, unreserved(run))
    shutil.rmtree(run / "eval")
    (run / "eval").mkdir()
    (run / "eval" / "gen_0000").write_text("in the way")

    product(*SEARCH, code=8)
    assert Books.of(run).attempts == []

    (run / "eval" / "gen_0000").unlink()
    product(*SEARCH)
    product.verify("mine")
