"""Whether what is replayed is what was recorded."""

import numpy as np

from budgets.events import GenerationTold, Guided
from budgets.state import Batch
from orchestrator.records.diverged import ReplayError
from orchestrator.search.landscape import Point

REPLAY_TOLERANCE = 1e-9
"""Largest difference between a recorded and a re-asked coordinate that is the same point: other
linear algebra kernels move the last bits, a different search moves far more."""

DRIFT_TOLERANCE = 1e-6
"""The same for what the search's state has become after many generations of such differences."""

GUIDE_TOLERANCE = 1e-2
"""The same for where a model would put the mean: its lowest point lies in a flat place."""


def compare_points(generation: Batch, points: tuple[Point, ...]) -> None:
    """Raises ReplayError unless these are the points that the generation was asked at."""
    recorded = np.array(generation.points)
    replayed = np.array(points)
    if recorded.shape != replayed.shape:
        why = f"{recorded.shape} coordinates are recorded, {replayed.shape} are asked"
        raise ReplayError(generation.number, why)
    difference = np.abs(recorded - replayed)
    if (largest := float(difference.max())) > REPLAY_TOLERANCE:
        candidate = int(difference.max(axis=1).argmax())
        why = f"candidate {candidate} differs by {largest:.2g} from the recorded point"
        raise ReplayError(generation.number, why)


def compare_told(recorded: GenerationTold, replayed: GenerationTold, *, accept_drift: bool) -> None:
    """Raises ReplayError unless the search stands where the record says it stood."""
    if recorded == replayed:
        return
    pairs = zip((*recorded.mean, recorded.sigma), (*replayed.mean, replayed.sigma), strict=True)
    drift = max(abs(a - b) for a, b in pairs)
    _check_drift(
        recorded.generation,
        drift,
        "the search stands",
        accept_drift=accept_drift,
        is_other=drift > DRIFT_TOLERANCE or recorded.digest == replayed.digest,
    )


def compare_guided(told: GenerationTold, replayed: Guided | None, *, accept_drift: bool) -> None:
    """Raises ReplayError unless a model advises what the record says it advised."""
    recorded = told.guided
    if recorded == replayed:
        return
    if recorded is None or replayed is None:
        who = "a model advised the search" if recorded else "no model advised the search"
        raise ReplayError(told.generation, f"{who}, says the record, and that is not so")
    pairs = zip(recorded.centre, replayed.centre, strict=True)
    drift = max(abs(a - b) for a, b in pairs)
    _check_drift(
        told.generation,
        drift,
        "the model puts the mean",
        accept_drift=accept_drift,
        is_other=drift > GUIDE_TOLERANCE,
    )
    steps = (recorded.sigma or 0.0, replayed.sigma or 0.0)
    if abs(steps[0] - steps[1]) > DRIFT_TOLERANCE:
        why = f"a step of {steps[0]:.3g} was held, says the record, and not {steps[1]:.3g}"
        raise ReplayError(told.generation, why)


def _check_drift(
    generation: int, drift: float, what: str, *, accept_drift: bool, is_other: bool
) -> None:
    if is_other:
        raise ReplayError(generation, f"{what} {drift:.2g} from where the record says")
    if not accept_drift:
        why = (
            f"the same search, but not bit for bit (off by {drift:.2g}): --accept-drift goes on "
            "here all the same"
        )
        raise ReplayError(generation, why)
