"""Any Python function as an objective: knobs, a seed and a budget in, a score out.

Its module is found without importing it, tried in a process of its own, and imported in the process
of each evaluation.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from copy import deepcopy
from functools import cache
from importlib import import_module, invalidate_caches
from inspect import signature
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue, ValidationError

from objectives.api import Context, Knobs, Measurement, NoScoreError, SetupError, digest
from objectives.files import Place
from objectives.process import ONE_PROCESS, last_word
from objectives.program import ProgramConfig, ProgramObjective, files_of_module
from objectives.registry import FUNCTION
from objectives.settings import cut, in_words

LIMIT_SECONDS = 180.0  # to be imported: torch took 13 s on a loaded machine
HERE = Path(__file__).parents[1]

OURS = ("budgets", "objectives", "orchestrator")
"""Packages that are imported already wherever an evaluation runs."""


class FunctionConfig(ProgramConfig):
    """What a user may set for `python:module:function`."""

    directory: Place = Field(".", validate_default=True)
    budget: int | float | None = Field(default=None, gt=0)  # third argument
    fixed: dict[str, JsonValue] = Field(default={})  # further keyword arguments


class FunctionObjective(ProgramObjective[FunctionConfig]):
    """A function that is imported in the process of each evaluation, and nowhere else."""

    model = FunctionConfig
    unscored = ProgramObjective.unscored | {"directory"}

    def program_files(self) -> Iterator[Path]:
        """Yield the module's file, and what importing it reads of the packages around it."""
        module, _, file = find(self.name, self.directory)
        yield file
        yield from files_of_module(module, (self.directory,))

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:
        """Return `lr=0.003`, one word a knob."""
        return tuple(f"{name}={value!r}" for name, value in self.space.rounded(knobs).items())

    def require_program(self) -> None:
        """Raises SetupError where it cannot be imported and called, in a process of its own."""
        for name in OURS if self.directory.resolve() != HERE else ():
            for file in (*self.directory.glob(f"{name}.py"), *self.directory.glob(f"{name}/*.py")):
                raise SetupError(
                    f"{file} can never be imported: {name} is a package of the orchestrator's. "
                    "Give yours another name"
                )
        budget = () if self.config.budget is None else ("budget",)
        words = ("knobs", "seed", *budget, *(f"{name}=" for name in self.config.fixed))
        require_import(self.name, self.directory, words, digest(self.config.code))

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        """Call the function. Its own exceptions come as they are."""
        self.require_same_sources()
        own, config = self.space.rounded(knobs), self.config
        budget = () if config.budget is None else (config.budget,)
        with surroundings(self.directory, context.directory):
            function, began = self.function(), time.perf_counter()
            value = function(own, seed, *budget, **deepcopy(config.fixed))
            return measurement_of(value, time.perf_counter() - began)

    def function(self) -> Callable[..., Any]:
        """Return the function, in its surroundings. Raises SetupError where it cannot be had."""
        return imported(*find(self.name, self.directory))


def find(name: str, directory: Path) -> tuple[str, str, Path]:
    """Return module, function and file of `python:MODULE:FUNCTION`. Imports nothing.

    Raises ValueError where there is no such module, or another one would be imported in its place.
    """
    module, _, function = name.removeprefix(FUNCTION).partition(":")
    first = module.partition(".")[0]
    if not function.isidentifier() or module.endswith(".py"):
        raise ValueError(
            f"objective {name!r}: expected python:MODULE:FUNCTION (a module's name has no .py), "
            "for example python:package.train:evaluate"
        )
    if first in OURS or first in sys.stdlib_module_names:
        raise ValueError(f"the module {module} would not be yours: give it another name")
    place = directory.joinpath(*module.split("."))
    for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
        if file.is_file():
            return module, function, file
    raise ValueError(
        f"there is no module {module} in {directory}: expected a file "
        f"{module.replace('.', '/')}.py. Name the directory it is in: --set directory=DIR"
    )


