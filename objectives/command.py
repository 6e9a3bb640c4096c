"""Any program as an objective: knobs in by arguments, file or environment, a score out."""

import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Formatter
from typing import Literal, Self

from pydantic import Field, model_validator

from objectives.api import Context, Knobs, Measurement, SetupError
from objectives.files import Place
from objectives.process import CommandLine, check_variables, program_environment, record, run
from objectives.program import ProgramConfig, ProgramObjective, files_of_module
from objectives.results import SCORE, Expression, Failure, Locator, Results
from objectives.settings import cut

Scalar = bool | int | float | str
Send = Literal["argv", "key=value", "flags", "json"]

KNOBS_FILE = "knobs_file"
OF_AN_EVALUATION = ("seed", "directory", "device", "threads", "attempt_id")
"""Placeholders that every evaluation fills."""

OUTPUT = "output"
"""The program's own directory, in the evaluation's: a script may empty it before it writes."""


def placeholders(text: str) -> list[str]:
    """Return the names in braces. Raises ValueError on a single brace, and on more than a name."""
    found = [part for part in Formatter().parse(text) if part[1] is not None]
    if any(conversion or "{" in (form or "") for *_, form, conversion in found):
        raise ValueError(f"a placeholder has no !r and no braces within: {cut(text, 60)!r}")
    return [name for _, name, *_ in found if name is not None]


class Unfilled(str):
    """A placeholder without a value, which stays as it is, its format included."""

    def __format__(self, form: str) -> str:
        return "{" + self + (f":{form}" if form else "") + "}"


class Values(dict[str, Scalar]):
    """What fills placeholders: `true` and `false` as in JSON; without a value the name stays."""

    def __getitem__(self, name: str) -> Scalar:
        value = self.get(name, Unfilled(name))
        return str(value).lower() if isinstance(value, bool) else value


class CommandConfig(ProgramConfig):
    """A program, how its knobs reach it, and where its score is found."""

    argv: tuple[str, ...] = Field(min_length=1)
    directory: Place = Field(".", validate_default=True)

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
    failures: dict[Expression, Failure] = Field(default={})  # status by pattern of an output line

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_variables(self.environment)
        for name in {"score", "metrics"} & self.measures.keys():
            raise ValueError(f"measures.{name}: choose another name")
        own = [*self.knobs, *self.fixed, *([] if self.budget is None else ["budget"])]
        known = [*own, *OF_AN_EVALUATION, *([KNOBS_FILE] if self.send == "json" else [])]
        for name, count in Counter(known).items():
            if count > 1:
                raise ValueError(
                    f"{name}: something else that the program gets has this name: choose another, "
                    f"and say {name}={{OTHER}} in argv"
                )
        for name in self.placed - {*known}:
            raise ValueError(
                f"unknown placeholder {cut(name, 60)!r}: expected {', '.join(sorted(known))}; "
                "a brace itself is {{ or }}"
            )
        for name in {*own} - self.placed - {*self.sent}:
            raise ValueError(
                f"{name} does not reach the program: put {{{name}}} into argv or environment, "
                'or say send = "key=value", "flags" or "json"'
            )
        tried = Values({**dict.fromkeys(known, "x"), **self.fixed, "seed": 1, "threads": 1})
        for name, knob in self.knobs.items():
            tried[name] = knob.named(name).rounded(knob.baseline)
        tried |= {} if self.budget is None else {"budget": self.budget}
        for text in (*self.argv, *self.environment.values()):
            try:
                text.format_map(tried)
            except (ValueError, LookupError, AttributeError) as error:  # also a name with a dot
                raise ValueError(f"cannot fill {cut(text, 60)!r}: {error}") from None
        return self

    @property
    def sending(self) -> Send:
        """How knobs without a placeholder reach the program."""
        in_argv = {name for part in self.argv for name in placeholders(part)}
        return self.send or ("argv" if in_argv & self.knobs.keys() else "key=value")

    @property
    def placed(self) -> set[str]:
        """Names that have a placeholder."""
        texts = (*self.argv, *self.environment.values())
        return {name for text in texts for name in placeholders(text)}

    @property
    def sent(self) -> list[str]:
        """Names that are sent as they are: those without a placeholder."""
        if self.sending == "argv":
            return []
        names = (*self.knobs, *self.fixed, "seed", *([] if self.budget is None else ["budget"]))
        return [name for name in names if name not in self.placed]


