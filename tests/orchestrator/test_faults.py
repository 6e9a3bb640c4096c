"""What objectives, clocks, processors and working directories do, and what becomes of a search."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import inf, nan, nextafter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from budgets.events import Settled, Status
from budgets.ledger import LEDGER, Clock, read
from budgets.plan import SearchTerms
from objectives import registry
from objectives.analytic import AnalyticObjective
from objectives.api import Context, Knobs, Measurement, Objective, ObjectiveSpec
from orchestrator.execution.api import Slots
from orchestrator.execution.engine import Engine
from orchestrator.records.runs import Result
from orchestrator.search import Search
from orchestrator.verify import verify
from tests.ledgers import closed_batch
from tests.orchestrator.rude import misuse

RunSearch = Callable[..., Result]
Answer = Callable[[int, Measurement], Any]
Rude = Callable[[str], Engine]
HERE = Path(__file__).parent
CPU = Slots(2, "cpu", "some processor", 1)


def generations(result: Result) -> list[dict[str, Any]]:
    """All that a search asked, got and learned, without times."""
    return [
        {
            "points": g.points,
            "seeds": g.seeds,
            "results": [(r.candidate, r.seed, r.status, r.score) for r in g.results()],
            "told": g.told,
        }
        for g in result.state.generations
    ]


@dataclass
class Altered:
    """The sphere, with one answer in every eight altered before it is given."""

    alter: Answer
    place: int = 3
    sphere: Objective = field(default_factory=lambda: registry.load(ObjectiveSpec(name="sphere")))
    asked: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sphere, name)

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        measured = self.sphere.evaluate(knobs, seed, context)
        number, self.asked = self.asked, self.asked + 1
        if number % 8 != self.place:
            return measured
        altered: Measurement = self.alter(number, measured)
        return altered


@pytest.fixture
def search_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_search: RunSearch
) -> Callable[[Answer], Result]:
    """A search of tier min in this process whose objective alters one candidate's answer."""

    def run(alter: Answer, name: str = "run", **options: Any) -> Result:
        altered = Altered(alter)
        monkeypatch.setattr(AnalyticObjective, "from_settings", lambda *_: altered)
        return run_search(tmp_path / name, assumed_seconds=1.0, **options)

    return run


SearchWith = Callable[..., Result]


def score(value: Any) -> Answer:
    return lambda number, measured: Measurement(score=value)


def say(value: Any) -> Answer:
    return lambda number, measured: value


def leave(number: int, measured: Measurement) -> Measurement:
    sys.exit(3)


# Answers that are none


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (score(nan), Status.NAN),
        (score(inf), Status.NAN),
        (score(-inf), Status.NAN),
        (score(sys.float_info.max), Status.NAN),
        (score(-1.01e100), Status.NAN),
        (score("0.1"), Status.ERROR),
        (score("nan"), Status.ERROR),
        (score(True), Status.ERROR),
        (score(1 + 2j), Status.ERROR),
        (score(None), Status.ERROR),
        (score([0.1]), Status.ERROR),
        (score(10**400), Status.ERROR),
        (say(None), Status.ERROR),
        (say(0.1), Status.ERROR),
        (lambda n, m: Measurement(score=1, steps=10**30), Status.ERROR),
        (lambda n, m: Measurement(score=1, tokens=-1), Status.ERROR),
        (lambda n, m: Measurement(score=1, train_seconds=nan), Status.ERROR),
        (lambda n, m: Measurement(score=1, train_flops=inf), Status.ERROR),
        (leave, Status.ERROR),
    ],
    ids=[
        "nan", "inf", "-inf", "largest", "too small", "text", "text nan", "truth", "complex",
        "nothing", "list", "huge",
        "no measurement", "a bare number", "huge steps", "negative tokens", "nan seconds",
        "infinite flops", "exit",
    ],
)  # fmt: skip
def test_an_answer_that_is_no_score_is_told_as_the_worst_and_never_as_it_came(
    answer: Answer, status: Status, search_with: SearchWith
) -> None:
    result = search_with(answer)

    assert result.ruling.decision == "done"
    for generation in result.state.generations:
        fitness, scores = generation.fitness(), generation.scores()
        healthy = sorted(s for s in scores if s is not None)
        assert [r.status for r in generation.failed] == [status]
        assert scores[3] is None
        assert len(healthy) == 7
        assert fitness[3] == nextafter(healthy[-1], inf)  # not the median, not what came
        assert fitness[:3] + fitness[4:] == scores[:3] + scores[4:]
    assert verify(result.directory).divergence is None