@contextmanager
def surroundings(directory: Path, working_directory: Path) -> Iterator[None]:
    """Let the block find the user's modules first, as one process, in the working directory.

    After the block the process is as it was, and the user's modules are forgotten.
    """
    path, writes, before = list(sys.path), sys.dont_write_bytecode, set(sys.modules)
    of_many = {name: os.environ.pop(name) for name in ONE_PROCESS if name in os.environ}
    sys.path.insert(0, str(directory))
    sys.dont_write_bytecode = True  # an edit within the same second would not be noticed
    invalidate_caches()
    try:
        with chdir(working_directory):
            yield
    finally:
        os.environ.update(of_many)
        sys.dont_write_bytecode = writes
        sys.path[:] = path
        for name in sys.modules.keys() - before:
            file = Path(getattr(sys.modules[name], "__file__", None) or "/")
            if file.is_relative_to(directory) and "site-packages" not in file.parts:
                del sys.modules[name]


def imported(name: str, function: str, file: Path) -> Callable[..., Any]:
    """Import the function. Raises SetupError where there is none, or what its import raises."""
    try:
        module = import_module(name)
    except (ImportError, SyntaxError) as error:
        raise SetupError(f"cannot import {name} from {file}: {error}") from error
    came_from = getattr(module, "__file__", None)
    if came_from is None or not Path(came_from).samefile(file):
        raise SetupError(
            f"importing {name} gave {came_from}, expected {file}: another module of that name was "
            "imported before. Give yours another name"
        )
    found: Callable[..., Any] | None = getattr(module, function, None)
    if not callable(found):
        raise SetupError(f"{file} has no function of the name {function}")
    return found


@cache
def require_import(name: str, directory: Path, words: tuple[str, ...], code: str) -> None:  # noqa: ARG001
    """Import the function in another process; what succeeded once for that code is remembered.

    `words`: names of arguments, `name=` of one by keyword. Raises SetupError where it cannot be
    imported or called so.
    """
    path = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryFile() as errors, suppress(subprocess.TimeoutExpired):
        status = subprocess.run(
            (sys.executable, "-P", "-m", __name__, name, str(directory), *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,  # no pipe: a process that the module leaves behind would hold it open
            env={**os.environ, "PYTHONPATH": path},
            timeout=LIMIT_SECONDS,
            check=False,
        ).returncode
        if status == 0:
            return
        errors.seek(0)
        said = last_word(errors.read().decode(errors="replace").splitlines())
        raise SetupError(f"cannot import {name.removeprefix(FUNCTION)}: {said or status}")
    raise SetupError(
        f"importing {name.removeprefix(FUNCTION)} took longer than {LIMIT_SECONDS:g} s. What a "
        "program does belongs below: if __name__ == '__main__'"
    )


def try_import(name: str, directory: Path, words: Sequence[str]) -> None:
    """Import the function in this process. Raises what its import raises, and SetupError."""
    fixed = [word[:-1] for word in words if word.endswith("=")]
    with tempfile.TemporaryDirectory() as scratch, surroundings(directory, Path(scratch)):
        function = imported(*find(name, directory))
    with suppress(ValueError):  # it is not written in Python: nothing to check
        wanted = signature(function)
        try:
            wanted.bind(*words[: len(words) - len(fixed)], **dict.fromkeys(fixed))
        except TypeError as error:
            called = f"{name.rpartition(':')[2]}{wanted} cannot be called with ({', '.join(words)})"
            raise SetupError(f"{called}: {error}") from None


def measurement_of(value: object, train_seconds: float) -> Measurement:
    """Return a function's value as a measurement, by default of `train_seconds`.

    Raises NoScoreError, naming what came. NaN is a score too: the runner calls it `nan`.
    """
    if isinstance(value, Measurement):
        return value
    fields = value if isinstance(value, Mapping) else {"score": value}
    try:
        return Measurement.model_validate({"train_seconds": train_seconds, **fields})
    except ValidationError as error:
        raise NoScoreError(
            f"the function returned {cut(repr(value), 60)}: expected a number, a Measurement, or a "
            f"mapping with its fields; {in_words(error)}"
        ) from error


if __name__ == "__main__":
    try:
        try_import(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
    except SystemExit as error:
        sys.exit(f"it ended Python: SystemExit({error})")
    except Exception as error:  # whatever the user's module raises
        said = " ".join(str(error).split())
        sys.exit(said if isinstance(error, SetupError) else f"{type(error).__name__}: {said}")
