"""`check knobs` and `check proxy`: what to search and how short, measured before it is paid for."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import median

from budgets.formatting import PROGRAM
from budgets.plan import Calibration, Envelope, ProxyTerms, Variant
from budgets.proxy import LEAST_CANDIDATES, certificate
from budgets.state import RunState
from objectives import registry
from objectives.api import Objective
from objectives.space import Knob, SearchSpace
from orchestrator.config import Config
from orchestrator.matrix.matrix import Matrix
from orchestrator.plan.resolve import family_of
from orchestrator.records.objective import Point
from orchestrator.records.runs import finished_runs

CHECK_SEEDS = 8
LEAST_SEEDS = 2  # a spread needs two

SIGMA = 0.1
"""Of each knob's range: how far around the baseline candidates lie."""


def knob_check(config: Config, seeds: int = CHECK_SEEDS, knobs: Sequence[str] = ()) -> Matrix:
    """Whether each of these knobs (default: all), moved alone to its ends, moves the score.

    Raises ValueError where a cap on evaluations does not pay for it, and on a knob that the
    objective does not have.
    """
    space, objective = config.tuned.space, config.tuned.spec.name
    known = [knob.name for knob in space.knobs]
    if unknown := [repr(name) for name in knobs if name not in known]:
        raise ValueError(
            f"--knobs: {objective} has no {', '.join(unknown)}, expected some of {', '.join(known)}"
        )
    names = [name for name in known if name in knobs or not knobs]
    points, most = check_points(space, names), config.budget.max_evals
    shape = Envelope(population=len(points), generations=1, seeds_per_candidate=seeds)
    if most is not None and most < shape.evaluations:
        raise ValueError(
            f"--max-evals {most} does not pay for {len(points)} points on {seeds} seeds: check "
            "fewer knobs at a time with --knobs, or on fewer --seeds"
        )
    title = (
        f"Checking {', '.join(names)}: {len(points)} points on {seeds} seeds, {shape.evaluations} "
        "evaluations."
    )
    return Matrix(config, "check", points, shape, title)


def check_points(space: SearchSpace, names: Sequence[str]) -> tuple[Point, ...]:
    """The baseline, and one knob at a time at either end of its range, in the unit cube."""
    centre = space.baseline
    moved = (
        (*centre[:place], unit, *centre[place + 1 :])
        for place, knob in enumerate(space.knobs)
        if knob.name in names
        for unit in _other_ends(knob)
    )
    return (centre, *moved)


def _other_ends(knob: Knob) -> list[float]:
    """The ends of the unit interval at which the knob has another value than its baseline."""
    baseline = knob.encode(knob.baseline)
    return [e for e in (0.0, 1.0) if abs(knob.encode(knob.decode(e)) - baseline) > 1e-9]


def proxy_check(
    config: Config,
    fraction: float = 0.25,
    candidates: int = LEAST_CANDIDATES,
    seeds: int = 1,
) -> Matrix:
    """The same candidates in full and at a `fraction` of the FLOPs: whether both rank them alike.

    They are drawn around the baseline. Raises ValueError where a cap on evaluations, of which the
    full ones are half, does not pay for both.
    """
    if candidates < LEAST_CANDIDATES:
        raise ValueError(
            f"a proxy is certified on {LEAST_CANDIDATES} candidates or more, got {candidates}"
        )
    shape = Envelope(population=candidates, generations=1, seeds_per_candidate=seeds)
    most = config.budget.max_evals
    if most is not None and most < 2 * shape.evaluations:
        raise ValueError(
            f"--max-evals {most} does not pay for the {2 * shape.evaluations} evaluations of a "
            "comparison"
        )
    random = Random(f"{config.evaluation.seed}/proxy")  # noqa: S311 - no secret
    points = tuple(
        tuple(_drawn(random, unit) for unit in config.tuned.space.baseline)
        for _ in range(candidates)
    )
    label = proxy_terms(config.tuned, fraction, None).variant.label
    title = (
        f"Comparing {label} with the full evaluation: {candidates} candidates around the baseline, "
        f"{shape.evaluations} evaluations of each length."
    )

    def own(calibration: Calibration | None) -> dict[str, object]:
        return {"proxy": proxy_terms(config.tuned, fraction, calibration)}

    return Matrix(config, "check", points, shape, title, prefix="proxy-", own=own)


def _drawn(random: Random, unit: float) -> float:
    """A normal coordinate around `unit`, within [0, 1]."""
    while True:
        drawn = random.gauss(unit, SIGMA)
        if 0.0 <= drawn <= 1.0:
            return drawn


def proxy_terms(
    objective: Objective, fraction: float, calibration: Calibration | None
) -> ProxyTerms:
    """An evaluation of `fraction` of the objective's FLOPs, with a schedule of its own.

    It is never the first part of a full one: under a schedule that cools down, what a training run
    scores on its way says little of a run that ends there. Raises ValueError on a fraction outside
    (0, 1), and where the objective cannot be scaled.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"search.proxy: expected a number between 0 and 1, got {fraction:g}")
    shorter = objective.scaled(fraction)
    if shorter is None:
        raise ValueError(f"{objective.spec.name} has no shorter evaluation: no proxy is possible")
    samples = () if calibration is None else calibration.samples
    shares = [min(1.0, s.train_seconds / s.seconds) for s in samples if s.seconds > 0]
    share = median(shares) if shares else 1.0  # only training shrinks, not start-up and scoring
    length = round(1 - share + share * shorter.length, 4)
    variant = Variant(label=shorter.label, settings=shorter.settings, cost_factor=length)
    return ProxyTerms(variant=variant)


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
            f"evaluation does: {PROGRAM} check proxy --set search.proxy={fraction:g} with the same "
            "--objective and --set"
        )
    short = config.with_objective(registry.load(registry.varied(full.spec, shorter.settings)))
    return (
        short
        if short.verdict.long_run is not None
        else short.having({"verdict.long_run": 1 / fraction})
    )


def _agrees(state: RunState, shorter: Variant) -> bool:
    terms, found = state.plan.proxy, certificate(state)
    is_same = terms is not None and terms.variant.settings == shorter.settings
    return is_same and found is not None and found.holds
