"""A ledger that is not what was written is refused, and nothing of it is changed or lost."""

import json
import operator
import shutil
import subprocess
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from tests.product.books import HEAD, LEDGER, Books, cut, records, sealed
from tests.product.product import Product

COMMAND = (
    "phase1 --tier target --objective sphere --set dimension=2 --set noise=0.01 --run-id mine"
    " --executor inline --workers 2 --assume-eval-seconds 1 --set search.population=6"
    " --set search.generations=3 --set verdict.confirm_seeds=5"
)
"""A model advises it; it ends with a verdict."""
Lines = list[bytes]


@pytest.fixture
def run(product: Product, shared: Product) -> Path:
    """A copy of a search that is done, in the folder of a user of this test's own."""
    if not any(shared.folder.iterdir()):
        shared(COMMAND)
    shutil.copytree(shared.folder, product.folder, dirs_exist_ok=True)
    return product.run_directory("mine")


def flipped(line: bytes) -> bytes:
    middle = len(line) // 2
    return line[:middle] + bytes([line[middle] ^ 1]) + line[middle + 1 :]


DAMAGE: dict[str, Callable[[Lines], Lines]] = {
    "a flipped bit": lambda lines: [*lines[:9], flipped(lines[9]), *lines[10:]],
    "a piece cut out of the middle": lambda lines: [*lines[:9], lines[9][:40] + lines[11][90:]],
    "two records swapped": lambda lines: [*lines[:9], lines[10], lines[9], *lines[11:]],
    "a record missing": lambda lines: [*lines[:9], *lines[10:]],
    "a record twice": lambda lines: [*lines[:10], *lines[9:]],
    "no first record": lambda lines: lines[1:],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_refused_with_its_place_and_nothing_is_changed(
    product: Product, run: Path, damage: str
) -> None:
    cut(run, 20)  # half of the search
    ledger = run / LEDGER
    found = b"".join(DAMAGE[damage](ledger.read_bytes().splitlines(keepends=True)))
    ledger.write_bytes(found)
    for words in ("verify mine", "status mine", COMMAND):
        said = product(words, code=6).text
        assert str(ledger.relative_to(product.folder)) in said.replace("\n", "")
        assert "Traceback" not in said
    assert ledger.read_bytes() == found


LIES: list[tuple[str, dict[str, Any], str]] = [  # of the last record of a kind; what gives it away
    ("settled", {"score": 1e-9}, "has score "),
    ("settled", {"score": lambda score: score * (1 + 1e-12)}, "has score "),
    ("settled", {"score": 1e308}, "settled.score"),
    ("settled", {"status": "error", "score": None, "cause": "x"}, "has status "),
    ("settled", {"charged_ms": 0}, "has charged_ms "),
    ("settled", {"steps": 7}, "has steps "),
    ("reserved", {"reserve_ms": lambda ms: ms - 1}, "has reserve_ms "),
    ("generation", {"configurations.0.point": [0.1, 0.2]}, "summary.json of another"),
    ("generation", {"configurations.0.point": [0.1]}, "every point needs 2 coordinates"),
    ("generation", {"configurations.0.knobs": {"x0": 0.5}}, "has configurations"),
    ("generation", {"seeds": 6 * [[5]]}, "has seeds ((5,), "),
    ("generation_told", {"digest": "0" * 32}, "diverges at generation 2"),
    ("generation_told", {"mean": [0.0, 0.0]}, "(asked) has configurations"),
    ("generation_told", {"sigma": lambda sigma: sigma * (1 + 1e-12)}, "diverges at generation 2"),
    ("generation_told", {"guided.sigma": 9.0}, "generation 2"),
    ("generation_told", {"guided.centre": [0.1]}, "every point needs 2 coordinates"),
    ("comparison", {"seeds": [[7], [7]]}, "has seeds ((7,), (7,))"),
    ("comparison", {"configurations": lambda arms: arms[::-1]}, "has configurations"),
    ("decided", {"grade": "go"}, "has grade go"),
    ("decided", {"lower": 0.5}, "has lower 0.5"),
    ("decided", {"point": [0.1]}, "has point (0.1,)"),
    ("planned", {"plan.search.sigma0": 0.1}, "summary.json of another"),
    ("planned", {"plan.caps.device_hours": 1000.0}, "summary.json of another"),
    ("planned", {"plan.evaluation_seed": 124}, "(asked) has seeds"),
    ("planned", {"plan.space.knobs.0.name": "../x"}, "name"),
]


def kind_of(event: dict[str, Any]) -> str:
    """What asks for evaluations is a generation or a comparison."""
    if event["kind"] == "asked":
        return "generation" if event["comparison"] is None else "comparison"
    return str(event["kind"])


def tell(run: Path, kind: str, lie: dict[str, Any]) -> None:
    """Lie as one who knows how a ledger is sealed, and leave nothing that names its head."""
    lines = json.loads(json.dumps(Books.of(run).lines))
    event = [line["event"] for line in lines if kind_of(line["event"]) == kind][-1]
    for path, said in lie.items():
        *outer, name = (int(part) if part.isdigit() else part for part in path.split("."))
        there = reduce(operator.getitem, outer, event)
        there[name] = said(there[name]) if callable(said) else said
    (run / LEDGER).write_bytes(sealed(lines))
    (run / HEAD).unlink(missing_ok=True)
    shutil.rmtree(run / "reports", ignore_errors=True)


def test_it_is_the_lie_that_is_found_and_not_who_sealed_it(product: Product, run: Path) -> None:
    tell(run, "planned", {})
    product.verify("mine")


@pytest.mark.parametrize(("kind", "lie", "said"), LIES, ids=[next(iter(lie)) for _, lie, _ in LIES])
def test_a_lie_that_is_sealed_as_it_should_be_is_found(
    product: Product, run: Path, kind: str, lie: dict[str, Any], said: str
) -> None:
    tell(run, kind, lie)
    found = product("verify mine", code=6).text
    assert said in " ".join(found.split())
    assert "Traceback" not in found
    for command in ("status", "report"):
        shown = product(command, "mine", code=None)
        assert "Traceback" not in shown.text
        assert shown.code == 0 or LEDGER in shown.err


@pytest.mark.parametrize("kind", ["settled", "comparison"])
def test_a_record_that_is_left_out_is_missed(product: Product, run: Path, kind: str) -> None:
    lines = Books.of(run).lines
    gone = next(line for line in lines if kind_of(line["event"]) == kind)
    kept = [line for line in lines if line is not gone]
    (run / LEDGER).write_bytes(sealed({**line, "seq": seq} for seq, line in enumerate(kept)))
    (run / HEAD).unlink()
    product("verify mine", code=6)


def test_a_search_that_does_not_come_back_to_where_it_stood_is_not_continued(
    product: Product, run: Path
) -> None:
    cut(run, 30)
    tell(run, "generation_told", {"digest": "0" * 32})
    product(COMMAND, code=6)
    assert records(run) == 30


def test_what_is_whole_of_a_damaged_ledger_is_salvaged_and_the_search_ends_as_it_would_have(
    product: Product, run: Path
) -> None:
    whole, ledger = Books.of(run).essence, run / LEDGER
    lines = ledger.read_bytes().splitlines(keepends=True)

    ledger.write_bytes(b"")
    product(COMMAND, code=6)  # it does not start again beside what was paid
    older = b"".join(lines[:-1])  # the record that it lacks was paid for
    for damaged in (older, b"".join([*lines[:29], flipped(lines[29]), *lines[30:]])):
        ledger.write_bytes(damaged)
        for words in ("verify mine", COMMAND):
            assert "salvage" in product(words, code=6).text
        assert ledger.read_bytes() == damaged

    product("verify mine --salvage", run.with_name("saved"))
    assert ledger.read_bytes() == damaged
    run.rename(run.with_name("damaged"))
    run.with_name("saved").rename(run)
    product(COMMAND)
    books = Books.of(run)
    assert books.essence == whole
    assert {attempt.number for attempt in books.results.values()} == {1}
    product.verify("mine")


@pytest.mark.parametrize("moment", ["unreserved", "reserved", "started"])
def test_an_attempt_costs_nothing_until_it_is_asked_for_and_may_then_cost_its_worst_case(
    product: Product, run: Path, moment: str
) -> None:
    """Its directory cannot be made; its configuration is not complete; it has started."""
    whole, lost = Books.of(run), int(moment != "unreserved")
    cut(run, [line["event"]["kind"] for line in whole.lines].index("reserved") + lost)
    config = next(run.glob("eval/gen_0000/cand_0000/*/config.json"))
    left = {path: path.read_bytes() for path in (config, config.with_name("started.json"))}
    shutil.rmtree(run / "eval")
    if moment == "unreserved":
        (run / "eval").write_text("in the way")
        product(COMMAND, code=8)
        assert Books.of(run).attempts == []
        (run / "eval").unlink()

    config.parent.mkdir(parents=True)
    for path, data in left.items() if moment == "started" else ():
        path.write_bytes(data)
    config.with_name(".config.json.1.tmp").write_bytes(left[config][:100])
    product(COMMAND)
    attempts = Books.of(run).attempts
    charge = attempts[0].reserved_ms if moment == "started" else 0
    assert [one.charged_ms for one in attempts if one.status == "lost"] == [charge] * lost
    assert len(attempts) == len(whole.attempts) + lost
    assert Books.of(run).essence == whole.essence
    product.verify("mine")


def test_the_result_of_a_supervisor_that_still_runs_is_waited_for(
    product: Product, run: Path
) -> None:
    whole = Books.of(run)
    cut(run, [line["event"]["kind"] for line in whole.lines].index("reserved") + 1)
    summary = next(run.glob("eval/gen_0000/cand_0000/*/summary.json"))
    late = summary.rename(summary.with_name("late.json"))
    script = f"echo; sleep 3; mv {late} {summary}"
    words = ["flock", str(summary.with_name("supervisor.lock")), "sh", "-c", script]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        supervisor.stdout.readline()  # it holds the lock
        product(COMMAND)
    assert sorted(Books.of(run).attempts) == sorted(whole.attempts)
