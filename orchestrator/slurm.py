"""The runs of a file as SLURM jobs: a directory for each, and one script that submits them.

A value reaches the shell code of `slurm_templates/` only in a quoted assignment, or in a directive
whose pattern leaves no room for another one. The lines of `slurm.setup` are the user's own code.
"""

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from math import ceil
from pathlib import Path
from typing import Any, Literal, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from budgets.formatting import duration, plain, table
from budgets.measurements import measure
from budgets.plan import Calibration, Devices
from orchestrator.config import Budget, Config, Slurm, to_toml
from orchestrator.matrix.campaign import campaign_from, campaign_name, config_of
from orchestrator.plan.forecast import forecast_of, newest_calibration
from orchestrator.plan.phase2 import followed
from orchestrator.plan.resolve import family_of, parse_hours, run_name, search_plan, window_of
from orchestrator.records.runs import find_run

TEMPLATES = Path(__file__).parent / "slurm_templates"
SUBMIT, README = "submit_all.sh", "README.md"

MARGIN, START_SECONDS, ROUND_SECONDS = 1.25, 600, 300
"""A time limit is the p90 estimate times the margin, plus time to start and to end, rounded up."""

LEAD_SECONDS, MOST_LEAD_SECONDS = 300, 65535  # SLURM counts a signal's seconds in 16 bits
DRAIN_RESERVE = 30.0  # s between the last evaluation's end and the job's: report, requeue
REQUEUES = 10  # of a search; a single evaluation would begin again each time


class Job(NamedTuple):
    """One run of the export, in a directory of its name."""

    name: str
    config_text: str  # TOML
    cpus: int
    gpus: int
    lead_seconds: int  # from so long before the limit no evaluation starts
    limit_seconds: int
    max_requeues: int
    expected_seconds: float | None  # wall clock, p90; None: no time is known


class Export(NamedTuple):
    """Jobs to be submitted together. Paths are absolute."""

    name: str
    directory: Path
    work_directory: Path  # where relative paths of the configuration begin
    python: Path
    jobs: tuple[Job, ...]
    slurm: Slurm


def export_of(config: Config, out: Path | None = None) -> Export:
    """Return the jobs of a configuration. Raises ValueError, naming what cannot be exported."""
    name = (config.campaign is None and config.search.run_id) or campaign_name(config)
    directory = Path(os.path.abspath(out or name))  # no `..` in scripts
    python = Path(config.slurm.python or sys.executable).expanduser().absolute()
    jobs = tuple(_jobs(config, directory))
    return Export(name, directory, Path.cwd(), python, jobs, config.slurm)


def _jobs(config: Config, directory: Path) -> Iterator[Job]:
    """Yield a search, or one evaluation for every condition of a campaign on every seed."""
    if config.campaign is None:
        if config.search.tier is None:
            raise ValueError("search.tier: say how much to spend: min, target or max")
        name = run_name(config)
        own: dict[str, Any] = {"search.run_id": name}
        if config.search.follows is not None:  # by its directory: the job has another runs_dir
            phase1 = find_run(config.search.follows, Path(config.runs_dir))
            own["search.follows"] = str(phase1.absolute())
        yield _job(config, directory, name, own)
        return
    campaign = campaign_from(config)
    for condition, seed, name in campaign.runs:
        own = {
            **_shares(config.budget, campaign.evaluations),
            "campaign.name": re.sub(r"[^a-z0-9._-]", "-", name.lower())[:64],
            "campaign.seeds": [seed],
            "campaign.controls": False,
            "campaign.conditions": [{"name": condition.name}],
        }
        yield _job(config_of(config, condition), directory, name, own)


def _shares(budget: Budget, runs: int) -> dict[str, Any]:
    """Return an equal share of the campaign's caps for each run. Raises ValueError on none."""
    found: dict[str, Any] = {}
    for name in ("max_evals", "max_device_hours", "max_hours", "max_cost"):
        if (cap := getattr(budget, name)) is not None:
            found[f"budget.{name}"] = cap // runs if name == "max_evals" else cap / runs
            if not found[f"budget.{name}"]:
                raise ValueError(f"[budget] {name}: {cap} cannot be shared by {runs} runs")
    return found


