"""`verify` finds what was done to a run, and says where."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

from budgets.events import Status
from budgets.ledger import HEAD, LEDGER, read
from orchestrator.execution.api import Attempt
from orchestrator.records.recorded import Result
from orchestrator.verification import panels as verify_panels
from orchestrator.verification.verify import verify
from tests.executors import ending, is_first
from tests.ledgers import cut, sealed

RunSearch = Callable[..., Result]
Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, run_search: RunSearch) -> Path:
    return run_search(tmp_path_factory.mktemp("finished"), settings={"noise": 0.01}).directory


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy to tamper with."""
    return Path(shutil.copytree(finished, tmp_path / finished.name))


def seal_again(run: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write `lines` with a chain that is whole: the work of somebody who knows the format."""
    (run / LEDGER).write_bytes(sealed(lines))
    (run / HEAD).unlink()
    shutil.rmtree(run / "reports")


def lines_of(run: Path) -> Lines:
    return [orjson.loads(line) for line in (run / LEDGER).read_bytes().splitlines()]


def numbers(lines: Lines, kind: str) -> list[int]:
    return [n for n, line in enumerate(lines) if line["event"]["kind"] == kind]


def test_an_untouched_run_holds_in_every_respect(run: Path) -> None:
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}

    found = verify(run)

    assert found.divergence is None
    assert [line.partition(":")[0] for line in found.held] == [
        "hash chain",
        "story",
        "accounts",
        "evaluation seeds",
        "search",
        "settlements",
        "calibration",
        "reports",
    ]
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("record", [0, 1, 17, 38])
@pytest.mark.parametrize("place", [0.0, 0.3, 0.9, 1.0], ids=["first", "middle", "hash", "newline"])
def test_a_flipped_byte_is_found_at_its_record(run: Path, record: int, place: float) -> None:
    records = read(run / LEDGER).records
    data = bytearray((run / LEDGER).read_bytes())
    data[records[record].offset + int(place * len(records[record].line))] ^= 1
    (run / LEDGER).write_bytes(data)

    divergence = verify(run).divergence

    assert divergence is not None
    if place < 1.0 or record < 38:
        assert f"record {record} at byte {records[record].offset}" in divergence
    else:  # only the last newline: the record itself is whole
        assert f"record 39 at byte {records[38].end}" in divergence


@pytest.mark.parametrize("record", [0, 1, 20, 37])
def test_a_deleted_line_is_found_where_it_is_missing(run: Path, record: int) -> None:
    records = read(run / LEDGER).records
    kept = [r.line + b"\n" for r in records if r.seq != record]
    (run / LEDGER).write_bytes(b"".join(kept))

    divergence = verify(run).divergence

    assert divergence is not None
    assert f"record {record} at byte {records[record].offset}" in divergence


@pytest.mark.parametrize("lost", [1, 5])
def test_deleted_last_lines_are_missed(run: Path, lost: int) -> None:
    cut(run, -lost, keep_head=True)

    divergence = verify(run).divergence

    assert divergence is not None
    assert f"rolled back by {lost} records" in divergence


def test_deleted_last_lines_are_missed_by_the_reports_too(run: Path) -> None:
    cut(run, -5)

    divergence = verify(run).divergence

    assert divergence is not None
    assert "gen_0001.json" in divergence


def test_swapped_lines_are_found_at_the_first_of_them(run: Path) -> None:
    records = read(run / LEDGER).records
    lines = [r.line + b"\n" for r in records]
    lines[5], lines[6] = lines[6], lines[5]
    (run / LEDGER).write_bytes(b"".join(lines))

    divergence = verify(run).divergence

    assert divergence is not None
    assert f"record 5 at byte {records[5].offset}" in divergence


def test_an_edited_score_breaks_the_chain(run: Path) -> None:
    number = numbers(lines_of(run), "settled")[3]
    lines = (run / LEDGER).read_bytes().splitlines(keepends=True)
    lines[number] = lines[number].replace(b'"score":', b'"score":0.5e-0')
    (run / LEDGER).write_bytes(b"".join(lines))

    divergence = verify(run).divergence

    assert divergence is not None
    assert f"record {number} at byte" in divergence


def test_an_edited_score_sealed_again_does_not_lead_to_the_recorded_state(run: Path) -> None:
    lines = lines_of(run)
    worst = max(numbers(lines, "settled")[:8], key=lambda n: lines[n]["event"]["score"])
    lines[worst]["event"]["score"] = 0.5
    seal_again(run, lines)

    divergence = verify(run).divergence

    assert divergence is not None
    assert "diverges at generation 0" in divergence


def test_an_edited_score_that_changes_no_rank_is_found_by_the_evaluations_own_file(
    run: Path,
) -> None:
    lines = lines_of(run)
    number = numbers(lines, "settled")[2]
    lines[number]["event"]["score"] *= 1 + 1e-12
    seal_again(run, lines)

    divergence = verify(run).divergence

    assert divergence is not None
    assert f"record {number} at byte" in divergence
    assert "summary.json" in divergence


@pytest.mark.parametrize(
    ("kind", "field", "forge"),
    [
        ("generation_told", "favourite", lambda value: [0.0] * len(value)),
        ("generation_told", "sigma", lambda value: value * (1 + 1e-12)),
        ("settled", "charged_ms", lambda value: value + 1),
        ("settled", "steps", lambda value: value + 1),
    ],
)
def test_a_forged_field_sealed_again_is_found(
    run: Path, kind: str, field: str, forge: Callable[[Any], Any]
) -> None:
    lines = lines_of(run)
    event = lines[numbers(lines, kind)[1]]["event"]
    event[field] = forge(event[field])
    seal_again(run, lines)

    divergence = verify(run).divergence

    assert divergence is not None
    assert "diverges at generation 1" in divergence or f"says {field}" in divergence


def test_a_forged_calibration_is_found_by_its_own_ledger(run: Path, finished: Path) -> None:
    shutil.copytree(finished.parent.parent / "calibration", run.parent.parent / "calibration")
    phase = run.parent / "phase1"
    phase.mkdir()
    moved = Path(shutil.move(run, phase / run.name))
    shutil.move(run.parent.parent / "calibration", run.parent / "calibration")
    honest = verify(moved)
    lines = lines_of(moved)
    lines[0]["event"]["plan"]["calibration"]["samples"][0]["score"] += 0.1
    seal_again(moved, lines)
    shutil.rmtree(moved / "eval")  # whose files know the plan that they were made for

    forged = verify(moved)

    assert honest.divergence is None
    assert any("8 samples agree" in line for line in honest.held)
    assert forged.divergence is not None
    assert "the plan's calibration is not the one in" in forged.divergence


def test_a_plan_that_its_evaluations_were_not_made_for_is_found(run: Path) -> None:
    lines = lines_of(run)
    lines[0]["event"]["plan"]["caps"]["device_hours"] = 1000.0
    seal_again(run, lines)

    divergence = verify(run).divergence

    assert divergence is not None
    assert f"record {numbers(lines, 'settled')[0]} at byte" in divergence
    assert divergence.endswith("summary.json is of another attempt")


def test_a_report_written_at_another_head_is_found(run: Path) -> None:
    path = run / "reports/gen_0000.json"
    report = orjson.loads(path.read_bytes())
    report["ledger"]["head"] = "0" * 32
    path.write_bytes(orjson.dumps(report))

    divergence = verify(run).divergence

    at = report["ledger"]["records"] - 1
    assert divergence == f"{path} was written at record {at}, which is not there"


def test_what_a_model_is_said_to_have_advised_is_made_again(
    confirmed_run: Path, place: Path
) -> None:
    run = Path(shutil.copytree(confirmed_run, place / confirmed_run.name))
    assert any("the advice of 1 models" in line for line in verify(run).held)
    lines = lines_of(run)
    event = lines[numbers(lines, "generation_told")[1]]["event"]
    event["guided"]["noise"] *= 2
    seal_again(run, lines)

    divergence = verify(run).divergence

    assert divergence is not None
    assert "diverges at generation 1" in divergence


def loses(attempt: Attempt) -> tuple[Status, str] | None:
    """Its first attempt ends as its supervisor says: lost."""
    is_lost = is_first(attempt) and attempt.directory.parent.name == "cand_0000"
    return (Status.LOST, "its node died") if is_lost else None


def test_a_loss_that_its_own_file_tells_otherwise_is_found(
    tmp_path: Path, run_search: RunSearch
) -> None:
    engine = ending(loses, on_disk=True)
    run = run_search(tmp_path, engine=engine, assumed_seconds=1.0).directory
    assert verify(run).divergence is None
    lines = lines_of(run)
    number = numbers(lines, "settled")[0]
    assert lines[number]["event"]["status"] == "lost"
    lines[number]["event"]["cause"] = "somebody killed it"
    seal_again(run, lines)

    divergence = verify(run).divergence

    assert divergence is not None
    assert f"record {number} at byte" in divergence
    assert "says cause somebody killed it instead of its node died" in divergence


@pytest.mark.parametrize("content", ["", "{}", "[]", "no json"])
def test_a_damaged_report_is_named_and_a_damaged_head_mark_is_no_matter(
    run: Path, content: str
) -> None:
    (run / HEAD).write_text(content)
    assert verify(run).divergence is None

    (run / "reports/gen_0001.json").write_text(content)
    divergence = verify(run).divergence

    assert divergence is not None
    assert "gen_0001.json is no budget report" in divergence


def test_deleted_evaluations_are_counted_not_hidden(run: Path) -> None:
    shutil.rmtree(run / "eval/gen_0000")

    found = verify(run)

    assert found.divergence is None
    assert any("8 attempts' own files agree, 8 have none" in line for line in found.held)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"search": {"seed": 2}}, "diverges at generation 0: candidate"),
        ({"search": {"sigma0": 0.21}}, "diverges at generation 0: candidate"),
        ({"evaluation_seed": 124}, "generation 0 was evaluated on seeds"),
    ],
)
def test_a_run_replayed_with_another_seed_diverges(
    run: Path, change: dict[str, Any], named: str
) -> None:
    lines = lines_of(run)
    plan = lines[0]["event"]["plan"]
    for field, value in change.items():
        plan[field] = {**plan[field], **value} if isinstance(value, dict) else value
    seal_again(run, lines)

    divergence = verify(run).divergence

    assert divergence is not None
    assert named in divergence


def test_a_settlement_left_out_and_sealed_again_is_no_possible_story(run: Path) -> None:
    lines = lines_of(run)
    number = numbers(lines, "settled")[4]
    del lines[number]
    for seq, line in enumerate(lines):
        line["seq"] = seq
    seal_again(run, lines)

    divergence = verify(run).divergence

    assert divergence is not None
    assert "cannot follow what precedes it" in divergence


def test_an_unfinished_last_line_is_named_before_anything_mends_it(run: Path) -> None:
    with (run / LEDGER).open("ab") as file:
        file.write(b'{"seq":39,"at":')

    divergence = verify(run).divergence

    assert divergence is not None
    assert "unfinished (15 bytes)" in divergence


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory, run_search: RunSearch) -> Path:
    root = tmp_path_factory.mktemp("decided")
    settings = {"noise": 0.01}
    return run_search(root, settings=settings, tier="target", max_evals=16).directory


@pytest.mark.parametrize(
    ("field", "value"), [("grade", "go_persists"), ("lower", 0.5), ("arm", "mean")]
)
def test_a_decision_that_does_not_follow_is_found(
    decided: Path, tmp_path: Path, field: str, value: object
) -> None:
    run = Path(shutil.copytree(decided, tmp_path / decided.name))
    lines = lines_of(run)
    event = lines[numbers(lines, "decided")[0]]["event"]
    event[field] = "go" if event.get(field) == value else value
    seal_again(run, lines)

    divergence = verify(run).divergence

    assert divergence is not None
    assert f"decides {field}" in divergence


def test_a_decision_may_be_put_in_other_words(decided: Path, tmp_path: Path) -> None:
    """Those of another version: an update damages no ledger."""
    run = Path(shutil.copytree(decided, tmp_path / decided.name))
    lines = lines_of(run)
    lines[numbers(lines, "decided")[0]]["event"]["evidence"] = "as an earlier version said it"
    seal_again(run, lines)

    assert verify(run).divergence is None


def test_a_decision_by_other_rules_is_not_replayed(
    decided: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify_panels, "VERDICT_VERSION", 1)
    found = verify(decided)
    assert found.divergence is None
    assert "decision: by version 2 of the rules, not replayed here" in found.held
