"""The user's module on the disk: where it is and what its code is. Nothing here imports it."""

import ast
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import invalidate_caches
from importlib.machinery import ModuleSpec, PathFinder
from keyword import iskeyword
from pathlib import Path

from objectives.api import SetupError
from objectives.programs.sources import DEFAULT, digest, matching

PREFIX = "python:"

OURS = frozenset({"budgets", "objectives", "orchestrator"})
"""Packages that are imported already wherever an evaluation runs."""


@dataclass(frozen=True)
class Named:
    """The module and the function that an objective's name says."""

    module: str
    function: str

    @classmethod
    def parse(cls, name: str) -> "Named":
        """Raises ValueError unless it is `python:MODULE:FUNCTION`."""
        module, _, function = name.removeprefix(PREFIX).partition(":")
        parts = (*module.split("."), function)
        if all(part.isidentifier() and not iskeyword(part) for part in parts):
            return cls(module, function)
        hint = ": a module's name has no .py" if ".py:" in name or "/" in name else ""
        raise ValueError(
            f"objective {name!r}: expected python:MODULE:FUNCTION, for example "
            f"python:train:evaluate or python:package.train:evaluate{hint}"
        )


@dataclass(frozen=True)
class Module:
    """A module's files."""

    file: Path
    package: Path | None  # of the top package that it is in, if any

    def may_have(self, function: str) -> bool:
        """Whether its file binds that name somewhere, as far as that is seen without importing."""
        try:
            tree = ast.parse(self.file.read_bytes())
        except (OSError, SyntaxError, ValueError):  # importing it will say what is wrong
            return True
        bound = {"*", function, "__getattr__"}
        return any(
            getattr(node, "name", None) in bound
            or getattr(node, "asname", None) in bound
            or (isinstance(node, ast.Name) and node.id in bound)
            for node in ast.walk(tree)
        )

    def folders(self, directory: Path) -> tuple[Path, ...]:
        """Where the user's own modules are, if `directory` is said to hold them."""
        return (directory,) if self.package is None else (directory, self.package)

    def pinned(self, directory: Path, patterns: Sequence[str]) -> set[Path]:
        """The files that `code` is of. Raises SetupError on too many."""
        package, names = self.package, set(matching(directory, patterns))
        own = () if package is None else (package / name for name in matching(package, DEFAULT))
        return {self.file, *own, *(directory / name for name in names)}

    def code(self, directory: Path, patterns: Sequence[str]) -> str:
        """SHA-256 (hex) of its file or its whole package, and of what the patterns find besides.

        Raises SetupError where that cannot be read.
        """
        if self.package is not None:
            own = digest(self.package, DEFAULT, also=(self.file,))
        else:
            own = digest(self.file.parent, (), also=(self.file,))
        if not patterns:
            return own
        return sha256(f"{own}\n{digest(directory, patterns)}".encode()).hexdigest()


def find(name: str, directory: Path) -> Module:
    """The module of that name in `directory`, or installed; as importing it would find it.

    Raises ValueError where there is none, or another one would be imported in its place.
    """
    top = name.partition(".")[0]
    if top in OURS or top in sys.stdlib_module_names:
        whose = "the orchestrator's" if top in OURS else "Python's"
        raise ValueError(f"the module {name} would be {whose} own: give yours another name")
    invalidate_caches()  # it may have been written a moment ago
    # Python puts the directory of a command on its path, and that of an evaluation is another.
    installed = [path for path in sys.path if path not in {"", os.getcwd()}]
    outer = spec = PathFinder.find_spec(top, [str(directory), *installed]) or _otherwise(top)
    for part in name.split(".")[1:]:
        inside = None if spec is None else spec.submodule_search_locations
        spec = None if inside is None else PathFinder.find_spec(part, list(inside))
    if spec is None or spec.origin is None or not spec.has_location:
        raise ValueError(
            f"there is no module {name} in {directory}, nor installed: expected a file "
            f"{name.replace('.', '/')}.py. Name the directory it is in: --set directory=DIR"
        )
    file = Path(spec.origin)
    return Module(file, _package(outer, file))


def require_no_namesake(directory: Path) -> None:
    """Raises SetupError if a module there has the name of a package of ours: ours is imported."""
    ours = Path(__file__).parents[2]
    for name in sorted(OURS):
        found = [directory / f"{name}.py", *sorted((directory / name).glob("*.py"))[:1]]
        theirs = next((file for file in found if file.is_file()), None)
        if theirs is not None and not theirs.resolve().is_relative_to(ours / name):
            raise SetupError(
                f"{theirs} can never be imported: {name} is a package of the orchestrator's, which "
                "every evaluation has imported already. Give yours another name"
            )


def _otherwise(top: str) -> ModuleSpec | None:
    """As an editable installation finds it, with a finder of its own."""
    finders = (finder for finder in sys.meta_path if finder is not PathFinder)
    found = (finder.find_spec(top, None) for finder in finders if hasattr(finder, "find_spec"))
    return next((spec for spec in found if spec is not None), None)


def _package(outer: ModuleSpec | None, file: Path) -> Path | None:
    places = (outer.submodule_search_locations or ()) if outer is not None else ()
    return next((Path(place) for place in places if file.is_relative_to(place)), None)
