"""An earlier run where a new search begins: what of it is taken over, what speaks against that."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from budgets.following import BEGINNING
from budgets.state import RunState
from budgets.terms import Inherited, SearchTerms, Source
from orchestrator.planning.plan import Succession
from orchestrator.planning.request import Overrides, Request, method_of
from orchestrator.records.recommended import Point
from orchestrator.warm import distribution

if TYPE_CHECKING:
    from orchestrator.search.landscape import Landscape


@dataclass(frozen=True)
class Predecessor:
    """A run that a phase 2 follows, or where a phase 1 begins."""

    state: RunState
    point: Point  # where it stands, in the space of the new search
    unlearned: tuple[str, ...]  # knobs that begin with the first step
    source: Source | None = None  # of a phase 2
    inherited: Inherited | None = None  # of a warm start
    notes: tuple[str, ...] = ()  # what differs between then and now
    objections: Mapping[str, str] = field(default_factory=dict)  # by rule, with the ways on

    def succession(self, request: Request, seen: "Landscape") -> Succession:
        """The search of `request` from where this one, whose landscape is `seen`, stands."""
        plan, unlearned = self.state.plan, self.unlearned
        return self._succession(request, distribution.begin(seen, plan, request, unlearned))

    def foreseen(self, request: Request) -> Succession:
        """The same as far as the records tell without replaying them: the shape is missing."""
        return self._succession(request, distribution.foreseen(self.state, request.sigma0))

    def _succession(self, request: Request, beginning: distribution.Beginning) -> Succession:
        terms = SearchTerms(
            method=method_of(request),
            seed=request.search_seed,
            sigma0=beginning.sigma0,
            start=self.point,
            shape=beginning.shape,
            inherited=self.inherited,
        )
        return Succession(self.source, terms)

    def permits(self, overrides: Overrides) -> tuple[Overrides, Overrides]:
        """The overrides that let the new run begin, and the others.

        Raises ValueError where one is missing, with the ways on, or where nothing calls for one.
        """
        if self.source is None:
            return (), overrides
        given = {rule for rule, _ in overrides}
        if missing := [why for rule, why in self.objections.items() if rule not in given]:
            raise ValueError(". ".join(missing))
        for rule in BEGINNING:
            if rule in given and rule not in self.objections:
                raise ValueError(f"--override {rule}: that rule does not hold this run up")
        mine = [override for override in overrides if override[0] in self.objections]
        return mine, [override for override in overrides if override not in mine]
