"""Ledgers of schema 1 are read, and go on under schema 2."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from pydantic import ValidationError

from budgets.events import (
    SCHEMA,
    Event,
    Late,
    Opened,
    Planned,
    Salvaged,
    Status,
    Withdrawn,
)
from budgets.events import fields as fields_of
from budgets.fold import fold
from budgets.ledger import upcast as upcasting
from budgets.ledger.chain import LEDGER, LedgerTooNewError, RecordCorruptError, read

if TYPE_CHECKING:
    from tests.budgets.conftest import Disk, MakePlan

AT = "2030-01-01T00:00:00.000+00:00"
GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("schema_1*"))

WORDS_OF_2: list[Event] = [
    Late(generation=0, candidate=0, seed=5, attempt=1, status=Status.LOST, score=None, seconds=1.0,
         charged_ms=0),
    Withdrawn(device="0", why="it is not free"),
    Salvaged(lost_records=1, lost_bytes=2, why="so"),
]  # fmt: skip


def write(path: Path, *events: dict[str, Any]) -> Path:
    """A ledger whose hashes are right, whatever it says."""
    previous, data = "", b""
    for seq, event in enumerate(events):
        body = orjson.dumps({"seq": seq, "at": AT, "elapsed_ms": seq, "event": event})[:-1]
        previous = hashlib.sha256(previous.encode() + body).hexdigest()[:32]
        data += body + b',"h":"' + previous.encode() + b'"}\n'
    path.write_bytes(data)
    return path


def without(event: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in names}


def plan_of_1(make_plan: "MakePlan") -> dict[str, Any]:
    """A first record as schema 1 wrote it: no parent, no window, no provenance yet."""
    event = fields_of(Planned(plan=make_plan(), schema_version=1))
    plan = without(event["plan"], "parent", "provenance")
    return {**event, "plan": {**plan, "caps": without(plan["caps"], "window")}}


def session_of_1(opened: Opened) -> dict[str, Any]:
    return without(fields_of(opened), "schema_version")


def session_of(schema: Any, opened: Opened) -> dict[str, Any]:
    return {**fields_of(opened), "schema_version": schema}


@pytest.fixture
def opened(whole: list[Event]) -> Opened:
    assert isinstance(whole[1], Opened)
    return whole[1]


@pytest.mark.parametrize("directory", GOLDEN, ids=lambda path: path.name)
def test_a_golden_ledger_of_schema_1_is_read_through_the_upcast_alone(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = read(directory / LEDGER).records
    first = records[0].event
    assert isinstance(first, Planned)
    assert (first.schema_version, first.plan.parent) == (1, None)
    monkeypatch.setattr(upcasting, "_from_1", lambda event: event)
    with pytest.raises(
        RecordCorruptError, match=r"record 0 at byte 0: .*plan\.(provenance|parent)"
    ):
        read(directory / LEDGER)


def test_what_schema_1_did_not_say_is_said_by_its_defaults(
    tmp_path: Path, make_plan: "MakePlan", opened: Opened
) -> None:
    path = write(tmp_path / LEDGER, plan_of_1(make_plan), session_of_1(opened))
    state = fold(read(path).records)
    assert state.plan == make_plan()
    assert state.opened[0].schema_version == 1
    assert state.accounts.window_hours_free is None


def test_a_plan_of_schema_2_must_say_all_of_it(tmp_path: Path, make_plan: "MakePlan") -> None:
    event = {**plan_of_1(make_plan), "schema_version": 2}
    with pytest.raises(
        RecordCorruptError, match=r"no event of schema 2: planned\.plan\.provenance"
    ):
        read(write(tmp_path / LEDGER, event))


@pytest.mark.parametrize("word", WORDS_OF_2, ids=lambda event: event.kind)
def test_a_session_of_schema_2_follows_in_a_ledger_begun_under_1(
    tmp_path: Path, make_plan: "MakePlan", opened: Opened, word: Event
) -> None:
    events = (plan_of_1(make_plan), session_of_1(opened), session_of(2, opened), fields_of(word))
    assert [r.event.kind for r in read(write(tmp_path / LEDGER, *events)).records][2:] == [
        "opened",
        word.kind,
    ]


def test_a_ledger_of_schema_1_is_appended_to_and_never_rewritten(
    disk: "Disk", make_plan: "MakePlan", opened: Opened
) -> None:
    path = write(disk.directory() / LEDGER, plan_of_1(make_plan), session_of_1(opened))
    before = path.read_bytes()
    with disk.open() as ledger:
        ledger.append(ledger.seal(opened))
    assert path.read_bytes().startswith(before)
    records = read(path).records
    assert [r.event.schema_version for r in records if isinstance(r.event, Opened)] == [1, SCHEMA]


@pytest.mark.parametrize("schema", [SCHEMA + 1, 99, 0, -1, "2", None, 2.5])
@pytest.mark.parametrize("place", [0, 2], ids=["plan", "session"])
def test_a_record_of_a_newer_schema_is_refused_and_nothing_is_changed(
    disk: "Disk", make_plan: "MakePlan", opened: Opened, schema: Any, place: int
) -> None:
    events = [plan_of_1(make_plan), session_of_1(opened), session_of(2, opened)]
    events[place] = {**events[place], "schema_version": schema}
    path = write(disk.directory() / LEDGER, *events)
    before = path.read_bytes()
    with pytest.raises(LedgerTooNewError, match=rf"up to schema {SCHEMA}\. Upgrade with: pip"):
        disk.open()
    assert path.read_bytes() == before
    assert isinstance(LedgerTooNewError(path, ""), ValueError)  # bad input: exit 2


@pytest.mark.parametrize("sessions", [1, 2])
def test_a_word_nobody_knows_is_one_of_a_later_version(
    tmp_path: Path, make_plan: "MakePlan", opened: Opened, sessions: int
) -> None:
    opens = [session_of_1(opened), session_of(2, opened)][:sessions]
    path = write(tmp_path / LEDGER, plan_of_1(make_plan), *opens, {"kind": "moved", "to": "x"})
    with pytest.raises(LedgerTooNewError, match=rf"kind 'moved' \(record {sessions + 1} at byte"):
        read(path)


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ({"kind": "concluded"}, "reason Field required"),
        ({"kind": "concluded", "reason": "so", "more": 1}, "more"),
        ({"reason": "so"}, "Unable to extract tag"),
    ],
)
def test_a_known_word_that_says_something_else_is_damage(
    tmp_path: Path, make_plan: "MakePlan", opened: Opened, event: dict[str, Any], why: str
) -> None:
    path = write(tmp_path / LEDGER, plan_of_1(make_plan), session_of(2, opened), event)
    with pytest.raises(RecordCorruptError, match=f"sealed, but no event of schema 2: .*{why}"):
        read(path)


def test_an_upcast_checks_what_it_is_given() -> None:
    with pytest.raises(ValidationError):
        upcasting.upcast(b'{"kind":"planned"}', 1)
