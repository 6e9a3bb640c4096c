"""Executor on a Ray cluster: one actor per device, each with a fork server of its own.

Ray places the actors, carries requests and outcomes, and says when an actor has died. It retries
nothing, and it supervises nothing: that is done beside the evaluation (see `supervisor`).
The only module that imports ray.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self

from budgets.events import Withdrawn
from orchestrator.execution.attempts import to_json, write_config
from orchestrator.execution.devices import Offer, cpu_name
from orchestrator.execution.evaluate import Attempt, Launcher, Outcome, Slots
from orchestrator.execution.executors import EXIT_SECONDS, EngineError, LocalExecutor
from orchestrator.execution.launch import Program
from orchestrator.execution.ray_access import (
    check_address,
    own_signal_handlers,
    prepare_token,
    reach,
    set_environment,
)
from orchestrator.execution.recovery import end_if_abandoned

START_SECONDS = 240.0  # for all actors and their fork servers
PROBE_SECONDS = 5.0  # Ray ends a driver without its control service after 60 s, saying nothing
MAX_DEATHS = 3  # of one slot's actor in a row
OBJECT_STORE_BYTES = 80 * 2**20  # hardly more than Ray's minimum: nothing large goes through it


class SlotActor:
    """One device of the cluster, as a Ray actor. Everything goes in and out as JSON."""

    def __init__(self, slots: Slots, launcher: Launcher, preload: tuple[str, ...], program: str):
        gpus = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]
        self._executor = LocalExecutor(
            slots,
            launcher,
            preload,
            program=Program.model_validate_json(program),
            gpu_ids=gpus if slots.device == "cuda" else None,
        )
        self._executor.__enter__()

    def where(self) -> tuple[str, int]:
        """Ray's node id and this worker's niceness; returns when the slot is ready."""
        return _ray().get_runtime_context().get_node_id(), os.nice(0)

    def run(self, attempt: str) -> str:
        """Evaluate; returns the outcome when nothing of the attempt is alive."""
        # The orchestrator has written `config.json`, on the storage that all nodes share.
        self._executor.submit(Attempt.model_validate_json(attempt), has_config=True)
        while True:
            if outcomes := self._executor.wait(3600.0):
                return to_json(outcomes[0])

    def cancel(self) -> None:
        """End the attempt in flight; `run` returns its outcome."""
        self._executor.cancel()

    def bury(self, attempt: str, seconds: float) -> str:
        """The outcome of an attempt whose actor died, once nothing of it is alive."""
        dead = Attempt.model_validate_json(attempt)
        while True:
            outcome = end_if_abandoned(
                dead.directory, dead.attempt_id, seconds, may_still_start=False
            )
            if outcome is not None:
                return to_json(outcome)
            time.sleep(0.05)


@dataclass
class _Slot:
    actor: Any
    node_id: str = ""
    attempt: Attempt | None = None
    submitted_at: float = 0.0
    answer: Any = None  # Ray's reference to the outcome to come
    deaths: int = 0


class RayExecutor:
    """Evaluations on every device of a Ray cluster, each in its own supervised process tree.

    `address` None means $RAY_ADDRESS, and without that a Ray started here and ended on exit.
    Attempts' directories must be on storage that all nodes share.
    """

    def __init__(  # noqa: PLR0913 - how to evaluate, and where
        self,
        slots: Slots,
        launcher: Launcher = "fork",
        preload: Sequence[str] = (),
        address: str | None = None,
        *,
        run_name: str = "run",
        program: Program | None = None,
    ) -> None:
        self.slots = slots
        self.warnings: tuple[str, ...] = ()
        self.withdrawn: tuple[Withdrawn, ...] = ()
        self._one = Slots(1, slots.device, slots.device_name, slots.threads)
        self._launcher = launcher
        self._preload = tuple(preload)
        self._program = program or Program()
        self._address = address
        self._run_name = run_name
        self._slots: list[_Slot] = []
        self._connection: Any = None
        self._probed_at = 0.0

    def __enter__(self) -> Self:
        self._connection = connected(self._address, self._run_name)
        self._connection.__enter__()
        try:
            _check_resources(self.slots)
            self._slots = [_Slot(self._new_actor()) for _ in range(self.slots.count)]
            self._wait_until_ready()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        busy = [slot.attempt for slot in self._slots if slot.attempt is not None]
        graces = [attempt.limits.grace_seconds for attempt in busy]
        deadline = time.monotonic() + max(graces, default=0.0) + EXIT_SECONDS
        try:
            self.cancel()
            while any(slot.attempt for slot in self._slots) and time.monotonic() < deadline:
                self.wait(1.0)
        except EngineError:
            pass  # the actors' end breaks their lifelines, which ends what they run
        finally:
            self._leave()

    def free(self) -> int:
        return sum(slot.attempt is None for slot in self._slots)

    def submit(self, attempt: Attempt) -> None:
        slot = next((slot for slot in self._slots if slot.attempt is None), None)
        if slot is None:
            raise EngineError(f"all {self.slots.count} slots are in use")
        write_config(attempt)
        slot.attempt, slot.submitted_at = attempt, time.monotonic()
        slot.answer = slot.actor.run.remote(to_json(attempt))

    def cancel(self) -> None:
        """Ask every attempt in flight to end; their outcomes come through `wait`."""
        for slot in self._slots:
            if slot.attempt is not None:
                slot.actor.cancel.remote()

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        ray, deadline = _ray(), time.monotonic() + timeout_seconds
        while busy := {slot.answer: slot for slot in self._slots if slot.attempt is not None}:
            self._probe()
            left = max(deadline - time.monotonic(), 0.0)
            ready, _ = ray.wait(list(busy), num_returns=1, timeout=min(left, PROBE_SECONDS))
            if ready and len(busy) > 1:
                ready, _ = ray.wait(list(busy), num_returns=len(busy), timeout=0)
            arrived = [found for answer in ready if (found := self._collect(busy[answer]))]
            if arrived or left == 0.0:
                return arrived
        return []

    def _collect(self, slot: _Slot) -> Outcome | None:
        """The outcome of a slot that answered; None if its actor died and is being replaced."""
        ray = _ray()
        assert slot.attempt is not None
        try:
            outcome = Outcome.model_validate_json(ray.get(slot.answer))
        except ray.exceptions.RayActorError as error:
            self._replace(slot, error)
            return None
        except ray.exceptions.RayError as error:
            raise EngineError(f"a slot failed: {error}") from error
        slot.attempt, slot.answer, slot.deaths = None, None, 0
        return outcome

    def _replace(self, slot: _Slot, error: Exception) -> None:
        """A fresh actor, on the same node if that lives, first sees the dead one's tree gone."""
        assert slot.attempt is not None
        slot.deaths += 1
        if slot.deaths > MAX_DEATHS:
            raise EngineError(f"the actor of a slot died {slot.deaths} times: {error}") from error
        with suppress(_ray().exceptions.RayError):
            _ray().kill(slot.actor)
        slot.actor = self._new_actor(slot.node_id)
        seconds = time.monotonic() - slot.submitted_at
        slot.answer = slot.actor.bury.remote(to_json(slot.attempt), seconds)

    def _new_actor(self, node_id: str = "") -> Any:
        cuda = self.slots.device == "cuda"
        options: dict[str, Any] = {
            "num_cpus": 0 if cuda else self.slots.threads,
            "num_gpus": 1 if cuda else 0,
            "max_restarts": 0,  # the ledger retries, nobody else
            "max_task_retries": 0,
            "max_concurrency": 2,  # `cancel` beside `run`
        }
        if node_id:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node_id, soft=True)
        actor = _ray().remote(SlotActor).options(**options)
        return actor.remote(
            self._one, self._launcher, self._preload, self._program.model_dump_json()
        )

    def _wait_until_ready(self) -> None:
        ray = _ray()
        try:
            places = ray.get(
                [slot.actor.where.remote() for slot in self._slots], timeout=START_SECONDS
            )
        except ray.exceptions.GetTimeoutError:
            raise EngineError(
                f"the {self.slots.count} slots were not ready after {START_SECONDS:g} s: "
                f"are the cluster's devices in use? Look with: ray status"
            ) from None
        except ray.exceptions.RayError as error:
            raise EngineError(f"a slot could not be started: {error}") from error
        for slot, (node_id, _) in zip(self._slots, places, strict=True):
            slot.node_id = node_id
        if nice := max(niceness for _, niceness in places):
            self.warnings += (
                f"Ray's workers run at nice {nice}, which slows evaluations down beside other "
                f"work: start the cluster with RAY_worker_niceness=0",
            )

    def _probe(self) -> None:
        if time.monotonic() - self._probed_at >= PROBE_SECONDS:
            self._probed_at = time.monotonic()
            reach(_ray().get_runtime_context().gcs_address)

    def _leave(self) -> None:
        for slot in self._slots:
            with suppress(_ray().exceptions.RayError):
                _ray().kill(slot.actor)
        self._slots = []
        if self._connection is not None:
            self._connection.__exit__(None, None, None)
            self._connection = None


