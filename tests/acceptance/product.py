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

from tests.acceptance.books import LEDGER, Books

REPOSITORY = Path(__file__).parents[2]
PROGRAM = "orchestrator"
"""With it begin the commands that the product prints here, whichever Python runs it."""
PATIENCE = 120.0
"""Seconds that a command, or a condition that is waited for, may take before the test fails."""

USUAL = {"COLUMNS": "100", "NO_COLOR": "1", "CMAES_PROGRAM": PROGRAM}
USUAL["PYTHONPATH"] = str(REPOSITORY)


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
        self._begin()

    def _begin(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("warm_start.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **USUAL},
        )

    def run(
        self, arguments: list[str], folder: Path, environment: dict[str, str], timeout: float
    ) -> Done:
        streams = [str(folder.parent / name) for name in ("stdout.txt", "stderr.txt")]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = (arguments, str(folder), environment, streams, timeout)
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            code = int(self._process.stdout.readline())
        except BaseException:  # a test that ran out of time: the next one begins anew
            self.close()
            self._begin()
            raise
        out, err = (Path(stream).read_text(errors="replace") for stream in streams)
        return Done(tuple(arguments), code, out, err)

    def close(self) -> None:
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
        if fresh or any(name.startswith("OPENBLAS_") for name in self.variables | variables):
            process = self.start(*words, stderr=subprocess.PIPE, **variables)
            out, err = process.communicate(timeout=timeout)
            done = Done(tuple(map(str, words)), process.returncode, out, err)
        else:
            environment = self.environment(variables)
            done = self.warm.run([*map(str, words)], self.folder, environment, timeout)
        assert code is None or done.code == code, f"expected exit code {code}: {done}"
        return done

    def environment(self, variables: dict[str, str] | None = None) -> dict[str, str]:
        """What a command finds in its environment."""
        return {**os.environ, **USUAL, **self.variables, **(variables or {})}

    def json(self, *words: object, code: int | None = 0) -> Any:
        """What a command prints with `--json`."""
        return json.loads(self(*words, "--json", code=code).out)

    def start(
        self, *words: object, stderr: int = subprocess.STDOUT, **variables: str
    ) -> "subprocess.Popen[str]":
        """Begin a command in a process group of its own; it is killed with the test's end."""
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator", *map(str, words)],
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
            process.kill()
            if process.stdout and not process.stdout.closed:  # nobody has waited for its end
                process.communicate()


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Poll until it holds. Fails the test when it does not within that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def commands_in(text: str) -> list[list[str]]:
    """Whole lines that are commands of the product, as a shell splits them."""
    lines = re.findall(rf"^\s*{PROGRAM} (.+)$", text, re.MULTILINE)
    return [shlex.split(line) for line in lines]


def alive_below(directory: Path) -> list[int]:
    """The processes that work in a run's directory: every evaluation's do."""
    processes = psutil.process_iter(["cwd"])
    return [one.pid for one in processes if Path(one.info["cwd"] or "/").is_relative_to(directory)]
