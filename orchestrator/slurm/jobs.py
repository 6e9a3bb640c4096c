"""From a configuration to its jobs: one for each cell on each seed, or one for a search."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from objectives.settings import unknown
from orchestrator.campaign.cells import campaign_of, runs_of, terms_of
from orchestrator.campaign.searches import SHARED, search_cells
from orchestrator.config.asked import request_of
from orchestrator.config.resolve import Resolved, all_keys, resolve
from orchestrator.planning.request import run_name
from orchestrator.recorded import find_run
from orchestrator.slurm.config_text import to_toml
from orchestrator.slurm.estimate import (
    DeviceKind,
    Estimate,
    measured,
    of_evaluation,
    of_search,
    unseen,
)
from orchestrator.slurm.job import Job
from orchestrator.slurm.options import SlurmOptions

DRAIN_RESERVE = 30.0
"""Seconds that are left, after what ran was killed, for the report and the requeue."""

LEFT_OUT = ("preset", "profile")
"""Names of values: the values themselves are in the file."""


def slurm_options(resolved: Resolved) -> SlurmOptions:
    """`[slurm]`, with GPUs where the device says so. Raises ValueError, naming the key."""
    known = SlurmOptions.model_fields
    for key in resolved.slurm:
        if key not in known:
            raise unknown(f"key in [slurm] ({resolved.source(f'slurm.{key}')})", key, known)
    try:
        options = SlurmOptions.model_validate(dict(resolved.slurm))
    except ValidationError as error:
        raise ValueError("; ".join(_complaints(resolved, error))) from error
    device = resolved.backend.device
    if options.gpus is None:
        options = options.model_copy(update={"gpus": int(device == "cuda")})
    if device != "auto" and (device == "cuda") != bool(options.gpus):
        raise ValueError(
            f"slurm.gpus = {options.gpus} and backend.device = {device!r} contradict each other: "
            "an evaluation runs on one GPU (1, cuda) or on none (0, cpu)"
        )
    return options


def _complaints(resolved: Resolved, error: ValidationError) -> Iterator[str]:
    for fault in error.errors():
        key = ".".join(("slurm", *map(str, fault["loc"])))
        source = resolved.source(".".join(key.split(".")[:2]))
        message = fault["msg"].removeprefix("Value error, ")
        yield f"{source}: {key}: {message}, got {fault['input']!r}"


@dataclass(frozen=True)
class Jobs:
    """Makes the jobs of a configuration that lie in `directory`."""

    resolved: Resolved
    directory: Path
    options: SlurmOptions

    @property
    def kind(self) -> DeviceKind:
        return "cuda" if self.options.gpus else "cpu"

    def all(self) -> tuple[Job, ...]:
        """Raises ValueError, naming key or cell, where one cannot be."""
        self._check_backend()
        if self.resolved.campaign is None:
            return (self._single(),)
        if campaign_of(self.resolved).cell == "search":
            return tuple(self._searches())
        return tuple(self._trainings())

    def _check_backend(self) -> None:
        backend = self.resolved.backend
        if backend.address is not None:
            raise ValueError(
                f"backend.address = {backend.address!r}: jobs of several nodes start a Ray of "
                "their own, others need none; take it out"
            )
        is_chosen = self.resolved.source("backend.executor") != "default"
        if self.options.nodes > 1 and is_chosen and backend.executor != "ray":
            raise ValueError(
                f"backend.executor = {backend.executor!r} knows one machine, slurm.nodes = "
                f"{self.options.nodes} needs ray"
            )
        longest = self._drain_most()
        if backend.drain_seconds is not None and backend.drain_seconds > longest:
            raise ValueError(
                f"backend.drain_seconds: expected {longest:g} at most, as the job is killed "
                f"slurm.lead_seconds = {self.options.lead_seconds} after it is told to end, got "
                f"{backend.drain_seconds:g}"
            )

    def _drain_most(self) -> float:
        return max(self.options.lead_seconds - DRAIN_RESERVE, self.options.lead_seconds / 2)

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

    def _search_job(self, name: str, condition: str, one: Resolved, seed: int) -> Job:
        if one.search.tier is None:
            raise ValueError("search.tier: say how much to spend: min, target or max")
        request = request_of(one)
        root = Path(one.top.runs_dir)
        slots = one.backend.workers or self.options.nodes
        threads = one.backend.threads or 1
        run_id = run_name(request)
        own: dict[str, Any] = {"search.run_id": run_id}
        others = {"search.from": one.search.follows, "search.warm_start": request.warm_start}
        for key, run in others.items():
            if run is not None:  # by its directory: the job's own runs lie elsewhere
                own[key] = str(find_run(run, root).absolute())
        known = measured(one, self.kind)
        devices = unseen(self.kind, slots, threads)
        return self._job(
            name,
            condition,
            self._config(name, one, slots, threads, own),
            seed,
            slots,
            threads,
            of_search(one, known, devices, root),
        )

    def _trainings(self) -> Iterator[Job]:
        if self.options.nodes > 1:
            raise ValueError(
                f"slurm.nodes: each run is one evaluation on one device, which needs 1 node, got "
                f"{self.options.nodes}"
            )
        conditions = {one.name: one for one in terms_of(self.resolved).conditions}
        runs = list(runs_of(self.resolved))
        threads = self.resolved.backend.threads or 1
        for cell, seed, name in runs:
            one = resolve(replace(self.resolved.given, cell=(cell.name, dict(cell.settings))))
            run_id = re.sub(r"[^a-z0-9._-]", "-", name.lower())[:64]
            own = {
                **self._shares(one, len(runs)),
                "campaign.name": run_id,
                "campaign.seeds": [seed],
                "campaign.controls": False,
                "campaign.conditions": [{"name": cell.name}],
            }
            text = self._config(name, one, 1, threads, own)
            estimate = of_evaluation(measured(one, self.kind))
            assert cell.name in conditions, "every cell has been agreed on"
            job = self._job(name, cell.name, text, seed, 1, threads, estimate)
            yield replace(job, control=cell.control, levels=cell.levels)

    def _shares(self, one: Resolved, runs: int) -> dict[str, Any]:
        """Caps are the whole campaign's: each run has an equal part. Raises ValueError on less."""
        caps = {name: getattr(one.budget, name) for name in SHARED}
        shares: dict[str, Any] = {}
        for name, cap in caps.items():
            if cap is None:
                continue
            shares[f"budget.{name}"] = part = cap // runs if name == "max_evals" else cap / runs
            if not part:
                raise ValueError(f"[budget] {name}: {cap} cannot be shared by {runs} runs")
        return shares

    def _job(  # noqa: PLR0913, PLR0917 - what a job is
        self,
        name: str,
        condition: str,
        config_text: str,
        seed: int,
        slots: int,
        threads: int,
        estimate: Estimate | None,
    ) -> Job:
        return Job(
            name=name,
            config_text=config_text,
            condition=condition,
            seed=seed,
            slots=slots,
            threads=threads,
            seconds=None if estimate is None else estimate.seconds,
            device_seconds=None if estimate is None else estimate.device_seconds,
            source="" if estimate is None else estimate.source,
        )

    def _config(
        self, name: str, one: Resolved, slots: int, threads: int, own: Mapping[str, Any]
    ) -> str:
        """The whole configuration of one run, as its job has it."""
        values = {
            key: value
            for key, value in all_keys(one).items()
            if key.partition(".")[0] not in ("factors", "slurm") and key not in LEFT_OUT
        }
        if not any(key.startswith("campaign.") for key in own):
            values = {k: v for k, v in values.items() if not k.startswith("campaign.")}
        backend = one.backend
        is_chosen = one.source("backend.executor") != "default"
        alone = backend.executor if is_chosen else "local"
        values |= {
            "runs_dir": str(self.directory / name),
            "backend.executor": "ray" if self.options.nodes > 1 else alone,
            "backend.device": self.kind,
            "backend.workers": slots,
            "backend.threads": threads,
            "backend.drain_seconds": backend.drain_seconds
            if backend.drain_seconds is not None
            else self._drain_most(),
            "backend.allow_network_fs": True,  # SLURM starts one job of the name at a time
            **own,
        }
        comment = f"Run {name}: every value that decides it, as exported from {one.file}."
        return to_toml(values, comment)
