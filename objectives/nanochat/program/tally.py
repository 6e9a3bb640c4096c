"""What a run has spent and found so far, over all processes that worked on it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Work = Literal["train", "evaluate", "save"]


@dataclass
class Tally:
    """Part of a checkpoint. What a killed process did after its last save is not in it."""

    evaluations: list[tuple[int, float]] = field(default_factory=list)  # step, bits per byte
    wall_seconds: dict[str, float] = field(default_factory=dict)  # by kind of work
    cpu_seconds: dict[str, float] = field(default_factory=dict)  # of the process, by kind of work
    processes: int = 0  # that began or went on with the run

    @contextmanager
    def timed(self, work: Work) -> Iterator[None]:
        """Count the block's time, also when it is left early."""
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            for spent, since, now in (
                (self.wall_seconds, wall, time.perf_counter()),
                (self.cpu_seconds, cpu, time.process_time()),
            ):
                spent[work] = spent.get(work, 0.0) + now - since

    @property
    def train_seconds(self) -> float:
        return self.wall_seconds.get("train", 0.0)

    def bpb_at(self, step: int) -> float | None:
        """Validation bits per byte at `step`, None where they were not measured."""
        return dict(self.evaluations).get(step)

    def state_dict(self) -> dict[str, Any]:
        return asdict(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        self.evaluations = [(int(step), float(bpb)) for step, bpb in state["evaluations"]]
        self.wall_seconds, self.cpu_seconds = (
            dict(state["wall_seconds"]),
            dict(state["cpu_seconds"]),
        )
        self.processes = state["processes"]
