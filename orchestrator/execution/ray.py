"""The executor on a Ray cluster: one agent per node, a local executor for that node's devices.

Ray places the agents, carries requests and answers, and reports when an agent has died; it retries
and supervises nothing. A node has a *lease*: its supervisors end what they run unless it is renewed
in time. It is renewed with a time of the node's own clock: each step sends back the time that the
last answer carried. So a renewal that was queued in a frozen process extends nothing, and an
orchestrator without an answer for the length of a lease knows that it has expired there.

A node is *lost* when its agent has died, or its lease has expired. Its attempts come back with
their `summary.json`, or are charged in full at a deadline. A node that was only silent is used
again when it answers. (If Ray's control service dies, Ray ends this process after about 60 s; the
next session settles what ran by its files.)
"""

import math
import os
import platform
import secrets
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from budgets.plan import Devices
from orchestrator.execution import Insisted, api, devices
from orchestrator.execution.api import Attempt, EngineError, Outcome, insisted_on
from orchestrator.execution.local import EXIT_SECONDS, LocalExecutor

START_SECONDS = 240.0  # for all agents and their fork servers
LEASE_SECONDS = 60.0  # without a step: a node ends what it runs
SILENT_SECONDS = 30.0  # without an answer
MARGIN_SECONDS = 10.0  # beyond lease and grace, until a silent node is lost
STEP_SECONDS = 0.1  # how long a step waits for outcomes
LOOK_SECONDS = 0.25  # longest wait for an answer before files and silent nodes are checked
RAY_LOOK = "Look at the cluster with: ray status"


class Answer(NamedTuple):
    """An agent's answer to a step."""

    host: str
    clock: float  # of that machine
    outcomes: list[Outcome]  # of the wanted attempts
    usable: int | None  # devices, free or in use for these; None when all have been withdrawn
    warnings: tuple[str, ...]  # all so far


class Agent:
    """A node's agent: a Ray actor that runs a local executor, driven in steps.

    Each step names all attempts whose outcomes are wanted. So it may be sent again when its answer
    has not arrived: it starts nothing twice, and gives the outcomes again.
    """

    def __init__(self, slots: Devices, preload: tuple[str, ...], lease_seconds: float) -> None:
        self._host, self._lease_seconds = platform.node(), lease_seconds
        self._local = LocalExecutor(slots, preload, host=self._host, deadline=0.0).__enter__()
        self._taken: set[str] = set()  # ids of attempts
        self._ended: dict[str, Outcome] = {}

    def step(self, heard_at: float, wanted: dict[str, Path], cancel: bool) -> Answer:
        """Renew the lease, start those of the wanted attempts that are new, wait a moment.

        `wanted` are directories by id. What is not wanted any more was lost while this node was
        silent: its lease is not renewed. An attempt whose request was queued until the lease had
        expired is ended by its supervisor. Raises EngineError if its files cannot be read here.
        """
        self._local.extend(heard_at + self._lease_seconds, wanted)
        for name in [name for name in wanted if name not in self._taken]:
            if (attempt := api.read(Attempt, wanted[name])) is None:
                raise EngineError(
                    f"{self._host} cannot read {wanted[name] / api.CONFIG}: the run's directory "
                    "must be on storage that all nodes share. Give one with --runs-dir"
                )
            self._taken.add(name)
            self._local.submit(attempt)
        if cancel:
            self._local.cancel()
        began = time.monotonic()
        self._ended |= {one.attempt_id: one for one in self._local.wait(STEP_SECONDS)}
        self._ended = {name: one for name, one in self._ended.items() if name in wanted}
        if not self._ended:  # `wait` returns at once when nothing is running
            time.sleep(max(0.0, began + STEP_SECONDS - time.monotonic()))
        usable: int | None = None
        with suppress(EngineError):
            usable = self._local.free() + len(wanted) - len(self._ended)
        outcomes = list(self._ended.values())
        return Answer(self._host, time.monotonic(), outcomes, usable, self._local.warnings)


