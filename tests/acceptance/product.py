"""The product as its user has it: commands, exit codes, and the files of a run in a folder."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance.books import LEDGER, Books

REPOSITORY = Path(__file__).parents[2]
PROGRAM = "orchestrator"
"""With it begin the commands that the product prints here, whichever Python runs it."""
PATIENCE = 120.0
"""Seconds that a command, or a condition that is waited for, may take before the test fails."""


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Everything it printed."""
        return self.out + self.err

    def __str__(self) -> str:
        return f"orchestrator {' '.join(self.words)} -> {self.code}\n{self.out}\n{self.err}"


class WarmStart:
    """One process that starts commands quickly; see warm_start.py."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(self, request: dict[str, Any], timeout: float) -> int:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("warm_start.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY), "CMAES_PROGRAM": PROGRAM},
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        pid = int(process.stdout.readline())
        watchdog = threading.Timer(timeout, os.kill, (pid, signal.SIGKILL))
        watchdog.start()
        try:
            return int(process.stdout.readline())
        finally:
            watchdog.cancel()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


@dataclass
class Product:
    """A user in a folder of their own. Call it with a command's words."""

    folder: Path
    warm: WarmStart
    variables: dict[str, str] = field(default_factory=dict)
    started: "list[subprocess.Popen[str]]" = field(default_factory=list)

    def __call__(
        self,
        *words: object,
        code: int | None = 0,
        fresh: bool = False,
        timeout: float = PATIENCE,
        **variables: str,
    ) -> Done:
        """Run a command to its end and check its exit code (None: any).

        `fresh` starts a new interpreter, which variables such as PYTHONPATH need; so do those of
        OpenBLAS, which are read when numpy is imported.
        """
        arguments = [str(word) for word in words]
        environment = self.environment(variables)
        if fresh or any(name.startswith("OPENBLAS_") for name in self.variables | variables):
            ended = subprocess.run(
                [sys.executable, "-m", "orchestrator", *arguments],
                cwd=self.folder,
                env=environment,
                text=True,
                errors="replace",
                capture_output=True,
                check=False,
                timeout=timeout,
                stdin=subprocess.DEVNULL,
            )
            done = Done(tuple(arguments), ended.returncode, ended.stdout, ended.stderr)
        else:
            done = self._forked(arguments, environment, timeout)
        assert code is None or done.code == code, f"expected exit code {code}: {done}"
        return done

    def _forked(self, arguments: list[str], environment: dict[str, str], timeout: float) -> Done:
        streams = {name: self.folder.parent / f"{name}.txt" for name in ("stdout", "stderr")}
        ended = self.warm.run(
            {
                "arguments": arguments,
                "directory": str(self.folder),
                "environment": environment,
                **{name: str(path) for name, path in streams.items()},
            },
            timeout,
        )
        out, err = (path.read_text(errors="replace") for path in streams.values())
        return Done(tuple(arguments), ended, out, err)

    def environment(self, variables: dict[str, str] | None = None) -> dict[str, str]:
        """What a command finds in its environment. A user's home is the folder beside theirs."""
        return {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "CMAES_PROGRAM": PROGRAM,
            **self.variables,
            **(variables or {}),
        }

    def json(self, *words: object, code: int | None = 0) -> Any:
        """What a command prints with `--json`."""
        return json.loads(self(*words, "--json", code=code).out)

    def start(self, *words: object, **variables: str) -> "subprocess.Popen[str]":
        """Begin a command in a process group of its own; it is killed with the test's end."""
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator", *map(str, words)],
            cwd=self.folder,
            env=self.environment(variables),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def kill_at(self, ready: Callable[[], bool], *words: object) -> None:
        """Begin a command and kill -9 its process as soon as `ready()` holds."""
        process = self.start(*words)
        wait_until(lambda: ready() or process.poll() is not None)
        process.kill()
        out, _ = process.communicate()
        assert process.returncode == -signal.SIGKILL, f"it ended before it was killed:\n{out}"

    def run_directory(self, run: str = "*") -> Path:
        """The directory of the one search (or matrix of evaluations) with that id."""
        found = [
            path.parent
            for path in self.folder.glob(f"**/{run}/ledger.jsonl")
            if path.parent.parent.name != "calibration" or run != "*"
        ]
        assert len(found) == 1, found
        return found[0]

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
            if process.poll() is None:
                process.kill()
            if process.stdout and not process.stdout.closed:  # nobody has waited for its end
                process.communicate()


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Poll until it holds. Fails the test when it does not within that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def alive_below(directory: Path) -> list[int]:
    """The processes that work in a run's directory: every evaluation's do."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                cwd = (entry / "cwd").readlink()
            except OSError:
                continue
            if cwd.is_relative_to(directory):
                found.append(int(entry.name))
    return found
