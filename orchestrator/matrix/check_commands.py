"""`check knobs`, `proxy`, `workers` and `memory`: measurements that decide how to search."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from math import ceil, inf
from pathlib import Path
from random import Random
from statistics import linear_regression
from typing import Any

from budgets.events import Status
from budgets.formatting import PROGRAM, table
from budgets.measurements import LEAST_CANDIDATES, certificate, measure
from budgets.plan import Configuration, Devices
from budgets.state import RunState
from budgets.verdict import BASELINE
from objectives import registry
from objectives.api import Objective, Variant
from objectives.settings import unknown
from objectives.space import SearchSpace
from orchestrator.capacity import fit, throughput
from orchestrator.config import Config, Verdict
from orchestrator.execution.devices import resized
from orchestrator.matrix.carry_out import Matrix, calibration_of
from orchestrator.plan.resolve import family_of
from orchestrator.records.runs import finished_runs

CHECK_SEEDS = 8

# Which knobs move the score


def knob_check(config: Config, seeds: int = CHECK_SEEDS, knobs: Sequence[str] = ()) -> Matrix:
    """Return the baseline and each of these knobs (default: all) alone at its ends.

    Raises ValueError if a cap on evaluations is too low, or the objective has no such knob.
    """
    known = [knob.name for knob in config.tuned.space.knobs]
    for name in knobs:
        if name not in known:
            raise unknown(f"knob of {config.objective} (--knobs)", name, known)
    return Matrix(config, "check", one_at_a_time(config.tuned.space, knobs or known), seeds)


def one_at_a_time(space: SearchSpace, names: Sequence[str]) -> tuple[Configuration, ...]:
    """Return the baseline, then one knob at a time at either end of its range (unit cube).

    An end at which the knob has its baseline's value is left out.
    """
    centre, ends = space.baseline, {"low": 0.0, "high": 1.0}
    points = {BASELINE: centre}
    for place, knob in enumerate(space.knobs):
        for name, end in ends.items() if knob.name in names else ():
            if abs(knob.encode(knob.decode(end)) - centre[place]) > 1e-9:
                points[f"{knob.name} {name}"] = (*centre[:place], end, *centre[place + 1 :])
    return tuple(Configuration(name=name, point=point) for name, point in points.items())


# How short evaluations may be

SIGMA = 0.1
"""Standard deviation of a proxy check's candidates around the baseline, per knob's range."""


def proxy_check(
    config: Config, fraction: float = 0.25, candidates: int = LEAST_CANDIDATES
) -> Matrix:
    """Return candidates drawn around the baseline, in full and at a `fraction` of the FLOPs.

    Raises ValueError if a cap on evaluations does not pay for both.
    """
    random = Random(f"{config.evaluation.seed}/proxy")  # noqa: S311 - no secret

    def near(unit: float) -> float:
        draws = (random.gauss(unit, SIGMA) for _ in count())
        return next(one for one in draws if 0.0 <= one <= 1.0)

    points = (tuple(map(near, config.tuned.space.baseline)) for _ in range(candidates))
    own = tuple(Configuration(name=f"candidate {n}", point=one) for n, one in enumerate(points))
    fields = {"proxy": proxy_of(config.tuned, fraction)}
    return Matrix(config, "check", own, seeds=1, prefix="proxy-", fields=fields)


def proxy_of(objective: Objective, fraction: float) -> Variant:
    """Return an evaluation at `fraction` of the objective's FLOPs, with a schedule of its own.

    It is never the first part of a full one: under a schedule that cools down, an intermediate
    score says little about the final one. Raises ValueError if the objective cannot be scaled.
    """
    if (found := objective.scaled(fraction)) is None:
        raise ValueError(f"{objective.spec.name} has no shorter evaluation: no proxy is possible")
    return found


def on_shorter_evaluations(config: Config) -> Config:
    """Return a search on short evaluations, as `search.proxy` says; a Go's long run is full.

    Raises ValueError unless a finished check has shown that they rank candidates alike.
    """
    fraction, full = config.search.proxy, config.tuned
    assert fraction is not None, "the caller has checked it"
    shorter = proxy_of(full, fraction)
    family, _, _ = family_of(full, "cpu").rpartition("-")  # on any kind of device
    checks = finished_runs(Path(config.runs_dir), "check", f"proxy-{family}")
    agreed = (
        proxy.settings
        for check in checks
        if (proxy := check.state.plan.proxy) and (own := certificate(check.state)) and own.holds
    )
    if shorter.settings not in agreed:
        raise ValueError(
            f"search.proxy: no check has shown that {shorter.name} ranks candidates as the full "
            f"evaluation does: {PROGRAM} check proxy --set search.proxy={fraction:g} with the same "
            "--objective and --set"
        )
    short = config.with_objective(registry.load(registry.varied(full.spec, shorter.settings)))
    if short.verdict.long_run != Verdict().long_run:
        return short
    return short.having({"verdict.long_run": 1 / fraction})


# How many evaluations at once

LEAST_EVALUATIONS, LEAST_ROUNDS = 4, 2


def sweep(config: Config, slots: Devices) -> Iterator[tuple[Matrix, Devices]]:
    """Yield the baseline on 1, 2, 4 ... and on all workers, a run for each.

    Each has four evaluations or more, in two or more whole rounds: no worker idles. No plan uses
    these runs, whose names begin with `sweep-`: the machine is loaded on purpose.
    """
    powers = {2**n for n in range(slots.count.bit_length()) if 2**n < slots.count}
    for workers in sorted({*powers, slots.count}):
        seeds = workers * max(LEAST_ROUNDS, ceil(LEAST_EVALUATIONS / workers))
        yield calibration_of(config, seeds, "sweep-"), resized(slots, workers)


def throughputs(states: Sequence[RunState], most: int) -> tuple[dict[str, Any], str]:
    """Return each number of workers, the fitted law and the recommendation: JSON and Markdown."""
    ends = {state.plan.devices.count: measure(state).samples for state in states}
    rates = {n: throughput([end.seconds for end in own], n) for n, own in ends.items()}
    law, plan = fit(rates), states[0].plan
    names = ("workers", "evaluations", "evaluations_per_hour", "regime")
    levels = [(n, len(ends[n]), rate, law.regime(n)) for n, rate in rates.items()]
    optimum = law.optimum if len(rates) > 2 and law.optimum < inf else None
    document = {
        "levels": [dict(zip(names, own, strict=True)) for own in levels],
        "law": {"lambda": law.one, "sigma": law.contention, "kappa": law.coherency},
        "optimum": optimum,
        "recommended_workers": law.recommended(most),
    }
    rows = ((n, count, f"{rate:,.1f}", regime) for n, count, rate, regime in levels)
    lines = [
        f"# Throughput of {registry.kind(plan.objective)} on {plan.devices.name}",
        "",
        *table((">workers", ">evaluations", ">an hour", "regime"), rows),
        "",
        f"X(N) = {law.one:,.1f} N / (1 + {law.contention:.3g} (N-1) + {law.coherency:.3g} N "
        f"(N-1)) an hour. Optimum: {'none found' if optimum is None else f'N* = {optimum:.3g}'}.",
        "",
        f"Recommended: `--workers {law.recommended(most)}`.",
    ]
    return document, "\n".join(lines)


# The largest safe micro-batch, by the peak memory of a few sizes

SAFE_SHARE, SAFE_SHARE_OF_ONE = 0.7, 0.6
"""Of the memory: by a line through two sizes or more, and from one size through the origin."""

GPU_PEAK, GPU_MEMORY = "gpu_peak_bytes", "gpu_memory_bytes"
"""Metrics of an evaluation on a GPU: its peak allocation, and the memory of the GPU."""

GIB = 2**30


def micro_batch(config: Config, size: int, seeds: int) -> Matrix:
    """Return the baseline in micro-batches of `size`, with the same effective batch.

    Raises ValueError if it has no micro-batches, or `size` does not divide its effective batch.
    """
    spec = config.tuned.spec
    if "micro_batch_size" not in spec.settings:
        raise ValueError(f"--size: objective {spec.name} has no micro-batches")
    accumulated = spec.settings.get("gradient_accumulation_steps", 1)
    batch = int(spec.settings["micro_batch_size"] * accumulated)
    if batch % size:
        raise ValueError(
            f"--size: expected sizes that divide the effective batch of {batch}, got {size}"
        )
    changed = {"micro_batch_size": size, "gradient_accumulation_steps": batch // size}
    own = config.with_objective(registry.load(registry.varied(spec, changed)))
    return calibration_of(own, seeds, "memory-")


def memory_of(states: Mapping[int, RunState]) -> tuple[dict[str, Any], str]:
    """Return peaks and the largest safe micro-batch, by micro-batch size: JSON, Markdown.

    The line peak = base + each * size is by least squares; one size gives a line through the
    origin.
    """
    peaks, memory = dict[int, float](), inf
    for size, state in states.items():
        ends = [end for end in state.ends() if end.status is Status.OK]
        host = state.plan.devices.memory_bytes
        peaks[size] = max(end.metrics.get(GPU_PEAK, end.peak_memory_bytes) for end in ends)
        memory = min(memory, *(end.metrics.get(GPU_MEMORY, host) for end in ends))
    is_one = len(peaks) == 1
    points, share = ({0: 0.0, **peaks}, SAFE_SHARE_OF_ONE) if is_one else (peaks, SAFE_SHARE)
    each, base = linear_regression([*points], [*points.values()])
    largest, said = None, "The peak does not grow with the size: measure sizes further apart."
    if each > 0:  # a power of two, or 0
        most = int(max(0.0, min((share * memory - base) / each, 2**62)))
        largest = 1 << (most.bit_length() - 1) if most else 0
        said = f"The largest safe micro-batch is {largest}."
        if not largest:
            said = "Not even a micro-batch of 1 is safe: use a smaller model or context."
    document = {
        "peak_bytes": {str(size): peak for size, peak in peaks.items()},
        "base_bytes": base,
        "bytes_each": each,
        "safe_share": share,
        "memory_bytes": memory,
        "largest": largest,
    }
    lines = [
        *("# Memory by micro-batch size", ""),
        *table(
            (">micro-batch", ">peak GiB"),
            ((size, f"{peak / GIB:.3f}") for size, peak in peaks.items()),
        ),
        "",
        f"peak = {base / GIB:.3f} + {each / GIB:.4f} x micro-batch GiB. Safe: {share:g} of "
        f"{memory / GIB:.1f} GiB.",
        *("", f"**{said}**"),
    ]
    return document, "\n".join(lines)
