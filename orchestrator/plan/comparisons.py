"""The evaluation seeds of a run, and the comparisons beside a search on fresh seeds."""

import hashlib
from itertools import count, islice
from typing import NamedTuple

from budgets.events import Asked
from budgets.plan import ComparisonName, Configuration, Plan
from budgets.schedule import next_action
from budgets.state import RunState
from budgets.verdict import BASELINE, INCUMBENT, finalists, winner
from objectives.api import Variant

Seeds = tuple[int, ...]


# Seeds


def evaluation_seeds(plan: Plan, generation: int) -> Seeds:
    """Return the S seeds that all candidates of the generation share, fresh in every generation.

    Each phase draws from a stream of its own, so no search uses its calibration's seeds.
    """
    if plan.campaign is not None:
        return plan.campaign.seeds
    stream = f"{plan.evaluation_seed}/{plan.phase}"
    return tuple(
        _seed(f"{stream}/{generation}/{repeat}")
        for repeat in range(plan.resolved.seeds_per_candidate)
    )


class ConfirmationSeeds(NamedTuple):
    """Fresh seeds: used by neither calibration nor search, and each for one purpose."""

    picking: Seeds
    verdict: Seeds
    long_run: Seeds


def confirmation_seeds(plan: Plan) -> ConfirmationSeeds:
    """Return the fresh seeds of a plan with a confirmation, however many generations it has."""
    wanted = plan.confirmation
    assert wanted is not None, "the plan compares"
    most = plan.nominal.evaluations // plan.resolved.per_generation  # an amendment may add some
    generations = range(max(plan.resolved.generations, most))
    used = {seed for number in generations for seed in evaluation_seeds(plan, number)}
    if plan.calibration is not None:
        used |= {sample.seed for sample in plan.calibration.samples}
    counts = wanted.picking_seeds, wanted.seeds, wanted.long_run_seeds
    fresh = list[int]()
    stream = (_seed(f"{plan.evaluation_seed}/{plan.phase}/confirm/{number}") for number in count())
    while len(fresh) < sum(counts):
        if (seed := next(stream)) not in used:
            used.add(seed)
            fresh.append(seed)
    left = iter(fresh)
    return ConfirmationSeeds(*(tuple(islice(left, number)) for number in counts))


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) % (2**31 - 1) + 1


# What is evaluated


def next_generation(state: RunState, configurations: tuple[Configuration, ...]) -> Asked:
    """Return the generation of these configurations, on the seeds that they share."""
    fields = set(Configuration.model_fields)  # a campaign's conditions have more
    own = tuple(Configuration(**one.model_dump(include=fields)) for one in configurations)
    seeds = (evaluation_seeds(state.plan, state.begun),) * len(own)
    return Asked(generation=state.begun, configurations=own, seeds=seeds)


def due(state: RunState) -> Asked | None:
    """Return the comparison that comes next, by the plan and the ledger so far; None if none is."""
    plan, wanted, step = state.plan, state.plan.confirmation, next_action(state)
    if step == "proxy":
        return short_evaluations(state)
    if wanted is None or step in ("generation", "decide", "over"):
        return None
    name: ComparisonName = step  # type: ignore[assignment]  # the other steps are comparisons
    if state.comparisons.get(name) is not None:
        return None
    seeds, best = confirmation_seeds(plan), winner(state)
    base = Configuration(name=BASELINE, point=plan.space.baseline)
    if name == "reference":
        pairs = [(base, (*seeds.picking, *seeds.verdict))]
        if wanted.incumbent is not None:
            pairs += [(Configuration(name=INCUMBENT, point=wanted.incumbent), seeds.verdict)]
        own = seeds.verdict[: wanted.control_seeds]
        controls = (Configuration(point=base.point, **one.model_dump()) for one in wanted.controls)
        pairs += [(one, own) for one in controls if own]
    elif name == "finalists":
        pairs = [(finalist, seeds.picking) for finalist in finalists(state)]
    else:
        assert best is not None, "some finalist has a score"
        pairs = [(best, seeds.verdict)]
    if name == "long_run":
        assert wanted.long_run is not None, "it was planned"
        both, variant = (base, pairs[0][0]), wanted.long_run
        pairs = [(_varied(one, variant), seeds.long_run) for one in both]
    configurations, each = zip(*pairs, strict=True)
    return Asked(comparison=name, configurations=configurations, seeds=each)


def short_evaluations(state: RunState) -> Asked:
    """Return the current generation's configurations on its seeds, evaluated short."""
    assert state.plan.proxy is not None, "a check of a proxy has one"
    assert state.current is not None, "the generation is asked first"
    own = tuple(_varied(one, state.plan.proxy) for one in state.current.configurations)
    return Asked(comparison="proxy", configurations=own, seeds=state.current.seeds)


def _varied(own: Configuration, variant: Variant) -> Configuration:
    changed = {"settings": variant.settings, "cost_factor": variant.cost_factor}
    return own.model_copy(update=changed)
