"""`ledger head` and `ledger verify` look, change nothing, and say what they saw."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from budgets.events import SCHEMA
from budgets.ledger.chain import LEDGER, read
from budgets.ledger.head import HEAD
from tests.ledgers import sealed

if TYPE_CHECKING:
    from tests.conftest import Command

Cut = Callable[..., None]


def test_head_gives_the_last_records_number_and_hash(run: Path, command: "Command") -> None:
    last = read(run / LEDGER).records[-1]
    document = orjson.loads(command("ledger", "head", run.name, "--json").out)
    text = command("ledger", "head").out
    assert (document["record"], document["head"]) == (38, last.digest)
    assert document["bytes"] == (run / LEDGER).stat().st_size
    assert (document["torn_bytes"], document["marked_record"], document["lost_records"]) == (
        0,
        38,
        0,
    )
    assert f"head           {last.digest}" in text.splitlines()
    assert "lost records   0" in text.splitlines()


def test_head_counts_what_an_older_copy_lacks_and_what_is_torn(
    run: Path, command: "Command", cut: Cut
) -> None:
    cut(run, 30, torn_bytes=50, keep_head=True)
    before = (run / LEDGER).read_bytes()
    document = orjson.loads(command("ledger", "head", "--json").out)
    assert (document["record"], document["torn_bytes"]) == (29, 50)
    assert (document["marked_record"], document["lost_records"]) == (38, 9)
    assert (run / LEDGER).read_bytes() == before


def test_head_without_a_mark_says_so(run: Path, command: "Command") -> None:
    (run / HEAD).unlink()
    assert "marked record  -" in command("ledger", "head").out.splitlines()
    assert orjson.loads(command("ledger", "head", "--json").out)["marked_record"] is None


def test_a_ledger_without_a_whole_record_has_no_head(run: Path, command: "Command") -> None:
    (run / LEDGER).write_bytes(b'{"seq":0')
    answer = command("ledger", "head", run.name)
    assert (answer.code, "holds no whole record yet" in answer.err) == (2, True)


@pytest.mark.parametrize("verb", [("verify",)], ids=" ".join)
def test_verify_says_what_held(run: Path, command: "Command", verb: tuple[str, ...]) -> None:
    answer = command(*verb, run.name)
    document = orjson.loads(command(*verb, run.name, "--json").out)
    assert answer.code == 0
    *held, head = answer.out.splitlines()
    assert [line[:6] for line in held] == ["ok    "] * 8
    assert head == f"head  {read(run / LEDGER).records[-1].digest}"
    assert (document["records"], document["divergence"], len(document["held"])) == (39, None, 8)


@pytest.mark.parametrize("verb", [("verify",)], ids=" ".join)
def test_verify_names_what_did_not_hold_and_exits_with_6(
    run: Path, command: "Command", cut: Cut, verb: tuple[str, ...]
) -> None:
    cut(run, 30, keep_head=True)
    answer = command(*verb, run.name)
    document = orjson.loads(command(*verb, run.name, "--json").out)
    assert answer.code == 6
    assert "FAIL  " in answer.out
    assert "rolled back by 9 records" in document["divergence"]


@pytest.mark.parametrize("verb", [("verify",), ("ledger", "head")])
def test_a_run_that_is_not_there_is_bad_input(command: "Command", verb: tuple[str, ...]) -> None:
    answer = command(*verb, "nowhere")
    assert (answer.code, "no run 'nowhere'" in answer.err) == (2, True)


def test_a_later_versions_ledger_is_bad_input_for_every_command(
    run: Path, command: "Command"
) -> None:
    line = orjson.loads((run / LEDGER).read_bytes().splitlines()[0])
    line["event"]["schema_version"] = SCHEMA + 1
    (run / LEDGER).write_bytes(sealed([line]))
    for verb in (("verify",), ("ledger", "head"), ("report",), ("ledger", "export")):
        answer = command(*verb, run.name)
        assert (answer.code, f"was written with ledger schema {SCHEMA + 1}" in answer.err) == (
            2,
            True,
        ), verb


def test_a_damaged_ledger_is_exit_6_with_the_command_that_saves_the_rest(
    run: Path, command: "Command"
) -> None:
    data = bytearray((run / LEDGER).read_bytes())
    data[read(run / LEDGER).records[20].offset + 60] ^= 1
    (run / LEDGER).write_bytes(data)
    for verb in ("status", "report"):
        answer = command(verb, run.name)
        assert answer.code == 6
        assert "record 20 at byte" in answer.err
        assert "python -m orchestrator ledger salvage" in answer.err
