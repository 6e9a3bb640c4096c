"""A snapshot taken of a run's state. No disk."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from statistics import fmean

from budgets.campaign.effects import campaign_of
from budgets.course import next_step, pairing, search_is_over, still_apart
from budgets.events import Settled, Status
from budgets.report.model import balances
from budgets.report.pace import Pace, expected_seconds, last_seen, pace
from budgets.report.sentence import sentence
from budgets.rules.triggers import Verdict, verdict_of
from budgets.state import RunState
from budgets.words import duration
from orchestrator.records.heard import Heard
from orchestrator.watch.devices import device_rows
from orchestrator.watch.noted import Noted
from orchestrator.watch.scores import scores_of
from orchestrator.watch.snapshot import (
    Arm,
    Counts,
    Ended,
    Snapshot,
    Standing,
)
from orchestrator.watch.words import which

MOST_NOTES = 5


def snapshot(state: RunState, noted: Noted, now: datetime) -> Snapshot:
    """What a person watches of the run at that moment.

    `noted` is what its watcher noted of its records.
    """
    plan, verdict = state.plan, verdict_of(state)
    heard = Heard(state, last_seen(state))
    standing, expected = _standing(heard, verdict, now), expected_seconds(state)
    is_over = verdict.decision in ("done", "stop")
    return Snapshot(
        run_id=plan.run_id,
        phase=plan.phase,
        tier=plan.tier,
        objective=str(plan.objective["name"]),
        now=now,
        last=heard.last if state.opened else None,
        records=state.records,
        standing=standing,
        whose=_whose(heard, standing, now),
        decision=verdict.decision,
        sentence=sentence(state, verdict, campaign_of(state, is_over=True) if is_over else None),
        course=_course(state),
        generation=state.asked,
        generations=plan.resolved.generations,
        counts=_counts(state, noted),
        scores=scores_of(state, noted),
        arms=tuple(_arms(state)),
        balances=balances(state),
        pace=_pace(state, standing, expected, now),
        devices=device_rows(state, noted, now, expected, goes_on=standing in _GOES_ON),
        recent=tuple(_ended(state, event) for event in noted.recent),
        triggers=_last(f"{f.rule}: {f.evidence}" for f in state.fired),
        overrides=_last(f"{o.rule}: {o.reason}" for o in state.overridden),
        withdrawn=_last(f"{w.device}: {w.why}" for w in state.withdrawn),
    )


_GOES_ON = ("running", "elsewhere")


def _last(texts: Iterator[str]) -> tuple[str, ...]:
    return tuple(reversed(tuple(texts)[-MOST_NOTES:]))


def _standing(heard: Heard, verdict: Verdict, now: datetime) -> Standing:
    state, alive = heard.state, heard.alive()
    is_idle = not state.accounts.holds and alive != "yes"
    if state.concluded is not None or (verdict.decision != "continue" and is_idle):
        return "over"
    if not heard.goes_on(now):
        return "nobody"
    return "running" if alive == "yes" else "elsewhere"


def _whose(heard: Heard, standing: Standing, now: datetime) -> str:
    state = heard.state
    if standing == "running":
        return f"running (pid {state.opened[-1].owner.pid})"
    if standing == "over" or heard.alive() == "no":
        return "not running"
    ago = duration(max(0.0, (now - heard.last).total_seconds()))
    return f"begun on {state.opened[-1].host}, which was last heard of {ago} ago"


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
        return f"generation {current.number + 1} of {plan.resolved.generations}{short}"
    asking = f"generation {state.asked + 1} of {plan.resolved.generations}"
    return _COMPARED.get(next_step(state), asking)


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


def _pace(state: RunState, standing: Standing, expected: float | None, now: datetime) -> Pace:
    """As of now: what runs at the moment has come so much nearer to its end."""
    if standing != "running":
        return pace(state, now)
    known, hour = pace(state), 3600
    since_hours = max(0.0, (now - last_seen(state)).total_seconds()) / hour
    if known.remaining_hours is None:
        return known.model_copy(update={"elapsed_hours": known.elapsed_hours + since_hours})
    gained = min(since_hours, known.remaining_hours, (expected or 0.0) / hour)
    remaining = known.remaining_hours - gained
    return known.model_copy(
        update={
            "elapsed_hours": known.elapsed_hours + since_hours,
            "remaining_hours": remaining,
            "eta": now + timedelta(hours=remaining),
        }
    )


def _ended(state: RunState, event: Settled) -> Ended:
    return Ended(
        what=which(state, event),
        status=event.status,
        score=event.score,
        seconds=event.seconds,
        device=event.device,
        cause=event.cause,
        is_again=not event.final,
        is_recovered=event.recovered,
    )
