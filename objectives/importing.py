"""A user's module: found without importing it, imported by itself, tried in a process of its own.

As a program it writes what it found into a file, so that whatever the module prints is no answer.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module, invalidate_caches
from inspect import iscoroutinefunction, isgeneratorfunction, signature
from keyword import iskeyword
from os.path import isfile
from pathlib import Path
from types import ModuleType, TracebackType
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


class UserFunction(BaseModel, frozen=True):
    """A function, the file of its module, and the directory that the user's modules are in."""

    module: str
    function: str
    file: Path
    directory: Path


def parsed(name: str) -> tuple[str, str]:
    """Module and function of `python:MODULE:FUNCTION`. Raises ValueError on another name."""
    module, _, function = name.removeprefix(PREFIX).partition(":")
    parts = (*module.split("."), function)
    if all(part.isidentifier() and not iskeyword(part) for part in parts):
        return module, function
    hint = ": a module's name has no .py" if ".py:" in name or "/" in name else ""
    raise ValueError(
        f"objective {name!r}: expected python:MODULE:FUNCTION, for example "
        f"python:train:evaluate or python:package.train:evaluate{hint}"
    )


def find(name: str, directory: Path) -> UserFunction:
    """The function of that name in `directory`. Imports nothing.

    Raises ValueError where there is no such module, or another one would be imported in its place.
    """
    module, function = parsed(name)
    top, *inner = module.split(".")
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
    """Within the block the user's directory comes first where modules are looked for.

    An evaluation is one process, whatever the environment says of others. After the block all is as
    it was, and what was imported from the user's directory is forgotten.
    """
    path, here, writes = list(sys.path), os.getcwd(), sys.dont_write_bytecode
    before = set(sys.modules)
    of_many = {name: os.environ.pop(name) for name in ONE_PROCESS if name in os.environ}
    sys.path.insert(0, str(user.directory))
    sys.dont_write_bytecode = True  # what is kept of a file is told from a newer one by seconds
    os.chdir(working_directory)
    invalidate_caches()
    try:
        yield
    finally:
        os.chdir(here)
        os.environ.update(of_many)
        sys.dont_write_bytecode = writes
        sys.path[:] = path
        for name in own_modules(user).keys() - before:
            del sys.modules[name]


def own_modules(user: UserFunction) -> Mapping[str, ModuleType]:
    """What is imported from the user's directory, by name."""
    return {
        name: module
        for name, module in tuple(sys.modules.items())
        if (file := getattr(module, "__file__", None)) is not None
        and name.partition(".")[0] not in OURS
        and _is_own(Path(file), user.directory)
    }


def _is_own(path: Path, folder: Path) -> bool:
    if not path.is_relative_to(folder):
        return False
    inner = path.relative_to(folder).parts[:-1]
    return not any(part in IGNORED or part.startswith(".") for part in inner)


def imported(user: UserFunction) -> Callable[..., Any]:
    """The function. Raises SetupError where there is none, or what its import raises otherwise."""
    try:
        found = import_module(user.module)
    except (ImportError, SyntaxError) as error:
        raise SetupError(f"cannot import {user.module} from {user.file}: {error}") from error
    came_from = getattr(found, "__file__", None)
    if came_from is None or not Path(came_from).samefile(user.file):
        raise SetupError(
            f"importing {user.module} gave {came_from}, expected {user.file}: another module "
            "of that name was imported before. Give yours another name"
        )
    function = getattr(found, user.function, None)
    if not callable(function):
        what = "nothing" if function is None else f"a {type(function).__name__}"
        raise SetupError(
            f"{user.file} has {what} of the name {user.function}: expected a function of "
            "(knobs, seed, budget)"
        )
    return function  # type: ignore[no-any-return]


def _require_signature(function: Callable[..., Any], name: str, fixed: Sequence[str]) -> None:
    """Raises SetupError unless it can be called as an evaluation does."""
    if iscoroutinefunction(function) or isgeneratorfunction(function):
        raise SetupError(f"{name} gives no score when it is called: it is no function")
    try:
        wanted = signature(function)
    except (TypeError, ValueError):  # of what is not written in Python
        return
    also = "".join(f", {key}=..." for key in fixed)
    keywords = dict.fromkeys(fixed)
    try:
        wanted.bind({}, 0, None, **keywords)
    except TypeError as error:
        try:
            wanted.bind({}, 0, **keywords)
        except TypeError:
            raise SetupError(
                f"{name}{wanted} cannot be called as {name}(knobs, seed, budget{also}), nor "
                f"without the budget: {error}"
            ) from error


@cache
def try_import(
    user: UserFunction,
    fixed: tuple[str, ...],
    code: str,  # noqa: ARG001
) -> tuple[Path, ...]:
    """The user's files that importing it reads, as another process finds, once for each code.

    `fixed`: names of keyword arguments. Raises SetupError, with what Python says, where it cannot
    be imported or called so.
    """
    what = f"importing {user.module} from {user.file}"
    path = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryDirectory(prefix="import-") as scratch, tempfile.TemporaryFile() as said:
        answer = Path(scratch, "answer")
        process = subprocess.Popen(
            (sys.executable, "-P", "-m", __name__, user.model_dump_json(), str(answer), *fixed),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            process_group=0,
            env={**os.environ, "PYTHONPATH": path},
        )
        try:
            status = process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise SetupError(
                f"{what} took longer than {LIMIT_SECONDS:g} s: what takes long belongs into the "
                "function"
            ) from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if not answer.exists():
            said.seek(0)
            lines = said.read()[-2000:].decode(errors="replace").split("\n")
            last = next((line.strip() for line in reversed(lines) if line.strip()), "")
            raise SetupError(
                f"{what} ended Python with status {status}{last and f': {last}'}. What a program "
                "does belongs below: if __name__ == '__main__'"
            )
        found = json.loads(answer.read_bytes())
    if "failed" in found:
        raise SetupError(found["failed"])
    return tuple(map(Path, found["files"]))


def main(user: UserFunction, answer: Path, fixed: Sequence[str]) -> None:
    """Import what is asked for; an error that nobody expects is an answer too."""

    def unexpected(
        _: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        answer.write_text(json.dumps({"failed": _in_words(user, error, trace)}))

    sys.excepthook = unexpected
    with surroundings(user, answer.parent):
        _require_signature(imported(user), user.function, fixed)
        own = [str(module.__file__) for module in own_modules(user).values()]
    answer.write_text(json.dumps({"files": sorted(own)}))


def _in_words(user: UserFunction, error: BaseException, trace: TracebackType | None) -> str:
    """What Python says last, and of the user's own files the line that it speaks of."""
    if isinstance(error, SetupError):
        return str(error)
    said = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    frames = [f for f in traceback.extract_tb(trace) if f.filename != __file__]
    own = [f for f in frames if Path(f.filename).is_relative_to(user.directory)]
    where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return f"cannot import {user.module}: {said}{where}"


if __name__ == "__main__":
    main(UserFunction.model_validate_json(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