class CommandObjective(ProgramObjective[CommandConfig]):
    """Starts a program, listens to it and reads its score."""

    model = CommandConfig
    unscored = ProgramObjective.unscored | {"measures"}

    def program_files(self) -> Iterator[Path]:
        """Yield files and modules among the arguments, and the program if it is the user's own."""
        for number, part in enumerate(self.config.argv):
            if number and self.config.argv[number - 1] == "-m":
                yield from files_of_module(
                    f"{part}.__main__", (self.directory, self.directory / "src")
                )
            path = self.directory / part
            is_own = "/" in part and path.resolve().is_relative_to(self.directory.resolve())
            is_own = is_own and not re.fullmatch(r"python[\d.]*", path.name)  # of an environment
            if part and (number or is_own) and os.path.isfile(path):  # an argument may be any text
                yield path

    def _values(self, knobs: Knobs, seed: int, context: Context) -> Values:
        """Return the value of every placeholder."""
        output = context.directory / OUTPUT
        own = {
            KNOBS_FILE: str(output / "knobs.json"),
            **self.space.rounded(knobs),
            **self.config.fixed,
            "seed": seed,
            "directory": str(output),
            "device": context.device,
            "threads": context.threads,
            "attempt_id": context.attempt_id,
        }
        return Values(own if self.config.budget is None else {**own, "budget": self.config.budget})

    def _by_name(self, values: Values) -> Iterator[str]:
        """Yield an argument for each of the `values` that is sent by its name."""
        dashes = {"key=value": "", "flags": "--"}.get(self.config.sending)
        if dashes is not None:
            names = (name for name in self.config.sent if name in values)
            yield from (f"{dashes}{name}={values[name]}" for name in names)

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:
        """Return the command without what differs between evaluations; of a knobs file nothing."""
        if self.config.sending == "json":
            return ()
        values = Values(self.space.rounded(knobs))
        return (*(part.format_map(values) for part in self.config.argv), *self._by_name(values))

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
        config, output = self.config, context.directory / OUTPUT
        values = self._values(knobs, seed, context)
        output.mkdir(mode=0o700)
        for name, place in links.items():
            (output / name).symlink_to(place)
        variables = {name: text.format_map(values) for name, text in config.environment.items()}
        if config.sending == "json":
            variables[KNOBS_FILE.upper()] = file = str(values[KNOBS_FILE])
            document = {name: values.get(name) for name in config.sent}
            Path(file).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        line = CommandLine(
            argv=(*(part.format_map(values) for part in config.argv), *self._by_name(values)),
            directory=self.directory,
            environment=program_environment(context, config.pass_environment, variables),
        )
        record(line, context.directory)
        began = time.monotonic()
        results = Results({**config.measures, SCORE: config.score}, config.failures, output)
        tail = run(line, results.listen, context.heartbeat)
        return results.measurement(tail, time.monotonic() - began)

    def require_program(self) -> None:
        name = self.config.argv[0]
        file = str(self.directory / name) if "/" in name else name
        found = shutil.which(file, path=self.config.environment.get("PATH"))
        if found is None or not self.directory.is_dir():
            raise SetupError(f"there is no program {name!r} to start in {self.directory}")
        for part in self.config.argv[1:]:
            is_script = re.fullmatch(r"[^-={][^={]*\.(py|sh)", part)
            if is_script and not (self.directory / part).is_file():
                raise SetupError(f"there is no {part} in {self.directory}, which argv names")
