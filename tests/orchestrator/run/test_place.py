"""A ledger must be on a local disk."""

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from orchestrator.run.files import check_place, file_system

MOUNTS = {
    "/": "ext4",
    "/home": "nfs4",
    "/home/me/scratch": "xfs",
    "/mnt/my drive": "fuse.sshfs",
}


@pytest.fixture
def mounts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of a machine with some network drives, one of them where a link of this test leads."""
    found = [*MOUNTS.items(), (f"{tmp_path.resolve()}/net", "xfs"), (f"{tmp_path}/net", "nfs")]
    partitions = [SimpleNamespace(mountpoint=where, fstype=kind) for where, kind in found]
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: partitions)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/runs", "ext4"),
        ("/home", "nfs4"),
        ("/home/me/scratch/runs", "xfs"),
        ("/home/me/scratchy", "nfs4"),
        ("/homeless/runs", "ext4"),
        ("/mnt/my drive/runs", "fuse.sshfs"),
    ],
)
def test_a_network_file_system_is_refused_unless_allowed(
    path: str, kind: str, mounts: None
) -> None:
    assert file_system(Path(path)) == kind
    if kind not in ("ext4", "xfs"):
        with pytest.raises(ValueError, match=rf"\({kind}\).*backend.allow_network_fs"):
            check_place(Path(path))
    check_place(Path(path), allow_network=True)


def test_where_a_link_leads_is_what_counts(tmp_path: Path, mounts: None) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "net")
    with pytest.raises(ValueError, match=r"network file system \(nfs\)"):
        check_place(tmp_path / "runs/phase1/run")  # the later mount covers the one before
