"""Evaluations of small real programs, each way to score and each way to fail."""

import math
import os
import platform
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from objectives.api import (
    Context,
    DivergedError,
    Measurement,
    NoScoreError,
    OutOfMemoryError,
    ProgramFailedError,
    SetupError,
)
from objectives.command.objective import CommandObjective
from objectives.command.result import ResultRefusedError

Make = Callable[..., CommandObjective]
Measure = Callable[..., Measurement]

LR = {"kind": "log10", "min": 1e-4, "max": 0.1, "baseline": 0.003}
COPY = "import sys; open(sys.argv[2], 'w').write(open(sys.argv[1]).read())"
IN_FILE = {"file": "result.json", "key": "eval.loss"}


@pytest.fixture
def write(measure: Measure, tmp_path: Path) -> Measure:
    """Evaluates a program that writes such a text as its result."""

    def evaluate(text: str, **settings: Any) -> Measurement:
        (tmp_path / "text").write_text(text)
        copy = (COPY, str(tmp_path / "text"), "{directory}/result.json")
        argv = [sys.executable, "-I", "-S", "-c", *copy]
        return measure(argv=argv, **{"score": IN_FILE, **settings})

    return evaluate


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        ("val_loss", "the last line `val_loss: NUMBER` of its output"),
        (
            {"file": "{directory}/a.json", "key": "x.y"},
            "x.y in a.json, which it writes into the evaluation's directory",
        ),
        ({"pattern": "loss (.*)"}, "the last match of 'loss (.*)' in its output"),
    ],
)
def test_it_tells_how_its_score_is_read(score: Any, expected: str, make: Make) -> None:
    objective = make(score=score, environment={"OUT": "{directory}"})
    assert objective.reading == expected


def test_a_block_gives_score_measures_and_metrics(measure: Measure) -> None:
    program = "print('---\\nval_bpb: 0.9979\\nnum_steps: 953\\npeak_mb=45060.2\\nflops: 3e10')"
    measures = {"steps": "num_steps", "train_flops": "flops"}
    found = measure(program, score="val_bpb", measures=measures)
    assert found.score == 0.9979
    assert (found.steps, found.tokens) == (953, 0)
    assert (found.train_flops, found.eval_flops) == (3e10, 0.0)
    assert found.metrics == {"peak_mb": 45060.2}


def test_a_pattern_gives_the_score_of_its_last_match(measure: Measure) -> None:
    program = "for n in range(5): print('epoch', n, 'loss', 1 / (n + 1), 'next')"
    found = measure(program, score={"pattern": r"loss (\S+)"})
    assert found.score == 0.2
    assert found.metrics == {}


def test_a_file_gives_the_score(write: Measure) -> None:
    found = write(
        '{"eval": {"loss": 0.25}, "n": 12, "attempt_id": "this-attempt", "vram": 3}',
        measures={
            "tokens": {"file": "result.json", "key": "n"},
            "vram": {"file": "result.json", "key": "vram"},
        },
    )
    assert (found.score, found.tokens, found.metrics) == (0.25, 12, {"vram": 3.0})


def test_a_score_on_the_error_stream_counts(measure: Measure) -> None:
    assert measure("import sys; print('score: 3', file=sys.stderr)").score == 3


def test_its_training_took_as_long_as_the_program_unless_it_says_otherwise(
    measure: Measure,
) -> None:
    assert 0 < measure().train_seconds < 60


def test_a_measured_time_goes_before_ours(measure: Measure) -> None:
    program = "print('score: 1\\nseconds: 300.5')"
    assert measure(program, measures={"train_seconds": "seconds"}).train_seconds == 300.5


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_a_score_that_is_no_finite_number_is_measured_as_it_is(text: str, measure: Measure) -> None:
    measures = {"steps": "steps", "same.mode": "mode", "loss": "loss"}
    found = measure(f"print('score: {text}\\nsteps: 3\\nloss: nan')", measures=measures)
    assert not math.isfinite(found.score)
    assert (found.steps, found.metrics) == (3, {})


def test_a_result_of_nan_is_a_score(write: Measure) -> None:
    assert math.isnan(write('{"eval": {"loss": NaN}}').score)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"eval": {"loss": "0.5"}}', r"result\.json: eval\.loss is typed wrongly"),
        ('{"eval": {"loss": 0.5}', r"result\.json cannot be read"),
        ('{"attempt_id": "yours", "eval": {"loss": 0.5}}', "is of another attempt"),
        (" " * 1_000_001, "1000000 bytes at most"),
    ],
)
def test_a_result_that_is_none_is_refused(text: str, expected: str, write: Measure) -> None:
    with pytest.raises(ResultRefusedError, match=expected):
        write(text)


