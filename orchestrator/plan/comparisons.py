"""The seeds of generations, and the comparisons beside a search with their fresh ones."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from statistics import median

from budgets.events import ComparisonAsked, Status
from budgets.plan import ComparisonName, Configuration, Confirmation, Plan, Variant
from budgets.schedule import next_action
from budgets.state import Batch, RunState, short_evaluations
from budgets.verdict import BASELINE, INCUMBENT, finalists, winner
from objectives import registry

AT_EQUAL_SECONDS = " at equal seconds"


# Seeds


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
    long_run: tuple[int, ...]


def confirmation_seeds(plan: Plan) -> ConfirmationSeeds:
    """The seeds of a plan's confirmation, which it has."""
    wanted = plan.confirmation
    assert wanted is not None
    seeds = _fresh(f"{_stream(plan)}/confirm", _searched(plan))
    long_run = 0 if wanted.long_run is None else wanted.long_run.seeds
    counts = (wanted.picking_seeds, wanted.seeds, long_run)
    return ConfirmationSeeds(*(tuple(islice(seeds, number)) for number in counts))


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


# Comparisons


def due(state: RunState) -> ComparisonAsked | None:
    """The next comparison, if its time has come and it was not asked yet."""
    plan, step = state.plan, next_action(state)
    if step == "proxy":
        assert plan.proxy is not None
        assert state.current is not None
        return short_evaluations(state.current, plan.proxy)
    if plan.confirmation is None or step in ("generation", "decide", "over"):
        return None
    name: ComparisonName = step  # type: ignore[assignment]  # the other steps are comparisons
    return (
        None if state.comparison(name) is not None else comparison(state, name, plan.confirmation)
    )


def comparison(
    state: RunState, name: ComparisonName, confirmation: Confirmation
) -> ComparisonAsked:
    """The one of that name as the plan and the ledger so far give it."""
    seeds = confirmation_seeds(state.plan)
    match name:
        case "reference":
            configurations, each = _reference(state.plan, confirmation, seeds)
        case "finalists":
            configurations = finalists(state)
            each = tuple(seeds.picking for _ in configurations)
        case "winner":
            configurations, each = _winner(state, confirmation, seeds)
        case "long_run":
            configurations = _long_run(state, confirmation)
            each = tuple(seeds.long_run for _ in configurations)
        case "proxy":
            raise ValueError("the short evaluations of a check are no part of a confirmation")
    return ComparisonAsked(comparison=name, configurations=configurations, seeds=each)


Compared = tuple[tuple[Configuration, ...], tuple[tuple[int, ...], ...]]


def _baseline(plan: Plan) -> tuple[float, ...]:
    return plan.space.baseline


def _reference(plan: Plan, confirmation: Confirmation, seeds: ConfirmationSeeds) -> Compared:
    """The baseline on all fresh seeds, an earlier winner and each control on some of them."""
    point = _baseline(plan)
    configurations = [Configuration(name=BASELINE, point=point)]
    each = [(*seeds.picking, *seeds.verdict)]
    if confirmation.incumbent is not None:
        configurations.append(Configuration(name=INCUMBENT, point=confirmation.incumbent))
        each.append(seeds.verdict)
    for control in confirmation.controls if confirmation.control_seeds else ():
        configurations.append(_arm(control, point))
        each.append(seeds.verdict[: confirmation.control_seeds])
    return tuple(configurations), tuple(each)


def _arm(varied: Variant, point: tuple[float, ...]) -> Configuration:
    return Configuration(
        name=varied.label, point=point, settings=varied.settings, cost_factor=varied.cost_factor
    )


def _winner(state: RunState, confirmation: Confirmation, seeds: ConfirmationSeeds) -> Compared:
    """The finalist that won, and each control given the seconds that the baseline took."""
    best = winner(state)
    assert best is not None, "some finalist has a score"
    configurations, each = [best], [seeds.verdict]
    reference = state.comparison("reference")
    assert reference is not None, "it is asked before the search begins"
    for place, arm in enumerate(reference.configurations):
        if arm.settings and (varied := _at_equal_seconds(state.plan, reference, place)) is not None:
            configurations.append(_arm(varied, arm.point))
            each.append(seeds.verdict[: confirmation.control_seeds])
    return tuple(configurations), tuple(each)


def _at_equal_seconds(plan: Plan, reference: Batch, place: int) -> Variant | None:
    """The control trained for as long as the baseline was, by the medians measured here.

    To two digits: what the clock says further on is no property of either. None where there is no
    time to compare, or the objective cannot be made longer or shorter.
    """
    on_cpu = plan.devices.kind == "cpu"
    own, baseline = (_seconds(reference, candidate, on_cpu=on_cpu) for candidate in (place, 0))
    if not own or not baseline:
        return None
    arm, spec = reference.configurations[place], plan.objective
    control = registry.varied(spec, arm.settings)
    factor = float(f"{baseline / own:.2g}")
    stretched = registry.load(control).scaled(factor)
    if stretched is None:
        return None
    settings = {**arm.settings, **stretched.settings}
    label = f"{arm.name}{AT_EQUAL_SECONDS} ({stretched.label})"
    return Variant(label=label, settings=settings, cost_factor=1.0)


def _seconds(reference: Batch, candidate: int, *, on_cpu: bool) -> float | None:
    """The median training's: of the processor on a CPU, where neighbours stretch the others.

    Of the whole evaluation where the objective does not measure its training's; start-up and
    scoring then make a control seem slower than it is.
    """
    results = [r for r in reference.results() if r.candidate == candidate and r.status is Status.OK]
    seconds = [
        r.metrics.get("train_cpu_seconds", r.cpu_seconds) if on_cpu else r.train_seconds
        for r in results
    ]
    return median(seconds) if seconds and min(seconds) > 0 else None


def _long_run(state: RunState, confirmation: Confirmation) -> tuple[Configuration, ...]:
    """The baseline and the winner on more FLOPs."""
    best, long_run = winner(state), confirmation.long_run
    assert best is not None, "only a winner comes here"
    assert long_run is not None, "it was planned"
    changed = {"settings": long_run.variant.settings, "cost_factor": long_run.variant.cost_factor}
    return (
        Configuration(name=BASELINE, point=_baseline(state.plan), **changed),
        Configuration(name=best.name, point=best.point, **changed),
    )
