"""Every contender by its name."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from orchestrator.benchmark.contenders import sampling
from orchestrator.benchmark.contenders.api import Contender, Start
from orchestrator.benchmark.contenders.ours import ours
from orchestrator.benchmark.contenders.with_cmaes import cmaes
from orchestrator.benchmark.contenders.with_lq import surrogate
from orchestrator.benchmark.contenders.with_nevergrad import nevergrad
from orchestrator.benchmark.contenders.with_optuna import optuna
from orchestrator.benchmark.contenders.with_pycma import pycma

REFERENCE = "pycma"
"""The plain search that the others are measured against: pycma's mean."""


@dataclass(frozen=True, slots=True)
class Entry:
    """How a contender is made, and what it needs."""

    make: Callable[[Start], Contender]
    needs: str = "cma"  # the module
    goes_on: bool = False  # beyond its budget, so that its price for a result can be told
    alone: bool = False  # on one worker, where the same evaluations take W times as long

    @property
    def is_here(self) -> bool:
        return find_spec(self.needs) is not None


ENTRIES: dict[str, Entry] = {
    "ours": Entry(ours()),
    "ours without model": Entry(ours("mirrored-orthogonal")),
    "ours plain": Entry(ours("plain")),
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
