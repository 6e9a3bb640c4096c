"""Draws, linear algebra and functions with the same last bits on every x86-64 processor.

BLAS and LAPACK choose their kernels by the processor, and so do numpy's exp and log: their last
bits differ between machines, and within a few generations the search differs too. This module uses
only additions, multiplications, divisions and square roots, which IEEE 754 defines to the bit. That
is fast enough for searches of some forty knobs and a few hundred points.
"""

import math
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""Natural logarithm of 2; the first part has 20 zero bits at its end. (fdlibm, e_exp.c)"""

NEGLIGIBLE = 2.0**-52
"""Off-diagonal elements below this share of the largest element count as zero."""

SWEEPS = 30
"""Most sweeps of Jacobi's method; about 6 to 10 are enough."""


def dot(left: Any, right: Any) -> Any:
    """Return the matrix product of vectors and matrices, like numpy.dot."""
    left, right = np.asarray(left), np.asarray(right)
    rows, columns = "ij"[2 - left.ndim :], "jk"[: right.ndim]
    return np.einsum(f"{rows},{columns}->{rows[:-1]}{columns[1:]}", left, right)


def exp(values: Any) -> Any:
    """Return e to the power of each value, within two units in the last place; 0 below -745."""
    values = np.clip(values, -800.0, 800.0)
    powers = np.rint(values / math.log(2))
    rest = values - powers * LN2_HIGH - powers * LN2_LOW
    series = np.ones_like(rest)
    for n in range(14, 0, -1):
        series = 1.0 + series * rest / n
    return np.ldexp(series, powers.astype(np.int64))


def log(values: Any) -> Any:
    """Return the natural logarithm of positive values, within a few units in the last place."""
    parts, powers = np.frexp(values)
    is_small = parts < math.sqrt(0.5)
    parts, powers = np.where(is_small, 2 * parts, parts), powers - is_small
    slope = (parts - 1) / (parts + 1)
    series, square = 0.0, slope * slope
    for n in range(25, 0, -2):
        series = 1 / n + series * square
    return powers * LN2_HIGH + (powers * LN2_LOW + 2 * slope * series)


def orthogonal(rows: Array) -> Array:
    """Return the rows (at most as many as columns) made orthogonal, each with its own length.

    Gram and Schmidt's method, applied twice because the first time leaves rounding errors.
    """
    found = np.empty_like(rows)
    for i, row in enumerate(rows):
        rest = row
        for _ in range(2):
            rest = rest - dot(dot(found[:i], rest), found[:i])
            rest = rest / np.sqrt(np.sum(rest * rest))
        found[i] = rest
    lengths: Array = np.sqrt(np.sum(rows * rows, axis=1, keepdims=True))
    return found * lengths


def independent(seed: int, generation: int, rows: int, dimension: int) -> Array:
    """Return standard normal rows; those of each generation are drawn by a generator of its own."""
    return _generator(seed, generation).standard_normal((rows, dimension))


def chained(seed: int, generation: int, rows: int, dimension: int) -> Array:
    """Return mirrored pairs, orthogonal to each other as long as possible, across generations too.

    Rows 2i and 2i+1 are z and -z; within a block of `dimension` pairs the z are orthogonal, each
    with the length of its own normal draw, so every row alone is still standard normal. (Brockhoff
    et al. 2010, "Mirrored Sampling"; Wang, Emmerich and Bäck 2014, "Mirrored Orthogonal Sampling".)
    A generation of fewer than `dimension` pairs uses some directions of a block, and the next one
    begins with the rest: with 4 pairs in 10 dimensions, three generations cover every direction.
    """
    pairs = -(-rows // 2)
    first = generation * pairs
    blocks = range(first // dimension, (first + pairs - 1) // dimension + 1)
    size = (dimension, dimension)
    draws = (_generator(seed, block).standard_normal(size) for block in blocks)
    chain = np.concatenate([orthogonal(draw) for draw in draws])
    begin = first - blocks[0] * dimension
    half = chain[begin : begin + pairs]
    mirrored: Array = np.stack([half, -half], axis=1).reshape(2 * pairs, dimension)
    return mirrored[:rows]


def _generator(seed: int, number: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, number])))


