"""Every file of an export, as text by its path: what is previewed is what is written."""

import hashlib
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from budgets.ledger.storage import document
from orchestrator.slurm.job import Export, Job
from orchestrator.slurm.readme import readme
from orchestrator.slurm.script import run_script, submit_script

MANIFEST, README, SUBMIT, SUBMITTED = "manifest.json", "README.md", "submit_all.sh", "submitted.tsv"
EXPORT = "export.json"
"""What was written, by hash: the manifest belongs to whoever says how the runs stand."""

CONFIG, SCRIPT = "config.toml", "run.slurm"
EXECUTABLE = frozenset((SUBMIT,))

Tree = Mapping[PurePosixPath, str]


def files_of(export: Export) -> dict[PurePosixPath, str]:
    """All files; the last one holds the others' hashes.

    Raises ValueError where a run is called like one of the files beside it.
    """
    own = (MANIFEST, README, SUBMIT, SUBMITTED, EXPORT)
    for job in export.jobs:
        if job.name.lower() in (name.lower() for name in own):
            raise ValueError(f"run {job.name}: a file of the export has that name")
    files = {
        PurePosixPath(SUBMIT): submit_script(export),
        PurePosixPath(README): readme(export),
    }
    for job in export.jobs:
        files[PurePosixPath(job.name, CONFIG)] = job.config_text
        files[PurePosixPath(job.name, SCRIPT)] = run_script(export, job)
    hashes = {str(path): digest(text) for path, text in files.items()}
    files[PurePosixPath(MANIFEST)] = manifest(export)
    return {**files, PurePosixPath(EXPORT): document({"kind": "slurm", "files": hashes}).decode()}


def manifest(export: Export) -> str:
    """What the runs are and where they lie, as JSON; `status DIR` reads it."""
    content = {
        "name": export.name,
        "kind": "slurm",
        "objective": export.objective,
        "total_runs": len(export.jobs),
        "conditions": list(dict.fromkeys(job.condition for job in export.jobs)),
        "seeds": list(dict.fromkeys(job.seed for job in export.jobs if job.seed is not None)),
        "controls": list(dict.fromkeys(job.condition for job in export.jobs if job.control)),
        "runs": [described(job) for job in export.jobs],
    }
    return document(content).decode()


def described(job: Job) -> dict[str, Any]:
    """One run in the manifest."""
    return {
        "name": job.name,
        "directory": job.name,
        "condition": job.condition,
        "seed": job.seed,
        "control": job.control,
        "levels": dict(job.levels),
    }


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
