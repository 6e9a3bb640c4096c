"""The executor on a Ray cluster: one agent per node, a local executor for that node's devices.

Ray places the agents, carries requests and answers, and reports when an agent has died. It retries
nothing and supervises nothing; that happens beside the evaluation (see `supervisor`). Leases show
what Ray does not report: that a node is frozen or out of reach (see `Lease`).

A node is *lost* when its agent has died, or has been silent for so long that its lease has expired
there. Its supervisors then end what they run. Those attempts come back with their `summary.json`,
or are charged in full at a deadline. A lost node gets another agent and is used again when that
answers.

The only module that imports ray.
"""

import math
import os
import platform
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from budgets.events import Status
from budgets.formatting import counted
from objectives.api import SetupError, missing_package
from orchestrator.execution.api import Attempt, EngineError, Outcome, Slots
from orchestrator.execution.devices import Offer, cpu_name
from orchestrator.execution.files import (
    CONFIG,
    end_if_abandoned,
    read,
    read_summary,
    write_config,
)
from orchestrator.execution.local import EXIT_SECONDS, LocalExecutor
from orchestrator.execution.ray_access import check_address, reach, set_environment, use_own_token
from orchestrator.execution.signals import Insisted, insisted_on
from orchestrator.execution.trainer import MAIN

START_SECONDS = 240.0  # for all agents and their fork servers
LOOK_SECONDS = 0.25  # longest wait for an answer before files and silent nodes are checked
BUSY_STEP_SECONDS, FREE_STEP_SECONDS = 0.25, 0.05
"""How long a step waits for outcomes: with all devices in use, and with a free one."""
PROBE_SECONDS = 5.0  # between two checks of Ray's control service
DRAIN_SECONDS = 25.0  # without control service; after 60 s Ray kills its driver without a word
DEATHS = 3  # of a node's agents in a row; then the node is given up
ROOT = Path(__file__).resolve().parents[2]  # the directory of this package
OBJECT_STORE_BYTES = 80 * 2**20  # near Ray's minimum: nothing large goes through it


@dataclass(frozen=True)
class LeaseTerms:
    """How soon an orchestrator and a node without contact give each other up."""

    silent_seconds: float = 30.0  # without an answer: start nothing there
    lease_seconds: float = 60.0  # without a step: the node ends what it runs
    margin_seconds: float = 10.0  # beyond lease and grace, until a silent node is lost


@dataclass(frozen=True)
class Answer:
    """An agent's answer to a step."""

    host: str
    clock: float  # of this machine; see `Lease`
    outcomes: list[Outcome]
    free: int  # devices
    warnings: tuple[str, ...]  # all so far
    is_spent: bool  # no device is left here
    problem: str  # that ends the run: no other node can make up for it


class Agent:
    """A node's agent: a Ray actor that runs a local executor, driven in steps."""

    def __init__(  # noqa: PLR0913, PLR0917 - how to evaluate
        self,
        count: int,
        device: Literal["cpu", "cuda"],
        threads: int,
        preload: tuple[str, ...],
        entry: str,
        lease_seconds: float,
    ) -> None:
        gpus = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]
        self._host = platform.node()
        self._local = LocalExecutor(
            Slots(count, device, "", threads),
            preload,
            entry=entry,
            gpu_ids=gpus if device == "cuda" else None,
            host=self._host,
            lease_seconds=lease_seconds,
        )
        self._local.__enter__()

    def step(self, heard_at: float, start: list[Path], cancel: bool) -> Answer:
        """Renew the lease, start the attempts in these directories, wait a moment."""
        problem, outcomes = self._start(heard_at, start)
        if cancel:
            self._local.cancel()
        began, (free, _) = time.monotonic(), self._free()
        seconds = FREE_STEP_SECONDS if free else BUSY_STEP_SECONDS
        outcomes += self._local.wait(seconds)
        if not outcomes:  # `wait` returns at once when nothing is running
            time.sleep(max(0.0, began + seconds - time.monotonic()))
        free, is_spent = self._free()
        return Answer(
            host=self._host,
            clock=time.monotonic(),
            outcomes=outcomes,
            free=free,
            warnings=self._local.warnings,
            is_spent=is_spent,
            problem=problem,
        )

    def _start(self, heard_at: float, directories: list[Path]) -> tuple[str, list[Outcome]]:
        """Return the problem with these attempts' files, if any, and the attempts not started.

        An attempt is not started if its request was queued in a frozen process until the lease had
        expired: the orchestrator has given it up.
        """
        assert self._local.lease is not None
        is_current, problem, late = self._local.lease.extend(heard_at), "", list[Outcome]()
        for directory in directories:
            if (attempt := read(Attempt, directory / CONFIG)) is None:
                problem = (
                    f"{self._host} cannot read {directory / CONFIG}: the run's directory "
                    f"must be on storage that all nodes share. Give one with --runs-dir"
                )
            elif is_current:
                self._local.start(attempt)
            elif outcome := end_if_abandoned(
                directory, attempt.attempt_id, 0.0, may_still_start=False
            ):
                late.append(outcome)
        return problem, late

    def _free(self) -> tuple[int, bool]:
        """Return how many devices are free, and whether all have been withdrawn."""
        try:
            return self._local.free(), False
        except EngineError:
            return 0, True