def _job(config: Config, directory: Path, name: str, own: Mapping[str, Any]) -> Job:
    """Return a job with its share of the cluster, its time limit, and its configuration.

    `own` are values that only this run's configuration has.
    """
    backend, is_search = config.backend, config.campaign is None
    kind: Literal["cpu", "cuda"] = "cuda" if backend.device == "cuda" else "cpu"
    slots, threads = (backend.workers or 1) if is_search else 1, backend.threads or 1
    devices = Devices(
        count=slots, kind=kind, name="a device of the cluster", threads=threads, memory_bytes=1
    )
    each, expected = _expected(config, devices)
    lead, limit = _lead_and_limit(name, config, each, expected)
    left_out = ("preset", "profile", "factors", "slurm", *["campaign"] * is_search)
    values = {k: v for k, v in config.all_values().items() if k.partition(".")[0] not in left_out}
    values |= {
        "runs_dir": str(directory / name),
        "backend.executor": "local" if backend.executor == "ray" else backend.executor,
        "backend.address": None,  # a job runs on a node of its own
        "backend.device": kind,
        "backend.workers": slots,
        "backend.threads": threads,
        "backend.drain_seconds": lead - DRAIN_RESERVE,
        **own,
    }
    window = window_of(config.budget)
    if window is not None and window.until is not None:  # a node may be in another zone
        values["budget.window"] = window.until.isoformat()
    comment = f"Run {name}: every value that decides it, as exported from {config.file}."
    return Job(
        name=name,
        config_text=to_toml(values, comment),
        cpus=slots * threads,
        gpus=slots if kind == "cuda" else 0,
        lead_seconds=lead,
        limit_seconds=limit,
        max_requeues=REQUEUES if is_search else 0,
        expected_seconds=expected,
    )


def _lead_and_limit(
    name: str, config: Config, each: float, expected: float | None
) -> tuple[int, int]:
    """Return the seconds before the time limit from which no evaluation starts, and the limit.

    The first is what one evaluation of a search takes, so that none is cut and paid twice.
    """
    wanted = ceil(each * MARGIN / 60) * 60 + 60 if config.campaign is None else 0
    lead = min(max(LEAD_SECONDS, wanted), MOST_LEAD_SECONDS)
    if (time := config.slurm.time) is not None:
        limit = ceil(round(60 * parse_hours("slurm.time", time), 6)) * 60
    elif expected is None:
        raise ValueError(f'slurm.time: no time of {name} is known: say time = "4h", or calibrate')
    else:
        wanted = ceil(expected * MARGIN) + START_SECONDS + lead
        limit = ceil(wanted / ROUND_SECONDS) * ROUND_SECONDS
    least = max(lead + 120, ceil(each) + 60)  # SLURM may send the signal a minute early
    if limit < least:
        raise ValueError(f"slurm.time: {name} needs {duration(least)} or more, got {time}")
    return lead, limit


def _expected(config: Config, devices: Devices) -> tuple[float, float | None]:
    """Return the seconds (p90) of an evaluation and of the run; 0 and None where none is known.

    A calibration on any CPU, or any GPU, counts: the jobs' devices are not known yet.
    """
    root, assumed = Path(config.runs_dir), config.evaluation.assume_eval_seconds
    found = newest_calibration(root, family_of(config.tuned, devices.kind))
    if assumed is not None:
        known = Calibration(assumed_seconds=assumed)
    elif found is not None:
        known = measure(found.state)
    else:
        return 0.0, None
    if config.campaign is not None:
        return known.p90_seconds, known.p90_seconds
    plan = search_plan(config, devices, known, followed(root, config, devices.kind))
    # The job calibrates on its own devices, so a measured time is no more than a prior one here.
    forecast = forecast_of(plan, calibrates=assumed is None)
    assert forecast is not None, "a time of an evaluation is known"
    return known.p90_seconds, 3600 * (forecast.hours_p90 + forecast.long_run_hours_p50)


def files_of(export: Export) -> dict[str, str]:
    """Return the text of every file of the export, by its path."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - shell code: every value goes through `quoted`
    )
    environment.filters |= {"quoted": lambda value: shlex.quote(str(value)), "plain": plain}

    def rendered(name: str, **more: Any) -> str:
        return environment.get_template(f"{name}.j2").render(export=export, **more)

    rows = (
        (
            plain(job.name),
            "no estimate" if job.expected_seconds is None else duration(job.expected_seconds),
            *(duration(job.limit_seconds), job.cpus, job.gpus),
        )
        for job in export.jobs
    )
    jobs = "\n".join(table(("run", ">p90", ">limit", ">CPUs", ">GPUs"), rows))
    files = {SUBMIT: rendered(SUBMIT), README: rendered(README, table=jobs)}
    for job in export.jobs:
        files[f"{job.name}/config.toml"] = job.config_text
        files[f"{job.name}/run.slurm"] = rendered("run.slurm", job=job)
    return files


def write(directory: Path, files: Mapping[str, str]) -> None:
    """Write the files, the script that submits last. Raises ValueError if `directory` exists."""
    if directory.exists():
        raise ValueError(f"{directory} is there already: name another directory with --out")
    for path in sorted(files, key=SUBMIT.__eq__):
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(files[path])
    (directory / SUBMIT).chmod(0o755)
