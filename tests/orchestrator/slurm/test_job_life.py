"""`run.slurm` as SLURM runs it: what becomes of each exit code, and of signals."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.orchestrator.slurm.conftest import Cluster


Written = Callable[..., Path]


@pytest.mark.parametrize(
    ("code", "of_job", "said"),
    [
        (0, 0, "Done (exit code 0)"),
        (4, 0, "Done (exit code 4)"),
        (3, 3, "Paused by a rule"),
        (2, 2, "Failed with exit code 2"),
        (5, 5, "Another orchestrator has the run"),
        (7, 7, "Failed with exit code 7"),
        (130, 130, "not by its time limit"),
        (143, 143, "not by its time limit"),
    ],
)
def test_an_exit_code_decides_what_becomes_of_the_job(
    cluster: "Cluster", written: Written, program: Path, code: int, of_job: int, said: str
) -> None:
    place = written("a", python=str(program))
    done = cluster.run("/bin/bash", str(place / "a" / "run.slurm"), CODE=str(code))
    assert done.returncode == of_job
    assert said in done.stdout
    assert cluster.asked("scontrol") == []


def test_it_starts_the_run_of_its_own_directory(
    cluster: "Cluster", written: Written, program: Path
) -> None:
    place = written("a", python=str(program))
    done = cluster.run("/bin/bash", str(place / "a" / "run.slurm"), CODE="0")
    assert f"begun -P -m orchestrator run {place}/a/config.toml" in done.stdout


def test_before_the_time_limit_it_drains_and_goes_back_into_the_queue(
    cluster: "Cluster", written: Written, program: Path
) -> None:
    script = written("a", python=str(program)) / "a" / "run.slurm"
    code, said = cluster.signalled(script, signal.SIGUSR1, "begun")
    assert code == 143
    assert "back into the queue" in said
    assert cluster.asked("scontrol") == ["requeue 77"]


def test_a_job_that_was_cancelled_is_not_requeued(
    cluster: "Cluster", written: Written, program: Path
) -> None:
    script = written("a", python=str(program)) / "a" / "run.slurm"
    code, said = cluster.signalled(script, signal.SIGTERM, "begun")
    assert code == 143
    assert "Ended by TERM, not by its time limit" in said
    assert cluster.asked("scontrol") == []


def test_it_is_not_requeued_for_ever(cluster: "Cluster", written: Written, program: Path) -> None:
    script = written("a", python=str(program), max_requeues=3) / "a" / "run.slurm"
    code, _ = cluster.signalled(script, signal.SIGUSR1, "begun", SLURM_RESTART_COUNT="2")
    assert (code, cluster.asked("scontrol")) == (143, ["requeue 77"])
    code, said = cluster.signalled(script, signal.SIGUSR1, "begun", SLURM_RESTART_COUNT="3")
    assert (code, cluster.asked("scontrol")) == (143, ["requeue 77"])
    assert "after 3 requeues, of which slurm.max_requeues allows 3. Submit it again" in said


def test_a_run_that_finishes_while_it_is_asked_to_end_is_done(
    cluster: "Cluster", written: Written, program: Path
) -> None:
    program.write_text(program.read_text().replace("sys.exit(143)", "sys.exit(0)"))
    script = written("a", python=str(program)) / "a" / "run.slurm"
    code, said = cluster.signalled(script, signal.SIGUSR1, "begun")
    assert (code, cluster.asked("scontrol")) == (0, [])
    assert "Done" in said


def test_a_queue_that_does_not_take_it_back_is_reported(
    cluster: "Cluster", written: Written, program: Path
) -> None:
    script = written("a", python=str(program)) / "a" / "run.slurm"
    code, said = cluster.signalled(script, signal.SIGUSR1, "begun", SCONTROL_CODE="1")
    assert code == 143
    assert "SLURM did not take it back" in said


def test_a_setup_line_that_fails_ends_the_job(
    cluster: "Cluster", written: Written, program: Path
) -> None:
    place = written("a", python=str(program), setup=["source not/there"])
    done = cluster.run("/bin/bash", str(place / "a" / "run.slurm"), CODE="0")
    assert done.returncode == 2
    assert "begun" not in done.stdout


def test_setup_lines_come_before_the_run(
    cluster: "Cluster", written: Written, program: Path, tmp_path: Path
) -> None:
    (tmp_path / "activate").write_text("export CODE=4\n")
    place = written("a", python=str(program), setup=["source ./activate"])
    done = cluster.run("/bin/bash", str(place / "a" / "run.slurm"))
    assert "Done (exit code 4)" in done.stdout


def test_a_directory_that_was_moved_is_not_run(
    cluster: "Cluster", written: Written, program: Path, tmp_path: Path
) -> None:
    place = written("a", python=str(program))
    place.rename(tmp_path / "moved")
    done = cluster.run("/bin/bash", str(tmp_path / "moved" / "a" / "run.slurm"), CODE="0")
    assert done.returncode == 2
    assert "export again" in done.stderr


def test_an_interpreter_that_is_not_there_is_named(cluster: "Cluster", written: Written) -> None:
    place = written("a", python="/no/python")
    done = cluster.run("/bin/bash", str(place / "a" / "run.slurm"))
    assert done.returncode == 2
    assert "/no/python is no interpreter here" in done.stderr
