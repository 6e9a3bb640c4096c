"""Where a run's figures go: a file, TensorBoard, and the screen (`watch`)."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from objectives.api import SetupError
from objectives.files import replace
from objectives.nanochat.program.store import METRICS

Values = Mapping[str, float]


class Sink(Protocol):
    """Takes figures on a step."""

    def log(self, step: int, values: Values) -> None:
        """`values` by name, after `step` optimiser steps."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class MetricsFile:
    """`metrics.jsonl`: one JSON object per line, each at once on its way to the disk."""

    def __init__(self, directory: Path, done: int) -> None:
        """Drops what a killed process wrote after step `done`, where the run goes on.

        Raises OSError.
        """
        path = directory / METRICS
        replace(path, b"".join(_until(path, done)))
        self._file = path.open("a", encoding="utf-8")

    def log(self, step: int, values: Values) -> None:
        self._file.write(json.dumps({"step": step, **values}) + "\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _until(path: Path, done: int) -> Iterator[bytes]:
    """The whole lines about steps up to `done`."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    for line in lines:
        with suppress(ValueError, LookupError, TypeError):
            if line.endswith(b"\n") and json.loads(line)["step"] <= done:
                yield line


class TensorBoard:
    """Event files that TensorBoard shows."""

    def __init__(self, directory: Path, done: int) -> None:
        """Raises SetupError when the package is missing."""
        require_tensorboard()
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(directory), purge_step=done + 1)

    def log(self, step: int, values: Values) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()


def require_tensorboard() -> None:
    """Raises SetupError, with the command that mends it, when the package is missing."""
    from importlib.util import find_spec

    if find_spec("tensorboard") is None:
        raise SetupError(
            "tensorboard is not installed: pip install 'cmaes-orchestrator[tensorboard]', or train "
            "without --set tensorboard=true"
        )