@dataclass
class _Node:
    """One node as the driver sees it."""

    node_id: str
    count: int  # of its slots
    agent: Any = None
    call: Any = None  # Ray's reference to the answer of the current step
    host: str = "a node that has not answered"
    free: int = 0  # devices
    running: dict[str, Attempt] = field(default_factory=dict)  # by id
    to_start: list[Attempt] = field(default_factory=list)  # with the next step
    agent_started_at: float = 0.0
    heard_at: float = -math.inf  # time of the last answer
    heard_clock: float = -math.inf  # the agent's clock in it
    warnings: int = 0  # how many of the agent's warnings have been passed on
    deaths: int = 0  # of its agents in a row
    is_lost: bool = True  # its agent has not answered yet
    is_spent: bool = False  # no device is left there

    def take(self, attempt: Attempt) -> None:
        """Start the attempt with the next step."""
        self.free -= 1
        self.running[attempt.attempt_id] = attempt
        self.to_start.append(attempt)

    def hear(self, answer: Answer) -> None:
        """Update from an answer; attempts taken since its step was sent need a device too."""
        self.host, self.heard_at, self.heard_clock = answer.host, time.monotonic(), answer.clock
        self.free = max(0, answer.free - len(self.to_start))
        self.is_lost, self.is_spent, self.deaths = False, answer.is_spent, 0