def test_a_result_from_before_is_refused(measure: Measure, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"eval": {"loss": 0.1}}')
    os.utime(tmp_path / "old.json", (1e9, 1e9))
    argv = ["mv", str(tmp_path / "old.json"), "{directory}/result.json"]
    with pytest.raises(ResultRefusedError, match="is older than the evaluation"):
        measure(argv=argv, score=IN_FILE, send="json", sources=[])


def test_a_pattern_that_matches_no_number_is_refused(measure: Measure) -> None:
    with pytest.raises(
        ResultRefusedError, match=r"expected a number where 'loss \(\.\*\)' matched, got 'none'"
    ):
        measure("print('loss none')", score={"pattern": "loss (.*)"})


@pytest.mark.parametrize(
    ("score", "program", "expected"),
    [
        ("loss", "print('bye\\n')", "a line `loss: NUMBER` was not found; its last line was 'bye'"),
        ("loss", "pass", "a line `loss: NUMBER` was not found; it said nothing"),
        ({"pattern": "a(.)"}, "print('b1')", "a line like 'a(.)' was not found"),
        (IN_FILE, "pass", "result.json, which is to be in the evaluation's directory, was not"),
    ],
)
def test_no_score_is_named_with_the_last_words(
    score: Any, program: str, expected: str, measure: Measure
) -> None:
    with pytest.raises(NoScoreError) as raised:
        measure(program, score=score, environment={"OUT": "{directory}"})
    first = str(raised.value).splitlines()[0]
    assert first.startswith("no score: the program exited with 0")
    assert expected in first


def test_a_number_before_the_last_word_is_no_score(measure: Measure) -> None:
    with pytest.raises(ResultRefusedError, match=r"after `score:`.* got '0.4 \(best\)'"):
        measure("print('score: 0.5\\nscore: 0.4 (best)')")


def test_what_stands_in_the_place_of_the_score_is_named(measure: Measure) -> None:
    with pytest.raises(NoScoreError, match="NUMBER` \\(it is '1,5'"):
        measure("print('score: 1,5\\nbye')")


def test_a_missing_key_is_named(write: Measure) -> None:
    with pytest.raises(NoScoreError, match=r"no score: .*eval\.loss in result\.json was not found"):
        write('{"eval": {"accuracy": 1}}')


def test_the_log_repeats_the_last_lines(measure: Measure) -> None:
    with pytest.raises(NoScoreError) as raised:
        measure("for n in range(100): print('line', n)", score="loss")
    said = str(raised.value).splitlines()
    assert said[1:] == ["Its last 30 lines:", *(f"line {n}" for n in range(70, 100))]


@pytest.mark.parametrize(
    ("measures", "expected", "error"),
    [
        ({"steps": "nothing"}, r"no measures\.steps: .*`nothing: NUMBER` was not", NoScoreError),
        ({"steps": "half"}, r"measures\.steps: expected a whole number, got 0\.5", None),
        ({"steps": "huge"}, r"measures\.steps: expected a number of 0 or more, got 1e\+30", None),
        ({"tokens": "minus"}, r"measures\.tokens: expected a number of 0 or more, got -1", None),
        ({"train_flops": "minus"}, r"measures\.train_flops: expected a number of 0", None),
        ({"mine": "none"}, r"measures\.mine: expected a finite number, got nan", None),
    ],
)
def test_a_measure_that_is_none_is_named(
    measures: dict[str, str],
    expected: str,
    error: type[Exception] | None,
    measure: Measure,
) -> None:
    program = "print('score: 1\\nhalf: 0.5\\nhuge: 1e30\\nminus: -1\\nnone: nan')"
    with pytest.raises(error or ResultRefusedError, match=expected):
        measure(program, measures=measures)


def test_a_program_that_fails_is_an_error_whatever_it_scored(measure: Measure) -> None:
    with pytest.raises(ProgramFailedError, match="exited with status 3: score: 1"):
        measure("print('score: 1', flush=True); import os; os._exit(3)")


def test_a_program_that_fails_for_memory_is_out_of_it(measure: Measure) -> None:
    with pytest.raises(OutOfMemoryError, match="exited with status 1: MemoryError"):
        measure("raise MemoryError")


def test_a_program_that_found_more_memory_has_its_score(measure: Measure) -> None:
    assert measure("print('CUDA out of memory, halving the batch\\nscore: 2')").score == 2


@pytest.mark.parametrize(
    ("kind", "error"),
    [("nan", DivergedError), ("oom", OutOfMemoryError), ("error", ProgramFailedError)],
)
def test_a_declared_failure_counts_although_it_exits_with_0(
    kind: str, error: type[Exception], measure: Measure
) -> None:
    with pytest.raises(error):
        measure("print('score: 1\\ntrain loss: nan')", failures={"loss: nan": kind})


