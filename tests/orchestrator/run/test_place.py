"""A ledger must be on a local disk."""

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from orchestrator.run.files import check_place


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
