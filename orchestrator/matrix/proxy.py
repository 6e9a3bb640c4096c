"""`check proxy`: the same candidates in full and short, to see whether both rank them alike."""

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import ClassVar

from budgets.formatting import PROGRAM
from budgets.plan import Calibration, Devices, Envelope, Parent, Phase, Plan, Variant
from budgets.proxy import LEAST_CANDIDATES, certificate
from budgets.state import RunState
from budgets.verdict import recommendation
from objectives import registry
from orchestrator.config import Config
from orchestrator.matrix.matrix import within
from orchestrator.plan.resolve import check_population, family_of, plan_of, proxy_terms, short_hash
from orchestrator.records.recommended import Point
from orchestrator.records.recorded import finished_runs

SIGMA = 0.1
"""Of each knob's range: how far around the baseline candidates lie, where no run says."""


@dataclass(frozen=True)
class Near:
    """Where a run's search stands: what it recommends, and its last step size."""

    run_id: str
    head: str  # of that run's ledger
    centre: Point
    sigma: float

    @property
    def parent(self) -> Parent:
        """That run, of which the check pays nothing."""
        return Parent(run_id=self.run_id, head=self.head, device_ms=0, open_ms=0)


@dataclass(frozen=True)
class ProxyCheck:
    """What shall be compared. The `config` says on which objective and within what."""

    config: Config
    fraction: float = 0.25  # of an evaluation's FLOPs
    candidates: int = LEAST_CANDIDATES
    seeds: int = 1
    near: Near | None = None  # None: the baseline
    phase: ClassVar[Phase] = "check"

    def points(self) -> tuple[Point, ...]:
        """Candidates drawn around the centre, normally in each knob and within the unit cube."""
        space = self.config.tuned.space
        centre, sigma = space.baseline, SIGMA
        if self.near is not None:
            centre, sigma = self.near.centre, self.near.sigma
        random = Random(f"{self.config.evaluation.seed}/proxy")  # noqa: S311 - no secret
        return tuple(
            tuple(_within(random, unit, sigma) for unit in centre) for _ in range(self.candidates)
        )

    def name(self, kind: str) -> str:
        """The check's id. What was asked decides it, so the same command finds the same check."""
        near = self.near
        where = None if near is None else (near.run_id, near.centre, near.sigma)
        asked = (self.fraction, self.candidates, self.seeds, *within(self.config), where)
        return f"proxy-{family_of(self.config.tuned, kind)}-{short_hash(repr(asked))}"

    def plan(self, devices: Devices, calibration: Calibration | None) -> Plan:
        """One generation in full, its candidates short beside it.

        Raises ValueError where a cap on evaluations, of which the full ones are half, does not pay
        for both.
        """
        check_population(self.candidates)
        config, most = self.config, self.config.budget.max_evals
        shape = Envelope(population=self.candidates, generations=1, seeds_per_candidate=self.seeds)
        if most is not None and most < 2 * shape.evaluations:
            raise ValueError(
                f"--max-evals {most} does not pay for the {2 * shape.evaluations} "
                "evaluations of a comparison"
            )
        return plan_of(
            config,
            devices,
            calibration,
            shape,
            self.phase,
            run_id=self.name(devices.kind),
            parent=None if self.near is None else self.near.parent,
            proxy=proxy_terms(config.tuned, self.fraction, calibration),
        )

    def in_words(self, plan: Plan) -> str:
        assert plan.proxy is not None
        where = "the baseline" if self.near is None else f"what {self.near.run_id} recommends"
        return (
            f"Comparing {plan.proxy.variant.label} with the full evaluation: {self.candidates} "
            f"candidates around {where}, {plan.resolved.evaluations} evaluations of each length."
        )


def _within(random: Random, unit: float, sigma: float) -> float:
    while True:
        drawn = random.gauss(unit, sigma)
        if 0.0 <= drawn <= 1.0:
            return drawn


def near(state: RunState) -> Near:
    """Where the run stands. Raises ValueError on one that has searched nothing yet."""
    plan, point = state.plan, recommendation(state)
    told = state.completed[-1].told if state.completed else None
    if plan.search is None:
        raise ValueError(f"{plan.run_id} is a {plan.phase}: expected a search's run")
    if point is None or told is None:
        raise ValueError(f"{plan.run_id} recommends nothing: there is nowhere to look")
    return Near(plan.run_id, state.head, point, told.sigma)


def on_shorter_evaluations(config: Config) -> Config:
    """A search whose evaluations are all short, as `search.proxy` says; a Go's long run is full.

    Raises ValueError unless a finished check here has shown that this ranks candidates as the full
    evaluation does.
    """
    fraction, full = config.search.proxy, config.tuned
    assert fraction is not None, "asked for"
    shorter = proxy_terms(full, fraction, None).variant
    name, _, _ = f"proxy-{family_of(full, 'cpu')}".rpartition("-")  # on whatever kind of device
    checks = (run.state for run in finished_runs(Path(config.runs_dir), "check", name))
    if not any(_agrees(state, shorter) for state in checks):
        raise ValueError(
            f"search.proxy: no check has shown that {shorter.label} ranks candidates as the full "
            f"evaluation does: {PROGRAM} check proxy --fraction {fraction:g} with the same "
            "--objective and --set"
        )
    short = config.with_objective(registry.load(registry.varied(full.spec, shorter.settings)))
    return short if short.verdict.rung is not None else short.having({"verdict.rung": 1 / fraction})


def _agrees(state: RunState, shorter: Variant) -> bool:
    terms, found = state.plan.proxy, certificate(state)
    is_same = terms is not None and terms.variant.settings == shorter.settings
    return is_same and found is not None and found.holds