def test_a_program_that_diverged_is_ended_at_once(measure: Measure, tmp_path: Path) -> None:
    program = (
        f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "print('loss: nan', flush=True); time.sleep(600)"
    )
    with pytest.raises(DivergedError):
        measure(program, failures={"loss: nan": "nan"})
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_numbers_of_the_block_come_with_heartbeats(
    measure: Measure, beats: list[Mapping[str, float]]
) -> None:
    measure("print('loss: 3\\nloss: 2\\nscore: 1')")
    assert beats[-1] == {"loss": 2.0, "score": 1.0}


def test_what_it_needs_is_looked_at_before_it_is_started(
    measure: Measure, context: Context
) -> None:
    with pytest.raises(SetupError, match="GPU"):
        measure(needs={"gpu": True})
    assert not list(context.directory.iterdir())


def test_changed_sources_are_refused_before_it_is_started(
    make: Make, place: Path, context: Context
) -> None:
    (place / "train.py").write_text("one")
    objective = make()
    (place / "train.py").write_text("two")
    with pytest.raises(
        SetupError, match=r"the sources in .* have changed since the run was planned"
    ):
        objective.evaluate({"lr": 0.1}, 1, context)
    with pytest.raises(SetupError, match="have changed"):
        objective.preflight()
    assert make() != objective
    assert not list(context.directory.iterdir())


def test_a_program_that_is_missing_is_a_mistake_of_setup(measure: Measure) -> None:
    with pytest.raises(SetupError, match="cannot start 'no-such-program'"):
        measure(argv=["no-such-program"])


def test_a_directory_that_is_gone_is_a_mistake_of_setup(
    make: Make, place: Path, context: Context
) -> None:
    objective = make()
    place.rmdir()
    with pytest.raises(SetupError, match="there is no directory"):
        objective.evaluate({"lr": 0.1}, 1, context)
    with pytest.raises(SetupError, match=r"there is no directory .*: mend the setting directory"):
        objective.preflight()


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["no-such-program"], "there is no program 'no-such-program' that can be started in"),
        (["./train.py"], r"there is no program './train.py'.*such as .python."),
        ([sys.executable, "-O", "train.py"], r"there is no train\.py in .*, which argv names"),
    ],
)
def test_what_cannot_be_started_is_refused_beforehand(
    argv: list[str], expected: str, make: Make
) -> None:
    with pytest.raises(SetupError, match=expected):
        make(argv=argv).preflight()


def test_a_program_beside_its_sources_is_found(make: Make, place: Path) -> None:
    (place / "train.sh").write_text("#!/bin/sh\necho score: 1")
    (place / "train.sh").chmod(0o755)
    assert make(argv=["./train.sh"]).preflight() == ()


def test_what_is_doubtful_is_said_beforehand(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_WORD", raising=False)
    objective = make(
        argv=["sh", "-c", "echo score: 1", "{lr}"],
        pass_environment=["MY_WORD"],
    )
    seed, code, word = objective.preflight()
    assert "no seed reaches the program" in seed
    assert "no source file is found" in code
    assert "MY_WORD, which is not set here" in word


def test_nothing_is_doubtful_where_nothing_is(make: Make, place: Path) -> None:
    (place / "train.py").touch()
    assert make(argv=[sys.executable, "train.py", "{seed}"]).preflight() == ()


def test_versions_of_a_python_and_the_commit_are_on_record(make: Make, place: Path) -> None:
    found = make().provenance
    assert found["program_python"] == platform.python_version()
    assert "program_torch" in found
    assert make(argv=["sh", "-c", "true"]).provenance == {}


@pytest.mark.parametrize(
    ("budget", "factor", "expected"),
    [(100, 4.0, 400), (100, 0.25, 25), (10, 0.33, 3), (3e10, 4.0, 1.2e11), (1.5, 0.5, 0.75)],
)
def test_a_rung_scales_the_budget_and_keeps_it_whole(
    budget: float, factor: float, expected: float, make: Make
) -> None:
    variant = make(budget=budget, budget_name="steps").rung(factor)
    assert variant is not None
    assert variant.settings == {"budget": pytest.approx(expected)}
    assert type(variant.settings["budget"]) is type(budget)
    assert variant.length == pytest.approx(expected / budget)


def test_without_a_budget_nothing_can_be_scaled(make: Make) -> None:
    assert make().rung(2.0) is None
    assert make(budget=1, budget_name="steps").rung(0.25) is None
    with pytest.raises(ValueError, match="a rung's factor must be positive"):
        make().rung(0.0)
