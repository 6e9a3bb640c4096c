"""Any Python function as an objective: knobs, a seed and a budget in, a score out."""

import json
import platform
import time
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, Self

from objectives.api import (
    Context,
    Knobs,
    Measurement,
    ObjectiveSpec,
    SetupError,
    Variant,
)
from objectives.function import module
from objectives.function.config import FunctionConfig
from objectives.function.module import Module, Named
from objectives.programs import budget, git, record, sources
from objectives.programs.declared import as_given, as_text, space_of
from objectives.programs.interpreter import PACKAGES
from objectives.settings import parse
from objectives.space import SearchSpace

VERSION = 1  # part of the fingerprint: raise it with any change that moves a score


@dataclass(frozen=True)
class FunctionObjective:
    """A function that is imported in the process of each evaluation, and nowhere else."""

    name: str
    config: FunctionConfig  # with its `code`

    @classmethod
    def from_settings(cls, name: str, settings: Mapping[str, Any]) -> Self:
        """The function that `name` says. Imports nothing of it.

        Raises ValueError on a wrong setting, and where there is no such module; SetupError where
        its sources cannot be read.
        """
        named = Named.parse(name)
        config = parse(FunctionConfig, settings, name)
        try:
            space_of(config.knobs)
        except ValueError as error:
            raise ValueError(f"{name} settings: {error}") from error
        if config.code is None:  # else of a run that is on record: the files may be gone
            directory = Path(config.directory)
            found = module.find(named.module, directory)
            if idle := sources.finding_nothing(directory, config.sources):
                raise ValueError(
                    f"{name} settings: sources: nothing in {directory} is called {', '.join(idle)}"
                )
            code = found.code(directory, config.sources)
            config = config.model_copy(update={"code": code})
        return cls(name, config)

    @property
    def code(self) -> str:
        """SHA-256 (hex) of its sources, as they were when it was planned."""
        assert self.config.code is not None, "from_settings has measured it"
        return self.config.code

    @property
    def spec(self) -> ObjectiveSpec:
        return ObjectiveSpec(name=self.name, settings=self.config.model_dump(mode="json"))

    @property
    def space(self) -> SearchSpace:
        return space_of(self.config.knobs)

    @property
    def fingerprint(self) -> str:
        parts = {
            "name": self.name,
            "settings": self.config.model_dump(include={"budget", "fixed"}),
            "space": self.space.model_dump(),
            "code": self.code,
            "version": VERSION,
        }
        return sha256(json.dumps(parts, sort_keys=True, allow_nan=False).encode()).hexdigest()

    @property
    def provenance(self) -> dict[str, str | int]:
        """What is installed here, and the commit, which may change where the code does not."""
        return {**_versions(), **git.revision(self._directory)}

    @property
    def preload(self) -> tuple[str, ...]:
        """Nothing of the user's: a fork of what has threads, or CUDA, may hang."""
        return (__name__, "objectives.function.alive", "objectives.function.calling")

    def controls(self) -> tuple[Variant, ...]:
        return ()

    def rung(self, factor: float) -> Variant | None:
        return budget.rung(self.config.budget, factor)

    def flops(self) -> None:
        """The function says so after an evaluation, or nobody does."""

    def command_line(self, knobs: Knobs, seed: int, context: Context) -> None:
        """It computes in its own process."""

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:
        """`lr=0.003`, one word a knob."""
        return tuple(f"{name}={text}" for name, text in as_text(self.space, knobs).items())

    def preflight(self) -> tuple[str, ...]:
        """Imports the module in a process of its own.

        Warns of what decides a score and may change unnoticed.
        """
        found = self._found()
        module.require_no_namesake(self._directory)
        files = _tried(self.name, found, self.config.directory, self.code, self._fixed)
        pinned = found.pinned(self._directory, self.config.sources)
        inside = [file for file in files if file.is_relative_to(self._directory)]
        loose = [f.relative_to(self._directory).as_posix() for f in inside if f not in pinned]
        if not loose:
            return ()
        named = ", ".join(loose[:3]) + (f" and {len(loose) - 3} more" if len(loose) > 3 else "")
        patterns = json.dumps(loose if len(loose) <= 3 else ["*.py"])
        return (
            f"{named} can change while the run goes on, and nobody would notice: with sources = "
            f"{patterns} an evaluation of another version is refused",
        )

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        """Call it. Its own exceptions come as they are."""
        from objectives.function.alive import beating
        from objectives.function.calling import imported, surroundings
        from objectives.function.returned import measurement_of

        own = as_given(self.space, knobs)
        found, named = self._found(), Named.parse(self.name)
        record.note(None, context, {"function": self.name, "file": str(found.file)} | self._facts())
        with (
            beating(context.heartbeat),
            surroundings(self._directory, found, self.code, context.directory),
        ):
            function = imported(named, found)
            began = time.perf_counter()
            returned = function(own, seed, self.config.budget, **deepcopy(self.config.fixed))
            seconds = time.perf_counter() - began
            return measurement_of(returned, seconds)

    def require_program(self) -> None:
        """Raises SetupError where the module has no such function. Imports nothing."""
        named, found = Named.parse(self.name), self._found()
        if not found.may_have(named.function):
            raise SetupError(f"{found.file} has no function {named.function}")

    @property
    def source_files(self) -> list[Path]:
        found = module.find(Named.parse(self.name).module, self._directory)
        return sorted(found.pinned(self._directory, self.config.sources))

    @property
    def _directory(self) -> Path:
        return Path(self.config.directory)

    @property
    def _fixed(self) -> str:
        return json.dumps(self.config.fixed, sort_keys=True)

    def _facts(self) -> dict[str, str | int]:
        return {"code": self.code, "program_python": platform.python_version()}

    def _found(self) -> Module:
        """The module as it was planned with. Raises SetupError where it is another one, or gone."""
        try:
            found = module.find(Named.parse(self.name).module, self._directory)
        except ValueError as error:
            raise SetupError(str(error)) from error
        code = found.code(self._directory, self.config.sources)
        sources.require_same(self.code, code, found.file.parent, lambda: self.source_files)
        return found


def _versions() -> dict[str, str | int]:
    found: dict[str, str | int] = {"program_python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[f"program_{name}"] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@cache
def _tried(name: str, found: Module, directory: str, code: str, fixed: str) -> tuple[Path, ...]:  # noqa: ARG001
    """Once in a process for each code: `objectives.function.importing` has what it gives."""
    from objectives.function.importing import Question, try_import

    named, place = Named.parse(name), Path(directory)
    question = Question(named=named, module=found, directory=place, fixed=json.loads(fixed))
    return tuple(try_import(question))
