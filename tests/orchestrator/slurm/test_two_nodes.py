"""A search over two nodes, with Ray and `ray symmetric-run` as they are.

The nodes are namespaces of this machine: `symmetric-run` ends every Ray that it sees, and there it
sees those of its own node only. srun is a script in SLURM's place.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from budgets.events import Settled
from tests.ledgers import every

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.orchestrator.slurm.conftest import Cluster

pytestmark = pytest.mark.xdist_group("ray")
REPOSITORY = Path(__file__).parents[3]
NODES = Path(__file__).parent / "two_nodes"

SEARCH = """
objective = "sphere"
[training]
noise = 0.01
seconds = 0.3
[search]
tier = "min"
run_id = "run"
[evaluation]
assume_eval_seconds = 5.0
[backend]
workers = 2
[slurm]
time = "10m"
nodes = 2
"""


def can_make_nodes() -> bool:
    """Whether this process may make namespaces and join them."""
    if os.geteuid() or not all(map(shutil.which, ("unshare", "ip", "pgrep", "getent"))):
        return False
    trial = ["unshare", "--net", "--pid", "--mount", "--uts", "--fork", "ip", "link"]
    return subprocess.run(trial, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_search_over_two_nodes_drains_is_requeued_and_finishes(
    command: "Command",
    cluster: "Cluster",
    tmp_path: Path,
) -> None:
    if not can_make_nodes():
        pytest.skip("needs root, and unshare and ip to make namespaces with")
    (tmp_path / "file.toml").write_text(SEARCH)
    assert command("export", "slurm", "file.toml", "jobs", "--write").code == 0
    run = tmp_path / "jobs" / "run"
    shared = tmp_path / "shared"
    shared.mkdir()
    shutil.copy(NODES / "srun", cluster.place / "srun")
    variables = {"SHARED": str(shared), "RUN": str(run), "WHEN": "[ 5/16]"}
    cluster.variables |= variables | {"PYTHONPATH": str(REPOSITORY)}
    both = subprocess.run(
        ["/bin/bash", str(NODES / "both.sh"), str(shared), str(NODES / "job.sh")],
        env=cluster.environment(),
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    said = {path.name: path.read_text() for path in run.glob("*.out")}
    assert both.returncode == 0, (both.stdout, both.stderr, said)
    assert cluster.asked("scontrol") == ["requeue 77"]
    assert "Got SIGUSR1" in said["slurm-1.out"]
    assert "Done (exit code 0)" in said["slurm-1.out"]
    assert "Resuming phase1 run" in said["run.out"]
    settled = every(Settled, run / "phase1" / "run")
    assert len(settled) == 16
    assert {event.device for event in settled} == {"cpu on node1", "cpu on node2"}
    assert not (run / "ray_token").exists()
