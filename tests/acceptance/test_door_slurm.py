"""`export slurm`: scripts that submit the runs of a file, and what becomes of a job."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.product.books import Books, records
from tests.product.product import Product, wait_until
from tests.product.slurm import asked, exported, shell, submitted

BASH = shutil.which("bash") or "/bin/bash"
SEARCH = """
objective = "sphere"
training = { dimension = 2, noise = 0.01 }
search = { tier = "min", population = 4, run_id = "run" }
evaluation.assume_eval_seconds = 30
backend = { executor = "inline", workers = 1 }
[slurm]
time = "10m"
"""
CAMPAIGN = """
objective = "sphere"
campaign = { name = "camp", seeds = [1], controls = false }
factors.noise = [0.01, 0.02, 0.03, 0.04]
backend = { executor = "inline", device = "cuda" }
[slurm]
time = "10m"
sbatch = ['--exclude=n3']
setup = ['module load cuda/12']
"""
RUNS = [f"noise{noise}_s1" for noise in (0.01, 0.02, 0.03, 0.04)]
TRAINER = """#!/bin/bash
trap 'exit 143' TERM
[[ $ENDS == never ]] || exit "$ENDS"
kill "-$SENT" "$PPID"
while :; do sleep 0.05; done
"""
"""In the orchestrator's place: ends with $ENDS, or has SLURM send its job a signal and drains."""


def test_every_script_is_shell_and_a_job_asks_for_what_the_file_says(product: Product) -> None:
    product.folder /= "it's, $(a) path"
    product.folder.mkdir()
    jobs = exported(product, CAMPAIGN, '--out "../it\'s, $(a) path/jobs"')
    text = (jobs / RUNS[0] / "run.slurm").read_text()
    assert {line.split()[1] for line in text.splitlines() if line.startswith("#SBATCH")} >= {
        f"--job-name=camp-{RUNS[0]}", "--time=10", "--nodes=1", "--gres=gpu:1",
        "--signal=B:USR1@300", "--requeue", "--dependency=singleton", "--exclude=n3",
    }  # fmt: skip
    exported(product, SEARCH, "--out more")
    scripts = [*product.folder.rglob("submit_all.sh"), *product.folder.rglob("run.slurm")]
    assert len(scripts) == 7
    for script in scripts:
        assert "/../" not in script.read_text()
        shell(product, BASH, "-n", script)
        if shutil.which("shellcheck"):
            shell(product, "shellcheck", "--severity=warning", script)


def test_submit_all_stops_at_the_first_refusal_and_skips_what_was_submitted(
    cluster: Product,
) -> None:
    jobs = exported(cluster, CAMPAIGN)
    submit = (BASH, jobs / "submit_all.sh")
    shell(cluster, *submit, code=1, REFUSED=RUNS[2])
    assert submitted(jobs) == [[RUNS[0], "1001"], [RUNS[1], "1002"]]
    for _ in range(2):  # the second time there is nothing left to do
        shell(cluster, *submit)
    assert [name for name, _ in submitted(jobs)] == RUNS
    assert [call.split()[0] for call in asked(cluster, "sbatch")] == [*RUNS[:3], *RUNS[2:]]


@pytest.mark.parametrize(
    ("ends", "restarts", "code", "is_requeued"),
    [
        ("4", 0, 0, False),  # a No-Go, or a budget that is spent, is a result
        ("3", 0, 3, False),
        ("7", 1, 7, False),
        ("USR1", 0, 143, True),  # the time limit is near
        ("USR1", 10, 143, False),
        ("TERM", 1, 143, False),  # scancel; what SLURM preempts, it requeues itself
        ("5", 0, 5, False),  # another process has the run
        ("5", 1, 5, True),  # it may be this job's own predecessor, on a node that is cut off
        ("5", 10, 5, False),
    ],
)
def test_how_a_run_ends_decides_what_becomes_of_its_job(
    cluster: Product, ends: str, restarts: int, code: int, is_requeued: bool
) -> None:
    trainer = cluster.write("trainer", TRAINER)
    trainer.chmod(0o755)
    jobs = exported(cluster, f"{SEARCH}python = '{trainer}'\n")
    ended = {"ENDS": ends} if ends.isdigit() else {"ENDS": "never", "SENT": ends}
    ended["SLURM_RESTART_COUNT"] = str(restarts)
    said = shell(cluster, BASH, jobs / "run/run.slurm", code=code, **ended)
    assert asked(cluster, "scontrol") == (["requeue 77"] if is_requeued else [])
    if ends == "TERM":
        assert "squeue" in said  # shows which of both it is
        assert "Not requeued" not in said


def test_a_job_runs_its_search_to_the_end_beside_its_script(cluster: Product) -> None:
    job = exported(cluster, SEARCH) / "run"
    shell(cluster, BASH, job / "run.slurm")
    cluster("run file.toml")
    whole = Books.of(cluster.folder / "artifacts/cmaes/phase1/run")
    assert Books.of(job / "phase1/run").essence == whole.essence
    cluster.verify(job / "phase1/run")
    (row,) = cluster.json("status jobs")
    assert (row["run"], row["directory"]) == ("run", "jobs/run/phase1/run")


@pytest.mark.slow
def test_a_real_slurm_runs_cancels_requeues_and_survives_a_node_that_is_cut_off(
    product: Product, slurm: Path
) -> None:
    jobs = exported(product, SEARCH.replace("noise = 0.01", "seconds = 1.0"))
    run = jobs / "run/phase1/run"
    shell(product, jobs / "submit_all.sh")
    ((_, job),) = submitted(jobs)

    def state(field: str = "%T") -> str:
        return shell(product, "squeue", "-h", "-t", "all", "-j", job, "-o", field).strip()

    def goes_on_now() -> None:
        """A requeued job waits two minutes by SLURM's own rule."""
        wait_until(lambda: state() == "PENDING")
        shell(product, "scontrol", "update", f"job={job}", "starttime=now")

    wait_until(lambda: records(run) >= 6)
    shell(product, "scontrol", "requeue", job)
    goes_on_now()
    wait_until(lambda: Books.of(run).sessions == 2 and state() == "RUNNING")
    node = state("%N")
    pid = slurm / f"{node}.pid"
    os.kill(int(pid.read_text()), signal.SIGKILL)  # of the daemon: the job itself lives on
    pid.unlink()
    shell(product, "scontrol", "update", f"nodename={node}", "state=down", "reason=cut off")
    goes_on_now()
    wait_until(lambda: "Restarts=3" in shell(product, "scontrol", "show", "job", job))
    wait_until(lambda: Books.of(run).is_concluded)  # it has met itself
    goes_on_now()
    wait_until(lambda: state() == "COMPLETED")
    assert (Books.of(run).sessions, len(Books.of(run).results)) == (2, 16)
    product.verify(run)
