"""Problems by name, so that another process can build them."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from scripts.bench.problems import FUNCTIONS, HELD_OUT, KNOWN, LEVELS, Kind, OwnProblem


class Key(NamedTuple):
    """A problem's name, as text `own:function:seed:level:kind`."""

    function: str
    seed: int
    level: str = "0"
    kind: Kind = "white"

    def __str__(self) -> str:
        return ":".join(map(str, ("own", *self)))

    @classmethod
    def parse(cls, text: str) -> "Key":
        _, function, seed, level, kind = text.split(":")
        return cls(function, int(seed), level, "shared" if kind == "shared" else "white")


def load(key: Key) -> OwnProblem:
    """Return the problem of that name."""
    return OwnProblem(*key)


def _own(functions: Iterable[str], levels: Iterable[str], kind: Kind = "white") -> list[Key]:
    return [Key(function, 0, level, kind) for level in levels for function in functions]


def keys(suite: str, seeds: range) -> Iterator[Key]:
    """Yield every problem of a suite with each of the seeds."""
    for seed in seeds:
        for key in SUITES[suite]:
            yield key._replace(seed=seed)


SUITES: dict[str, list[Key]] = {
    "known": _own(KNOWN, LEVELS),
    "held-out": _own(HELD_OUT, LEVELS),
    "shared": _own(FUNCTIONS, ("1/3", "1"), "shared"),
}
"""The choices of --suite; the seed of each problem is replaced."""
