"""A Python function that is handed over as an object: a closure, or one of a notebook's cells.

cloudpickle writes it to a file, which every evaluation's process reads. What the plan records of it
is a digest of its code and of the plain values it refers to, so that the same cell, run again in
another process, continues the same run, and an edited one is refused.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from pydantic import Field

from objectives.api import ObjectiveSpec, SetupError
from objectives.files import replace
from objectives.function import FunctionConfig, FunctionObjective
from objectives.registry import CALLABLE, FUNCTION

DEPTH = 8
"""How deep values inside values are looked at."""


class CallableConfig(FunctionConfig):
    """Settings of `call:NAME`; the Python interface makes them."""

    folder: str | None = None  # of pickled functions; None: its caller evaluates (ask and tell)
    code: dict[str, str] = Field(default={})  # `fingerprint` of the function by its name
    modules: tuple[str, ...] = ()  # installed ones that it needs, imported before a fork


@dataclass(frozen=True)
class CallableObjective(FunctionObjective):
    """A function that each evaluation's process reads from a file."""

    model = CallableConfig
    unscored = FunctionObjective.unscored | {"folder", "modules"}

    config: CallableConfig

    @property
    def preload(self) -> tuple[str, ...]:
        return (__name__, "cloudpickle", *self.config.modules)

    def require_program(self) -> None:
        """Do nothing: it was pickled by the process that has it."""

    def require_same_sources(self) -> None:
        """Do nothing: the file's name has its digest, so another function is another file."""

    def function(self) -> Callable[..., Any]:
        import cloudpickle

        try:
            found: Callable[..., Any] = cloudpickle.loads(self.file.read_bytes())
        except Exception as error:  # whatever its import raises
            raise SetupError(f"cannot load {self.name}: {error}") from error
        return found

    @property
    def file(self) -> Path:
        """Where the function is. Raises SetupError if its caller makes the evaluations."""
        if self.config.folder is None:
            raise SetupError(
                f"{self.name} is evaluated by the program that asks and tells: run that again"
            )
        ((name, digest),) = self.config.code.items()
        return Path(self.config.folder, f"{name}-{digest[:16]}.pickle")


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
    import cloudpickle

    settings: dict[str, Any] = {"knobs": dict(knobs)}
    settings |= {} if budget is None else {"budget": budget}
    if place := _importable(function):
        name, root = place
        return ObjectiveSpec(name=name, settings={**settings, "directory": str(root)})
    name = getattr(function, "__name__", type(function).__name__)
    name = name if name.isidentifier() else "function"  # such as <lambda>
    try:
        data: bytes = cloudpickle.dumps(function)
    except Exception as error:  # whatever an object's own pickling raises
        raise ValueError(
            f"{name} cannot be sent to the process of an evaluation: {error}. Make what it uses "
            "inside the function"
        ) from error
    settings |= {
        "directory": str(directory),
        "folder": str(folder.absolute()),
        "code": {name: fingerprint(function)},
        "modules": _modules_of(function),
    }
    objective = CallableObjective.from_settings(CALLABLE + name, settings)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # what is in it is executed
    replace(objective.file, data)
    return objective.spec


def _importable(function: Callable[..., Any]) -> tuple[str, Path] | None:
    """Return `python:MODULE:NAME` and the directory of the module; None of any other function."""
    own, name = (getattr(function, f"__{what}__", "") for what in ("module", "name"))
    module = sys.modules.get(own)
    file = getattr(module, "__file__", None)
    if file is None or own == "__main__" or _is_installed(file):
        return None
    if getattr(module, name, None) is not function:
        return None
    root = Path(file).parents[own.count(".") + (Path(file).name == "__init__.py")]
    return f"{FUNCTION}{own}:{name}", root


def _is_installed(file: str) -> bool:
    return bool({"site-packages", "dist-packages"} & set(Path(file).parts))


def _modules_of(function: Callable[..., Any]) -> list[str]:
    """Return the installed modules that the function refers to."""
    values = _referred(function).values() if isinstance(function, FunctionType) else ()
    names = {str(getattr(v, "__module__", None) or getattr(v, "__name__", "")) for v in values}
    files = {name: getattr(sys.modules.get(name), "__file__", None) for name in names}
    return sorted(name for name, file in files.items() if file and _is_installed(file))


def fingerprint(function: Callable[..., Any]) -> str:
    """Return the SHA-256 (hex) of the function's code and of the plain values it refers to.

    Numbers, text, containers of them, arrays and functions count by what they are, other objects by
    their type and their attributes.
    """
    return sha256("\n".join(_described(function, frozenset(), DEPTH)).encode()).hexdigest()


def _described(value: Any, seen: frozenset[int], depth: int) -> Iterator[str]:
    """Yield words that are the same for equal values, in whichever process."""
    yield f"{type(value).__module__}.{type(value).__qualname__}"
    inner: Iterable[Any] = ()
    if isinstance(value, str | bytes | bool | int | float | complex):
        yield repr(value)
    elif depth == 0 or id(value) in seen:
        return
    elif isinstance(value, type | ModuleType):
        yield f"{getattr(value, '__module__', '')} {value.__name__}"
    elif isinstance(value, FunctionType):
        yield f"{value.__module__} {value.__qualname__}"
        if value.__module__ in sys.modules.keys() - {"__main__"} and "<" not in value.__qualname__:
            return  # cloudpickle sends where it is imported from, and not what it does
        names = chain.from_iterable(sorted(_referred(value).items()))
        inner = (value.__code__, value.__defaults__, value.__kwdefaults__, *names)
    elif isinstance(value, CodeType):
        inner = (value.co_code, *value.co_names, *value.co_varnames, *value.co_consts)
    elif isinstance(value, MethodType):
        inner = (value.__func__, value.__self__)
    elif isinstance(value, set | frozenset):
        yield from sorted(" ".join(_described(one, seen, depth - 1)) for one in value)
    elif all(hasattr(value, name) for name in ("dtype", "shape", "tobytes")):
        yield f"{value.dtype} {value.shape} {sha256(value.tobytes()).hexdigest()}"
    elif isinstance(value, list | tuple):
        inner = value
    else:
        own = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
        inner = chain.from_iterable(own.items())
    for one in inner:
        yield from _described(one, seen | {id(value)}, depth - 1)


def _referred(function: FunctionType) -> dict[str, Any]:
    """Return the values of its closure and of the global names in it, by name."""
    codes = [function.__code__]
    for code in codes:  # grows during the loop
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
    names = {name for code in codes for name in code.co_names}
    found = {name: function.__globals__[name] for name in names & function.__globals__.keys()}
    for name, cell in zip(codes[0].co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not assigned yet
            found[name] = cell.cell_contents
    return found
