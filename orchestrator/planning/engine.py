"""What a configuration evaluates on, and how many evaluations at once."""

from pathlib import Path

from orchestrator.capacity import Pacing
from orchestrator.config import Config
from orchestrator.execution.api import Slots
from orchestrator.execution.engine import Engine


def engine_of(config: Config) -> Engine:
    """What evaluations run on."""
    backend = config.backend
    return Engine(
        backend.executor,
        backend.address,
        backend.device,
        backend.workers,
        backend.threads,
    )


def slots_of(config: Config) -> Slots:
    """The evaluations that run at once, and on what. Raises EngineError where nothing is there."""
    return engine_of(config).slots()


def pacing_of(config: Config) -> Pacing:
    """How many evaluations run at once, where it is not simply one a device."""
    backend = config.backend
    return Pacing(
        max_concurrent=backend.max_concurrent,
        slots_dir=None if backend.slots_dir is None else Path(backend.slots_dir),
        backpressure=config.backpressure,
    )
