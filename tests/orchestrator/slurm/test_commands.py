"""`export slurm FILE [DIR]`: what is shown, what is written, what a job's configuration says."""

import json
import os
import re
import tomllib
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from budgets.ledger.chain import LEDGER
from orchestrator.config import Layers, resolve
from orchestrator.records.recorded import Result

if TYPE_CHECKING:
    from tests.conftest import Answer, Command

FACTORIAL = """
objective = "sphere"
[training]
noise = 0.01
[campaign]
name = "two-by-two"
seeds = [1, 2]
[factors]
dimension = [2, 3]
[factors.size]
1B = { seconds = 0.0 }
3B = { seconds = 0.001 }
[budget]
max_device_hours = 12.0
[slurm]
time = "1h"
partition = "gpu"
"""

SEARCH = """
objective = "sphere"
[search]
tier = "min"
[backend]
workers = 4
[slurm]
time = "1h"
"""


@pytest.fixture
def export(command: "Command", tmp_path: Path) -> Callable[..., "Answer"]:
    """Exports a file with this text."""

    def run(text: str, *arguments: str) -> "Answer":
        (tmp_path / "file.toml").write_text(text)
        return command("export", "slurm", "file.toml", *arguments)

    return run


Export = Callable[..., "Answer"]


def config_of(run: Path) -> dict[str, Any]:
    return tomllib.loads((run / "config.toml").read_text())


def test_a_preview_shows_all_and_writes_nothing(export: Export, tmp_path: Path) -> None:
    said = export(FACTORIAL)
    assert said.code == 0, said.err
    assert [path.name for path in tmp_path.iterdir()] == ["file.toml"]
    rows = [line.split() for line in said.out.splitlines() if re.match(r"\s+\d+ +\S+_s[12] ", line)]
    assert len(rows) == 10
    assert rows[0][:6] == ["1", "dimension2_size1B_s1", "2", "1B", "1", "run"]
    assert rows[0][-3:] == ["01:00:00", "1", "0"]
    assert rows[9][1:6] == ["default_base_s2", "-", "-", "2", "control"]
    for part in ("8 to compare, 2 controls", "no estimate", "{level}", "submit_all.sh", "--write"):
        assert part in said.out
    assert f"{tmp_path}/two-by-two/" in said.out


def test_what_is_shown_as_json_is_what_is_written(export: Export, tmp_path: Path) -> None:
    shown = json.loads(export(FACTORIAL, "--json").out)
    assert shown["total_runs"] == 10
    assert shown["runs"][0]["levels"] == {"dimension": "2", "size": "1B"}
    assert export(FACTORIAL, "--write").code == 0
    place = tmp_path / "two-by-two"
    there = sorted(str(p.relative_to(place)) for p in place.rglob("*") if p.is_file())
    assert there == sorted(shown["files"])


def test_a_directory_can_be_named(export: Export, tmp_path: Path) -> None:
    assert export(FACTORIAL, "elsewhere/it", "--write").code == 0
    assert (tmp_path / "elsewhere" / "it" / "submit_all.sh").exists()


def test_writing_again_says_that_it_is_there(export: Export) -> None:
    export(FACTORIAL, "--write")
    again = export(FACTORIAL, "--write")
    assert again.code == 0
    assert "is there already, and the same" in again.out


def test_another_content_is_refused_without_replace(export: Export) -> None:
    export(FACTORIAL, "--write")
    changed = FACTORIAL.replace('"gpu"', '"cpu"')
    refused = export(changed, "--write")
    assert refused.code == 2
    assert "'#SBATCH --partition=gpu', not '#SBATCH --partition=cpu'" in refused.err
    assert export(changed, "--write", "--replace").code == 0


