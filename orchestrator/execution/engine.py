"""The engine of a run: which executor on which devices, and the versions of what computes."""

import os
import platform
import re
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Literal

from budgets.plan import Devices
from objectives.api import Objective
from orchestrator.execution.api import Executor, Slots
from orchestrator.execution.devices import Offer, cpu_name, local_offer

ExecutorKind = Literal["ray", "local", "inline"]
PACKAGES = ("cma", "numpy", "ray", "torch")
"""Packages whose versions the ledger records, if they are installed."""

HOST_MEMORY_SHARE = 0.9  # of the machine's memory, for all evaluations together
_ADDRESS = re.compile(r"|local|auto|[^/]+:[0-9]+")  # no ray://, which is Ray Client's


@dataclass(frozen=True)
class Engine:
    """Which executor runs the evaluations, and on which devices."""

    kind: ExecutorKind = "ray"
    address: str | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    workers: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.address is not None and self.kind != "ray":
            raise ValueError(f"--address joins a Ray cluster, --executor {self.kind} has none")
        if self.address is not None and not _ADDRESS.fullmatch(self.address):
            raise ValueError(
                f"--address: expected HOST:PORT such as head:6379, or auto, got {self.address!r}"
            )

    def slots(self) -> Slots:
        """Return the slots to use. Raises ValueError if there are fewer devices than asked for."""
        return self.offer().slots(self.device, self.workers, self.threads)

    def offer(self) -> Offer:
        """Return the devices of this machine, or of the cluster at `address`.

        Raises EngineError if the cluster cannot be joined.
        """
        if self.kind != "ray" or self.address is None:
            return local_offer()
        from orchestrator.execution.ray import cluster_offer

        return cluster_offer(self.address)

    def executor(self, slots: Slots, objective: Objective, name: str) -> Executor:
        """Return the executor; enter it to start it."""
        if self.kind == "inline":
            from orchestrator.execution.inline import InlineExecutor

            return InlineExecutor(slots)
        if self.kind == "local":
            from orchestrator.execution.local import LocalExecutor

            return LocalExecutor(slots, objective.preload)
        from orchestrator.execution.ray import RayExecutor

        return RayExecutor(slots, objective.preload, address=self.address, run_name=name)


def devices_of(slots: Slots) -> Devices:
    """Return slots as a plan records them."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Devices(
        count=slots.count,
        kind=slots.device,
        name=slots.device_name,
        threads=slots.threads,
        memory_bytes=int(memory * HOST_MEMORY_SHARE / slots.count),
    )


@cache
def versions() -> dict[str, str]:
    """Return the versions of this program and of what decides the last bits of scores."""
    import numpy as np

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "orchestrator": installed("cmaes-orchestrator") or "unknown",
        **{name: found for name in PACKAGES if (found := installed(name))},
        "blas": f"{blas['name']} {blas['version']}",
        "python": platform.python_version(),
        "processor": cpu_name(),
    }


def installed(name: str) -> str | None:
    """Return the version of an installed distribution."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
