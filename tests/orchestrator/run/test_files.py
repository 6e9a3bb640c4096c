"""A run's directory: where it may be, what of it is resumed, and what can be salvaged."""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from budgets.events import Reserved
from orchestrator.execution.api import CONFIG, STARTED, SUMMARY, Attempt
from orchestrator.records.runs import Result
from orchestrator.run.files import check_place
from tests.ledgers import cut, every, state_of
from tests.orchestrator.conftest import NOISY

RunSearch = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]


def test_a_network_file_system_is_refused_unless_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path.resolve()
    mounts = {
        "/": "ext4",
        f"{root}/home": "nfs4",
        f"{root}/home/me/scratch": "xfs",
        f"{root}/my drive": "fuse.sshfs",
        f"{root}/net": "nfs",
    }
    found = [*mounts.items(), (f"{root}/home/new", "xfs"), (f"{root}/home/new", "nfs")]
    partitions = [SimpleNamespace(mountpoint=where, fstype=kind) for where, kind in found]
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: partitions)
    (root / "net").mkdir()
    (root / "link").symlink_to(root / "net")

    for place in ("runs", "home/me/scratch/runs", "homeless/runs", "network"):
        check_place(root / place)
    remote = {"home": "nfs4", "home/me/scratchy": "nfs4", "my drive/runs": "fuse.sshfs"}
    remote |= {"link/phase1/run": "nfs", "home/new/run": "nfs"}  # the later mount is on top
    for place, kind in remote.items():
        with pytest.raises(ValueError, match=rf"\({kind}\).*backend.allow_network_fs"):
            check_place(root / place)
        check_place(root / place, allow_network=True)


def test_files_of_another_attempt_are_moved_beside_and_kept(
    run: Path, run_search: RunSearch, found: Found
) -> None:
    whole, place = found(run), run / "eval" / every(Reserved, run)[0].place
    config = Attempt.model_validate_json((place / CONFIG).read_bytes())
    for name in (CONFIG, STARTED, SUMMARY):
        text = (place / name).read_text()
        (place / name).write_text(text.replace(config.attempt_id, "0" * 32))
    cut(run, 3)

    run_search(run.parent.parent, **NOISY)

    assert found(run) == whole
    kept = place.with_name(f"{place.name}.other")
    assert (kept / SUMMARY).exists()


def test_what_a_process_died_before_writing_is_written_when_the_command_is_repeated(
    run: Path, run_search: RunSearch
) -> None:
    state = state_of(run)
    shutil.rmtree(run / "reports")
    (run / "summary.md").write_text("of an older record")

    run_search(run.parent.parent, **NOISY)

    assert state.head in (run / "summary.md").read_text()
    assert len(list((run / "reports").iterdir())) == 4
