"""A user's module: found without importing it, imported, and tried in a process of its own."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module, invalidate_caches
from inspect import signature
from keyword import iskeyword
from os.path import isfile
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from objectives.api import SetupError
from objectives.environment import ONE_PROCESS
from objectives.sources import IGNORED

PREFIX = "python:"

OURS = frozenset({"budgets", "objectives", "orchestrator"})
"""Packages that are imported already wherever an evaluation runs."""

LIMIT_SECONDS = 180.0
"""Importing torch took 13 s on a loaded machine."""

HERE = Path(__file__).parents[1]

DONE = "imported"
"""A file that says so, because the module may print anything."""

REFUSED = f"{SetupError.__module__}.{SetupError.__name__}: "


class UserFunction(BaseModel, frozen=True):
    """A function, the file of its module, and the directory that the user's modules are in."""

    module: str
    function: str
    file: Path
    directory: Path


def find(name: str, directory: Path) -> UserFunction:
    """Return the function `python:MODULE:FUNCTION` in `directory`. Imports nothing.

    Raises ValueError where there is no such module, or another one would be imported in its place.
    """
    module, _, function = name.removeprefix(PREFIX).partition(":")
    top, *inner = module.split(".")
    if not all(part.isidentifier() and not iskeyword(part) for part in (top, *inner, function)):
        raise ValueError(
            f"objective {name!r}: expected python:MODULE:FUNCTION (a module's name has no .py), "
            "for example python:train:evaluate or python:package.train:evaluate"
        )
    if top in OURS or top in sys.stdlib_module_names:
        whose = "the orchestrator's" if top in OURS else "Python's"
        raise ValueError(f"the module {module} would be {whose} own: give yours another name")
    place = directory.joinpath(top, *inner)
    for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
        if isfile(file):
            return UserFunction(module=module, function=function, file=file, directory=directory)
    raise ValueError(
        f"there is no module {module} in {directory}: expected a file "
        f"{module.replace('.', '/')}.py. Name the directory it is in: --set directory=DIR"
    )


def require_no_namesake(directory: Path) -> None:
    """Raises SetupError if a module there has the name of a package of ours: ours is imported."""
    for name in OURS if directory.resolve() != HERE else ():
        for file in (directory / f"{name}.py", *(directory / name).glob("*.py")):
            if file.is_file():
                raise SetupError(
                    f"{file} can never be imported: {name} is a package of the orchestrator's, "
                    "which every evaluation has imported already. Give yours another name"
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
            if name.partition(".")[0] not in OURS and _is_own(name, user.directory):
                del sys.modules[name]


def _is_own(module: str, folder: Path) -> bool:
    file = getattr(sys.modules[module], "__file__", None)
    if file is None or not Path(file).is_relative_to(folder):
        return False
    inner = Path(file).relative_to(folder).parts[:-1]
    return not any(part in IGNORED or part.startswith(".") for part in inner)


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
    if found is None:
        raise SetupError(f"{user.file} has nothing of the name {user.function}")
    return found


def arguments_of(
    function: Callable[..., Any],
    knobs: Mapping[str, float],
    seed: int,
    budget: float | None,
    fixed: Collection[str] = (),
) -> tuple[Any, ...]:
    """Return (knobs, seed, budget); without the budget if it is None or the function takes none.

    `fixed`: names of keyword arguments. Raises SetupError if it cannot be called either way.
    """
    try:
        wanted = signature(function)
    except (TypeError, ValueError) as error:
        if not callable(function):
            raise SetupError(f"expected a function of (knobs, seed, budget): {error}") from error
        return (knobs, seed) if budget is None else (knobs, seed, budget)  # not written in Python
    why = None
    ways: list[tuple[Any, ...]] = [(knobs, seed), (knobs, seed, budget)]
    for given in ways if budget is None else reversed(ways):
        try:
            wanted.bind(*given, **dict.fromkeys(fixed))
        except TypeError as error:
            why = error
        else:
            return given
    also = "".join(f", {name}=..." for name in fixed)
    raise SetupError(
        f"a function{wanted} cannot be called with (knobs, seed, budget{also}), nor without the "
        f"budget: {why}"
    )


@cache
def try_import(user: UserFunction, fixed: tuple[str, ...], code: str) -> None:  # noqa: ARG001
    """Import the function in another process, once for each state of its code.

    `fixed`: names of keyword arguments. Raises SetupError, with what Python says, where it cannot
    be imported or called so.
    """
    path = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryDirectory(prefix="import-") as scratch:
        output = Path(scratch, "output")
        with output.open("wb") as said, suppress(subprocess.TimeoutExpired):
            subprocess.run(
                (sys.executable, "-P", "-m", __name__, user.model_dump_json(), scratch, *fixed),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={**os.environ, "PYTHONPATH": path},
                timeout=LIMIT_SECONDS,
                check=False,
            )
        if Path(scratch, DONE).exists():
            return
        text = output.read_bytes()[-10_000:].decode(errors="replace")
    last = text.strip().rpartition("\n")[2]
    if last.startswith(REFUSED):
        raise SetupError(last.removeprefix(REFUSED))
    if "Traceback (most recent call last)" not in text:
        raise SetupError(
            f"importing {user.module} from {user.file} ended Python or took longer than "
            f"{LIMIT_SECONDS:g} s{last and f': {last}'}. What a program does belongs below: "
            "if __name__ == '__main__'"
        )
    lines = re.findall(r'File "(.+)", line (\d+)', text)
    own = [f" ({file}, line {n})" for file, n in lines if Path(file).is_relative_to(user.directory)]
    raise SetupError(f"cannot import {user.module}: {last}{own[-1] if own else ''}")


def main(user: UserFunction, scratch: Path, fixed: Sequence[str]) -> None:
    """Import the function in this process, and leave `DONE` if an evaluation can call it."""
    with surroundings(user, scratch):
        arguments_of(imported(user), {}, 0, None, fixed)
    (scratch / DONE).touch()


if __name__ == "__main__":
    main(UserFunction.model_validate_json(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
