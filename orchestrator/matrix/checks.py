"""`check knobs`, `proxy`, `workers` and `memory`: measurements that decide how to search."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil, inf
from pathlib import Path
from random import Random
from statistics import linear_regression, median
from typing import Any

from budgets.checks import LEAST_CANDIDATES, certificate
from budgets.events import Settled, Status
from budgets.formatting import PROGRAM, table
from budgets.plan import Devices, Envelope, ProxyPlan
from budgets.state import RunState
from objectives import registry
from objectives.api import Objective, Variant
from objectives.space import Knob, SearchSpace
from orchestrator.capacity import fit, throughput
from orchestrator.config import Config, Verdict
from orchestrator.execution.engine import resized
from orchestrator.matrix.matrix import Matrix, calibration_of, carry_out
from orchestrator.plan.resolve import family_of
from orchestrator.records.objective import Point
from orchestrator.records.runs import Result, finished_runs
from orchestrator.run.session import Session

CHECK_SEEDS = 8


def _require_paid(config: Config, evaluations: int, fewer: str) -> None:
    """Raise ValueError if a cap on evaluations is lower, saying what to have `fewer` of."""
    most = config.budget.max_evals
    if most is not None and most < evaluations:
        raise ValueError(
            f"--max-evals {most} does not pay for the check's {evaluations} evaluations: {fewer}"
        )


# Which knobs move the score


def knob_check(config: Config, seeds: int = CHECK_SEEDS, knobs: Sequence[str] = ()) -> Matrix:
    """Return the baseline and each of these knobs (default: all) alone at its ends.

    Raises ValueError if a cap on evaluations is too low, or the objective has no such knob.
    """
    space = config.tuned.space
    known = [knob.name for knob in space.knobs]
    if unknown := [repr(name) for name in knobs if name not in known]:
        raise ValueError(
            f"--knobs: {config.objective} has no {', '.join(unknown)}, expected some of "
            f"{', '.join(known)}"
        )
    names = [name for name in known if name in knobs or not knobs]
    points = check_points(space, names)
    shape = Envelope(population=len(points), generations=1, seeds_per_candidate=seeds)
    _require_paid(config, shape.evaluations, "check fewer --knobs at a time, or fewer --seeds")
    title = (
        f"Checking {', '.join(names)}: {len(points)} points on {seeds} seeds, {shape.evaluations} "
        "evaluations."
    )
    return Matrix(config, "check", points, shape, title)


def check_points(space: SearchSpace, names: Sequence[str]) -> tuple[Point, ...]:
    """Return the baseline, then one knob at a time at either end of its range (unit cube)."""
    centre = space.baseline
    moved = (
        (*centre[:place], unit, *centre[place + 1 :])
        for place, knob in enumerate(space.knobs)
        if knob.name in names
        for unit in _other_ends(knob)
    )
    return (centre, *moved)


def _other_ends(knob: Knob) -> list[float]:
    """The ends at which the knob has another value than its baseline."""
    baseline = knob.encode(knob.baseline)
    return [e for e in (0.0, 1.0) if abs(knob.encode(knob.decode(e)) - baseline) > 1e-9]


# How short evaluations may be

SIGMA = 0.1
"""Standard deviation of a proxy check's candidates around the baseline, per knob's range."""


def proxy_check(
    config: Config,
    fraction: float = 0.25,
    candidates: int = LEAST_CANDIDATES,
    seeds: int = 1,
) -> Matrix:
    """Return candidates drawn around the baseline, in full and at a `fraction` of the FLOPs.

    Raises ValueError if a cap on evaluations does not pay for both.
    """
    proxy = proxy_plan(config.tuned, fraction)
    shape = Envelope(population=candidates, generations=1, seeds_per_candidate=seeds)
    _require_paid(config, 2 * shape.evaluations, "compare fewer --candidates")
    random = Random(f"{config.evaluation.seed}/proxy")  # noqa: S311 - no secret
    points = tuple(
        tuple(_drawn(random, unit) for unit in config.tuned.space.baseline)
        for _ in range(candidates)
    )
    title = (
        f"Comparing {proxy.variant.label} with the full evaluation: {candidates} candidates around "
        f"the baseline, {shape.evaluations} evaluations of each length."
    )
    return Matrix(config, "check", points, shape, title, prefix="proxy-", fields={"proxy": proxy})


def _drawn(random: Random, unit: float) -> float:
    """A normal coordinate around `unit`, within [0, 1]."""
    while True:
        drawn = random.gauss(unit, SIGMA)
        if 0.0 <= drawn <= 1.0:
            return drawn


def proxy_plan(objective: Objective, fraction: float) -> ProxyPlan:
    """Return an evaluation at `fraction` of the objective's FLOPs, with a schedule of its own.

    It is never the first part of a full one: under a schedule that cools down, an intermediate
    score says little about the final one. Raises ValueError if the objective cannot be scaled.
    """
    shorter = objective.scaled(fraction)
    if shorter is None:
        raise ValueError(f"{objective.spec.name} has no shorter evaluation: no proxy is possible")
    return ProxyPlan(variant=shorter)


def on_shorter_evaluations(config: Config) -> Config:
    """Return a search on short evaluations, as `search.proxy` says; a Go's long run is full.

    Raises ValueError unless a finished check has shown that they rank candidates alike.
    """
    fraction, full = config.search.proxy, config.tuned
    assert fraction is not None, "the caller has checked it"
    shorter = proxy_plan(full, fraction).variant
    family, _, _ = family_of(full, "cpu").rpartition("-")  # on any kind of device
    checks = finished_runs(Path(config.runs_dir), "check", f"proxy-{family}")
    if not any(_agrees(check.state, shorter) for check in checks):
        raise ValueError(
            f"search.proxy: no check has shown that {shorter.label} ranks candidates as the full "
            f"evaluation does: {PROGRAM} check proxy --set search.proxy={fraction:g} with the same "
            "--objective and --set"
        )
    short = config.with_objective(registry.load(registry.varied(full.spec, shorter.settings)))
    if short.verdict.long_run != Verdict().long_run:
        return short
    return short.having({"verdict.long_run": 1 / fraction})


def _agrees(state: RunState, shorter: Variant) -> bool:
    proxy, found = state.plan.proxy, certificate(state)
    is_same = proxy is not None and proxy.variant.settings == shorter.settings
    return is_same and found is not None and found.holds


# How many evaluations at once

LEAST_EVALUATIONS, LEAST_ROUNDS = 4, 2


def sweep(
    session: Session, config: Config, slots: Devices, least: int = LEAST_EVALUATIONS
) -> Iterator[Result]:
    """Measure, or resume, the baseline on 1, 2, 4 ... and on all workers, a run for each.

    Each has `least` evaluations or more, in two or more whole rounds: no worker idles. No plan uses
    these runs, whose names begin with `sweep-`: the machine is loaded on purpose.
    """
    powers = {2**n for n in range(slots.count.bit_length()) if 2**n < slots.count}
    for workers in sorted({*powers, slots.count}):
        seeds = workers * max(LEAST_ROUNDS, ceil(least / workers))
        title = f"Throughput of {workers} at once: {seeds} seeds."
        matrix = calibration_of(config, seeds, title, "sweep-")
        yield carry_out(matrix, session, resized(slots, workers))


def throughputs(states: Sequence[RunState], most: int) -> dict[str, Any]:
    """Return each number of workers, the fitted law and the recommendation as JSON.

    Raises ValueError if no evaluation of one was healthy.
    """
    seconds = {
        state.plan.devices.count: [end.seconds for end in _healthy(state)] for state in states
    }
    law = fit({workers: throughput(own, workers) for workers, own in seconds.items()})
    optimum = law.optimum if len(seconds) > 2 and law.optimum < inf else None
    return {
        "levels": [
            {
                "workers": workers,
                "evaluations": len(own),
                "evaluations_per_hour": throughput(own, workers),
                "median_seconds": median(own),
                "fitted_per_hour": law.throughput(workers),
                "regime": law.regime(workers),
            }
            for workers, own in seconds.items()
        ],
        "law": {"lambda": law.one, "sigma": law.contention, "kappa": law.coherency},
        "optimum": optimum,
        "recommended_workers": law.recommended(most),
    }


def _per_hour(value: float) -> str:
    """Return `12.3` or `1,234`: three digits, and no fewer than the whole number."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def throughput_page(name: str, found: dict[str, Any]) -> str:
    """Return the document as a table, the law and a recommendation."""
    columns = (">workers", ">evaluations/hour", ">seconds each", ">fitted", "regime")
    rows = (
        (
            level["workers"],
            _per_hour(level["evaluations_per_hour"]),
            f"{level['median_seconds']:.3g}",
            _per_hour(level["fitted_per_hour"]),
            level["regime"],
        )
        for level in found["levels"]
    )
    law, optimum = found["law"], found["optimum"]
    lines = [
        f"# Throughput of {name}",
        "",
        *table(columns, rows),
        "",
        f"X(N) = {_per_hour(law['lambda'])} N / (1 + {law['sigma']:.3g} (N-1) + "
        f"{law['kappa']:.3g} N (N-1)) an hour. "
        f"Optimum: {'none found' if optimum is None else f'N* = {optimum:.3g}'}.",
        "",
        f"Recommended: `--workers {found['recommended_workers']}`.",
        "",
    ]
    return "\n".join(lines)


