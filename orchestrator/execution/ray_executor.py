"""Executor on a Ray cluster: one actor per device, each with a fork server of its own.

Ray places the actors, carries requests and outcomes, and says when an actor has died. It retries
nothing, and it supervises nothing: that is done beside the evaluation (see `supervisor`). What Ray
cannot say, that a node is frozen or out of reach, the slots' leases show (see `lease`).
The only module that imports ray.
"""

import math
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from budgets.events import Withdrawn
from budgets.formatting import counted
from objectives.api import SetupError, missing_package
from orchestrator.execution.attempts import to_json, write_config
from orchestrator.execution.devices import Offer, cpu_name
from orchestrator.execution.evaluate import Attempt, Launcher, Outcome, Slots
from orchestrator.execution.executors import EXIT_SECONDS
from orchestrator.execution.insistence import Insisted, insisted_on
from orchestrator.execution.launch import Program
from orchestrator.execution.lease import LeaseTerms
from orchestrator.execution.pool import RELEASE_SECONDS
from orchestrator.execution.ray_access import (
    ControlService,
    check_address,
    own_signal_handlers,
    prepare_to_join,
    set_environment,
)
from orchestrator.execution.ray_slots import RaySlot
from orchestrator.execution.ray_watch import SlotWatch
from orchestrator.execution.server import EngineError
from orchestrator.execution.slot_actor import Ready, SlotActor, SlotSettings

START_SECONDS = 240.0  # for all actors and their fork servers
LOOK_SECONDS = 0.25  # how often slots are looked at without being announced
ROOT = Path(__file__).resolve().parents[2]  # where this package lies
OBJECT_STORE_BYTES = 80 * 2**20  # hardly more than Ray's minimum: nothing large goes through it


class RayExecutor:
    """Evaluations on every device of a Ray cluster, each in its own supervised process tree.

    `address` None means $RAY_ADDRESS, and without that a Ray started here and ended on exit.
    Attempts' directories must be on storage that all nodes share. Leases are renewed by `wait`
    and `free`: call one of them every few seconds.
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
        lease: LeaseTerms | None = None,
        release_seconds: float = RELEASE_SECONDS,
    ) -> None:
        self.slots = slots
        self._terms = lease or LeaseTerms()
        self._settings = SlotSettings(
            slots=Slots(1, slots.device, slots.device_name, slots.threads),
            launcher=launcher,
            preload=tuple(preload),
            program=program or Program(),
            lease_seconds=self._terms.lease_seconds,
            release_seconds=release_seconds,
        )
        self._address = address
        self._run_name = run_name
        self._watch: SlotWatch | None = None
        self._offered: list[RaySlot] = []  # by `free`
        self._warnings: tuple[str, ...] = ()
        self._connection: Any = None
        self._control: ControlService | None = None

    @property
    def withdrawn(self) -> tuple[Withdrawn, ...]:
        return self._watch.withdrawn if self._watch else ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know of the cluster; more may follow."""
        return self._warnings + (self._watch.warnings if self._watch else ())

    def __enter__(self) -> Self:
        with insisted_on([]):
            self._connection = connected(self._address, self._run_name)
            self._connection.__enter__()
            try:
                self._control = ControlService(_ray().get_runtime_context().gcs_address)
                _check_resources(self.slots)
                self._watch = SlotWatch(_ray(), self._terms, self.slots.count, self._new_actor)
                self._wait_until_ready(self._watch)
            except BaseException:
                self._leave()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        graces = [slot.attempt.limits.grace_seconds for slot in self._busy() if slot.attempt]
        patience = 0.0 if self._is_cut_off() else max(graces, default=0.0)
        deadline = time.monotonic() + patience + EXIT_SECONDS
        try:
            self.cancel()
            while self._busy() and time.monotonic() < deadline:
                self.wait(1.0)
        except EngineError:
            pass  # the actors' end breaks their lifelines, which ends what they run
        finally:
            self._leave()

    def free(self, avoid: str = "") -> int:
        """With nothing in flight it waits a moment: signals are to be heard in between."""
        self._offered = self._free_slots(avoid, LOOK_SECONDS)
        return len(self._offered)

    def submit(self, attempt: Attempt) -> None:
        """On a slot that `free` has counted, whatever became of that since."""
        free = [slot for slot in self._offered if slot.is_idle()] or self._free_slots()
        if not free:
            raise EngineError(f"all {self.slots.count} slots are in use")
        write_config(attempt)
        next((slot for slot in free if not slot.is_on(attempt.avoid)), free[0]).run(attempt)

    def _free_slots(self, avoid: str = "", patience_seconds: float = math.inf) -> list[RaySlot]:
        watch, deadline = self._look(), time.monotonic() + patience_seconds
        while not (watch.busy() or watch.arrived):
            self._raise_if_hopeless(watch)
            if watch.free(avoid) or time.monotonic() >= deadline:
                break
            watch.sleep(LOOK_SECONDS)
            self._look()
        return [] if self._is_cut_off() else watch.free(avoid)

    def cancel(self) -> None:
        """Ask every attempt in flight to end; their outcomes come through `wait`."""
        for slot in self._busy():
            slot.actor.cancel.remote()

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        deadline = time.monotonic() + timeout_seconds
        while True:
            watch = self._look()
            left = deadline - time.monotonic()
            if watch.arrived or not watch.busy() or left <= 0:
                break
            watch.sleep(min(left, LOOK_SECONDS))
        if self._control and not watch.arrived:
            self._control.raise_if_gone(nothing_runs=not watch.busy())
        arrived, watch.arrived = watch.arrived, []
        return arrived

    def _look(self) -> SlotWatch:
        assert self._watch is not None, "the executor has not been entered"
        assert self._control is not None
        self._control.ask_if_due()
        self._watch.look(may_replace=not self._is_cut_off())
        return self._watch

    def _is_cut_off(self) -> bool:
        """Whether nothing new can be started: Ray's control service is gone."""
        return self._control is not None and self._control.failure is not None

    def _busy(self) -> list[RaySlot]:
        return self._watch.busy() if self._watch else []

    def _new_actor(self, node_id: str, fenced: tuple[str, ...]) -> Any:
        cuda = self.slots.device == "cuda"
        options: dict[str, Any] = {
            "num_cpus": 0 if cuda else self.slots.threads,
            "num_gpus": 1 if cuda else 0,
            "max_restarts": 0,  # the ledger retries, nobody else
            "max_task_retries": 0,
            "max_concurrency": 3,  # `renew` and `cancel` beside `run`
        }
        if node_id:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node_id, soft=True)
        actor = _ray().remote(SlotActor).options(**options)
        return actor.remote(to_json(self._settings), fenced, _node_id)

    def _wait_until_ready(self, watch: SlotWatch) -> None:
        ray = _ray()
        try:
            said = ray.get([slot.ready for slot in watch.slots], timeout=START_SECONDS)
        except ray.exceptions.GetTimeoutError:
            raise EngineError(
                f"the {self.slots.count} slots were not ready after {START_SECONDS:g} s: "
                f"are the cluster's devices in use? Look with: ray status"
            ) from None
        except ray.exceptions.RayError as error:
            raise EngineError(f"a slot could not be started: {error}") from error
        places = [Ready.model_validate_json(one) for one in said]
        for slot, place in zip(watch.slots, places, strict=True):
            watch.greet(slot, place)
        if (nice := max(place.niceness for place in places)) > os.nice(0):
            self._warnings += (
                f"Ray's workers run at nice {nice}, which slows evaluations down beside other "
                f"work: start the cluster with RAY_worker_niceness=0",
            )

    def _raise_if_hopeless(self, watch: SlotWatch) -> None:
        """With nothing in flight and no slot free: is there one that may still become free?"""
        if self._control:
            self._control.raise_if_gone(nothing_runs=True)
        kept = [slot for slot in watch.slots if not slot.is_withdrawn]
        if not kept:
            listed = "; ".join(f"{one.device}: {one.why}" for one in self.withdrawn)
            raise EngineError(
                f"no device of the cluster is left to evaluate on. {listed}. End what is there, "
                f"then run the same command again"
            )
        youngest = max(slot.asked_at for slot in kept)
        if time.monotonic() - youngest > START_SECONDS and not any(slot.place for slot in kept):
            raise EngineError(
                f"none of {len(kept)} lost slots could be started again in {START_SECONDS:g} s: "
                f"look at the cluster with ray status, then run the same command again"
            )

    def _leave(self) -> None:
        for slot in self._watch.slots if self._watch else ():
            with suppress(_ray().exceptions.RayError):
                _ray().kill(slot.actor)
        if self._connection is not None:
            self._connection.__exit__(None, None, None)
            self._connection = None


