"""A Ray cluster that is joined with --address, and what is said when it loses a node."""

import os
import subprocess
import sys

import pytest

from tests.product.books import records
from tests.product.product import Product, wait_until

NODES = """
import sys
from ray.cluster_utils import Cluster
options = {"num_cpus": 3, "object_store_memory": 83886080}
nodes = Cluster(initialize_head=True, head_node_args={**options, "include_dashboard": False})
second = nodes.add_node(**options)
print(nodes.address, flush=True)
sys.stdin.readline()
nodes.remove_node(second, allow_graceful=False)
sys.stdin.readline()
nodes.shutdown()
"""
SEARCH = "phase1 --tier min --objective sphere --assume-eval-seconds 3 --set seconds=3"


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_the_cluster_that_is_joined_is_judged_and_a_node_that_it_loses_is_named(
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
        address = nodes.stdout.readline().strip()
        judged = product.json(f"doctor --objective sphere --address {address}")
        found = {one["item"]: one for one in judged["findings"]}
        assert found["evaluations at once"]["seen"].startswith("6 ")
        assert not [one for one in found.values() if "kill" in one["fix"] or "stop" in one["fix"]]

        run = product.start(f"{SEARCH} --workers 6 --address {address}")
        ledgers = product.folder.glob
        wait_until(lambda: any(records(path.parent) >= 6 for path in ledgers("**/ledger.jsonl")))
        nodes.stdin.write("\n")
        nodes.stdin.flush()
        said, _ = run.communicate(timeout=200)
    host = os.uname().nodename
    assert [line for line in said.splitlines() if line.startswith("Warning") and host in line], said
    assert len(product.books().results) == 16
    product.verify()
