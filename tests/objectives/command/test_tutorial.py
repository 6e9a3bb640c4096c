"""The tutorial's programs and configurations work as they are printed; so does the template."""

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from tests.console import files_of

if TYPE_CHECKING:
    from tests.conftest import Command

TUTORIAL = Path(__file__).parents[3] / "docs/objective_command.md"
SMALL = (
    *(
        "--tier",
        "min",
        "--set",
        "search.population=4",
        "--max-evals",
        "8",
        "--assume-eval-seconds",
        "1",
    ),
    *("--executor", "inline", "--workers", "1"),
)


@pytest.fixture
def tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its files, where `python` is ours."""
    for name, text in files_of(TUTORIAL).items():
        (tmp_path / name).write_text(text)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    return tmp_path


def evaluations(tmp_path: Path) -> list[dict[str, Any]]:
    """Of the one run."""
    found = tmp_path.glob("artifacts/cmaes/phase1/*/eval/*/*/*/summary.json")
    return [orjson.loads(path.read_bytes()) for path in found]


CONFIGURATIONS = ("search.toml", "block.toml", "result.toml")


def test_every_configuration_of_the_tutorial_is_tried() -> None:
    assert {name for name in files_of(TUTORIAL) if name.endswith(".toml")} == set(CONFIGURATIONS)


@pytest.mark.usefixtures("tutorial")
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_search_of_the_tutorial_runs(name: str, command: "Command", tmp_path: Path) -> None:
    answer = command("phase1", name, *SMALL)

    assert answer.code == 0, answer.err
    ended = evaluations(tmp_path)
    assert [one["status"] for one in ended] == ["ok"] * 8
    measured = [one["measurement"] for one in ended]
    if name == "block.toml":
        assert {one["steps"] for one in measured} == {20}
        assert {one["metrics"]["peak_vram_mb"] for one in measured} == {45060.2}
    if name == "result.toml":
        assert {one["train_flops"] for one in measured} == {3e9}


@pytest.mark.usefixtures("tutorial")
def test_the_commands_of_its_first_example_run_as_printed(command: "Command") -> None:
    printed = re.findall(
        r"^python -m orchestrator (\S+) (.*?)  ", TUTORIAL.read_text(), re.MULTILINE
    )
    assert [verb for verb, _ in printed] == ["dry-run", "run"]
    for verb, words in printed:
        small = SMALL[2:] if verb == "run" else ()
        answer = command(verb, *words.split(), *small)
        assert answer.code == 0, answer.err


@pytest.mark.usefixtures("tutorial")
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_dry_run_of_the_tutorial_shows_what_would_be_started(
    name: str, command: "Command", tmp_path: Path
) -> None:
    answer = command("dry-run", name)
    assert answer.code == 0, answer.err
    assert name.replace(".toml", ".py").replace("search", "train") in answer.out
    assert not (tmp_path / "artifacts").exists()


@pytest.mark.usefixtures("tutorial")
def test_a_resume_after_an_edit_is_refused(command: "Command", tmp_path: Path) -> None:
    assert command("phase1", "search.toml", *SMALL).code == 0
    with (tmp_path / "train.py").open("a") as file:
        file.write("# another version\n")

    answer = command("phase1", "search.toml", *SMALL)

    assert answer.code == 2
    assert "holds another plan (recorded -> asked): objective.settings.code: " in answer.err


@pytest.mark.usefixtures("tutorial")
def test_another_program_under_the_same_name_is_refused_in_one_short_line(
    command: "Command", tmp_path: Path
) -> None:
    assert command("phase1", "search.toml", *SMALL, "--run-id", "one").code == 0
    text = (tmp_path / "search.toml").read_text()
    (tmp_path / "search.toml").write_text(text.replace("train.py", "other.py"))
    (tmp_path / "other.py").write_text("print('val_loss: 1')\n")

    answer = command("phase1", "search.toml", *SMALL, "--run-id", "one")

    assert answer.code == 2
    assert answer.err == (
        "error: artifacts/cmaes/phase1/one holds another plan (recorded -> asked): "
        "objective.settings.argv[1]: train.py -> other.py. Repeat the recorded options, or give "
        "the new run its own name with --run-id NAME.\n"
    )
    assert command("phase1", "search.toml", *SMALL, "--run-id", "other").code == 0


def test_the_template_describes_a_search_that_runs(
    command: "Command", tutorial: Path, tmp_path: Path
) -> None:
    text = (tutorial / "train.py").read_text()
    (tutorial / "train.py").write_text(text.replace("momentum", "weight_decay"))
    assert command("init", "--template", "command", "--out", "my.toml").code == 0

    answer = command("run", "my.toml", "--set", "search.tier=min", *SMALL[2:])

    assert answer.code == 0, answer.err
    assert len(evaluations(tmp_path)) == 8


def test_a_factor_of_a_campaign_may_be_fixed_in_each_condition(
    command: "Command", tutorial: Path, tmp_path: Path
) -> None:
    text = (tutorial / "search.toml").read_text()
    fixed = "fixed = { depth = 2, width = 8 }\n"
    campaign = '[campaign]\nseeds = [1]\n[factors]\n"fixed.depth" = [2, 4]\n'
    (tutorial / "depths.toml").write_text(text + fixed + campaign)

    answer = command("run", "depths.toml", *SMALL[6:], "--json")

    assert answer.code == 0, answer.err
    started = (tmp_path / "artifacts/cmaes/campaign/depths").rglob("program.json")
    words = sorted(" ".join(orjson.loads(path.read_bytes())["argv"][-3:-1]) for path in started)
    assert words == ["depth=2 width=8", "depth=4 width=8"]
