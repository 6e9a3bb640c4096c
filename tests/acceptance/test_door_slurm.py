"""`export slurm`: scripts that submit the runs of a file, and what becomes of a job."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.books import Books, records
from tests.acceptance.product import Product, WarmStart, wait_until

BASH = shutil.which("bash") or "/bin/bash"

SEARCH = """
objective = "sphere"
[training]
dimension = 2
noise = 0.01
seconds = 0.3
[search]
tier = "min"
population = 4
run_id = "run"
[evaluation]
assume_eval_seconds = 1.0
[backend]
executor = "inline"
workers = 1
[slurm]
time = "10m"
"""

CAMPAIGN = """
objective = "sphere"
[training]
dimension = 2
[campaign]
name = "camp"
seeds = [1]
controls = false
[factors]
noise = [0.01, 0.02, 0.03, 0.04]
[backend]
executor = "inline"
[slurm]
time = "10m"
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


class Cluster:
    """Stand-ins for `sbatch` and `scontrol`, and what they were asked."""

    def __init__(self, product: Product) -> None:
        self.product, self.place = product, product.folder.parent / "cluster"
        self.place.mkdir()
        for name, text in (("sbatch", SBATCH), ("scontrol", SCONTROL)):
            (self.place / name).write_text(text)
            (self.place / name).chmod(0o755)
        path = f"{self.place}:{os.environ['PATH']}"
        asked = str(self.place / "asked")
        product.variables |= {"PATH": path, "ASKED": asked, "SLURM_JOB_ID": "77"}

    def run(self, *command: object, **variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [BASH, *map(str, command)], env=self.product.environment(variables),
            capture_output=True, text=True, check=False, timeout=100,
        )  # fmt: skip

    def asked(self, program: str) -> list[str]:
        log = self.place / f"asked.{program}"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def cluster(product: Product) -> Cluster:
    return Cluster(product)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, warm_start: WarmStart) -> Path:
    """The script of a job with a stand-in for the orchestrator."""
    user = Product(tmp_path_factory.mktemp("trained") / "user", warm_start)
    trainer = user.write("trainer", TRAINER)
    trainer.chmod(0o755)
    return exported(user, f"{SEARCH}max_requeues = 3\npython = '{trainer}'\n") / "run/run.slurm"


def exported(product: Product, text: str, *more: object) -> Path:
    product.write("file.toml", text)
    product("export", "slurm", "file.toml", "--out", "jobs", "--write", *more)
    return product.folder / "jobs"


def submitted(jobs: Path) -> list[tuple[str, str]]:
    rows = (line.split("\t") for line in (jobs / "submitted.tsv").read_text().splitlines())
    return [(name, job) for name, job, _ in rows]


NODES = SEARCH.replace("inline", "ray").replace("workers = 1", "workers = 2") + "nodes = 2\n"


