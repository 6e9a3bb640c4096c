"""The rules about evaluations that fail, take too long or get lost."""

from statistics import median

from budgets.causes import is_lost
from budgets.events import Settled, Status
from budgets.proxy.certificate import seconds, seconds_when_short
from budgets.rules.apart import beyond, latest_points, luck, remedy, told_apart
from budgets.rules.nan import nan_candidates, sustained_nan
from budgets.rules.table import (
    BASELINE_FAILED,
    CRASH_RATE,
    INFRASTRUCTURE,
    RUNAWAY_TIME,
    SETUP_FAILED,
    TOO_FEW_HEALTHY,
    Reading,
    counted_in,
    name_of,
    place_of,
)
from budgets.state import Batch, Generation, RunState


def crash_rate(state: RunState, generation: Generation) -> Reading:
    """More failed evaluations than the generation may have, counted against all it will have.

    It speaks as soon as the rate can no longer fall below its limit. Attempts lost to the
    infrastructure do not count: they have no final status. Nor do NaNs that an extreme region
    explains, or that `sustained_nan` speaks for.
    """
    limits = state.plan.thresholds
    counted = _failures(state, generation)
    failed = len(counted)
    said, share, rate = counted_in(generation, failed)
    fires = rate > limits.crash_rate_pause and failed >= limits.crash_count_pause
    least = "" if fires else f", {limits.crash_count_pause} at least"
    evidence = f"{said} failed ({share}, limit {limits.crash_rate_pause:.0%}{least})"
    if causes := sorted({f"{r.status} ({r.cause})" for r in counted}):
        evidence += f": {'; '.join(causes[:3])}"
    if fires:
        evidence += _where(state, generation)
    if spared := len(generation.failed) - failed:
        evidence += f"; {spared} more that are NaN do not count here"
    limit = limits.crash_rate_pause
    return CRASH_RATE.reads(generation.number, rate, limit, evidence, fires=fires)


def _where(state: RunState, generation: Generation) -> str:
    """Beyond which value of one knob all lie that failed lately, and nothing healthy.

    Empty where luck alone would show as much every other time.
    """
    found = told_apart(*latest_points(state, generation, set(Status) - {Status.OK}))
    knobs = len(generation.points[0])
    if found is None or found.distance < 1 or found.chance(knobs) > 0.5:
        return ""
    return (
        f"; all that fail lie {beyond(state.plan, found)}, nothing healthy does"
        f"{luck(found, knobs)}{remedy(state.plan, found)}"
    )


def _failures(state: RunState, generation: Generation) -> list[Settled]:
    """Those that nothing else speaks for."""
    failed = generation.failed
    if all(r.status is not Status.NAN for r in failed):
        return failed
    spoken_for = sustained_nan(state, generation).fires
    nans = nan_candidates(state.plan, generation)
    spared = {n.candidate for n in nans if spoken_for or n.is_explained}
    return [r for r in failed if r.status is not Status.NAN or r.candidate not in spared]


def too_few_healthy(generation: Generation) -> Reading:
    """Fewer healthy candidates than CMA-ES recombines (mu = P // 2): nothing to learn from.

    No override lets such a generation through.
    """
    parents = len(generation.points) // 2
    healthy = sum(score is not None for score in generation.scores())
    fires = generation.closed and healthy < parents
    verb = "are healthy" if generation.closed else "are healthy so far"
    evidence = (
        f"{'only ' if fires else ''}{healthy} of {len(generation.points)} candidates of generation "
        f"{generation.number} {verb}, the search needs {parents}"
    )
    return TOO_FEW_HEALTHY.reads(generation.number, healthy, parents, evidence, fires=fires)