class RayExecutor:
    """Evaluates on every node of a Ray cluster, each evaluation in its own supervised process tree.

    `address` None means $RAY_ADDRESS, or else a Ray that is started here and ended on exit. The
    attempts' directories must be on storage that all nodes share. `wait` renews the leases: call it
    every few seconds.
    """

    def __init__(  # noqa: PLR0913 - how to evaluate, and where
        self,
        slots: Slots,
        preload: Sequence[str] = (),
        address: str | None = None,
        *,
        run_name: str = "run",
        entry: str = MAIN,
        lease: LeaseTerms | None = None,
    ) -> None:
        self.slots = slots
        self.warnings: tuple[str, ...] = ()
        self._terms = lease or LeaseTerms()
        self._preload, self._entry = tuple(preload), entry
        self._address, self._run_name = address, run_name
        self._nodes: list[_Node] = []
        self._orphans: dict[str, tuple[Attempt, str, float]] = {}  # attempt, host, deadline
        self._arrived: list[Outcome] = []
        self._is_cancelled = False
        self._connection: Any = None
        self._control = ""  # the address of Ray's control service
        self._control_probed_at = self._control_seen_at = 0.0

    def __enter__(self) -> Self:
        with insisted_on([]):
            self._connection = connected(self._address, self._run_name)
            self._connection.__enter__()
            try:
                self._control = _ray().get_runtime_context().gcs_address
                self._nodes = [_Node(*place) for place in placed(self.slots)]
                for node in self._nodes:
                    self._start_agent(node)
                self._wait_until_ready()
            except BaseException:
                self._leave()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self._is_cancelled = True
        graces = [attempt.limits.grace_seconds for attempt in self._in_flight()]
        deadline = time.monotonic() + max(graces, default=0.0) + EXIT_SECONDS
        try:
            while self._in_flight() and time.monotonic() < deadline:
                self.wait(1.0)
        except EngineError:
            pass  # the agents' end breaks their lifelines, which ends what they run
        finally:
            self._leave()

    def free(self) -> int:
        self._collect(0.0)  # no new step: what is submitted now goes with the next one
        if not self._in_flight() and not self._arrived:
            self._raise_if_hopeless()
            if not any(map(self._is_open, self._nodes)):
                self._step_all(LOOK_SECONDS)
        return sum(node.free for node in self._nodes if self._is_open(node))

    def submit(self, attempt: Attempt) -> None:
        nodes = [node for node in self._nodes if node.free]
        if not nodes:
            raise EngineError(f"all {self.slots.count} slots are in use")
        write_config(attempt)
        max(nodes, key=lambda node: (self._is_open(node), node.free)).take(attempt)

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        deadline = time.monotonic() + timeout_seconds
        while True:
            left = deadline - time.monotonic()
            self._step_all(max(0.0, min(left, LOOK_SECONDS)) if self._in_flight() else 0.0)
            if self._arrived or not self._in_flight() or left <= 0:
                break
        arrived, self._arrived = self._arrived, []
        return arrived

    def _in_flight(self) -> list[Attempt]:
        running = [attempt for node in self._nodes for attempt in node.running.values()]
        return running + [attempt for attempt, _, _ in self._orphans.values()]

    def _is_open(self, node: _Node) -> bool:
        """Return whether attempts can start there: a free device, and an answer lately."""
        return node.free > 0 and time.monotonic() - node.heard_at < self._terms.silent_seconds

    def _step_all(self, seconds: float) -> None:
        """Send a step to every node that has answered, then collect answers."""
        for node in self._nodes:
            if node.call is None:
                self._step(node)
        self._collect(seconds)

    def _collect(self, seconds: float) -> None:
        """Wait so long for an answer; take in all that have come, and settle what is lost."""
        self._check_control()
        calls = {node.call: node for node in self._nodes if node.call is not None}
        if calls:
            _ray().wait(list(calls), num_returns=1, timeout=seconds)
            for call in _ray().wait(list(calls), num_returns=len(calls), timeout=0)[0]:
                self._take_in(calls[call])
        else:
            time.sleep(seconds)
        now = time.monotonic()
        for node in self._nodes:
            is_silent = now - node.heard_at > self._patience_with(node)
            if is_silent and not node.is_lost and not self._is_cut_off:
                self._lose(node, "no sign of life")
        self._settle_orphans(now)

    def _check_control(self) -> None:
        """Raise EngineError when Ray's control service is gone for good; some restart it.

        Outcomes that come meanwhile are collected, and no node is declared lost.
        """
        now = time.monotonic()
        if now - self._control_probed_at < PROBE_SECONDS:
            return
        try:
            reach(self._control)
            self._control_seen_at = now
        except EngineError:
            if now - self._control_seen_at > DRAIN_SECONDS:
                raise
        self._control_probed_at = now

    @property
    def _is_cut_off(self) -> bool:
        return self._control_seen_at < self._control_probed_at

    def _step(self, node: _Node) -> None:
        directories = [attempt.directory for attempt in node.to_start]
        node.to_start = []
        node.call = node.agent.step.remote(node.heard_clock, directories, self._is_cancelled)

    def _take_in(self, node: _Node) -> None:
        """Take in the answer of a node's agent, or its death."""
        ray, call, node.call = _ray(), node.call, None
        try:
            answer: Answer = ray.get(call)
        except (ray.exceptions.RayActorError, ray.exceptions.ActorUnschedulableError) as error:
            node.deaths += 1
            is_down = isinstance(error, ray.exceptions.ActorUnschedulableError)
            if not self._is_cut_off:
                self._lose(node, "it is down" if is_down else "its agent has died")
                if is_down or node.deaths > DEATHS:
                    self._nodes = [other for other in self._nodes if other is not node]
            return
        except ray.exceptions.RayError as error:
            raise EngineError(f"the agent of {node.host} failed: {error}") from error
        if answer.problem:
            raise EngineError(answer.problem)
        node.hear(answer)
        self.warnings += answer.warnings[node.warnings :]
        node.warnings = len(answer.warnings)
        for outcome in answer.outcomes:
            name = outcome.attempt_id
            if node.running.pop(name, None) or self._orphans.pop(name, None):
                self._arrived.append(outcome)

    def _patience_with(self, node: _Node) -> float:
        """Return how long after a node's last answer its lease has ended all that ran there."""
        graces = [attempt.limits.grace_seconds for attempt in node.running.values()]
        return self._terms.lease_seconds + max(graces, default=0.0) + self._terms.margin_seconds

    def _lose(self, node: _Node, why: str) -> None:
        """Wait for the ends of what ran on the node, and start another agent there."""
        if not node.is_lost:
            left = sum(one.count for one in self._nodes if not (one.is_lost or one is node))
            self.warnings += (
                f"node {node.host} is lost ({why}), with {node.count} of {self.slots.count} slots; "
                f"{left} go on, and it is used again if it comes back (ray status)",
            )
        deadline = node.heard_at + self._patience_with(node)
        for name, attempt in node.running.items():
            self._orphans[name] = attempt, node.host, deadline
        node.running, node.to_start = {}, []
        node.is_lost, node.free, node.call = True, 0, None
        with suppress(_ray().exceptions.RayError):
            _ray().kill(node.agent)
        self._start_agent(node)
        self._step(node)

    def _settle_orphans(self, now: float) -> None:
        """Return attempts of lost nodes by their summaries, or charge them at their deadline."""
        for name, (attempt, host, deadline) in list(self._orphans.items()):
            outcome = read_summary(attempt.directory, name)
            if outcome is None and now > deadline:
                outcome = Outcome(
                    attempt_id=name,
                    status=Status.LOST,
                    cause=f"node {host} is lost: what it took there is not known",
                    seconds=attempt.limits.reserve_ms / 1000,
                )
            if outcome is not None:
                self._arrived.append(outcome)
                del self._orphans[name]

    def _start_agent(self, node: _Node) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        ray, slots = _ray(), self.slots
        is_gpu = slots.device == "cuda"
        options: dict[str, Any] = {
            "num_cpus": 0 if is_gpu else node.count * slots.threads,
            "num_gpus": node.count if is_gpu else 0,
            "max_restarts": 0,  # only the ledger retries
            "max_task_retries": 0,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node.node_id, soft=False),
        }
        settings = (node.count, slots.device, slots.threads, self._preload, self._entry)
        agent = ray.remote(Agent).options(**options)
        node.agent = agent.remote(*settings, self._terms.lease_seconds)
        node.heard_clock, node.warnings, node.agent_started_at = -math.inf, 0, time.monotonic()

    def _wait_until_ready(self) -> None:
        ray = _ray()
        for node in self._nodes:
            self._step(node)
        try:
            ray.get([node.call for node in self._nodes], timeout=START_SECONDS)
        except ray.exceptions.GetTimeoutError:
            raise EngineError(
                f"the {self.slots.count} slots were not ready after {START_SECONDS:g} s: "
                f"are the cluster's devices in use? Look with: ray status"
            ) from None
        except ray.exceptions.RayError as error:
            raise EngineError(
                f"the agent of a node could not be started: {error}\nIf RAY_AUTH_MODE=token is set "
                "here but not on the cluster, unset it"
            ) from error
        for node in self._nodes:
            self._take_in(node)

    def _raise_if_hopeless(self) -> None:
        """With nothing running: raise EngineError if no device is or may become free."""
        oldest_start = time.monotonic() - START_SECONDS
        nodes = (node for node in self._nodes if not node.is_spent)
        if not any(not node.is_lost or node.agent_started_at > oldest_start for node in nodes):
            raise EngineError(
                f"no device of the cluster is left to evaluate on. {'; '.join(self.warnings)}. "
                f"Look at it with ray status, then run the same command again"
            )

    def _leave(self) -> None:
        for node in self._nodes:
            with suppress(_ray().exceptions.RayError):
                _ray().kill(node.agent)
        if self._connection is not None:
            self._connection.__exit__(None, None, None)
            self._connection = None