@dataclass(eq=False)
class _Node:
    """One node as the driver sees it."""

    agent: Any  # None when it has died
    count: int  # of its slots
    call: Any = None  # Ray's reference to the answer of the current step
    host: str = ""
    usable: int | None = 0  # devices for `running` and more; None when none is left
    running: dict[str, Attempt] = field(default_factory=dict)  # by id
    heard_at: float = -math.inf  # time of the last answer
    heard_clock: float = -math.inf  # the agent's clock in it
    is_lost: bool = False
    is_silent: bool = False  # as of the last look: nothing more is started there

    @property
    def free(self) -> int:
        """How many attempts can start there."""
        most = 0 if self.is_lost or self.is_silent else self.usable or 0
        return max(0, most - len(self.running))

    def is_overdue(self) -> bool:
        """Whether it has been silent for so long that its lease has ended all that ran there."""
        graces = [attempt.limits.grace_seconds for attempt in self.running.values()]
        seconds = LEASE_SECONDS + max(graces, default=0.0) + MARGIN_SECONDS
        return time.monotonic() > self.heard_at + seconds

    def step(self, *, cancel: bool) -> None:
        if self.call is None and self.agent is not None:
            wanted = {name: attempt.directory for name, attempt in self.running.items()}
            self.call = self.agent.step.remote(self.heard_clock, wanted, cancel)

    def hear(self, answer: Answer) -> list[Outcome]:
        """Update from an answer; return the new outcomes."""
        self.host, self.heard_at, self.heard_clock = answer.host, time.monotonic(), answer.clock
        is_old = self.is_lost and answer.usable is not None  # it still counts what was lost
        self.usable, self.is_lost = 0 if is_old else answer.usable, False
        return [one for one in answer.outcomes if self.running.pop(one.attempt_id, None)]


