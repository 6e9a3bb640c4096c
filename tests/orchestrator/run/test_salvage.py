"""What can be kept of a damaged ledger is kept, elsewhere, and the run goes on with it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.ledger import HEAD, LEDGER, read

if TYPE_CHECKING:
    from tests.conftest import Answer, Command

Resume = Callable[..., "Answer"]
Found = Callable[[Path], dict[str, Any]]
Harm = Callable[[Path], None]


def lines(run: Path) -> list[bytes]:
    return (run / LEDGER).read_bytes().splitlines(keepends=True)


def flip(run: Path, record: int) -> None:
    data = bytearray((run / LEDGER).read_bytes())
    data[read(run / LEDGER).records[record].offset + 60] ^= 1
    (run / LEDGER).write_bytes(data)


def cut_tail(run: Path) -> None:
    (run / LEDGER).write_bytes(b"".join(lines(run)[:24]))


def test_a_ledger_longer_than_its_head_but_another_one_is_salvaged_too(
    run: Path, command: "Command"
) -> None:
    (run / HEAD).write_bytes(orjson.dumps({"seq": 3, "h": "0" * 32}))
    refused = command("amend", run.name, "--max-hours", "9", "--reason", "to open it")
    assert (refused.code, "rolled back by 4 records" in refused.err) == (6, True)
    answer = command("verify", run.name, "--salvage", "saved")
    assert answer.code == 0, answer.err
    assert "rolled back by 4 records" in answer.out


def record_0(run: Path) -> None:
    flip(run, 0)


def nothing(run: Path) -> None:
    pass


def empty(run: Path) -> None:
    (run / LEDGER).write_bytes(b"")


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (record_0, "holds no whole record: nothing can be saved. Begin anew with: mv "),
        (empty, "holds no whole record: nothing can be saved"),
        (nothing, "is whole: there is nothing to salvage. Repeat the run's command"),
    ],
)
def test_a_run_with_nothing_to_save_is_refused(
    run: Path, command: "Command", tmp_path: Path, harm: Harm, why: str
) -> None:
    harm(run)
    answer = command("verify", run.name, "--salvage", "saved")
    assert (answer.code, why in answer.err) == (2, True), answer.err
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_an_existing_out_is_refused(
    run: Path, command: "Command", tmp_path: Path, kind: str
) -> None:
    cut_tail(run)
    saved = tmp_path / "saved"
    saved.mkdir() if kind == "directory" else saved.write_text("mine")
    answer = command("verify", run.name, "--salvage", "saved")
    assert answer.code == 2
    assert "--salvage: expected a new directory outside of " in answer.err
    assert not list(saved.iterdir()) if kind == "directory" else saved.read_text() == "mine"


# A search whose finds are compared
