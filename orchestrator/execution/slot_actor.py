"""One device of a cluster, as a Ray actor sees it. Everything goes in and out as JSON.

Ray makes an actor of `SlotActor`; nothing here imports ray.
"""

import os
import platform
import time
from collections.abc import Callable

from pydantic import BaseModel, ConfigDict

from budgets.events import Withdrawn
from orchestrator.execution import processes
from orchestrator.execution.attempts import to_json
from orchestrator.execution.evaluate import Attempt, Launcher, Outcome, Slots, device_name
from orchestrator.execution.executors import LocalExecutor
from orchestrator.execution.launch import Program
from orchestrator.execution.recovery import end_if_abandoned
from orchestrator.execution.server import EngineError

POLL_SECONDS = 0.05


class Ready(BaseModel):
    """A slot can be given work, unless it has been withdrawn."""

    model_config = ConfigDict(frozen=True)

    node_id: str
    host: str
    device: str = ""  # as outcomes name it
    niceness: int
    clock: float  # see `lease`
    withdrawn: tuple[Withdrawn, ...]


class Answer(BaseModel):
    """How an attempt ended, and whether its device can be used again."""

    model_config = ConfigDict(frozen=True)

    outcome: Outcome
    withdrawn: tuple[Withdrawn, ...] = ()


class SlotSettings(BaseModel):
    """How the slots of one executor evaluate."""

    model_config = ConfigDict(frozen=True)

    slots: Slots  # exactly one
    launcher: Launcher
    preload: tuple[str, ...]
    program: Program
    lease_seconds: float
    release_seconds: float


class SlotActor:
    """Evaluates one attempt at a time on the device that Ray has given it.

    `fenced` are attempts that were given up unheard, perhaps on this node: what is left of them
    is killed before this slot is ready.
    """

    def __init__(self, settings: str, fenced: tuple[str, ...], node_id: Callable[[], str]) -> None:
        chosen = SlotSettings.model_validate_json(settings)
        gpus = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]
        is_cuda = chosen.slots.device == "cuda"
        self._device = device_name(gpus[0] if is_cuda and gpus else None, platform.node())
        self._fenced = fenced
        self._node_id = node_id
        self._executor = LocalExecutor(
            chosen.slots,
            chosen.launcher,
            chosen.preload,
            program=chosen.program,
            gpu_ids=gpus if is_cuda else None,
            host=platform.node(),
            lease_seconds=chosen.lease_seconds,
            release_seconds=chosen.release_seconds,
        )
        self._executor.__enter__()

    def ready(self) -> str:
        """`Ready`, once the device has been seen to be free or has been withdrawn."""
        alive = [name for name in self._fenced if not processes.kill_marked(name)]
        survivors = tuple(
            Withdrawn(
                device=f"a device on {platform.node()}", why=f"processes of {name} survive SIGKILL"
            )
            for name in alive
        )
        ready = Ready(
            node_id=self._node_id(),
            host=platform.node(),
            device=self._device,
            niceness=os.nice(0),
            withdrawn=survivors or self._withdrawn(),
            clock=time.monotonic(),
        )
        return to_json(ready)

    def renew(self, heard_at: float) -> float:
        """Extend the lease from the time of an earlier answer; returns this machine's clock."""
        assert self._executor.lease is not None
        self._executor.lease.extend(heard_at)
        return time.monotonic()

    def run(self, attempt: str, heard_at: float) -> str:
        """Evaluate; returns `Answer` when nothing of the attempt is alive."""
        wanted = Attempt.model_validate_json(attempt)
        assert self._executor.lease is not None
        if not self._executor.lease.extend(heard_at):  # it lay in the queue of a frozen process
            return self.bury(attempt, 0.0)
        # The orchestrator has written `config.json`, on the storage that all nodes share.
        self._executor.submit(wanted, has_config=True)
        while True:
            if outcomes := self._executor.wait(3600.0):
                return to_json(Answer(outcome=outcomes[0], withdrawn=self._withdrawn()))

    def cancel(self) -> None:
        """End the attempt in flight; `run` returns its outcome."""
        self._executor.cancel()

    def bury(self, attempt: str, seconds: float) -> str:
        """`Answer` for an attempt whose actor died, once nothing of it is alive.

        It may wait for ever, for a lock that a frozen node holds: the caller loses patience first.
        """
        dead = Attempt.model_validate_json(attempt)
        while True:
            outcome = end_if_abandoned(
                dead.directory, dead.attempt_id, seconds, may_still_start=False
            )
            if outcome is not None:
                return to_json(Answer(outcome=outcome))
            time.sleep(POLL_SECONDS)

    def _withdrawn(self) -> tuple[Withdrawn, ...]:
        """Why there is no device left here, after a look at it; empty when there is."""
        try:
            self._executor.free()
        except EngineError:
            return tuple(
                Withdrawn(device=device_name(one.device, platform.node()), why=one.why)
                for one in self._executor.withdrawn
            )
        return ()
