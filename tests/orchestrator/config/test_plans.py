"""A file, the same typed as flags, and what `explain` says of either come to one plan."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from budgets.ledger import LEDGER, read
from budgets.plan import Plan
from budgets.state import fold
from orchestrator.cli.options import Asked

Command = Callable[..., Any]
Write = Callable[..., Path]
Typed = Callable[..., Asked]

WHOLE = """
objective = "sphere"                # a function with a known optimum
runs_dir = "runs"
[training]
dimension = 3
noise = 0.01
[search]
phase = "phase1"
tier = "target"
run_id = "whole"
seed = 4
method = "plain"
sigma0 = 0.1
population = 4
generations = 3
seeds_per_candidate = 2
[evaluation]
seed = 9
limit_seconds = 40.0
stall_seconds = 30.0
assume_eval_seconds = 1.0
[budget]
max_evals = 16
max_device_hours = 3.0
max_hours = 4.0
max_cost = 50.0
price_per_device_hour = 2.5
window = "6h"
safety_margin = "10m"
[verdict]
confirm_seeds = 3
rung = 2.0
rung_seeds = 1
[thresholds]
go_seeds = 3
patience_generations = 7
patience_improve = 0.002
[backend]
executor = "inline"
launcher = "exec"
device = "cpu"
workers = 1
threads = 1
drain_seconds = 5.0
"""

FLAGS = (
    *("--objective", "sphere", "--runs-dir", "runs", "--set", "dimension=3", "--set", "noise=0.01"),
    *("--tier", "target", "--run-id", "whole", "--seed", "4", "--set", "search.method=plain"),
    *(
        "--set",
        "search.sigma0=0.1",
        "--set",
        "search.population=4",
        "--set",
        "search.generations=3",
        "--set",
        "search.seeds_per_candidate=2",
    ),
    *(
        "--set",
        "evaluation.seed=9",
        "--set",
        "evaluation.limit_seconds=40",
        "--set",
        "evaluation.stall_seconds=30",
    ),
    *("--assume-eval-seconds", "1", "--max-evals", "16", "--max-device-hours", "3"),
    *(
        "--max-hours",
        "4",
        "--max-cost",
        "50",
        "--set",
        "budget.price_per_device_hour=2.5",
        "--window",
        "6h",
    ),
    *(
        "--set",
        "budget.safety_margin=10m",
        "--set",
        "verdict.confirm_seeds=3",
        "--set",
        "verdict.rung=2",
        "--set",
        "verdict.rung_seeds=1",
    ),
    *(
        "--set",
        "thresholds.patience_generations=7",
        "--set",
        "thresholds.patience_improve=0.002",
        "--set",
        "thresholds.go_seeds=3",
    ),
    *(
        "--executor",
        "inline",
        "--set",
        "backend.launcher=exec",
        "--device",
        "cpu",
        "--workers",
        "1",
    ),
    *("--set", "backend.threads=1", "--set", "backend.drain_seconds=5"),
)

SMOKE = """
objective = "ellipsoid"
runs_dir = "runs"
[training]
dimension = 2
[search]
tier = "min"
run_id = "whole"
[evaluation]
assume_eval_seconds = 2.0
[backend]
executor = "inline"
workers = 1
"""

IN_THE_PLAN: dict[str, Callable[[Plan], Any]] = {
    "objective": lambda plan: plan.objective["name"],
    "search.phase": lambda plan: plan.phase,
    "search.tier": lambda plan: plan.tier,
    "search.run_id": lambda plan: plan.run_id,
    "search.seed": lambda plan: plan.search and plan.search.seed,
    "search.method": lambda plan: plan.search and plan.search.method,
    "search.sigma0": lambda plan: plan.search and plan.search.sigma0,
    "search.population": lambda plan: plan.resolved.population,
    "search.seeds_per_candidate": lambda plan: plan.resolved.seeds_per_candidate,
    "evaluation.seed": lambda plan: plan.evaluation_seed,
    "evaluation.limit_seconds": lambda plan: plan.limits.wall_seconds,
    "evaluation.stall_seconds": lambda plan: plan.limits.stall_seconds,
    "evaluation.assume_eval_seconds": lambda plan: (
        plan.calibration and plan.calibration.assumed_seconds
    ),
    "budget.max_evals": lambda plan: plan.caps.evaluations,
    "budget.max_device_hours": lambda plan: plan.caps.device_hours,
    "budget.max_hours": lambda plan: plan.caps.hours,
    "budget.max_cost": lambda plan: plan.caps.cost,
    "budget.price_per_device_hour": lambda plan: plan.price_per_device_hour,
    "budget.window": lambda plan: plan.caps.window and f"{plan.caps.window.hours:g}h",
    "budget.safety_margin": lambda plan: (
        plan.caps.window and f"{plan.caps.window.margin_seconds / 60:g}m"
    ),
    "verdict.confirm_seeds": lambda plan: plan.confirmation and plan.confirmation.seeds,
    "verdict.rung": lambda plan: (
        plan.confirmation and plan.confirmation.rung and plan.confirmation.rung.factor
    ),
    "verdict.rung_seeds": lambda plan: (
        plan.confirmation and plan.confirmation.rung and plan.confirmation.rung.seeds
    ),
    "backend.device": lambda plan: plan.devices.kind,
    "backend.workers": lambda plan: plan.devices.count,
    "backend.threads": lambda plan: plan.devices.threads,
}
"""Where the ledger's first record has what a key says."""


