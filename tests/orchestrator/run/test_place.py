"""A ledger lies on a disk of this machine, in a directory that stays."""

from pathlib import Path

import pytest

from orchestrator.run.files import check_place, file_system

MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:26 / /home rw shared:2 - nfs4 server:/home rw,vers=4.2
31 30 0:27 / /home/me/scratch rw - xfs /dev/sdb1 rw
32 22 0:28 / /lustre rw - lustre 10.0.0.1@tcp:/fs rw
33 22 0:29 / /mnt/c rw - 9p C:\134 rw,dirsync
34 22 0:30 / /mnt/my\040drive rw - fuse.sshfs me@server:/ rw
35 22 0:31 / /mnt/tab\011and\134slash rw - nfs server:/x rw
36 22 0:32 / /data rw - ext4 /dev/sdc1 rw
37 36 0:33 / /data rw - nfs4 server:/data rw
38 22 0:34 / /run rw master:3 propagate_from:2 - tmpfs tmpfs rw
""".strip()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/var/runs", "ext4"),
        ("/home", "nfs4"),
        ("/home/me/runs", "nfs4"),
        ("/home/me/scratch/runs", "xfs"),
        ("/home/me/scratchy", "nfs4"),
        ("/homeless/runs", "ext4"),
        ("/lustre/a/b/c", "lustre"),
        ("/mnt/c/runs", "9p"),
        ("/mnt/my drive/runs", "fuse.sshfs"),
        ("/mnt/my", "ext4"),
        ("/mnt/tab\tand\\slash/runs", "nfs"),
        ("/data/runs", "nfs4"),  # the later mount covers the one before
        ("/run/runs", "tmpfs"),
    ],
)
def test_the_innermost_mount_says_what_a_path_is_on(path: str, kind: str) -> None:
    assert file_system(Path(path), MOUNTS) == kind


def test_where_a_link_leads_is_what_counts(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "net")
    mounts = f"22 1 8:1 / / rw - ext4 x rw\n40 22 0:40 / {tmp_path.resolve()}/net rw - nfs x rw"
    with pytest.raises(ValueError, match=r"network file system \(nfs\)"):
        check_place(tmp_path / "runs/phase1/run", mounts=mounts)


RAY = "tmp/ray/session_2026-11-21_10-00-00_123456_789/runtime_resources/working_dir_files/pkg"


@pytest.mark.parametrize("below", ["", "/artifacts/cmaes/phase1/run"])
@pytest.mark.parametrize("allow", [False, True])
def test_rays_session_directory_is_refused_and_nothing_allows_it(below: str, allow: bool) -> None:
    with pytest.raises(ValueError, match=r"Ray's session directory.*--runs-dir"):
        check_place(Path(f"/{RAY}{below}"), allow_network=allow, mounts=MOUNTS)


def test_this_machines_own_mounts_are_read() -> None:
    assert file_system(Path("/proc/self").absolute()) == "proc"
