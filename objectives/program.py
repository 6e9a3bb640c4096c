"""What all objectives have in common whose program is not ours.

Three doors lead to one: `command`, `python:module:function` and a checkout of nanochat. They
differ in how knobs go in and how a score comes out. Knobs, budget, sources, versions, the record
of what was started and the fingerprint are here.
"""

import json
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from objectives import process, sources
from objectives.api import (
    CommandLine,
    Context,
    Knobs,
    Objective,
    ObjectiveSpec,
    Variant,
)
from objectives.environment import record, revision
from objectives.space import DeclaredKnob, SearchSpace

BUDGET = "budget"
"""The setting that says how long a program trains, in whatever unit it takes."""


class ProgramConfig(BaseModel):
    """The settings that all of them have."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    knobs: dict[str, DeclaredKnob] = Field(default={})  # to search
    sources: tuple[str, ...] = ()  # patterns of what decides a score beside the program's files
    code: dict[str, str] | None = None  # SHA-256 by the name of each file that was pinned


Config = TypeVar("Config", bound=ProgramConfig)


@dataclass(frozen=True)
class ProgramObjective(Objective, Generic[Config]):
    """A program whose sources are pinned when it is planned, and checked in every evaluation."""

    version: ClassVar[int] = 1  # raise it with any change of ours that moves a score
    budget_setting: ClassVar[str] = BUDGET
    budget_unit: ClassVar[str] = "budget"
    unscored: ClassVar[frozenset[str]]  # settings that decide no score

    name: str
    config: Config

    def pinned(self) -> Self:
        """With the hashes of the sources as they are now, unless they are on record already.

        Raises ValueError on a pattern in `sources` that finds nothing, and SetupError where a
        source cannot be read.
        """
        if self.config.code is not None:
            return self
        usual = type(self.config).model_fields["sources"].default
        for pattern in self.config.sources:
            if pattern not in usual and not sources.matching(self.directory, (pattern,)):
                what = f"nothing in {self.directory} is called {pattern}"
                raise ValueError(f"{self.name} settings: sources: {what}")
        files = set(self.program_files())
        found = sources.with_imports(
            files | sources.matching(self.directory, self.config.sources), self.import_places(files)
        )
        code = sources.hashes(self.directory, found)
        return replace(self, config=self.config.model_copy(update={"code": code}))

    @property
    @abstractmethod
    def directory(self) -> Path:
        """Where the program is."""

    @abstractmethod
    def program_files(self) -> Iterable[Path]:
        """The files of the user's that the settings name as the program."""

    def import_places(self, files: Iterable[Path]) -> Collection[Path]:
        """Folders in which a program of these files finds modules of the user's."""
        scripts = {file.parent for file in files if file.suffix == ".py"}
        return {self.directory, self.directory / "src", *scripts}

    @cached_property
    def code(self) -> str:
        """SHA-256 (hex) of the sources as they were when it was planned."""
        return sha256(json.dumps(self.config.code, sort_keys=True).encode()).hexdigest()

    def require_same_sources(self) -> None:
        """Raises SetupError, naming files, if the sources are not those that were planned with."""
        assert self.config.code is not None, "pinned() has measured it"
        sources.require_same(self.config.code, self.directory)

    @property
    def spec(self) -> ObjectiveSpec:
        settings = self.config.model_dump(mode="json", exclude_none=True)
        return ObjectiveSpec(name=self.name, settings=settings)

    @property
    def space(self) -> SearchSpace:
        return SearchSpace.declared(self.config.knobs)

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of all that decides a score. Raises SetupError on unreadable data."""
        parts = {
            "name": self.name,
            "settings": self.config.model_dump(
                mode="json", exclude_none=True, exclude={"knobs", "sources", *self.unscored}
            ),
            "space": self.space.model_dump(),
            "data": self.data(),
            "version": self.version,
        }
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def data(self) -> Mapping[str, str | int]:
        """Hashes and sizes of what it trains on, where that is known."""
        return {}

    @property
    def provenance(self) -> dict[str, str | int]:
        """The commit, which may change where the code does not, versions, data."""
        return {**revision(self.directory), **self.versions(), **self.data()}

    @abstractmethod
    def versions(self) -> Mapping[str, str]:
        """Versions of the interpreter and the packages that it runs with."""

    def _scale(self, factor: float) -> Variant | None:
        """`factor` times the budget, a whole one if it is whole; None without a budget."""
        amount = getattr(self.config, self.budget_setting)
        if amount is None:
            return None
        scaled = round(amount * factor) if isinstance(amount, int) else amount * factor
        if scaled <= 0:
            return None
        return Variant(
            label=f"{factor:g} x {self.budget_unit}",
            settings={self.budget_setting: scaled},
            length=scaled / amount,
        )

    def with_baseline(self, knobs: Knobs) -> ObjectiveSpec:
        spec, values = self.spec, self.space.typed(knobs)
        declared = dict(spec.settings["knobs"])
        for name, knob in declared.items():
            declared[name] = {**knob, "baseline": values[name]}
        return spec.model_copy(update={"settings": {**spec.settings, "knobs": declared}})

    @property
    def reading(self) -> str:
        """How its score is found, in words; empty where there is one way only."""
        return ""

    def require_program(self) -> None:
        """Raises SetupError where what would be started is not there. Starts nothing."""

    def run(
        self, line: CommandLine, listener: process.Listener, context: Context, **facts: str | int
    ) -> process.Exit:
        """Run the program to its end, with `program.json` in the evaluation's directory."""
        record(line, context, {"code": self.code, **facts})
        return process.run(line, listener, context.heartbeat)
