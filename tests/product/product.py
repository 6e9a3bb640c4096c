"""The product as a user sees it: commands, exit codes, and the files of a run in a folder."""

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
"""First word of the commands that the product prints in tests."""
PATIENCE = 120.0
"""Seconds that a command or condition may take before the test fails."""

USUAL = {"COLUMNS": "100", "NO_COLOR": "1", "CMAES_PROGRAM": PROGRAM}
USUAL["PYTHONPATH"] = str(REPOSITORY)
READ_AT_START = ("PYTHONPATH", "OPENBLAS_CORETYPE")


@dataclass(frozen=True)
class Done:
    """A finished command."""

    words: list[str]
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Its whole output."""
        return self.out + self.err

    def __str__(self) -> str:
        return f"orchestrator {' '.join(self.words)} -> {self.code}\n{self.out}\n{self.err}"


@dataclass
class Product:
    """A user with a folder. Call it with a command: a line, and further arguments."""

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
        """Return the environment of a command."""
        return {**os.environ, **USUAL, **self.variables, **(variables or {})}

    def json(self, line: str, *more: object, code: int | None = 0) -> Any:
        """Run a command with `--json` and return the document."""
        return json.loads(self(line, *more, "--json", code=code).out)

    def start(
        self, line: str, *more: object, stderr: int = subprocess.STDOUT, **variables: str
    ) -> "subprocess.Popen[str]":
        """Start a command in a new process group; it is killed at the end of the test."""
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
        """Start a command and kill its process with SIGKILL as soon as `ready()` holds."""
        process = self.start(line)
        wait_until(lambda: ready() or process.poll() is not None)
        process.kill()
        out, _ = process.communicate()
        assert process.returncode == -signal.SIGKILL, f"it ended before it was killed:\n{out}"

    def run_directory(self, run: str = "*") -> Path:
        """Return the directory of the run with that id, or of the only run but calibrations."""
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
        """Copy a golden run's ledger to this user's runs; return the directory."""
        golden = REPOSITORY / "tests/golden/runs" / name
        phase: str = Books.of(golden).plan["phase"]
        directory = self.folder / "artifacts/cmaes" / phase / name
        directory.mkdir(parents=True)
        shutil.copy(golden / LEDGER, directory)
        return directory

    def verify(self, run: object | None = None) -> None:
        """Check that a run's ledger replays; every test of a run ends with it."""
        self("verify", *([run] if run is not None else []))

    def write(self, name: str, text: str) -> Path:
        """Write a file into the user's folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def end(self) -> None:
        for process in self.started:
            process.kill()
            if process.stdout and not process.stdout.closed:  # not yet waited for
                process.communicate()


def wait_until(
    condition: Callable[[], bool], seconds: float = PATIENCE, every: float = 0.01
) -> None:
    """Poll until the condition holds; fail the test after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(every)


def commands_in(text: str) -> list[str]:
    """Return the lines that are commands of the product, without its name."""
    return re.findall(rf"^\s*{PROGRAM} (.+)$", text, re.MULTILINE)


def alive_below(directory: Path) -> list[int]:
    """Return the pids of processes whose working directory is in a run's directory."""
    processes = psutil.process_iter(["cwd"])
    return [one.pid for one in processes if Path(one.info["cwd"] or "/").is_relative_to(directory)]