def test_a_cells_configuration_is_that_cell_and_nothing_else(
    export: Export, tmp_path: Path
) -> None:
    export(FACTORIAL, "--write")
    place = tmp_path / "two-by-two" / "dimension3_size3B_s2"
    config = config_of(place)
    assert config["runs_dir"] == str(place)
    assert config["training"]["dimension"] == 3
    assert config["training"]["seconds"] == 0.001
    assert config["training"]["noise"] == 0.01
    assert config["campaign"]["seeds"] == [2]
    assert config["campaign"]["conditions"] == [{"name": "dimension3_size3B"}]
    assert config["campaign"]["controls"] is False
    assert "factors" not in config
    assert "slurm" not in config
    backend = config["backend"]
    assert (backend["executor"], backend["workers"], backend["device"]) == ("local", 1, "cpu")
    assert (backend["drain_seconds"], backend["allow_network_fs"]) == (270.0, True)


def test_caps_of_a_campaign_are_shared_by_its_runs(export: Export, tmp_path: Path) -> None:
    export(FACTORIAL, "--write")
    config = config_of(tmp_path / "two-by-two" / "default_base_s1")
    assert config["budget"]["max_device_hours"] == pytest.approx(1.2)
    too_few = FACTORIAL.replace("[slurm]", "max_evals = 9\n[slurm]")
    assert "max_evals: 9 cannot be shared by 10 runs" in export(too_few).err


@pytest.mark.parametrize("window", ["2999-11-27T18:00", "12h"])
def test_a_deadline_is_one_moment_wherever_a_job_runs(
    export: Export, tmp_path: Path, window: str
) -> None:
    text = SEARCH + f"[budget]\nwindow = '{window}'\n"
    is_said = "counts from each run's own start" in " ".join(export(text).out.split())
    assert is_said == (window == "12h")
    export(text, "--write")
    said = config_of(tmp_path / "file" / "min-sphere-s1")["budget"]["window"]
    if window == "12h":
        assert said == window
    else:
        assert datetime.fromisoformat(said) == datetime.fromisoformat(window).astimezone()
        assert datetime.fromisoformat(said).tzinfo is not None


def test_a_configuration_that_is_read_back_is_the_same(export: Export, tmp_path: Path) -> None:
    export(SEARCH, "--write")
    written = tmp_path / "file" / "min-sphere-s1" / "config.toml"
    mine = resolve(Layers(file=tmp_path / "file.toml")).all_values()
    its = resolve(Layers(file=written)).all_values()
    changed = {key for key in its if its[key] != mine.get(key)}
    assert changed == {
        "runs_dir",
        "search.run_id",
        "backend.executor",
        "backend.device",
        "backend.threads",
        "backend.drain_seconds",
        "backend.allow_network_fs",
    }
    assert {key for key in mine if key not in its} == {"slurm.time"}


def test_set_reaches_the_jobs(export: Export, tmp_path: Path) -> None:
    export(SEARCH, "--set", "slurm.time=3h", "--set", "noise=0.05", "--write")
    run = tmp_path / "file" / "min-sphere-s1"
    assert "#SBATCH --time=03:00:00" in (run / "run.slurm").read_text()
    assert config_of(run)["training"]["noise"] == 0.05


def test_a_campaign_of_searches_becomes_a_job_for_each(export: Export, tmp_path: Path) -> None:
    text = FACTORIAL.replace("[campaign]", '[campaign]\ncell = "search"')
    assert export(text + '\n[search]\ntier = "min"\n', "--write").code == 0
    config = config_of(tmp_path / "two-by-two" / "dimension2_size3B_s2")
    assert "campaign" not in config
    assert config["search"]["seed"] == 2
    assert config["search"]["run_id"] == "two-by-two.dimension2_size3b_s2"
    assert config["training"]["dimension"] == 2


def test_a_search_on_several_nodes_brings_its_own_ray(export: Export, tmp_path: Path) -> None:
    assert export(SEARCH + "nodes = 2\n", "--write").code == 0
    run = tmp_path / "file" / "min-sphere-s1"
    assert config_of(run)["backend"]["executor"] == "ray"
    assert "symmetric-run" in (run / "run.slurm").read_text()


