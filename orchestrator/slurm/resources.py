"""Whether everything a job needs is here, as far as this machine can tell."""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from budgets.plain import plain
from budgets.words import in_bytes
from objectives.api import Objective, SetupError
from objectives.registry import kind
from orchestrator.slurm.job import Export


@dataclass(frozen=True)
class Resource:
    """Something that the jobs need; `mend` is what to do where it is missing."""

    name: str
    state: Literal["ok", "missing", "unknown"]
    said: str
    mend: str = ""


def resources(export: Export, objectives: tuple[Objective, ...]) -> tuple[Resource, ...]:
    """Data, interpreter, disk and SLURM."""
    return (
        *_data(objectives),
        _interpreter(export),
        _disk(export.directory),
        *_slurm(export),
    )


def _data(objectives: tuple[Objective, ...]) -> Iterator[Resource]:
    """Each distinct complaint of the objectives once."""
    seen: dict[str, Resource] = {}
    for objective in objectives:
        name = f"objective {kind(objective.spec)}"
        try:
            warnings = objective.preflight()
        except (SetupError, ValueError) as error:
            found = Resource(name, "missing", str(error), "mend what it says, then export again")
        else:
            said = "; ".join(warnings) or "can be evaluated: data and settings are there"
            found = Resource(name, "ok", said)
        seen.setdefault(found.said, found)
    yield from seen.values()


def _interpreter(export: Export) -> Resource:
    python = export.python
    if os.access(python, os.X_OK) and Path(python).is_file():
        return Resource("interpreter", "ok", f"{python} (must lie where all nodes see it)")
    mend = "give the one of the cluster's environment as slurm.python"
    return Resource("interpreter", "missing", f"{python} cannot be run here", mend)


def _disk(directory: Path) -> Resource:
    there = next(place for place in (directory, *directory.parents) if place.exists())
    if not os.access(there, os.W_OK):
        mend = "name another DIR"
        return Resource("directory", "missing", f"{there} cannot be written to", mend)
    free = shutil.disk_usage(there).free
    return Resource("directory", "ok", f"{there}: {in_bytes(free)} free")


def _slurm(export: Export) -> Iterator[Resource]:
    if shutil.which("sbatch"):
        yield Resource("sbatch", "ok", "on the PATH")
    else:
        mend = f"run {export.directory}/submit_all.sh on a login node"
        yield Resource("sbatch", "missing", "not on this machine's PATH", mend)
    if export.options.partition is None:
        yield Resource("partition", "unknown", "none given: the cluster's default")


def in_words(found: Sequence[Resource]) -> str:
    """As a Markdown list."""
    return "\n".join(
        f"- **{one.state}** {plain(one.name)}: {plain(one.said)}"
        + (f". Mend: {plain(one.mend)}" if one.mend else "")
        for one in found
    )
