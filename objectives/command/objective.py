"""Any program as an objective: knobs in by arguments, file or environment, a score out."""

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from objectives.api import (
    CommandLine,
    Context,
    Knobs,
    Measurement,
    ObjectiveSpec,
    SetupError,
    Variant,
)
from objectives.command import measured, sending
from objectives.command.config import CommandConfig
from objectives.command.hearing import Hearing
from objectives.command.template import placeholders
from objectives.programs import budget, interpreter, process, record, sources
from objectives.programs.environment import cleaned
from objectives.programs.git import revision
from objectives.settings import parse
from objectives.space import SearchSpace

VERSION = 1  # part of the fingerprint: raise it with any change of how a program is started
DECIDE_NOTHING = ("needs", "measures", "sources")
"""Settings that decide no score; `sources` are in the hash of what they find."""


@dataclass(frozen=True)
class CommandObjective:
    """Starts a program, listens to it and reads its score."""

    config: CommandConfig

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Raises ValueError on a wrong setting, SetupError where the sources cannot be read."""
        config = parse(CommandConfig, settings, "command")
        code = config.code
        if code is None:
            if not config.directory.is_dir():
                raise ValueError(f"command setting directory: there is none at {config.directory}")
            code = _code(config)
        return cls(config.model_copy(update={"send": config.sending, "code": code}))

    @property
    def spec(self) -> ObjectiveSpec:
        settings = self.config.model_dump(mode="json", exclude_none=True)
        return ObjectiveSpec(name="command", settings=settings)

    @property
    def space(self) -> SearchSpace:
        return sending.space(self.config)

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the settings that decide a score, the sources among them."""
        settings = self.config.model_dump(
            mode="json", exclude_none=True, exclude=set(DECIDE_NOTHING)
        )
        parts = {"settings": settings, "space": self.space.model_dump(), "version": VERSION}
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def provenance(self) -> dict[str, str | int]:
        """The commit the sources are at, and versions if the program is a Python's."""
        versions = {f"program_{name}": text for name, text in self._versions().items()}
        return {**revision(self.config.directory), **versions}

    @property
    def reading(self) -> str:
        """How its score is found, in words."""
        return self.config.score.in_words

    @property
    def source_files(self) -> list[Path]:
        return sources.files(self.config.directory, *_sources(self.config))

    @property
    def preload(self) -> tuple[str, ...]:
        return (__name__,)

    def controls(self) -> tuple[Variant, ...]:
        return ()

    def rung(self, factor: float) -> Variant | None:
        return budget.rung(self.config.budget, factor)

    def flops(self) -> None:
        """What it computes only the program knows."""

    def command_line(self, knobs: Knobs, seed: int, context: Context) -> CommandLine:
        return sending.command_line(self.config, knobs, seed, context)

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:
        return sending.arguments(self.config, knobs)

    def preflight(self) -> tuple[str, ...]:
        config = self.config
        if not config.directory.is_dir():
            raise SetupError(f"there is no directory {config.directory}: mend setting directory")
        self.require_program()
        self._versions()
        self._require_same_code()
        return tuple(self._doubts())

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        """Start the program and wait for its end.

        Raises also ProgramFailedError, and ResultRefusedError on a score that is none.
        """
        config = self.config
        config.needs.require(context)
        self._require_same_code()
        line = self.command_line(knobs, seed, context)
        output = context.directory / sending.OUTPUT
        output.mkdir(mode=0o700)
        if config.sending == "json":
            text = sending.knobs_file(config, knobs, seed, context)
            sending.write_knobs_file(output, text)
        facts: dict[str, str | int] = {"attempt_id": context.attempt_id, "seed": seed}
        record.note(line, context, facts | {"code": self._pinned})
        noted_ns = os.stat(context.directory / record.PROGRAM).st_mtime_ns
        hearing, began = Hearing(config), time.monotonic()
        ended = process.run(line, hearing.hear, context.heartbeat)
        seconds = time.monotonic() - began
        ended.require_success()
        found = measured.Found(hearing, output, context.attempt_id, noted_ns)
        return measured.measurement(config, hearing, found, ended, seconds)

    @property
    def _pinned(self) -> str:
        assert self.config.code is not None
        return self.config.code

    def _require_same_code(self) -> None:
        config = self.config
        sources.require_same(
            self._pinned, _code(config), config.directory, lambda: self.source_files
        )

    def _versions(self) -> dict[str, str]:
        """Of the Python that is started and its packages; nothing of other programs."""
        program = self._program()
        if program is None or not interpreter.is_python(self.config.argv[0]):
            return {}
        return interpreter.versions(program, "argv")

    def _program(self) -> str | None:
        """The file that is started; None if there is none."""
        name = self.config.argv[0]
        if "/" in name:
            name = str(self.config.directory / Path(name))
        return shutil.which(name, path=cleaned(self.config.pass_environment, {}).get("PATH"))

    def require_program(self) -> None:
        config = self.config
        if self._program() is None:
            raise SetupError(
                f"there is no program {config.argv[0]!r} that can be started in "
                f"{config.directory}: the first entry of argv is a program in PATH, or a path "
                'to one, such as "python"'
            )
        for part in config.argv[1:]:
            is_script = part.endswith(".py") and not part.startswith("-") and "=" not in part
            if is_script and not placeholders(part) and not (config.directory / part).is_file():
                raise SetupError(f"there is no {part} in {config.directory}, which argv names")

    def _doubts(self) -> Iterator[str]:
        config = self.config
        if "seed" not in config.placed and "seed" not in config.sent:
            yield (
                "no seed reaches the program: equal knobs give equal scores, or noise that nobody "
                "can repeat; put {seed} into argv"
            )
        if self._pinned == sha256().hexdigest():
            yield "no source file is found, so that none is pinned: name them with setting sources"
        for name in config.pass_environment:
            if name not in os.environ:
                yield f"pass_environment names {name}, which is not set here"
        for short in config.needs.missing_here(config.directory):
            yield f"needs: {short}; an evaluation here would be refused"


def _code(config: CommandConfig) -> str:
    """SHA-256 (hex) of the sources as they lie there now."""
    return sources.digest(config.directory, *_sources(config))


def _sources(config: CommandConfig) -> tuple[Sequence[str], Sequence[Path]]:
    """Patterns, and files besides."""
    if config.sources is not None:
        return config.sources, ()
    return sources.DEFAULT, tuple(_named_files(config))


def _named_files(config: CommandConfig) -> Iterator[Path]:
    """Files among the arguments, and the program itself if it lies with the sources."""
    for number, part in enumerate(config.argv):
        path = config.directory / part
        if not part or placeholders(part) or not os.path.isfile(path):  # it may be any text
            continue
        is_own = path.is_relative_to(config.directory) and not interpreter.is_python(part)
        if number or ("/" in part and is_own):
            yield path