def eigh(matrix: Array) -> tuple[Array, Array]:
    """Return eigenvalues, smallest first, and eigenvectors (columns) of a symmetric matrix.

    Jacobi's method: pairs of coordinates are rotated, disjoint pairs at once, until the matrix is
    diagonal. (Golub and Van Loan, "Matrix Computations", 4th ed., 8.5.)
    """
    count = len(matrix)
    size = count + count % 2  # pairs need an even number; an added coordinate is not rotated
    turned, vectors = np.zeros((size, size)), np.eye(size)
    turned[:count, :count] = matrix
    order = np.arange(size)
    for _ in range(SWEEPS):
        beside = np.abs(turned - np.diag(np.diag(turned)))
        if not np.any(beside > NEGLIGIBLE * np.abs(turned).max()):
            break
        for _ in range(size - 1):
            p, q = order[: size // 2], order[: size // 2 - 1 : -1]
            _turn(turned, vectors, p, q)
            order = np.concatenate([order[:1], order[-1:], order[1:-1]])
    values = np.diag(turned)[:count]
    ascending = np.argsort(values, kind="stable")
    return values[ascending], vectors[:count, ascending]


def _turn(turned: Array, vectors: Array, p: Any, q: Any) -> None:
    """Rotate each pair of coordinates p and q so that their coupling is zero."""
    coupling = turned[p, q]
    is_coupled = coupling != 0
    with np.errstate(over="ignore"):  # with a tiny coupling
        ratio = (turned[q, q] - turned[p, p]) / np.where(is_coupled, 2 * coupling, 1.0)
    ratio = np.clip(ratio, -1e150, 1e150)
    tangent = np.where(ratio < 0, -1.0, 1.0) / (np.abs(ratio) + np.sqrt(1 + ratio * ratio))
    tangent = np.where(is_coupled, tangent, 0.0)
    cosine = 1 / np.sqrt(1 + tangent * tangent)
    sine = tangent * cosine
    for columns in (turned, turned.T, vectors):
        first, second = columns[:, p], columns[:, q]
        columns[:, p], columns[:, q] = (
            cosine * first - sine * second,
            sine * first + cosine * second,
        )
    turned[p, q] = turned[q, p] = 0.0


class Tridiagonal(NamedTuple):
    """A symmetric matrix without negative eigenvalues, as Q T Q' with T tridiagonal."""

    diagonal: Array  # (n,) of T
    beside: Array  # (n - 1,) of T
    reflections: list[Array]  # unit vectors u; Q is the product of I - 2 u u', the first one left

    @classmethod
    def of(cls, matrix: Array) -> "Tridiagonal":
        """By Householder's reflections. (Golub and Van Loan, 8.3.1.)"""
        rest, diagonal, beside, reflections = matrix.copy(), [], [], []
        while len(rest) > 1:
            unit = rest[1:, 0].copy()
            element = -math.copysign(math.sqrt(dot(unit, unit)), unit[0])
            unit[0] -= element
            unit /= math.sqrt(dot(unit, unit)) or 1.0
            diagonal.append(rest[0, 0])
            beside.append(element)
            reflections.append(unit)
            rest = rest[1:, 1:]
            product = dot(rest, unit)
            product = 2 * (product - dot(product, unit) * unit)
            rest -= np.multiply.outer(unit, product)
            rest -= np.multiply.outer(product, unit)
        diagonal.append(rest[0, 0])
        return cls(np.array(diagonal), np.array(beside), reflections)

    def turned(self, columns: Array, *, back: bool = False) -> Array:
        """Return Q' times the columns (n, k), or `back` Q times them."""
        found = columns.copy()
        for unit in self.reflections[::-1] if back else self.reflections:
            part = found[-len(unit) :]
            part -= np.multiply.outer(unit, 2 * dot(unit, part))
        return found

    def pivots(self, added: Array) -> Array:
        """Return D (n, m) of T + a I = L D L' for each `added` a > 0.

        Without rounding errors no pivot is below a. The sum of their logarithms is the logarithm of
        the determinant.
        """
        pivots = np.empty((len(self.diagonal), len(added)))
        pivots[0] = np.maximum(self.diagonal[0] + added, added)
        for i, beside in enumerate(self.beside):
            pivots[i + 1] = np.maximum(
                self.diagonal[i + 1] + added - beside * beside / pivots[i], added
            )
        return pivots

    def forward(self, pivots: Array, right: Array) -> Array:
        """Return L^-1 right (n, m, k) for m columns of `pivots` and k columns of `right`."""
        found = np.empty((*pivots.shape, right.shape[1]))
        found[0] = right[0]
        for i, factor in enumerate(self.beside[:, None, None] / pivots[:-1, :, None]):
            found[i + 1] = right[i + 1] - factor * found[i]
        return found

    def backward(self, pivots: Array, found: Array) -> Array:
        """Return (T + a I)^-1 right (n,) from the pivots and L^-1 right."""
        solution = found / pivots
        for i, factor in reversed(list(enumerate(self.beside / pivots[:-1]))):
            solution[i] -= factor * solution[i + 1]
        return solution


NUMPY = SimpleNamespace(**{**vars(np), "dot": dot, "exp": exp})
"""numpy for pycma: it calls no other function whose bits depend on the processor."""