def test_gpus_go_with_slots(export: Export, tmp_path: Path) -> None:
    shown = json.loads(export(SEARCH + "gpus = 1\nnodes = 2\n", "--json").out)
    assert (shown["runs"][0]["nodes"], shown["runs"][0]["gpus"]) == (2, 4)
    export(SEARCH + "gpus = 1\n", "--write")
    run = tmp_path / "file" / "min-sphere-s1"
    assert config_of(run)["backend"]["device"] == "cuda"
    assert "#SBATCH --gres=gpu:4" in (run / "run.slurm").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SEARCH.replace('time = "1h"', ""), "slurm.time must say"),
        (SEARCH.replace('tier = "min"', ""), "search.tier: say how much"),
        (SEARCH + 'partitoin = "x"\n', "'partition'"),
        (SEARCH + 'partition = "a; rm -rf b"\n', "slurm.partition: expected something like"),
        (SEARCH + 'setup = ["source a; rm b"]\n', "slurm.setup.0: expected one plain command"),
        (SEARCH + "nodes = 3\n", "cannot be spread over 3 nodes"),
        (SEARCH.replace("workers = 4", 'device = "cpu"') + "gpus = 1\n", "contradict each other"),
        (SEARCH.replace("workers = 4", 'device = "cuda"') + "gpus = 0\n", "contradict each other"),
        (SEARCH.replace("workers = 4", 'address = "a:1"'), "Ray of their own"),
        (
            SEARCH.replace("workers = 4", 'workers = 4\nexecutor = "local"') + "nodes = 2\n",
            "'local' knows one machine",
        ),
        (SEARCH.replace("workers = 4", "drain_seconds = 299"), "expected 270 at most"),
        (FACTORIAL + "nodes = 2\n", "one evaluation on one device"),
        (FACTORIAL.replace('"two-by-two"', '"../up"'), "../up"),
        (FACTORIAL.replace("1B =", '"1B; rm" ='), "1B; rm"),
    ],
)
def test_what_cannot_be_exported_is_said_in_one_line(
    export: Export, tmp_path: Path, text: str, said: str
) -> None:
    answer = export(text, "--write")
    assert answer.code == 2
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file.toml"]


def test_a_hostile_name_is_stopped_before_it_is_written(export: Export, tmp_path: Path) -> None:
    for name in ("$(touch x)", "; touch x", "-x", "a\\nb"):
        text = f"""objective = "sphere"
[campaign]
[[campaign.conditions]]
name = "{name}"
training.dimension = 3
[slurm]
time = "1h"
"""
        assert export(text, "--write").code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["file.toml"]


CALIBRATED = SEARCH.replace('time = "1h"', "").replace(
    'objective = "sphere"', 'objective = "sphere"\nruns_dir = "."'
)


def test_a_calibration_gives_estimate_and_limit_and_is_named(
    export: Export, run_search: Callable[..., Result], tmp_path: Path
) -> None:
    run_search(tmp_path, settings={"seconds": 0.01})
    text = CALIBRATED.replace("[search]", "[training]\nseconds = 0.01\n[search]")
    shown = json.loads(export(text, "--json").out)
    run = shown["runs"][0]
    assert run["estimated_seconds"] > 0.04
    assert run["limit_seconds"] == 1200
    assert "measured by sphere-" in run["estimate_from"]


def test_the_calibration_begun_last_gives_the_estimate_whichever_file_is_younger(
    export: Export, command: "Command", tmp_path: Path
) -> None:
    calibrate = ("calibrate", "--objective", "sphere", "--executor", "inline", "--seeds", "3")
    here = ("--runs-dir", ".", "--set", "seconds=0.01")
    assert command(*calibrate, *here).code == 0
    [first] = (tmp_path / "calibration").iterdir()
    assert command(*calibrate, *here, "--again", "--reason", "another driver").code == 0
    os.utime(first / LEDGER, (2**32, 2**32))  # as a copy would be

    text = CALIBRATED.replace("[search]", "[training]\nseconds = 0.01\n[search]")
    run = json.loads(export(text, "--json").out)["runs"][0]

    assert f"measured by {first.name}-2 on" in run["estimate_from"]


