"""The devices of an executor: which are free, which must be looked at first, which are given up."""

import time
from collections.abc import Callable, Sequence

from budgets.events import Withdrawn
from orchestrator.execution.evaluate import device_name
from orchestrator.execution.occupancy import Gpu, look_at_gpus
from orchestrator.execution.server import EngineError

Device = str | None
"""A GPU's id, or None for the CPU."""


RELEASE_SECONDS = 5.0
"""A driver frees a dead process's memory a moment after its end."""

POLL_SECONDS = 0.25


class DevicePool:
    """Hands out devices that were seen to be free, and takes them back.

    A GPU is looked at before its first use, and again when what ran on it did not end well. One
    that is not free within `release_seconds` is withdrawn, and the others are used.
    """

    def __init__(
        self,
        devices: Sequence[Device],
        release_seconds: float = RELEASE_SECONDS,
        look: Callable[[], list[Gpu]] = look_at_gpus,
    ) -> None:
        self.withdrawn: tuple[Withdrawn, ...] = ()
        self._release_seconds = release_seconds
        self._look = look
        self._free: list[Device] = [device for device in devices if device is None]
        self._doubtful: dict[str, float | None] = {gpu: None for gpu in devices if gpu is not None}
        self._taken: list[Device] = []

    def free(self, avoid: str = "") -> int:
        """How many devices `take` can give now, after a look at the doubtful ones.

        Without the one to avoid, as long as another one is free or taken. Never 0 with none taken:
        it then waits for those that are looked at. Raises EngineError when all have been withdrawn.
        """
        self._examine()
        while self._doubtful and not self._taken and not _others(self._free, avoid):
            time.sleep(POLL_SECONDS)
            self._examine()
        if not self._free and not self._taken:
            listed = "; ".join(f"{one.device}: {one.why}" for one in self.withdrawn)
            raise EngineError(
                f"no device is left to evaluate on. {listed}. End what is there (or choose other "
                f"GPUs with CUDA_VISIBLE_DEVICES), then run the same command again"
            )
        others = _others(self._free, avoid)
        return len(others if others or _others(self._taken, avoid) else self._free)

    def take(self, avoid: str = "") -> Device:
        """A free device, another one if there is; the caller has seen that one is free."""
        device = (_others(self._free, avoid) or self._free)[0]
        self._free.remove(device)
        self._taken.append(device)
        return device

    def give_back(self, device: Device, *, ended_well: bool) -> None:
        """What ran on it is gone."""
        self._taken.remove(device)
        if device is None or ended_well:
            self._free.append(device)
        else:
            self._doubtful[device] = None

    def give_up(self, device: Device, why: str) -> None:
        """What ran on it cannot be ended, or has shown that it fails: no more work there."""
        self._taken.remove(device)
        self._withdraw(device_name(device), why)

    def _examine(self) -> None:
        """Sort the doubtful devices into free and withdrawn, as far as that is clear by now."""
        if not self._doubtful:
            return
        gpus, now = self._look(), time.monotonic()
        for device, since in list(self._doubtful.items()):
            why = next((gpu.trouble() for gpu in gpus if gpu.is_meant_by(device)), "")
            if not why:
                self._free.append(device)
            elif now - (since or now) >= self._release_seconds:
                self._withdraw(device, why)
            else:
                self._doubtful[device] = since or now
                continue
            del self._doubtful[device]

    def _withdraw(self, device: str, why: str) -> None:
        self.withdrawn += (Withdrawn(device=device, why=why),)


def _others(devices: Sequence[Device], avoid: str) -> list[Device]:
    return [device for device in devices if device_name(device) != avoid]
