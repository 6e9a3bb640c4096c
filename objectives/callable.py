"""A Python function that is handed over as an object: a closure, or one of a notebook's cells.

cloudpickle writes it to a file, which every evaluation's process reads. What the plan records of it
is a digest of its source and of the plain values it refers to, so that the same cell, run again in
another process, continues the same run, and an edited one is refused.
"""

import hashlib
import inspect
import json
import platform
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Self

from objectives.api import Context, Knobs, Measurement, ObjectiveSpec, SetupError
from objectives.files import replace
from objectives.function import beating, measurement_of
from objectives.importing import PREFIX, UserFunction, arguments_of, find, surroundings
from objectives.program import ProgramConfig, ProgramObjective
from objectives.registry import CALLABLE
from objectives.settings import parse

DEPTH = 8
"""How deep values inside values are looked at."""


class CallableConfig(ProgramConfig):
    """Settings of `call:NAME`; the Python interface makes them."""

    directory: str  # modules of the user's are imported from there
    folder: str | None = None  # of pickled functions; None: its caller evaluates (ask and tell)
    budget: int | float | None = None  # third argument


@dataclass(frozen=True)
class CallableObjective(ProgramObjective[CallableConfig]):
    """A function that each evaluation's process reads from a file."""

    unscored = frozenset({"directory", "folder"})

    @classmethod
    def from_settings(cls, name: str, settings: Mapping[str, Any]) -> Self:
        """Return the objective of these settings. Raises ValueError on a wrong one."""
        return cls(name, parse(CallableConfig, settings, name))

    @property
    def directory(self) -> Path:
        return Path(self.config.directory)

    @property
    def preload(self) -> tuple[str, ...]:
        return (__name__, "cloudpickle", *self._read()[0])

    def program_files(self) -> Iterable[Path]:
        return ()

    def versions(self) -> Mapping[str, str]:
        return {"program_python": platform.python_version()}

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        """Call the function. Its own exceptions come as they are."""
        own = self.space.rounded(knobs)
        here = UserFunction(
            module="", function=self.name, file=self._file(), directory=self.directory
        )
        with beating(context.heartbeat), surroundings(here, context.directory):
            function = self._function()
            began = time.perf_counter()
            returned = function(*arguments_of(function, own, seed, self.config.budget))
            return measurement_of(returned, time.perf_counter() - began)

    def _file(self) -> Path:
        if self.config.folder is None:
            raise SetupError(
                f"{self.name} is evaluated by the program that asks and tells: run that again"
            )
        name, digest = next(iter((self.config.code or {}).items()))
        return Path(self.config.folder, f"{name}-{digest[:16]}.pickle")

    def _read(self) -> tuple[list[str], bytes]:
        """Return the modules that the function needs, and itself as cloudpickle wrote it."""
        if self.config.folder is None:
            return [], b""
        try:
            modules, _, data = self._file().read_bytes().partition(b"\n")
            return json.loads(modules), data
        except (OSError, ValueError) as error:
            raise SetupError(
                f"cannot read the function: {error}. Call minimize with it again"
            ) from error

    def _function(self) -> Callable[..., Any]:
        import cloudpickle

        try:
            function: Callable[..., Any] = cloudpickle.loads(self._read()[1])
        except Exception as error:  # whatever its import raises
            raise SetupError(f"cannot load the function in {self._file()}: {error}") from error
        return function

    def write(self, function: Callable[..., Any], data: bytes) -> None:
        """Write the pickled function where evaluations read it."""
        modules = json.dumps(sorted(modules_of(function))).encode()
        folder = self._file().parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # what is in it is executed
        replace(self._file(), modules + b"\n" + data)


def spec_of(
    function: Callable[..., Any],
    knobs: Mapping[str, Any],
    budget: float | None,
    directory: Path,
    folder: Path,
) -> ObjectiveSpec:
    """Return the objective that `function` is.

    A function of a module is imported by its name, as on a command line. Any other is pickled into
    `folder`, and finds the user's modules in `directory`. Raises ValueError, in one line, where
    it cannot be sent.
    """
    settings: dict[str, Any] = {"knobs": dict(knobs)}
    settings |= {} if budget is None else {"budget": budget}
    if place := _importable(function):
        name, root = place
        return ObjectiveSpec(name=name, settings={**settings, "directory": str(root)})
    data, name = pickled(function), name_of(function)
    settings |= {
        "directory": str(directory),
        "folder": str(folder.absolute()),
        "code": {name: fingerprint(function)},
    }
    objective = CallableObjective.from_settings(CALLABLE + name, settings)
    objective.write(function, data)
    return objective.spec


def name_of(function: Callable[..., Any]) -> str:
    """Return the function's name, as a word."""
    name = getattr(function, "__name__", type(function).__name__)
    return name if name.isidentifier() else "function"


