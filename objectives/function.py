"""Any Python function as an objective: knobs, a seed and a budget in, a score out.

Its module is found without importing it, tried in a process of its own, and imported in the process
of each evaluation.
"""

import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import cache
from importlib import import_module, invalidate_caches
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, Field, JsonValue, ValidationError, model_validator

from objectives.api import Context, Knobs, Measurement, NoScoreError, SetupError
from objectives.files import absolute
from objectives.process import ONE_PROCESS
from objectives.program import ProgramConfig, ProgramObjective, files_of_module
from objectives.settings import cut, in_words, plain

PREFIX = "python:"
LIMIT_SECONDS = 180.0  # to be imported: torch took 13 s on a loaded machine
ANSWER = "the import ended: "  # begins the line with its result
HERE = Path(__file__).parents[1]

OURS = frozenset({"budgets", "objectives", "orchestrator"})
"""Packages that are imported already wherever an evaluation runs."""


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


class UserFunction(BaseModel, frozen=True):
    """A function, the file of its module, and the directory that the user's modules are in."""

    module: str
    function: str
    file: Path
    directory: Path


class FunctionObjective(ProgramObjective[FunctionConfig]):
    """A function that is imported in the process of each evaluation, and nowhere else."""

    model = FunctionConfig
    unscored = ProgramObjective.unscored | {"directory"}

    def program_files(self) -> Iterator[Path]:
        """Yield the module's file, and what importing it reads of the packages around it."""
        user = self.user()
        yield user.file
        yield from files_of_module(user.module, (self.directory,))

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:
        """Return `lr=0.003`, one word a knob."""
        return tuple(f"{name}={value!r}" for name, value in self.space.rounded(knobs).items())

    def require_program(self) -> None:
        """Raises SetupError where it cannot be imported and called, in a process of its own."""
        for name in OURS if self.directory.resolve() != HERE else ():
            for file in (self.directory / f"{name}.py", *self.directory.glob(f"{name}/*.py")):
                if file.is_file():
                    raise SetupError(
                        f"{file} can never be imported: {name} is a package of the orchestrator's. "
                        "Give yours another name"
                    )
        budget = () if self.config.budget is None else ("budget",)
        words = ("knobs", "seed", *budget, *(f"{name}=" for name in self.config.fixed))
        require_import(self.user(), words, self.code)

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        """Call the function. Its own exceptions come as they are."""
        self.require_same_sources()
        own, config, user = self.space.rounded(knobs), self.config, self.user()
        with surroundings(user, context.directory):
            function, began = self.function(user), time.perf_counter()
            given = called_with(function, config.fixed, own, seed, config.budget)
            value = function(*given, **deepcopy(config.fixed))
            return measurement_of(value, time.perf_counter() - began)

    def user(self) -> UserFunction:
        """Return where the function is."""
        return find(self.name, self.directory)

    def function(self, user: UserFunction) -> Callable[..., Any]:
        """Return the function, in its surroundings. Raises SetupError where it cannot be had."""
        return imported(user)


# Finding and importing it


def find(name: str, directory: Path) -> UserFunction:
    """Return the function `python:MODULE:FUNCTION` in `directory`. Imports nothing.

    Raises ValueError where there is no such module, or another one would be imported in its place.
    """
    module, _, function = name.removeprefix(PREFIX).partition(":")
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
            return UserFunction(module=module, function=function, file=file, directory=directory)
    raise ValueError(
        f"there is no module {module} in {directory}: expected a file "
        f"{module.replace('.', '/')}.py. Name the directory it is in: --set directory=DIR"
    )


@contextmanager
def surroundings(user: UserFunction, working_directory: Path) -> Iterator[None]:
    """Let the block find the user's modules first, as one process, in the working directory.

    After the block the process is as it was, and the user's modules are forgotten.
    """
    path, here, writes = list(sys.path), os.getcwd(), sys.dont_write_bytecode
    before = set(sys.modules)
    of_many = {name: os.environ.pop(name) for name in ONE_PROCESS if name in os.environ}
    sys.path.insert(0, str(user.directory))
    sys.dont_write_bytecode = True  # an edit within the same second would not be noticed
    os.chdir(working_directory)
    invalidate_caches()
    try:
        yield
    finally:
        os.chdir(here)
        os.environ.update(of_many)
        sys.dont_write_bytecode = writes
        sys.path[:] = path
        for name in sys.modules.keys() - before:
            file = Path(getattr(sys.modules[name], "__file__", None) or "/")
            is_own = file.is_relative_to(user.directory) and "site-packages" not in file.parts
            if is_own and name.partition(".")[0] not in OURS:
                del sys.modules[name]


