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

import orjson
import pytest

from budgets.plain import shell_word
from objectives import registry
from objectives.analytic import AnalyticObjective
from objectives.api import CommandLine, Context, Knobs
from objectives.programs.environment import cleaned
from orchestrator.dry_run.start import PLACE, dry_run, imagined, knobs_given
from orchestrator.dry_run.text import as_dict, to_lines
from orchestrator.execution.devices import Offer

if TYPE_CHECKING:
    from tests.conftest import Command

HOSTILE = (
    *("; rm -rf /", "$(touch x)", "`id`", "a\nb", "<script>", "=cmd()", "", "--", "'", '"', "\\"),
    *("\x1b[2J", "\x7f", "\u202etxt", "tab\there", "ünï", "\r", "*", "~", "%s", "{0}", "-n"),
)

SPHERE = ("--objective", "sphere", "--set", "dimension=2")


@dataclass(frozen=True)
class Program:
    """An objective that is a program with these arguments."""

    argv: tuple[str, ...]
    given: Mapping[str, str] = field(default_factory=dict)
    like: AnalyticObjective = field(
        default_factory=lambda: AnalyticObjective.from_settings("sphere", {"dimension": 2})
    )

    def command_line(self, knobs: Knobs, seed: int, context: Context) -> CommandLine:
        words = tuple(f"{name}={value}" for name, value in knobs.items())
        return CommandLine(
            (*self.argv, *words, str(seed)), context.directory, cleaned((), self.given)
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.like, name)


def shown(program: Program, seed: int = 7, device: str = "cpu") -> str:
    found = dry_run(program, {"x0": 0.25}, seed, imagined(Path("runs"), device, 3))
    return "\n".join(to_lines(found))


def test_what_would_be_started_is_told_to_the_letter() -> None:
    found = dry_run(
        Program(("python", "train.py")),
        {"x0": 0.25},
        7,
        imagined(Path("/runs"), "cpu", 3),
    )

    document = as_dict(found)

    assert document["program"]["argv"] == ("python", "train.py", "x0=0.25", "x1=0.0", "7")
    assert document["program"]["shell"] == "python train.py x0=0.25 x1=0.0 7"
    assert document["program"]["directory"] == f"/runs/{PLACE}"
    assert document["knobs"] == [
        {"name": "x0", "value": 0.25, "source": "--knobs"},
        {"name": "x1", "value": 0.0, "source": "baseline"},
    ]
    assert (document["seed"], document["device"], document["threads"]) == (7, "cpu", 3)


def test_the_environment_is_an_evaluations_and_what_is_set_for_it_is_marked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("LANG", "C")
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    monkeypatch.setenv("WORLD_SIZE", "8")
    before = dict(os.environ)
    program = Program(("python",), {"LANG": "de", "HOME": "/home/me"})

    found = dry_run(program, {}, 7, imagined(Path("runs"), "cpu", 3)).program

    assert found is not None
    assert found.environment["OMP_NUM_THREADS"] == "3"
    assert found.environment["CUDA_VISIBLE_DEVICES"] == ""
    assert "WORLD_SIZE" not in found.environment
    assert {"LANG", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"} <= set(found.ours)
    assert {"HOME", "PATH"}.isdisjoint(found.ours)
    assert dict(os.environ) == before


def test_secrets_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "hunter22")
    program = Program(("python", "--key", "hunter22"), {"MY_API_KEY": "hunter22", "A": "hunter22"})

    text = shown(program)

    assert "hunter22" not in text
    assert "MY_API_KEY='***'" in text


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


def test_hostile_text_is_shown_in_one_line() -> None:
    text = shown(Program(HOSTILE, {"BAD": "\x1b[2J\n"}))

    assert all(line.isprintable() for line in text.split("\n"))
    argv = next(line for line in text.split("\n") if line.startswith("argv"))
    assert json.loads(argv.removeprefix("argv"))[: len(HOSTILE)] == list(HOSTILE)
    in_a_shell = next(line for line in text.split("\n") if line.startswith("in a shell"))
    assert "$'a\\nb'" in in_a_shell
    assert shlex.quote("; rm -rf /") in in_a_shell


