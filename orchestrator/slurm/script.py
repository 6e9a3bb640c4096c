"""`run.slurm` and `submit_all.sh`: constant shell code behind quoted values.

Nothing of a configuration is ever part of the code: it stands in an assignment, quoted, or in a
directive whose pattern leaves no room for another one (see `options`).
"""

from collections.abc import Iterator
from importlib.resources import files
from shlex import quote

from orchestrator.slurm.job import Export, Job, lead_seconds
from orchestrator.slurm.options import clock_text

LOG = "slurm-%j.out"


def run_script(export: Export, job: Job) -> str:
    """The job script of one run."""
    body = "cluster.sh" if export.uses_cluster else "alone.sh"
    parts = (
        "#!/usr/bin/env bash",
        *directives(export, job),
        f"# Run {job.name} of {export.name}: starts it, or takes it up where it stands.",
        "# shellcheck disable=SC1090,SC1091,SC2317 # sourced files are the cluster's; traps call",
        "# shellcheck disable=SC2054 # a comma in a path",
        "",
        *assignments(export, job),
        *setup(export),
    )
    return "\n".join(parts) + "\n" + "".join(map(template, ("start.sh", body, "end.sh")))


def directives(export: Export, job: Job) -> Iterator[str]:
    """What the job asks SLURM for."""
    options = export.options
    yield f"#SBATCH --job-name={export.name}-{job.name}"
    for option in ("partition", "account", "qos", "constraint"):
        if (value := getattr(options, option)) is not None:
            yield f"#SBATCH --{option}={value}"
    yield f"#SBATCH --time={clock_text(export.time_seconds(job))}"
    yield f"#SBATCH --nodes={options.nodes}"
    yield "#SBATCH --ntasks-per-node=1"
    yield f"#SBATCH --cpus-per-task={export.cpus(job)}"
    if gpus := export.gpus(job):
        kind = "" if options.gpu_type is None else f"{options.gpu_type}:"
        yield f"#SBATCH --gres=gpu:{kind}{gpus}"
    if options.mem is not None:
        yield f"#SBATCH --mem={options.mem}"
    if export.uses_cluster:
        yield "#SBATCH --exclusive"  # symmetric-run ends every Ray of the user on its nodes
    yield f"#SBATCH --output={LOG}"
    yield "#SBATCH --open-mode=append"  # a requeued job goes on in the same log
    yield f"#SBATCH --signal=B:USR1@{lead_seconds(options, job)}"
    yield "#SBATCH --requeue"
    yield "#SBATCH --dependency=singleton"  # one job at a time has the run's ledger
    yield from (f"#SBATCH {line}" for line in options.extra)


def assignments(export: Export, job: Job) -> Iterator[str]:
    """What the code below them works with."""
    config = str(export.run_directory(job) / "config.toml")
    command = (export.python, "-P", "-m", "orchestrator", "run", config)
    yield f"name={quote(job.name)}"
    yield f"run_dir={quote(str(export.run_directory(job)))}"
    yield f"work_dir={quote(str(export.work_directory))}"
    yield f"python={quote(export.python)}"
    yield f"command=({' '.join(map(quote, command))})"
    yield f"time_limit={export.time_seconds(job)}"
    yield f"max_requeues={export.requeues(job)}"
    if export.uses_cluster:
        yield f"nodes={export.options.nodes}"
        yield f"cpus={export.cpus(job)}"
        yield f"gpus={export.gpus(job)}"


def setup(export: Export) -> Iterator[str]:
    """The lines that come first, where relative paths begin; each must succeed."""
    if not export.options.setup:
        return
    yield ""
    yield 'cd -- "$work_dir" || exit 2'
    for line in export.options.setup:
        words = (f'"{word}"' if "$" in word else word for word in line.split(" "))
        yield f"{' '.join(words)} || exit 2"


def submit_script(export: Export) -> str:
    """Submits every run that was not submitted yet."""
    listed = "".join(f"  {quote(job.name)}\n" for job in export.jobs)
    return (
        "#!/usr/bin/env bash\n"
        f"# Submits the {export.jobs_in_words} of {export.name} in turn and writes their\n"
        "# ids into submitted.tsv. It stops at the first that is refused; call it again to go on:\n"
        "# what is listed there is skipped.\n"
        "# shellcheck disable=SC2054 # a comma in a name\n"
        "set -uo pipefail\n\n"
        f"runs=(\n{listed})\n" + template("submit_all.sh")
    )


def template(name: str) -> str:
    """Shell code as it lies beside this module."""
    return (files("orchestrator.slurm") / "templates" / name).read_text()
