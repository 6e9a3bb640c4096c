"""Standard normal directions: where the candidates of a generation lie around its mean.

Called by pycma in place of `numpy.random.randn(rows, dimension)`. Every random number comes from a
generator keyed by (seed, generation or block): asking again gives the same directions.
"""

import numpy as np

from orchestrator.search.arithmetic import Array, orthogonal


class Independent:
    """Independent rows, as in pycma; each generation has a generator of its own."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.begin(0)

    def begin(self, generation: int) -> None:
        self._rng = _generator(self._seed, generation)

    def __call__(self, rows: int, dimension: int) -> Array:
        return self._rng.standard_normal((rows, dimension))


class Chained:
    """Mirrored pairs, orthogonal to each other as long as possible, also across generations.

    Rows 2i and 2i+1 are z and -z; within a block of `dimension` pairs the z are orthogonal, each
    with the length of its own normal draw, so every row alone is still standard normal. (Brockhoff
    et al. 2010, "Mirrored Sampling"; Wang, Emmerich and Bäck 2014, "Mirrored Orthogonal Sampling".)
    A generation of fewer than `dimension` pairs uses some directions of a block, and the next one
    begins with the rest: with 4 pairs in 10 dimensions, three generations cover every direction. If
    known settings take the place of some rows, some directions are left out or used twice.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.begin(0)

    def begin(self, generation: int) -> None:
        self._generation = generation

    def __call__(self, rows: int, dimension: int) -> Array:
        pairs = -(-rows // 2)
        first = self._generation * pairs
        blocks = range(first // dimension, (first + pairs - 1) // dimension + 1)
        chain = np.concatenate([self._block(block, dimension) for block in blocks])
        begin = first - blocks[0] * dimension
        half = chain[begin : begin + pairs]
        mirrored: Array = np.stack([half, -half], axis=1).reshape(2 * pairs, dimension)
        return mirrored[:rows]

    def _block(self, number: int, dimension: int) -> Array:
        draws = _generator(self._seed, number).standard_normal((dimension, dimension))
        return orthogonal(draws)


def _generator(seed: int, number: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, number])))


Directions = Independent | Chained
"""Standard normal rows, generation by generation: `begin` chooses for which one the calls draw."""
