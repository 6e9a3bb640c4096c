"""What one search learned of its distribution, as the beginning of a search with more knobs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.search.landscape import Matrix, rows


@dataclass(frozen=True)
class WarmStart:
    """A distribution to begin with, as `SearchTerms` say it."""

    shape: Matrix  # covariance matrix with a mean diagonal of 1
    sigma0: float


def blocks(
    shape: Sequence[Sequence[float]],
    names: Sequence[str],
    larger: Sequence[str],
    *,
    sigma: float = 1.0,
    sigma0: float = 1.0,
) -> WarmStart:
    """The distribution of the knobs `larger`, of which `names` were searched before.

    A known knob keeps its standard deviation, `sigma` times the root of its diagonal entry in
    `shape`, and its correlations to other known knobs; a new one gets `sigma0`, and is correlated
    to none. Known knobs that are not in `larger` are left out. Left at 1 each, the sigmas give a
    new knob the mean variance of the known ones. Raises ValueError unless `shape` has a row and a
    column for each of the names, which must differ.
    """
    known = np.array(shape, dtype=np.float64)
    if known.shape != (len(names), len(names)):
        raise ValueError(f"expected a shape for {len(names)} knobs, got {known.shape}")
    for given in (names, larger):
        if len(set(given)) < len(given):
            raise ValueError(f"knob names must differ, got {', '.join(given)}")
    places = {name: place for place, name in enumerate(names)}
    kept = [i for i, name in enumerate(larger) if name in places]
    source = [places[larger[i]] for i in kept]
    covariance = sigma0**2 * np.eye(len(larger))
    covariance[np.ix_(kept, kept)] = sigma**2 * known[np.ix_(source, source)]
    variance = float(np.mean(np.diag(covariance)))
    return WarmStart(rows(covariance / variance), float(np.sqrt(variance)))
