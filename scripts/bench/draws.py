"""Random numbers that belong to what they are for: the same whoever asks, in whatever order."""

from hashlib import blake2b
from math import cos, log, pi, sqrt

import numpy as np


def _digest(parts: tuple[object, ...]) -> bytes:
    return blake2b(repr(parts).encode(), digest_size=16).digest()


def keyed(*parts: object) -> np.random.Generator:
    """A generator that is this key's alone."""
    entropy = int.from_bytes(_digest(parts), "little")
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))


def seed_of(*parts: object) -> int:
    """A seed that any library takes: from 1 to 2^31 - 1."""
    return 1 + int.from_bytes(_digest(parts)[:8], "little") % (2**31 - 1)


def normal(*parts: object) -> float:
    """One standard normal number that is this key's (G. E. P. Box and M. E. Muller, 1958)."""
    digest = _digest(parts)
    first, second = (int.from_bytes(half, "little") for half in (digest[:8], digest[8:]))
    return sqrt(-2 * log((first + 1) / 2**64)) * cos(2 * pi * second / 2**64)
