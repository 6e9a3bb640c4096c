"""Losses over the steps of a few evaluations, from what each said while it ran."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from budgets.events import Settled, Status
from budgets.ledger.head import read_mark
from budgets.state import Batch, RunState
from budgets.verdict.finalists import BASELINE, full_ones
from orchestrator.execution.attempts import METRICS
from orchestrator.records.attempts import attempt_place
from orchestrator.records.recorded import ledgers
from orchestrator.report.files import read_whole
from orchestrator.report.measured import scored_by
from orchestrator.report.model import Curve

MOST_POINTS = 200
MOST_BYTES = 16 << 20
MOST_CONDITIONS = 6
"""Of a campaign: more curves than can be told apart show nothing."""

STEPS = ("step", "steps", "global_step", "iteration", "iter")
"""What programs call the step that they are at; our own call it by the first of these."""

LOSSES = ("loss", "train_loss", "training_loss", "train/loss")


class Source(NamedTuple):
    """An evaluation that may have left a curve."""

    name: str
    seed: int
    directory: Path  # of the run
    place: str  # of the evaluation in it


def curves(directory: Path, state: RunState) -> tuple[tuple[Curve, ...], str]:
    """Those of the best and of what it is compared with; or none, and why."""
    score = scored_by(state)
    found: list[Curve] = []
    for sources in _wanted(directory, state):
        read = (read_curve(source, score) for source in sources)
        found += islice(filter(None, read), 1)
    if found:
        return tuple(found), ""
    if not any(batch.results() for batch in state.batches()):
        return (), "no evaluation is over yet"
    return (), "no evaluation that was looked at left its steps with a loss"


def read_curve(source: Source, score: str = "") -> Curve | None:
    """The evaluation's curve; None where it left none that can be read."""
    try:
        data = read_whole(source.directory, f"{source.place}/{METRICS}", MOST_BYTES)
    except (OSError, ValueError):
        return None
    beats = list(_objects(data.splitlines()))
    for loss in (*LOSSES, score):
        points = list(_points(beats, loss))
        if len(points) > 1:
            steps, values = zip(*_fewer(points), strict=True)
            quantity = "train loss" if loss in LOSSES else loss
            return Curve(
                name=source.name, seed=source.seed, quantity=quantity, steps=steps, values=values
            )
    return None


def _points(beats: Iterable[dict[str, Any]], loss: str) -> Iterator[tuple[float, float]]:
    """Step and loss wherever both are said, as long as the steps rise."""
    last = -math.inf
    for said in beats:
        step = next((s for name in STEPS if (s := _finite(said.get(name))) is not None), None)
        value = _finite(said.get(loss))
        if step is not None and value is not None and step > last:
            last = step
            yield step, value


def _fewer(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The first, the last, and evenly between them as many as a plot can show."""
    last = len(points) - 1
    count = min(len(points), MOST_POINTS)
    return [points[round(place * last / (count - 1))] for place in range(count)]


def _wanted(directory: Path, state: RunState) -> Iterator[Iterator[Source]]:
    """For each curve that is wanted the evaluations that may have it, one as good as another."""
    if state.plan.campaign is not None:
        yield from _of_conditions(directory, state)
        return
    yield _of_baseline(directory, state)
    winner, decided = state.panel("winner"), state.decided
    if winner is not None:
        is_go = decided is not None and decided.grade != "no_go"
        name = "recommended" if is_go else "winner"
        yield _healthy(directory, winner, name, 0, winner.scores_by_seed(0))
    if (best := _best(state)) is not None:
        yield iter([Source("best of the search", best.seed, directory, _place(best))])


def _of_baseline(directory: Path, state: RunState) -> Iterator[Source]:
    """On a seed of the winner's if it has one, of the comparison, or where it was calibrated.

    Of a check its first candidate, which around a recommendation is that.
    """
    reference, winner = state.panel("reference"), state.panel("winner")
    if reference is not None:
        seeds = [*(winner.scores_by_seed(0) if winner else ()), *reference.scores_by_seed(0)]
        yield from _healthy(directory, reference, BASELINE, 0, seeds)
    for generation in state.generations if state.plan.search is None else ():
        name = BASELINE if state.plan.parent is None else "recommended"
        yield from _healthy(directory, generation, name, 0, generation.seeds)
    yield from _of_calibration(directory, state)


def _place(end: Settled) -> str:
    return f"eval/{attempt_place(end)}"


def _healthy(
    directory: Path, batch: Batch, name: str, candidate: int, seeds: Iterable[int]
) -> Iterator[Source]:
    for seed in seeds:
        end = batch.result(candidate, seed)
        if end is not None and end.status is Status.OK:
            yield Source(name, seed, directory, _place(end))


def _of_calibration(directory: Path, state: RunState) -> Iterator[Source]:
    """The baseline where the run's calibration measured it: in a directory beside the run's."""
    calibration = state.plan.calibration
    if calibration is None or not calibration.ledger:
        return
    for place in sorted(ledgers(directory.absolute().parent.parent, "calibration")):
        mark = read_mark(place)
        if mark is not None and mark.digest == calibration.ledger:
            for sample in calibration.samples:
                at = f"eval/gen_0000/cand_0000/seed_{sample.seed}"
                yield Source(BASELINE, sample.seed, place.parent, at)


def _best(state: RunState) -> Settled | None:
    """The evaluation with the lowest score of the search, in full."""
    healthy = [
        (end.score, place, end)
        for place, end in enumerate(e for g in full_ones(state) for e in g.results())
        if end.score is not None
    ]
    return min(healthy)[2] if healthy else None


def _of_conditions(directory: Path, state: RunState) -> Iterator[Iterator[Source]]:
    """The controls, then the conditions with the best mean scores."""
    for generation in state.generations[:1]:
        conditions, scores = generation.conditions, enumerate(generation.scores())
        known = [
            (not conditions[place].control, score, place)
            for place, score in scores
            if score is not None
        ]
        for _, _, place in sorted(known)[:MOST_CONDITIONS]:
            seeds = generation.seeds
            yield _healthy(directory, generation, conditions[place].name, place, seeds)


def _finite(value: object) -> float | None:
    """The number, if it is one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _objects(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """JSON objects, one a line; a line that is torn, or anything else, is passed over."""
    for line in lines:
        try:
            found = orjson.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found