@pytest.mark.parametrize(
    "text", [CAMPAIGN + "gpus = 1\nsetup = ['module load cuda/12']\n", NODES], ids=["one", "two"]
)
def test_every_script_is_shell_without_a_complaint(product: Product, text: str) -> None:
    product.folder = product.folder / "it's, $(a) path"
    product.folder.mkdir()
    jobs = exported(product, text)
    scripts = [jobs / "submit_all.sh", *jobs.glob("*/run.slurm")]
    assert len(scripts) == (2 if text == NODES else 5)
    checks = [[BASH, "-n"]]
    if shutil.which("shellcheck"):
        checks.append(["shellcheck", "--severity=warning"])
    for check, script in ((check, script) for check in checks for script in scripts):
        ended = subprocess.run([*check, script], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_job_asks_for_what_the_file_says_and_paths_are_plain(product: Product) -> None:
    text = f"{CAMPAIGN}partition = 'long'\ngpus = 1\nlead_seconds = 90\nextra = ['--exclude=n3']\n"
    jobs = exported(product, text, "--out", f"../{product.folder.name}/jobs")
    script = (jobs / RUNS[0] / "run.slurm").read_text()
    words = (line.split()[1] for line in script.splitlines() if line.startswith("#SBATCH"))
    asked = dict(word.removeprefix("--").partition("=")[::2] for word in words)
    wanted = {
        "job-name": f"camp-{RUNS[0]}", "partition": "long", "time": "00:10:00", "nodes": "1",
        "gres": "gpu:1", "signal": "B:USR1@90", "requeue": "", "dependency": "singleton",
        "exclude": "n3",
    }  # fmt: skip
    assert {name: asked.get(name) for name in wanted} == wanted
    assert not [path for path in jobs.rglob("*") if path.is_file() and "/../" in path.read_text()]


def test_an_export_is_never_written_over_another(product: Product) -> None:
    jobs = exported(product, CAMPAIGN)
    before = {path: path.stat().st_mtime_ns for path in jobs.rglob("*")}
    exported(product, CAMPAIGN)
    product.write("file.toml", CAMPAIGN.replace("10m", "20m"))
    product("export", "slurm", "file.toml", "--out", "jobs", "--write", code=2)
    assert {path: path.stat().st_mtime_ns for path in jobs.rglob("*")} == before
    exported(product, CAMPAIGN.replace("10m", "20m"), "--replace")
    assert "00:20:00" in (jobs / RUNS[0] / "run.slurm").read_text()


def test_submit_all_stops_at_the_first_refusal_and_skips_what_was_submitted(
    product: Product, cluster: Cluster
) -> None:
    jobs = exported(product, CAMPAIGN)
    script = jobs / "submit_all.sh"
    dry = cluster.run(script, "--dry-run")
    assert (dry.stdout.count("sbatch"), cluster.asked("sbatch")) == (4, [])
    assert cluster.run(script, REFUSED=RUNS[2]).returncode == 1
    assert submitted(jobs) == [(RUNS[0], "1001"), (RUNS[1], "1002")]
    assert cluster.run(script, "--chain", "afterok").returncode == 0
    assert [name for name, _ in submitted(jobs)] == RUNS
    assert [call.split()[0] for call in cluster.asked("sbatch")] == [*RUNS[:3], *RUNS[2:]]
    assert "--dependency=afterok:1002,singleton" in cluster.asked("sbatch")[3]
    assert cluster.run(script).returncode == 0
    assert len(cluster.asked("sbatch")) == 5


@pytest.mark.parametrize(
    ("ends", "sent", "restarts", "code", "is_requeued"),
    [
        ("0", "", 0, 0, False),
        ("4", "", 0, 0, False),  # a No-Go, or a budget that is spent, is a result
        ("3", "", 0, 3, False),
        ("7", "", 1, 7, False),
        ("never", "USR1", 0, 143, True),  # the time limit is near
        ("never", "USR1", 3, 143, False),  # slurm.max_requeues
        ("never", "TERM", 1, 143, False),  # scancel; what SLURM preempts, it requeues itself
        ("5", "", 0, 5, False),  # somebody else has the run
        ("5", "", 1, 5, True),  # it may be this job's own predecessor, on a node that is cut off
        ("5", "", 10, 5, False),
    ],
)
def test_how_a_run_ends_decides_what_becomes_of_its_job(
    cluster: Cluster, trained: Path, ends: str, sent: str, restarts: int, code: int,
    is_requeued: bool,
) -> None:  # fmt: skip
    variables = {"ENDS": ends, "SENT": sent, "SLURM_RESTART_COUNT": str(restarts)}
    ended = cluster.run(trained, **variables)
    assert ended.returncode == code, ended
    assert cluster.asked("scontrol") == (["requeue 77"] if is_requeued else [])


def test_the_last_words_of_a_preempted_job_hold_when_slurm_requeues_it(
    cluster: Cluster, trained: Path
) -> None:
    said = cluster.run(trained, ENDS="never", SENT="TERM").stdout
    assert "squeue" in said  # shows which of both it is
    assert "Not requeued" not in said


def test_a_search_cut_by_its_time_limit_and_met_by_its_own_restart_ends_like_any_other(
    product: Product, cluster: Cluster
) -> None:
    jobs = exported(product, SEARCH)
    job, run = jobs / "run/run.slurm", jobs / "run/phase1/run"
    first = subprocess.Popen(
        [BASH, job], env=product.environment(), stdout=subprocess.PIPE, text=True
    )
    wait_until(lambda: records(run) >= 6)
    assert cluster.run(job, SLURM_RESTART_COUNT="1").returncode == 5
    first.send_signal(signal.SIGUSR1)
    said, _ = first.communicate(timeout=100)
    assert first.returncode == 143, said
    assert cluster.asked("scontrol") == ["requeue 77"] * 2
    assert cluster.run(job, SLURM_RESTART_COUNT="2").returncode == 0
    assert Books.of(run).statuses == {"ok": 16}
    product.verify(run)
    product("run", "file.toml")
    assert Books.of(product.folder / "artifacts/cmaes/phase1/run").essence == Books.of(run).essence


# A real SLURM, on this machine

CONF = """
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=46827
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
StateSaveLocation={home}/ctld
SlurmctldPidFile={home}/ctld.pid
SlurmctldLogFile={home}/ctld.log
SlurmdPidFile={home}/%n.pid
SlurmdLogFile={home}/%n.log
SlurmdSpoolDir={home}/spool-%n
SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port=46921 CPUs=2
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port=46922 CPUs=2
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
PROGRAMS = ("sbatch", "squeue", "scontrol", "sinfo", "slurmctld", "slurmd", "munged")


class Slurm:
    """slurmctld, two slurmd and munge of our own, as root."""

    def __init__(self, product: Product, home: Path) -> None:
        self.home, self.product = home, product
        host = os.uname().nodename.partition(".")[0]
        product.variables["SLURM_CONF"] = str(home / "slurm.conf")
        (home / "slurm.conf").write_text(CONF.format(host=host, home=home))
        (home / "ctld").mkdir()
        (home / "munge.key").write_bytes(os.urandom(1024))
        (home / "munge.key").chmod(0o600)
        munge = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log",
                 "seed-file": "seed"}  # fmt: skip
        self("munged", "--force", *(f"--{o}={home}/munge.{name}" for o, name in munge.items()))
        self("slurmctld", "-c")
        for node in ("n1", "n2"):
            self("slurmd", "-N", node)
        wait_until(lambda: self("sinfo", "-hN", "-o", "%t").split() == ["idle"] * 2)

    def __call__(self, *command: object, cwd: Path | None = None) -> str:
        return subprocess.run(
            [*map(str, command)], env=self.product.environment(), cwd=cwd,
            capture_output=True, text=True, check=True, timeout=60,
        ).stdout  # fmt: skip

    def state(self, job: str, field: str = "%T") -> str:
        return self("squeue", "-h", "-t", "all", "-j", job, "-o", field).strip()

    def goes_on_now(self, job: str) -> None:
        """A requeued job waits two minutes by SLURM's own rule."""
        wait_until(lambda: self.state(job) == "PENDING")
        self("scontrol", "update", f"job={job}", "starttime=now")

    def end(self) -> None:
        for name in ("n1", "n2", "ctld", "munge"):
            if (pid := self.home / f"{name}.pid").exists():
                os.kill(int(pid.read_text()), signal.SIGKILL)


@pytest.fixture
def slurm(product: Product, tmp_path: Path) -> Iterator[Slurm]:
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or os.getuid():
        pytest.skip(f"needs root and {', '.join(missing)}: apt-get install slurm-wlm munge")
    home = tmp_path / "slurm"
    home.mkdir()
    cluster = Slurm(product, home)
    yield cluster
    cluster.end()


@pytest.mark.slow
def test_a_real_slurm_runs_cancels_requeues_and_survives_a_node_that_is_cut_off(
    product: Product, slurm: Slurm
) -> None:
    jobs = exported(product, SEARCH.replace("seconds = 0.3", "seconds = 1.0"))
    run = jobs / "run/phase1/run"
    slurm(jobs / "submit_all.sh")
    ((_, job),) = submitted(jobs)
    wait_until(lambda: records(run) >= 6)
    slurm("scontrol", "requeue", job)
    slurm.goes_on_now(job)
    wait_until(lambda: Books.of(run).sessions == 2 and slurm.state(job) == "RUNNING")
    node = slurm.state(job, "%N")
    pid = slurm.home / f"{node}.pid"
    os.kill(int(pid.read_text()), signal.SIGKILL)  # of the daemon: the job itself lives on
    pid.unlink()
    slurm("scontrol", "update", f"nodename={node}", "state=down", "reason=cut off")
    slurm.goes_on_now(job)
    wait_until(lambda: "Restarts=3" in slurm("scontrol", "show", "job", job))  # it met itself
    wait_until(lambda: Books.of(run).is_concluded)
    slurm.goes_on_now(job)
    wait_until(lambda: slurm.state(job) == "COMPLETED")
    assert (Books.of(run).sessions, len(Books.of(run).results)) == (2, 16)
    product.verify(run)
