"""Small real programs as objectives: what is refused, what arrives, what counts as a score."""

import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from objectives.api import (
    Context,
    DivergedError,
    Measurement,
    NoScoreError,
    ObjectiveError,
    ObjectiveSpec,
    OutOfMemoryError,
    ProgramFailedError,
    SetupError,
)
from objectives.command import CommandObjective
from objectives.registry import load

PYTHON = (sys.executable, "-I", "-S", "-c")
"""A Python that starts in 20 ms."""

LR = {"kind": "log10", "min": 1e-4, "max": 0.1, "baseline": 0.003}
SAY_ONE = "print('score: 1')"
IN_FILE = {"file": "result.json", "key": "eval.loss"}

Make = Callable[..., CommandObjective]
Measure = Callable[..., Measurement]


@pytest.fixture
def make(place: Path) -> Make:
    """An objective that runs `program`, or `argv`, with one knob `lr` unless others are given."""

    def objective(program: str = SAY_ONE, **settings: Any) -> CommandObjective:
        usual: dict[str, Any] = {"argv": [*PYTHON, program], "directory": str(place)}
        usual |= {"knobs": {"lr": LR}, "score": "score"}
        return CommandObjective.from_settings("command", {**usual, **settings})

    return objective


@pytest.fixture
def beats() -> list[Mapping[str, float]]:
    return []


@pytest.fixture
def context(tmp_path: Path, beats: list[Mapping[str, float]]) -> Context:
    directory = tmp_path / "evaluation"
    directory.mkdir()
    return Context(directory, "cpu", 1, beats.append, "this-attempt")


@pytest.fixture
def measure(make: Make, context: Context) -> Measure:
    """Makes the objective and evaluates its baseline on seed 7."""

    def evaluate(program: str = SAY_ONE, **settings: Any) -> Measurement:
        objective = make(program, **settings)
        knobs = {knob.name: knob.baseline for knob in objective.space.knobs}
        return objective.evaluate(knobs, 7, context)

    return evaluate


# Settings


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"argv": []}, "argv"),
    ({"argv": "python train.py"}, "expected a list"),
    ({"argv": ["train", "{lr"]}, "expected '}'"),
    ({"argv": ["train", "{budget}"]}, "budget"),
    ({"knobs": {"seed": LR}}, "seed={OTHER}"),
    ({"fixed": {"lr": 1}}, "lr: something else"),
    ({"send": "argv"}, "does not reach"),
    ({"score": {"pattern": "loss"}}, "one group"),
    ({"failures": {"[": "nan"}}, "regular expression"),
    ({"score": {"file": "../result.json", "key": "a"}, "send": "json"}, "own directory"),
    ({"environment": {"HF_TOKEN": "swordfish"}}, "pass_environment"),
    ({"argv": ["train", "https://me:swordfish@host/x"]}, "user name or a password"),
]


@pytest.mark.parametrize(("settings", "word"), REFUSED)
def test_what_cannot_be_meant_is_refused_in_one_line(settings: dict[str, Any], word: str) -> None:
    usual = {"argv": ["train"], "knobs": {"lr": LR}, "score": "loss", "code": {}}
    with pytest.raises(ValueError, match="command") as raised:
        load(ObjectiveSpec(name="command", settings={**usual, **settings}))
    message = str(raised.value)
    assert word in message
    assert "\n" not in message
    assert "swordfish" not in message


# What arrives

HOSTILE = (
    *("; rm -rf victim #", "$(rm -rf victim)`rm -rf victim`", "$HOME ${HOME}", "one\ntwo\r\n"),
    *("'\"\\", "läßt \U0001f9e8 \u202e", "--help", "", "  a  b\t", "*? [a-z] ~ {a,b}"),
    *("\x1b[31mred\x07", "{lr} {{seed}}", "../../etc", "a=b=c"),
)
DUMP = """
import json, os, sys
json.dump([sys.argv[1:], dict(os.environ)], open(os.environ["SEEN"], "w"))
print("score: 1")
"""


