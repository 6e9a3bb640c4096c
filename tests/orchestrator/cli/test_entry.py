"""What a person gets from the command line: answers, or one clear error and its exit code."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from budgets.ledger import LEDGER, Clock, Ledger
from orchestrator.records.recorded import Result
from orchestrator.running.session import system_clock
from tests.imported import MAIN, imported_by
from tests.ledgers import cut, sealed

if TYPE_CHECKING:
    from tests.conftest import Answer, Command

RunSearch = Callable[..., Result]
SPHERE = ("--objective", "sphere", "--executor", "inline", "--workers", "1")


def phase1(command: "Command", *more: str) -> "Answer":
    return command("phase1", "--tier", "min", *SPHERE, *more)


def test_phase1_calibrates_runs_and_reports(command: "Command", tmp_path: Path) -> None:
    answer = phase1(command)

    assert answer.code == 0
    assert "No calibration of sphere" in answer.out
    assert "Generation 1 (2 of 2)" in answer.out
    assert "Smoke test passed" in answer.out
    run = tmp_path / "artifacts/cmaes/phase1/min-sphere-s1"
    reports = {p.name for p in (run / "reports").iterdir()}
    assert reports == {"gen_0000.md", "gen_0000.json", "gen_0001.md", "gen_0001.json"}
    assert {"run.json", "best.json", "progress.csv", "summary.md"} <= {
        p.name for p in run.iterdir()
    }


def test_phase1_repeated_runs_nothing_again(command: "Command", tmp_path: Path) -> None:
    phase1(command)
    ledger = tmp_path / "artifacts/cmaes/phase1/min-sphere-s1" / LEDGER
    before = ledger.read_bytes()

    answer = phase1(command)

    assert answer.code == 0
    assert "16 ok" in answer.out
    assert ledger.read_bytes() == before


def test_every_command_answers_in_json(command: "Command") -> None:
    target = ("--objective", "sphere", "--workers", "1")
    commands = {
        "calibrate": ("calibrate", *SPHERE),
        "plan": ("plan", *target),
        "show": ("explain", "--objective", "sphere"),
        "check": ("check", "knobs", *SPHERE, "--seeds", "2"),
        "phase1": ("phase1", "--tier", "min", *SPHERE),
        "status": ("status",),
        "report": ("report",),
        "verify": ("verify", "min-sphere-s1"),
    }
    answers = {name: command(*arguments, "--json") for name, arguments in commands.items()}

    assert {name: answer.code for name, answer in answers.items()} == dict.fromkeys(commands, 0)
    documents = {name: orjson.loads(answer.out) for name, answer in answers.items()}
    assert documents["calibrate"]["calibration"]["evals_per_hour"] > 0
    assert documents["calibrate"]["calibration"]["noise"]["seeds"] == 8
    assert documents["calibrate"]["calibration"]["eval_seconds"]["max"] > 0
    assert [p["plan"]["tier"] for p in documents["plan"]["tiers"]] == ["min", "target", "max"]
    assert [k["name"] for k in documents["show"]["knobs"]] == [f"x{i}" for i in range(10)]
    assert {f["verdict"] for f in documents["check"]["check"]["knobs"]} == {"alive"}
    assert documents["phase1"]["evaluations_by_status"] == {"ok": 16}
    assert documents["status"]["standing"] == "finished"
    assert documents["report"]["ledger"]["head"] == documents["verify"]["head"]
    assert documents["verify"]["divergence"] is None


def test_plan_touches_nothing(command: "Command", tmp_path: Path) -> None:
    answer = command(
        "plan", "--objective", "sphere", "--workers", "1", "--assume-eval-seconds", "60"
    )

    assert answer.code == 0
    assert not list(tmp_path.iterdir())


def test_plan_without_a_calibration_says_how_to_get_one(command: "Command") -> None:
    answer = command("plan", "--objective", "sphere")

    assert answer.code == 0
    assert "orchestrator calibrate" in answer.out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--tier", "huge"), "huge"),
        (("--seed", "0"), "seed: Input should be greater than or equal to 1, got 0"),
        (("--seed", "-3"), "got -3"),
        (("--seed", "true"), "--seed"),
        (("--seed", "1.5"), "--seed"),
        (("--seed", "4294967296"), "4294967296"),
        (("--set", "evaluation.seed=0"), "evaluation.seed"),
        (("--set", "search.sigma0=0"), "sigma0: Input should be greater than"),
        (("--set", "search.sigma0=nan"), "sigma0"),
        (("--set", "search.sigma0=0.5"), "sigma0"),
        (("--run-id", "../x"), "'../x'"),
        (("--run-id", "x" * 300), "1 to 64"),
        (("--run-id", "-x"), "-x"),
        (
            ("--set", "search.population=7"),
            "search.population must be even, at least 4 and at most 16",
        ),
        (("--set", "search.population=1"), "got 1"),
        (("--max-cost", "5"), "price_per_device_hour"),
        (("--max-hours", "nan"), "hours"),
        (("--max-evals", "3"), "--max-evals 3 does not pay for one generation"),
        (("--workers", "1000"), "1000 CPUs asked for"),
        (("--objective", "spere"), "Did you mean 'sphere'?"),
        (("--set", "noyse=1"), "noise"),
        (("--set", "noise"), "expected KEY=VALUE, got 'noise'"),
        (("--set", "noise=loud"), "loud"),
        (("--override", "crash_rate"), "--override needs --reason"),
        (("--reason", "why not"), "--reason goes on record with --override"),
        (("--colour", "red"), "--colour"),
        (("--address", "localhost:6379"), "--executor inline has none"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_clear_error_and_touches_nothing(
    arguments: tuple[str, ...], named: str, command: "Command", tmp_path: Path
) -> None:
    answer = phase1(command, *arguments)

    assert answer.code == 2
    assert named in answer.err
    assert "Traceback" not in answer.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command_name", ["phase1", "plan"])
def test_a_plan_that_trains_too_few_steps_is_refused_with_a_target_that_would_do(
    command_name: str, command: "Command", tmp_path: Path
) -> None:
    answer = command(command_name, "--tier", "min", "--set", "target_flops=1e9", "--workers", "1")

    assert answer.code == 2
    assert "expected at least 20" in answer.err
    assert "set target_flops to at least" in answer.err
    assert not list(tmp_path.iterdir())


def test_a_phase_needs_a_tier(command: "Command") -> None:
    answer = command("phase1", *SPHERE)

    assert answer.code == 2
    assert "--tier: say how much to spend: min, target or max. See what" in answer.err
    (plan,) = re.findall(r"python -m (orchestrator plan .*)", answer.err)
    assert command(*shlex.split(plan)[1:]).out.count("phase1 of sphere on 1 x ") == 1


def test_a_file_without_a_tier_is_told_the_key_too(command: "Command", tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text('objective = "sphere"\n')

    answer = command("run", "my.toml")

    assert answer.code == 2
    assert 'min, target or max, or tier = "min" below [search] in my.toml. See' in answer.err
    assert "python -m orchestrator plan my.toml\n" in answer.err


def test_errors_are_json_where_json_was_asked_for(command: "Command") -> None:
    answer = phase1(command, "--run-id", "../x", "--json")

    assert answer.code == 2
    assert orjson.loads(answer.out)["exit_code"] == 2


@pytest.mark.parametrize("word", ["report", "status"])
def test_json_that_finds_no_room_is_a_storage_error(word: str) -> None:
    golden = Path(__file__).parents[2] / "golden/runs/space_check"
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "orchestrator", word, str(golden), "--json"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert ended.stderr.startswith("error: ")
    assert "No space left" in ended.stderr
    assert ended.returncode == 8


def test_a_used_directory_of_another_plan_is_refused(command: "Command") -> None:
    phase1(command)

    answer = phase1(command, "--set", "evaluation.seed=124")

    assert answer.code == 2
    assert "evaluation_seed: 123 -> 124" in answer.err
    assert "--run-id" in answer.err


def test_a_directory_that_cannot_be_written_is_a_storage_error(
    command: "Command", tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")

    answer = phase1(command, "--runs-dir", "file")

    assert answer.code == 8
    assert "cannot make" in answer.err


def test_a_second_orchestrator_is_told_who_is_first(command: "Command", tmp_path: Path) -> None:
    fragile = ("--set", "failure_rate=1", "--assume-eval-seconds", "1")
    assert phase1(command, *fragile).code == 3
    run = tmp_path / "artifacts/cmaes/phase1/min-sphere-s1"
    with Ledger(run, system_clock()):
        answer = phase1(command, *fragile)

    assert answer.code == 5
    assert "pid" in answer.err
    assert phase1(command, *fragile).code == 3


def test_a_finished_run_can_be_read_while_somebody_holds_it(
    command: "Command", tmp_path: Path
) -> None:
    phase1(command)
    with Ledger(tmp_path / "artifacts/cmaes/phase1/min-sphere-s1", system_clock()):
        assert phase1(command).code == 0


def test_a_newer_schema_is_refused_with_the_way_out(command: "Command", tmp_path: Path) -> None:
    run = tmp_path / "artifacts/cmaes/phase1/min-sphere-s1"
    run.mkdir(parents=True)
    event = {"kind": "planned", "schema_version": 99}
    line = {"seq": 0, "at": "2030-01-01T00:00:00.000+00:00", "elapsed_ms": 0, "event": event}
    (run / LEDGER).write_bytes(sealed([line]))
    before = (run / LEDGER).read_bytes()

    answer = phase1(command)

    assert answer.code == 2
    assert "schema 99" in answer.err
    assert "pip install --upgrade" in answer.err
    assert (run / LEDGER).read_bytes() == before


def test_a_damaged_ledger_is_refused_with_its_place(command: "Command", tmp_path: Path) -> None:
    phase1(command)
    ledger = tmp_path / "artifacts/cmaes/phase1/min-sphere-s1" / LEDGER
    data = bytearray(ledger.read_bytes())
    data[len(data) // 2] ^= 1
    ledger.write_bytes(data)

    codes = [phase1(command).code, command("status").code, command("verify", "min-sphere-s1").code]

    assert codes == [6, 6, 6]
    assert ledger.read_bytes() == data


def test_a_paused_run_exits_with_3_and_goes_on_when_overridden(command: "Command") -> None:
    fragile = ("--set", "failure_rate=0.22", "--assume-eval-seconds", "1")
    paused = phase1(command, *fragile)
    unexplained = phase1(command, *fragile, "--override", "runaway_time", "--reason", "why not")
    overridden = phase1(command, *fragile, "--override", "crash_rate", "--reason", "known")

    assert paused.code == 3
    assert "crash_rate" in paused.out

    assert "/stderr.txt" in paused.out
    assert unexplained.code == 2
    assert "does not hold this run up" in unexplained.err
    assert "Rule crash_rate is overridden: known" in overridden.out
    assert overridden.out.count("Generation") > paused.out.count("Generation")


def test_a_calibration_that_keeps_failing_pauses_the_phase_until_overridden(
    command: "Command",
) -> None:
    fragile = ("--set", "failure_rate=0.3")
    paused = phase1(command, *fragile)
    overridden = command(
        "calibrate", *SPHERE, *fragile, "--override", "crash_rate", "--reason", "known"
    )

    assert paused.code == 3
    assert "calibration" in paused.out
    assert overridden.code == 0
    assert "evaluations of the baseline failed" in overridden.out


def test_a_cap_that_pays_for_nothing_exits_with_4(command: "Command") -> None:
    answer = phase1(command, "--max-device-hours", "0.001")

    assert answer.code == 4
    assert "--max-device-hours" in answer.out


def test_status_names_the_latest_run_and_finds_runs_by_id_and_by_path(
    command: "Command", tmp_path: Path
) -> None:
    phase1(command)
    phase1(command, "--run-id", "second")

    latest = command("status")
    by_id = command("status", "min-sphere-s1")
    by_path = command("status", "artifacts/cmaes/phase1/min-sphere-s1")
    unknown = command("status", "nowhere")

    assert "second" in latest.out
    assert by_id.out == by_path.out
    assert (unknown.code, "no run 'nowhere'" in unknown.err) == (2, True)


@pytest.mark.parametrize(("gone", "ends"), [(True, False), (False, True)])
def test_status_says_when_a_run_will_be_over_only_while_somebody_carries_it_out(
    gone: bool, ends: bool, command: "Command", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    phase1(command)
    (run,) = (tmp_path / "artifacts/cmaes/phase1").iterdir()
    cut(run, 12)
    monkeypatch.setattr("orchestrator.records.standing.owner_is_gone", lambda owner: gone)

    said = command("status").out

    assert (": running (pid" in said) is ends
    assert ("ends at" in said) is ends
    assert ("Repeat the command" in said) is gone


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("report",),
        ("plan", "--objective", "sphere"),
        ("explain", "--objective", "nanochat"),
        ("--help",),
    ],
)
def test_looking_imports_neither_torch_nor_ray_nor_cma(
    arguments: tuple[str, ...], command: "Command", tmp_path: Path
) -> None:
    phase1(command)
    imported = imported_by(MAIN, *arguments, cwd=tmp_path)
    assert not imported & {"torch", "ray", "cma", "jinja2", "matplotlib"}


IDLE = ("--objective", "idle", "--set", "dimension=2", "--set", "noise=0.01")
INLINE = ("--executor", "inline", "--workers", "1", "--seeds", "3")


def test_space_check_names_every_evaluation_and_ends_with_what_it_found(
    command: "Command", tmp_path: Path
) -> None:
    answer = command("check", "knobs", *IDLE, *INLINE)

    assert answer.code == 0  # a dead knob is a result
    assert "Checking x0, x1: 5 points on 3 seeds, 15 evaluations." in answer.out
    lines = [" ".join(line.split()) for line in answer.out.splitlines() if line.startswith("[")]
    assert lines[0].startswith("[ 1/15] baseline, seed ")
    assert lines[3].startswith("[ 4/15] x0 low, seed ")
    assert lines[14].startswith("[15/15] x1 high, seed ")
    assert "1 of 2 knobs move the score; dead: x1." in answer.out
    (run,) = (tmp_path / "artifacts/cmaes/check").iterdir()
    assert {"run.json", "progress.csv", "check.json", "summary.md"} <= {
        p.name for p in run.iterdir()
    }


def test_a_check_is_a_run_for_status_report_and_verify(command: "Command", tmp_path: Path) -> None:
    command("check", "knobs", *IDLE, *INLINE)
    (run,) = (tmp_path / "artifacts/cmaes/check").iterdir()

    assert "1 of 2 knobs move the score" in command("status").out
    assert "alive" in command("report", run.name).out
    assert command("verify", run.name).code == 0


def test_space_check_repeated_runs_nothing_again(command: "Command", tmp_path: Path) -> None:
    first = command("check", "knobs", *IDLE, *INLINE)
    second = command("check", "knobs", *IDLE, *INLINE)

    assert second.code == 0
    assert "[" not in second.out
    assert first.out.endswith(second.out)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--knobs", "x0,y"), "--knobs: idle has no 'y', expected some of x0, x1"),
        (("--knobs", ""), "--knobs: idle has no '', expected some of x0, x1"),
        (("--seeds", "1"), "--seeds"),
        (("--max-evals", "9"), "--max-evals 9 does not pay for 5 points on 2 seeds"),
        (("--max-cost", "1"), "price_per_device_hour"),
        (("--set", "evaluation.seed=0"), "evaluation.seed"),
    ],
)
def test_a_check_that_cannot_be_made_is_one_clear_error_and_touches_nothing(
    arguments: tuple[str, ...], named: str, command: "Command", tmp_path: Path
) -> None:
    answer = command("check", "knobs", *IDLE, *INLINE, *arguments)

    assert answer.code == 2
    assert named in answer.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--set", "failure_rate=1"), 3, "the baseline failed on seed"),
        (("--max-device-hours", "0.001"), 4, "--max-device-hours"),
        (("--max-hours", "0.001"), 4, "--max-hours"),
    ],
)
def test_a_check_that_is_held_up_says_by_what(
    arguments: tuple[str, ...], code: int, said: str, command: "Command"
) -> None:
    answer = command("check", "knobs", *IDLE, *INLINE, *arguments)

    assert answer.code == code
    assert said in " ".join(answer.out.split())


def test_space_show_has_a_row_a_knob_in_its_own_unit_and_touches_nothing(
    command: "Command", tmp_path: Path
) -> None:
    answer = command("explain", *IDLE)
    rows = [
        line.split() for line in answer.out.splitlines() if line.split()[:1] in (["x0"], ["x1"])
    ]

    assert answer.code == 0
    assert rows == [["x0", "linear", "-1", "1", "0"], ["x1", "linear", "-1", "1", "0"]]
    assert not list(tmp_path.iterdir())


def test_phase1_says_what_is_known_of_the_knobs_before_it_begins(command: "Command") -> None:
    search = ("phase1", "--tier", "min", *IDLE, "--executor", "inline", "--workers", "1")
    unchecked = command(*search)
    command("check", "knobs", *IDLE, *INLINE)
    checked = command(*search, "--run-id", "second")

    assert unchecked.out.startswith("Note: no knob has been shown to move the score yet")
    assert checked.out.startswith("Warning: x1 did not move the score when checked")


def test_the_clock_is_injected(tmp_path: Path) -> None:
    assert isinstance(system_clock(), Clock)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("ph", "phase1"), ("plan --max-c", "--max-cost"), ("check kn", "knobs")],
)
def test_the_shell_completes_commands_and_options(typed: str, offered: str) -> None:
    code = "import sys; sys.argv[0] = 'orchestrator'; import orchestrator.cli.entry as e; e.main()"
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
