"""Whether a directory is a place for a ledger: on a disk of this machine, and there to stay."""

import re
from pathlib import Path

from budgets.ledger import LedgerStorageError

NETWORK = frozenset(
    (
        *("9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "nfs", "nfs4"),
        *("ocfs2", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "wekafs"),
        *("fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"),
    )
)
"""File systems, as the kernel names them, whose locks and fsync are not the local kernel's."""

MOUNTS = Path("/proc/self/mountinfo")

_RAY_SESSION = re.compile(r"/ray/session_\d{4}-\d\d-\d\d_[^/]+/")


def check_place(directory: Path, *, allow_network: bool = False, mounts: str | None = None) -> None:
    """Raises ValueError, saying what to do, where a ledger would not be safe.

    `mounts` is the text of /proc/self/mountinfo, the machine's own by default.
    """
    where = directory.absolute().resolve()
    if _RAY_SESSION.search(f"{where}/"):
        raise ValueError(
            f"{where} lies in Ray's session directory, a copy that Ray throws away: give a "
            "lasting directory with --runs-dir"
        )
    kind = file_system(where, mounts)
    if kind in NETWORK and not allow_network:
        raise ValueError(
            f"{where} is on a network file system ({kind}), where another machine could open the "
            "same ledger unseen: give a local directory with --runs-dir, or say "
            "--set backend.allow_network_fs=true if you will run one orchestrator only"
        )


def make_directory(directory: Path) -> None:
    """Raises LedgerStorageError when it cannot be there."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerStorageError(
            f"cannot make {directory}: {error.strerror}. Name another --runs-dir"
        ) from error


def file_system(path: Path, mounts: str | None = None) -> str:
    """The kernel's name of the file system that `path` is, or will be, on; empty if unknown."""
    if mounts is None:
        mounts = MOUNTS.read_text() if MOUNTS.exists() else ""
    kind, longest = "", -1
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        mounted = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), before.split(" ")[4])
        if path.is_relative_to(mounted) and len(mounted) >= longest:
            kind, longest = after.split(" ")[0], len(mounted)
    return kind
