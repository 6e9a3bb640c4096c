"""Any program as an objective: knobs in by arguments, file or environment, a score out."""

import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Formatter
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from objectives.api import CommandLine, Context, Knobs, Measurement, SetupError
from objectives.files import absolute
from objectives.process import (
    check_variables,
    cleaned,
    program_environment,
    python_versions,
    record,
    run,
)
from objectives.program import BUDGET, ProgramConfig, ProgramObjective, files_of_module
from objectives.results import KNOBS, Failure, Locator, Results, compiled
from objectives.settings import cut

Scalar = bool | int | float | str
Send = Literal["argv", "key=value", "flags", "json"]

KNOBS_FILE = "knobs_file"
OF_AN_EVALUATION = ("seed", "directory", "device", "threads", "attempt_id")
"""Placeholders that every evaluation fills."""

OUTPUT = "output"
"""The program's own directory, in the evaluation's: a script may empty it before it writes."""


def placeholders(text: str) -> list[str]:
    """Return the names in braces. Raises ValueError on a single brace."""
    return [
        name + (f"!{how}" if how else "") + (f":{form}" if form else "")
        for _, name, form, how in Formatter().parse(text)
        if name is not None
    ]


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return the text with placeholders replaced; a name without a value keeps its braces."""
    parts = ((said, name) for said, name, *_ in Formatter().parse(text))
    return "".join(
        said if name is None else said + values.get(name, f"{{{name}}}") for said, name in parts
    )


class CommandConfig(ProgramConfig):
    """A program, how its knobs reach it, and where its score is found."""

    argv: tuple[str, ...] = Field(min_length=1)
    directory: Annotated[str, BeforeValidator(absolute)] = Field(".", validate_default=True)

    # What the program gets. `argv` and `environment` may hold placeholders; what has none is sent
    # by its name.
    fixed: dict[str, Scalar] = Field(default={})  # the same in every evaluation
    send: Send | None = None  # None: "argv" if argv has a knob's placeholder, else "key=value"
    budget: int | float | None = Field(default=None, gt=0)  # in whatever unit the program takes
    environment: dict[str, str] = Field(default={})
    pass_environment: tuple[str, ...] = ()  # variables of ours that it gets besides the usual ones

    # What the program gives back. Lower scores are better.
    score: Locator
    measures: dict[str, Locator] = Field(default={})
    failures: dict[str, Failure] = Field(default={})  # status by pattern of an output line

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_variables(self.environment)
        for pattern in self.failures:
            compiled(pattern)
        reserved = {*OF_AN_EVALUATION, BUDGET, KNOBS_FILE} | self.knobs.keys() & self.fixed.keys()
        for name in (*self.knobs, *self.fixed):
            if name in reserved:
                raise ValueError(
                    f"{name}: something else that the program gets has this name: choose another, "
                    f"and say {name}={{OTHER}} in argv"
                )
        own = {*self.knobs, *self.fixed, *([] if self.budget is None else [BUDGET])}
        known = {*own, *OF_AN_EVALUATION}
        known |= {KNOBS_FILE} if self.send == "json" else set()
        for name in self.placed - known:
            raise ValueError(
                f"unknown placeholder {cut(name, 60)!r}: expected {', '.join(sorted(known))}; "
                "a brace itself is {{ or }}"
            )
        for name in own - self.placed - set(self.sent):
            raise ValueError(
                f"{name} does not reach the program: put {{{name}}} into argv or environment, "
                'or say send = "key=value", "flags" or "json"'
            )
        return self

    @property
    def sending(self) -> Send:
        """How knobs without a placeholder reach the program."""
        if self.send is not None:
            return self.send
        in_argv = {name for part in self.argv for name in placeholders(part)}
        return "argv" if in_argv & self.knobs.keys() else "key=value"

    @property
    def placed(self) -> set[str]:
        """Names that have a placeholder."""
        texts = (*self.argv, *self.environment.values())
        return {name for text in texts for name in placeholders(text)}

    @property
    def sent(self) -> list[str]:
        """Names that are sent as they are: those without a placeholder."""
        names = [] if self.sending == "argv" else [*self.knobs, *self.fixed, "seed"]
        names += [BUDGET] if names and self.budget is not None else []
        return [name for name in names if name not in self.placed]


class CommandObjective(ProgramObjective[CommandConfig]):
    """Starts a program, listens to it and reads its score."""

    model = CommandConfig
    unscored = ProgramObjective.unscored | {"measures"}

    def program_files(self) -> Iterator[Path]:
        """Yield files and modules among the arguments, and the program if it is the user's own."""
        for number, part in enumerate(self.config.argv):
            if number and self.config.argv[number - 1] == "-m":
                yield from files_of_module(part, (self.directory, self.directory / "src"))
            path = self.directory / part
            is_own = "/" in part and path.is_relative_to(self.directory) and not _is_python(part)
            if part and (number or is_own) and os.path.isfile(path):  # an argument may be any text
                yield path

    def versions(self) -> Mapping[str, str]:
        """Return versions of the Python that is started; nothing of other programs."""
        program = self._program()
        return python_versions(program, "argv") if program and _is_python(program) else {}

    def command_line(self, knobs: Knobs, seed: int, context: Context) -> CommandLine:
        """Return what an evaluation starts. Raises ValueError unless the knobs are its own."""
        config = self.config
        values = {n: _text(v) for n, v in self._values(knobs, seed, context).items()}
        variables = {n: filled(text, values) for n, text in config.environment.items()}
        if config.sending == "json":
            variables[KNOBS_FILE.upper()] = values[KNOBS_FILE]
        return CommandLine(
            argv=(*(filled(part, values) for part in config.argv), *self._by_name(values)),
            directory=self.directory,
            environment=program_environment(context, config.pass_environment, variables),
        )

    def _values(self, knobs: Knobs, seed: int, context: Context) -> dict[str, Scalar]:
        """Return the value of every placeholder."""
        output = context.directory / OUTPUT
        values: dict[str, Scalar] = {
            **self.space.rounded(knobs),
            **self.config.fixed,
            "seed": seed,
            "directory": str(output),
            "device": context.device,
            "threads": context.threads,
            "attempt_id": context.attempt_id,
            KNOBS_FILE: str(output / KNOBS),
        }
        return values if self.config.budget is None else {**values, BUDGET: self.config.budget}

    def _by_name(self, values: Mapping[str, str]) -> Iterator[str]:
        """Yield an argument for each of the `values` that is sent by its name."""
        dashes = {"key=value": "", "flags": "--"}.get(self.config.sending)
        if dashes is not None:
            names = (name for name in self.config.sent if name in values)
            yield from (f"{dashes}{name}={values[name]}" for name in names)

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:
        """Return entries of argv that hold a knob (both of `--lr {lr}`), then what is sent."""
        values = {name: _text(value) for name, value in self.space.rounded(knobs).items()}
        found, before = list[str](), ""
        for part in self.config.argv:
            names = placeholders(part)
            if not values.keys().isdisjoint(names):
                found += [before] if before.startswith("-") else []
                found.append(filled(part, values))
            before = "" if names or "=" in part else part
        return (*found, *self._by_name(values))

    def preflight(self) -> tuple[str, ...]:
        """Look for all that an evaluation needs; warn of a missing seed and of missing sources."""
        super().preflight()
        warnings = []
        if "seed" not in (*self.config.placed, *self.config.sent):
            warnings.append("no seed reaches the program: put {seed} into argv to repeat its noise")
        if not self.config.code:
            warnings.append("no source file is found and pinned: name them in the setting sources")
        return tuple(warnings)

    def evaluate(
        self, knobs: Knobs, seed: int, context: Context, links: Mapping[str, str] = {}
    ) -> Measurement:
        """Start the program, with `links` in its directory, and wait for its end.

        Raises also ProgramFailedError, and NoScoreError on a score that is not a number.
        """
        self.require_same_sources()
        config, line = self.config, self.command_line(knobs, seed, context)
        output = context.directory / OUTPUT
        output.mkdir(mode=0o700)
        for name, place in links.items():
            (output / name).symlink_to(place)
        if config.sending == "json":
            values = self._values(knobs, seed, context)
            document = {name: values[name] for name in config.sent}
            (output / KNOBS).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        results = Results(config.score, config.measures, config.failures, output)
        record(line, context, {"code": self.code, "attempt_id": context.attempt_id, "seed": seed})
        began = time.monotonic()
        tail = run(line, results.listen, context.heartbeat)
        return results.measurement(tail, time.monotonic() - began)

    def require_program(self) -> None:
        argv = self.config.argv
        if self._program() is None or not self.directory.is_dir():
            raise SetupError(
                f"there is no program {argv[0]!r} that can be started in {self.directory}: see "
                "the settings argv and directory"
            )
        for part in argv[1:]:
            is_script = re.fullmatch(r"[^-={][^={]*\.py", part)
            if is_script and not (self.directory / part).is_file():
                raise SetupError(f"there is no {part} in {self.directory}, which argv names")

    def _program(self) -> str | None:
        """Return the file that is started; None if there is none."""
        name = self.config.argv[0]
        if "/" in name:
            name = str(self.directory / name)
        return shutil.which(name, path=cleaned(self.config.pass_environment, {}).get("PATH"))


def _is_python(program: str) -> bool:
    return re.fullmatch(r"(python|pypy)[0-9.]*t?", Path(program).name) is not None


def _text(value: Scalar) -> str:
    """Return a value as an argument: every digit of a number, `true` and `false` as in JSON."""
    return str(value).lower() if isinstance(value, bool) else str(value)
