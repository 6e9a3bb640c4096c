"""The frame of all objectives whose program is not ours.

`command`, `python:module:function` and a checkout of nanochat differ in how knobs go in and how a
score comes out. Pinned sources, fingerprint, budget and the record of a start are here.
"""

import json
import time
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from objectives import process, sources
from objectives.api import (
    CommandLine,
    Context,
    Knobs,
    Measurement,
    Objective,
    ObjectiveSpec,
    Variant,
)
from objectives.environment import record
from objectives.results import Results
from objectives.space import DeclaredKnob, SearchSpace

BUDGET = "budget"
"""The setting that says how long a program trains, in whatever unit it takes."""


class ProgramConfig(BaseModel):
    """The settings that all of them have."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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

    version: ClassVar[int] = 1  # raise it with any change of ours that moves a score
    budget_setting: ClassVar[str] = BUDGET
    budget_unit: ClassVar[str] = "budget"
    unscored: ClassVar[frozenset[str]]  # settings that decide no score

    name: str
    config: Config

    def pinned(self) -> Self:
        """Return the objective with the hashes of its sources, unless it has them already.

        Raises ValueError on a pattern in `sources` that finds nothing, and SetupError where a
        source cannot be read.
        """
        if self.config.code is not None:
            return self
        default = type(self.config).model_fields["sources"].default
        for pattern in self.config.sources:
            if pattern not in default and not sources.matching(self.directory, (pattern,)):
                raise ValueError(
                    f"{self.name} settings: sources: nothing in {self.directory} is called "
                    f"{pattern}"
                )
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
        """Folders in which a program of these files finds the user's modules."""
        scripts = {file.parent for file in files if file.suffix == ".py"}
        return {self.directory, self.directory / "src", *scripts}

    @cached_property
    def code(self) -> str:
        """SHA-256 (hex) of the pinned sources."""
        return sha256(json.dumps(self.config.code, sort_keys=True).encode()).hexdigest()

    def require_same_sources(self) -> None:
        """Raises SetupError, naming files, if the sources are not those that were pinned."""
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
        return {**self.versions(), **self.data()}

    @abstractmethod
    def versions(self) -> Mapping[str, str]:
        """Versions of the interpreter and the packages that it runs with."""

    def scaled(self, factor: float) -> Variant | None:
        """Return `factor` times the budget, a whole number if it is one; None without a budget."""
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
        declared = {
            name: {**knob, "baseline": values[name]}
            for name, knob in spec.settings["knobs"].items()
        }
        return spec.model_copy(update={"settings": {**spec.settings, "knobs": declared}})

    @property
    def reading(self) -> str:
        """How its score is found, in words; empty where there is one way only."""
        return ""

    def require_program(self) -> None:
        """Raises SetupError where the program cannot be started."""

    def preflight(self) -> tuple[str, ...]:
        """Look for the pinned sources, the program and the data."""
        self.require_same_sources()
        self.require_program()
        self.provenance  # noqa: B018 - read now, or refused
        return tuple(self.warnings())

    def warnings(self) -> Iterable[str]:
        """What is doubtful in the settings."""
        return ()

    def run(
        self, line: CommandLine, results: Results, context: Context, **facts: str | int
    ) -> Measurement:
        """Run the program to its end, with `program.json` in the evaluation's directory."""
        record(line, context, {"code": self.code, **facts})
        began = time.monotonic()
        exit_ = process.run(line, results.listen, context.heartbeat)
        seconds = time.monotonic() - began
        exit_.require_success()
        return results.measurement(exit_, seconds)