def test_hostile_text_arrives_as_it_is_and_secrets_stay_behind(
    make: Make,
    context: Context,
    tmp_path: Path,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (place / "victim").mkdir()
    for name in ("MY_TOKEN", "WORLD_SIZE", "GIVEN"):
        monkeypatch.setenv(name, f"the {name}")
    fixed = {f"w{number}": text for number, text in enumerate(HOSTILE)}
    placed = [f"{{{name}}}" for name in fixed]
    literal = [text.replace("{", "{{").replace("}", "}}") for text in (DUMP, *HOSTILE)]
    variables = {"SEEN": str(tmp_path / "seen.json"), "SEED": "{seed}"}
    more: dict[str, Any] = {"environment": variables, "pass_environment": ["GIVEN"]}
    argv = [*PYTHON, *literal, *placed]
    make(argv=argv, fixed=fixed, send="flags", **more).evaluate({"lr": 0.01}, 1, context)
    arguments, environment = json.loads((tmp_path / "seen.json").read_text())
    assert arguments == [*HOSTILE, *HOSTILE, "--lr=0.01"]
    assert (place / "victim").exists()
    assert environment["SEED"] == "1"
    assert environment["GIVEN"] == "the GIVEN"
    assert environment["ATTEMPT_ID"] == "this-attempt"
    assert not {"WORLD_SIZE", "MY_TOKEN"} & environment.keys()


# What counts as a result

MIXED = "print('---\\nval_bpb: 0.9979\\nnum_steps: 1,953\\npeak_mb=45060.2\\nflops: 3e10')"


def test_a_block_gives_score_and_measures(
    measure: Measure, beats: list[Mapping[str, float]]
) -> None:
    measures = {"steps": "num_steps", "train_flops": "flops", "memory": "peak_mb"}
    found = measure(MIXED, score="val_bpb", measures=measures)
    assert (found.score, found.steps, found.tokens) == (0.9979, 1953, 0)
    assert (found.train_flops, found.eval_flops) == (3e10, 0.0)
    assert found.metrics == {"memory": 45060.2}
    assert beats[-1]["score"] == 0.9979
    assert 0 < found.train_seconds < 60


SCORES: list[tuple[str, Any, float]] = [
    ("for n in range(5): print('epoch', n, 'loss', 1 / (n + 1), 'next')", "loss (\\S+)", 0.2),
    ("print('score: 1\\nscore = 2')", "", 2.0),
    ("print('score: nan')", "", math.nan),
    ("print('score: -inf')", "", -math.inf),
    ("print('CUDA out of memory, halving the batch\\nscore: 2')", "", 2.0),
]


@pytest.mark.parametrize(("program", "pattern", "expected"), SCORES)
def test_the_score_is_what_was_said_last(
    program: str, pattern: str, expected: float, measure: Measure
) -> None:
    score = {"pattern": pattern} if pattern else "score"
    assert measure(program, score=score).score == pytest.approx(expected, nan_ok=True)


FAILS: list[tuple[str, dict[str, Any], type[ObjectiveError], str]] = [
    ("print('bye\\n')", {}, NoScoreError, "'bye'"),
    ("print('INFO epoch 3 score: 0.5')", {}, NoScoreError, "inside another line"),
    ("print('score: 0.5\\nscore: 0.4 (best)')", {}, NoScoreError, "0.4 (best)"),
    ("print('score: 1,5\\nbye')", {}, NoScoreError, "'1,5'"),
    ("print('score: 1')", {"measures": {"steps": "n"}}, NoScoreError, "no steps"),
    ("print('score: 1\\nn: 0.5')", {"measures": {"steps": "n"}}, NoScoreError, "0.5"),
    ("print('score: 1\\nn: nan')", {"measures": {"x": "n"}}, NoScoreError, "metrics.x"),
    ("import os; print('score: 1', flush=True); os._exit(3)", {}, ProgramFailedError, "status 3"),
    ("import os; os.kill(os.getpid(), 9)", {}, ProgramFailedError, "killed by signal 9"),
    ("raise MemoryError", {}, OutOfMemoryError, "MemoryError"),
    ("print('loss: nan')", {"failures": {"loss: nan": "nan"}}, DivergedError, "loss: nan"),
    ("pass", {"argv": ["./missing"]}, SetupError, "./missing"),
]


@pytest.mark.parametrize(("program", "settings", "error", "word"), FAILS)
def test_every_other_end_says_why(
    program: str, settings: dict[str, Any], error: type[ObjectiveError], word: str, measure: Measure
) -> None:
    with pytest.raises(error) as raised:
        measure(program, **settings)
    assert word in str(raised.value).splitlines()[0]


FILES: list[tuple[str, float | str]] = [
    ('{"eval": {"loss": 0.25}}', 0.25),
    ('{"eval": {"loss": NaN}}', math.nan),
    ('{"eval": {"accuracy": 1}}', "eval.loss"),
    ('{"eval": {"loss": "0.5"}}', "expected a number"),
    (f'{{"eval": {{"loss": 1{"0" * 400}}}}}', math.inf),
    ("[" * 100_000, "cannot be read"),
    (" " * 1_000_001, "1000000 bytes"),
]


@pytest.mark.parametrize(("text", "expected"), FILES, ids=range(len(FILES)))
def test_a_result_file_is_read_with_suspicion(
    text: str, expected: float | str, measure: Measure, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text(text)
    copy = "import sys; open(sys.argv[2], 'w').write(open(sys.argv[1]).read())"
    argv = [*PYTHON, copy, str(tmp_path / "text"), "{directory}/result.json"]
    if isinstance(expected, float):
        found = measure(argv=argv, score=IN_FILE).score
        assert found == pytest.approx(expected, nan_ok=True)
        return
    with pytest.raises(NoScoreError) as raised:
        measure(argv=argv, score=IN_FILE)
    assert expected in str(raised.value).splitlines()[0]


@pytest.mark.parametrize("made", ["link", "pipe", "folder"])
def test_a_result_that_the_evaluation_did_not_write_is_refused(
    made: str, measure: Measure, tmp_path: Path
) -> None:
    old = tmp_path / "old.json"
    old.write_text('{"eval": {"loss": 0.1}}')
    command = {"link": f"ln -s {old}", "pipe": "mkfifo", "folder": "mkdir"}
    argv = ["sh", "-c", f"{command[made]} $0", "{directory}/result.json"]
    with pytest.raises(NoScoreError, match=r"result\.json"):
        measure(argv=argv, score=IN_FILE, send="json")


# Before it is started


def test_the_programs_files_are_pinned_and_what_else_lies_there_is_not(
    place: Path, make: Make
) -> None:
    for name in ("train.py", "model.py", "bin/tool", "conf.yaml", "runs/train.py", "extra.json"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("import model\n" if name.endswith(".py") else "one")
    python = [sys.executable, "train.py", "{lr}", "--x=conf.yaml", "x" * 5000]
    objective = make(argv=python, sources=["*.json"])
    assert set(objective.config.code or {}) == {"train.py", "model.py", "extra.json"}
    assert set(make(argv=["bin/tool", "conf.yaml"]).config.code or {}) == {"bin/tool", "conf.yaml"}


def test_what_is_doubtful_is_said_beforehand(make: Make, place: Path) -> None:
    assert len(make(argv=["sh", "-c", "true", "{lr}"]).preflight()) == 2
    (place / "train.sh").write_text("#!/bin/sh\necho score: 1")
    (place / "train.sh").chmod(0o755)
    assert make(argv=["./train.sh"]).preflight() == ()
    for argv in (["no-such-program"], ["./train.py"], [sys.executable, "-O", "train.py"]):
        with pytest.raises(SetupError, match="there is no"):
            make(argv=argv).preflight()


def test_a_command_is_shown_with_its_placeholders_and_formats(make: Make) -> None:
    width = {"kind": "int", "min": 8, "max": 64, "baseline": 16}
    argv = ["sh", "{lr:.2g}", "{n:03d}", "{seed}", "{seed:04d}", "{directory}"]
    own = make(argv=argv, knobs={"lr": LR, "n": width})
    shown = own.arguments({"lr": 0.0123, "n": 20})
    assert shown == ("sh", "0.012", "020", "{seed}", "{seed:04d}", "{directory}")


@pytest.mark.parametrize("text", ["{lr:d}", "{seed!r}", "{lr:{seed}}", "{seed.real}"])
def test_a_placeholder_that_cannot_be_filled_is_refused_when_planned(make: Make, text: str) -> None:
    with pytest.raises(ValueError, match=r"placeholder|fill"):
        make(argv=["sh", "{lr}", text])
