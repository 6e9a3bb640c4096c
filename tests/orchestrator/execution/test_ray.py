"""Faults on a real Ray cluster of two nodes on the loopback."""

import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from unittest.mock import MagicMock

import psutil
import pytest

from budgets.events import Status
from orchestrator.execution import ray
from orchestrator.execution.api import Attempt
from orchestrator.execution.ray import RayExecutor, set_environment
from tests.orchestrator.execution.conftest import (
    NASTY,
    ONE,
    TWO,
    above,
    alive,
    assemble,
    supervisor_of,
    the_one,
    vanish,
    wait_until,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]
Make = Callable[..., Attempt]


@pytest.fixture(scope="module")
def cluster(_importable: None) -> Iterator[Any]:
    """Two nodes with a CPU each, joined with the user's token."""
    set_environment(own_token=True)
    from ray.cluster_utils import Cluster

    often = {"health_check_period_ms": 200}  # so that a dead node is noticed soon
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": often}
    nodes = Cluster(initialize_head=True, head_node_args=head)
    nodes.add_node(num_cpus=1)
    yield nodes
    nodes.shutdown()  # type: ignore[no-untyped-call]


@pytest.fixture
def two_nodes(cluster: Any) -> Any:
    """The cluster, with the second node alive."""
    for node in cluster.worker_nodes.copy():
        if not node.any_processes_alive() or node.dead_processes():
            cluster.remove_node(node)
    if not cluster.worker_nodes:
        cluster.add_node(num_cpus=1)
    return cluster


def raylet_of(attempt: Attempt) -> psutil.Process:
    """The node on which the attempt runs."""
    return next(one for one in above(attempt) if one.name() == "raylet")


def started_both(
    executor: RayExecutor, two: list[Attempt], cluster: Any
) -> tuple[Attempt, Attempt]:
    """The attempt on the second node, and the other one."""
    for attempt in two:
        executor.submit(attempt)
    for attempt in two:
        assemble(attempt, 1, executor)
    (node,) = cluster.worker_nodes
    pid = node.all_processes["raylet"][0].process.pid
    first, second = two
    return (first, second) if raylet_of(first).pid == pid else (second, first)


def signal_all(found: list[psutil.Process], signum: signal.Signals) -> None:
    for process in found:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signum)


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The patience with a silent node is short."""
    for name, seconds in (("LEASE", 4.0), ("MARGIN", 0.5)):
        monkeypatch.setattr(ray, f"{name}_SECONDS", seconds)


@pytest.mark.usefixtures("_quick")
def test_a_frozen_node_loses_its_attempt_at_the_lease_and_is_used_again_when_it_thaws(
    two_nodes: Any, make_attempt: Make
) -> None:
    two = [make_attempt("hang"), make_attempt("hang")]
    with RayExecutor(TWO, NASTY, address=two_nodes.address) as executor:
        frozen, other = started_both(executor, two, two_nodes)
        (own,) = [one for one in executor._nodes if frozen.attempt_id in one.running]
        raylet, supervisor = raylet_of(frozen), psutil.Process(supervisor_of(frozen))
        node = [raylet, *raylet.children(recursive=True)]
        last = [supervisor, *supervisor.children()]  # to thaw
        signal_all(node, signal.SIGSTOP)
        try:
            lost = the_one(executor.wait(30.0))
            assert (lost.attempt_id, lost.status) == (frozen.attempt_id, Status.LOST)
            assert lost.seconds == frozen.limits.reserve_ms / 1000
            assert lost.cause.endswith("is lost: what it took there is not known")
            assert executor.free() == 0
            (gone,) = executor.warnings
            assert "is lost (no sign of life), with 1 of 2 slots" in gone
            assert alive(other)
            signal_all([one for one in node if one not in last], signal.SIGCONT)
            thawed = own.heard_clock + 6.0  # the agent has a new lease long before they look at it
            wait_until(lambda: executor.wait(0.05) == [] and own.heard_clock > thawed)
        finally:
            signal_all(node, signal.SIGCONT)
        wait_until(lambda: executor.wait(0.05) == [] and own.free)
        assert alive(frozen) == []
        executor.submit(make_attempt("finish"))
        assert the_one(executor.wait(30.0)).status is Status.OK


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("frozen", ["agent", "orchestrator"])
def test_an_evaluation_ends_with_a_lease_that_is_not_renewed_and_its_slot_is_used_again(
    frozen: str,
    two_nodes: Any,
    make_attempt: Make,
) -> None:
    attempt = make_attempt("resist")
    with RayExecutor(ONE, NASTY, address=two_nodes.address) as executor:
        executor.submit(attempt)
        assemble(attempt, 3, executor)
        agent = above(attempt)[1]
        if frozen == "agent":
            agent.suspend()
        try:
            vanish(attempt, within_seconds=10.0)  # `wait` is not called meanwhile
        finally:
            agent.resume()
        outcome = the_one(executor.wait(30.0))
        assert outcome.status is Status.LOST
        assert outcome.cause == "the orchestrator has not renewed its lease"
        wait_until(executor.free)
        executor.submit(make_attempt("finish"))
        assert the_one(executor.wait(30.0)).status is Status.OK


def test_a_step_renews_the_lease_from_the_answer_that_it_repeats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not from now on: it may have been queued while its node was frozen."""
    local = MagicMock(**{"wait.return_value": [], "free.return_value": 1})
    monkeypatch.setattr(ray, "LocalExecutor", lambda *_, **__: local)
    local.__enter__.return_value = local
    ray.Agent(ONE, (), 4.0).step(100.0, {}, cancel=False)
    local.extend.assert_called_once_with(104.0, {})


def test_a_killed_node_loses_its_attempt_and_nobody_elses(
    two_nodes: Any, make_attempt: Make
) -> None:
    two = [make_attempt("hang", grace_seconds=30.0), make_attempt("hang", grace_seconds=30.0)]
    with RayExecutor(TWO, NASTY, address=two_nodes.address) as executor:
        victim, other = started_both(executor, two, two_nodes)
        (node,) = two_nodes.worker_nodes
        raylet = node.all_processes["raylet"][0].process
        raylet.kill()
        raylet.wait()  # its workers see it die only when it has been reaped
        vanish(victim, within_seconds=5.0)
        outcome = the_one(executor.wait(20.0))
        assert (outcome.attempt_id, outcome.status) == (victim.attempt_id, Status.LOST)
        assert outcome.seconds < 20.0
        assert alive(other)
        assert executor.free() == 0