def placed(slots: Slots) -> list[tuple[str, int]]:
    """Return (node's id, number of slots) by free devices. Raises EngineError if there are too few.

    Ray itself would wait silently for devices that do not exist.
    """
    each, kind = (1, "GPU") if slots.device == "cuda" else (slots.threads, "CPU")
    nodes = {node["NodeID"]: node["Resources"] for node in _ray().nodes() if node["Alive"]}
    room = {node: int(resources.get(kind, 0)) // each for node, resources in nodes.items()}
    if sum(room.values()) < slots.count:
        raise EngineError(
            f"{slots.count} slots of {each} {kind} asked for, but the Ray cluster has room for "
            f"{sum(room.values())} on {counted(len(room), 'node')}; ask for fewer, or look at the "
            "cluster with: ray status"
        )
    available = _ray()._private.state.available_resources_per_node()
    unused = {node: int(available.get(node, {}).get(kind, 0)) // each for node in room}
    if sum(unused.values()) < slots.count:  # wait for devices that others use
        unused = room
    counts = dict.fromkeys(room, 0)
    for _ in range(slots.count):  # spread: memory and disk are shared within a node
        counts[max(room, key=lambda node: unused[node] - counts[node])] += 1
    return [(node, count) for node, count in counts.items() if count]


def cluster_offer(address: str | None = None) -> Offer:
    """Return the devices of the cluster at `address` (see `RayExecutor`). Raises EngineError."""
    with connected(address, "offer"):
        ray = _ray()
        nodes = [node for node in ray.nodes() if node["Alive"]]
        resources = ray.cluster_resources()
    prefix = "accelerator_type:"
    kinds = sorted(name.removeprefix(prefix) for name in resources if name.startswith(prefix))
    return Offer(
        cpus=int(resources.get("CPU", 0)),
        cpu_name=cpu_name(),
        gpus=int(resources.get("GPU", 0)),
        gpu_name=" + ".join(kinds) or ("GPU" if resources.get("GPU") else ""),
        where=f"the Ray cluster of {counted(len(nodes), 'node')}",
    )


@contextmanager
def connected(address: str | None, namespace: str) -> Iterator[None]:
    """Join the cluster or start one here; leave or end it afterwards. Raises EngineError.

    Does nothing if this process has joined one already.
    """
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    check_address(address)
    if "ray" in sys.modules and _ray().is_initialized():
        yield
        return
    options: dict[str, Any] = {"namespace": namespace, "log_to_driver": False}
    if address == "local":
        use_own_token()
        options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    ray = _ray()
    try:
        # Workers look for modules in the driver's directory first. Ray leaves handlers of its own.
        with insisted_on([]), chdir(ROOT):
            ray.init(address=address, logging_level="ERROR", **options)
    except SystemExit as ended:  # by Ray's own handler of SIGTERM
        raise Insisted(signal.SIGTERM) from ended
    except Exception as error:
        raise EngineError(
            f"cannot start or join Ray ({address}): {error}\nLook at it with ray status, repeat "
            "the command where less else runs, or say --executor local, which does without Ray. "
            "A cluster with a token needs RAY_AUTH_MODE=token and the head's ~/.ray/auth_token here"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _ray() -> Any:
    """Return the module; imported after the variables it reads are set."""
    set_environment()
    try:
        import ray
    except ModuleNotFoundError as error:
        raise SetupError(missing_package(error.name)) from error

    return ray
