"""Text that a shell, a terminal or a spreadsheet would act on is one argument, as it is."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from objectives.api import Context
from objectives.command.objective import CommandObjective

HOSTILE = {
    "command": "; rm -rf victim #",
    "substitution": "$(rm -rf victim)`rm -rf victim`",
    "variable": "$HOME ${HOME} %PATH%",
    "newline": "one\ntwo\r\nthree\n",
    "markup": "<script>alert(1)</script>",
    "formula": "=cmd()|'/c calc'!A0",
    "quotes": "'\"\\'\\\"",
    "unicode": "läßt \U0001f9e8 \u202egnp.exe",
    "option": "--help",
    "dash": "-",
    "empty": "",
    "space": "  a  b\t",
    "glob": "*? [a-z] ~ {a,b}",
    "terminal": "\x1b[31mred\x07",
    "placeholder": "{lr} {{seed}}",
    "path": "../../../etc/passwd",
    "assignment": "a=b=c",
}

DUMP = """
import json, os, sys
json.dump([sys.argv[1:], dict(os.environ), os.getcwd()], open(os.environ["SEEN"], "w"))
print("score: 1")
"""
PYTHON = [sys.executable, "-I", "-S", "-c", DUMP]

Make = Callable[..., CommandObjective]


@pytest.fixture
def dumped(tmp_path: Path, context: Context) -> Callable[[CommandObjective], list[object]]:
    def evaluate(objective: CommandObjective) -> list[object]:
        objective.evaluate({"lr": 0.01}, 1, context)
        found: list[object] = json.loads((tmp_path / "seen.json").read_text())
        return found

    return evaluate


@pytest.fixture
def victim(place: Path) -> Path:
    (place / "victim").mkdir()
    return place / "victim"


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("send", ["argv", "key=value", "flags", "environment"])
def test_hostile_text_arrives_as_one_literal_argument(
    name: str,
    send: str,
    make: Make,
    dumped: Callable[[CommandObjective], list[object]],
    victim: Path,
    tmp_path: Path,
) -> None:
    text = HOSTILE[name]
    placed = ["{lr}", "{word}", "--a={word}"] if send == "argv" else []
    environment = {"SEEN": str(tmp_path / "seen.json")}
    argv = [*PYTHON, *placed, text.replace("{", "{{").replace("}", "}}")]
    if send == "argv":
        environment["GIVEN"] = "{word}"
    objective = make(argv=argv, fixed={"word": text}, send=send, environment=environment, seed="")

    arguments, variables, _ = dumped(objective)

    assert (
        arguments
        == {
            "argv": ["0.01", text, f"--a={text}", text],
            "key=value": [text, "lr=0.01", f"word={text}"],
            "flags": [text, "--lr=0.01", f"--word={text}"],
            "environment": [text],
        }[send]
    )
    assert isinstance(variables, dict)
    assert variables.get({"argv": "GIVEN", "environment": "WORD"}.get(send, ""), text) == text
    assert victim.exists()


@pytest.mark.parametrize("name", [n for n in HOSTILE if "/" not in HOSTILE[n] and HOSTILE[n]])
def test_a_directory_may_have_any_name(
    name: str,
    make: Make,
    context: Context,
    tmp_path: Path,
    dumped: Callable[[CommandObjective], list[object]],
) -> None:
    directory = tmp_path / f"d{HOSTILE[name]}"
    directory.mkdir()
    (directory / "train.py").write_text(DUMP)
    objective = make(
        argv=[sys.executable, "-I", "-S", "train.py"],
        directory=str(directory),
        environment={"SEEN": str(tmp_path / "seen.json")},
    )

    _, _, where = dumped(objective)

    assert where == str(directory.resolve())
