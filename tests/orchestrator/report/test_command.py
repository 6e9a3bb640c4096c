"""`report` as a person types it."""

import os
import stat
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

import orjson
import pytest

from tests.orchestrator.campaign.conftest import SEARCHES

if TYPE_CHECKING:
    from tests.conftest import Command

SPHERE = ("--objective", "sphere", "--workers", "1", "--executor", "inline")
RUN = "artifacts/cmaes/phase1/min-sphere-s1"


@pytest.fixture
def searched(run: Path, tmp_path: Path) -> Path:
    """A finished search where the command line finds it."""
    return run


def test_rebuild_writes_deleted_files_again(command: "Command", searched: Path) -> None:
    summary = searched / "summary.md"
    text = summary.read_text()
    summary.unlink()
    assert command("report", "--rebuild").code == 0
    assert summary.read_text() == text


def test_a_page_lies_in_the_runs_own_reports(command: "Command", searched: Path) -> None:
    answer = command("report", searched.name, "--html")
    path = searched / "reports/report.html"
    assert answer.code == 0, answer.err
    assert answer.out.splitlines()[0].endswith("reports/report.html")
    assert path.resolve().as_uri() in answer.out
    assert path.read_text().startswith("<!doctype html>")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in path.parent.iterdir() if p.name.endswith(".tmp")] == []


def test_a_page_is_written_anew_over_an_older_one(command: "Command", searched: Path) -> None:
    path = searched / "reports/report.html"
    command("report", "--html")
    first = path.read_bytes()
    path.write_text("old")
    command("report", "--html")
    assert path.read_bytes() == first


def test_markdown_lies_beside_it(command: "Command", searched: Path) -> None:
    assert command("report", "--md").code == 0
    assert (searched / "reports/report.md").read_text().startswith(f"# {searched.name}: ")


@pytest.mark.parametrize(("option", "begins"), [("--html", "<!doctype html>"), ("--md", "# ")])
def test_a_report_goes_where_it_is_sent(
    command: "Command", searched: Path, tmp_path: Path, option: str, begins: str
) -> None:
    name = f"mine.{option.removeprefix('--')}"
    assert command("report", option, "--out", name).code == 0
    assert (tmp_path / name).read_text().startswith(begins)
    assert not (searched / f"reports/report{Path(name).suffix}").exists()


def test_a_dash_prints_it(command: "Command", searched: Path) -> None:
    answer = command("report", "--html", "-o", "-")
    assert answer.out.startswith("<!doctype html>")
    assert answer.out.rstrip().endswith("</html>")


def test_as_json_it_names_the_file(command: "Command", searched: Path) -> None:
    found = orjson.loads(command("report", "--html", "--json").out)
    assert found["bytes"] == Path(found["file"]).stat().st_size
    assert found["url"].startswith("file:///")


def test_json_has_all_there_is(command: "Command", searched: Path) -> None:
    found = orjson.loads(command("report", "--json").out)
    assert found["run_id"] == searched.name
    assert found["answer"]["title"] == "Smoke test over, 1 of 16 failed"
    assert len(found["evaluations"]) == 16


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--html --md", "one at a time"),
        ("--html --png scores", "one at a time"),
        ("--out x.html", "add --html"),
        ("--html --out .", "is a directory: name a file in it"),
        ("--html --out nowhere/x.html", "is no directory: make it"),
        (f"--html --out {RUN}/ledger.jsonl", "with --html expected a name that ends with .html or"),
        (f"--md --out {RUN}/run.json", "ends with .md or .markdown or .txt, got"),
        ("--html --out /dev/null", "got /dev/null: name another file"),
        ("--html --out x.pdf", "got x.pdf: name another file"),
        ("--html --out - --json", "prints the report itself"),
        ("--png scores --out -", "not for a terminal"),
        ("--png nothing", "expected one of scores"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    command: "Command", searched: Path, tmp_path: Path, words: str, said: str
) -> None:
    rmtree(searched / "reports")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    answer = command("report", searched.name, *words.replace(RUN, str(searched)).split())
    assert answer.code == 2
    assert said in answer.err
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("place", ["reports", "reports/report.html"])
def test_a_link_is_not_followed(
    command: "Command", searched: Path, tmp_path: Path, place: str
) -> None:
    precious = tmp_path / "precious"
    if place == "reports":
        (searched / place).rename(precious)
    else:
        precious.write_text("mine")
    (searched / place).symlink_to(precious)
    before = precious.stat().st_mtime_ns
    answer = command("report", "--html")
    assert answer.code == 2
    assert "link" in answer.err or "plain file" in answer.err
    assert precious.stat().st_mtime_ns == before


def test_where_nothing_can_be_written_the_disk_is_named(
    command: "Command", searched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path, __: bytes) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("orchestrator.report.written.write_aside", full)
    answer = command("report", "--html")
    assert answer.code == 8
    assert "Make room" in answer.err


def test_a_damaged_ledger_has_no_page(command: "Command", searched: Path) -> None:
    ledger = searched / "ledger.jsonl"
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join([*lines[:5], lines[5].replace(b"1", b"2"), *lines[6:]]))
    answer = command("report", searched.name, "--html")
    assert answer.code == 6
    assert not (searched / "reports/report.html").exists()


@pytest.mark.needs("matplotlib")
def test_single_plots_are_drawn(command: "Command", searched: Path, tmp_path: Path) -> None:
    answer = command("report", "--png", "scores", "--pdf", "budget")
    assert answer.code == 0, answer.err
    assert (searched / "reports/scores.png").read_bytes().startswith(b"\x89PNG")
    assert (searched / "reports/budget.pdf").read_bytes().startswith(b"%PDF")
    found = orjson.loads(command("report", "--png", "scores", "--out", "s.png", "--json").out)
    assert found == {"files": ["s.png"]}
    assert (tmp_path / "s.png").is_file()


def test_a_campaign_of_runs_has_a_page_of_its_own(command: "Command", tmp_path: Path) -> None:
    (tmp_path / "campaign.toml").write_text(SEARCHES)
    assert command("run", "campaign.toml").code == 0
    page = command("report", "searches", "--html", "--out", "-").out
    assert "All 4 runs are settled" in page
    assert "seed 1" in page
    assert page.count("<figure") == 2
    text = command("report", "searches", "--md", "-o", "-").out
    assert text.startswith("# searches: ")
    assert command("report", "searches", "--html").code == 0
    assert (tmp_path / "artifacts/cmaes/campaign/searches/reports/report.html").is_file()
    refused = command("report", "searches", "--png", "scores")
    assert (refused.code, "--plot FILE" in refused.err) == (2, True)
