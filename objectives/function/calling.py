"""The user's module imported and its function called, in this very process."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module, invalidate_caches
from inspect import iscoroutinefunction, isgeneratorfunction, signature
from pathlib import Path
from types import ModuleType
from typing import Any

from objectives.api import SetupError
from objectives.function.module import OURS, Module, Named
from objectives.programs.environment import ONE_PROCESS
from objectives.programs.sources import is_among


@contextmanager
def surroundings(place: Path, module: Module, code: str, working_directory: Path) -> Iterator[None]:
    """Within the block `place` comes first where modules are looked for.

    What is imported from there is kept apart from other places' and other versions': the same code
    is imported once, and changed code anew. An evaluation is one process, whatever the environment
    says of others. After the block all is as it was.
    """
    kept = _kept(place, module, code)
    path, here, writes = list(sys.path), os.getcwd(), sys.dont_write_bytecode
    before = dict(sys.modules)
    of_many = {name: os.environ.pop(name) for name in ONE_PROCESS if name in os.environ}
    sys.path.insert(0, str(place))
    sys.modules.update(kept)
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
        kept.update(_new_modules(before, module.folders(place)))
        for name in kept:
            sys.modules.pop(name, None)
        sys.modules.update({name: before[name] for name in kept if name in before})


@cache
def _kept(place: Path, module: Module, code: str) -> dict[str, ModuleType]:  # noqa: ARG001
    """Modules by name, as that code of that place gives them: the arguments are their key."""
    return {}


def _new_modules(
    before: Mapping[str, ModuleType], folders: Sequence[Path]
) -> dict[str, ModuleType]:
    return {name: m for name, m in own_modules(folders).items() if before.get(name) is not m}


def own_modules(folders: Sequence[Path]) -> dict[str, ModuleType]:
    """What is imported from the folders, by name."""
    return {
        name: module
        for name, module in tuple(sys.modules.items())
        if (file := getattr(module, "__file__", None)) is not None
        and name.partition(".")[0] not in OURS
        and any(is_among(Path(file), folder) for folder in folders)
    }


def imported(named: Named, module: Module) -> Callable[..., Any]:
    """The function. Raises SetupError where there is none, or what its import raises otherwise."""
    try:
        found = import_module(named.module)
    except (ImportError, SyntaxError) as error:
        raise SetupError(f"cannot import {named.module} from {module.file}: {error}") from error
    came_from = getattr(found, "__file__", None)
    if came_from is None or not Path(came_from).samefile(module.file):
        raise SetupError(
            f"importing {named.module} gave {came_from}, expected {module.file}: another module "
            "of that name was imported before. Give yours another name"
        )
    function = getattr(found, named.function, None)
    if not callable(function):
        what = "nothing" if function is None else f"a {type(function).__name__}"
        raise SetupError(
            f"{module.file} has {what} of the name {named.function}: expected a function of "
            "(knobs, seed, budget)"
        )
    return function  # type: ignore[no-any-return]


def require_signature(named: Named, function: Callable[..., Any], fixed: dict[str, Any]) -> None:
    """Raises SetupError unless it can be called as an evaluation does."""
    if iscoroutinefunction(function) or isgeneratorfunction(function):
        raise SetupError(f"{named.function} gives no score when it is called: it is no function")
    try:
        wanted = signature(function)
    except (TypeError, ValueError):  # of what is not written in Python
        return
    also = "".join(f", {name}=..." for name in fixed)
    try:
        wanted.bind({}, 0, None, **fixed)
    except TypeError as error:
        raise SetupError(
            f"{named.function}{wanted} cannot be called as {named.function}(knobs, seed, "
            f"budget{also}): {error}"
        ) from error