def plan_of(run: Path) -> Plan:
    return fold(read(run / LEDGER).records[:1]).plan


def explained(command: Command, *arguments: str) -> dict[str, dict[str, Any]]:
    answer = command("explain", *arguments, "--json")
    assert answer.code == 0, answer.err
    values: dict[str, dict[str, Any]] = orjson.loads(answer.out)["values"]
    return values


def planned(command: Command, *arguments: str) -> list[Any]:
    """The plans of a page, without what it says of this moment's disk."""
    answer = command("plan", *arguments, "--json")
    assert answer.code == 0, answer.err
    return [tier["plan"] for tier in orjson.loads(answer.out)["tiers"]]


@pytest.mark.parametrize(
    ("text", "flags"),
    [(WHOLE, ()), (SMOKE, ()), (SMOKE, ("--set", "search.seed=8", "--set", "noise=0.02"))],
    ids=["whole", "smoke", "assigned"],
)
def test_what_explain_says_is_what_the_ledger_records(
    text: str, flags: tuple[str, ...], command: Command, write: Write, tmp_path: Path
) -> None:
    write(text)
    said = explained(command, "run.toml", *flags)

    answer = command("run", "run.toml", *flags)
    assert answer.code in (0, 4), answer.err  # done, or a No-Go

    plan = plan_of(tmp_path / "runs/phase1/whole")
    told = {key: one["value"] for key, one in said.items() if one["value"] is not None}
    for key, recorded in IN_THE_PLAN.items():
        is_said = key in told and (said[key]["source"] != "default" or key == "search.seed")
        if is_said:
            assert recorded(plan) == told[key], key
    settings = {
        k.removeprefix("training."): v for k, v in told.items() if k.startswith("training.")
    }
    assert plan.objective["settings"] == settings
    limits = {
        k.removeprefix("thresholds."): said[k]["value"] for k in said if k[:11] == "thresholds."
    }
    assert plan.thresholds.model_dump() == limits


def test_every_key_that_decides_something_is_compared_above() -> None:
    """A new key of the file must be looked for in the plan, or known not to be in it."""
    from orchestrator.config import SECTIONS

    elsewhere = {
        *("search.from", "search.variant", "search.known", "search.proxy"),
        "search.generations",  # the most there may be
        *("backend.executor", "backend.launcher", "backend.address", "backend.drain_seconds"),
        *("backend.allow_network_fs", "backend.max_concurrent", "backend.slots_dir"),
    }
    searching = ("search", "budget", "evaluation", "verdict", "backend")
    own = {table: SECTIONS[table].keys() for table in searching}
    keys = {f"{table}.{key}" for table, names in own.items() for key in names}
    assert keys == {key for key in IN_THE_PLAN if "." in key} | elsewhere


def test_explain_says_every_key_once_in_either_form(command: Command, write: Write) -> None:
    write(WHOLE)
    said = explained(command, "run.toml")

    text = command("explain", "run.toml").out

    rows = [line.split()[0] for line in text.splitlines() if line.strip()]
    for key in said:
        name = key.rpartition(".")[2]
        same = sum(other.rpartition(".")[2] == name for other in said)
        assert rows.count(name) == same, key
    assert {one["source"] for one in said.values()} == {"default", "file run.toml"}


def test_explain_shows_what_is_set_first_and_cuts_no_knob(command: Command, write: Write) -> None:
    knob = '{ kind = "log10", min = 0.0001, max = 1000.0, baseline = 0.0123456789 }'
    write(
        "objective = 'command'\n[training]\nargv = ['python']\nscore = 'loss'\n"
        f"knobs.a_long_name_of_a_knob = {knob}\nknobs.b = {knob}\n"
    )

    text = command("explain", "run.toml").out

    set_, _, defaults = text.partition(" Defaults\n")
    assert set_.count('{"kind": "log10", "min": 0.0001, "max": 1000.0, "baseline":') == 2
    assert set_.count("0.0123456789}") == 2
    assert "default" not in set_
    assert "file run.toml" not in defaults
    assert not any(line.endswith(" ") for line in text.splitlines())


