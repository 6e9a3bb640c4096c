"""What a search's distribution looks like: how far each knob spreads, and which go together."""

from dataclasses import dataclass

import numpy as np

from orchestrator.search.arithmetic import Array, eigh

Point = tuple[float, ...]
Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Landscape:
    """A search's normal distribution, in units of the knobs' ranges.

    Within 0.05 of an end of a range the box bends the coordinates, and a knob spreads less than is
    said here; everywhere else the distribution is that of the points.
    """

    mean: Point  # its mean, as a point of the unit cube
    sigma: float  # the search's step size
    deviations: tuple[float, ...]  # standard deviation of each knob
    correlations: Matrix
    condition: float  # of the covariance matrix: its longest axis by its shortest, squared

    @property
    def scale(self) -> float:
        """Root mean square of the deviations: the sigma0 that goes with `shape`."""
        return float(np.sqrt(np.mean(np.square(self.deviations))))

    @property
    def shape(self) -> Matrix:
        """The covariance matrix scaled to a mean diagonal of 1, for `SearchTerms.shape`."""
        deviations = np.array(self.deviations) / self.scale
        return rows(np.array(self.correlations) * np.outer(deviations, deviations))


def landscape(mean: Point, sigma: float, covariance: Array) -> Landscape:
    """The landscape of N(mean, covariance), which a search got at step size `sigma`."""
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
    """The matrix as a ledger and a report hold it."""
    return tuple(tuple(float(value) for value in row) for row in matrix)
