"""`check knobs` and `check proxy`: which knobs move the score, how short evaluations may be."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from budgets.checks import LEAST_CANDIDATES, certificate
from budgets.formatting import PROGRAM
from budgets.plan import Envelope, ProxyPlan, Variant
from budgets.state import RunState
from objectives import registry
from objectives.api import Objective
from objectives.space import Knob, SearchSpace
from orchestrator.config import Config, Verdict
from orchestrator.matrix.matrix import Matrix
from orchestrator.plan.resolve import family_of
from orchestrator.records.objective import Point
from orchestrator.records.runs import finished_runs

CHECK_SEEDS = 8
LEAST_SEEDS = 2  # for a spread

SIGMA = 0.1
"""Standard deviation of a proxy check's candidates around the baseline, per knob's range."""


def knob_check(config: Config, seeds: int = CHECK_SEEDS, knobs: Sequence[str] = ()) -> Matrix:
    """Return the baseline and each of these knobs (default: all) alone at its ends.

    Raises ValueError if a cap on evaluations is too low, or the objective has no such knob.
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
    """Return the baseline, then one knob at a time at either end of its range (unit cube)."""
    centre = space.baseline
    moved = (
        (*centre[:place], unit, *centre[place + 1 :])
        for place, knob in enumerate(space.knobs)
        if knob.name in names
        for unit in _other_ends(knob)
    )
    return (centre, *moved)


def _other_ends(knob: Knob) -> list[float]:
    """The ends at which the knob has another value than its baseline."""
    baseline = knob.encode(knob.baseline)
    return [e for e in (0.0, 1.0) if abs(knob.encode(knob.decode(e)) - baseline) > 1e-9]


def proxy_check(
    config: Config,
    fraction: float = 0.25,
    candidates: int = LEAST_CANDIDATES,
    seeds: int = 1,
) -> Matrix:
    """Return candidates drawn around the baseline, in full and at a `fraction` of the FLOPs.

    Raises ValueError if a cap on evaluations does not pay for both.
    """
    proxy = proxy_plan(config.tuned, fraction)
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
    title = (
        f"Comparing {proxy.variant.label} with the full evaluation: {candidates} candidates around "
        f"the baseline, {shape.evaluations} evaluations of each length."
    )
    fields = {"proxy": proxy}
    return Matrix(config, "check", points, shape, title, prefix="proxy-", fields=fields)


def _drawn(random: Random, unit: float) -> float:
    """A normal coordinate around `unit`, within [0, 1]."""
    while True:
        drawn = random.gauss(unit, SIGMA)
        if 0.0 <= drawn <= 1.0:
            return drawn


def proxy_plan(objective: Objective, fraction: float) -> ProxyPlan:
    """Return an evaluation at `fraction` of the objective's FLOPs, with a schedule of its own.

    It is never the first part of a full one: under a schedule that cools down, an intermediate
    score says little about the final one. Raises ValueError if the objective cannot be scaled.
    """
    shorter = objective.scaled(fraction)
    if shorter is None:
        raise ValueError(f"{objective.spec.name} has no shorter evaluation: no proxy is possible")
    cost = round(shorter.length, 4)
    variant = Variant(label=shorter.label, settings=shorter.settings, cost_factor=cost)
    return ProxyPlan(variant=variant)


def on_shorter_evaluations(config: Config) -> Config:
    """Return a search on short evaluations, as `search.proxy` says; a Go's long run is full.

    Raises ValueError unless a finished check has shown that they rank candidates alike.
    """
    fraction, full = config.search.proxy, config.tuned
    assert fraction is not None, "the caller has checked it"
    shorter = proxy_plan(full, fraction).variant
    family, _, _ = family_of(full, "cpu").rpartition("-")  # on any kind of device
    checks = finished_runs(Path(config.runs_dir), "check", f"proxy-{family}")
    if not any(_agrees(check.state, shorter) for check in checks):
        raise ValueError(
            f"search.proxy: no check has shown that {shorter.label} ranks candidates as the full "
            f"evaluation does: {PROGRAM} check proxy --set search.proxy={fraction:g} with the same "
            "--objective and --set"
        )
    short = config.with_objective(registry.load(registry.varied(full.spec, shorter.settings)))
    if short.verdict.long_run != Verdict().long_run:
        return short
    return short.having({"verdict.long_run": 1 / fraction})


def _agrees(state: RunState, shorter: Variant) -> bool:
    proxy, found = state.plan.proxy, certificate(state)
    is_same = proxy is not None and proxy.variant.settings == shorter.settings
    return is_same and found is not None and found.holds
