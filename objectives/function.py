"""Any Python function as an objective: knobs, a seed and a budget in, a score out."""

import os
import platform
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, JsonValue, ValidationError, model_validator

from objectives.api import Context, Knobs, Measurement, NoScoreError, SetupError
from objectives.environment import PACKAGES, record
from objectives.files import absolute
from objectives.importing import (
    UserFunction,
    arguments_of,
    find,
    imported,
    require_no_namesake,
    surroundings,
    try_import,
)
from objectives.process import LEAST_CPU_SHARE, Heartbeat, cpu_seconds
from objectives.program import ProgramConfig, ProgramObjective
from objectives.settings import cut, in_words, parse
from objectives.sources import files_of_module

CHECK_SECONDS = 2.0


class FunctionConfig(ProgramConfig):
    """What a user may set for `python:module:function`."""

    directory: Annotated[str, BeforeValidator(absolute)] = Field(".", validate_default=True)
    budget: int | float | None = Field(default=None, gt=0)  # third argument
    fixed: dict[str, JsonValue] = Field(default={})  # further keyword arguments

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.fixed:
            if not name.isidentifier():
                raise ValueError(f"fixed: {name!r} is not a name of a keyword argument")
        return self


class FunctionObjective(ProgramObjective[FunctionConfig]):
    """A function that is imported in the process of each evaluation, and nowhere else."""

    unscored = frozenset({"directory"})

    @classmethod
    def from_settings(cls, name: str, settings: Mapping[str, Any]) -> Self:
        """Return the function of that name. Imports nothing of it.

        Raises ValueError on a wrong setting, and where there is no such module; SetupError where
        its sources cannot be read.
        """
        objective = cls(name, parse(FunctionConfig, settings, name))
        if objective.config.code is None:  # not on record: of a run that is, files may be gone
            find(name, objective.directory)
        return objective.pinned()

    @property
    def directory(self) -> Path:
        return Path(self.config.directory)

    def program_files(self) -> Iterator[Path]:
        """Yield the module's file, and what importing it reads of the packages around it."""
        user = self._found()
        yield user.file
        yield from files_of_module(user.module, (self.directory,))

    def import_places(self, files: Iterable[Path]) -> Collection[Path]:  # noqa: ARG002
        return (self.directory,)

    def versions(self) -> Mapping[str, str]:
        found = {"program_python": platform.python_version()}
        for name in PACKAGES:
            try:
                found[f"program_{name}"] = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        return found

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:
        """Return `lr=0.003`, one word a knob."""
        return tuple(f"{name}={value!r}" for name, value in self.space.rounded(knobs).items())

    def require_program(self) -> None:
        """Raises SetupError where it cannot be imported, in a process of its own."""
        user = self._found()
        require_no_namesake(self.directory)
        try_import(user, tuple(sorted(self.config.fixed)), self.code)

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        """Call the function. Its own exceptions come as they are."""
        own = self.space.rounded(knobs)
        self.require_same_sources()
        user = self._found()
        facts = {"function": self.name, "file": str(user.file), "code": self.code}
        record(None, context, {**facts, "program_python": platform.python_version()})
        with beating(context.heartbeat), surroundings(user, context.directory):
            function = imported(user)
            began = time.perf_counter()
            words = arguments_of(function, own, seed, self.config.budget, self.config.fixed)
            value = function(*words, **deepcopy(self.config.fixed))
            return measurement_of(value, time.perf_counter() - began)

    def _found(self) -> UserFunction:
        """Return where the function is now. Raises SetupError where it is gone."""
        try:
            return find(self.name, self.directory)
        except ValueError as error:
            raise SetupError(str(error)) from error


@contextmanager
def beating(heartbeat: Heartbeat, every_seconds: float = CHECK_SECONDS) -> Iterator[None]:
    """Send heartbeats during the block while this process, or one that it started, computes."""
    over = threading.Event()
    thread = threading.Thread(target=_beat, args=(heartbeat, every_seconds, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _beat(heartbeat: Heartbeat, every_seconds: float, over: threading.Event) -> None:
    used = _cpu_seconds()
    while not over.wait(every_seconds):
        before, used = used, _cpu_seconds()
        if used - before >= LEAST_CPU_SHARE * every_seconds:
            heartbeat({})


def _cpu_seconds() -> float:
    """Return the CPU time of this process, but for this thread, and of those that it started."""
    ended = os.times()
    living = cpu_seconds(os.getpid()) - time.thread_time()
    return ended.children_user + ended.children_system + living


def measurement_of(value: object, train_seconds: float) -> Measurement:
    """Return a function's value as a measurement, by default of `train_seconds`.

    Raises NoScoreError, naming what came. NaN is a score too: the runner calls it `nan`.
    """
    if isinstance(value, Measurement):
        return value
    fields = value if isinstance(value, Mapping) else {"score": value}
    plain = {name: _plain(field) for name, field in fields.items()}
    if isinstance(metrics := plain.get("metrics"), Mapping):
        plain["metrics"] = {name: _plain(field) for name, field in metrics.items()}
    try:
        return Measurement.model_validate({"train_seconds": train_seconds, **plain})
    except (ValidationError, OverflowError) as error:
        why = in_words(error) if isinstance(error, ValidationError) else str(error)
        raise NoScoreError(
            f"the function returned {cut(repr(value), 60)}: expected a number, a Measurement, or a "
            f"mapping with its fields; {why}"
        ) from error


def _plain(value: Any) -> Any:
    """Return arrays of no dimension, as numpy and torch make one of a number, as that number."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return value.item()
    return value