def _healthy(state: RunState) -> list[Settled]:
    """Return the healthy evaluations of a run. Raises ValueError without any."""
    if ends := [end for end in state.ends() if end.status is Status.OK]:
        return ends
    raise ValueError(f"{state.plan.run_id}: no evaluation was healthy")


# The largest safe micro-batch, by the peak memory of a few sizes

SAFE_SHARE, SAFE_SHARE_OF_ONE = 0.7, 0.6
"""Of the memory: by a line through two sizes or more, and from one size through the origin."""

GPU_PEAK, GPU_MEMORY = "gpu_peak_bytes", "gpu_memory_bytes"
"""Metrics of an evaluation on a GPU: its peak allocation, and the memory of the GPU."""

GIB = 2**30


def with_micro_batch(objective: Objective, size: int) -> Objective:
    """Return the objective with micro-batches of `size` and the same effective batch.

    Raises ValueError if it has no micro-batches, or `size` does not divide its effective batch.
    """
    settings = objective.spec.settings
    if "micro_batch_size" not in settings:
        raise ValueError(f"--size: objective {objective.spec.name} has no micro-batches")
    batch = int(settings["micro_batch_size"] * settings.get("gradient_accumulation_steps", 1))
    if batch % size:
        raise ValueError(
            f"--size: expected sizes that divide the effective batch of {batch}, got {size}"
        )
    changed = {"micro_batch_size": size, "gradient_accumulation_steps": batch // size}
    return registry.load(registry.varied(objective.spec, changed))


@dataclass(frozen=True)
class Memory:
    """The measured peaks and their line: peak = base + each * micro-batch size, in bytes."""

    peak_bytes: Mapping[int, float]  # by micro-batch size
    seconds: Mapping[int, float]  # of an evaluation, by micro-batch size
    base_bytes: float
    bytes_each: float
    safe_share: float
    memory_bytes: float  # available to an evaluation

    @property
    def largest(self) -> int | None:
        """The largest power of two whose peak keeps within the safe share of the memory.

        0 if not even 1 does; None if the peak does not grow with the size.
        """
        if self.bytes_each <= 0:
            return None
        room = (self.safe_share * self.memory_bytes - self.base_bytes) / self.bytes_each
        return 0 if room < 1 else 1 << (int(min(room, 2**62)).bit_length() - 1)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        by_size = {
            name: {str(size): value for size, value in getattr(self, name).items()}
            for name in ("peak_bytes", "seconds")
        }
        return {**asdict(self), **by_size, "largest": self.largest}

    def to_markdown(self) -> str:
        """Return a table of the sizes, the line and the conclusion."""
        rows = (
            (size, f"{peak / GIB:.3f}", f"{self.seconds[size]:.1f} s")
            for size, peak in sorted(self.peak_bytes.items())
        )
        conclusion = f"The largest safe micro-batch is {self.largest}."
        if self.largest is None:
            conclusion = "The peak does not grow with the size: measure sizes further apart."
        elif self.largest == 0:
            conclusion = "Not even a micro-batch of 1 is safe: use a smaller model or context."
        lines = [
            "# Memory by micro-batch size",
            "",
            *table((">micro-batch", ">peak GiB", ">seconds"), rows),
            "",
            f"peak = {self.base_bytes / GIB:.3f} + {self.bytes_each / GIB:.4f} x micro-batch GiB. "
            f"Safe: {self.safe_share:g} of the {self.memory_bytes / GIB:.1f} GiB there are.",
            "",
            f"**{conclusion}**",
        ]
        return "\n".join(lines)


def memory_of(states: Mapping[int, RunState]) -> Memory:
    """Return the memory of runs of the baseline, by micro-batch size.

    The line is by least squares; one size gives a line through the origin. Raises ValueError if no
    evaluation of a size was healthy.
    """
    peaks, seconds, memory = dict[int, float](), dict[int, float](), inf
    for size, state in states.items():
        ends, host = _healthy(state), state.plan.devices.memory_bytes
        peaks[size] = max(end.metrics.get(GPU_PEAK, end.peak_memory_bytes) for end in ends)
        seconds[size] = median(end.seconds for end in ends)
        memory = min(memory, *(end.metrics.get(GPU_MEMORY, host) for end in ends))
    if len(peaks) == 1:
        [(size, peak)] = peaks.items()
        return Memory(peaks, seconds, 0.0, peak / size, SAFE_SHARE_OF_ONE, memory)
    each, base = linear_regression(list(peaks), list(peaks.values()))
    return Memory(peaks, seconds, base, each, SAFE_SHARE, memory)