def test_a_device_that_is_not_here_can_be_imagined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.dry_run.start.visible_gpus", list)

    text = shown(Program(("python",)), device="cuda")

    assert "on cuda, 3 threads" in text
    assert "+ CUDA_VISIBLE_DEVICES=0" in text


@pytest.mark.parametrize(
    ("device", "gpus", "found"), [("auto", 0, "cpu"), ("auto", 2, "cuda"), ("cpu", 2, "cpu")]
)
def test_the_device_is_the_one_that_a_run_would_use(device: str, gpus: int, found: str) -> None:
    place = imagined(Path("runs"), device, None, Offer(8, "some", gpus))

    assert (place.device, place.threads) == (found, 4 if found == "cuda" else 1)


def test_an_objective_without_a_program_says_so(command: "Command") -> None:
    answer = command("dry-run", *SPHERE, "--knobs", "x1=0.5", "--evaluation-seed", "9")

    assert answer.code == 0, answer.err
    assert "It starts no program" in answer.out
    assert "x1  0.5                      --knobs" in answer.out
    assert "x0  0.0                      baseline" in answer.out
    assert "seed 9, on cpu, 1 thread\n" in answer.out


def test_everything_is_in_the_document_too(command: "Command", tmp_path: Path) -> None:
    answer = command("dry-run", *SPHERE, "--device", "cpu", "--set", "backend.threads=2", "--json")

    document = orjson.loads(answer.out)
    assert document["program"] is None
    assert document["score"] is None
    assert document["knobs"][0] == {"name": "x0", "value": 0.0, "source": "baseline"}
    assert (document["objective"], document["threads"]) == ("sphere", 2)
    assert not list(tmp_path.iterdir())


def test_a_budget_is_told(command: "Command") -> None:
    answer = command("dry-run", "--set", "target_flops=5e9", "--set", "space=shape")

    assert "  target_flops 5000000000.0\n" in answer.out
    assert "as arguments: --set n_layer=2 --set n_embd=32" in answer.out


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ("x0", "--knobs: expected NAME=VALUE,NAME=VALUE, got 'x0'"),
        ("x0=0.1,", "--knobs: expected NAME=VALUE"),
        ("=1", "--knobs: expected NAME=VALUE"),
        ("x7=1", "--knobs: unknown knob 'x7'"),
        ("x0=0.1,x0=0.2", "--knobs: x0 is given twice"),
        ("x0=much", "--knobs: x0: expected a number, got 'much'"),
        ("x0=nan", "--knobs: x0: expected a number, got nan"),
        ("x0=7", "--knobs: x0: expected -1 to 1, got 7"),
    ],
)
def test_wrong_knobs_are_refused_by_name(knobs: str, said: str, command: "Command") -> None:
    answer = command("dry-run", *SPHERE, "--knobs", knobs)

    assert answer.code == 2
    assert answer.err.startswith(f"error: {said}")


def test_knobs_are_read_in_their_own_units() -> None:
    space = registry.load(AnalyticObjective.from_settings("sphere", {}).spec).space

    assert knobs_given(" x0 = 0.5 , x3=-1e-1 ", space) == {"x0": 0.5, "x3": -0.1}
    assert knobs_given(None, space) == {}


@pytest.mark.parametrize(
    ("argv", "missing"),
    [
        (["python3", "nope.py"], "there is no nope.py in "),
        (["pyhton3", "train.py"], "there is no program 'pyhton3' that can be started"),
    ],
)
def test_a_program_that_is_not_there_is_no_start(
    argv: list[str], missing: str, command: "Command", tmp_path: Path
) -> None:
    (tmp_path / "train.py").touch()
    knob = "{ min = 0.0, max = 1.0, baseline = 0.5 }"
    settings = f"[training]\nargv = {json.dumps(argv)}\nscore = 'loss'\nknobs.lr = {knob}\n"
    (tmp_path / "my.toml").write_text(f"objective = 'command'\n{settings}")

    text, document = (command("dry-run", "my.toml", *more) for more in ((), ("--json",)))
    search = command("phase1", "my.toml", "--tier", "min", "--executor", "inline")

    assert (text.code, document.code, search.code) == (2, 2, 2)
    assert f"It cannot start: {missing}" in text.out
    assert orjson.loads(document.out)["missing"].startswith(missing)
    assert missing in search.err
    assert "seeds first" not in search.out + search.err
