"""Whether the file system of the runs directory takes what a run writes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from budgets.ledger.writer import BALLAST_BYTES, LEAST_FREE_BYTES
from budgets.plain import move_command
from budgets.words import in_bytes
from orchestrator.doctor.finding import Finding

LEDGER_BYTES = 2048
"""Of one evaluation in the ledger and the files beside it: some 1,250 in tier target's."""


@dataclass(frozen=True)
class Room:
    """A file system as one user may use it."""

    free_bytes: int
    total_bytes: int
    free_inodes: int | None  # None where it does not count them
    writable: bool
    read_only: bool = False  # mounted so


@dataclass(frozen=True)
class Footprint:
    """What one evaluation leaves on disk; the largest seen, as blocks are given out."""

    largest_bytes: int
    inodes: int
    measured: int  # evaluations looked at; 0: assumed


ASSUMED = Footprint(largest_bytes=64 << 10, inodes=16, measured=0)
"""The default nanochat's takes 28 KiB and 10 inodes; logs may grow to 1 MiB each."""


@dataclass(frozen=True)
class Need:
    """What so many evaluations write."""

    name: str
    size_bytes: int
    inodes: int

    def fits(self, room: Room) -> bool:
        enough = room.free_inodes is None or room.free_inodes >= self.inodes
        return enough and room.free_bytes >= self.size_bytes


def needs(evaluations: Mapping[str, int], each: Footprint) -> tuple[Need, ...]:
    """The need of each, by its name, with the room that a run keeps free for its ledger."""
    beside = BALLAST_BYTES + LEAST_FREE_BYTES
    return tuple(
        Need(
            name=name,
            size_bytes=beside + count * (each.largest_bytes + LEDGER_BYTES),
            inodes=count * each.inodes,
        )
        for name, count in evaluations.items()
    )


def disk(directory: Path, room: Room | None, needed: tuple[Need, ...], each: Footprint) -> Finding:
    """Free bytes and inodes against what each takes; room for the least of them is needed.

    `directory` exists, on that file system.
    """
    item, look = "disk", f"df -h {directory}; df -i {directory}"
    if room is None:
        return Finding(item, "unknown", f"{directory} cannot be looked at", look)
    inodes = "" if room.free_inodes is None else f", {room.free_inodes:,} inodes"
    seen = f"{in_bytes(room.free_bytes)} of {in_bytes(room.total_bytes)} free{inodes}; "
    seen += f"{_rows(needed, room)} ({_basis(each)})"
    if any(need.fits(room) for need in needed):
        return Finding(item, "ok", seen)
    return Finding(item, "missing", seen, f"make room ({look}), or name another --runs-dir")


def _rows(needed: Iterable[Need], room: Room) -> str:
    rows = (
        f"{need.name} takes {in_bytes(need.size_bytes)}" + ("" if need.fits(room) else ": too much")
        for need in needed
    )
    return ", ".join(rows)


def _basis(each: Footprint) -> str:
    kib = f"{each.largest_bytes / 2**10:.0f} KiB and {each.inodes} inodes an evaluation"
    if each.measured:
        return f"{kib}, the most of {each.measured} here"
    return f"{kib}, assumed: nothing has run here yet"


def writable(
    directory: Path, parent: Path, room: Room | None, in_the_way: Path | None = None
) -> Finding:
    """Whether runs can be written there; `parent` is the nearest directory that exists.

    `in_the_way` is what has its name, or that of a directory above it, and is none.
    """
    if in_the_way is not None:
        aside = in_the_way.with_name(f"{in_the_way.name}.aside")
        mend = f"{move_command(in_the_way, aside)}, or name another --runs-dir"
        return Finding("writable", "missing", f"{in_the_way} is no directory", mend)
    if room is None:
        return Finding("writable", "unknown", f"{parent} cannot be looked at", f"ls -ld {parent}")
    there = "" if parent == directory else f" ({directory} would be made in it)"
    if room.writable:
        return Finding("writable", "ok", f"{parent}{there}")
    mend = f"chmod u+rwx {parent} (as its owner), or name another --runs-dir"
    if room.read_only:
        mend = f"mount -o remount,rw {parent} (its mount point), or name another --runs-dir"
    return Finding("writable", "missing", f"{parent} takes no files of yours{there}", mend)