def _node_id() -> str:
    """Ray's name for the node that this runs on."""
    return str(_ray().get_runtime_context().get_node_id())


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


def _check_resources(slots: Slots) -> None:
    """Ray would wait without a word for devices that do not exist. Raises EngineError."""
    each, kind = (1, "GPU") if slots.device == "cuda" else (slots.threads, "CPU")
    nodes = [node["Resources"] for node in _ray().nodes() if node["Alive"]]
    room = sum(int(resources.get(kind, 0)) // each for resources in nodes)
    if room < slots.count:
        total = sum(int(resources.get(kind, 0)) for resources in nodes)
        raise EngineError(
            f"{slots.count} slots of {each} {kind} asked for, but the Ray cluster has {total} "
            f"{kind} on {counted(len(nodes), 'node')}, room for {room}; ask for "
            f"fewer, or look at the cluster with: ray status"
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
    with own_signal_handlers():
        try:
            with chdir(ROOT):  # workers look for modules in the driver's directory first
                ray.init(address=address, logging_level="ERROR", **options)
        except SystemExit as ended:  # by Ray's own handler of SIGTERM
            raise Insisted(signal.SIGTERM) from ended
        except Exception as error:
            is_plain = type(error) is Exception  # that is how Ray says that it took too long
            if not is_plain and not isinstance(error, (ConnectionError, RuntimeError, ValueError)):
                raise
            raise EngineError(_not_there(address, error)) from error
    try:
        yield
    finally:
        ray.shutdown()


def _not_there(address: str, error: Exception) -> str:
    if address == "local":
        return (
            f"cannot start Ray here: {error}\nRepeat the command where less else runs, or say "
            "--executor local, which does without Ray"
        )
    return f"cannot join Ray at {address}: {error}\nCheck it with: ray status"


def _ray() -> Any:
    """The module, imported after what it reads from the environment is set."""
    set_environment()
    try:
        import ray
    except ModuleNotFoundError as error:
        raise SetupError(missing_package(error.name)) from error

    return ray
