"""From a ledger's records to named figures on one axis: evaluations that are over. No disk.

The names are those of `metrics.jsonl` (docs/trackers.md lists all). A name is never the beginning
of another one's path: a tracker may keep `a/b` as a file in a directory `a`.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median, stdev

from budgets.calibration import luck, noise_band
from budgets.events import Decided, GenerationTold, Settled, Status
from budgets.ledger.chain import Record
from budgets.report.model import Balance, balances
from budgets.report.usage import idle_hours, wasted_hours
from budgets.state import Generation, RunState
from orchestrator.records.metrics import IN_TIME, measured

OF_EVALUATION = (
    *("score", "seconds", "step_time_s", "tokens_per_second", "steps", "train_flops"),
    "peak_memory_bytes",
)
"""What evaluations of different lengths do not share: each kind has a curve of its own."""

_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Figures:
    """Finite numbers of one moment of a run."""

    step: int  # evaluations that were over by then
    at: float  # seconds since 1970, of the record
    values: Mapping[str, float]


@dataclass
class Reading:
    """Reads one ledger from its first record on."""

    _ended: Counter[str] = field(default_factory=Counter)  # evaluations, and attempts without one
    _best: float | None = None  # of full generations

    def figures(self, state: RunState, record: Record) -> Figures | None:
        """What this record says, `state` being the run's once it is applied; None: nothing."""
        match event := record.event:
            case Settled():
                values = dict(self._evaluation(state, event))
            case GenerationTold():
                values = dict(self._generation(state, state.told[-1], event))
            case Decided():
                values = dict(_of(("verdict/gain", event.gain), ("verdict/lower", event.lower)))
            case _:
                values = {}
        if not values:
            return None
        return Figures(steps(state), datetime.fromisoformat(record.at).timestamp(), values)

    def _evaluation(self, state: RunState, event: Settled) -> Iterator[tuple[str, float]]:
        is_owed = event.again is not None
        self._ended["again" if is_owed else str(event.status)] += 1
        if not event.final:
            return
        found = measured(state, event)
        for name in OF_EVALUATION:
            if name != "score" and not found[name]:
                continue  # what the objective does not have
            yield from _of((_curve(state, event, name), found[name]))
        yield from _of(*((name, found[name]) for name in ("elapsed_seconds", *IN_TIME)))
        for name, value in event.metrics.items() if event.panel is None else ():
            yield from _of((_curve(state, event, f"objective/{plain_name(name)}"), value))
        for status in (status for status in Status if status.final):
            yield f"status/{status}", float(self._ended[status])
        for other in ("lost", "cancelled", "again"):
            if self._ended[other]:
                yield f"status/{other}", float(self._ended[other])
        yield from _budget(state)

    def _generation(
        self, state: RunState, generation: Generation, event: GenerationTold
    ) -> Iterator[tuple[str, float]]:
        scores = generation.healthy
        place = "generation" if generation.is_full else "short"
        if scores:
            yield f"{place}/best", min(scores)
            yield f"{place}/mean", sum(scores) / len(scores)
        if len(scores) > 1:
            yield f"{place}/sd", stdev(scores)
        if scores and generation.is_full:
            self._best = min(scores) if self._best is None else min(self._best, *scores)
        yield from _of(("generation/best_so_far", self._best))
        yield "generation/number", float(event.generation)
        yield "generation/healthy", float(len(scores))
        yield "generation/failed", float(len(generation.failed))
        yield "generation/sigma", event.sigma
        yield "generation/axis_ratio", event.axis_ratio
        yield "generation/descent", float(event.descent)
        yield "generation/eval_seconds", median(r.seconds for r in generation.results())
        if event.guided is not None:
            yield "generation/signal", event.guided.signal
            yield "generation/noise", event.guided.noise
        yield from _baseline(state)
        yield "budget/idle_device_hours", idle_hours(state)
        yield "budget/wasted_device_hours", wasted_hours(state)


def steps(state: RunState) -> int:
    """Where the run is on the axis of all figures: evaluations that are over."""
    return state.accounts.evaluations + state.accounts.apart


def currency(balance: Balance) -> str:
    """Its name as part of a figure's."""
    return re.sub(r"[ -]", "_", balance.currency)


def plain_name(text: str) -> str:
    """`text` as one part of a name that every tracker takes, and no part of a path."""
    name = _UNFIT.sub("_", text)[:100]
    return name if name.strip(".") else f"_{name}"


def _of(*pairs: tuple[str, float | None]) -> Iterator[tuple[str, float]]:
    """Those that are there, as finite numbers."""
    for name, value in pairs:
        if value is not None and math.isfinite(value):
            yield name, float(value)


def _curve(state: RunState, event: Settled, name: str) -> str:
    """To which curve the figure belongs: scores of one kind and length only are one's."""
    if event.panel is not None:
        arm = state.panels[event.panel, event.generation].arms[event.candidate].name
        own = f"score/{plain_name(arm)}" if name == "score" else name
        return f"{event.panel}/{own}"
    if state.plan.campaign is not None:
        condition = state.plan.campaign.conditions[event.candidate].name
        return f"condition/{plain_name(condition)}/{name}"
    return name if state.generation(event.generation).is_full else f"short/{name}"


def _budget(state: RunState) -> Iterator[tuple[str, float]]:
    """Each currency that counts: spent, reserved, and its cap with what is free below it."""
    for balance in balances(state):
        if balance.counts:
            name = currency(balance)
            yield f"budget/spent/{name}", balance.spent
            yield f"budget/reserved/{name}", balance.reserved
            yield from _of((f"budget/cap/{name}", balance.cap))
            yield from _of((f"budget/free/{name}", balance.free))


def _baseline(state: RunState) -> Iterator[tuple[str, float]]:
    """The calibrated baseline as lines to compare candidates with: means over as many seeds."""
    calibration, seeds = state.plan.calibration, state.plan.resolved.seeds_per_candidate
    if calibration is None or (mean := calibration.mean_score) is None:
        return
    yield "baseline/score", mean
    if (band := noise_band(calibration, seeds)) is None:
        return
    yield "baseline/noise_low", band[0]
    yield "baseline/noise_high", band[1]
    tries = sum(len(generation.healthy) for generation in state.told if generation.is_full)
    yield from _of(("baseline/best_by_luck", luck(calibration, tries, seeds)))
