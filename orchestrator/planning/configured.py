"""What a configuration amounts to: a request, an engine, and how a command goes about it."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from budgets.terms import Phase, Plan, Window
from objectives.api import Objective
from objectives.settings import shown
from orchestrator.capacity import Pacing
from orchestrator.config import RUNS_DIR, Backend, Config, Tracker
from orchestrator.execution.engine import Engine
from orchestrator.planning.known import read_known
from orchestrator.planning.request import Confirm, Follows, Request, run_directory
from orchestrator.planning.window import parse_window


@dataclass(frozen=True)
class Conduct:
    """How a command that evaluates goes about it, whatever it evaluates."""

    root: Path
    engine: Engine
    drain_seconds: float | None
    allow_network_fs: bool
    as_json: bool
    pacing: Pacing = field(default_factory=Pacing)
    trackers: tuple[Tracker, ...] = ()


@dataclass(frozen=True)
class Asked:
    """A command's options and file, parsed."""

    request: Request
    conduct: Conduct
    assumed_seconds: float | None
    overrides: tuple[tuple[str, str], ...]
    accept_drift: bool
    tier_given: bool
    resolved: Config


def asked_of(
    resolved: Config,
    *,
    overrides: tuple[tuple[str, str], ...] = (),
    accept_drift: bool = False,
    fork: bool = False,
    as_json: bool = False,
) -> Asked:
    """Raises ValueError on what cannot be asked for, naming flag or key."""
    return Asked(
        request=request_of(resolved, fork=fork),
        conduct=conduct_of(resolved, as_json=as_json),
        assumed_seconds=resolved.evaluation.assume_eval_seconds,
        overrides=overrides,
        accept_drift=accept_drift,
        tier_given=resolved.search.tier is not None,
        resolved=resolved,
    )


def limits_of(resolved: Config) -> Request:
    """The limits of an evaluation that somebody set, and no other terms."""
    evaluation = resolved.evaluation
    return Request(
        phase="phase1",
        tier="min",
        objective=resolved.load_objective(),
        limit_seconds=evaluation.limit_seconds,
        stall_seconds=evaluation.stall_seconds,
    )


def terms_of(resolved: Config, objective: Objective | None = None, price: float = 0.0) -> Request:
    """On what terms something is evaluated beside any search: `objective`, or the one described.

    A device-hour costs `price` where nobody says another one. Raises ValueError on a cap on cost
    without any.
    """
    budget, evaluation = resolved.budget, resolved.evaluation
    price = budget.price_per_device_hour or price
    if budget.max_cost is not None and not price:
        raise ValueError(
            f"[budget] max_cost {budget.max_cost:g} needs a price_per_device_hour above 0"
        )
    return Request(
        phase="check",
        tier="min",
        objective=resolved.load_objective() if objective is None else objective,
        evaluation_seed=evaluation.seed,
        max_evals=budget.max_evals,
        max_device_hours=budget.max_device_hours,
        max_hours=budget.max_hours,
        max_cost=budget.max_cost,
        window=window_of(budget.window, budget.safety_margin),
        price_per_device_hour=price,
        limit_seconds=evaluation.limit_seconds,
        stall_seconds=evaluation.stall_seconds,
    )


def request_of(resolved: Config, *, fork: bool = False) -> Request:
    """The request of the search that is described; of a campaign, on what terms it is made."""
    search, verdict = resolved.search, resolved.verdict
    is_trained = resolved.campaign is not None and resolved.campaign.cell == "training"
    phase: Phase = "campaign" if is_trained else search.phase
    terms = terms_of(resolved)
    return replace(
        terms,
        phase=phase,
        tier=search.tier or "target",
        run_id=search.run_id,
        search_seed=search.seed,
        method=search.method,
        sigma0=search.sigma0,
        population=search.population,
        generations=search.generations,
        seeds_per_candidate=search.seeds_per_candidate,
        fork=fork,
        confirm=Confirm(verdict.confirm_seeds, verdict.rung, verdict.rung_seeds),
        proxy=search.proxy,
        thresholds=resolved.thresholds.model_dump(exclude_unset=True),
        follows=_follows(resolved, phase),
        warm_start=_warm_start(resolved, phase),
        known=_known(resolved, terms.objective),
    )


def _follows(resolved: Config, phase: Phase) -> Follows | None:
    run, variant = resolved.search.follows, resolved.search.variant
    if phase != "phase2":
        for key, value in (("from", run), ("variant", variant)):
            if value is not None:
                source = resolved.source(f"search.{key}")
                raise ValueError(
                    f"--{key}: only a phase2 follows a run, got {shown(value)} ({source})"
                )
        return None
    if run is None:
        raise ValueError(
            "--from: which phase 1 shall it follow? Give its id or directory (from, in [search])"
        )
    if variant is None:
        raise ValueError(
            "--variant: expected robust (the same knobs) or expanded (more of them; in a file "
            "variant, in [search])"
        )
    return Follows(run, variant)


def _warm_start(resolved: Config, phase: Phase) -> str | None:
    run = resolved.search.warm_start
    if run is not None and phase == "phase2":
        raise ValueError(
            "search.warm_start: a phase 2 starts where the run of its --from stood, got "
            f"{shown(run)} ({resolved.source('search.warm_start')})"
        )
    return run


def _known(resolved: Config, objective: Objective) -> Any:
    file = resolved.search.known
    return None if file is None else read_known(Path(file), objective.space)


def conduct_of(resolved: Config, *, as_json: bool) -> Conduct:
    """Where runs live and what they run on."""
    backend = resolved.backend
    root = Path(resolved.runs_dir)
    return Conduct(
        root,
        engine_of(backend),
        backend.drain_seconds,
        backend.allow_network_fs,
        as_json,
        pacing_of(resolved),
        tuple(resolved.track.to),
    )


def pacing_of(resolved: Config) -> Pacing:
    """How many evaluations run at once, where it is not simply one a device."""
    backend = resolved.backend
    return Pacing(
        max_concurrent=backend.max_concurrent,
        slots_dir=None if backend.slots_dir is None else Path(backend.slots_dir),
        backpressure=resolved.backpressure,
    )


def engine_of(backend: Backend) -> Engine:
    """What evaluations run on."""
    return Engine(
        backend.executor,
        backend.launcher,
        backend.address,
        backend.device,
        backend.workers,
        backend.threads,
    )


def window_of(window: str | None, safety_margin: str) -> Window | None:
    """Raises ValueError on what is no window."""
    return None if window is None else parse_window(window, safety_margin)


def found_as(directory: Path, plan: Plan) -> str:
    """The run's id where commands find it by that, or else its directory."""
    usual = run_directory(Path(RUNS_DIR), plan.phase, plan.run_id)
    here, own = Path.cwd(), directory.absolute()
    if own == usual.absolute():
        return plan.run_id
    return str(own.relative_to(here) if own.is_relative_to(here) else own)
