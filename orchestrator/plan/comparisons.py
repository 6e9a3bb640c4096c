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

Seeds = tuple[int, ...]


# Seeds


def evaluation_seeds(plan: Plan, generation: int) -> Seeds:
    """Return the S seeds that all candidates of the generation share, fresh in every generation.

    Each phase draws from a stream of its own, so no search uses its calibration's seeds. So does a
    search with known settings, which may have been chosen on the seeds of another search.
    """
    if plan.campaign is not None:
        return plan.campaign.seeds
    stream = _stream(plan)
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
    seeds = _fresh(f"{_stream(plan)}/confirm", _searched(plan))
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


def _stream(plan: Plan) -> str:
    stream, search = f"{plan.evaluation_seed}/{plan.phase}", plan.search
    if search is None or not search.known:
        return stream
    return f"{stream}/after {search.known}"


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

Pair = tuple[Configuration, Seeds]
"""A configuration and the seeds that it is evaluated on."""


def due(state: RunState) -> ComparisonAsked | None:
    """Return the comparison that comes next; None if none is due."""
    plan, step = state.plan, next_action(state)
    if step == "proxy":
        return short_evaluations(state)
    if plan.confirmation is None or step in ("generation", "decide", "over"):
        return None
    name: ComparisonName = step  # type: ignore[assignment]  # the other steps are comparisons
    return None if state.comparisons.get(name) is not None else comparison(state, name)


def short_evaluations(state: RunState) -> ComparisonAsked:
    """Return the current generation's points on its own seeds, evaluated short."""
    assert state.plan.proxy is not None, "a check of a proxy has one"
    assert state.current is not None, "the generation is asked first"
    variant, seeds = state.plan.proxy.variant, state.current.seeds
    changed = {"settings": variant.settings, "cost_factor": variant.cost_factor}
    configurations = tuple(
        Configuration(name=f"candidate {number}", point=point, **changed)
        for number, point in enumerate(state.current.points)
    )
    return ComparisonAsked(comparison="proxy", configurations=configurations, seeds=seeds)


def comparison(state: RunState, name: ComparisonName) -> ComparisonAsked:
    """Return the comparison of that name, by the plan and the ledger so far."""
    confirmation, seeds = state.plan.confirmation, confirmation_seeds(state.plan)
    assert confirmation is not None, "the plan compares"
    match name:
        case "reference":
            pairs = _reference(state.plan, confirmation, seeds)
        case "finalists":
            pairs = [(finalist, seeds.picking) for finalist in finalists(state)]
        case "winner":
            best = winner(state)
            assert best is not None, "some finalist has a score"
            pairs = [(best, seeds.verdict)]
        case _:
            pairs = [(one, seeds.long_run) for one in _long_run(state, confirmation)]
    configurations, each = zip(*pairs, strict=True)
    return ComparisonAsked(comparison=name, configurations=configurations, seeds=each)


def _reference(plan: Plan, confirmation: Confirmation, seeds: ConfirmationSeeds) -> list[Pair]:
    """The baseline on all fresh seeds, an earlier winner and each control on some of them."""
    point = plan.space.baseline
    pairs = [(Configuration(name=BASELINE, point=point), (*seeds.picking, *seeds.verdict))]
    if confirmation.incumbent is not None:
        incumbent = Configuration(name=INCUMBENT, point=confirmation.incumbent)
        pairs.append((incumbent, seeds.verdict))
    for one in confirmation.controls if confirmation.control_seeds else ():
        changed = {"settings": one.settings, "cost_factor": one.cost_factor}
        control = Configuration(name=one.label, point=point, **changed)
        pairs.append((control, seeds.verdict[: confirmation.control_seeds]))
    return pairs


def _long_run(state: RunState, confirmation: Confirmation) -> tuple[Configuration, ...]:
    """The baseline and the winner on more FLOPs."""
    best, long_run = winner(state), confirmation.long_run
    assert best is not None, "a winner was found"
    assert long_run is not None, "it was planned"
    changed = {"settings": long_run.variant.settings, "cost_factor": long_run.variant.cost_factor}
    return (
        Configuration(name=BASELINE, point=state.plan.space.baseline, **changed),
        Configuration(name=best.name, point=best.point, **changed),
    )
