"""One node of a cluster, driven in steps: a local executor over the devices that Ray gave it.

Ray makes an actor of `Agent`; nothing here imports ray. Everything goes in and out as JSON.
"""

import os
import platform
import signal
import time
from pathlib import Path
from typing import Literal

from budgets.plan import Frozen
from orchestrator.execution.api import Attempt, EngineError, Outcome, Slots
from orchestrator.execution.files import (
    CONFIG,
    end_if_abandoned,
    read,
    signal_supervisor,
    to_json,
)
from orchestrator.execution.local import EXIT_SECONDS, LocalExecutor

FULL_STEP_SECONDS, IDLE_STEP_SECONDS = 0.25, 0.05
"""How long a step waits for an outcome: with all devices in use, and while work may come."""


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
    """A node's agent. It is there when the processes of the orphans are gone."""

    def __init__(self, settings: str) -> None:
        chosen = AgentSettings.model_validate_json(settings)
        for orphan in chosen.orphans:
            _end(orphan)
        gpus = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]
        self._is_spent = False
        self._local = LocalExecutor(
            Slots(chosen.count, chosen.device, "", chosen.threads),
            chosen.preload,
            entry=chosen.entry,
            gpu_ids=gpus if chosen.device == "cuda" else None,
            host=platform.node(),
            lease_seconds=chosen.lease_seconds,
            release_seconds=chosen.release_seconds,
        )
        self._local.__enter__()

    def step(self, heard_at: float, start: tuple[str, ...], cancel: bool) -> str:
        """Renew the lease, start the attempts in these directories, wait a moment; an `Answer`.

        An attempt whose start lay in the queue of a frozen process until its lease had run out is
        not started: the orchestrator has given it up.
        """
        problem, outcomes = "", list[Outcome]()
        assert self._local.lease is not None
        is_current = self._local.lease.extend(heard_at)
        for directory in map(Path, start):
            if (attempt := read(Attempt, directory / CONFIG)) is None:
                problem = (
                    f"{platform.node()} cannot read {directory / CONFIG}: the run's directory "
                    f"must be on storage that all nodes share. Give one with --runs-dir"
                )
            elif is_current:
                self._local.start(attempt)
            elif stale := end_if_abandoned(
                directory, attempt.attempt_id, 0.0, may_still_start=False
            ):
                outcomes.append(stale)
        if cancel:
            self._local.cancel()
        free, in_use = self._devices()
        began, seconds = time.monotonic(), IDLE_STEP_SECONDS if free else FULL_STEP_SECONDS
        outcomes += self._local.wait(seconds)
        if not (in_use or outcomes):
            time.sleep(max(0.0, began + seconds - time.monotonic()))
        free, in_use = self._devices()
        return to_json(
            Answer(
                host=platform.node(),
                clock=time.monotonic(),
                outcomes=tuple(outcomes),
                free=tuple(free),
                warnings=self._local.warnings,
                is_spent=self._is_spent,
                problem=problem,
            )
        )

    def _devices(self) -> tuple[list[str], list[str]]:
        """Those that are free, and those in use; none when all have been withdrawn."""
        try:
            return self._local.devices()
        except EngineError:
            self._is_spent = True
            return [], []


def _end(orphan: Orphan) -> None:
    """Wait until nothing of it is alive, and its end is in its directory."""
    directory, name, kill_at = orphan.directory, orphan.attempt_id, time.monotonic() + EXIT_SECONDS
    while end_if_abandoned(directory, name, orphan.seconds, may_still_start=False) is None:
        if time.monotonic() > kill_at:  # its supervisor is stopped, perhaps
            signal_supervisor(directory, signal.SIGKILL)
        time.sleep(FULL_STEP_SECONDS)