class RayExecutor:
    """Evaluates on every node of a Ray cluster, each evaluation in its own supervised process tree.

    `address` None means $RAY_ADDRESS, or else a Ray that is started here and ended on exit. The
    attempts' directories must be on storage that all nodes share. `wait` renews the leases: call it
    every few seconds.
    """

    def __init__(
        self, slots: Devices, preload: Sequence[str] = (), address: str | None = None
    ) -> None:
        self.slots = slots
        self.warnings: tuple[str, ...] = ()
        self._connection = connected(address)
        self._preload = tuple(preload)
        self._nodes: list[_Node] = []
        self._arrived: list[Outcome] = []
        self._is_cancelled = False

    def __enter__(self) -> Self:
        with insisted_on([]):
            self._connection.__enter__()
            try:
                self._start_agents()
            except BaseException:
                self._leave()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self._is_cancelled = True
        graces = [attempt.limits.grace_seconds for attempt in self._in_flight()]
        deadline = time.monotonic() + max(graces, default=0.0) + EXIT_SECONDS
        try:
            with suppress(EngineError):  # the end of an agent ends what it runs, too
                while self._in_flight() and time.monotonic() < deadline:
                    self.wait(1.0)
        finally:
            self._leave()

    def free(self) -> int:
        self._collect(0.0)  # no new step: what is submitted now goes with the next one
        if not (self._in_flight() or self._arrived or any(node.free for node in self._nodes)):
            if all(node.is_lost or node.usable is None for node in self._nodes):
                raise EngineError(
                    f"no device of the cluster is left to evaluate on. {'; '.join(self.warnings)}. "
                    f"Run the same command again when that is fixed. {RAY_LOOK}"
                )
            self._step_all(LOOK_SECONDS)
        return sum(node.free for node in self._nodes)

    def submit(self, attempt: Attempt) -> None:
        node = max(self._nodes, key=lambda node: node.free)
        assert node.free, "submit needs a free slot"
        node.running[attempt.attempt_id] = attempt

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        deadline = time.monotonic() + timeout_seconds
        while True:
            left = max(0.0, deadline - time.monotonic())
            self._step_all(min(left, LOOK_SECONDS) if self._in_flight() else 0.0)
            if self._arrived or not (self._in_flight() and left):
                break
        arrived, self._arrived = self._arrived, []
        return arrived

    def _in_flight(self) -> list[Attempt]:
        return [attempt for node in self._nodes for attempt in node.running.values()]

    def _step_all(self, seconds: float) -> None:
        """Send a step to every node that has answered, then collect answers."""
        for node in self._nodes:
            node.step(cancel=self._is_cancelled)
        self._collect(seconds)

    def _collect(self, seconds: float) -> None:
        """Wait so long for an answer; take in all that have come, and settle what is lost."""
        calls = {node.call: node for node in self._nodes if node.call is not None}
        if calls:
            _ray().wait(list(calls), num_returns=1, timeout=seconds)
            for call in _ray().wait(list(calls), num_returns=len(calls), timeout=0)[0]:
                self._take_in(calls[call])
        else:
            time.sleep(seconds)
        for node in self._nodes:
            node.is_silent = time.monotonic() - node.heard_at > SILENT_SECONDS
            if node.is_overdue():
                self._lose(node, "no sign of life")
            if node.is_lost:
                self._settle(node, is_overdue=node.is_overdue())

    def _take_in(self, node: _Node) -> None:
        """Take in the answer of a node's agent, or its death."""
        errors, call, node.call = _ray().exceptions, node.call, None
        try:
            answer: Answer = _ray().get(call)
        except errors.ActorUnavailableError:  # for a while: the step is sent again
            time.sleep(STEP_SECONDS)
        except errors.RayActorError:
            node.agent = None
            self._lose(node, "its agent has died")
        except errors.RayError as error:
            cause = getattr(error, "cause", None) or error  # what the agent has raised
            raise EngineError(f"the agent of {node.host} failed: {cause}") from error
        else:
            self._arrived += node.hear(answer)
            self.warnings += tuple(one for one in answer.warnings if one not in self.warnings)

    def _lose(self, node: _Node, why: str) -> None:
        """Start nothing there; what runs there ends by itself."""
        if not node.is_lost:
            share = f"{node.count} of {self.slots.count} slots"
            self.warnings += (f"node {node.host} is lost ({why}), with {share}",)
        node.is_lost = True

    def _settle(self, node: _Node, *, is_overdue: bool) -> None:
        """Return a lost node's attempts by their summaries, or charge them at its deadline."""
        for name, attempt in list(node.running.items()):
            outcome = api.read_own(attempt, Outcome)
            if outcome is None and is_overdue:
                cause = f"node {node.host} is lost: what it took there is not known"
                outcome = api.lost(attempt, cause, attempt.limits.reserve_ms / 1000)
            if outcome is not None:
                self._arrived.append(outcome)
                del node.running[name]

    def _start_agents(self) -> None:
        """Start an agent per node and wait for all. Raises EngineError."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        slots, errors = self.slots, _ray().exceptions
        for node_id, count in placed(slots).items():
            agent = _ray().remote(
                num_cpus=count * slots.threads if slots.kind == "cpu" else 0,
                num_gpus=count if slots.kind == "cuda" else 0,
                max_restarts=0,  # only the ledger retries
                max_task_retries=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False),
            )(Agent)
            own = slots.model_copy(update={"count": count})
            self._nodes.append(_Node(agent.remote(own, self._preload, LEASE_SECONDS), count))
            self._nodes[-1].step(cancel=False)
        try:
            _ray().get([node.call for node in self._nodes], timeout=START_SECONDS)
        except errors.GetTimeoutError:
            raise EngineError(
                f"the {slots.count} slots were not ready after {START_SECONDS:g} s: "
                f"are the cluster's devices in use? {RAY_LOOK}"
            ) from None
        except errors.RayError as error:
            raise EngineError(f"the agent of a node could not be started: {error}") from error
        self._collect(0.0)

    def _leave(self) -> None:
        for node in self._nodes:
            if node.agent is not None:
                with suppress(_ray().exceptions.RayError):
                    _ray().kill(node.agent)
        self._connection.__exit__(None, None, None)


def placed(slots: Devices) -> Counter[str]:
    """Return how many slots to use on which node, by free devices.

    Raises EngineError if there are too few: Ray itself would wait for them silently.
    """
    each, kind = (1, "GPU") if slots.kind == "cuda" else (slots.threads, "CPU")
    nodes = {node["NodeID"]: node["Resources"] for node in _ray().nodes() if node["Alive"]}
    unused = _ray()._private.state.available_resources_per_node()
    for resources in (unused, nodes):  # with too few unused ones, those in use are waited for
        room = {node: int(resources.get(node, {}).get(kind, 0)) // each for node in nodes}
        if sum(room.values()) >= slots.count:
            break
    else:
        raise EngineError(
            f"{slots.count} slots of {each} {kind} asked for, but the Ray cluster has "
            f"{sum(room.values())}: ask for fewer. {RAY_LOOK}"
        )
    counts: Counter[str] = Counter()
    for _ in range(slots.count):  # spread: memory and disk are shared within a node
        counts[max(room, key=lambda node: room[node] - counts[node])] += 1
    return counts


def cluster_offer(address: str | None = None) -> dict[devices.Kind, Devices]:
    """Return the devices of the cluster at `address` (see `RayExecutor`). Raises EngineError."""
    with connected(address):
        resources = _ray().cluster_resources()
    prefix, gpus = "accelerator_type:", int(resources.get("GPU", 0))
    kinds = sorted(name.removeprefix(prefix) for name in resources if name.startswith(prefix))
    return devices.offer(int(resources.get("CPU", 0)), gpus, " + ".join(kinds) or "GPU")


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Join the cluster or start one here; leave or end it afterwards. Raises EngineError.

    Does nothing if this process has joined one already.
    """
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    if "ray" in sys.modules and _ray().is_initialized():
        yield
        return
    options: dict[str, Any] = {"log_to_driver": False}
    _check_network(address)
    if address == "local":
        set_environment(own_token=True)
        options |= {"include_dashboard": False, "object_store_memory": 80 << 20}  # near the minimum
    ray = _ray()
    try:
        # Workers look for modules in the driver's directory first. Ray leaves handlers of its own.
        with insisted_on([]), chdir(Path(__file__).resolve().parents[2]):
            ray.init(address=address, logging_level="ERROR", **options)
    except SystemExit as ended:  # by Ray's own handler of SIGTERM
        raise Insisted(signal.SIGTERM) from ended
    except Exception as error:
        raise EngineError(
            f"cannot start or join Ray ({address}): {error}\n--executor local does without Ray"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _ray() -> Any:
    """Return the module; imported after the variables it reads are set."""
    set_environment()
    import ray

    return ray


def set_environment(*, own_token: bool = False) -> None:
    """Set the variables that Ray reads when it is imported, unless the user has set them.

    A Ray that is started here demands a token that only this user's processes know. It stays the
    same as long as this process lives: Ray reads it once.
    """
    for name in (
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER",  # a local Ray listens on 127.0.0.1 only
        "RAY_memory_monitor_refresh_ms",  # it would kill innocent slots for one heavy child
        "RAY_worker_niceness",  # workers would run at nice 15
        "RAY_USAGE_STATS_ENABLED",
    ):
        os.environ.setdefault(name, "0")
    if own_token:
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def _check_network(address: str) -> None:
    """Raise EngineError where Ray would wait long and explain little."""
    host, _, port = address.rpartition(":")
    try:
        if address == "local":
            with socket.socket(type=socket.SOCK_DGRAM) as probe:
                probe.connect(("127.0.0.1", 1))
        elif address != "auto":
            socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()
    except (OSError, ValueError, OverflowError) as error:
        raise EngineError(
            f"nothing answers at {address} ({error}): expected what `ray start --head` starts at "
            "HOST:PORT, or a loopback for a Ray of our own. --executor local does without Ray"
        ) from None
