"""From a configuration to its jobs: one for each cell on each seed, or one for a search."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.campaign.cells import campaign_of, runs_of, terms_of
from orchestrator.campaign.searches import search_cells, shares
from orchestrator.config import Config, resolve, to_toml
from orchestrator.planning.configured import request_of, window_of
from orchestrator.planning.request import run_name
from orchestrator.records.recorded import find_run
from orchestrator.slurm.asked import check_backend
from orchestrator.slurm.estimate import (
    DeviceKind,
    Estimate,
    measured,
    of_evaluation,
    of_search,
    unseen,
)
from orchestrator.slurm.job import Job, lead_seconds
from orchestrator.slurm.options import SlurmOptions

DRAIN_RESERVE = 30.0
"""Seconds that are left, after what ran was killed, for the report and the requeue."""

LEFT_OUT = ("preset", "profile", "factors", "slurm")
"""Keys and tables that the other values follow from."""


@dataclass(frozen=True)
class Jobs:
    """Makes the jobs of a configuration that lie in `directory`."""

    resolved: Config
    directory: Path
    options: SlurmOptions

    @property
    def kind(self) -> DeviceKind:
        return "cuda" if self.options.gpus else "cpu"

    def all(self) -> tuple[Job, ...]:
        """Raises ValueError, naming key or cell, where one cannot be."""
        check_backend(self.resolved, self.options)
        if self.resolved.campaign is None:
            return (self._single(),)
        if campaign_of(self.resolved).cell == "search":
            return tuple(self._searches())
        return tuple(self._trainings())

    def _single(self) -> Job:
        request = request_of(self.resolved)
        name = run_name(request)
        return self._search_job(name, name, self.resolved, request.search_seed)

    def _searches(self) -> Iterator[Job]:
        levels = {cell.name: cell.levels for cell, _, _ in runs_of(self.resolved)}
        for cell in search_cells(self.resolved):
            name = f"{cell.condition}_s{cell.seed}"
            job = self._search_job(name, cell.condition, cell.resolved, cell.seed)
            yield replace(job, control=cell.control, levels=levels[cell.condition])

    def _search_job(self, name: str, condition: str, one: Config, seed: int) -> Job:
        if one.search.tier is None:
            raise ValueError("search.tier: say how much to spend: min, target or max")
        request = request_of(one)
        root = Path(one.runs_dir)
        slots = one.backend.workers or self.options.nodes
        run_id = run_name(request)
        own: dict[str, Any] = {"search.run_id": run_id}
        others = {"search.from": one.search.follows, "search.warm_start": request.warm_start}
        for key, run in others.items():
            if run is not None:  # by its directory: the job's own runs lie elsewhere
                own[key] = str(find_run(run, root).absolute())
        known = measured(one, self.kind)
        estimate = of_search(one, known, unseen(self.kind, slots, one.backend.threads or 1), root)
        return self._job(Job(name, "", condition, seed, slots=slots), one, estimate, own)

    def _trainings(self) -> Iterator[Job]:
        if self.options.nodes > 1:
            raise ValueError(
                f"slurm.nodes: each run is one evaluation on one device, which needs 1 node, got "
                f"{self.options.nodes}"
            )
        terms_of(self.resolved)  # what the objective makes of no cell is said before
        runs = list(runs_of(self.resolved))
        for cell, seed, name in runs:
            one = resolve(replace(self.resolved.layers, cell=(cell.name, dict(cell.settings))))
            run_id = re.sub(r"[^a-z0-9._-]", "-", name.lower())[:64]
            own = {
                **shares(one.budget, len(runs), "runs"),
                "campaign.name": run_id,
                "campaign.seeds": [seed],
                "campaign.controls": False,
                "campaign.conditions": [{"name": cell.name}],
            }
            job = Job(name, "", cell.name, seed, cell.control, cell.levels, is_one_evaluation=True)
            yield self._job(job, one, of_evaluation(measured(one, self.kind)), own)

    def _job(self, job: Job, one: Config, estimate: Estimate | None, own: Mapping[str, Any]) -> Job:
        """The job with its estimate, and the configuration that follows from both."""
        job = replace(job, threads=one.backend.threads or 1)
        if estimate is not None:
            job = replace(
                job,
                seconds=estimate.seconds,
                device_seconds=estimate.device_seconds,
                eval_seconds=estimate.eval_seconds,
                source=estimate.source,
            )
        return replace(job, config_text=self._config(job, one, own))

    def _config(self, job: Job, one: Config, own: Mapping[str, Any]) -> str:
        """The whole configuration of one run, as its job has it."""
        backend = one.backend
        values = {
            key: value
            for key, value in one.all_values().items()
            if key.partition(".")[0] not in LEFT_OUT
            and (job.is_one_evaluation or not _is_of_a_campaign(key))
        }
        is_chosen = one.source("backend.executor") != "default"
        alone = backend.executor if is_chosen else "local"
        values |= {
            "runs_dir": str(self.directory / job.name),
            "backend.executor": "ray" if self.options.nodes > 1 else alone,
            "backend.device": self.kind,
            "backend.workers": job.slots,
            "backend.threads": job.threads,
            "backend.drain_seconds": self._drain_seconds(job, one),
            "backend.allow_network_fs": True,  # SLURM starts one job of the name at a time
            **own,
        }
        window = window_of(one.budget.window, one.budget.safety_margin)
        if window is not None and window.until is not None:  # a node may be in another zone
            values["budget.window"] = window.until.isoformat()
        comment = f"Run {job.name}: every value that decides it, as exported from {one.file}."
        return to_toml(values, comment)

    def _drain_seconds(self, job: Job, one: Config) -> float:
        """How long what runs may finish. Raises ValueError on longer than the job has."""
        lead = lead_seconds(self.options, job)
        most, given = max(lead - DRAIN_RESERVE, lead / 2), one.backend.drain_seconds
        if given is not None and given > most:
            raise ValueError(
                f"backend.drain_seconds: expected {most:g} at most, as the job is told to end "
                f"{lead} s before its limit (slurm.lead_seconds), got {given:g}"
            )
        return most if given is None else given


def _is_of_a_campaign(key: str) -> bool:
    return key.startswith("campaign.")
