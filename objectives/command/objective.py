"""Any program as an objective: knobs in by arguments, file or environment, a score out."""

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from objectives.api import CommandLine, Context, Knobs, Measurement, SetupError
from objectives.command.config import (
    KNOBS_FILE,
    CommandConfig,
    Scalar,
    parts,
    placeholders,
    variable,
)
from objectives.command.result import KNOBS, Results
from objectives.environment import cleaned, is_python, python_versions
from objectives.process import MARK
from objectives.program import BUDGET, ProgramObjective
from objectives.settings import parse
from objectives.sources import files_of_module

OUTPUT = "output"
"""The program's own directory in the evaluation's: it may empty it, as scripts do."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class CommandObjective(ProgramObjective[CommandConfig]):
    """Starts a program, listens to it and reads its score."""

    unscored = frozenset({"measures"})

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Raises ValueError on a wrong setting, SetupError where the sources cannot be read."""
        config = parse(CommandConfig, settings, "command")
        if config.code is None and not Path(config.directory).is_dir():
            raise ValueError(f"command setting directory: there is none at {config.directory}")
        return cls("command", config.model_copy(update={"send": config.sending})).pinned()

    @property
    def directory(self) -> Path:
        return Path(self.config.directory)

    def program_files(self) -> Iterator[Path]:
        """Files and modules among the arguments, and the program itself if it is the user's."""
        argv = self.config.argv
        for number, part in enumerate(argv):
            path = self.directory / part
            if number and argv[number - 1] == "-m":
                yield from files_of_module(part, (self.directory, self.directory / "src"))
            if not part or placeholders(part) or not os.path.isfile(path):  # it may be any text
                continue
            is_own = path.is_relative_to(self.directory) and not is_python(part)
            if number or ("/" in part and is_own):
                yield path

    def versions(self) -> Mapping[str, str]:
        """Versions of the Python that is started and its packages; none of other programs."""
        program = self._program()
        if program is None or not is_python(self.config.argv[0]):
            return {}
        return python_versions(program, "argv")

    @property
    def reading(self) -> str:
        return f"the last of {self.config.score}"

    def command_line(self, knobs: Knobs, seed: int, context: Context) -> CommandLine:
        """The program as an evaluation starts it. Raises ValueError unless the knobs are its own"""
        config, values = self.config, self._values(knobs, seed, context)
        texts = {name: _text(value) for name, value in values.items()}
        sent = {name: texts[key] for key, name in config.sent.items()}
        variables = dict.fromkeys(_THREADS, texts["threads"])
        if context.device == "cpu":
            variables["CUDA_VISIBLE_DEVICES"] = ""
        if context.attempt_id:
            variables[MARK] = context.attempt_id
        if config.sending == "json":
            variables[KNOBS_FILE.upper()] = texts[KNOBS_FILE]
        if config.sending == "environment":
            variables |= {variable(name): text for name, text in sent.items()}
        variables |= {name: _filled(text, texts) for name, text in config.environment.items()}
        return CommandLine(
            argv=(*(_filled(part, texts) for part in config.argv), *self._by_name(sent)),
            directory=self.directory,
            environment=cleaned(config.pass_environment, variables),
        )

    def _values(self, knobs: Knobs, seed: int, context: Context) -> dict[str, Scalar]:
        """By placeholder, each in its own type."""
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

    def _by_name(self, sent: Mapping[str, str]) -> Iterator[str]:
        if self.config.sending in ("key=value", "flags"):
            dashes = "--" if self.config.sending == "flags" else ""
            yield from (f"{dashes}{name}={text}" for name, text in sent.items())

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:
        """Entries of argv that hold a knob, of `--lr {lr}` both; then what is sent by name."""
        texts = {name: _text(value) for name, value in self.space.rounded(knobs).items()}
        found, before = list[str](), ""
        for part in self.config.argv:
            names = placeholders(part)
            if not texts.keys().isdisjoint(names):
                found += [before] if before.startswith("-") else []
                found.append(_filled(part, texts))
            before = "" if names or "=" in part else part
        sent = {name: texts[key] for key, name in self.config.sent.items() if key in texts}
        return (*found, *self._by_name(sent))

    def preflight(self) -> tuple[str, ...]:
        self.require_program()
        self.versions()
        self.require_same_sources()
        return tuple(self._warnings())

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        """Start the program and wait for its end.

        Raises also ProgramFailedError, and ResultRefusedError on a score that is none.
        """
        self.require_same_sources()
        line = self.command_line(knobs, seed, context)
        output = context.directory / OUTPUT
        output.mkdir(mode=0o700)
        if self.config.sending == "json":
            values = self._values(knobs, seed, context)
            document = {name: values[key] for key, name in self.config.sent.items()}
            (output / KNOBS).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        config, began = self.config, time.monotonic()
        results = Results(config.score, config.measures, config.failures, output)
        exit_ = self.run(line, results.listen, context, attempt_id=context.attempt_id, seed=seed)
        seconds = time.monotonic() - began
        exit_.require_success()
        return results.measurement(exit_, seconds)

    def require_program(self) -> None:
        argv = self.config.argv
        if not self.directory.is_dir():
            raise SetupError(f"there is no directory {self.directory}: see the setting directory")
        if self._program() is None:
            raise SetupError(
                f"there is no program {argv[0]!r} that can be started in {self.directory}: the "
                'first entry of argv is a program in PATH, or a path to one, such as "python"'
            )
        for part in argv[1:]:
            is_script = part.endswith(".py") and not part.startswith("-") and "=" not in part
            if is_script and not placeholders(part) and not (self.directory / part).is_file():
                raise SetupError(f"there is no {part} in {self.directory}, which argv names")

    def _program(self) -> str | None:
        """The file that is started; None if there is none."""
        name = self.config.argv[0]
        if "/" in name:
            name = str(self.directory / name)
        return shutil.which(name, path=cleaned(self.config.pass_environment, {}).get("PATH"))

    def _warnings(self) -> Iterator[str]:
        config = self.config
        if "seed" not in config.placed and "seed" not in config.sent:
            yield (
                "no seed reaches the program: equal knobs give equal scores, or noise that nobody "
                "can repeat; put {seed} into argv"
            )
        if not config.code:
            yield "no source file is found, so that none is pinned: name them with setting sources"
        for name in config.pass_environment:
            if name not in os.environ:
                yield f"pass_environment names {name}, which is not set here"


def _text(value: Scalar) -> str:
    """A value as an argument says it: every digit of a number, `true` and `false` as in JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def _filled(text: str, values: Mapping[str, str]) -> str:
    """The text with each placeholder's value; one that has none stays as it is."""
    return "".join(
        literal if name is None else literal + values.get(name, f"{{{name}}}")
        for literal, name in parts(text)
    )
