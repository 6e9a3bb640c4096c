"""Executor on a Ray cluster: one agent per node, a local executor over that node's devices.

Ray places the agents, carries requests and answers, and says when an agent has died. It retries
nothing, and it supervises nothing: that is done beside the evaluation (see `supervisor`). What Ray
cannot say, that a node is frozen or out of reach, the nodes' leases show (see `Lease`).

A node whose agent has died, or has been silent for so long that its lease has run out there, is
*lost*. What ran there becomes an orphan, which ends with the summary that its supervisor or the
node's next agent writes, or is charged in full at its deadline. A lost node is asked for another
agent, and is used again when that answers.

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
from budgets.plan import Frozen
from objectives.api import SetupError, missing_package
from orchestrator.execution.api import Attempt, EngineError, Outcome, Slots, usable
from orchestrator.execution.devices import RELEASE_SECONDS, Offer, cpu_name
from orchestrator.execution.files import (
    CONFIG,
    end_if_abandoned,
    read,
    read_summary,
    signal_supervisor,
    to_json,
    write_config,
)
from orchestrator.execution.local import EXIT_SECONDS, LocalExecutor
from orchestrator.execution.ray_access import (
    check_address,
    prepare_to_join,
    reach,
    set_environment,
)
from orchestrator.execution.signals import Insisted, insisted_on
from orchestrator.execution.trainer import MAIN

START_SECONDS = 240.0  # for all agents and their fork servers
LOOK_SECONDS = 0.25  # how often files and silent nodes are looked at
FULL_STEP_SECONDS, IDLE_STEP_SECONDS = 0.25, 0.05
"""How long a step waits for an outcome: with all devices in use, and while work may come."""
PROBE_SECONDS = 5.0  # between two looks at Ray's control service
DRAIN_SECONDS = 25.0  # without it, of the 60 s after which Ray ends its driver without a word
MAX_DEATHS = 3  # of one node's agents in a row
ROOT = Path(__file__).resolve().parents[2]  # where this package lies
OBJECT_STORE_BYTES = 80 * 2**20  # hardly more than Ray's minimum: nothing large goes through it


@dataclass(frozen=True)
class LeaseTerms:
    """How soon an orchestrator and a node that hear nothing of each other give each other up."""

    silent_seconds: float = 30.0  # without an answer: start nothing there
    lease_seconds: float = 60.0  # without a step: what runs is ended
    margin_seconds: float = 10.0  # beyond lease and grace, until a silent node is given up


class Orphan(Frozen):
    """An attempt that an earlier agent of the node left."""

    directory: Path
    attempt_id: str
    seconds: float  # that it took until then


class AgentSettings(Frozen):
    """How the agent of a node evaluates."""

    count: int
    device: Literal["cpu", "cuda"]
    threads: int
    preload: tuple[str, ...]
    entry: str
    lease_seconds: float
    release_seconds: float
    orphans: tuple[Orphan, ...] = ()


class Answer(Frozen):
    """What a step comes to."""

    host: str
    clock: float  # of this machine: see `Lease`
    outcomes: tuple[Outcome, ...]
    free: tuple[str, ...]  # devices
    warnings: tuple[str, ...]  # all so far
    is_spent: bool  # no device is left here
    problem: str  # that no other node can make up for


class Agent:
    """A node's agent, driven in steps: a Ray actor, in and out of which everything goes as JSON.

    It is there when the processes of the orphans are gone. An attempt whose start lay in the queue
    of a frozen process, until its lease had run out, is not started: the orchestrator has given it
    up.
    """

    def __init__(self, settings: str) -> None:
        chosen = AgentSettings.model_validate_json(settings)
        gpus = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]
        self._host = platform.node()
        for orphan in chosen.orphans:
            _end(orphan)
        self._local = LocalExecutor(
            Slots(chosen.count, chosen.device, "", chosen.threads),
            chosen.preload,
            entry=chosen.entry,
            gpu_ids=gpus if chosen.device == "cuda" else None,
            host=self._host,
            lease_seconds=chosen.lease_seconds,
            release_seconds=chosen.release_seconds,
        )
        self._local.__enter__()

    def step(self, heard_at: float, start: tuple[str, ...], cancel: bool) -> str:
        """Renew the lease, start the attempts in these directories, wait a moment; an `Answer`."""
        problem, outcomes = self._start(heard_at, start)
        if cancel:
            self._local.cancel()
        free, in_use, _ = self._devices()
        began, seconds = time.monotonic(), IDLE_STEP_SECONDS if free else FULL_STEP_SECONDS
        outcomes += self._local.wait(seconds)
        if not (in_use or outcomes):
            time.sleep(max(0.0, began + seconds - time.monotonic()))
        free, _, is_spent = self._devices()
        answer = Answer(
            host=self._host,
            clock=time.monotonic(),
            outcomes=tuple(outcomes),
            free=tuple(free),
            warnings=self._local.warnings,
            is_spent=is_spent,
            problem=problem,
        )
        return to_json(answer)

    def _start(self, heard_at: float, directories: tuple[str, ...]) -> tuple[str, list[Outcome]]:
        """The problem with these attempts' files, if there is one, and those that are too late."""
        assert self._local.lease is not None
        is_current, problem, late = self._local.lease.extend(heard_at), "", list[Outcome]()
        for directory in map(Path, directories):
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

    def _devices(self) -> tuple[list[str], list[str], bool]:
        """Those that are free, those in use, and whether all have been withdrawn."""
        try:
            return *self._local.devices(), False
        except EngineError:
            return [], [], True


