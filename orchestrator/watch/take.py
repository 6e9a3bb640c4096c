"""A snapshot taken of a run's state. No disk."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from statistics import fmean

from budgets.course import next_step, pairing, search_is_over, still_apart
from budgets.events import Settled, Status
from budgets.pace import Pace, expected_seconds, last_seen, pace
from budgets.report.model import balances
from budgets.report.sentence import sentence
from budgets.state import RunState
from orchestrator.records.standing import Kind, standing_of
from orchestrator.watch.devices import device_rows
from orchestrator.watch.later import moved
from orchestrator.watch.noted import Noted
from orchestrator.watch.scores import scores_of
from orchestrator.watch.snapshot import Arm, Counts, Ended, Snapshot
from orchestrator.watch.words import which

MOST_NOTES = 5


def snapshot(state: RunState, noted: Noted, now: datetime) -> Snapshot:
    """What a person watches of the run at that moment.

    `noted` is what its watcher noted of its records.
    """
    plan, standing = state.plan, standing_of(state, now)
    expected = expected_seconds(state)
    return Snapshot(
        run_id=plan.run_id,
        phase=plan.phase,
        tier=plan.tier,
        objective=str(plan.objective["name"]),
        now=now,
        last=last_seen(state) if state.opened else None,
        records=state.records,
        standing=standing.kind,
        whose=standing.whose,
        decision=standing.ruling.decision,
        sentence=sentence(state, standing.ruling),
        way_on=standing.way_on,
        course=_course(state),
        generation=state.asked,
        generations=plan.resolved.generations,
        counts=_counts(state, noted),
        scores=scores_of(state, noted),
        arms=tuple(_arms(state)),
        balances=balances(state),
        pace=_pace(state, standing.kind, expected, now),
        devices=device_rows(state, noted, now, expected, goes_on=standing.goes_on),
        recent=tuple(_ended(state, event) for event in noted.recent),
        triggers=_last(f"{f.rule}: {f.evidence}" for f in state.fired),
        overrides=_last(f"{o.rule}: {o.reason}" for o in state.overridden),
        withdrawn=_last(f"{w.device}: {w.why}" for w in state.withdrawn),
    )


def _last(texts: Iterator[str]) -> tuple[str, ...]:
    return tuple(reversed(tuple(texts)[-MOST_NOTES:]))


_COMPARED = {
    "reference": "the baseline on fresh seeds",
    "finalists": "the finalists on fresh seeds",
    "winner": "the winner on fresh seeds",
    "rung": "the winner with more FLOPs",
    "decide": "the verdict",
    "over": "over",
}


def _course(state: RunState) -> str:
    plan, current = state.plan, state.current
    if plan.search is None and plan.proxy is None:
        is_over = state.concluded is not None
        seeds = f"{plan.resolved.seeds_per_candidate} seeds"
        what = {"calibration": "the baseline", "check": "each knob", "campaign": "conditions"}
        return "over" if is_over else f"{what.get(plan.phase, 'candidates')} on {seeds}"
    if pairing(state) is not None and current is None:
        return f"generation {state.asked} short as well"
    if current is not None and not search_is_over(state):
        short = "" if current.is_full else ", short"
        return f"{_generation(state, current.number)}{short}"
    asking = _generation(state, state.asked)
    return _COMPARED.get(next_step(state), asking)


def _generation(state: RunState, number: int) -> str:
    """`generation 6 (7 of 15)`: they are numbered from 0."""
    return f"generation {number} ({number + 1} of {state.plan.resolved.generations})"


def _counts(state: RunState, noted: Noted) -> Counts:
    accounts, tallies = state.accounts, [noted.tally(batch) for batch in state.batches()]
    statuses = sum((tally.statuses for tally in tallies), start=Counter[Status]())
    healthy = statuses.pop(Status.OK, 0)
    return Counts(
        settled=accounts.evaluations + accounts.apart,
        ok=healthy,
        failed={str(status): number for status, number in sorted(statuses.items())},
        lost=sum(tally.lost for tally in tallies),
        in_flight=len(accounts.holds),
        to_come=_to_come(state),
    )


def _to_come(state: RunState) -> int:
    """Of the search what its plan has left, beside it what the verdict needs at most."""
    if state.decided is not None or state.concluded is not None:
        return 0
    accounts, of_search = state.accounts, 0
    if not search_is_over(state):
        of_search = state.plan.resolved.evaluations - accounts.evaluations
    left = of_search + still_apart(state).evaluations - len(accounts.holds)
    return max(0, left)


def _arms(state: RunState) -> Iterator[Arm]:
    """Of panels of the verdict that are not settled yet, or of the last one that is."""
    panels = [panel for panel in state.panels.values() if panel.name != "proxy"]
    shown = [panel for panel in panels if not panel.closed] or panels[-1:]
    for panel in shown:
        for number, arm in enumerate(panel.arms):
            seeds = panel.seeds_of(number)
            healthy = panel.scores_by_seed(number)
            yield Arm(
                panel=panel.name,
                name=arm.name,
                settled=sum(panel.result(number, seed) is not None for seed in seeds),
                planned=len(seeds),
                mean=fmean(healthy.values()) if healthy else None,
            )


def _pace(state: RunState, standing: Kind, expected: float | None, now: datetime) -> Pace:
    if standing != "running":
        return pace(state, now)
    since_hours = max(0.0, (now - last_seen(state)).total_seconds()) / 3600
    return moved(pace(state), since_hours, (expected or 0.0) / 3600, now)


def _ended(state: RunState, event: Settled) -> Ended:
    return Ended(
        what=which(state, event),
        status=event.status,
        score=event.score,
        seconds=event.seconds,
        device=event.device,
        cause=event.cause,
        is_again=not event.final,
        is_recovered=event.recovered and event.final,
    )
