"""The product as its user has it: commands, exit codes, and the files of a run in a folder."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.product import warm_start
from tests.product.books import LEDGER, Books

REPOSITORY = Path(__file__).parents[2]
PROGRAM = "orchestrator"
"""With it begin the commands that the product prints here, whichever Python runs it."""
PATIENCE = 120.0
"""Seconds that a command, or a condition that is waited for, may take before the test fails."""

USUAL = {"COLUMNS": "100", "NO_COLOR": "1", "CMAES_PROGRAM": PROGRAM}
USUAL["PYTHONPATH"] = str(REPOSITORY)
READ_AT_START = ("PYTHONPATH", "OPENBLAS_CORETYPE")


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    words: list[str]
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Everything it printed."""
        return self.out + self.err

    def __str__(self) -> str:
        return f"orchestrator {' '.join(self.words)} -> {self.code}\n{self.out}\n{self.err}"


@dataclass
class Product:
    """A user in a folder of their own. Call it with a command: a line, and more words."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    started: "list[subprocess.Popen[str]]" = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def __call__(
        self,
        line: str,
        *more: object,
        code: int | None = 0,
        timeout: float = PATIENCE,
        **variables: str,
    ) -> Done:
        """Run a command to its end and check its exit code (None: any)."""
        words = [*shlex.split(line), *map(str, more)]
        if any(name in READ_AT_START for name in variables):
            process = self.start(line, *more, stderr=subprocess.PIPE, **variables)
            out, err = process.communicate(timeout=timeout)
            done = Done(words, process.returncode, out, err)
        else:
            streams = [self.folder.parent / name for name in ("stdout.txt", "stderr.txt")]
            environment = self.environment(variables)
            ended = warm_start.run(words, self.folder, environment, streams, timeout)
            done = Done(words, ended, *(one.read_text(errors="replace") for one in streams))
        assert code is None or done.code == code, f"expected exit code {code}: {done}"
        return done

    def environment(self, variables: dict[str, str] | None = None) -> dict[str, str]:
        """What a command finds in its environment."""
        return {**os.environ, **USUAL, **self.variables, **(variables or {})}

    def json(self, line: str, *more: object, code: int | None = 0) -> Any:
        """What a command prints with `--json`."""
        return json.loads(self(line, *more, "--json", code=code).out)

    def start(
        self, line: str, *more: object, stderr: int = subprocess.STDOUT, **variables: str
    ) -> "subprocess.Popen[str]":
        """Begin a command in a process group of its own; it is killed with the test's end."""
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator", *shlex.split(line), *map(str, more)],
            cwd=self.folder,
            env=self.environment(variables),
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=stderr,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def kill_at(self, ready: Callable[[], bool], line: str) -> None:
        """Begin a command and kill -9 its process as soon as `ready()` holds."""
        process = self.start(line)
        wait_until(lambda: ready() or process.poll() is not None)
        process.kill()
        out, _ = process.communicate()
        assert process.returncode == -signal.SIGKILL, f"it ended before it was killed:\n{out}"

    def run_directory(self, run: str = "*") -> Path:
        """The directory of the one run with that id; without an id, no calibration's."""
        found = [
            path.parent
            for path in self.folder.glob(f"**/{run}/{LEDGER}")
            if path.parent.parent.name != "calibration" or run != "*"
        ]
        assert len(found) == 1, found
        return found[0]

    def books(self, run: str = "*") -> Books:
        return Books.of(self.run_directory(run))

    def stored(self, name: str) -> Path:
        """The directory of a golden run, copied to where this user's runs are: only its ledger."""
        golden = REPOSITORY / "tests/golden/runs" / name
        phase: str = Books.of(golden).plan["phase"]
        directory = self.folder / "artifacts/cmaes" / phase / name
        directory.mkdir(parents=True)
        shutil.copy(golden / LEDGER, directory)
        return directory

    def verify(self, run: object | None = None) -> None:
        """Every run of a test ends here: its ledger replays to what it says."""
        self("verify", *([run] if run is not None else []))

    def write(self, name: str, text: str) -> Path:
        """A file of the user's."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def end(self) -> None:
        for process in self.started:
            process.kill()
            if process.stdout and not process.stdout.closed:  # nobody has waited for its end
                process.communicate()


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Poll until it holds. Fails the test when it does not within that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def commands_in(text: str) -> list[str]:
    """Whole lines that are commands of the product, without its name."""
    return re.findall(rf"^\s*{PROGRAM} (.+)$", text, re.MULTILINE)


def alive_below(directory: Path) -> list[int]:
    """The processes that work in a run's directory: every evaluation's do."""
    processes = psutil.process_iter(["cwd"])
    return [one.pid for one in processes if Path(one.info["cwd"] or "/").is_relative_to(directory)]
