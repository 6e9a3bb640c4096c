"""`submit_all.sh` against an sbatch that a test wrote."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.orchestrator.slurm.conftest import Cluster


NAMES = ("n_embd32_lr1e-3_s1", "1B_rank4", "a.b+c=d,e@f")
Written = Callable[..., Path]


def submitted(place: Path) -> list[tuple[str, str]]:
    rows = [row.split("\t") for row in (place / "submitted.tsv").read_text().splitlines()]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", moment) for _, _, moment in rows)
    return [(name, job) for name, job, _ in rows]


def test_every_run_is_submitted_from_its_own_directory(
    cluster: "Cluster", written: Written
) -> None:
    place = written(*NAMES)
    done = cluster.run(str(place / "submit_all.sh"))
    assert done.returncode == 0, done.stderr
    assert cluster.asked("sbatch") == [f"{name}|--parsable run.slurm" for name in NAMES]
    assert submitted(place) == list(zip(NAMES, ("1001", "1002", "1003"), strict=True))


def test_the_first_refusal_stops_it_and_a_second_call_goes_on(
    cluster: "Cluster", written: Written
) -> None:
    place = written(*NAMES)
    script = str(place / "submit_all.sh")
    failed = cluster.run(script, REFUSED=NAMES[1])
    assert failed.returncode == 1
    assert f"{NAMES[1]} was not submitted, nor those after it" in failed.stderr
    assert "no such partition" in failed.stderr
    assert submitted(place) == [(NAMES[0], "1001")]
    assert [call.split("|")[0] for call in cluster.asked("sbatch")] == list(NAMES[:2])
    done = cluster.run(script)
    assert done.returncode == 0
    assert f"{NAMES[0]}: submitted already, job 1001" in done.stdout
    assert [name for name, _ in submitted(place)] == list(NAMES)


def test_a_repeated_submission_submits_nothing(cluster: "Cluster", written: Written) -> None:
    script = str(written(*NAMES) / "submit_all.sh")
    cluster.run(script)
    again = cluster.run(script)
    assert again.returncode == 0
    assert "0 submitted, 3 skipped" in again.stdout
    assert len(cluster.asked("sbatch")) == 3


@pytest.mark.parametrize("form", [("--chain", "afterok"), ("--chain=afterok",)])
def test_a_chain_lets_each_wait_for_the_one_before(
    cluster: "Cluster", written: Written, form: tuple[str, ...]
) -> None:
    place = written(*NAMES)
    assert cluster.run(str(place / "submit_all.sh"), *form).returncode == 0
    assert [call.split("|")[1] for call in cluster.asked("sbatch")] == [
        "--parsable run.slurm",
        "--parsable --dependency=afterok:1001,singleton run.slurm",
        "--parsable --dependency=afterok:1002,singleton run.slurm",
    ]


def test_a_chain_goes_on_behind_what_was_submitted_before(
    cluster: "Cluster", written: Written
) -> None:
    place = written(*NAMES)
    cluster.run(str(place / "submit_all.sh"), "--chain", "afterany", REFUSED=NAMES[1])
    cluster.run(str(place / "submit_all.sh"), "--chain", "afterany")
    assert "--dependency=afterany:1001,singleton" in cluster.asked("sbatch")[2]


def test_a_dry_run_submits_nothing_and_leaves_nothing(cluster: "Cluster", written: Written) -> None:
    place = written(*NAMES)
    before = sorted(place.rglob("*"))
    said = cluster.run(str(place / "submit_all.sh"), "--dry-run", "--chain", "afterok")
    assert said.returncode == 0
    assert cluster.asked("sbatch") == []
    assert sorted(place.rglob("*")) == before
    assert f"(cd {NAMES[0]} && sbatch --parsable run.slurm)" in said.stdout
    assert f"--dependency=afterok:<job of {NAMES[0]}>" in said.stdout


@pytest.mark.parametrize(
    "options", [("--chain", "after"), ("--chain",), ("--chain=",), ("--hello",), ("x",)]
)
def test_an_option_that_cannot_be_meant_is_refused(
    cluster: "Cluster", written: Written, options: tuple[str, ...]
) -> None:
    said = cluster.run(str(written(*NAMES) / "submit_all.sh"), *options)
    assert said.returncode == 2
    assert cluster.asked("sbatch") == []


def test_an_id_with_a_cluster_behind_it_is_understood(cluster: "Cluster", written: Written) -> None:
    place = written("a")
    cluster.run(str(place / "submit_all.sh"), FEDERATION=";east")
    assert submitted(place) == [("a", "1001")]


def test_an_answer_that_is_no_id_stops_it(cluster: "Cluster", written: Written) -> None:
    cluster.install("sbatch", "#!/bin/sh\necho 'Submitted batch job 5'\n")
    place = written("a")
    said = cluster.run(str(place / "submit_all.sh"))
    assert said.returncode == 1
    assert "expected a job id from sbatch, got 'Submitted batch job 5'" in said.stderr
    assert submitted(place) == []


def test_a_line_that_was_cut_short_counts_as_none(cluster: "Cluster", written: Written) -> None:
    place = written("a")
    (place / "submitted.tsv").write_text("a\t10")
    cluster.run(str(place / "submit_all.sh"))
    assert len(cluster.asked("sbatch")) == 1


def test_without_sbatch_it_says_where_to_go(
    machine: "Cluster", written: Written, tmp_path: Path
) -> None:
    place, tools = written("a"), tmp_path / "tools"
    tools.mkdir()
    (tools / "dirname").symlink_to(shutil.which("dirname") or "")
    said = machine.run("/bin/bash", str(place / "submit_all.sh"), PATH=str(tools))
    assert said.returncode == 1
    assert "run this on a login node" in said.stderr


def test_two_at_once_do_not_submit_twice(cluster: "Cluster", written: Written) -> None:
    place = written(*NAMES)
    cluster.install("sbatch", f"#!/bin/sh\n'{place}/submit_all.sh' >&2\necho 5\n")
    said = cluster.run(str(place / "submit_all.sh"))
    assert said.stderr.count("another submit_all.sh is at work here") == 3
    assert [job for _, job in submitted(place)] == ["5", "5", "5"]
