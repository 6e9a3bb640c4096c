"""`export slurm`: scripts that submit the runs of a file, and what becomes of a job."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.product.books import Books, records
from tests.product.product import Product, wait_until

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
SBATCH = """#!/bin/bash
echo "$(basename "$PWD") $*" >>"$ASKED.sbatch"
if [[ $(basename "$PWD") == "${REFUSED:-}" ]]; then exit 1; fi
echo $((1000 + $(wc -l <"$ASKED.sbatch")))
"""
SCONTROL = '#!/bin/bash\necho "$*" >>"$ASKED.scontrol"\n'
TRAINER = """#!/bin/bash
trap 'exit 143' TERM
[[ $ENDS == never ]] || exit "$ENDS"
kill "-$SENT" "$PPID"
while :; do sleep 0.05; done
"""
"""In the orchestrator's place: ends with $ENDS, or has SLURM send its job a signal and drains."""


def shell(product: Product, *command: object, code: int = 0, **variables: str) -> str:
    """What a program prints that ends with that exit code."""
    ended = subprocess.run(
        [*map(str, command)], env=product.environment(variables),
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert ended.returncode == code, ended
    return ended.stdout


@pytest.fixture
def cluster(product: Product) -> Product:
    """A user with stand-ins for `sbatch` and `scontrol`, which note what they are asked."""
    for name, text in {"sbatch": SBATCH, "scontrol": SCONTROL}.items():
        product.write(f"../cluster/{name}", text).chmod(0o755)
    place = product.folder.parent / "cluster"
    paths = {"PATH": f"{place}:{os.environ['PATH']}", "ASKED": str(place / "asked")}
    product.variables |= {**paths, "SLURM_JOB_ID": "77"}
    return product


def asked(cluster: Product, program: str) -> list[str]:
    log = Path(f"{cluster.variables['ASKED']}.{program}")
    return log.read_text().splitlines() if log.exists() else []


def exported(product: Product, text: str, more: str = "") -> Path:
    product.write("file.toml", text)
    product(f"export slurm file.toml --out jobs --write {more}")
    return product.folder / "jobs"


def submitted(jobs: Path) -> list[list[str]]:
    lines = (jobs / "submitted.tsv").read_text().splitlines()
    return [line.split("\t")[:2] for line in lines]


def test_every_script_is_shell_without_a_complaint(product: Product) -> None:
    product.folder /= "it's, $(a) path"
    product.folder.mkdir()
    exported(product, CAMPAIGN)
    exported(product, SEARCH, "--out more")
    scripts = [*product.folder.rglob("submit_all.sh"), *product.folder.rglob("run.slurm")]
    assert len(scripts) == 7
    for script in scripts:
        shell(product, BASH, "-n", script)
        if shutil.which("shellcheck"):
            shell(product, "shellcheck", "--severity=warning", script)


def test_a_job_asks_for_what_the_file_says_and_no_export_is_written_over_another(
    product: Product,
) -> None:
    jobs = exported(product, CAMPAIGN, f"--out ../{product.folder.name}/jobs")
    text = (jobs / RUNS[0] / "run.slurm").read_text()
    assert {line.split()[1] for line in text.splitlines() if line.startswith("#SBATCH")} >= {
        f"--job-name=camp-{RUNS[0]}", "--time=00:10:00", "--nodes=1", "--gres=gpu:1",
        "--signal=B:USR1@300", "--requeue", "--dependency=singleton", "--exclude=n3",
    }  # fmt: skip
    before = {path: path.read_bytes() for path in jobs.rglob("*") if path.is_file()}
    assert not [path for path, text in before.items() if b"/../" in text]
    product("export slurm file.toml --out jobs --write", code=2)
    assert {path: path.read_bytes() for path in jobs.rglob("*") if path.is_file()} == before


def test_submit_all_stops_at_the_first_refusal_and_skips_what_was_submitted(
    cluster: Product,
) -> None:
    jobs = exported(cluster, CAMPAIGN)
    submit = (BASH, jobs / "submit_all.sh")
    assert shell(cluster, *submit, "--dry-run").count("sbatch") == 4
    assert asked(cluster, "sbatch") == []
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
        ("5", 0, 5, False),  # somebody else has the run
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


CONF = """
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=46827
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={home}/socket
ProctrackType=proctrack/linuxproc
StateSaveLocation={home}
SlurmctldPidFile={home}/ctld.pid
SlurmdPidFile={home}/%n.pid
SlurmdSpoolDir={home}/%n
SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=0
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port=46921
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port=46922
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
MUNGE = {"key-file": "key", "socket": "socket", "pid-file": "munge.pid", "seed-file": "seed"}
MUNGE["log-file"] = "log"


@pytest.fixture
def slurm(product: Product) -> Iterator[Path]:
    """slurmctld, two slurmd and munge of our own on this machine, as root. Their directory."""
    if os.getuid() or not shutil.which("slurmctld") or not shutil.which("munged"):
        pytest.skip("needs root and SLURM: apt-get install slurm-wlm munge")
    home, host = product.folder.parent, os.uname().nodename.partition(".")[0]
    conf = product.write("../slurm.conf", CONF.format(host=host, home=home))
    product.variables["SLURM_CONF"] = str(conf)
    product.write("../key", os.urandom(1024).hex()).chmod(0o600)
    shell(product, "munged", "--force", *(f"--{o}={home / name}" for o, name in MUNGE.items()))
    for daemon in ("slurmctld -c", "slurmd -N n1", "slurmd -N n2"):
        shell(product, *daemon.split())
    wait_until(lambda: shell(product, "sinfo", "-hN", "-o", "%t").split() == ["idle"] * 2)
    yield home
    for pid in home.glob("*.pid"):
        os.kill(int(pid.read_text()), signal.SIGKILL)


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
