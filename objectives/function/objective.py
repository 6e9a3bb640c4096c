"""Any Python function as an objective: knobs, a seed and a budget in, a score out."""

import json
import platform
import time
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from importlib import metadata
from math import inf
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue

from objectives.api import Context, Knobs, Measurement, SetupError
from objectives.function.importing import UserFunction, find, parsed, require_no_namesake
from objectives.programs import sources
from objectives.programs.environment import PACKAGES, record
from objectives.programs.knobs import as_given, as_text, space_of
from objectives.programs.objective import ProgramConfig, ProgramObjective, absolute
from objectives.settings import parse


def _positive(budget: Any) -> Any:
    """A rung scales it; a whole one stays whole."""
    if budget is None:
        return None
    is_number = isinstance(budget, int | float) and not isinstance(budget, bool)
    if not is_number or not 0 < budget < inf:
        raise ValueError("expected a positive number")
    return budget


def _keyword_arguments(fixed: dict[str, JsonValue]) -> dict[str, JsonValue]:
    for name, value in fixed.items():
        if not name.isidentifier():
            raise ValueError(f"{name!r} is no name of a keyword argument")
        if _has_null(value):
            raise ValueError(f"{name}: expected no null, which a configuration cannot hold")
    return fixed


def _has_null(value: JsonValue) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return any(map(_has_null, value)) if isinstance(value, list) else value is None


class FunctionConfig(ProgramConfig):
    """What a user may set for `python:module:function`."""

    directory: Annotated[str, BeforeValidator(absolute)] = Field(".", validate_default=True)
    budget: Annotated[int | float | None, BeforeValidator(_positive)] = None  # third argument
    fixed: Annotated[dict[str, JsonValue], AfterValidator(_keyword_arguments)] = Field(default={})
    sources: tuple[str, ...] = ()  # patterns of what else decides a score, from `directory` on


class FunctionObjective(ProgramObjective[FunctionConfig]):
    """A function that is imported in the process of each evaluation, and nowhere else."""

    unscored = frozenset({"knobs", "directory", "sources"})

    @classmethod
    def from_settings(cls, name: str, settings: Mapping[str, Any]) -> Self:
        """The function that `name` says. Imports nothing of it.

        Raises ValueError on a wrong setting, and where there is no such module; SetupError where
        its sources cannot be read.
        """
        parsed(name)
        config = parse(FunctionConfig, settings, name)
        objective = cls(name, config)
        try:
            space_of(config.knobs)
        except ValueError as error:
            raise ValueError(f"{name} settings: {error}") from error
        if config.code is not None:  # of a run that is on record: the files may be gone
            return objective
        find(name, objective.directory)
        for pattern in config.sources:
            if not sources.matching(objective.directory, (pattern,)):
                raise ValueError(
                    f"{name} settings: sources: nothing in {config.directory} is called {pattern}"
                )
        return objective.pinned()

    @property
    def directory(self) -> Path:
        return Path(self.config.directory)

    @property
    def source_files(self) -> set[Path]:
        """Its module, the user's own modules that it imports, and what `sources` names besides."""
        return self._source_files(self._found())

    def _source_files(self, user: UserFunction) -> set[Path]:
        directory, *packages = user.folders
        places = (directory, *(package.parent for package in packages))
        files = {user.file, *sources.files_of_module(user.module, places)}
        found = sources.with_imports(files, (directory,))
        return found | sources.matching(directory, self.config.sources)

    def versions(self) -> Mapping[str, str]:
        found = {"program_python": platform.python_version()}
        for name in PACKAGES:
            try:
                found[f"program_{name}"] = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        return found

    @property
    def preload(self) -> tuple[str, ...]:
        return (*super().preload, "objectives.function.calling")

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:
        """`lr=0.003`, one word a knob."""
        return tuple(f"{name}={text}" for name, text in as_text(self.space, knobs).items())

    def preflight(self) -> tuple[str, ...]:
        """Import the module in a process of its own.

        Warns of what decides a score and may change unnoticed.
        """
        user = self._checked()
        require_no_namesake(self.directory)
        files = _imports(user, self.code, json.dumps(self.config.fixed, sort_keys=True))
        unpinned = sorted(set(files) - self._source_files(user))
        inside = [file for file in unpinned if file.is_relative_to(self.directory)]
        if not inside:
            return ()
        names = [file.relative_to(self.directory).as_posix() for file in inside]
        return (
            f"{sources.in_short(inside, self.directory)} can change while the run goes on, and "
            f"nobody would notice: with sources = "
            f"{json.dumps(names if len(names) <= sources.MOST_NAMED else ['**/*.py'])} an "
            "evaluation of another version is refused",
        )

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        """Call it. Its own exceptions come as they are."""
        from objectives.function.calling import beating, measurement_of
        from objectives.function.importing import imported, surroundings

        own, user = as_given(self.space, knobs), self._checked()
        facts = {"function": self.name, "file": str(user.file), "code": self.code}
        record(None, context, {**facts, "program_python": platform.python_version()})
        with beating(context.heartbeat), surroundings(user, self.code, context.directory):
            function = imported(user)
            began = time.perf_counter()
            returned = function(own, seed, self.config.budget, **deepcopy(self.config.fixed))
            return measurement_of(returned, time.perf_counter() - began)

    def require_program(self) -> None:
        self._found()

    def _found(self) -> UserFunction:
        """Where the function is now. Raises SetupError where it is gone."""
        try:
            return find(self.name, self.directory)
        except ValueError as error:
            raise SetupError(str(error)) from error

    def _checked(self) -> UserFunction:
        """The same, of the code that was planned with. Raises SetupError on another one."""
        user = self._found()
        sources.require_same(self.code, self.directory, self._source_files(user))
        return user


@cache
def _imports(user: UserFunction, code: str, fixed: str) -> tuple[Path, ...]:  # noqa: ARG001
    """The user's files that importing it reads; asked once in a process for each code."""
    from objectives.function.importing import Question, try_import

    return tuple(try_import(Question(user=user, fixed=json.loads(fixed))))
