"""The command that plans a run again, as far as its terms tell it: nobody recorded what was typed.

Executor, launcher and whatever else decides no score are left to their defaults.
"""

from collections.abc import Iterator
from pathlib import Path

from budgets.following import BEGINNING
from budgets.liveness import moved
from budgets.proxy.certificate import LEAST_CANDIDATES
from budgets.state import RunState
from budgets.terms import Caps, Plan
from objectives.api import SetupError
from orchestrator.best.training import training_name
from orchestrator.checks.space import CHECK_SEEDS
from orchestrator.config.command_words import UntoldError, objective_words
from orchestrator.config.sections import Evaluation, Top
from orchestrator.planning.calibrations import CALIBRATION_SEEDS
from orchestrator.planning.plan import limits_for
from orchestrator.planning.proxy import proxy_terms
from orchestrator.planning.request import (
    METHOD,
    SIGMA0,
    run_directory,
)
from orchestrator.records.planned import objective_of, space_of
from orchestrator.report.terms import flags, keys, terms, text, thresholds, verdict


def again(directory: Path, state: RunState) -> tuple[str, ...]:
    """The command's words, without the program's. Raises UntoldError, saying what is missing."""
    plan = state.planned
    try:
        return (*_words(state, plan), *_place(directory, plan))
    except UntoldError:
        raise
    except (ValueError, SetupError) as error:  # its objective is not here, or is another one
        raise UntoldError(str(error)) from error


def _words(state: RunState, plan: Plan) -> list[str]:
    match plan.phase:
        case "phase1" | "phase2":
            return [plan.phase, *_of_search(state, plan), *objective_words(plan), *_devices(plan)]
        case "calibration":
            return ["calibrate", *_of_calibration(plan), *objective_words(plan), *_devices(plan)]
        case "check":
            return [*_of_check(state, plan), *_devices(plan)]
        case "campaign":
            return [*_of_training(plan), *_devices(plan)]


def _place(directory: Path, plan: Plan) -> list[str]:
    """Where its runs lie, if it lies among them."""
    root = directory.parent.parent
    if directory != run_directory(root, plan.phase, plan.run_id) or root == Path(Top().runs_dir):
        return []
    return ["--runs-dir", str(root)]


def _devices(plan: Plan) -> Iterator[str]:
    own = plan.devices
    yield from ("--workers", str(own.count), "--threads", str(own.threads), "--device", own.kind)


def _of_search(state: RunState, plan: Plan) -> Iterator[str]:
    search, shape = plan.search, plan.resolved
    assert search is not None, "it is a search"
    if search.known:
        raise UntoldError("the file of known settings that it began with (--known) is not recorded")
    if plan.parent is not None:
        raise UntoldError(f"it was forked from {plan.parent.run_id}")
    yield from ("--tier", str(plan.tier), "--run-id", plan.run_id)
    if plan.source is not None:
        yield from ("--from", plan.source.run_id, "--variant", plan.source.variant)
        yield from _overrides(state)
    elif search.inherited is not None:
        yield from ("--warm-start", search.inherited.run_id)
    is_from_baseline = plan.source is None and search.inherited is None
    yield from flags(
        ("--search-seed", search.seed, 1),
        ("--search-method", search.method, METHOD),
        ("--sigma0", search.sigma0 if is_from_baseline else None, SIGMA0[search.method]),
        ("--population", shape.population, None),
        ("--seeds-per-candidate", shape.seeds_per_candidate, plan.nominal.seeds_per_candidate),
        ("--max-evals", plan.caps.evaluations, plan.nominal.evaluations),
        ("--proxy", _fraction(plan), None),
    )
    yield from verdict(plan)
    yield from thresholds(plan.thresholds)
    yield from terms(plan)


def _overrides(state: RunState) -> Iterator[str]:
    """Of rules that speak before a run begins; the others hold up none that is new."""
    given = [one for one in state.overridden if one.rule in BEGINNING]
    for one in given:
        yield from ("--override", one.rule)
    if given:
        yield from ("--reason", given[0].reason)


def _fraction(plan: Plan) -> float | None:
    """How short the proxy is: its label begins with that."""
    if plan.proxy is None:
        return None
    label = plan.proxy.varied.label
    fraction = float(label.partition(" x ")[0])
    objective = objective_of(plan)
    if proxy_terms(objective, fraction, plan.calibration) == plan.proxy:
        return fraction
    raise UntoldError(f"how short its proxy is cannot be told from its label {label!r}")


def _of_calibration(plan: Plan) -> Iterator[str]:
    """Raises UntoldError of one that was made for a run, within that run's caps."""
    usual = limits_for(None, None, plan.devices, None)
    caps = Caps(evaluations=plan.resolved.evaluations)
    own = (plan.caps, plan.limits, plan.evaluation_seed)
    if own != (caps, usual, Evaluation().seed) or plan.reasons:
        raise UntoldError("it was made for a run: that run's own command makes it")
    yield from flags(("--seeds", plan.resolved.seeds_per_candidate, CALIBRATION_SEEDS))


def _of_check(state: RunState, plan: Plan) -> Iterator[str]:
    seeds, parent = plan.nominal.seeds_per_candidate, plan.parent
    if plan.proxy is not None:
        yield from (
            "proxy",
            "check",
            *((parent.run_id,) if parent else ()),
            "--fraction",
            text(_fraction(plan)),
        )
        yield from flags(
            ("--candidates", plan.nominal.population, LEAST_CANDIDATES), ("--seeds", seeds, 1)
        )
        yield from () if parent else objective_words(plan)
    elif parent is not None:
        yield from ("analyze", parent.run_id, "--evaluate", "--seeds", str(seeds))
        yield from _knobs(state, plan)
    else:
        yield from ("space", "check", *flags(("--seeds", seeds, CHECK_SEEDS)))
        yield from (*_knobs(state, plan), *objective_words(plan))
    whole = plan.nominal.evaluations
    yield from flags(("--max-evals", plan.caps.evaluations, whole))
    yield from terms(plan)


def _knobs(state: RunState, plan: Plan) -> Iterator[str]:
    """Those that it checks, unless it checks all."""
    names = [knob.name for knob in space_of(plan).knobs]
    for generation in state.generations[:1]:
        places = (moved(plan, generation, place) for place in range(len(generation.points)))
        checked = {found[0] for found in places if found is not None}
        if len(checked) < len(names):
            yield from ("--knobs", ",".join(names[place] for place in sorted(checked)))


def _of_training(plan: Plan) -> Iterator[str]:
    """Of what a search recommends. Raises UntoldError of any other campaign: its file is gone."""
    campaign, parent = plan.campaign, plan.parent
    if campaign is None or parent is None:
        raise UntoldError("the file that describes the campaign is not recorded")
    length = campaign.conditions[0].length
    yield from ("best", parent.run_id, "--train", "--times", text(length))
    if plan.run_id != training_name(parent.run_id, length):
        yield from ("--run-id", plan.run_id)
    yield from flags(("--seeds", len(campaign.seeds), 1))
    if len(campaign.conditions) > 1:
        yield "--compare"
    caps = plan.caps
    yield from keys(
        ("budget.max_device_hours", caps.device_hours), ("budget.max_hours", caps.hours)
    )