def _end(orphan: Orphan) -> None:
    """Wait until nothing of it is alive, and its end is in its directory."""
    directory, name, kill_at = orphan.directory, orphan.attempt_id, time.monotonic() + EXIT_SECONDS
    while end_if_abandoned(directory, name, orphan.seconds, may_still_start=False) is None:
        if time.monotonic() > kill_at:  # its supervisor is stopped, perhaps
            signal_supervisor(directory, signal.SIGKILL)
        time.sleep(FULL_STEP_SECONDS)


@dataclass
class _Node:
    """One node as the driver sees it."""

    node_id: str
    count: int  # of its slots
    agent: Any = None
    call: Any = None  # Ray's reference to the answer of the step in flight
    host: str = "a node that has not answered"
    free: list[str] = field(default_factory=list)  # devices
    running: dict[str, tuple[Attempt, str, float]] = field(default_factory=dict)
    """By id: the attempt, its device as far as is known here, and when it was submitted."""
    to_start: list[Attempt] = field(default_factory=list)  # with the next step
    orphans: tuple[Orphan, ...] = ()  # what its earlier agents left
    started_at: float = 0.0  # its agent
    called_at: float = 0.0
    heard_at: float = 0.0  # when an answer came
    fresh_at: float = -math.inf  # when that answer was asked for
    heard_clock: float = -math.inf  # the agent's clock in it
    warnings: int = 0  # of the agent, that have been passed on
    deaths: int = 0  # of its agents, one after another
    is_lost: bool = True  # its agent has not answered yet
    is_spent: bool = False  # no device is left there

    def take(self, attempt: Attempt, now: float) -> None:
        device = next((one for one in self.free if one != attempt.avoid), self.free[0])
        self.free.remove(device)
        self.running[attempt.attempt_id] = attempt, device, now
        self.to_start.append(attempt)

    def hear(self, answer: Answer, now: float) -> None:
        self.host, self.is_spent, self.deaths = answer.host, answer.is_spent, 0
        self.heard_at, self.fresh_at, self.heard_clock = now, self.called_at, answer.clock
        self.is_lost = False
        self.free, self.orphans = list(answer.free), ()
        for attempt in self.to_start:  # since the step was asked for
            device = self.running[attempt.attempt_id][1]
            if device in self.free:
                self.free.remove(device)