def runaway_time(state: RunState, generation: Generation) -> Reading:
    """The generation's median evaluation takes more than twice the calibrated one.

    Judged on CPU seconds where the devices are CPUs: wall clock there measures the neighbours.
    Evaluations of another length than the calibrated ones are expected to take as much longer, a
    proxy's as long as when they were compared with full ones: start-up does not shrink with them.
    """
    calibration, limits = state.plan.calibration, state.plan.thresholds
    limit, number = limits.time_drift_pause, generation.number

    def unknown(why: str) -> Reading:
        return RUNAWAY_TIME.reads(number, None, limit, why, fires=False)

    if calibration is None:
        return unknown("there is no calibrated time to compare with")
    on_cpu = state.plan.devices.kind == "cpu" and calibration.median_cpu_seconds is not None
    calibrated = calibration.median_cpu_seconds if on_cpu else calibration.median_seconds
    expected, known = (calibrated or 0.0) * generation.stretch, "calibrated"
    if not generation.is_full and (short := seconds_when_short(state, number, cpu=on_cpu)):
        expected, known = short, "earlier"
    if expected < limits.time_drift_floor_seconds or not expected:
        return unknown(f"an evaluation takes {expected:.3g} s: too short to run away")
    healthy = seconds(generation, cpu=on_cpu)
    if not healthy or not generation.closed:
        return unknown(f"generation {number} is not closed, or nothing of it is healthy")
    observed = median(healthy)
    drift = observed / expected
    evidence = (
        f"the median evaluation of generation {number} took {observed:.1f} "
        f"{'CPU ' if on_cpu else ''}seconds, {drift:.1f} times the {known} {expected:.1f} "
        f"(limit {limit:g})"
    )
    return RUNAWAY_TIME.reads(number, drift, limit, evidence, fires=drift > limit)


def baseline_failed(generation: Generation) -> Reading:
    """A check's baseline, candidate 0, failed on a seed: there is nothing to compare with there.

    No override: the same evaluation would fail again, and it is paid for.
    """
    failed = [r for r in generation.failed if r.candidate == 0]
    evidence = "the baseline has not failed"
    if failed:
        evidence = (
            f"the baseline failed on seed {failed[0].seed}: {failed[0].status} "
            f"({failed[0].cause}); nothing can be compared with it. Mend what failed, then check "
            "on other seeds (evaluation.seed)"
        )
    number = generation.number
    return BASELINE_FAILED.reads(number, len(failed), 0, evidence, fires=bool(failed))


def setup_failed(state: RunState) -> Reading:
    """An evaluation found that nothing can be evaluated at all: the next would find the same.

    No override, for there is nothing to let through. A new session tries again.
    """
    end = state.setup_failed
    if end is None:
        evidence = "no evaluation since the run was last opened found that nothing can be evaluated"
        return SETUP_FAILED.reads(state.asked, 0, 0, evidence, fires=False)
    batch = state.batch(end)
    evidence = (
        f"nothing can be evaluated, as candidate {end.candidate}, seed {end.seed} of "
        f"{name_of(batch)} found: {end.cause.rstrip('.')}. Mend it and repeat the command: the "
        "evaluation is owed again"
    )
    return SETUP_FAILED.reads(place_of(state, batch), 1, 0, evidence, fires=True)


def keeps_getting_lost(state: RunState, batch: Batch) -> Reading:
    """The infrastructure lost one evaluation too often since the run was last opened."""
    limit, session = state.plan.thresholds.attempts_per_session, len(state.opened) - 1
    number = place_of(state, batch)
    most = 0
    for (candidate, seed), tries in batch.tries.items():
        lost = [
            t.settled
            for t in tries
            if t.session == session and t.settled and is_lost(t.settled.status, t.settled.cause)
        ]
        if not lost or batch.result(candidate, seed) is not None:
            continue
        if len(lost) >= limit:
            evidence = (
                f"candidate {candidate}, seed {seed} of {name_of(batch)} was lost "
                f"{len(lost)} times ({lost[-1].cause}). See to the machines, then resume: what is "
                "lost again counts as its candidate's own failure"
            )
            return INFRASTRUCTURE.reads(number, len(lost), limit, evidence, fires=True)
        most = max(most, len(lost))
    evidence = f"no evaluation of {name_of(batch)} that is still owed was lost {limit} times"
    return INFRASTRUCTURE.reads(number, most, limit, evidence, fires=False)
