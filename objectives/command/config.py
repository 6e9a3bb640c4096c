"""The settings of a program that is tuned, checked before it is started."""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from string import Formatter
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from objectives.command.result import Failure, Locator, compiled
from objectives.environment import check_variables, is_allowed
from objectives.files import absolute
from objectives.program import BUDGET, ProgramConfig
from objectives.settings import cut
from objectives.space import NAME, DeclaredKnob, SearchSpace

Scalar = bool | int | float | str
Send = Literal["argv", "key=value", "flags", "json", "environment"]

OF_AN_EVALUATION = ("seed", "directory", "device", "threads", "attempt_id")
"""Placeholders that every evaluation has."""

KNOBS_FILE = "knobs_file"


def placeholders(text: str) -> tuple[str, ...]:
    """The names in braces. Raises ValueError on a brace by itself."""
    return tuple(name for _, name in parts(text) if name is not None)


def parts(text: str) -> list[tuple[str, str | None]]:
    """Pieces of text, each with the name in braces after it."""
    try:
        found = list(Formatter().parse(text))
    except ValueError:
        raise ValueError(
            f"{cut(text, 60)!r} has a brace by itself: write {{{{ or }}}} for one"
        ) from None
    pieces = []
    for literal, name, more, how in found:
        said = (f"!{how}" if how else "") + (f":{more}" if more else "")
        pieces.append((literal, None if name is None else name + said))
    return pieces


def _program_at_home(argv: tuple[str, ...]) -> tuple[str, ...]:
    """No shell expands `~/bin/train`."""
    return (absolute(argv[0]), *argv[1:]) if argv[0].startswith("~") else argv


class CommandConfig(ProgramConfig):
    """A program, how its knobs reach it, and where its score is found."""

    knobs: dict[str, DeclaredKnob]
    argv: Annotated[tuple[str, ...], AfterValidator(_program_at_home)] = Field(min_length=1)
    directory: Annotated[str, BeforeValidator(absolute)] = Field(".", validate_default=True)

    # What the program gets, and how. `argv` and `environment` may have placeholders.
    fixed: dict[str, Scalar] = Field(default={})  # the same in every evaluation
    send: Send | None = None  # None: by placeholders if argv has a knob's, else as key=value
    seed: str = "seed"  # what the seed is called where names are sent; "": not at all
    budget: int | float | None = Field(default=None, gt=0)  # in whatever unit the program takes
    budget_name: str = ""  # what it is called where names are sent; "": not at all
    environment: dict[str, str] = Field(default={})
    pass_environment: tuple[str, ...] = ()  # names of ours that it gets besides the usual ones

    # What the program gives back. Lower scores are better.
    score: Locator
    measures: dict[str, Locator] = Field(default={})
    failures: dict[str, Failure] = Field(default={})  # by pattern: what a line that it matches says

    @field_validator("failures")
    @classmethod
    def _patterns_compile(cls, failures: dict[str, Failure]) -> dict[str, Failure]:
        for pattern in failures:
            compiled(pattern)
        return failures

    @model_validator(mode="after")
    def _check(self) -> Self:
        SearchSpace.declared(self.knobs)
        self._check_templates()
        self._check_names()
        self._check_everything_arrives()
        self._check_environment()
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
    def templates(self) -> Iterator[tuple[str, str]]:
        """Every text that may hold placeholders, each after its place in the settings."""
        for number, text in enumerate(self.argv, 1):
            yield f"argv, entry {number}", text
        for name, text in self.environment.items():
            yield f"environment.{name}", text

    def _check_templates(self) -> None:
        texts = [*self.argv, *self.environment, *self.environment.values()]
        texts += [value for value in self.fixed.values() if isinstance(value, str)]
        if any("\0" in text for text in texts):
            raise ValueError("a NUL character cannot be part of an argument or a variable")
        known = (
            *(*self.knobs, *self.fixed, *OF_AN_EVALUATION),
            *((BUDGET,) if self.budget is not None else ()),
            *((KNOBS_FILE,) if self.send == "json" else ()),
        )
        for place, text in self.templates:
            try:
                _require_known(text, known)
            except ValueError as error:
                raise ValueError(f"{place}: {error}") from None
        if not self.argv[0] or placeholders(self.argv[0]):
            raise ValueError(
                "argv begins with the program itself: expected its name or path, got "
                f"{self.argv[0]!r}"
            )

    def _check_names(self) -> None:
        reserved = (*OF_AN_EVALUATION, BUDGET, KNOBS_FILE)
        for name in (*self.knobs, *self.fixed):
            if name in reserved:
                raise ValueError(
                    f"{name}: {{{name}}} is what an evaluation gives the program: expected another "
                    f"name, or {name}=... in argv"
                )
        for name in (*self.fixed, *self.measures, self.seed, self.budget_name):
            if name and not re.fullmatch(NAME, name):
                raise ValueError(
                    f"expected a name of 1 to 64 letters, digits and . _ -, got {name!r}"
                )
        if both := self.knobs.keys() & self.fixed.keys():
            raise ValueError(f"{', '.join(sorted(both))}: a knob cannot be fixed as well")
        as_sent = variable if self.sending == "environment" else str
        names_sent = [as_sent(name) for name in self.sent.values()]
        if twice := {name for name in names_sent if names_sent.count(name) > 1}:
            raise ValueError(f"{', '.join(sorted(twice))}: two things would be sent by that name")

    def _check_everything_arrives(self) -> None:
        """What reaches the program in no way is a mistake, but for the seed."""
        arriving = self.placed | self.sent.keys()
        for name in (*self.knobs, *self.fixed):
            if name not in arriving:
                raise ValueError(
                    f"{name} does not reach the program: put {{{name}}} into argv, or say "
                    'send = "key=value", "flags", "json" or "environment"'
                )
        if self.budget is None and self.budget_name:
            raise ValueError(
                f"budget_name = {self.budget_name!r} names no budget: say budget = NUMBER"
            )
        if self.budget is not None and BUDGET not in arriving:
            raise ValueError(
                "the budget does not reach the program: put {budget} into argv or environment"
                + ("" if self.sending == "argv" else ", or say budget_name = NAME")
            )
        knows_directory = self.sending == "json" or "directory" in self.placed
        for locator in (self.score, *self.measures.values()):
            if locator.file is not None and not knows_directory:
                raise ValueError(
                    f"{locator.path} is looked for in the evaluation's own directory, and nothing "
                    f"tells the program where that is: put {{directory}}/{locator.path} into argv "
                    "or environment"
                )

    def _check_environment(self) -> None:
        check_variables(self.environment)
        check_variables(dict.fromkeys(self.pass_environment, ""))
        for name in self.sent.values() if self.sending == "environment" else ():
            if is_allowed(variable(name)) or variable(name) in self.environment:
                raise ValueError(
                    f"{name} would be sent as {variable(name)}, which is another variable: "
                    f"expected another name, or {{{name}}} in environment"
                )


def variable(name: str) -> str:
    """The environment variable that carries a name."""
    return re.sub("[.-]", "_", name).upper()


def _require_known(text: str, known: Collection[str]) -> None:
    """Raises ValueError, naming all that are known, on another placeholder."""
    for name in placeholders(text):
        if name == BUDGET and name not in known:
            raise ValueError("{budget}, and there is none: say budget = NUMBER")
        if name not in known:
            raise ValueError(
                f"unknown placeholder {{{cut(name, 60)}}} in {cut(text, 60)!r}. Known are "
                f"{', '.join(f'{{{one}}}' for one in known)}; a brace itself is {{{{ or }}}}"
            )