class RayExecutor:
    """Evaluations on every node of a Ray cluster, each in its own supervised process tree.

    `address` None means $RAY_ADDRESS, and without that a Ray started here and ended on exit.
    Attempts' directories must be on storage that all nodes share. Leases are renewed by `wait`:
    call it every few seconds.
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
        release_seconds: float = RELEASE_SECONDS,
    ) -> None:
        self.slots = slots
        self.warnings: tuple[str, ...] = ()
        self._terms = lease or LeaseTerms()
        self._settings = AgentSettings(
            count=slots.count,
            device=slots.device,
            threads=slots.threads,
            preload=tuple(preload),
            entry=entry,
            lease_seconds=self._terms.lease_seconds,
            release_seconds=release_seconds,
        )
        self._address = address
        self._run_name = run_name
        self._nodes: list[_Node] = []
        self._orphans: dict[str, tuple[Attempt, str, float]] = {}  # attempt, host, deadline
        self._arrived: list[Outcome] = []
        self._is_cancelled = False
        self._looked_at = self._patient_until = -math.inf
        self._connection: Any = None
        self._control = ""  # the address of Ray's control service
        self._probed_at = -math.inf
        self._cut_off_at: float | None = None  # since when it does not answer

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

    def free(self, avoid: str = "") -> int:
        """With nothing in flight and no device free it waits a moment for one."""
        self._take_in_all(0.0)  # without a step: what is submitted now goes with the next one
        if not self._in_flight() and not self._arrived:
            self._raise_if_hopeless()
            if not any(self._open_nodes()):
                self._look(LOOK_SECONDS)
        names = [name for node in self._open_nodes() for name in node.free]
        in_use = [device for node in self._nodes for _, device, _ in node.running.values()]
        return usable(names, in_use, avoid)

    def submit(self, attempt: Attempt) -> None:
        nodes = list(self._open_nodes()) or [node for node in self._nodes if node.free]
        if not nodes:
            raise EngineError(f"all {self.slots.count} slots are in use")
        write_config(attempt)
        others = [node for node in nodes if any(name != attempt.avoid for name in node.free)]
        max(others or nodes, key=lambda node: len(node.free)).take(attempt, time.monotonic())

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        deadline = time.monotonic() + timeout_seconds
        while True:
            left = deadline - time.monotonic()
            self._look(max(0.0, min(left, LOOK_SECONDS)) if self._in_flight() else 0.0)
            if self._arrived or not self._in_flight() or left <= 0:
                break
        arrived, self._arrived = self._arrived, []
        return arrived

    def _in_flight(self) -> list[Attempt]:
        running = [attempt for node in self._nodes for attempt, _, _ in node.running.values()]
        return running + [attempt for attempt, _, _ in self._orphans.values()]

    def _open_nodes(self) -> Iterator[_Node]:
        """Nodes with a free device, heard of lately."""
        now = time.monotonic()
        for node in self._nodes:
            if node.free and now - node.fresh_at < self._terms.silent_seconds:
                yield node

    def _look(self, seconds: float) -> None:
        """Step every node that has answered, then take in what comes within the time."""
        for node in self._nodes:
            if node.call is None:
                self._step(node)
        self._take_in_all(seconds)

    def _take_in_all(self, seconds: float) -> None:
        """Wait so long for an answer, take in those that are there, settle what is lost."""
        self._probe_control()
        calls = {node.call: node for node in self._nodes if node.call is not None}
        if calls:
            _ray().wait(list(calls), num_returns=1, timeout=seconds)
            for call in _ray().wait(list(calls), num_returns=len(calls), timeout=0)[0]:
                self._take_in(calls[call])
        else:
            time.sleep(seconds)
        now = time.monotonic()
        if now - self._looked_at > self._terms.margin_seconds:  # who was silent: they, or we?
            self._patient_until = now + self._terms.margin_seconds
        self._looked_at = now
        for node in list(self._nodes):
            self._check_silence(node, now)
        self._end_orphans(now)

    def _probe_control(self) -> None:
        """Raises EngineError once Ray's control service is gone for good: some clusters restart it.

        What ends meanwhile is collected, but a node cannot be told from one that is lost.
        """
        now = time.monotonic()
        if now - self._probed_at < PROBE_SECONDS:
            return
        self._probed_at = now
        try:
            reach(self._control)
        except EngineError:
            self._cut_off_at = self._cut_off_at or now
            if now - self._cut_off_at > DRAIN_SECONDS:
                raise
        else:
            self._cut_off_at = None

    def _step(self, node: _Node) -> None:
        node.called_at = time.monotonic()
        directories = tuple(str(attempt.directory) for attempt in node.to_start)
        node.to_start = []
        node.call = node.agent.step.remote(node.heard_clock, directories, self._is_cancelled)

    def _take_in(self, node: _Node) -> None:
        """What the node's agent has answered."""
        ray, call, node.call = _ray(), node.call, None
        try:
            answer = Answer.model_validate_json(ray.get(call))
        except (ray.exceptions.RayActorError, ray.exceptions.ActorUnschedulableError) as error:
            node.deaths += 1
            is_down = isinstance(error, ray.exceptions.ActorUnschedulableError)
            if not self._cut_off_at:
                self._lose(node, "it is down" if is_down else "its agent has died")
                if is_down or node.deaths > MAX_DEATHS:
                    self._nodes.remove(node)  # for good
            return
        except ray.exceptions.RayError as error:
            raise EngineError(f"the agent of {node.host} failed: {error}") from error
        if answer.problem:
            raise EngineError(answer.problem)
        node.hear(answer, time.monotonic())
        for warning in answer.warnings[node.warnings :]:
            self.warnings += (warning,)
        node.warnings = len(answer.warnings)
        for outcome in answer.outcomes:
            name = outcome.attempt_id
            if node.running.pop(name, None) or self._orphans.pop(name, None):
                self._arrived.append(outcome)

    def _check_silence(self, node: _Node, now: float) -> None:
        is_over = now - node.heard_at > self._patience_with(node) and now > self._patient_until
        if is_over and not (node.is_lost or self._cut_off_at):
            self._lose(node, "no sign of life")

    def _patience_with(self, node: _Node) -> float:
        """Seconds since a sign of life, until whatever runs there has ended with its lease."""
        graces = [attempt.limits.grace_seconds for attempt, _, _ in node.running.values()]
        return self._terms.lease_seconds + max(graces, default=0.0) + self._terms.margin_seconds

    def _lose(self, node: _Node, why: str) -> None:
        """Make orphans of what runs on the node, and ask for another agent there."""
        if not node.is_lost:
            left = sum(one.count for one in self._nodes if not (one.is_lost or one is node))
            self.warnings += (
                f"node {node.host} is lost ({why}), with {node.count} of {self.slots.count} slots; "
                f"{left} go on, and it is used again if it comes back (ray status)",
            )
        node.is_lost, node.free, node.call = True, [], None
        deadline, now = node.heard_at + self._patience_with(node), time.monotonic()
        for name, (attempt, _, since) in node.running.items():
            self._orphans[name] = attempt, node.host, deadline
            node.orphans += (
                Orphan(directory=attempt.directory, attempt_id=name, seconds=now - since),
            )
        node.running, node.to_start = {}, []
        with suppress(_ray().exceptions.RayError):
            _ray().kill(node.agent)
        self._start_agent(node)
        self._step(node)

    def _end_orphans(self, now: float) -> None:
        """Take in what orphans came to by their files, or charge what is over its deadline."""
        for name, (attempt, host, deadline) in list(self._orphans.items()):
            outcome = read_summary(attempt.directory, name)
            if outcome is None and now > max(deadline, self._patient_until):
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

        ray, cuda = _ray(), self.slots.device == "cuda"
        options: dict[str, Any] = {
            "num_cpus": 0 if cuda else node.count * self.slots.threads,
            "num_gpus": node.count if cuda else 0,
            "max_restarts": 0,  # the ledger retries, nobody else
            "max_task_retries": 0,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node.node_id, soft=False),
        }
        mine = self._settings.model_copy(update={"count": node.count, "orphans": node.orphans})
        node.agent = ray.remote(Agent).options(**options).remote(to_json(mine))
        node.heard_clock, node.warnings, node.started_at = -math.inf, 0, time.monotonic()

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
            raise EngineError(f"the agent of a node could not be started: {error}") from error
        for node in self._nodes:
            self._take_in(node)

    def _raise_if_hopeless(self) -> None:
        """With nothing in flight: is there a device that is, or may still become, free?"""
        now = time.monotonic()
        for node in self._nodes:
            is_starting = node.is_lost and now - node.started_at < START_SECONDS
            if not node.is_spent and (is_starting or not node.is_lost):
                return
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
    """(node's id, how many slots) by what is free there. Raises EngineError where it is too few.

    Ray would wait without a word for devices that do not exist.
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
    if sum(unused.values()) < slots.count:  # it waits for what others use
        unused = room
    counts = dict.fromkeys(room, 0)
    for _ in range(slots.count):  # spread: memory and disk are shared within a node
        counts[max(room, key=lambda node: unused[node] - counts[node])] += 1
    return [(node, count) for node, count in counts.items() if count]


def cluster_offer(address: str | None = None) -> Offer:
    """Devices of the cluster at `address` (see `RayExecutor`). Raises EngineError."""
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
    """Joins the cluster, or starts one here; leaves or ends it afterwards. Raises EngineError.

    Does nothing when this process has joined one already.
    """
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    check_address(address)
    if "ray" in sys.modules and _ray().is_initialized():
        yield
        return
    set_environment()
    prepare_to_join(address)
    ray = _ray()
    options: dict[str, Any] = {"namespace": namespace, "log_to_driver": False}
    if address == "local":
        options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    try:
        # Workers look for modules in the driver's directory first. Ray leaves handlers of its own.
        with insisted_on([]), chdir(ROOT):
            ray.init(address=address, logging_level="ERROR", **options)
    except SystemExit as ended:  # by Ray's own handler of SIGTERM
        raise Insisted(signal.SIGTERM) from ended
    except Exception as error:
        is_plain = type(error) is Exception  # that is how Ray says that it took too long
        if not is_plain and not isinstance(error, (ConnectionError, RuntimeError, ValueError)):
            raise
        raise EngineError(
            f"cannot start or join Ray ({address}): {error}\nLook at it with ray status, repeat "
            "the command where less else runs, or say --executor local, which does without Ray"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _ray() -> Any:
    """The module, imported after what it reads from the environment is set."""
    set_environment()
    try:
        import ray
    except ModuleNotFoundError as error:
        raise SetupError(missing_package(error.name)) from error

    return ray
