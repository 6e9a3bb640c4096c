"""Every contender by its name."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from scripts.bench.contenders import sampling
from scripts.bench.contenders.api import Contender, Start
from scripts.bench.contenders.ours import ours
from scripts.bench.contenders.with_cmaes import cmaes
from scripts.bench.contenders.with_lq import surrogate
from scripts.bench.contenders.with_nevergrad import nevergrad
from scripts.bench.contenders.with_optuna import optuna
from scripts.bench.contenders.with_pycma import pycma
from scripts.bench.problem import VERSION

REFERENCE = "pycma"
"""The plain search that the others are measured against: pycma's mean."""


@dataclass(frozen=True, slots=True)
class Entry:
    """How a contender is made, and what it needs."""

    make: Callable[[Start], Contender]
    needs: str = "cma"  # the module
    goes_on: bool = False  # beyond its budget, so that its price for a result can be told
    alone: bool = False  # on one worker, where the same evaluations take W times as long

    sources: tuple[str, ...] = ()  # modules and packages of ours that it consists of

    @property
    def version(self) -> str:
        """What its results rest on: another is another contender."""
        parts = [f"{self.needs} {version(self.needs)}", f"races {VERSION}"]
        if self.sources:
            digest = sha256(b"".join(path.read_bytes() for path in _files(self.sources)))
            parts.append(f"ours {digest.hexdigest()[:8]}")
        return ", ".join(parts)

    @property
    def is_here(self) -> bool:
        return find_spec(self.needs) is not None


def _files(modules: tuple[str, ...]) -> Iterator[Path]:
    """Their source files: of a package, those directly in it."""
    for module in modules:
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        path = Path(spec.origin)
        yield from sorted(path.parent.glob("*.py")) if path.name == "__init__.py" else [path]


SEARCH = ("orchestrator.search", "budgets.verdict.finalists")

ENTRIES: dict[str, Entry] = {
    "ours": Entry(ours("guided"), sources=SEARCH),
    "ours mirrored": Entry(ours("mirrored-orthogonal"), sources=SEARCH),
    "ours plain": Entry(ours("plain"), sources=SEARCH),
    "pycma": Entry(pycma(), goes_on=True),
    "pycma best": Entry(pycma(best=True), goes_on=True),
    "pycma 0.1": Entry(pycma(sigma0=0.1), goes_on=True),
    "pycma own size": Entry(pycma(own_size=True), goes_on=True),
    "pycma lq": Entry(surrogate(in_blocks=True)),
    "pycma lq serial": Entry(surrogate(in_blocks=False)),
    "pycma lq alone": Entry(surrogate(in_blocks=False), alone=True),
    "cmaes": Entry(cmaes(lr_adapt=False), "cmaes"),
    "cmaes lr_adapt": Entry(cmaes(lr_adapt=True), "cmaes"),
    "optuna cmaes": Entry(optuna("cmaes"), "optuna"),
    "optuna tpe": Entry(optuna("tpe"), "optuna"),
    "optuna gp": Entry(optuna("gp"), "optuna"),
    "nevergrad": Entry(nevergrad(), "nevergrad"),
    "random": Entry(sampling.anywhere, "numpy"),
    "nearby": Entry(sampling.nearby, "numpy"),
    "sobol": Entry(sampling.sobol, "scipy"),
    "default": Entry(sampling.Untouched, "numpy"),
}