def test_a_files_values_are_what_flags_would_be(write: Write, typed: Typed) -> None:
    from_file = typed(write(WHOLE))
    from_flags = typed(write(""), *FLAGS)

    assert from_file.config.model_dump() == from_flags.config.model_dump()


def test_a_file_and_the_same_flags_make_equal_plans_and_take_up_the_same_run(
    command: Command, write: Write, tmp_path: Path
) -> None:
    write(WHOLE)
    plans = planned(command, "run.toml")
    assert planned(command, *FLAGS) == plans
    assert planned(command, "run.toml") == plans
    begun = command("phase1", "run.toml")
    ledger = tmp_path / "runs/phase1/whole" / LEDGER
    before = ledger.read_bytes()
    for again in (("phase1", *FLAGS), ("run", "run.toml")):
        answer = command(*again)
        assert (answer.code, answer.err) == (begun.code, begun.err)
    assert ledger.read_bytes() == before


COMMENTED = "\n".join(
    ["# another comment", *(f"{line}   # why" if line else line for line in WHOLE.splitlines()[1:])]
)
ABOVE, *TABLES = WHOLE.split("\n[")
TURNED = "\n[".join([ABOVE, *reversed(TABLES)])


@pytest.mark.parametrize("text", [COMMENTED, TURNED], ids=["comments", "order of tables"])
def test_comments_and_the_order_of_tables_change_nothing(
    text: str, command: Command, write: Write
) -> None:
    assert text != WHOLE
    plans = []
    for own in (WHOLE, text):
        write(own)
        plans.append(planned(command, "run.toml"))

    assert plans[0] == plans[1]


def test_a_file_that_says_something_else_is_another_plan_and_refused(
    command: Command, write: Write, tmp_path: Path
) -> None:
    write(SMOKE)
    assert command("run", "run.toml").code == 0
    ledger = (tmp_path / "runs/phase1/whole" / LEDGER).read_bytes()
    write(SMOKE.replace("dimension = 2", "dimension = 3"))

    answer = command("run", "run.toml")

    assert answer.code == 2
    assert "holds another plan" in answer.err
    assert "objective.settings.dimension: 2 -> 3" in answer.err
    assert (tmp_path / "runs/phase1/whole" / LEDGER).read_bytes() == ledger


def test_a_check_of_a_file_is_made_and_taken_up(
    command: Command, write: Write, tmp_path: Path
) -> None:
    write(SMOKE)

    answer = command("check", "knobs", "run.toml", "--seeds", "2", "--json")
    again = command("check", "knobs", "run.toml", "--seeds", "2", "--json")

    assert answer.code == again.code == 0, answer.err
    assert orjson.loads(answer.out)["check"] == orjson.loads(again.out)["check"]
    assert len(list((tmp_path / "runs/check").iterdir())) == 1


def test_explain_says_what_a_campaign_has_no_use_for(command: Command, write: Write) -> None:
    write(SMOKE + "[factors]\nnoise = [0.01]\n")

    text = command("explain", "run.toml").out

    (row,) = (line for line in text.splitlines() if line.split()[:1] == ["tier"])
    assert "for a search: this campaign makes none" in row
    (row,) = (line for line in text.splitlines() if line.split()[:1] == ["workers"])
    assert row.split() == ["workers", "1", "file", "run.toml"]


def test_explain_of_a_training_by_itself_says_so(command: Command, write: Write) -> None:
    write("[training]\nsave_interval_steps = 7\n")

    text = command("explain", "run.toml").out

    (row,) = (line for line in text.splitlines() if "save_interval_steps" in line)
    assert "for a training by itself" in row


def test_the_same_file_says_what_is_calibrated(
    command: Command, write: Write, tmp_path: Path
) -> None:
    write(SMOKE.replace("assume_eval_seconds = 2.0", ""))

    calibrated = command("calibrate", "run.toml", "--seeds", "2", "--json")
    planned_with_it = planned(command, "run.toml")

    assert calibrated.code == 0, calibrated.err
    (directory,) = (tmp_path / "runs/calibration").iterdir()
    assert directory.name.startswith("ellipsoid-")
    assert len(planned_with_it[0]["calibration"]["samples"]) == 2
