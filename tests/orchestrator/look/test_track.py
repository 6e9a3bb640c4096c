"""Trackers that follow a run: what they are sent, once; and nothing they do reaches the run."""

import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from budgets.ledger.chain import LEDGER, read
from orchestrator.look.figures import Figures, Reading, Value, summary
from orchestrator.look.run import Run
from orchestrator.look.sinks import Beginning
from orchestrator.look.track import BATCH, Child, Place, TrackerError, Trackers, finish, follow
from orchestrator.records.recorded import load_state
from orchestrator.records.tail import Tail
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from tests.conftest import Command

GOLDEN = REPOSITORY / "tests/golden/runs"
RUNS = sorted(path.name for path in GOLDEN.iterdir())
Instead = Callable[[str], None]


@pytest.fixture(autouse=True)
def _nobodys_account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("WANDB_", "MLFLOW_"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of a whole run, under a name that means something to shells and to URLs."""
    directory = tmp_path / "50%25 of <b>$(x)"
    shutil.copytree(GOLDEN / "go", directory)
    return directory


@pytest.fixture
def instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Instead:
    """`instead(code)`: a `wandb` whose `init` does that."""

    def replaced(code: str) -> None:
        package = tmp_path / "fakes/wandb"
        package.mkdir(parents=True, exist_ok=True)
        indented = "\n".join(f"    {line}" for line in code.strip().splitlines())
        (package / "__init__.py").write_text(
            "import ctypes, json, os, signal, sys, time\n"
            "def Settings(**settings):\n    return settings\n"
            f"def init(**terms):\n{indented}\n"
        )
        places = [str(tmp_path / "fakes"), str(REPOSITORY)]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(places))

    return replaced


def figures_of(directory: Path) -> list[Figures]:
    tail, reading = Tail(directory), Reading()
    found = (reading.figures(tail.state, record) for record in tail.news() if tail.state)
    return [figures for figures in found if figures is not None]


def fed(run: Path, name: str, *options: str) -> Child:
    """A child that has sent what is there."""
    child = Child(Place(run, name), *options)
    finish([child], 120)
    return child


# What is sent


@pytest.mark.parametrize("name", RUNS)
def test_figures_are_the_numbers_of_the_run(name: str) -> None:
    run, found = Run(load_state(GOLDEN / name), datetime.now(UTC)), figures_of(GOLDEN / name)
    last: dict[str, float] = {}
    for figures in found:
        assert all(map(math.isfinite, figures.values.values()))
        last |= figures.values
    assert not [one for one in last for other in last if other.startswith(f"{one}/")]
    assert [figures.step for figures in found] == sorted(figures.step for figures in found)
    assert found[-1].step == run.counts.settled
    ended = {k.removeprefix("status/"): v for k, v in last.items() if k.startswith("status/")}
    assert {k: v for k, v in ended.items() if v and k not in ("lost", "cancelled", "again")} == {
        **({"ok": run.counts.ok} if run.counts.ok else {}),
        **run.counts.failed,
    }
    for balance in run.balances:
        if balance.counts and run.decision == "done":
            key = balance.currency.replace(" ", "_").replace("-", "_")
            assert last[f"budget/spent/{key}"] == pytest.approx(balance.spent, rel=0.2)
    told = [one for one in run.generations if one.is_told]
    sent = [figures.values for figures in found if "generation/number" in figures.values]
    assert len(sent) == len(told)
    for row, values in zip(told, sent, strict=True):
        place = "short" if row.is_short else "generation"
        named = {f"{place}/best": row.best, f"{place}/mean": row.mean, f"{place}/sd": row.sd}
        named |= {"generation/best_so_far": row.best_so_far}
        named |= {"baseline/best_by_luck": row.luck_so_far}
        band = run.noise_band or (None, None)
        named |= {"baseline/noise_low": band[0], "baseline/noise_high": band[1]}
        for key, value in named.items():
            assert values.get(key) == value
    said = summary(run, {})
    assert said["decision"] == run.decision
    assert said["ledger/head"] == run.state.head


@dataclass
class Notebook:
    """A sink that can be continued, keeps what it is sent, and dies at a batch."""

    dies_at: int | None = None
    sent: list[Figures] = field(default_factory=list)
    batches: int = 0
    summaries: list[tuple[Mapping[str, Value], bool]] = field(default_factory=list)

    def begin(self, run: Beginning) -> int:
        self.sent = [figures for figures in self.sent if figures.step < run.sent]
        return run.sent

    def log(self, batch: Sequence[Figures]) -> None:
        assert len(batch) <= BATCH
        self.sent += batch
        self.batches += 1
        if self.batches == self.dies_at:
            raise KeyboardInterrupt  # before it is remembered

    def end(self, summary: Mapping[str, Value], *, is_over: bool) -> None:
        self.summaries.append((summary, is_over))


@pytest.mark.parametrize("dies_at", [1, 2, 3])
def test_a_killed_follower_is_followed_by_one_that_sends_no_figure_twice(
    run: Path, monkeypatch: pytest.MonkeyPatch, dies_at: int
) -> None:
    monkeypatch.setattr("orchestrator.look.track.BATCH", 20)
    place, sink = Place(run, "wandb"), Notebook(dies_at)
    with pytest.raises(KeyboardInterrupt):
        follow(place, lambda _: True, make=lambda _: sink)
    follow(place, lambda _: True, make=lambda _: sink)
    follow(place, lambda _: True, make=lambda _: sink)  # nothing is new
    assert [(one.record, one.values) for one in sink.sent] == [
        (one.record, one.values) for one in figures_of(run)
    ]
    assert [is_over for _, is_over in sink.summaries] == [True]


def test_a_growing_run_is_followed_until_it_is_over(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.look.track.goes_on", lambda state, now: True)
    lines = (run / LEDGER).read_bytes().splitlines(keepends=True)
    growing = tmp_path / "growing"
    growing.mkdir()
    waits = iter(lines)

    def released(_: float) -> bool:
        with (growing / LEDGER).open("ab") as file:
            file.writelines(line for _, line in zip(range(7), waits, strict=False))
        return False

    sink = Notebook()
    (growing / LEDGER).write_bytes(next(waits))
    follow(Place(growing, "wandb"), released, watch=True, make=lambda _: sink)
    assert [one.values for one in sink.sent] == [one.values for one in figures_of(run)]


# Real libraries, in their own processes


@pytest.mark.needs("tensorboard")
def test_tensorboard_shows_each_figure_once(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = (run / LEDGER).read_bytes()
    (run / LEDGER).write_bytes(b"".join(whole.splitlines(keepends=True)[:200]))
    assert fed(run, "tensorboard").error is None
    (run / LEDGER).write_bytes(whole)
    assert fed(run, "tensorboard").error is None
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    shown = EventAccumulator(str(Place(run, "tensorboard").files), {"scalars": 0, "tensors": 0})
    shown.Reload()
    last = {
        (name, figures.step): value
        for figures in figures_of(run)
        for name, value in figures.values.items()
    }
    for name in {name for name, _ in last}:
        scalars = {scalar.step: scalar.value for scalar in shown.Scalars(name)}
        assert scalars == {
            step: pytest.approx(value, rel=1e-6)
            for (own, step), value in last.items()
            if own == name
        }
    assert {"plan/text_summary", "summary/text_summary"} <= set(shown.Tags()["tensors"])


@pytest.mark.needs("mlflow")
def test_an_mlflow_store_has_each_figure_once(tmp_path: Path) -> None:
    run = tmp_path / "smoke"
    shutil.copytree(GOLDEN / "smoke", run)
    whole = (run / LEDGER).read_bytes()
    (run / LEDGER).write_bytes(b"".join(whole.splitlines(keepends=True)[:20]))
    assert fed(run, "mlflow").error is None
    (run / LEDGER).write_bytes(whole)
    assert fed(run, "mlflow").error is None
    (store,) = Place(run, "mlflow").files.glob("*/*/metrics")
    for name in ("score", "generation/best_so_far", "status/ok"):
        rows = [line.split() for line in (store / name).read_text().splitlines()]
        expected = [(f.values[name], f.step) for f in figures_of(run) if name in f.values]
        assert [(float(value), int(step)) for _, value, step in rows] == expected
    assert (store.parent / "tags/ledger/head").read_text() == load_state(run).head


RECORDING = """
class Run:
    summary = {}
    def log(self, values, step=None, commit=None):
        with open(FILE, 'a') as file:
            file.write(json.dumps([step, values]) + '\\n')
    def finish(self, exit_code):
        print('finished', exit_code)
open(FILE, 'w').close()
return Run()
"""


def test_wandb_is_written_anew_and_whole(run: Path, instead: Instead, tmp_path: Path) -> None:
    """An offline run cannot be continued."""
    instead(RECORDING.replace("FILE", repr(str(tmp_path / "calls"))))
    whole = (run / LEDGER).read_bytes()
    (run / LEDGER).write_bytes(b"".join(whole.splitlines(keepends=True)[:200]))
    for data in (whole[:0], whole):
        (run / LEDGER).write_bytes(data or (run / LEDGER).read_bytes())
        assert fed(run, "wandb").error is None
    calls = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    sent = [(step, {k: v for k, v in values.items() if k != "_timestamp"})
            for step, values in calls if values]  # fmt: skip
    assert sent == [(one.step, dict(one.values)) for one in figures_of(run)]
    assert "finished 0" in Place(run, "wandb").log.read_text()


# What a library does, and what is said of it

BREAKS = {
    "an error": (
        "raise ValueError('no account for key sk-aaaabbbbccccddddeeeeffff')",
        "no account",
    ),
    "an exit": ("sys.exit('unhappy')", "SystemExit: unhappy"),
    "a kill": ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    "a crash": ("ctypes.string_at(0)", "SIGSEGV"),
    "a question": ("input('Password: ')", "EOFError"),
    "a question to the terminal": ("open('/dev/tty')", "No such device"),
}
HANGS = {
    "in a call": "time.sleep(3600)",
    "in a call that lets nothing else run": "ctypes.PyDLL(None).sleep(3600)",
}


@pytest.mark.parametrize("code", list(BREAKS), ids=str)
def test_a_failure_is_said_once_in_a_line(run: Path, instead: Instead, code: str) -> None:
    instead(BREAKS[code][0])
    said: list[str] = []
    with Trackers(["wandb"], said.append) as trackers:
        trackers.begin(run)
    trackers.look()
    (line,) = said
    assert BREAKS[code][1] in line
    assert "\n" not in line
    assert "sk-aaaa" not in line


@pytest.mark.parametrize("code", list(HANGS), ids=str)
def test_a_library_that_hangs_is_killed_after_a_bounded_time(
    run: Path, instead: Instead, code: str
) -> None:
    instead(f"open({str(run / 'there')!r}, 'w').close()\n{HANGS[code]}")
    said: list[str] = []
    with Trackers(["wandb"], said.append, patience_seconds=0.5) as trackers:
        trackers.begin(run)
        while not (run / "there").exists():
            trackers.look()
            assert not said
            time.sleep(0.01)
        began = time.monotonic()
    assert time.monotonic() - began < 10
    assert len(said) == 1


def test_a_place_that_cannot_be_written_is_said(run: Path) -> None:
    (run / "trackers").write_text("a file")
    said: list[str] = []
    with Trackers(["wandb"], said.append) as trackers:
        trackers.begin(run)
    assert len(said) == 1


def test_a_child_has_no_terminal_little_priority_and_dies_with_its_parent(
    run: Path, instead: Instead
) -> None:
    seen = run / "seen"
    instead(
        "files = [os.readlink(f'/proc/self/fd/{n}') for n in (0, 1, 2)]\n"
        "share = os.nice(0)\n"
        f"with open({str(seen)!r}, 'w') as file:\n"
        "    json.dump([os.getpid(), os.getsid(0), share, files], file)\n"
        "time.sleep(3600)"
    )
    code = (
        "import sys, time; from pathlib import Path\n"
        "from orchestrator.look.track import Child, Place\n"
        "child = Child(Place(Path(sys.argv[1]), 'wandb'), '--watch'); time.sleep(3600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(run)])
    try:
        while not (seen.exists() and seen.read_text().endswith("]]")):
            assert parent.poll() is None
            time.sleep(0.01)
    finally:
        parent.kill()
        parent.wait()
    pid, session, niceness, files = json.loads(seen.read_text())
    log = str(Place(run, "wandb").log)
    assert (session, niceness) == (pid, min(19, os.nice(0) + 10))
    assert files == ["/dev/null", log, log]
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_library_that_fails_raises_what_is_no_mistake_of_a_person(run: Path) -> None:
    def make(_: str) -> Notebook:
        raise OSError(28, "No space left on device")

    with pytest.raises(TrackerError, match="No space left"):
        follow(Place(run, "wandb"), lambda _: True, make=make)


# Beside a run

SPHERE = (
    *("phase1", "--tier", "min", "--objective", "sphere", "--set", "dimension=2"),
    *("--assume-eval-seconds", "1", "--executor", "inline", "--workers", "1"),
)
OWN = "artifacts/cmaes/phase1/min-sphere-s1"


@pytest.mark.needs("wandb")
def test_a_run_is_the_same_with_a_tracker_that_fails(
    command: "Command", tmp_path: Path, instead: Instead
) -> None:
    alone = command(*SPHERE, "--runs-dir", str(tmp_path / "alone"))
    instead("raise ValueError('no')")
    beside = command(*SPHERE, "--track", "wandb")
    assert beside.code == alone.code == 0
    assert beside.err.count("ValueError: no") + beside.out.count("ValueError: no") == 1
    scores = [
        [getattr(record.event, "score", None) for record in read(own / LEDGER).records]
        for own in (tmp_path / "alone/phase1/min-sphere-s1", tmp_path / OWN)
    ]
    assert scores[0] == scores[1]


@pytest.mark.needs("tensorboard")
def test_a_run_that_is_over_is_sent_by_the_same_command(command: "Command", tmp_path: Path) -> None:
    assert command(*SPHERE).code == 0
    assert not (tmp_path / OWN / "trackers").exists()
    ledger = (tmp_path / OWN / LEDGER).read_bytes()
    assert command(*SPHERE, "--track", "tensorboard").code == 0
    state = load_state(tmp_path / OWN)
    sent = Place(tmp_path / OWN, "tensorboard").recall(state.genesis)
    assert (sent.records, sent.is_ended) == (state.records, True)
    assert (tmp_path / OWN / LEDGER).read_bytes() == ledger


@pytest.mark.needs("tensorboard")
def test_track_names_each_tracker_and_leaves_one_that_is_fed_alone(
    command: "Command", run: Path, instead: Instead
) -> None:
    instead("raise ValueError('no account')")
    found = command("track", str(run), "--to", "wandb", "--to", "tensorboard", "--json")
    document = json.loads(found.out)["trackers"]
    assert found.code == 8
    assert "no account" in document["wandb"]["error"]
    assert (document["tensorboard"]["error"], document["tensorboard"]["records"]) == (None, 370)
    with Place(run, "tensorboard").lock():
        assert command("track", str(run), "--to", "tensorboard").code == 8


@pytest.mark.parametrize("arguments", [(), ("--to", "tb"), ("--to", "mlflow", "--rebuild")])
def test_what_cannot_be_meant_is_refused(
    command: "Command", run: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    assert command("track", str(run), *arguments).code == 2
    assert not (run / "trackers").exists()


def test_a_missing_library_is_refused_before_anything_starts(
    command: "Command", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.look.track.is_installed", lambda name: False)
    answer = command(*SPHERE, "--track", "mlflow")
    assert answer.code == 2
    assert "pip install 'cmaes-orchestrator[mlflow]'" in answer.err
    assert not (tmp_path / "artifacts").exists()
