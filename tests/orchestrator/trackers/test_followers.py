"""Trackers that fail, hang, die and fill disks beside a run that notices nothing."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from budgets.ledger.chain import LEDGER
from orchestrator.execution import processes
from orchestrator.records.recorded import Result
from orchestrator.running.session import Session
from orchestrator.trackers import process
from orchestrator.trackers.followers import Followers, Following
from orchestrator.trackers.place import Answer, Place
from orchestrator.verification.verify import verify
from tests.conftest import Cli

Instead = Callable[[str], None]
Tell = Callable[..., Answer]

RECORDING = """
class Run:
    summary = {}
    def log(self, values, step=None, commit=None):
        LOG
    def finish(self, exit_code):
        pass
return Run()
"""

BREAKS = {
    "an error": (
        "raise ValueError('no account for key sk-aaaabbbbccccddddeeeeffff')",
        "no account",
    ),
    "an exit": ("sys.exit('unhappy')", "SystemExit: unhappy"),
    "a full disk": ("raise OSError(errno.ENOSPC, 'No space left on device')", "No space left"),
    "a death": ("os.kill(os.getpid(), signal.SIGKILL)", "was ended by SIGKILL"),
    "a crash": ("ctypes.string_at(0)", "was ended by SIGSEGV"),
    "a question": ("input('Password: ')", "EOFError"),
    "a question to the terminal": ("open('/dev/tty')", "No such device"),
    "an error later": (RECORDING.replace("LOG", "raise RuntimeError('too much')"), "too much"),
}
"""What a library does, and what is said of it."""


@pytest.mark.parametrize("code", list(BREAKS), ids=str)
def test_what_becomes_of_a_library_is_said_in_a_line(
    tracked: Path, told: Tell, instead: Instead, code: str
) -> None:
    does, says = BREAKS[code]
    instead(does)
    answer = told(tracked, "wandb")
    assert answer.error is not None
    assert says in answer.error
    assert "\n" not in answer.error
    assert "sk-aaaa" not in answer.error


def followers(run: Path, said: list[str], patience_seconds: float = 30.0) -> Followers:
    found = Followers(["wandb"], said.append, patience_seconds)
    found.begin(run)
    return found


def test_a_failure_is_said_once(tracked: Path, instead: Instead) -> None:
    instead("raise ValueError('no account')")
    said: list[str] = []
    found = followers(tracked, said)
    found.close(lambda: False)
    found.look()
    found.close(lambda: False)
    (line,) = said
    assert line.startswith("Tracker wandb failed: ValueError: no account. The run is not touched;")
    assert line.endswith(f"python -m orchestrator track '{tracked}' --to wandb")


HANGS = {
    "in a call": "time.sleep(3600)",
    "in a call that lets nothing else run": "ctypes.PyDLL(None).sleep(3600)",
    "deaf to signals": (
        "for s in ('TERM', 'INT', 'HUP'): signal.signal(getattr(signal, f'SIG{s}'), signal.SIG_IGN)"
        "\n"
        "time.sleep(3600)"
    ),
}


@pytest.mark.parametrize("code", list(HANGS), ids=str)
def test_a_library_that_hangs_is_ended_after_a_bounded_time(
    tracked: Path, instead: Instead, code: str
) -> None:
    instead(f"open({str(tracked / 'there')!r}, 'w').close()\n{HANGS[code]}")
    said: list[str] = []
    found = followers(tracked, said, 1.0)
    while not (tracked / "there").exists():
        found.look()
        time.sleep(0.01)
    began = time.monotonic()
    found.close(lambda: False)
    assert time.monotonic() - began < 10
    (line,) = said
    assert ", and was ended" in line


@pytest.mark.parametrize(
    ("patience", "hurries"),
    [(4.0, [True, True]), (3600.0, [False, False, True])],
    ids=["in a hurry", "impatient"],
)
def test_somebody_in_a_hurry_does_not_wait_long(
    tracked: Path, instead: Instead, patience: float, hurries: list[bool]
) -> None:
    instead("time.sleep(3600)")
    said: list[str] = []
    found = followers(tracked, said, patience)
    is_hurried = iter(hurries)
    began = time.monotonic()
    found.close(lambda: next(is_hurried, True))
    assert time.monotonic() - began < 10
    assert len(said) == 1


@pytest.mark.parametrize(
    "code",
    [
        "time.sleep(3600)",
        pytest.param(
            "ctypes.PyDLL(None).sleep(3600)", marks=pytest.mark.slow
        ),  # three times as long
    ],
    ids=["in a call", "in a call that lets nothing else run"],
)
def test_a_follower_does_not_outlive_a_killed_command_by_much(
    tracked: Path, instead: Instead, code: str
) -> None:
    """Nobody is left to end it: it does so itself, even where no thread of its own can run."""
    instead(f"open({str(tracked / 'there')!r}, 'w').close()\n{code}")
    holder = (
        "import os, signal, sys, time; from pathlib import Path\n"
        "from orchestrator.trackers.followers import Following\n"
        "from orchestrator.trackers.place import Place\n"
        "one = Following(Place(Path(sys.argv[1]), 'wandb'), '--linger=1')\n"
        "print(one._process.pid, flush=True)\n"
        "while not Path(sys.argv[1], 'there').exists(): time.sleep(0.01)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", holder, str(tracked)],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid = int(done.stdout)
    for _ in range(1000):
        if processes.start_ticks(pid) is None:
            return
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    raise AssertionError("it lives on")


def test_a_place_that_cannot_be_written_is_said_and_nothing_is_started(
    tracked: Path, instead: Instead
) -> None:
    (tracked / "trackers").write_text("a file")
    said: list[str] = []
    found = followers(tracked, said)
    found.close(lambda: False)
    (line,) = said
    assert "Tracker wandb failed: " in line
    assert "trackers" in line


@pytest.mark.needs("tensorboard")
def test_a_disk_that_is_full_ends_the_telling(tracked: Path) -> None:
    """Its files end at 8 KiB: the limit that the follower inherits is this process's."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 13, usual[1]))
    try:
        following = Following(Place(tracked, "tensorboard"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    while not following.has_ended():
        time.sleep(0.01)
    assert following.answer == Answer(error="OSError: [Errno 27] File too large")


def test_what_a_library_prints_goes_to_its_log_which_does_not_grow_for_ever(
    tracked: Path, instead: Instead, monkeypatch: pytest.MonkeyPatch, told: Tell
) -> None:
    instead("print('hello'); print('there', file=sys.stderr)\n" + RECORDING.replace("LOG", "pass"))
    assert told(tracked, "wandb").error is None
    assert (tracked / "trackers/wandb.log").read_text() == "hello\nthere\n"


def test_a_library_that_prints_without_end_fills_no_disk(tracked: Path, instead: Instead) -> None:
    instead(
        f"print('x' * {3 * process.LOG_BYTES}, flush=True)\n"
        "import time\n"
        f"while os.fstat(1).st_size > {process.LOG_BYTES}:\n"
        "    time.sleep(0.01)\n"
        "raise ValueError('it is short again')"
    )
    following = Following(Place(tracked, "wandb"), "--linger=60")
    following.release()
    while not following.has_ended():
        time.sleep(0.01)
    assert following.answer is not None
    assert following.answer.error == "ValueError: it is short again"
    assert process.LOG_BYTES <= 1 << 20


def test_a_follower_has_no_terminal_no_lock_and_little_priority(
    tracked: Path, instead: Instead
) -> None:
    instead(
        f"place = {str(tracked / 'seen')!r}\n"
        "files = [os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')\n"
        "         if os.path.exists(f'/proc/self/fd/{n}')]\n"
        "import json\n"
        "group = '/proc/self/autogroup'\n"
        "share = open(group).read().split()[-1] if os.path.exists(group) else str(os.nice(0))\n"
        "json.dump([os.getsid(0) == os.getpid(), int(share), files, sys.stdin.read()],\n"
        "          open(place, 'w'))\n"
        "raise ValueError('seen')"
    )
    held = os.open(tracked / "ledger.lock", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(held, True)
    try:
        following = Following(Place(tracked, "wandb"))
        while not following.has_ended():
            time.sleep(0.01)
    finally:
        os.close(held)
    leads, nice, files, said = orjson.loads((tracked / "seen").read_bytes())
    assert (leads, nice, said) == (True, process.NICENESS, "")
    assert not any("ledger" in file for file in files)
    assert not any(re.match(r"/dev/(pts|tty)", file) for file in files)


# Beside a run


def tracking(monkeypatch: pytest.MonkeyPatch, *names: str, patience_seconds: float = 30.0) -> None:
    """Every session that is made tells these."""
    begin = Session.__post_init__

    def made(session: Session) -> None:
        begin(session)
        session._followers = Followers(names, session.say, patience_seconds)

    monkeypatch.setattr(Session, "__post_init__", made)


CLOCKS = {
    *("at", "elapsed_ms", "h", "charged_ms", "seconds", "startup_seconds", "train_seconds"),
    *("cpu_seconds", "peak_memory_bytes", "start_ticks", "ledger", "metrics"),
}
"""What no two runs have alike: the clocks' fields, and what follows from them."""


def without_clocks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_clocks(v) for key, v in value.items() if key not in CLOCKS}
    return list(map(without_clocks, value)) if isinstance(value, list) else value


def said_by(run: Path) -> list[Any]:
    lines = (run / LEDGER).read_bytes().splitlines()
    return [without_clocks(orjson.loads(line)) for line in lines]


@pytest.mark.parametrize(
    "code",
    ["raise ValueError('no')", "os.kill(os.getpid(), signal.SIGKILL)", "time.sleep(3600)"],
    ids=["fails", "dies", "hangs"],
)
def test_a_run_is_the_same_whatever_becomes_of_its_tracker(
    run_search: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    instead: Instead,
    code: str,
) -> None:
    settings = {"noise": 0.01, "dimension": 3}
    alone = run_search(tmp_path / "alone", settings=settings, assumed_seconds=1.0)
    instead(code)
    tracking(monkeypatch, "wandb", patience_seconds=0.5)
    said: list[str] = []
    beside = run_search(
        tmp_path / "beside", settings=settings, assumed_seconds=1.0, say=said.append
    )
    assert said_by(beside.directory) == said_by(alone.directory)
    assert beside.ruling == alone.ruling
    assert verify(beside.directory).divergence is None
    (line,) = [text for text in said if "racker" in text]
    assert line.startswith("Tracker wandb failed: ")


@pytest.mark.needs("tensorboard")
def test_a_run_tells_its_tracker_while_it_goes_on_and_the_calibration_before_it_does_not(
    run_search: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tracking(monkeypatch, "tensorboard")
    said: list[str] = []
    result = run_search(tmp_path, settings={"noise": 0.01, "dimension": 3}, say=said.append)
    told = Place(result.directory, "tensorboard").recall(result.state.genesis)
    assert (told.records, told.is_ended) == (result.state.records, True)
    assert not [text for text in said if "racker" in text]
    assert [path.parent for path in tmp_path.rglob("trackers")] == [result.directory]


@pytest.mark.needs("tensorboard")
def test_a_run_that_is_over_is_told_by_the_same_command(
    run_search: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"noise": 0.01, "dimension": 3}
    result = run_search(tmp_path, settings=settings)
    ledger = (result.directory / LEDGER).read_bytes()
    tracking(monkeypatch, "tensorboard")
    run_search(tmp_path, settings=settings)
    told = Place(result.directory, "tensorboard").recall(result.state.genesis)
    assert told.is_ended
    assert (result.directory / LEDGER).read_bytes() == ledger


@pytest.mark.slow  # kills a run, and waits for its second half
def test_a_run_killed_with_its_follower_beside_it_is_told_whole_by_the_next(cli: Cli) -> None:
    line = (
        *("phase1", "--tier", "min", "--objective", "sphere", "--set", "seconds=0.2"),
        *("--assume-eval-seconds", "1", "--executor", "inline", "--workers", "1"),
        *("--track", "tensorboard"),
    )
    run = cli.cwd / "artifacts/cmaes/phase1/min-sphere-s1"
    first = cli.start(*line)
    while not (run / "trackers/tensorboard.json").exists():
        time.sleep(0.05)
    first.kill()
    first.communicate()
    done = cli.run(*line)
    assert done.returncode == 0, done.stderr
    assert "racker" not in done.stdout
    told = orjson.loads((run / "trackers/tensorboard.json").read_bytes())
    assert told["is_ended"]
    assert told["records"] == len((run / LEDGER).read_bytes().splitlines())