def test_ties_are_told_in_the_order_of_candidates_whichever_ended_first() -> None:
    terms = SearchTerms(seed=7, sigma0=0.2, start=(0.4,) * 10)

    def told(order: Iterator[int]) -> Any:
        search = Search(terms, 8)
        points = search.ask()
        ends = []
        for candidate in order:
            place: dict[str, Any] = {"generation": 0, "candidate": candidate}
            place |= {"seed": 5, "attempt": 1}
            end = Settled(
                **place, status=Status.OK, score=float(candidate // 4), charged_ms=1, seconds=0.001
            )
            ends.append(end)
        return search.tell(closed_batch(0, points, ends))

    assert told(iter(range(8))) == told(iter(reversed(range(8))))


# A whole generation without an answer


def test_a_generation_that_fails_altogether_is_not_told_and_asked_again_as_it_was(
    tmp_path: Path, run_search: RunSearch
) -> None:
    broken: dict[str, Any] = {"settings": {"failure_rate": 1.0}, "assumed_seconds": 1.0}
    paused = run_search(tmp_path, **broken)
    again = run_search(tmp_path, **broken)
    overridden = run_search(tmp_path, **broken, overrides=[("crash_rate", "look into it")])
    last = run_search(tmp_path, **broken)

    results = (paused, again, overridden, last)
    assert [r.ruling.decision for r in results] == ["pause"] * 4
    assert [r.state.accounts.evaluations for r in results] == [2, 2, 8, 8]  # the rest is not paid
    assert [t.rule for t in last.ruling.triggers] == ["too_few_healthy"]
    for result in results:
        (generation,) = result.state.generations
        assert generation.told is None
        assert generation.points == paused.state.generations[0].points
    assert verify(last.directory).divergence is None


# Clocks


def test_a_wall_clock_that_jumps_changes_no_duration_and_no_charge(
    tmp_path: Path, run_search: RunSearch
) -> None:
    jumps = (timedelta(0), timedelta(hours=-1), timedelta(days=1), timedelta(days=-400))
    calls: list[None] = []

    def now() -> datetime:
        calls.append(None)
        return datetime(2026, 1, 1, tzinfo=UTC) + jumps[len(calls) % len(jumps)]

    slow: dict[str, Any] = {"settings": {"seconds": 0.01}, "assumed_seconds": 1.0}
    result = run_search(tmp_path, **slow, clock=Clock(time.monotonic, now), max_hours=1.0)

    accounts, records = result.state.accounts, read(result.directory / LEDGER).records
    assert len(calls) >= len(records)
    assert result.ruling.decision == "done"
    assert 160 <= accounts.device_ms < 10_000
    assert sum(accounts.sessions_ms) < 60_000
    elapsed = [record.elapsed_ms for record in records]
    assert elapsed == sorted(elapsed)
    assert verify(result.directory).divergence is None


# Objectives that misuse their process

SEARCH = (
    *("phase1", "--tier", "min", "--objective", "ellipsoid", "--executor", "inline"),
    *("--workers", "1", "--assume-eval-seconds", "1"),
)


@pytest.fixture
def undisturbed(tmp_path: Path, run_search: RunSearch) -> list[dict[str, Any]]:
    return generations(run_search(tmp_path / "undisturbed", assumed_seconds=1.0))


def test_what_an_objective_does_to_this_process_changes_no_search_and_is_undone(
    undisturbed: list[dict[str, Any]],
    search_with: SearchWith,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    argv, threads, umask = sys.argv, os.environ.get("OMP_NUM_THREADS"), os.umask(0o022)
    handlers = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]

    def misusing(number: int, measured: Measurement) -> Measurement:
        misuse()
        return measured

    try:
        result = search_with(misusing, name=".")
        assert Path.cwd() == tmp_path
        assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == handlers
    finally:
        sys.argv = argv
        os.umask(umask)
        random.seed()
        np.random.seed()
        monkeypatch.setenv("OMP_NUM_THREADS", threads or "")
    assert generations(result) == undisturbed
    assert verify(result.directory).divergence is None


@pytest.mark.parametrize("entry", ["main", "fork_and_linger"])
def test_what_an_evaluation_does_to_its_own_process_changes_no_search(
    entry: str,
    undisturbed: list[dict[str, Any]],
    run_search: RunSearch,
    rude: Rude,
    tmp_path: Path,
) -> None:
    result = run_search(tmp_path / "rude", engine=rude(entry), assumed_seconds=1.0)

    assert generations(result) == undisturbed
    assert verify(result.directory).divergence is None


# Working directories


def test_what_lies_about_in_the_working_directory_is_ignored_and_nothing_is_added(cli: Any) -> None:
    stray = {
        "cma_signals.in": "{'timeout': 0, 'maxiter': 1}",
        "outcmaes/axlen.dat": "old",
        "numpy.py": "raise SystemExit('imported from the working directory')",
        ".env": "ORCHESTRATOR=1",
        "conftest.py": "",
    }
    for name, text in stray.items():
        (cli.cwd / name).parent.mkdir(exist_ok=True)
        (cli.cwd / name).write_text(text)
    code = (  # as the installed command does: the working directory is not on the path
        "import sys; sys.modules['matplotlib'] = None; sys.path.remove('')\n"
        "from orchestrator.cli.app import main; main()"
    )

    answer = subprocess.run(
        [sys.executable, "-W", "default", "-c", code, *SEARCH],
        cwd=cli.cwd,
        env=cli.environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    files = {str(p.relative_to(cli.cwd)) for p in cli.cwd.rglob("*") if p.is_file()}
    assert {name for name in files if not name.startswith("artifacts/")} == set(stray)
    assert {name: (cli.cwd / name).read_text() for name in stray} == stray
