"""A driver of its own for the tests of Ray's faults: `ray_driver.py DRAFT WHERE`.

Evaluates one attempt of `nasty` on the cluster at WHERE, or, for `doomed`, on one of its own whose
control service it kills. Prints what it has collected as JSON.
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
from orchestrator.execution.ray import RayExecutor, set_environment, use_own_token


def main(draft: Path, where: str) -> None:
    attempt = Attempt.model_validate_json(draft.read_text())
    attempt = attempt.model_copy(update={"owner": processes.this_owner()})
    cluster = own_cluster() if where == "doomed" else None
    said: dict[str, Any] = {"collected": [], "error": ""}
    began = time.monotonic()
    try:
        evaluate(attempt, cluster.address if cluster else where, said, cluster)
    except EngineError as error:
        said |= {"error": str(error), "seconds": time.monotonic() - began}
    print(json.dumps(said), flush=True)
    for node in [cluster.head_node, *cluster.worker_nodes] if cluster else []:
        for running in node.all_processes.values():
            for one in running:
                one.process.kill()
    os._exit(0)


def own_cluster() -> Any:
    set_environment()
    use_own_token()
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "include_dashboard": False}
    return Cluster(initialize_head=True, head_node_args=head)


def evaluate(attempt: Attempt, address: str, said: dict[str, Any], cluster: Any) -> None:
    with RayExecutor(Slots(1, "cpu", "", 1), entry="nasty:main", address=address) as executor:
        executor.submit(attempt)
        executor.wait(0.0)
        if cluster:
            service = cluster.head_node.all_processes["gcs_server"][0].process
            service.kill()
            service.wait()
        while cluster or not said["collected"]:
            said["collected"] += [(one.attempt_id, one.status) for one in executor.wait(0.5)]
            executor.free()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
