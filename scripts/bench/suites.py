"""Problems by their names, so that another process can build them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from scripts.bench.functions import FUNCTIONS, HELD_OUT, KNOWN
from scripts.bench.noise import Kind
from scripts.bench.own import LEVELS, OwnProblem
from scripts.bench.problem import Problem


@dataclass(frozen=True, slots=True)
class Key:
    """Which problem. As text it is one word, `suite:function:seed:level:kind`."""

    suite: str
    function: str
    seed: int
    level: str = "0"
    kind: str = "white"

    def __str__(self) -> str:
        return f"{self.suite}:{self.function}:{self.seed}:{self.level}:{self.kind}"

    @classmethod
    def parse(cls, text: str) -> "Key":
        suite, function, seed, level, kind = text.split(":")
        return cls(suite, function, int(seed), level, kind)


def _own(key: Key) -> Problem:
    kind: Kind = "shared" if key.kind == "shared" else "white"
    return OwnProblem(key.function, key.seed, key.level, kind)


def _coco(key: Key) -> Problem:
    from scripts.bench.coco import CocoProblem

    return CocoProblem(key.suite, int(key.function), key.seed)


def _training(key: Key) -> Problem:
    from scripts.bench.training import TrainingProblem

    return TrainingProblem(key.function, key.seed)


_BUILDERS: dict[str, Callable[[Key], Problem]] = {
    "own": _own,
    "bbob": _coco,
    "bbob-noisy": _coco,
    "training": _training,
}


def load(key: Key) -> Problem:
    """The problem of that name."""
    return _BUILDERS[key.suite](key)


def _of_own(functions: Iterable[str], kinds: tuple[str, ...]) -> list[Key]:
    return [
        Key("own", function, 0, level, kind)
        for kind in kinds
        for level in LEVELS
        for function in functions
        if kind == "white" or LEVELS[level]
    ]


def keys(suite: str, seeds: range) -> Iterator[Key]:
    """Every problem of a suite with those seeds."""
    every = SUITES[suite]
    for seed in seeds:
        for key in every:
            yield Key(key.suite, key.function, seed, key.level, key.kind)


SUITES: dict[str, list[Key]] = {
    "known": _of_own(KNOWN, ("white",)),
    "held-out": _of_own(HELD_OUT, ("white",)),
    "shared": [key for key in _of_own(FUNCTIONS, ("shared",)) if key.level in {"1/3", "1"}],
    "bbob": [Key("bbob", str(f), 1) for f in range(1, 25)],
    "bbob-noisy": [Key("bbob-noisy", str(f), 1) for f in range(101, 131)],
    "training": [Key("training", "optimizer", 1)],
}
"""What --suite takes, by its first seed."""
