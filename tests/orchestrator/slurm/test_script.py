"""The scripts as text: what is in them, that shells take them, that nothing gets into them."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.slurm.job import Export, Job
from orchestrator.slurm.options import SlurmOptions
from orchestrator.slurm.script import run_script, submit_script

if TYPE_CHECKING:
    from tests.orchestrator.slurm.conftest import Make

SHELLCHECK = shutil.which("shellcheck") or ""

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "gpu": {"gpus": 1, "gpu_type": "a100", "partition": "gpu", "mem": "32G", "account": "proj_1"},
    "cluster": {"nodes": 4},
    "gpu cluster": {"nodes": 2, "gpus": 1, "cpus_per_task": 8, "constraint": "[a|b]", "qos": "hi"},
    "set up": {
        "setup": ["source ~/v/bin/activate", "module load a/1", "export P=$HOME/x:${P}"],
        "extra": ["--mail-type=FAIL", "--exclude=n[1-3]"],
    },
    "cluster set up": {"nodes": 2, "setup": ["source v/bin/activate"]},
}

ODD = ("n_embd32_lr1e-3_s1", "1B_rank4", "a.b+c=d,e@f", "0")


def scripts(make: "Make", options: dict[str, Any]) -> list[str]:
    export = make(*ODD, **options)
    return [*(run_script(export, job) for job in export.jobs), submit_script(export)]


@pytest.mark.skipif(not SHELLCHECK, reason="there is no shellcheck here: apt install shellcheck")
@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_shellcheck_has_no_complaint(make: "Make", options: dict[str, Any]) -> None:
    for script in scripts(make, options):
        found = subprocess.run(
            [SHELLCHECK, "--severity=style", "-"],
            input=script,
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.stdout == ""
        assert found.returncode == 0


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_bash_parses_every_script(make: "Make", options: dict[str, Any]) -> None:
    for script in scripts(make, options):
        found = subprocess.run(
            ["/bin/bash", "-n"], input=script, capture_output=True, text=True, check=False
        )
        assert (found.returncode, found.stderr) == (0, "")


def directives(script: str) -> list[str]:
    return [line for line in script.splitlines() if line.startswith("#SBATCH")]


def test_directives_ask_for_what_the_options_say(make: "Make") -> None:
    export = make("a", gpus=1, gpu_type="a100", partition="gpu", mem="32G", extra=["--nice=5"])
    export = replace(export, jobs=(replace(export.jobs[0], slots=4, threads=2),))
    assert directives(run_script(export, export.jobs[0])) == [
        "#SBATCH --job-name=camp-a",
        "#SBATCH --partition=gpu",
        "#SBATCH --time=02:00:00",
        "#SBATCH --nodes=1",
        "#SBATCH --ntasks-per-node=1",
        "#SBATCH --cpus-per-task=8",
        "#SBATCH --gres=gpu:a100:4",
        "#SBATCH --mem=32G",
        "#SBATCH --output=slurm-%j.out",
        "#SBATCH --open-mode=append",
        "#SBATCH --signal=B:USR1@300",
        "#SBATCH --requeue",
        "#SBATCH --dependency=singleton",
        "#SBATCH --nice=5",
    ]


def test_all_directives_stand_before_the_first_command(make: "Make") -> None:
    script = run_script(export := make("a", extra=["--nice=5"]), export.jobs[0])
    before_code = script.split("\n\n")[0]
    assert directives(before_code) == directives(script)


def test_slots_of_a_cluster_are_spread_over_its_nodes(make: "Make") -> None:
    export = make("a", nodes=2, gpus=1)
    export = replace(export, jobs=(replace(export.jobs[0], slots=8, threads=3),))
    found = directives(run_script(export, export.jobs[0]))
    assert "#SBATCH --gres=gpu:4" in found
    assert "#SBATCH --cpus-per-task=12" in found
    assert "#SBATCH --exclusive" in found


def test_slots_that_cannot_be_spread_evenly_are_refused(make: "Make") -> None:
    export = make("a", nodes=2)
    with pytest.raises(ValueError, match="3 evaluations at once cannot be spread over 2 nodes"):
        replace(export, jobs=(replace(export.jobs[0], slots=3),))


def test_fewer_cpus_than_the_threads_need_are_refused(make: "Make") -> None:
    export = make("a", cpus_per_task=3)
    with pytest.raises(ValueError, match="need 4 CPUs, got 3"):
        replace(export, jobs=(replace(export.jobs[0], slots=2, threads=2),))


@pytest.mark.parametrize(
    "name",
    ["; rm -rf x", "$(id)", "a\nb", "-rf", "../up", "a/b", "", ".", "..", ".git", "a b", "ä"],
)
def test_a_hostile_name_becomes_no_run(name: str) -> None:
    with pytest.raises(ValueError, match="expected a name"):
        Job(name, "", name)


def test_runs_that_would_share_a_directory_are_refused(make: "Make") -> None:
    with pytest.raises(ValueError, match="same directory: a_s1"):
        make("A_s1", "a_s1")


HOSTILE_PATH = '$(touch owned)/a\'b "c" `touch owned`; touch owned #'


def test_a_hostile_path_stays_one_quoted_value(tmp_path: Path) -> None:
    odd = tmp_path / HOSTILE_PATH
    odd.mkdir(parents=True)
    job = Job("a", "", "a")
    export = Export("camp", odd, odd, f"{odd}/python", (job,), SlurmOptions(time="1h"))
    probe = run_script(export, job).split("set -u\n")[0] + 'printf "%s|" "$run_dir" "${command[@]}"'
    said = subprocess.run(["/bin/bash", "-c", probe], cwd=tmp_path, capture_output=True, check=True)
    config = f"{odd}/a/config.toml"
    words = (f"{odd}/a", f"{odd}/python", "-P", "-m", "orchestrator", "run", config)
    assert said.stdout.decode() == "".join(f"{word}|" for word in words)
    assert not list(tmp_path.rglob("owned"))


def test_a_path_that_cannot_be_shown_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="printable path"):
        Export(
            "c", tmp_path / "a\nb", tmp_path, "/p", (Job("a", "", "a"),), SlurmOptions(time="1h")
        )


def estimated(make: "Make", seconds: float | None, **options: Any) -> Export:
    export = make("a", **options)
    unlimited = export.options.model_copy(update={"time": None})
    jobs = (replace(export.jobs[0], seconds=seconds),)
    return replace(export, jobs=jobs, options=unlimited)


def test_a_time_limit_follows_from_the_estimate(make: "Make") -> None:
    export = estimated(make, 3600.0)
    assert export.time_seconds(export.jobs[0]) == 5400  # 1.25 h, 10 min, 5 min, to 5 min above


def test_without_an_estimate_a_time_limit_must_be_given(make: "Make") -> None:
    with pytest.raises(ValueError, match=r"slurm.time must say.*or calibrate first"):
        estimated(make, None)


def test_a_time_limit_without_time_to_run_is_refused(make: "Make") -> None:
    with pytest.raises(ValueError, match="leaves no time to run"):
        make("a", time="6m", lead_seconds=300)
