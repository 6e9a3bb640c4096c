"""The command line of the benchmarks, and how they print their figures."""

import json
import re
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest

from scripts.bench import bench as benches
from scripts.bench.bench import FIGURES, Aim, Figure, Option, options
from tests.bench.conftest import Bench

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(p for p in (ROOT / "scripts/bench").iterdir() if p.is_file() and not p.suffix)
OPTIONS = (Option("rounds", 7, 1, "turns, 100 % of them"), Option("rates", (1.0, 10.0), (10.0,)))


def test_a_quick_run_has_the_quick_defaults() -> None:
    full, quick = options("", OPTIONS, []), options("", OPTIONS, ["--quick", "--rates", "2", "3"])
    assert (full.rounds, full.rates, full.json) == (7, (1.0, 10.0), None)
    assert (quick.rounds, quick.rates) == (1, [2.0, 3.0])
    for value in ("0", "-1", "1.5", "many"):
        with pytest.raises(SystemExit, match="2"):
            options("", OPTIONS, [f"--rounds={value}"])


def test_figures_are_printed_beside_their_aims_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = [
        Figure("just", 2, "s", aim=Aim(most=2)),
        Figure("slow", 2.01, "s", 2, 3, aim=Aim(most=2)),
        Figure("spend", inf, "%"),
    ]

    def measure(chosen: Namespace) -> Iterator[Figure]:
        assert chosen.rounds == 7
        yield from figures

    kept = tmp_path / "figures.json"
    monkeypatch.setattr(sys, "argv", ["bench", "--json", str(kept)])
    benches.bench("What it is.", measure, *OPTIONS)
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| just | 2 s | at most 2 s | met |",
        "| slow | 2.01 s (2 to 3) | at most 2 s | **missed** |",
        "| spend | never |  |  |",
    ]
    assert FIGURES.validate_json(kept.read_bytes()) == figures


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_every_benchmark_starts_and_its_examples_use_options_that_it_has(
    script: Path, bench: Bench
) -> None:
    about, _, listed = bench(script.name, "--help").out.partition("options:\n")
    examples = [line for line in about.splitlines() if f"scripts/bench/{script.name} " in line]
    assert examples
    assert set(re.findall(r" --[\w-]+", " ".join(examples))) <= set(
        re.findall(r" --[\w-]+", listed)
    )


@pytest.mark.slow
def test_all_continues_after_a_failure_and_keeps_earlier_figures(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts/bench/all"), "--out", str(tmp_path)]
    command += ["--only", "training", "costs"]
    environment = {"PATH": "/usr/bin:/bin", "NANOCHAT_CHECKOUT": str(tmp_path)}
    figure = {"name": "time", "value": 3, "unit": "s", "aim": {"most": 2}}
    (tmp_path / "costs.json").write_text(json.dumps([figure]))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "1 of 2 ran" in done.stdout) == (1, True), done
    sheet = (tmp_path / "result.md").read_text()
    assert "- **training failed**: ended with 1: expected a checkout" in sheet
    assert "| time | 3 s | at most 2 s | **missed** |" in sheet
