"""The frame of all objectives whose program is not ours, and the source files that it is.

`command`, `python:module:function` and a checkout of nanochat differ in how knobs go in and how a
score comes out. Here are the pinned sources: the files that decide a score are found and hashed
when a run is planned, and every evaluation compares those and no others. A program may write new
ones beside them, copies of itself among them.
"""

import ast
import os
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from glob import iglob
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from pydantic import Field, model_validator

from objectives.api import Knobs, Objective, ObjectiveSpec, SetupError
from objectives.settings import Settings
from objectives.space import DeclaredKnob, SearchSpace

MOST_BYTES = 64 << 20  # of pinned sources
IGNORED = frozenset({"__pycache__", "node_modules", "site-packages", "wandb", "venv"})
"""Directories without the user's own source, beside those whose names begin with a dot."""


class ProgramConfig(Settings):
    """The settings that all of them have."""

    knobs: dict[str, DeclaredKnob] = Field(default={})  # to search; at least one
    sources: tuple[str, ...] = ()  # patterns of what decides a score beside the program's files
    code: dict[str, str] | None = None  # SHA-256 of each pinned file by its name

    @model_validator(mode="after")
    def _check_knobs(self) -> Self:
        SearchSpace.declared(self.knobs)
        return self


Config = TypeVar("Config", bound=ProgramConfig)


@dataclass(frozen=True)
class ProgramObjective(Objective, Generic[Config]):
    """A program whose sources are pinned when it is planned, and compared in every evaluation."""

    budget_settings = ("budget",)  # how long it trains, in whatever unit it takes
    place_setting: ClassVar[str] = "directory"
    unscored = frozenset({"knobs", "sources"})

    config: Config

    @classmethod
    def from_settings(cls, name: str, settings: Mapping[str, Any]) -> Self:
        """Return the objective with the hashes of its sources, made unless the settings have them.

        Raises ValueError on a wrong setting, and SetupError where a source cannot be read.
        """
        objective = super().from_settings(name, settings)
        if objective.config.code is not None:
            return objective
        code = hashes(objective.directory, objective._sources())
        return replace(objective, config=objective.config.model_copy(update={"code": code}))

    def _sources(self) -> set[Path]:
        found = set(self.program_files())
        places = {self.directory, self.directory / "src"}  # where modules of the user's are found
        places |= {file.parent for file in found if file.suffix == ".py"}
        for pattern in self.config.sources:
            ignored = IGNORED - {*Path(pattern).parts}  # what is named is wanted
            matches = iglob(pattern, root_dir=self.directory, recursive=True)
            names = (one for one in matches if ignored.isdisjoint(Path(one).parts))
            more = {file for name in names if os.path.isfile(file := self.directory / name)}
            if not more:
                raise ValueError(
                    f"{self.name} settings: sources: there is no {pattern} in {self.directory}"
                )
            found |= more
        return with_imports(found, places)

    @property
    def directory(self) -> Path:
        """Where the program is."""
        return Path(getattr(self.config, self.place_setting))

    @abstractmethod
    def program_files(self) -> Iterable[Path]:
        """The files that the settings name as the program. Raises ValueError without one."""

    def require_same_sources(self) -> None:
        """Raises SetupError, naming files, if the sources are not those that were pinned."""
        pinned = self.config.code or {}
        changed = [name for name in pinned if _digest(self.directory / name) != pinned[name]]
        if changed:
            raise SetupError(
                f"the sources in {self.directory} have changed since the run was planned: "
                f"{', '.join(changed)}. Put them back and repeat the command, or begin another run "
                "with --run-id"
            )

    @property
    def space(self) -> SearchSpace:
        return SearchSpace.declared(self.config.knobs)

    def identity(self) -> Mapping[str, Any]:
        return {"data": self.provenance}

    def with_baseline(self, knobs: Knobs) -> ObjectiveSpec:
        settings, values = self.spec.settings, self.space.typed(knobs)
        declared = {
            name: {**knob, "baseline": values[name]} for name, knob in settings["knobs"].items()
        }
        return ObjectiveSpec(name=self.name, settings={**settings, "knobs": declared})

    def require_program(self) -> None:
        """Raises SetupError where the program cannot be started."""

    def preflight(self) -> tuple[str, ...]:
        """Look for the pinned sources, the program and the data."""
        self.require_same_sources()
        self.require_program()
        self.provenance  # noqa: B018 - read now, or refused
        return ()


def with_imports(files: Iterable[Path], places: Collection[Path]) -> set[Path]:
    """Return the files, and the modules below `places` that they import, at any depth.

    They are read, not run: a module imported by a name made at run time is not found.
    """
    found, pending = set[Path](), list(files)
    while pending:
        file = pending.pop()
        if file not in found:
            found.add(file)
            pending.extend(_imported_by(file, places) if file.suffix == ".py" else ())
    return found


def files_of_module(name: str, places: Iterable[Path]) -> Iterator[Path]:
    """Yield the files below the places that importing `a.b` reads: `a/__init__.py`, `a/b.py`.

    The name may end in that of a function or a class.
    """
    for place in places:
        folder = place
        for part in name.split("."):
            for file in (folder / f"{part}.py", folder / part / "__init__.py"):
                if os.path.isfile(file):
                    yield file
            folder /= part


def _imported_by(file: Path, places: Collection[Path]) -> Iterator[Path]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):  # running it will say what is wrong
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from files_of_module(alias.name, places)
        elif isinstance(node, ast.ImportFrom):
            within = (file.parents[node.level - 1],) if node.level else places
            for alias in node.names:
                yield from files_of_module(f"{node.module or ''}.{alias.name}".strip("."), within)


def hashes(directory: Path, files: Iterable[Path]) -> dict[str, str]:
    """Return the SHA-256 (hex) of each file by its name: below `directory`, or its whole path.

    Raises SetupError on a file that cannot be read, and when there is too much to read.
    """
    found, size = {}, 0
    for file in files:
        try:
            size += file.stat().st_size
            if size > MOST_BYTES:  # before it is read: it may be a data set
                raise SetupError(
                    f"{file} is too large to be pinned as a source. Name data by a placeholder: "
                    'fixed = { data = "PATH" } and "{data}" in argv'
                )
            name = file.relative_to(directory) if file.is_relative_to(directory) else file
            found[name.as_posix()] = sha256(file.read_bytes()).hexdigest()
        except OSError as error:
            raise SetupError(f"cannot read {file}: {error.strerror}") from error
    return dict(sorted(found.items()))


def _digest(file: Path) -> str:
    """Return the SHA-256 (hex) of a file; nothing if it cannot be read."""
    with suppress(OSError):
        return sha256(file.read_bytes()).hexdigest()
    return ""