def _importable(function: Callable[..., Any]) -> tuple[str, Path] | None:
    """Return `python:MODULE:NAME` and the directory of the module; None of any other function."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    if not isinstance(function, FunctionType) or module is None or file is None:
        return None
    if module.__name__ == "__main__" or getattr(module, function.__name__, None) is not function:
        return None
    if {"site-packages", "dist-packages"} & set(Path(file).parts):
        return None
    depth = module.__name__.count(".") + (Path(file).name == "__init__.py")
    name, root = f"{PREFIX}{module.__name__}:{function.__name__}", Path(file).parents[depth]
    try:
        return (name, root) if find(name, root).file.samefile(file) else None
    except ValueError:
        return None


def pickled(function: Callable[..., Any]) -> bytes:
    """Return the function for another process. Raises ValueError, saying what cannot be sent."""
    import cloudpickle

    try:
        data: bytes = cloudpickle.dumps(function)
    except Exception as error:  # whatever an object's own pickling raises
        raise ValueError(
            f"{name_of(function)} cannot be sent to the process of an evaluation: {error}. "
            "Make what it uses inside the function"
        ) from error
    return data


# What a function is, as far as two processes can agree on it


def fingerprint(function: Callable[..., Any]) -> str:
    """Return the SHA-256 (hex) of the function's source and of the plain values it refers to.

    Numbers, text, containers of them, arrays and functions count by what they are, other objects by
    their type alone.
    """
    return hashlib.sha256("\n".join(_described(function, frozenset(), DEPTH)).encode()).hexdigest()


def _described(value: Any, seen: frozenset[int], depth: int) -> Iterator[str]:
    """Yield words that are the same for equal values, in whichever process."""
    if isinstance(value, str | bytes | bool | int | float | complex | None):
        yield repr(value)
    elif depth == 0 or id(value) in seen:
        yield _type_of(value)
    else:
        yield from _inside(value, seen | {id(value)}, depth)


def _inside(value: Any, seen: frozenset[int], depth: int) -> Iterator[str]:
    inner: Iterable[Any] = ()
    if isinstance(value, FunctionType):
        yield from _function(value, seen, depth)
    elif isinstance(value, ModuleType):
        yield f"module {value.__name__}"
    elif isinstance(value, type):
        yield f"class {value.__module__}.{value.__qualname__}"
    elif isinstance(value, set | frozenset):
        yield from sorted(" ".join(_described(one, seen, depth - 1)) for one in value)
    elif all(hasattr(value, name) for name in ("dtype", "shape", "tobytes")):
        yield f"array {value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    else:
        yield _type_of(value)
        if isinstance(value, list | tuple):
            inner = value
        elif inspect.ismethod(value):
            inner = (value.__func__, value.__self__)
        else:
            own = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
            inner = tuple(own.items())
    for one in inner:
        yield from _described(one, seen, depth - 1)


def _type_of(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _function(function: FunctionType, seen: frozenset[int], depth: int) -> Iterator[str]:
    if not _is_sent_whole(function):
        yield f"function {function.__module__}.{function.__qualname__}"
        return
    try:
        yield textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):  # typed where nobody keeps it
        yield from _compiled(function.__code__)
    yield from _described(function.__defaults__, seen, depth - 1)
    yield from _described(function.__kwdefaults__, seen, depth - 1)
    for name, inner in sorted(_referred(function).items()):
        yield from (f"name {name}", *_described(inner, seen, depth - 1))


def _is_sent_whole(function: FunctionType) -> bool:
    """Whether cloudpickle sends what the function does, and not where it is imported from."""
    module = sys.modules.get(function.__module__ or "")
    return module is None or module.__name__ == "__main__" or "<" in function.__qualname__


def _compiled(code: CodeType) -> Iterator[str]:
    yield repr((code.co_code, code.co_names, code.co_varnames))
    for constant in code.co_consts:
        is_code = isinstance(constant, CodeType)
        yield from _compiled(constant) if is_code else _described(constant, frozenset(), DEPTH)


def _referred(function: FunctionType) -> dict[str, Any]:
    """Return the values of its closure and of the global names in it, by name."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    found = {name: function.__globals__[name] for name in names & function.__globals__.keys()}
    for name, cell in cells:
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def modules_of(function: Callable[..., Any]) -> set[str]:
    """Return the installed modules that the function refers to."""
    if not isinstance(function, FunctionType):
        return set()
    names = {
        value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        for value in _referred(function).values()
    }
    return {name for name in names if name and name != "__main__" and _is_installed(name)}


def _is_installed(module: str) -> bool:
    if module.partition(".")[0] in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    is_ours = bool({"site-packages", "dist-packages"} & set(Path(file).parts))
    return is_ours and find_spec(module) is not None
