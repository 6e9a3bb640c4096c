"""A run's directory: where it may be, and which run it holds."""

from itertools import chain
from pathlib import Path

from budgets.events import Owner, Planned
from budgets.formatting import PROGRAM
from budgets.ledger import Ledger, LedgerCorruptError, LedgerStorageError, set_aside_command
from budgets.plan import Plan
from budgets.state import Observer, RunState, begin, fold
from objectives.registry import CALLABLE
from orchestrator.plan.differences import differences, in_short
from orchestrator.run.attempts import Run

NETWORK = frozenset(
    (
        *("9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "nfs", "nfs4"),
        *("ocfs2", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "wekafs"),
        *("fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"),
    )
)
"""File systems, by their names in the kernel, whose locks and fsync are not local."""


def check_place(directory: Path, *, allow_network: bool = False) -> None:
    """Raise ValueError with the remedy if a ledger would not be safe there."""
    where = directory.absolute().resolve()
    kind = file_system(where)
    if kind in NETWORK and not allow_network:
        raise ValueError(
            f"{where} is on a network file system ({kind}), where another machine could open the "
            "same ledger unseen: give a local directory with --runs-dir, or say "
            "--set backend.allow_network_fs=true if you will run one orchestrator only"
        )


def make_directory(directory: Path) -> None:
    """Make a directory for this user alone. Raises LedgerStorageError if that fails."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerStorageError(
            f"cannot make {directory}: {error.strerror}. Name another --runs-dir"
        ) from error


def file_system(path: Path) -> str:
    """Return the kernel's name of the file system at `path`; empty if unknown."""
    import psutil

    mounts = [m for m in psutil.disk_partitions(all=True) if path.is_relative_to(m.mountpoint)]
    by_length = {len(mount.mountpoint): mount.fstype for mount in mounts}  # the last one is on top
    return by_length[max(by_length)] if by_length else ""


class PlanChangedError(ValueError):
    """The run directory belongs to another plan."""


def open_run(ledger: Ledger, plan: Plan, owner: Owner, observers: list[Observer]) -> Run:
    """Return the run of `plan`: the one in the ledger, or a new one if the ledger is empty.

    Raises PlanChangedError if the ledger belongs to another plan.
    """
    records = ledger.replay()
    first = next(records, None)
    if first is None:
        _refuse_orphans(ledger.path.parent)
        first = ledger.seal(Planned(plan=plan))
        ledger.append(first)
        return Run(ledger, begin(first), owner, observers)
    state = fold(chain([first], records))
    check_same_plan(ledger.path.parent, state, plan)
    return Run(ledger, state, owner, observers)


def _refuse_orphans(directory: Path) -> None:
    """Raise LedgerCorruptError if there are evaluations although the ledger is gone."""
    evaluations = directory / "eval"
    if evaluations.is_dir() and any(evaluations.iterdir()):
        raise LedgerCorruptError(
            f"{directory} holds evaluations that were paid for, but its ledger is gone or empty. "
            f"Nothing was changed. Put the ledger back from a backup, or begin again with: "
            f"{set_aside_command(directory)}"
        )


def check_same_plan(directory: Path, recorded: RunState, asked: Plan) -> None:
    """Raise PlanChangedError with the differences if the plans do not describe the same run.

    The asked plan may be the run's first one or the one that amendments have made of it.
    """
    changed = differences(recorded.planned, asked)
    if not changed or not differences(recorded.plan, asked):
        return
    way = "Repeat the recorded options, or give the new run its own name (--run-id NAME)"
    if asked.objective.name.startswith(CALLABLE):
        way = "Put the call back as it was, or give the new search its own name (name=...)"
    elif asked.campaign is not None:
        way = "Put the file back as it was, or give the campaign a [campaign] name of its own"
    if all(name.startswith(("caps.", "resolved.generations")) for name in changed):
        way = f"Caps change by: {PROGRAM} amend {directory} ... --reason WHY"
    raise PlanChangedError(
        f"{directory} holds another plan (recorded -> asked): {in_short(changed)}. {way}."
    )