def imported(user: UserFunction) -> Callable[..., Any]:
    """Import the function. Raises SetupError where there is none, or what its import raises."""
    try:
        module = import_module(user.module)
    except (ImportError, SyntaxError) as error:
        raise SetupError(f"cannot import {user.module} from {user.file}: {error}") from error
    came_from = getattr(module, "__file__", None)
    if came_from is None or not Path(came_from).samefile(user.file):
        raise SetupError(
            f"importing {user.module} gave {came_from}, expected {user.file}: another module "
            "of that name was imported before. Give yours another name"
        )
    found: Callable[..., Any] | None = getattr(module, user.function, None)
    if not callable(found):
        raise SetupError(f"{user.file} has no function of the name {user.function}")
    return found


@cache
def require_import(user: UserFunction, words: tuple[str, ...], code: str) -> None:  # noqa: ARG001
    """Import the function in another process; what succeeded once for that code is remembered.

    `words`: names of arguments, `name=` of one by keyword. Raises SetupError where it cannot be
    imported or called so.
    """
    path = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryFile() as output, suppress(subprocess.TimeoutExpired):
        subprocess.run(
            (sys.executable, "-P", "-m", __name__, user.model_dump_json(), *words),
            stdin=subprocess.DEVNULL,
            stdout=output,  # no pipe: a process that the module leaves behind would hold it open
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            timeout=LIMIT_SECONDS,
            check=False,
        )
        output.seek(0)
        printed = output.read().decode(errors="replace")
        _, answered, rest = printed.rpartition(ANSWER)  # the module may print anything around it
        if problem := rest.partition("\n")[0]:
            raise SetupError(problem)
        if answered:
            return
    raise SetupError(
        f"importing {user.module} from {user.file} ended Python or took longer than "
        f"{LIMIT_SECONDS:g} s. What a program does belongs below: if __name__ == '__main__'"
    )


def problem_of(user: UserFunction, words: Sequence[str]) -> str:
    """Import the function in this process; return why it cannot be called, or nothing."""
    fixed = [word[:-1] for word in words if word.endswith("=")]
    budget = "budget" if "budget" in words else None
    try:
        with tempfile.TemporaryDirectory() as scratch, surroundings(user, Path(scratch)):
            function = imported(user)
        with suppress(ValueError):  # it is not written in Python: nothing to check
            wanted = signature(function)
            try:
                given = called_with(function, fixed, "knobs", "seed", budget)
                wanted.bind(*given, **dict.fromkeys(fixed))
            except TypeError as error:
                called = f"({', '.join(words)})"
                return f"{user.function}{wanted} cannot be called with {called}: {error}"
    except SetupError as error:
        return str(error)
    except (Exception, SystemExit) as error:  # whatever the user's module raises
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if Path(f.filename).is_relative_to(user.directory)]
        where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
        said = " ".join(str(error).split())
        return f"cannot import {user.module}: {type(error).__name__}: {said}{where}"
    return ""


# Calling it


def called_with(
    function: Callable[..., Any], fixed: Collection[str], knobs: Any, seed: Any, budget: Any
) -> tuple[Any, ...]:
    """Return what it is called with: a budget of None only if it cannot do without."""
    if budget is not None:
        return knobs, seed, budget
    with suppress(ValueError):  # it is not written in Python
        try:
            signature(function).bind(knobs, seed, **dict.fromkeys(fixed))
        except TypeError:
            return knobs, seed, None
    return knobs, seed


def measurement_of(value: object, train_seconds: float) -> Measurement:
    """Return a function's value as a measurement, by default of `train_seconds`.

    Raises NoScoreError, naming what came. NaN is a score too: the runner calls it `nan`.
    """
    if isinstance(value, Measurement):
        return value
    fields = value if isinstance(value, Mapping) else {"score": value}
    own = {name: plain(field) for name, field in fields.items()}
    if isinstance(metrics := own.get("metrics"), Mapping):
        own["metrics"] = {name: plain(field) for name, field in metrics.items()}
    try:
        return Measurement.model_validate({"train_seconds": train_seconds, **own})
    except (ValidationError, OverflowError) as error:
        why = in_words(error) if isinstance(error, ValidationError) else str(error)
        raise NoScoreError(
            f"the function returned {cut(repr(value), 60)}: expected a number, a Measurement, or a "
            f"mapping with its fields; {why}"
        ) from error


if __name__ == "__main__":
    found = problem_of(UserFunction.model_validate_json(sys.argv[1]), sys.argv[2:])
    os.write(1, f"\n{ANSWER}{found}\n".encode("utf-8", "backslashreplace"))
