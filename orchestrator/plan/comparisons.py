"""The evaluation seeds of a run, and the comparisons beside a search on fresh seeds."""

import hashlib
from collections.abc import Iterator
from itertools import count, islice
from typing import NamedTuple

from budgets.events import ComparisonAsked
from budgets.plan import ComparisonName, Configuration, Confirmation, Plan
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
    """Return the fresh seeds of a plan with a confirmation."""
    wanted = plan.confirmation
    assert wanted is not None, "the plan compares"
    seeds = _fresh(f"{plan.evaluation_seed}/{plan.phase}/confirm", _searched(plan))
    long_run = 0 if wanted.long_run is None else wanted.long_run.seeds
    counts = (wanted.picking_seeds, wanted.seeds, long_run)
    return ConfirmationSeeds(*(tuple(islice(seeds, number)) for number in counts))


def _searched(plan: Plan) -> set[int]:
    """Return the seeds of its calibration and of its generations, however it is amended."""
    most = plan.nominal.evaluations // plan.resolved.per_generation
    generations = max(plan.resolved.generations, most)
    used = {seed for number in range(generations) for seed in evaluation_seeds(plan, number)}
    if plan.calibration is not None:
        used |= {sample.seed for sample in plan.calibration.samples}
    return used


def _fresh(stream: str, used: set[int]) -> Iterator[int]:
    """Yield the stream's seeds, each once, without those that are used."""
    known = set(used)
    for number in count():
        seed = _seed(f"{stream}/{number}")
        if seed not in known:
            known.add(seed)
            yield seed


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) % (2**31 - 1) + 1


# Comparisons


def due(state: RunState) -> ComparisonAsked | None:
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
        pairs = list(_reference(base, wanted, seeds))
    elif name == "finalists":
        pairs = [(finalist, seeds.picking) for finalist in finalists(state)]
    elif name == "winner":
        assert best is not None, "some finalist has a score"
        pairs = [(best, seeds.verdict)]
    else:
        assert best is not None, "a winner was found"
        assert wanted.long_run is not None, "it was planned"
        pairs = [(_varied(one, wanted.long_run.variant), seeds.long_run) for one in (base, best)]
    configurations, each = zip(*pairs, strict=True)
    return ComparisonAsked(comparison=name, configurations=configurations, seeds=each)


def short_evaluations(state: RunState) -> ComparisonAsked:
    """Return the current generation's points on its own seeds, evaluated short."""
    assert state.plan.proxy is not None, "a check of a proxy has one"
    assert state.current is not None, "the generation is asked first"
    variant, seeds = state.plan.proxy.variant, state.current.seeds
    configurations = tuple(
        _varied(Configuration(name=f"candidate {number}", point=point), variant)
        for number, point in enumerate(state.current.points)
    )
    return ComparisonAsked(comparison="proxy", configurations=configurations, seeds=seeds)


def _reference(
    base: Configuration, wanted: Confirmation, seeds: ConfirmationSeeds
) -> Iterator[tuple[Configuration, Seeds]]:
    """Yield the baseline on all fresh seeds, an earlier winner and each control on some of them."""
    yield base, (*seeds.picking, *seeds.verdict)
    if wanted.incumbent is not None:
        yield Configuration(name=INCUMBENT, point=wanted.incumbent), seeds.verdict
    for control in wanted.controls if wanted.control_seeds else ():
        varied = _varied(base, control).model_copy(update={"name": control.label})
        yield varied, seeds.verdict[: wanted.control_seeds]


def _varied(own: Configuration, variant: Variant) -> Configuration:
    changed = {"settings": variant.settings, "cost_factor": variant.cost_factor}
    return own.model_copy(update=changed)
