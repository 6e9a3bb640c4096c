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
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from budgets.formatting import duration, plain
from budgets.measurements import measure
from budgets.plan import Calibration
from orchestrator.config import Config, to_toml
from orchestrator.execution.devices import Kind, make_devices
from orchestrator.matrix.campaign import campaign_from, campaign_matrix, campaign_name, config_of
from orchestrator.plan.forecast import forecast_of, newest_calibration
from orchestrator.plan.phase2 import followed
from orchestrator.plan.resolve import family_of, parse_hours, run_name, search_plan, window_of
from orchestrator.records.runs import find_run

TEMPLATES = Path(__file__).parent / "slurm_templates"
README, SUBMIT = "README.md", "submit_all.sh"

MARGIN, START_SECONDS, ROUND_SECONDS = 1.25, 600, 300
"""A time limit is the p90 estimate times the margin, plus time to start and to end, rounded up."""

LEAD_SECONDS, MOST_LEAD_SECONDS = 300, 65535  # SLURM counts a signal's seconds in 16 bits
DRAIN_RESERVE = 30.0  # s between the last evaluation's end and the job's: report, requeue
REQUEUES = 10  # of a search; a single evaluation would begin again each time
SHARED = ("max_device_hours", "max_hours", "max_cost")  # of a campaign, among its jobs


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


def exported(config: Config, out: Path | None = None) -> tuple[Path, dict[str, str]]:
    """Return the directory of an export, and the text of each file in it by its path.

    Paths in the scripts are absolute. Raises ValueError, naming what cannot be exported.
    """
    name = (config.campaign is None and config.search.run_id) or campaign_name(config)
    directory = Path(os.path.abspath(out or name))  # no `..` in scripts
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - shell code: every value goes through `quoted`
    )
    quoted = {"quoted": lambda value: shlex.quote(str(value))}
    environment.filters |= {"plain": plain, "duration": duration, **quoted}
    environment.globals |= {
        "name": name,
        "directory": directory,
        "work_directory": Path.cwd(),  # where relative paths of the configuration begin
        "python": Path(config.slurm.python or sys.executable).expanduser().absolute(),
        "slurm": config.slurm,
        "jobs": (jobs := [*_jobs(config, directory)]),
    }
    script, files = environment.get_template("run.slurm.j2"), dict[str, str]()
    for job in jobs:
        files |= {f"{job.name}/config.toml": job.config_text}
        files |= {f"{job.name}/run.slurm": script.render(job=job)}
    for path in (README, SUBMIT):
        files[path] = environment.get_template(f"{path}.j2").render()
    return directory, files


def write(directory: Path, files: Mapping[str, str]) -> None:
    """Write the files in order. Raises ValueError if `directory` exists."""
    if directory.exists():
        raise ValueError(f"{directory} is there already: name another directory with --out")
    for path, text in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    (directory / SUBMIT).chmod(0o755)


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
    campaign_matrix(config, campaign)  # raises if max_evals is too low
    caps = {name: getattr(config.budget, name) for name in SHARED}
    shares = {f"budget.{name}": cap / campaign.evaluations for name, cap in caps.items() if cap}
    for condition, seed, name in campaign.runs:
        own = {
            **shares,
            "budget.max_evals": None,
            "campaign.name": re.sub(r"[^a-z0-9._-]", "-", name.lower())[:64],
            "campaign.seeds": [seed],
            "campaign.controls": False,
            "campaign.conditions": [{"name": condition.name}],
        }
        yield _job(config_of(config, condition), directory, name, own)


def _job(config: Config, directory: Path, name: str, own: Mapping[str, Any]) -> Job:
    """Return a job with its share of the cluster, its time limit, and its configuration.

    `own` are values that only this run's configuration has.
    """
    backend, is_search = config.backend, config.campaign is None
    kind: Kind = "cuda" if backend.device == "cuda" else "cpu"
    slots, threads = (backend.workers or 1) if is_search else 1, backend.threads or 1
    each, expected = _expected(config, kind, slots)
    # As long as one evaluation of a search takes: none is cut by the limit, and paid twice.
    lead = max(LEAD_SECONDS, ceil(each * MARGIN / 60) * 60 + 60 if is_search else 0)
    lead = min(lead, MOST_LEAD_SECONDS)
    if (time := config.slurm.time) is not None:
        limit = ceil(round(60 * parse_hours("slurm.time", time), 6)) * 60
    elif expected is None:
        raise ValueError(f'slurm.time: no time of {name} is known: say time = "4h", or calibrate')
    else:
        limit = ceil((expected * MARGIN + START_SECONDS + lead) / ROUND_SECONDS) * ROUND_SECONDS
    least = max(lead + 120, ceil(each) + 60)  # SLURM may send the signal a minute early
    if limit < least:
        raise ValueError(f"slurm.time: {name} needs {duration(least)} or more, got {time}")
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
    if (window := window_of(config.budget)) and window.until:  # a node may be in another zone
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


def _expected(config: Config, kind: Kind, slots: int) -> tuple[float, float | None]:
    """Return the seconds (p90) of an evaluation and of the run; 0 and None where none is known.

    A calibration on any CPU, or any GPU, counts: the jobs' devices are not known yet.
    """
    root, assumed = Path(config.runs_dir), config.evaluation.assume_eval_seconds
    found = newest_calibration(root, family_of(config.tuned, kind))
    if assumed is not None:
        known = Calibration(assumed_seconds=assumed)
    elif found is not None:
        known = measure(found.state)
    else:
        return 0.0, None
    if config.campaign is not None:
        return known.p90_seconds, known.p90_seconds
    plan = search_plan(config, make_devices(slots, kind), known, followed(root, config, kind))
    # The job calibrates on its own devices, so a measured time is no more than a prior one here.
    forecast = forecast_of(plan, calibrates=assumed is None)
    assert forecast is not None, "a time of an evaluation is known"
    return known.p90_seconds, 3600 * (forecast.hours_p90 + forecast.long_run_hours_p50)
