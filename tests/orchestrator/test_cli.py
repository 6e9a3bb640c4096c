"""What a person gets from the command line: answers, or one clear error and its exit code."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import orjson
import pytest

from budgets.ledger import LEDGER, SYSTEM_CLOCK, Ledger
from objectives.files import read_toml
from orchestrator.cli.plan import Template
from orchestrator.config import flattened
from tests.conftest import REPOSITORY
from tests.imported import MAIN, imported_by
from tests.product.books import sealed

if TYPE_CHECKING:
    from tests.conftest import Answer, Command

INLINE = ("--executor", "inline", "--workers", "1")
SPHERE = ("--objective", "sphere", *INLINE)
IDLE = ("--objective", "idle", "--set", "dimension=2", "--set", "noise=0.01", *INLINE)
RUN = "artifacts/cmaes/phase1/min-sphere-s1"


def phase1(command: "Command", *more: str) -> "Answer":
    return command("phase1", "--tier", "min", *SPHERE, *more)


def test_what_is_finished_runs_nothing_again_also_while_somebody_holds_it(
    command: "Command", tmp_path: Path
) -> None:
    phase1(command)
    before = (tmp_path / RUN / LEDGER).read_bytes()
    with Ledger(tmp_path / RUN, SYSTEM_CLOCK):
        assert phase1(command).code == 0
    assert (tmp_path / RUN / LEDGER).read_bytes() == before
    command("calibrate", *SPHERE)
    assert "--again" in command("calibrate", *SPHERE).out


# Exit codes


def test_json_that_finds_no_room_is_a_storage_error() -> None:
    with Path("/dev/full").open("wb") as full:
        golden = str(REPOSITORY / "tests/golden/runs/smoke")
        words = [sys.executable, "-m", "orchestrator", "report", golden, "--json"]
        ended = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert "error: " in ended.stderr
    assert "No space left" in ended.stderr
    assert ended.returncode == 8


def test_a_newer_schema_is_refused_with_the_way_out(command: "Command", tmp_path: Path) -> None:
    (tmp_path / RUN).mkdir(parents=True)
    event = {"kind": "planned", "schema_version": 99}
    line = {"seq": 0, "at": "2030-01-01T00:00:00.000+00:00", "elapsed_ms": 0, "event": event}
    (tmp_path / RUN / LEDGER).write_bytes(sealed([line]))
    answer = phase1(command)
    assert answer.code == 2
    assert "Use the version that wrote it" in answer.err


# What is said of runs


def test_a_check_is_a_run_and_warns_the_search_after_it(command: "Command", tmp_path: Path) -> None:
    search = ("phase1", "--tier", "min", *IDLE)
    assert command(*search).out.startswith("Warning: 0 of 2 knobs are shown")
    first = command("check", "knobs", *IDLE, "--seeds", "3")
    assert first.code == 0  # a dead knob is a result
    (run,) = (tmp_path / "artifacts/cmaes/check").iterdir()
    assert "1 of 2 knobs move the score" in command("status").out
    assert command("verify", run.name).code == 0
    again = command("check", "knobs", *IDLE, "--seeds", "3")
    assert first.out.endswith(again.out)
    checked = command(*search, "--run-id", "second")
    assert checked.out.startswith("Warning: 1 of 2 knobs are shown to move the score; x1 did")


# `init`

TEMPLATES: tuple[str, ...] = get_args(Template)


@pytest.mark.usefixtures("nanochat_home")
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_explains_itself_and_so_does_what_it_proposes(
    template: str, command: "Command", tmp_path: Path
) -> None:
    shown = command("init", "--template", template)
    assert not list(tmp_path.iterdir())
    written = command("init", "--template", template, "--out", "my.toml")
    assert "orchestrator explain my.toml" in written.out
    text = (tmp_path / "my.toml").read_text()
    assert text == shown.out.replace("THIS-FILE", "my.toml")
    values = orjson.loads(command("explain", "my.toml", "--json").out)["values"]
    for key, value in flattened(read_toml(tmp_path / "my.toml", ""), ""):
        assert values[key] == {"value": value, "source": "file my.toml"}
    lines = [line[2:] if line.startswith("# ") and " = " in line else line
             for line in text.splitlines()]  # fmt: skip
    (tmp_path / "my.toml").write_text("\n".join(lines))
    answer = command("explain", "my.toml")
    assert answer.code == 0, answer.err


@pytest.mark.usefixtures("nanochat_home")
def test_the_smoke_test_and_the_campaign_run(command: "Command", tmp_path: Path) -> None:
    tiny = (
        *("--set", "target_flops=2e8", "--set", "n_embd=16", "--set", "sequence_len=32"),
        *("--set", "val_windows=8", *INLINE),  # an evaluation of 27 steps, in half a second
    )
    command("init", "--template", "smoke", "--out", "my.toml")
    few = ("--set", "search.population=4", "--max-evals", "4", "--assume-eval-seconds", "60")
    answer = command("run", "my.toml", *tiny, *few)
    assert answer.code == 0, answer.err
    assert (tmp_path / "artifacts/cmaes/phase1/smoke/best.json").exists()
    command("init", "--template", "campaign", "--out", "rates.toml")
    answer = command("run", "rates.toml", *tiny, "--set", "campaign.seeds=[1]", "--json")
    assert answer.code == 0, answer.err
    plan = orjson.loads((tmp_path / "artifacts/cmaes/campaign/rates/run.json").read_bytes())
    names = [one["name"] for one in plan["campaign"]["conditions"]]
    assert names == ["slow", "fast", "default_base", "synapses-off_base"]


# What it takes to start


@pytest.mark.parametrize(
    "line",
    ["status", "report", "plan --objective sphere", "--help"],
)
def test_looking_imports_neither_torch_nor_ray_nor_cma(
    line: str, run: Path, tmp_path: Path
) -> None:
    imported = imported_by(MAIN, *line.split(), cwd=tmp_path)
    assert not imported & {"torch", "ray", "cma", "jinja2", "matplotlib"}


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("ph", "phase1"), ("plan --max-c", "--max-cost"), ("check kn", "knobs")],
)
def test_the_shell_completes_commands_and_options(typed: str, offered: str) -> None:
    code = "import sys; sys.argv[0] = 'orchestrator'; import orchestrator.cli.app as e; e.main()"
    asked = {
        "_ORCHESTRATOR_COMPLETE": "complete_bash",
        "COMP_WORDS": f"orchestrator {typed}",
        "COMP_CWORD": str(len(typed.split())),
    }
    ran = [sys.executable, "-c", code]
    done = subprocess.run(
        ran, env=os.environ | asked, capture_output=True, text=True, check=True, timeout=60
    )
    assert offered in done.stdout.split()


def test_the_version_is_that_of_the_project(command: "Command") -> None:
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    assert command("--version").out == f"orchestrator {version}\n"


@pytest.mark.parametrize("name", ["objectives.py", "budgets/__init__.py", "numpy.py"])
def test_a_file_of_the_users_is_not_taken_for_one_of_ours(tmp_path: Path, name: str) -> None:
    own = tmp_path / name
    own.parent.mkdir(exist_ok=True)
    own.write_text("raise SystemExit('the user has this')\n")
    words = [sys.executable, "-m", "orchestrator", "explain", "--objective", "sphere"]
    done = subprocess.run(
        words,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
