"""Everything that may be said of a program that is tuned, checked before it is started."""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from objectives.command.needs import Needs
from objectives.command.template import check_braces, check_known, placeholders
from objectives.command.where import Where, compiled
from objectives.programs.budget import BUDGET
from objectives.programs.declared import DeclaredKnob, space_of
from objectives.programs.environment import check_given, is_allowed
from objectives.space import NAME

Scalar = bool | int | float | str
Send = Literal["argv", "key=value", "flags", "json", "environment"]
Failure = Literal["nan", "oom", "error"]

OF_AN_EVALUATION = ("seed", "directory", "device", "threads", "attempt_id")
"""Placeholders that every evaluation has."""

KNOBS_FILE = "knobs_file"


def _at_home(path: str | Path) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:  # no such user
        raise ValueError(str(error)) from None


def _absolute(directory: Path) -> Path:
    return _at_home(directory).resolve()


class CommandConfig(BaseModel):
    """A program, how its knobs reach it, and where its score is found."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    argv: tuple[str, ...] = Field(min_length=1)  # with placeholders; no shell ever reads it
    directory: Annotated[Path, AfterValidator(_absolute)] = Field(default_factory=Path.cwd)

    # What the program is given, and how.
    knobs: dict[str, DeclaredKnob]
    fixed: dict[str, Scalar] = {}  # the same in every evaluation
    send: Send | None = None  # None: by placeholders if argv has a knob's, else as key=value
    seed: str = "seed"  # what the seed is called where names are sent; "": not at all
    budget: int | float | None = Field(default=None, gt=0)  # in whatever unit the program takes
    budget_name: str = ""  # what it is called where names are sent; "": not at all

    # What the program gives back. Lower scores are better.
    score: Where
    measures: dict[str, Where] = {}
    failures: dict[str, Failure] = {}  # by pattern: what a line that it matches says

    # Where and with what it runs.
    needs: Needs = Needs()
    environment: dict[str, str] = {}  # variables it gets, with placeholders
    pass_environment: tuple[str, ...] = ()  # names of ours that it gets besides the usual ones

    # What its score depends on.
    sources: tuple[str, ...] | None = None  # None: *.py, and the files that argv names
    code: str | None = Field(default=None, pattern=r"\A[0-9a-f]{64}\z")  # their SHA-256

    @field_validator("argv")
    @classmethod
    def _no_shell_expands_it(cls, argv: tuple[str, ...]) -> tuple[str, ...]:
        return (str(_at_home(argv[0])), *argv[1:]) if argv[0].startswith("~") else argv

    @field_validator("failures")
    @classmethod
    def _patterns_compile(cls, failures: dict[str, Failure]) -> dict[str, Failure]:
        for pattern in failures:
            compiled(pattern)
        return failures

    @model_validator(mode="after")
    def _check(self) -> Self:
        space_of(self.knobs)
        _check_texts(self)
        _check_names(self)
        _check_placeholders(self)
        _check_all_are_told(self)
        _check_environment(self)
        return self

    @cached_property
    def sending(self) -> Send:
        """How knobs reach the program."""
        if self.send is not None:
            return self.send
        in_argv = {name for part in self.argv for name in placeholders(part)}
        return "argv" if in_argv.intersection(self.knobs) else "key=value"

    @cached_property
    def placed(self) -> frozenset[str]:
        """Names that have a placeholder: they are not sent again."""
        return frozenset(name for _, text in self.templates for name in placeholders(text))

    @cached_property
    def sent(self) -> Mapping[str, str]:
        """What is sent by name: that name by the placeholder that it would have."""
        if self.sending == "argv":
            return {}
        names = {name: name for name in (*self.knobs, *self.fixed)}
        names["seed"] = self.seed
        if self.budget is not None:
            names[BUDGET] = self.budget_name
        return {key: name for key, name in names.items() if name and key not in self.placed}

    @property
    def known(self) -> tuple[str, ...]:
        """Every placeholder there is."""
        budget = (BUDGET,) if self.budget is not None else ()
        file = (KNOBS_FILE,) if self.sending == "json" else ()
        return (*self.knobs, *self.fixed, *OF_AN_EVALUATION, *budget, *file)

    @property
    def templates(self) -> Iterator[tuple[str, str]]:
        """Every text that may hold placeholders, each with its place in the settings."""
        for number, text in enumerate(self.argv, 1):
            yield f"argv, entry {number}", text
        for name, text in self.environment.items():
            yield f"environment.{name}", text

    @property
    def places(self) -> Iterator[Where]:
        """Wherever a number is looked for."""
        yield self.score
        yield from self.measures.values()


def variable(name: str) -> str:
    """The environment variable that carries a name."""
    return re.sub("[.-]", "_", name).upper()


def _check_names(config: CommandConfig) -> None:
    reserved = (*OF_AN_EVALUATION, BUDGET, KNOBS_FILE)
    for table, names in (("knobs", config.knobs), ("fixed", config.fixed)):
        for name in names:
            if name in reserved:
                raise ValueError(
                    f"{table}.{name}: {{{name}}} is what an evaluation gives the program: expected "
                    f"another name, or {name}=... in argv"
                )
    for name in (*config.fixed, *config.measures, config.seed, config.budget_name):
        if name and not re.fullmatch(NAME, name):
            raise ValueError(f"expected a name of 1 to 64 letters, digits and . _ -, got {name!r}")
    if both := config.knobs.keys() & config.fixed.keys():
        raise ValueError(f"{', '.join(sorted(both))}: a knob cannot be fixed as well")
    as_sent = variable if config.sending == "environment" else str
    names_sent = [as_sent(name) for name in config.sent.values()]
    if twice := {name for name in names_sent if names_sent.count(name) > 1}:
        raise ValueError(f"{', '.join(sorted(twice))}: two things would be sent by that name")


def _check_texts(config: CommandConfig) -> None:
    texts = [*config.argv, *config.environment, *config.environment.values()]
    texts += [value for value in config.fixed.values() if isinstance(value, str)]
    if any("\0" in text for text in texts):
        raise ValueError("a NUL character cannot be part of an argument or a variable")
    for place, text in config.templates:
        check_braces(place, text)
    if not config.argv[0] or placeholders(config.argv[0]):
        raise ValueError(
            "argv begins with the program itself: expected its name or path, got "
            f"{config.argv[0]!r}"
        )


def _check_placeholders(config: CommandConfig) -> None:
    for place, text in config.templates:
        if config.budget is None and BUDGET in placeholders(text):
            raise ValueError(f"{place} has {{budget}}, and there is none: say budget = NUMBER")
        check_known(place, text, config.known)


def _check_all_are_told(config: CommandConfig) -> None:
    """What reaches the program in no way is a mistake, but for the seed."""
    told = config.placed | config.sent.keys()
    for name in (*config.knobs, *config.fixed):
        if name not in told:
            raise ValueError(
                f"{name} does not reach the program: put {{{name}}} into argv, or say "
                'send = "key=value", "flags", "json" or "environment"'
            )
    if config.budget is None and config.budget_name:
        raise ValueError(
            f"budget_name = {config.budget_name!r} names no budget: say budget = NUMBER"
        )
    if config.budget is not None and BUDGET not in told:
        raise ValueError(
            "the budget does not reach the program: put {budget} into argv or environment"
            + ("" if config.sending == "argv" else ", or say budget_name = NAME")
        )
    knows_where = config.sending == "json" or "directory" in config.placed
    for place in config.places:
        if place.file is not None and not knows_where:
            raise ValueError(
                f"{place.path} is looked for in the evaluation's own directory, and nothing tells "
                f"the program where that is: put {{directory}}/{place.path} into argv or "
                "environment"
            )


def _check_environment(config: CommandConfig) -> None:
    check_given(config.environment)
    check_given(dict.fromkeys(config.pass_environment, ""))
    if config.sending == "environment":
        for name in config.sent.values():
            if is_allowed(variable(name)) or variable(name) in config.environment:
                raise ValueError(
                    f"{name} would be sent as {variable(name)}, which is another variable: "
                    f"expected another name, or {{{name}}} in environment"
                )
