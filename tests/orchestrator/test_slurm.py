"""`export slurm`: what gets into a script, what a job asks for, what its configuration says."""

import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from orchestrator.config import Slurm, resolve
from orchestrator.slurm import exported, write

if TYPE_CHECKING:
    from tests.conftest import Answer, Command

HOSTILE = (
    *("; rm -rf ~", "$(reboot)", "`reboot`", "a\nb", "a\n#SBATCH --wrap=x", "a\n", "-x"),
    *("--wrap=x", "a b", "a'b", 'a"b', "a\\b", "a#b", "${HOME}", "a\x00b", "a\u202eb", ""),
)

SEARCH = """
objective = "sphere"
search.tier = "min"
backend.workers = 4
[slurm]
time = "1h"
"""
FACTORIAL = """
objective = "sphere"
training.noise = 0.01
campaign = { name = "two-by-two", seeds = [1, 2] }
factors = { dimension = [2, 3], size = { 1B = { seconds = 0.0 }, 3B = { seconds = 0.001 } } }
budget.max_device_hours = 12.0
[slurm]
time = "1h"
"""
RUN = "min-sphere-s1"

Export = Callable[..., "Answer"]


@pytest.fixture
def export(command: "Command", tmp_path: Path) -> Export:
    """Exports a file with this text to `jobs`."""

    def run(text: str, *more: str) -> "Answer":
        (tmp_path / "file.toml").write_text(text)
        return command("export", "slurm", "file.toml", "--out", "jobs", *more)

    return run


@pytest.fixture
def written(export: Export, tmp_path: Path) -> Callable[..., tuple[dict[str, Any], str]]:
    """The configuration of a run that was exported, and its script."""

    def run(text: str, name: str = RUN) -> tuple[dict[str, Any], str]:
        answer = export(text, "--write")
        assert answer.code == 0, answer.err
        place = tmp_path / "jobs" / name
        return tomllib.loads((place / "config.toml").read_text()), (place / "run.slurm").read_text()

    return run


Written = Callable[..., tuple[dict[str, Any], str]]


def assuming(text: str, seconds: float) -> str:
    return f"{text}[evaluation]\nassume_eval_seconds = {seconds}\n"


@pytest.mark.parametrize(
    "line", [*(h for h in HOSTILE if h != "--wrap=x"), "--comment=a b", "--mail-user=$(id)", "mail"]
)
def test_a_directive_is_one_option(line: str) -> None:
    with pytest.raises(ValidationError, match="sbatch"):
        Slurm.model_validate({"sbatch": [line]})


def test_a_hostile_path_stays_one_quoted_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / '$(touch owned)/a\'b "c" `touch owned`; touch owned #'
    odd.mkdir(parents=True)
    monkeypatch.chdir(odd)
    (odd / "file.toml").write_text(SEARCH)
    _, texts = exported(resolve(file=Path("file.toml"), assignments=["slurm.python=./py"]))
    code = texts[f"{RUN}/run.slurm"].split("set -u\n")[0]
    probe = code + 'printf "%s|" "$run_dir" "$work_dir" "$python"'
    said = subprocess.run(["/bin/bash", "-c", probe], cwd=tmp_path, capture_output=True, check=True)
    assert said.stdout.decode() == f"{odd}/file/{RUN}|{odd}|{odd}/py|"
    assert not list(tmp_path.rglob("owned"))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (SEARCH.replace('time = "1h"', ""), "slurm.time"),  # not measured
        (SEARCH.replace("1h", "1:30"), "slurm.time"),
        (SEARCH.replace("1h", "6m"), "slurm.time"),  # no time to run before it begins to end
        (assuming(SEARCH, 3590.0), "slurm.time"),  # shorter than an evaluation
        (SEARCH + "nodes = 2\n", "nodes"),
        (SEARCH.replace("min", "none"), "search.tier"),
        (SEARCH.replace('search.tier = "min"', ""), "search.tier"),
        (FACTORIAL.replace("max_device_hours = 12.0", "max_evals = 9"), "--max-evals 9"),
        (FACTORIAL.replace("two-by-two", "../up"), "../up"),
        (FACTORIAL.replace("1B =", '"1B; rm" ='), "1B; rm"),
        (FACTORIAL.replace("1B =", '"$(x)" ='), "$(x)"),
    ],
)
def test_what_cannot_be_exported_is_said_in_one_line(
    export: Export, tmp_path: Path, text: str, key: str
) -> None:
    answer = export(text, "--write")
    assert (answer.code, len(answer.err.splitlines())) == (2, 1)
    assert key in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["file.toml"]


def test_a_cells_configuration_is_that_cell_and_nothing_else(
    written: Written, tmp_path: Path
) -> None:
    config, script = written(FACTORIAL, "dimension3_size3B_s2")
    assert config["runs_dir"] == str(tmp_path / "jobs" / "dimension3_size3B_s2")
    training = config["training"]
    assert (training["dimension"], training["seconds"], training["noise"]) == (3, 0.001, 0.01)
    assert config["campaign"]["seeds"] == [2]
    assert config["campaign"]["conditions"] == [{"name": "dimension3_size3B"}]
    assert config["campaign"]["controls"] is False
    assert not {"factors", "slurm"} & set(config)
    backend = config["backend"]
    assert (backend["executor"], backend["workers"], backend["device"]) == ("local", 1, "cpu")
    assert backend["drain_seconds"] == 270.0
    assert config["budget"]["max_device_hours"] == pytest.approx(1.2)  # of 10 runs
    assert "max_requeues=0\n" in script


def test_a_search_is_told_to_end_an_evaluation_before_its_limit(written: Written) -> None:
    config, script = written(assuming(SEARCH.replace("1h", "4h"), 1200.0))
    assert "--signal=B:USR1@1560" in script  # 20 min x 1.25 + 1 min
    assert config["backend"]["drain_seconds"] == 1530


@pytest.mark.parametrize(
    ("text", "seconds", "row"),
    [
        # 1.25 h, 10 + 5 min, up to 5 min
        (FACTORIAL, 3600.0, "| 1 h 00 min | 1 h 30 min |"),
        # 2 generations of 8 on 4 slots, and a start
        (SEARCH, 60.0, "| 4 min 10 s | 25 min 00 s |"),
    ],
)
def test_a_limit_follows_from_the_estimate(
    tmp_path: Path, text: str, seconds: float, row: str
) -> None:
    file = tmp_path / "file.toml"
    file.write_text(assuming(text.replace('time = "1h"', ""), seconds))
    _, texts = exported(resolve(file=file))
    assert row in texts["README.md"]


def test_an_export_is_written_over_nothing(tmp_path: Path) -> None:
    place = tmp_path / "jobs"
    write(place, {"submit_all.sh": "mine\n", "a/run.slurm": "x"})
    assert (place / "submit_all.sh").stat().st_mode & 0o111
    with pytest.raises(ValueError, match="jobs is there already"):
        write(place, {"other": ""})
