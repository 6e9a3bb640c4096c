"""`dry-run`: what one evaluation would start, to the letter, and nothing that starts."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from budgets.formatting import shell_word
from objectives.analytic import AnalyticObjective
from objectives.api import CommandLine, Context, Knobs
from objectives.environment import cleaned
from orchestrator.dry_run import dry_run, imagined, knobs_given, to_lines
from orchestrator.execution.devices import Offer

if TYPE_CHECKING:
    from tests.conftest import Command

HOSTILE = (
    *("; rm -rf /", "$(touch x)", "`id`", "a\nb", "<script>", "=cmd()", "", "--", "'", '"', "\\"),
    *("\x1b[2J", "\x7f", "\u202etxt", "tab\there", "ünï", "\r", "*", "~", "%s", "{0}", "-n"),
)
SPHERE = AnalyticObjective.from_settings("sphere", {"dimension": 2})


@dataclass(frozen=True)
class Program:
    """An objective that is a program with these arguments."""

    argv: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)

    def command_line(self, knobs: Knobs, seed: int, context: Context) -> CommandLine:
        words = tuple(f"{name}={value}" for name, value in knobs.items())
        environment = cleaned((), self.variables)
        return CommandLine((*self.argv, *words, str(seed)), context.directory, environment)

    def __getattr__(self, name: str) -> Any:
        return getattr(SPHERE, name)


def found(program: Any, device: str = "cpu") -> dict[str, Any]:
    return dry_run(program, {"x0": 0.25}, 7, imagined(Path("/runs"), device, 3))


def test_what_would_be_started_is_told_to_the_letter() -> None:
    document = found(Program(("python", "train.py")))
    assert document["program"]["shell"] == "python train.py x0=0.25 x1=0.0 7"
    assert shlex.split(document["program"]["shell"]) == document["program"]["argv"]
    assert Path(document["program"]["directory"]).parent == Path("/runs")
    assert document["knobs"] == [
        {"name": "x0", "value": 0.25, "source": "--knobs"},
        {"name": "x1", "value": 0.0, "source": "baseline"},
    ]
    assert (document["seed"], document["device"], document["threads"]) == (7, "cpu", 3)
    assert "python train.py x0=0.25 x1=0.0 7" in "\n".join(to_lines(document))


def test_the_environment_is_an_evaluations_and_what_is_set_for_it_is_marked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine = {"HOME": "/home/me", "LANG": "C", "OMP_NUM_THREADS": "64", "WORLD_SIZE": "8"}
    for name, value in mine.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    program = found(Program(("python",), {"LANG": "de", "HOME": "/home/me"}))["program"]
    environment = program["environment"]
    assert (environment["OMP_NUM_THREADS"], environment["CUDA_VISIBLE_DEVICES"]) == ("3", "")
    assert "WORLD_SIZE" not in environment
    assert {"LANG", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"} <= set(program["ours"])
    assert {"HOME", "PATH"}.isdisjoint(program["ours"])
    assert dict(os.environ) == before


def test_secrets_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "hunter22")
    variables = {"MY_API_KEY": "hunter22", "A": "hunter22"}
    document = found(Program(("python", "--key", "hunter22"), variables))
    assert "hunter22" not in json.dumps(document)
    assert "MY_API_KEY" in document["program"]["environment"]


@pytest.mark.parametrize("word", HOSTILE)
def test_an_argument_is_one_word_for_a_shell_and_steers_no_terminal(word: str) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    line = shell_word(word)
    heard = subprocess.run(
        [bash, "-c", f"printf '%s' {line}x"],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8"},
    )
    assert line.isprintable()
    assert heard.stdout.decode() == f"{word}x"


@pytest.mark.parametrize(
    ("device", "gpus", "kind"), [("auto", 0, "cpu"), ("auto", 2, "cuda"), ("cpu", 2, "cpu")]
)
def test_the_device_is_the_one_that_a_run_would_use(device: str, gpus: int, kind: str) -> None:
    place = imagined(Path("runs"), device, None, Offer(8, "some", gpus))
    assert (place.device, place.threads) == (kind, 4 if kind == "cuda" else 1)


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        *(("x0", "'x0'"), ("x0=0.1,", "NAME=VALUE"), ("=1", "NAME=VALUE"), ("x7=1", "'x7'")),
        *(("x0=0.1,x0=0.2", "twice"), ("x0=much", "'much'"), ("x0=nan", "nan"), ("x0=7", "-1 to")),
    ],
)
def test_wrong_knobs_are_refused_by_name(knobs: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        knobs_given(knobs, SPHERE.space)


@pytest.mark.parametrize("argv", [["python3", "nope.py"], ["pyhton3", "train.py"]])
def test_a_program_that_is_not_there_is_no_start(
    argv: list[str], command: "Command", tmp_path: Path
) -> None:
    (tmp_path / "train.py").touch()
    knob = "{ min = 0.0, max = 1.0, baseline = 0.5 }"
    settings = f"[training]\nargv = {json.dumps(argv)}\nscore = 'loss'\nknobs.lr = {knob}\n"
    (tmp_path / "my.toml").write_text(f"objective = 'command'\n{settings}")
    answer = command("dry-run", "my.toml", "--json")
    search = command("phase1", "my.toml", "--tier", "min", "--executor", "inline")
    assert (answer.code, search.code) == (2, 2)
    assert json.loads(answer.out)["missing"] in search.err
