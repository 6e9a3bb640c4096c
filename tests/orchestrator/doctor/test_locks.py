"""Locks where the runs would lie, held and tried."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.doctor.locks import REFUSED, TAKEN, locks, place

MOUNTS = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 0:26 / /home rw - nfs4 server:/home rw"


def says(*answers: str) -> Callable[[Path], str]:
    """Another process that answers so, one time after the other."""
    ahead = iter(answers)
    return lambda lock: next(ahead)


def test_a_real_lock_keeps_another_process_out_and_nothing_is_left(tmp_path: Path) -> None:
    assert locks(tmp_path).state == "ok"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("answers", "state", "words"),
    [
        ((REFUSED, TAKEN), "ok", "keeps a second process out"),
        ((TAKEN, TAKEN), "missing", "given to a second holder"),
        ((REFUSED, REFUSED), "missing", "stays taken"),
        (("OSError: [Errno 37] No locks available", TAKEN), "unknown", "No locks available"),
        ((REFUSED, "did not answer within 10 s"), "unknown", "did not answer"),
    ],
)
def test_what_another_process_meets_decides(
    tmp_path: Path, answers: tuple[str, ...], state: str, words: str
) -> None:
    found = locks(tmp_path, says(*answers))
    assert found.state == state
    assert words in found.seen
    assert list(tmp_path.iterdir()) == []


def test_where_no_directory_can_be_made_it_stays_unknown(tmp_path: Path) -> None:
    found = locks(tmp_path / "none")
    assert found.state == "unknown"
    assert "No such file" in found.seen


@pytest.mark.parametrize(
    ("path", "allowed", "state", "words"),
    [
        ("/data/runs", False, "ok", "ext4, this machine's own"),
        ("/home/me/runs", False, "missing", "nfs4"),
        ("/home/me/runs", True, "ok", "run one orchestrator only"),
        ("/tmp/ray/session_2026-11-21_10-00-00_1_2/x", False, "missing", "Ray's session"),  # noqa: S108
    ],
)
def test_the_file_system_is_judged_as_a_run_would(
    path: str, allowed: bool, state: str, words: str
) -> None:
    found = place(Path(path), allow_network=allowed, mounts=MOUNTS)
    assert found.state == state
    assert words in found.seen


def test_a_system_that_names_no_file_systems_leaves_it_unknown() -> None:
    assert place(Path("/data"), mounts="").state == "unknown"
