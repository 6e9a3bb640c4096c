"""The command line in this process, and runs to do harm to."""

import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from budgets.chain import LEDGER
from budgets.ledger import HEAD
from orchestrator import cli
from orchestrator.recorded import Result


@dataclass
class Answer:
    code: int
    out: str
    err: str


Command = Callable[..., Answer]


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Command:
    """`orchestrator ARGUMENTS` in this process, in an empty working directory."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["orchestrator", *arguments])
        handlers = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            cli.main()
            code = 0
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 1
        finally:
            for signum, handler in handlers.items():
                signal.signal(signum, handler)
        captured = capfdbinary.readouterr()
        return Answer(code, captured.out.decode(), captured.err.decode())

    return run


NOISY = {"noise": 0.01, "failure_rate": 0.1}
"""Of a sphere one of whose first sixteen evaluations fails."""

RESUME = (
    *("phase1", "--tier", "min", "--objective", "sphere", "--set", "noise=0.01"),
    *("--set", "failure_rate=0.1", "--executor", "inline", "--workers", "1"),
)
"""The command of such a run."""


@pytest.fixture(scope="session")
def finished_run(
    tmp_path_factory: pytest.TempPathFactory, run_search: Callable[..., Result]
) -> Path:
    """A run of tier min that nobody disturbed: 39 records, 16 evaluations, a calibration."""
    return run_search(tmp_path_factory.mktemp("finished"), settings=NOISY).directory


@pytest.fixture
def run(finished_run: Path, tmp_path: Path) -> Path:
    """A copy of it, and of its calibration, where the command line finds it."""
    root = finished_run.parent.parent
    shutil.copytree(root, tmp_path / "artifacts/cmaes")
    return tmp_path / "artifacts/cmaes" / finished_run.relative_to(root)


def cut_ledger(run: Path, records: int, torn_bytes: int = 0, *, keep_head: bool = False) -> None:
    """Leave so many records of the ledger, and so many bytes of the next."""
    lines = (run / LEDGER).read_bytes().splitlines(keepends=True)
    torn = lines[records][:torn_bytes] if torn_bytes else b""
    (run / LEDGER).write_bytes(b"".join(lines[:records]) + torn)
    if not keep_head:
        (run / HEAD).unlink()
    shutil.rmtree(run / "reports")


@pytest.fixture(scope="session")
def cut() -> Callable[..., None]:
    """`cut(run, records, torn_bytes=0, keep_head=False)`: what a power failure leaves."""
    return cut_ledger


@pytest.fixture
def resume(command: Command) -> Callable[..., Answer]:
    """The command of `run`, with more options."""
    return lambda *more: command(*RESUME, *more)
