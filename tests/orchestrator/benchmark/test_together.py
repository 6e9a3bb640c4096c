"""All benches in one go: none is forgotten, a failure stops no other, and it goes on."""

import ast
import re
import runpy
import shutil
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.benchmark.bench import Aim, Figure
from orchestrator.benchmark.together import Record, Sheet, benches, kept, markdown, run

ROOT = Path(__file__).parents[3]
SCRIPTS = ROOT / "scripts"

SLOW, FAST = Figure("time", 3.0, "s", aim=Aim(most=2.0)), Figure("share", 1.0, "%", aim=Aim(0.5))

FAKE = """\
import sys
from pathlib import Path
print("measuring", *sys.argv[1:-2])
here = Path(__file__)
here.with_suffix(".runs").open("a").write("x")
if {fails} and not here.with_name("mended").exists():
    raise ValueError("no such disk")
Path(sys.argv[-1]).write_text('[{{"name": "time", "value": 3, "unit": "s", "aim": {{"most": 2}}}}]')
"""


def fake(folder: Path, name: str, fails: bool = False) -> Path:
    script = folder / name
    script.write_text(FAKE.format(fails=fails))
    return script


def runs(script: Path) -> int:
    return len(script.with_suffix(".runs").read_text())


def record(name: str, *figures: Figure, error: str = "") -> Record:
    now = datetime(2026, 11, 22, 18, 0, tzinfo=UTC)
    return Record(name, (), now, 61.0, (0.5, 1.5), "0123456789", {}, figures, error)


def test_every_bench_is_part_of_it_speaks_its_language_and_is_documented() -> None:
    found = benches(SCRIPTS)
    assert "bench_all" not in found
    assert {*found, "bench_all"} == {path.name for path in SCRIPTS.glob("bench*")}
    documented = (ROOT / "docs/benchmarks.md").read_text()
    for name, script in found.items():
        text = script.read_text()
        assert "from orchestrator.benchmark.bench import" in text, name
        assert "    bench(\n        __doc__,\n        measure," in text, name
        assert f"`scripts/{name}" in documented, name


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("bench_*")), ids=lambda script: script.name)
def test_the_help_of_a_bench_begins_with_examples_of_options_that_it_has(script: Path) -> None:
    text = script.read_text()
    title, lines, *_ = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")
    own = [line for line in lines.splitlines() if f"scripts/{script.name} " in line]
    assert "\n" not in title
    assert own
    for word in re.findall(r"--(\S+)", " ".join(own)):
        assert word in {"quick", "json"} or f'"{word}", ' in text, word


def test_what_it_measured_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(fake(tmp_path, "bench_one"), ["--quick"], tmp_path)
    assert found.figures == (SLOW,)
    assert (found.words, found.error) == (("--quick",), "")
    assert found.seconds > 0
    assert kept(tmp_path, "bench_one", ["--quick"]) == found
    assert capsys.readouterr().out == (tmp_path / "bench_one.log").read_text()
    assert (tmp_path / "bench_one.log").read_text() == "measuring --quick\n"


def test_what_was_asked_otherwise_or_elsewhere_or_cut_off_is_not_taken_over(tmp_path: Path) -> None:
    run(fake(tmp_path, "bench_one"), [], tmp_path)
    assert kept(tmp_path, "bench_one", [])
    assert kept(tmp_path, "bench_one", ["--quick"]) is None
    assert kept(tmp_path, "bench_two", []) is None
    path = tmp_path / "bench_one.json"
    whole = path.read_text()
    path.write_text(whole.replace('"python": "3', '"python": "2'))
    assert kept(tmp_path, "bench_one", []) is None
    path.write_text(whole[:-20])
    assert kept(tmp_path, "bench_one", []) is None


def test_a_bench_that_says_nothing_of_its_figures_has_failed(tmp_path: Path) -> None:
    script = tmp_path / "bench_one"
    script.write_text("pass")
    assert "No such file" in run(script, [], tmp_path).error
    script.write_text("import sys; open(sys.argv[-1], 'w').write('[{}]')")
    assert "Field required" in run(script, [], tmp_path).error


def test_one_that_fails_stops_no_other_and_alone_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SCRIPTS / "bench_all", tmp_path)
    well, ill = fake(tmp_path, "bench_b"), fake(tmp_path, "bench_a", fails=True)
    sheet = tmp_path / "out/result.md"

    def go(*words: str) -> tuple[int | str | None, str]:
        monkeypatch.setattr(sys, "argv", ["bench_all", "--out", str(sheet.parent), *words])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(tmp_path / "bench_all"), run_name="__main__")
        return ended.value.code, capsys.readouterr().out

    code, said = go()
    assert code == 1
    assert "[ 1/2] bench_a: **failed**" in said
    assert "ended with 1: ValueError: no such disk" in said
    assert "Failed: bench_a." in said
    assert sheet.read_text().startswith("# Benchmarks\n\n- **bench_a failed**: ended with 1: Val")
    assert "- **bench_b: missed**: time: 3 s; at most 2 s" in sheet.read_text()
    (tmp_path / "mended").touch()
    code, said = go()
    assert code == 0
    assert "2 of 2 ran" in said
    assert "failed" not in sheet.read_text()
    assert (runs(ill), runs(well)) == (2, 1)
    go("--again", "--only", "bench_b")
    assert (runs(ill), runs(well)) == (2, 2)


def test_a_sheet_begins_with_what_failed_and_fell_short() -> None:
    both = record("bench_both", SLOW, FAST)
    sheet = Sheet({"cores": "2 of 2"}, False, (both, record("bench_ill", error="no disk")))
    lines = list(markdown(sheet))
    assert lines[:4] == [
        *("# Benchmarks", "", "- **bench_both: missed**: time: 3 s; at most 2 s"),
        "- **bench_ill failed**: no disk",
    ]
    assert "| cores | 2 of 2 |" in lines
    ran = "| 2026-11-22 18:00 | 61 s | 0.5, 1.5 | 0123456789 |"
    assert f"| bench_both {ran} 1 of 2 |" in lines
    assert f"| bench_ill {ran} **failed** |" in lines
    assert lines[-2:] == [SLOW.row(), FAST.row()]
    quick = list(markdown(replace(sheet, quick=True)))
    assert quick[0].endswith("held to no aim")
    assert not any("missed" in line for line in quick)
    assert f"| bench_both {ran} ran |" in quick