def test_an_assumed_time_counts_the_search_without_a_calibration(export: Export) -> None:
    text = SEARCH + "[evaluation]\nassume_eval_seconds = 60.0\n"
    run = json.loads(export(text, "--json").out)["runs"][0]
    assert 240 < run["estimated_seconds"] < 300  # 2 generations of 8 on 4 slots, and a start
    assert run["estimated_device_seconds"] == pytest.approx(16 * 60.0, rel=0.01)
    assert "assumed, 60 s an evaluation" in run["estimate_from"]


def test_a_cell_is_estimated_from_an_assumed_time(export: Export) -> None:
    text = FACTORIAL.replace('time = "1h"', "") + "[evaluation]\nassume_eval_seconds = 3600.0\n"
    shown = json.loads(export(text, "--json").out)
    assert {run["estimated_seconds"] for run in shown["runs"]} == {3600.0}
    assert {run["limit_seconds"] for run in shown["runs"]} == {5400}


def assuming(text: str, seconds: float) -> str:
    return f"{text}[evaluation]\nassume_eval_seconds = {seconds}\n"


def test_a_search_is_told_to_end_an_evaluation_before_its_limit(
    export: Export, tmp_path: Path
) -> None:
    export(assuming(SEARCH.replace("1h", "4h"), 1200.0), "--write")
    run = tmp_path / "file" / "min-sphere-s1"
    assert "--signal=B:USR1@1560" in (run / "run.slurm").read_text()  # 20 min x 1.25 + 1 min
    assert config_of(run)["backend"]["drain_seconds"] == 1530


def test_an_evaluation_that_no_job_could_finish_is_refused(export: Export) -> None:
    refused = export(assuming(FACTORIAL, 3590.0))
    assert refused.code == 2
    assert "less than one evaluation of dimension2_size1B_s1 takes, 59 min 50 s" in refused.err


def test_a_search_that_its_limit_cuts_is_foretold(export: Export) -> None:
    notes = json.loads(export(assuming(SEARCH, 1500.0), "--json").out)["notes"]
    assert "1 of 1 runs need more than one start, min-sphere-s1 some 4" in notes
    assert not any("raise slurm.time" in note for note in notes)
    few = SEARCH + "max_requeues = 1\n"
    notes = json.loads(export(assuming(few, 1500.0), "--json").out)["notes"]
    assert "min-sphere-s1 is requeued 1 times at most: raise slurm.time" in notes


def test_only_a_search_is_requeued_where_nobody_says(export: Export, tmp_path: Path) -> None:
    export(SEARCH, "--write")
    export(FACTORIAL, "--write")
    search = tmp_path / "file" / "min-sphere-s1" / "run.slurm"
    cell = tmp_path / "two-by-two" / "default_base_s1" / "run.slurm"
    assert "max_requeues=10\n" in search.read_text()
    assert "max_requeues=0\n" in cell.read_text()


def test_a_followed_run_is_named_by_its_directory(
    export: Export, run_search: Callable[..., Result], tmp_path: Path
) -> None:
    before = run_search(tmp_path, assumed_seconds=1.0, run_id="before").directory
    text = SEARCH.replace('tier = "min"', 'tier = "min"\nwarm_start = "before"')
    answer = export(f'runs_dir = "{tmp_path}"\n{text}', "--write")
    assert answer.code == 0, answer.err
    config = config_of(tmp_path / "file" / "min-sphere-s1")
    assert config["search"]["warm_start"] == str(before)


def test_resources_are_verified_with_what_mends_them(export: Export) -> None:
    found = json.loads(export(SEARCH + 'python = "/no/python"\n', "--json").out)["resources"]
    states = {one["name"]: (one["state"], one["mend"]) for one in found}
    assert states["objective sphere"][0] == "ok"
    assert states["interpreter"][0] == "missing"
    assert "slurm.python" in states["interpreter"][1]
    assert states["directory"][0] == "ok"