def cluster_offer(address: str | None = None) -> Offer:
    """Devices of the cluster at `address` (see `RayExecutor`). Raises EngineError."""
    ray = _ray()
    with connected(address, "offer"):
        nodes = [node for node in ray.nodes() if node["Alive"]]
        resources = ray.cluster_resources()
    prefix = "accelerator_type:"
    kinds = sorted(name.removeprefix(prefix) for name in resources if name.startswith(prefix))
    return Offer(
        cpus=int(resources.get("CPU", 0)),
        cpu_name=cpu_name(),
        gpus=int(resources.get("GPU", 0)),
        gpu_name=" + ".join(kinds) or ("GPU" if resources.get("GPU") else ""),
        where=f"the Ray cluster of {len(nodes)} node{'s' * (len(nodes) != 1)}",
    )


def _check_resources(slots: Slots) -> None:
    """Ray would wait without a word for devices that do not exist. Raises EngineError."""
    each, kind = (1, "GPU") if slots.device == "cuda" else (slots.threads, "CPU")
    nodes = [node["Resources"] for node in _ray().nodes() if node["Alive"]]
    room = sum(int(resources.get(kind, 0)) // each for resources in nodes)
    if room < slots.count:
        total = sum(int(resources.get(kind, 0)) for resources in nodes)
        raise EngineError(
            f"{slots.count} slots of {each} {kind} asked for, but the Ray cluster has {total} "
            f"{kind} on {len(nodes)} node{'s' * (len(nodes) != 1)}, room for {room}; ask for "
            f"fewer, or look at the cluster with: ray status"
        )


@contextmanager
def connected(address: str | None, namespace: str) -> Iterator[None]:
    """Joins the cluster, or starts one here; leaves or ends it afterwards. Raises EngineError.

    Does nothing when this process has joined one already.
    """
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    check_address(address)
    prepare_token(address)
    ray = _ray()
    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"namespace": namespace, "log_to_driver": False}
    if address == "local":
        options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    with own_signal_handlers():
        try:
            ray.init(address=address, logging_level="ERROR", **options)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise EngineError(
                f"cannot join Ray at {address}: {error}\nCheck that the same Ray and Python run "
                f"there (ray --version), and that ~/.ray/auth_token is the cluster's token"
            ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _ray() -> Any:
    """The module, imported after what it reads from the environment is set."""
    set_environment()
    import ray

    return ray
