"""What decides a run's scores, and the commands that show it, check it and run it again."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from budgets.plain import command
from budgets.state import RunState
from budgets.terms import Caps, Limits, Plan
from budgets.words import counted, in_bytes
from objectives.secrets import HIDDEN, is_secret_name, redacted
from orchestrator.best.configuration import configuration_of
from orchestrator.config.command_words import UntoldError
from orchestrator.records.recommended import best_of
from orchestrator.report.again import again
from orchestrator.report.model import Provenance

FINGERPRINT = "objective's fingerprint"
"""What decides all scores, by one name."""


def provenance(directory: Path, state: RunState) -> Provenance:
    """Everything that the scores rest on, as far as it is recorded; secrets are left out."""
    plan = state.plan
    return Provenance(
        settings=dict(_settings(plan.objective["settings"])),
        data={name: str(value) for name, value in plan.provenance.items()},
        versions=state.opened[-1].versions if state.opened else {},
        changed_versions=tuple(_changed(state)),
        devices=_devices(plan),
        caps=dict(_caps(plan.caps, plan.price_per_device_hour)),
        limits=dict(_limits(plan.limits)),
        search=dict(_search(plan)),
        commands=tuple(_commands(directory, state)),
        calibration=_calibration(plan),
    )


def _settings(settings: Mapping[str, Any], table: str = "") -> Iterator[tuple[str, str]]:
    """By dotted name. A variable that is called like a secret is one, whatever it holds."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and value and not table:
            yield from _settings(value, f"{name}.")
        elif table == "environment." and is_secret_name(name):
            yield f"{table}{name}", HIDDEN
        else:
            said = redacted(f"{name}={_text(value)}", os.environ)
            yield f"{table}{name}", said.removeprefix(f"{name}=")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _changed(state: RunState) -> Iterator[str]:
    """What was otherwise in a session before the last one."""
    if not state.opened:
        return
    last = state.opened[-1].versions
    for number, opened in enumerate(state.opened[:-1], 1):
        for name in sorted({*last, *opened.versions}):
            then, now = opened.versions.get(name, "none"), last.get(name, "none")
            if then != now:
                yield f"session {number}: {name} {then}, at last {now}"


def _devices(plan: Plan) -> str:
    own = plan.devices
    threads = counted(own.threads, "thread")
    return f"{own.count} x {own.name}, {threads} and {in_bytes(own.memory_bytes)} each"


def _caps(caps: Caps, price: float) -> Iterator[tuple[str, str]]:
    yield "evaluations", str(caps.evaluations)
    for name, value in (("device-hours", caps.device_hours), ("hours open", caps.hours)):
        if value is not None:
            yield name, f"{value:g}"
    if caps.cost is not None:
        yield "cost", f"{caps.cost:g}"
    if price:
        yield "price of a device-hour", f"{price:g}"
    if (window := caps.window) is not None:
        span = f"{window.hours:g} hours" if window.until is None else f"until {window.until}"
        yield "window", f"{span}, with a margin of {window.margin_seconds:g} s"


def _limits(limits: Limits) -> Iterator[tuple[str, str]]:
    yield "time limit", f"{limits.wall_seconds:g} s, and {limits.grace_seconds:g} s to end"
    if limits.stall_seconds is not None:
        yield "silence", f"{limits.stall_seconds:g} s"
    if limits.memory_bytes is not None:
        yield "memory", in_bytes(limits.memory_bytes)
    yield "log", f"{limits.log_bytes} bytes of each stream"


def _search(plan: Plan) -> Iterator[tuple[str, str]]:
    shape, search = plan.resolved, plan.search
    if search is not None:
        yield "method", search.method
        yield "seed", str(search.seed)
        yield "first step", f"{search.sigma0:g}"
        if search.inherited is not None:
            yield "begins where", f"{search.inherited.run_id} ended"
        if search.known:
            yield "known settings", str(len(search.known))
    if plan.source is not None:
        yield "follows", f"{plan.source.run_id}, {plan.source.variant}"
    yield "candidates a generation", str(shape.population)
    yield "generations", str(shape.generations)
    yield "seeds a candidate", str(shape.seeds_per_candidate)
    yield "evaluation seed", str(plan.evaluation_seed)
    if plan.proxy is not None:
        yield "proxy", plan.proxy.varied.label
    yield FINGERPRINT, plan.objective_fingerprint


def _calibration(plan: Plan) -> str | None:
    calibration = plan.calibration
    if calibration is None:
        return None
    if calibration.assumed_seconds is not None:
        return f"none: {calibration.assumed_seconds:g} s an evaluation were assumed"
    seeds = counted(len(calibration.samples), "seed")
    failed = f", {calibration.failed} failed" if calibration.failed else ""
    return f"the baseline on {seeds}{failed}; head of its ledger {calibration.ledger}"


def _commands(directory: Path, state: RunState) -> Iterator[str]:
    """Only such as work: what cannot be told or has no such form is left out."""
    run = str(directory)
    run = f"./{run}" if run.startswith("-") else run
    yield command("verify", run)
    with suppress(ValueError):  # nothing to recommend yet
        best = best_of(state)
        has_toml = configuration_of(state.plan, best.recommended).training is not None
        yield command("best", run, *(("--toml",) if has_toml else ()))
    with suppress(UntoldError):
        yield command(*again(directory, state))
