"""What an export would write, for a person to look at first."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from budgets.plain import plain
from budgets.table import table
from budgets.words import duration
from orchestrator.slurm.job import Export, Job
from orchestrator.slurm.options import clock_text
from orchestrator.slurm.resources import Resource, in_words

SHOWN = 3
"""Directories of a tree that are drawn; of more, the rest is counted."""


def runs_table(export: Export) -> str:
    """All runs as a Markdown table: what differs, run or control, time, GPUs."""
    factors = export.factors or ("condition",)
    own = (">#", "run", *map(plain, factors), "seed", "type")
    columns = (*own, ">est. time", ">limit", ">nodes", ">GPUs")
    cells = (_cells(export, job, at) for at, job in enumerate(export.jobs, 1))
    return "\n".join(table(columns, cells))


def _cells(export: Export, job: Job, at: int) -> tuple[str, ...]:
    varied = (
        (plain(job.levels.get(factor, "-")) for factor in export.factors)
        if export.factors
        else (plain(job.condition),)
    )
    nodes = export.options.nodes
    return (
        str(at),
        plain(job.name),
        *varied,
        "-" if job.seed is None else str(job.seed),
        "control" if job.control else "run",
        "no estimate" if job.seconds is None else duration(job.seconds),
        clock_text(export.time_seconds(job)),
        str(nodes),
        str(nodes * export.gpus(job)),
    )


def hours_in_words(export: Export) -> str:
    """Device-hours of all runs: expected, and what the time limits would let them take."""
    most = sum(
        export.time_seconds(job) * job.slots * (1 + export.requeues(job)) for job in export.jobs
    )
    once = sum(export.time_seconds(job) * job.slots for job in export.jobs) / 3600
    known = [job.device_seconds for job in export.jobs if job.device_seconds is not None]
    kind = "GPU-hours" if export.options.gpus else "device-hours"
    if not known:
        said = f"Expected {kind}: no estimate."
    elif len(known) < len(export.jobs):
        said = (
            f"Expected {kind}: {sum(known) / 3600:.3g} for {len(known)} of {len(export.jobs)} "
            "runs, no estimate for the others."
        )
    else:
        said = f"Expected {kind}: {sum(known) / 3600:.3g}."
    return f"{said} At most {once:.3g} until the time limits, {most / 3600:.3g} with all requeues."


def tree_text(export: Export) -> str:
    """The directory as it would be."""
    names = [job.name for job in export.jobs]
    shown = names if len(names) <= SHOWN + 1 else names[:SHOWN]
    lines = [f"{export.directory}/"]
    for name in shown:
        lines += [f"  {name}/", "    config.toml", "    run.slurm"]
    if len(shown) < len(names):
        lines.append(f"  ... {len(names) - len(shown)} more directories like these")
    return "\n".join([*lines, "  submit_all.sh", "  README.md", "  manifest.json", "  export.json"])


def naming(export: Export) -> str:
    """How the runs are named, by example."""
    runs = [job for job in export.jobs if not job.control]
    controls = [job.name for job in export.jobs if job.control]
    seeded = "_s{seed}" if any(job.seed is not None for job in export.jobs) else ""
    pattern = "_".join(f"{factor}{{level}}" for factor in export.factors) or "{condition}"
    lines = [f"`{pattern}{seeded}`, for example {_examples([job.name for job in runs])}"]
    if controls:
        lines.append(f"controls `{{control}}_base{seeded}`, for example {_examples(controls)}")
    return "; ".join(lines) + "."


def _examples(names: list[str]) -> str:
    return ", ".join(plain(name) for name in names[:SHOWN]) or "none"


def as_dict(export: Export, found: Sequence[Resource], files: list[str]) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "name": export.name,
        "directory": str(export.directory),
        "total_runs": len(export.jobs),
        "runs": [_job(export, job) for job in export.jobs],
        "files": files,
        "resources": [asdict(one) for one in found],
    }


def _job(export: Export, job: Job) -> dict[str, Any]:
    nodes = export.options.nodes
    return {
        "name": job.name,
        "condition": job.condition,
        "seed": job.seed,
        "control": job.control,
        "levels": dict(job.levels),
        "estimated_seconds": job.seconds,
        "estimated_device_seconds": job.device_seconds,
        "estimate_from": job.source,
        "limit_seconds": export.time_seconds(job),
        "nodes": nodes,
        "gpus": nodes * export.gpus(job),
        "cpus": nodes * export.cpus(job),
    }


def preview(export: Export, found: Sequence[Resource], notes: Sequence[str]) -> str:
    """Everything a person looks at before `--write`, as Markdown."""
    controls = sum(job.control for job in export.jobs)
    noted = "\n".join(f"- note: {plain(note)}" for note in notes)
    return f"""# {plain(export.name)}: {export.jobs_in_words}

{len(export.jobs) - controls} to compare, {controls} controls.

{runs_table(export)}

{hours_in_words(export)} {_estimates(export)}

## Names

{naming(export)}

## Directory

```
{tree_text(export)}
```

## Resources

{in_words(found)}
{noted}"""


def _estimates(export: Export) -> str:
    """Where the estimates come from."""
    sources = dict.fromkeys(job.source for job in export.jobs if job.source)
    return " ".join(f"Time: {plain(source)}." for source in sources)
