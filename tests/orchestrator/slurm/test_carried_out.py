"""Exported jobs carried out by bash, with the orchestrator itself, as SLURM would start them."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgets.events import Settled
from budgets.ledger.chain import LEDGER, read

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.orchestrator.slurm.conftest import Cluster

REPOSITORY = Path(__file__).parents[3]

SEARCH = """
objective = "sphere"
[training]
noise = 0.01
seconds = 0.15
[search]
tier = "min"
run_id = "run"
[evaluation]
assume_eval_seconds = 5.0
[backend]
executor = "inline"
[slurm]
time = "10m"
"""

CAMPAIGN = """
objective = "sphere"
[training]
noise = 0.01
[campaign]
name = "small"
seeds = [2]
[factors]
dimension = [2]
[backend]
executor = "inline"
[slurm]
time = "10m"
"""


def exported(command: "Command", tmp_path: Path, text: str, name: str) -> Path:
    (tmp_path / "file.toml").write_text(text)
    answer = command("export", "slurm", "file.toml", name, "--write")
    assert answer.code == 0, answer.err
    return tmp_path / name


def test_a_search_that_meets_its_limit_is_requeued_and_then_finishes(
    command: "Command",
    cluster: "Cluster",
    tmp_path: Path,
    found: Callable[[Path], dict[str, Any]],
) -> None:
    cluster.variables["PYTHONPATH"] = str(REPOSITORY)
    run = exported(command, tmp_path, SEARCH, "cut") / "run"
    code, said = cluster.signalled(run / "run.slurm", signal.SIGUSR1, "[ 3/16]")
    assert code == 143, said
    assert "Finishing what is running" in said
    assert cluster.asked("scontrol") == ["requeue 77"]
    before = settled(run)
    assert 3 <= before < 16
    again = cluster.run("/bin/bash", str(run / "run.slurm"), SLURM_RESTART_COUNT="1")
    assert again.returncode == 0, again.stdout + again.stderr
    assert f"Resuming phase1 run: {before} of 16 settled" in again.stdout
    whole = exported(command, tmp_path, SEARCH, "whole") / "run"
    assert command("run", str(whole / "config.toml")).code == 0
    assert found(run / "phase1" / "run") == found(whole / "phase1" / "run")


def settled(run: Path) -> int:
    records = read(run / "phase1" / "run" / LEDGER).records
    return sum(isinstance(record.event, Settled) for record in records)


def test_runs_of_a_campaign_come_to_the_same_scores_as_the_campaign_itself(
    command: "Command", cluster: "Cluster", tmp_path: Path
) -> None:
    cluster.variables["PYTHONPATH"] = str(REPOSITORY)
    place = exported(command, tmp_path, CAMPAIGN, "small")
    cluster.install("sbatch", SBATCH_THAT_RUNS)
    done = cluster.run(str(place / "submit_all.sh"))
    assert done.returncode == 0, done.stderr
    assert len((place / "submitted.tsv").read_text().splitlines()) == 2
    shown = command("status", str(place))
    assert shown.code == 0, shown.err
    for name in ("dimension2", "default_base"):
        assert name in shown.out
    assert "2 of 2" in shown.out
    again = command("export", "slurm", "file.toml", "small", "--write")
    assert again.code == 0, again.err
    assert "is there already, and the same" in again.out
    assert command("run", "file.toml").code == 0
    theirs = scores(next((tmp_path / "artifacts").glob(f"cmaes/campaign/*/{LEDGER}")))
    for number, name in enumerate(("dimension2_s2", "default_base_s2")):
        mine = scores(next((place / name).glob(f"campaign/*/{LEDGER}")))
        assert mine == {(0, 2): theirs[number, 2]}


SBATCH_THAT_RUNS = """#!/usr/bin/env bash
bash "${@: -1}" >"slurm-$$.out" 2>&1 || exit 1
echo "$$"
"""


def scores(ledger: Path) -> dict[tuple[int, int], float | None]:
    events = [record.event for record in read(ledger).records]
    return {(e.candidate, e.seed): e.score for e in events if isinstance(e, Settled)}
