"""A driver of its own for the tests of Ray's faults: `ray_driver.py DRAFT WHERE`.

Evaluates one attempt of `nasty` on the cluster at WHERE, or on one of its own: `open`, which asks
nobody for a token, or `doomed`, whose control service is killed. Prints what came of it as JSON.
"""

# ruff: noqa: T201 - a program that prints

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from orchestrator.execution import processes
from orchestrator.execution.api import Attempt, EngineError, Slots
from orchestrator.execution.ray import RayExecutor
from orchestrator.execution.ray_access import prepare_to_join, set_environment


def main(draft: Path, where: str) -> None:
    attempt = Attempt.model_validate_json(draft.read_text())
    attempt = attempt.model_copy(update={"owner": processes.this_owner()})
    cluster = own_cluster(where) if where in ("open", "doomed") else None
    said: dict[str, Any] = {"collected": [], "error": ""}
    began = time.monotonic()
    try:
        evaluate(attempt, cluster.address if cluster else where, said, cluster, where == "doomed")
    except EngineError as error:
        said |= {"error": str(error), "seconds": time.monotonic() - began}
    print(json.dumps(said), flush=True)
    for node in [cluster.head_node, *cluster.worker_nodes] if cluster else []:
        for running in node.all_processes.values():
            for one in running:
                one.process.kill()
    os._exit(0)


def own_cluster(where: str) -> Any:
    set_environment()
    if where == "open":
        os.environ["RAY_AUTH_MODE"] = "disabled"
    else:
        prepare_to_join("local")
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    if where == "open":
        del os.environ["RAY_AUTH_MODE"]
    return cluster


def evaluate(
    attempt: Attempt, address: str, said: dict[str, Any], cluster: Any, is_doomed: bool
) -> None:
    with RayExecutor(Slots(1, "cpu", "", 1), entry="nasty:main", address=address) as executor:
        executor.submit(attempt)
        executor.wait(0.0)
        if is_doomed:
            service = cluster.head_node.all_processes["gcs_server"][0].process
            service.kill()
            service.wait()
        while is_doomed or not said["collected"]:
            said["collected"] += [(one.attempt_id, one.status) for one in executor.wait(0.5)]
            executor.free()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
