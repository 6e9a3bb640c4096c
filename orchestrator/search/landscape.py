"""A search's distribution: the spread of each knob, and the correlations between knobs."""

from dataclasses import dataclass

import numpy as np

from orchestrator.search.arithmetic import Array, eigh

Point = tuple[float, ...]
Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Landscape:
    """A search's normal distribution, in units of the knobs' ranges.

    Within 0.05 of an end of a range the boundary handler changes the coordinates, and a knob
    spreads less than these figures say; elsewhere it is the distribution of the points.
    """

    mean: Point  # its mean, as a point of the unit cube
    sigma: float  # the search's step size
    deviations: tuple[float, ...]  # standard deviation of each knob
    correlations: Matrix
    condition: float  # of the covariance matrix: the squared ratio of its longest and shortest axis

    @property
    def scale(self) -> float:
        """The root mean square of the deviations: the sigma0 that goes with `shape`."""
        return float(np.sqrt(np.mean(np.square(self.deviations))))

    @property
    def shape(self) -> Matrix:
        """The covariance matrix scaled to a mean diagonal of 1, for `SearchTerms.shape`."""
        deviations = np.array(self.deviations) / self.scale
        return rows(np.array(self.correlations) * np.outer(deviations, deviations))


def landscape(mean: Point, sigma: float, covariance: Array) -> Landscape:
    """Return the landscape of N(mean, covariance) of a search with step size `sigma`."""
    deviations = np.sqrt(np.diag(covariance))
    correlations = covariance / np.outer(deviations, deviations)
    np.fill_diagonal(correlations, 1.0)
    eigenvalues, _ = eigh(covariance)
    return Landscape(
        mean=mean,
        sigma=sigma,
        deviations=tuple(float(s) for s in deviations),
        correlations=rows((correlations + correlations.T) / 2),
        condition=float(eigenvalues[-1] / eigenvalues[0]),
    )


def rows(matrix: Array) -> Matrix:
    """Return the matrix as plain tuples, for a ledger or a report."""
    return tuple(tuple(float(value) for value in row) for row in matrix)
