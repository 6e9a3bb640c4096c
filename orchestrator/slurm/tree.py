"""Every file of an export, as text by its path: what is previewed is what is written."""

import hashlib
from collections.abc import Mapping
from pathlib import PurePosixPath

import orjson

from orchestrator.slurm.job import Export, Job
from orchestrator.slurm.readme import readme
from orchestrator.slurm.script import run_script, submit_script

MANIFEST, README, SUBMIT, SUBMITTED = "manifest.json", "README.md", "submit_all.sh", "submitted.tsv"
CONFIG, SCRIPT = "config.toml", "run.slurm"
EXECUTABLE = frozenset((SUBMIT,))

Tree = Mapping[PurePosixPath, str]


def files_of(export: Export) -> dict[PurePosixPath, str]:
    """All files, the manifest with everybody's hash as the last.

    Raises ValueError where a run is called like one of the files beside it.
    """
    own = (MANIFEST, README, SUBMIT, SUBMITTED)
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
    return {**files, PurePosixPath(MANIFEST): manifest(export, files)}


def manifest(export: Export, files: Tree) -> str:
    """What the runs are and which files were written, as JSON."""
    document = {
        "name": export.name,
        "kind": "slurm",
        "total_runs": len(export.jobs),
        "conditions": list(dict.fromkeys(job.condition for job in export.jobs)),
        "seeds": list(dict.fromkeys(job.seed for job in export.jobs if job.seed is not None)),
        "runs": [described(job) for job in export.jobs],
        "files": {str(path): digest(text) for path, text in files.items()},
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def described(job: Job) -> dict[str, object]:
    """One run in the manifest."""
    return {
        "name": job.name,
        "directory": job.name,
        "run": f"{job.name}/{job.run}",
        "condition": job.condition,
        "seed": job.seed,
        "control": job.control,
        "levels": dict(job.levels),
    }


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
