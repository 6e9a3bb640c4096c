"""Ray clusters that are joined with --address, and what is said when one loses a node."""

import json
import os
import subprocess
import sys

import pytest

from tests.acceptance.books import Books, records
from tests.acceptance.product import Product, wait_until

pytestmark = pytest.mark.xdist_group("ray")

ALONE = ("unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc")
"""A network, mounts and processes of its own: nobody can reach a Ray without a token there."""

SCRIPT = """
set -e
mount -t tmpfs none /mnt # its sockets want a short path
ip link set lo up
ip address add 10.77.0.1/32 dev lo
export HOME="$PWD" RAY_USAGE_STATS_ENABLED=0 RAY_memory_monitor_refresh_ms=0
RAY_AUTH_MODE=disabled "$0" -m ray.scripts.scripts start --head --port=6399 --num-cpus=3 \\
  --node-ip-address=10.77.0.1 --include-dashboard=false --object-store-memory=83886080 \\
  --temp-dir=/mnt/ray >start.txt 2>&1
"$0" -m orchestrator doctor --quick --objective sphere --address 10.77.0.1:6399 --json
"""

NODES = """
import sys
from ray.cluster_utils import Cluster
options = {"num_cpus": 1, "object_store_memory": 83886080}
nodes = Cluster(initialize_head=True, head_node_args={**options, "include_dashboard": False})
second = nodes.add_node(**options)
print(nodes.address, flush=True)
sys.stdin.readline()
nodes.remove_node(second, allow_graceful=False)
sys.stdin.readline()
nodes.shutdown()
"""


def test_doctor_judges_the_cluster_that_is_joined_and_never_says_to_end_it(
    product: Product,
) -> None:
    if subprocess.run([*ALONE, "ip", "link"], capture_output=True, check=False).returncode:
        pytest.skip("no network of one's own can be had here")
    variables = product.environment().items()
    ended = subprocess.run(
        [*ALONE, "bash", "-c", SCRIPT, sys.executable], cwd=product.folder, text=True,
        env={name: value for name, value in variables if not name.startswith("RAY_")},
        capture_output=True, check=False, timeout=250,
    )  # fmt: skip
    assert ended.returncode == 0, ended
    judged = json.loads(ended.stdout)
    found = {one["item"]: one for part in judged["sections"] for one in part["findings"]}
    assert found["CPUs"]["seen"].startswith("3 ")
    assert found["evaluations at once"]["seen"].startswith("3 ")
    assert not [one for one in found.values() if "kill" in one["mend"] or "stop" in one["mend"]]


@pytest.mark.slow
def test_a_node_that_is_lost_is_named_and_the_search_ends_on_the_other_one(
    product: Product,
) -> None:
    """Two nodes on this machine's loopback; a line of input ends the second one."""
    token = product.write("../token", os.urandom(32).hex())
    token.chmod(0o600)
    product.variables |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
    nodes = subprocess.Popen(
        [sys.executable, "-c", NODES], env=product.environment(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with nodes:
        assert nodes.stdin is not None
        assert nodes.stdout is not None
        words = ("phase1", "--tier", "min", "--objective", "sphere", "--assume-eval-seconds", "3")
        address = nodes.stdout.readline().strip()
        run = product.start(*words, "--set", "seconds=3", "--address", address)
        ledgers = product.folder.glob
        wait_until(lambda: any(records(path.parent) >= 6 for path in ledgers("**/ledger.jsonl")))
        nodes.stdin.write("\n")
        nodes.stdin.flush()
        said, _ = run.communicate(timeout=200)
    host = os.uname().nodename
    assert [line for line in said.splitlines() if line.startswith("Warning") and host in line], said
    assert len(Books.of(product.run_directory()).results) == 16
    product.verify()
