"""Any program as an objective: knobs in by arguments, file or environment, a score out."""

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from objectives.api import CommandLine, Context, Knobs, Measurement, SetupError
from objectives.command import arguments
from objectives.command.config import CommandConfig
from objectives.command.result import Results
from objectives.command.template import placeholders
from objectives.programs import sources
from objectives.programs.environment import PROGRAM, cleaned, is_python, python_versions
from objectives.programs.objective import ProgramObjective, is_there
from objectives.settings import parse


class CommandObjective(ProgramObjective[CommandConfig]):
    """Starts a program, listens to it and reads its score."""

    unscored = frozenset({"needs", "measures", "sources", "knobs"})

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

    @property
    def source_files(self) -> set[Path]:
        """What `sources` names; without it the files that argv names and the `*.py` beside them.

        The latter with the modules of the directory that they import.
        """
        directory, named = self.directory, self.config.sources
        if named is not None:
            return sources.matching(directory, named)
        files = {*self._named_files(), *sources.matching(directory, ("*.py",))}
        places = {directory, directory / "src", *(f.parent for f in files if f.suffix == ".py")}
        return sources.with_imports(files, places)

    def _named_files(self) -> Iterator[Path]:
        """Files and modules among the arguments, and the program itself if it is the user's."""
        argv = self.config.argv
        for number, part in enumerate(argv):
            path = self.directory / part
            if number and argv[number - 1] == "-m":
                yield from sources.files_of_module(part, (self.directory, self.directory / "src"))
            if not part or placeholders(part) or not os.path.isfile(path):  # it may be any text
                continue
            is_own = path.is_relative_to(self.directory) and not is_python(part)
            if number or ("/" in part and is_own):
                yield path

    def versions(self) -> Mapping[str, str]:
        """Of the Python that is started and its packages; nothing of other programs."""
        program = self._program()
        if program is None or not is_python(self.config.argv[0]):
            return {}
        return python_versions(program, "argv")

    @property
    def reading(self) -> str:
        return self.config.score.in_words

    def command_line(self, knobs: Knobs, seed: int, context: Context) -> CommandLine:
        return arguments.command_line(self.config, knobs, seed, context)

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:
        return arguments.arguments(self.config, knobs)

    def preflight(self) -> tuple[str, ...]:
        is_there(self.directory)
        self.require_program()
        self.versions()
        self.require_same_sources()
        return tuple(self._warnings())

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        """Start the program and wait for its end.

        Raises also ProgramFailedError, and ResultRefusedError on a score that is none.
        """
        self._require_resources(context)
        self.require_same_sources()
        line = self.command_line(knobs, seed, context)
        output = context.directory / arguments.OUTPUT
        output.mkdir(mode=0o700)
        if self.config.sending == "json":
            arguments.write_knobs_file(self.config, knobs, seed, context)
        results, began = Results(self.config, output, context.attempt_id), time.monotonic()
        exit_ = self.run(line, results.listen, context, attempt_id=context.attempt_id, seed=seed)
        seconds = time.monotonic() - began
        exit_.require_success()
        since_ns = os.stat(context.directory / PROGRAM).st_mtime_ns
        return results.measurement(exit_, seconds, since_ns)

    def require_program(self) -> None:
        argv = self.config.argv
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

    def _require_resources(self, context: Context) -> None:
        """Raises SetupError unless the evaluation has the resources that it needs."""
        needs = self.config.needs
        if needs.gpu and context.device != "cuda":
            raise SetupError(f"needs: a GPU, and the evaluation has the device {context.device}")
        if needs.threads is not None and needs.threads > context.threads:
            raise SetupError(
                f"needs: {needs.threads} threads, and an evaluation has {context.threads}: "
                f"say --threads {needs.threads}"
            )

    def _warnings(self) -> Iterator[str]:
        config = self.config
        if "seed" not in config.placed and "seed" not in config.sent:
            yield (
                "no seed reaches the program: equal knobs give equal scores, or noise that nobody "
                "can repeat; put {seed} into argv"
            )
        if self.code == sha256().hexdigest():
            yield "no source file is found, so that none is pinned: name them with setting sources"
        for name in config.pass_environment:
            if name not in os.environ:
                yield f"pass_environment names {name}, which is not set here"
