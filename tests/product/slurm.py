"""SLURM: fake programs that record their calls, or real daemons on this machine."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.product.product import Product, wait_until

SBATCH = """#!/bin/bash
echo "$(basename "$PWD") $*" >>"$ASKED.sbatch"
if [[ $(basename "$PWD") == "${REFUSED:-}" ]]; then exit 1; fi
echo $((1000 + $(wc -l <"$ASKED.sbatch")))
"""
SCONTROL = '#!/bin/bash\necho "$*" >>"$ASKED.scontrol"\n'


def shell(product: Product, *command: object, code: int = 0, **variables: str) -> str:
    """Run a program, check its exit code and return its output."""
    ended = subprocess.run(
        [*map(str, command)], env=product.environment(variables),
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert ended.returncode == code, ended
    return ended.stdout


@pytest.fixture
def cluster(product: Product) -> Product:
    """A user with a fake `sbatch` and `scontrol`, which record their calls."""
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
    """Start slurmctld, two slurmd and munge as root; yield their directory."""
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
