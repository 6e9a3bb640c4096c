"""A driver of its own for the tests of Ray's faults: `ray_driver.py DRAFT WHERE`.

Evaluates one attempt of `nasty` on the cluster at WHERE, or on one it starts itself, and prints
what came of it as JSON.
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
    cluster = own_cluster(where) if where.startswith("own") else None
    address = cluster.address if cluster else where
    said: dict[str, Any] = {"collected": []}
    try:
        evaluate(attempt, address, said, cluster if "kill" in where else None)
    except EngineError as error:
        said |= {"error": str(error), "ended_after": time.monotonic() - said["killed_at"]}
    print(json.dumps(said), flush=True)
    if cluster:
        kill(cluster)
    os._exit(0)


def own_cluster(where: str) -> Any:
    set_environment()
    if "open" in where:
        os.environ["RAY_AUTH_MODE"] = "disabled"
    else:
        prepare_to_join("local")
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    if "open" in where:
        del os.environ["RAY_AUTH_MODE"]
    return cluster


def evaluate(attempt: Attempt, address: str, said: dict[str, Any], victim: Any) -> None:
    with RayExecutor(Slots(1, "cpu", "", 1), entry="nasty:main", address=address) as executor:
        executor.submit(attempt)
        executor.wait(0.0)
        if victim is not None:
            said["killed_at"] = time.monotonic()
            service = victim.head_node.all_processes["gcs_server"][0].process
            service.kill()
            service.wait()
        while not said["collected"]:
            said["collected"] += [(one.attempt_id, one.status) for one in executor.wait(0.5)]
            if executor._is_cut_off() and "noticed_after" not in said:
                said["noticed_after"] = time.monotonic() - said["killed_at"]
        if victim is not None:
            executor.free()


def kill(cluster: Any) -> None:
    for node in [cluster.head_node, *cluster.worker_nodes]:
        for running in node.all_processes.values():
            for one in running:
                one.process.kill()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
