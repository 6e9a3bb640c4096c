"""A proxy check: the same candidates in full and short, to see whether both rank them alike."""

from dataclasses import dataclass
from random import Random

from budgets.proxy.certificate import LEAST_CANDIDATES
from budgets.report.model import recommendation
from budgets.state import RunState
from budgets.terms import Calibration, Caps, Devices, Envelope, Parent, Plan
from orchestrator.checks.space import Point
from orchestrator.planning.known_knobs import check_family
from orchestrator.planning.plan import caps_for, described, limits_for, short_hash
from orchestrator.planning.proxy import check_population, proxy_terms
from orchestrator.planning.request import Request

SIGMA = 0.1
"""Of each knob's range: how far around the baseline candidates lie, where no run says."""


@dataclass(frozen=True)
class Near:
    """Where a run's search stands: what it recommends, and its last step size."""

    run_id: str
    head: str  # of that run's ledger
    centre: Point
    sigma: float


@dataclass(frozen=True)
class ProxyCheckRequest:
    """What shall be compared. The `terms` say on which objective, within what, and how short."""

    terms: Request
    candidates: int = LEAST_CANDIDATES
    seeds: int = 1
    near: Near | None = None  # None: the baseline

    @property
    def fraction(self) -> float:
        """Of an evaluation's FLOPs. Raises ValueError where none was asked for."""
        if self.terms.proxy is None:
            raise ValueError("--fraction: how short shall the other evaluation be?")
        return self.terms.proxy

    def points(self) -> tuple[Point, ...]:
        """Candidates drawn around the centre, normally in each knob and within the unit cube."""
        space = self.terms.objective.space
        centre, sigma = space.baseline, SIGMA
        if self.near is not None:
            centre, sigma = self.near.centre, self.near.sigma
        random = Random(f"{self.terms.evaluation_seed}/proxy")  # noqa: S311 - no secret
        return tuple(
            tuple(_within(random, unit, sigma) for unit in centre) for _ in range(self.candidates)
        )

    def name(self, kind: str) -> str:
        return proxy_check_name(self, kind)

    def plan(self, devices: Devices, calibration: Calibration | None) -> Plan:
        return proxy_check_plan(self, devices, calibration)

    def in_words(self, plan: Plan) -> str:
        assert plan.proxy is not None
        where = "the baseline" if self.near is None else f"what {self.near.run_id} recommends"
        return (
            f"Comparing {plan.proxy.varied.label} with the full evaluation: {self.candidates} "
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
    told = state.told[-1].told if state.told else None
    if plan.search is None:
        raise ValueError(f"{plan.run_id} is a {plan.phase}: expected a search's run")
    if point is None or told is None:
        raise ValueError(f"{plan.run_id} recommends nothing: there is nowhere to look")
    return Near(plan.run_id, state.head, point, told.sigma)


def proxy_check_name(request: ProxyCheckRequest, kind: str) -> str:
    """The check's id. What was asked decides it, so the same command finds the same check."""
    terms, around = request.terms, request.near
    asked = (
        request.fraction,
        request.candidates,
        request.seeds,
        terms.evaluation_seed,
        terms.limit_seconds,
        terms.stall_seconds,
        terms.max_evals,
        terms.max_device_hours,
        terms.max_hours,
        terms.max_cost,
        terms.window,
        terms.price_per_device_hour,
        None if around is None else (around.run_id, around.centre, around.sigma),
    )
    return f"proxy-{check_family(terms.objective, kind)}-{short_hash(repr(asked))}"


def proxy_check_plan(
    request: ProxyCheckRequest, devices: Devices, calibration: Calibration | None
) -> Plan:
    """The plan of a proxy check: one generation in full, its candidates short beside it.

    Raises ValueError where a cap on evaluations does not pay for both.
    """
    terms, around = request.terms, request.near
    check_population(request.candidates)
    shape = Envelope(
        population=request.candidates, generations=1, seeds_per_candidate=request.seeds
    )
    return Plan(
        run_id=proxy_check_name(request, devices.kind),
        phase="check",
        tier=None,
        nominal=shape,
        resolved=shape,
        reasons=(),
        search=None,
        evaluation_seed=terms.evaluation_seed,
        limits=limits_for(terms.limit_seconds, terms.stall_seconds, devices, calibration),
        caps=_caps(terms, shape.evaluations),
        price_per_device_hour=terms.price_per_device_hour,
        devices=devices,
        calibration=calibration,
        parent=None
        if around is None
        else Parent(run_id=around.run_id, head=around.head, device_ms=0, open_ms=0),
        proxy=proxy_terms(terms.objective, request.fraction, calibration),
        **described(terms.objective),
    )


def _caps(terms: Request, evaluations: int) -> Caps:
    """On full evaluations, of which a cap on all of them pays for half."""
    both, most = 2 * evaluations, terms.max_evals
    if most is not None and most < both:
        raise ValueError(
            f"--max-evals {most} does not pay for the {both} evaluations of a comparison"
        )
    return caps_for(terms, evaluations)
