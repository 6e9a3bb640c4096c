"""The seeds of a plan: of its generations, and of its comparison on fresh ones."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice

from budgets.plan import (
    Plan,
)
from budgets.state import RunState


def evaluation_seeds(plan: Plan, generation: int) -> tuple[int, ...]:
    """S seeds that all candidates of the generation share, fresh in every generation.

    Phases draw from different streams, so no search scores on the seeds it was calibrated with. So
    do searches that begin with known settings: none is judged on the seeds that these were chosen
    on.
    """
    if plan.campaign is not None:
        return plan.campaign.seeds
    stream = _stream(plan)
    return tuple(
        _seed(f"{stream}/{generation}/{repeat}")
        for repeat in range(plan.resolved.seeds_per_candidate)
    )


@dataclass(frozen=True)
class ConfirmationSeeds:
    """Fresh seeds: none of the search's or the calibration's, none of one for another."""

    picking: tuple[int, ...]
    verdict: tuple[int, ...]
    rung: tuple[int, ...]


def confirmation_seeds(plan: Plan) -> ConfirmationSeeds:
    """The seeds of a plan's confirmation, which it has."""
    wanted = plan.confirmation
    assert wanted is not None
    seeds = _fresh(f"{_stream(plan)}/confirm", _searched(plan))
    rung = 0 if wanted.rung is None else wanted.rung.seeds
    counts = (wanted.picking_seeds, wanted.seeds, rung)
    return ConfirmationSeeds(*(tuple(islice(seeds, number)) for number in counts))


def training_seeds(state: RunState, number: int) -> tuple[int, ...]:
    """So many that no evaluation of a search has used or will use, whatever becomes of it."""
    plan = state.plan
    used = _searched(plan)
    if plan.confirmation is not None:
        fresh = confirmation_seeds(plan)
        used |= {*fresh.picking, *fresh.verdict, *fresh.rung}
    used |= {seed for batch in state.batches() for _, seed in batch.evaluations()}
    return tuple(islice(_fresh(f"{_stream(plan)}/best", used), number))


def _searched(plan: Plan) -> set[int]:
    """Seeds of its generations, however it is amended, and of its calibration."""
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
    """Seeds of the stream, each once and none that is used."""
    known = set(used)
    for number in count():
        seed = _seed(f"{stream}/{number}")
        if seed not in known:
            known.add(seed)
            yield seed


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) % (2**31 - 1) + 1
