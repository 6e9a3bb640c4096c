"""`Run`: everything that views show of a run, with one definition of each number.

A run is a function of its ledger's records and of the moment. Only `slots` reads other files: the
heartbeats of running attempts. Fields named `unit` are in the unit cube.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from budgets import measurements
from budgets import schedule as schedules
from budgets.accounts import Account, Attempt
from budgets.events import Reserved, Settled, Status
from budgets.failure_causes import Cause, cause_of
from budgets.plan import Calibration, Frozen, Plan
from budgets.rules import Decision, Ruling
from budgets.state import RunState
from budgets.stats import Gain, NamedGain
from budgets.verdict import Findings, best_point, findings, recommendation
from objectives.space import Knob as Scale
from orchestrator.look.attempt_files import heartbeat
from orchestrator.records.runs import OVER, Standing, standing_of

NEAR = 0.01  # of a knob's range: a value this near to an end counts as at the end


# The parts of a run, as plain values


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """What a slot of the current session does now."""

    slot: int
    device: str = ""  # as its attempt reports it; empty: not known
    doing: Literal["idle", "starting", "running"] = "idle"  # starting: not yet taken by a worker
    seconds: float | None = None  # for how long; None: not known
    what: str = ""  # the evaluation; empty when idle
    place: str = ""
    attempt: int = 0
    expected_seconds: float | None = None
    limit_seconds: float | None = None  # it is killed after these
    step: float | None = None  # from its last heartbeat, as are the next
    loss: float | None = None
    progress: float | None = None  # 0 to 1

    @property
    def is_overdue(self) -> bool:
        """Whether it takes 1.5 times what is expected, and at least two seconds more."""
        expected = self.expected_seconds
        return expected is not None and (self.seconds or 0) > max(1.5 * expected, expected + 2)


class Counts(Frozen):
    """Evaluations, of the search and of comparisons together."""

    settled: int
    ok: int
    failed: dict[str, int]  # by status
    lost: int  # attempts, lost or cancelled, that are retried: they use up no evaluation
    in_flight: int
    to_come: int  # neither settled nor in flight, at most
    planned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A search's generation; the score of a healthy candidate is the mean over its seeds."""

    number: int
    failed: int  # evaluations
    best: float | None
    mean: float | None
    best_so_far: float | None  # up to this one; selected for its noise: no evidence of a gain
    best_by_chance: float | None  # expected if every candidate so far equalled the baseline
    step_size: float | None  # of the search after this generation


class Knob(Frozen):
    """One knob, its baseline and what is recommended."""

    name: str
    kind: str
    low: int | float
    high: int | float
    baseline: int | float
    recommended: int | float | None
    baseline_unit: float
    recommended_unit: float | None
    at_end: str | None  # `lower`, `upper`: the end of the range where the search's best lies

    @property
    def moved(self) -> float | None:
        """From the baseline to what is recommended, as a share of the range."""
        is_same = self.recommended == self.baseline
        at = self.baseline_unit if is_same else self.recommended_unit
        return None if at is None else at - self.baseline_unit


class FailureKind(Frozen):
    """Attempts that failed in the same way."""

    whose: str  # configuration, infrastructure, ambiguous, setup
    what: str
    attempts: int
    example: str  # the cause of one
    place: str  # its directory


@dataclass(eq=False)
class Run:
    """A run at one moment."""

    state: RunState
    now: datetime
    directory: Path | None = None  # without it no heartbeat is read
    session_ruling: Ruling | None = None  # of a session that a full disk ended: not on record

    # Identity and standing

    @property
    def plan(self) -> Plan:
        return self.state.plan

    @cached_property
    def standing(self) -> Standing:
        return standing_of(self.state, self.now)

    @property
    def ruling(self) -> Ruling:
        return self.session_ruling or self.standing.ruling

    @property
    def decision(self) -> Decision:
        return self.ruling.decision

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens unless a user runs a command."""
        return self.standing.kind in OVER

    @property
    def is_search(self) -> bool:
        return self.plan.search is not None

    @property
    def last(self) -> datetime:
        """The moment of its last record."""
        return self.state.seen

    # What was spent

    @cached_property
    def balances(self) -> tuple[Account, ...]:
        """Every currency that the run has."""
        return tuple(
            one
            for name, one in self.state.accounts.table.items()
            if name in ("evaluations", "device time", "wall clock")
            or (one.cap and name != "deadline")
            or one.spent / one.per_unit  # money without a price is 0 of infinitely many
        )

    @cached_property
    def usage(self) -> dict[str, float]:
        """Device-hours of the slots: useful, wasted without a score, and idle."""
        sessions = self.state.accounts.sessions_ms
        opened = zip(self.state.opened, sessions, strict=True)
        left_ms = sum(one.workers * ms for one, ms in opened)
        running = self.state.accounts.holds.values()
        left_ms -= sum(sessions[one.session] - one.reserved_ms for one in running)
        hours = {"useful": 0.0, "wasted": 0.0}
        for end in self.state.ends():
            hours["wasted" if end.score is None else "useful"] += end.seconds / 3600
        return {**hours, "idle": max(0.0, left_ms / 3.6e6 - sum(hours.values()))}

    # Time

    @cached_property
    def pace(self) -> schedules.Pace:
        """Elapsed, remaining, progress, rate, ETA, on track and accuracy, as of its last record.

        While an evaluation is overdue, on track is not claimed: the forecast does not count what
        it takes beyond the expected.
        """
        found = schedules.pace(
            self.state, None if self.standing.goes_on or self.is_over else self.now
        )
        is_late = found.on_track and self.overdue
        return found.model_copy(update={"on_track": None}) if is_late else found

    @property
    def overdue(self) -> int:
        """How many running evaluations take far longer than expected."""
        return sum(slot.is_overdue for slot in self.slots)

    # Evaluations

    @cached_property
    def counts(self) -> Counts:
        state, ends, in_flight = self.state, list(self.state.ends()), len(self.state.accounts.holds)
        statuses = Counter(end.status for end in ends if end.final)
        healthy = statuses.pop(Status.OK, 0)
        return Counts(
            settled=state.accounts.evaluations + state.accounts.comparisons,
            ok=healthy,
            failed={str(status): number for status, number in sorted(statuses.items())},
            lost=sum(not end.final for end in ends),
            in_flight=in_flight,
            to_come=max(0, sum(count for count, _ in schedules.works_left(state)) - in_flight),
            planned=self.plan.resolved.evaluations + self.plan.comparison_evaluations,
        )

    def which(self, place: Reserved | Settled) -> str:
        """An evaluation in words: `generation 3, candidate 2`; `winner, average`; `lr low`."""
        name = self.state.batch(place).configurations[place.candidate].name
        if place.comparison is not None:
            return f"{comparison_name(place.comparison)}, {name}"
        return name or f"generation {place.generation}, candidate {place.candidate}"

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """What every slot does now, by number."""
        found = [self._busy(one) for one in self.state.accounts.holds.values()]
        workers = self.state.opened[-1].workers if self.standing.goes_on else 0
        idle = set(range(workers)) - {one.slot for one in found}
        found += [Slot(slot=number) for number in idle]
        return tuple(sorted(found, key=lambda one: one.slot))

    def _busy(self, attempt: Attempt) -> Slot:
        reserved, seconds, said = attempt.reserved, None, dict[str, Any](doing="running")
        place, is_now = f"eval/{reserved.place}", attempt.session == len(self.state.opened) - 1
        if self.standing.goes_on and self.directory is not None:
            said = heartbeat(self.directory, place)
        if self.standing.goes_on and is_now:
            since = (self.now - self.last).total_seconds()
            began_ms = attempt.reserved_ms - self.state.accounts.sessions_ms[-1]
            seconds = max(0.0, since - began_ms / 1000)
        expected = schedules.expected_seconds(self.state)
        own = self.state.batch(reserved).configurations[reserved.candidate]
        return Slot(
            slot=reserved.slot or 0,
            seconds=seconds,
            what=self.which(reserved),
            place=place,
            attempt=reserved.attempt,
            expected_seconds=expected and expected * own.cost_factor,
            limit_seconds=reserved.reserve_ms / 1000,
            **said,
        )

    @cached_property
    def failures(self) -> tuple[FailureKind, ...]:
        """Kinds of failed attempts, the most frequent first."""
        by_kind = defaultdict[Cause, list[Settled]](list)
        for end in self.state.ends():
            if (cause := cause_of(end.status, end.cause)) is not None:
                by_kind[cause].append(end)
        kinds = (
            FailureKind(
                whose=cause.whose,
                what=cause.what,
                attempts=len(own),
                example=own[0].cause,
                place=f"eval/{own[0].place}",
            )
            for cause, own in by_kind.items()
        )
        return tuple(sorted(kinds, key=lambda kind: -kind.attempts))

    # Scores

    @cached_property
    def calibration(self) -> Calibration | None:
        """The run's own; in a calibration, as measured so far."""
        if self.plan.phase != "calibration":
            return self.plan.calibration
        try:
            return measurements.measure(self.state)
        except ValueError:  # nothing healthy yet
            return None

    @cached_property
    def baseline(self) -> measurements.Noise | None:
        """The baseline's calibrated score and its noise from seed to seed."""
        return measurements.noise(self.calibration)

    @cached_property
    def noise_band(self) -> tuple[float, float] | None:
        """The baseline's mean -+ 2 sd of a candidate's score; None without a search."""
        if self.baseline is None or not self.is_search:
            return None
        return self.baseline.band(self.plan.resolved.seeds_per_candidate)

    @cached_property
    def generations(self) -> tuple[Generation, ...]:
        """Every generation of a search."""
        so_far, found, own = list[float](), list[Generation](), self.baseline
        best_of = min if self.plan.direction == "minimize" else max
        seeds = self.plan.resolved.seeds_per_candidate
        for batch in self.state.generations if self.is_search else ():
            scores, told = batch.healthy, batch.told
            so_far += scores
            one = Generation(
                number=batch.number,
                failed=len(batch.failed),
                best=best_of(scores, default=None),
                mean=fmean(scores) if scores else None,
                best_so_far=best_of(so_far, default=None),
                best_by_chance=None
                if own is None
                else own.best_by_chance(len(so_far), seeds, self.plan.sign),
                step_size=told.sigma if told else None,
            )
            found.append(one)
        return tuple(found)

    # Knobs

    @cached_property
    def knobs(self) -> tuple[Knob, ...]:
        point = recommendation(self.state)
        best = best_point(self.state) if self.is_search else None
        nothing = [None] * self.plan.space.dimension
        return tuple(
            Knob(
                name=knob.name,
                kind=knob.kind,
                low=knob.decode(0.0),
                high=knob.decode(1.0),
                baseline=knob.typed(knob.baseline),
                recommended=None if unit is None else knob.decode(unit),
                baseline_unit=knob.encode(knob.baseline),
                recommended_unit=unit,
                at_end=None if at is None else _at_end(knob, at),
            )
            for knob, unit, at in zip(
                self.plan.space.knobs, point or nothing, best or nothing, strict=True
            )
        )

    # Verdicts

    @cached_property
    def findings(self) -> Findings | None:
        """Of a search that is compared with the baseline."""
        return findings(self.state)

    @property
    def gain(self) -> Gain | None:
        """The winner's gain, which the verdict rests on; None without a comparison."""
        return None if self.findings is None else self.findings.one("winner")

    @property
    def gains(self) -> tuple[NamedGain, ...]:
        """Every gain: of a search on fresh seeds, the decisive one first; of a campaign."""
        found = self.findings or self.campaign
        return () if found is None else tuple(found.gains)

    @cached_property
    def check(self) -> measurements.Liveness | None:
        """The effects of a check's knobs, once the baseline is measured."""
        return measurements.liveness(self.state)

    @cached_property
    def proxy(self) -> measurements.Certificate | None:
        """The agreement of short and full evaluations, once both are measured."""
        return measurements.certificate(self.state)

    @cached_property
    def campaign(self) -> measurements.CampaignReport | None:
        if self.plan.campaign is None:
            return None
        return measurements.campaign_report(self.state, is_over=self.decision in ("done", "stop"))


def comparison_name(kind: str | None) -> str | None:
    """Return the name of a comparison that people read."""
    return kind and kind.replace("_", " ")


def _at_end(knob: Scale, unit: float) -> Literal["lower", "upper"] | None:
    """Return the end of its range that a knob is at, or near to."""
    value = knob.decode(unit)
    if value <= knob.decode(NEAR):
        return "lower"
    return "upper" if value >= knob.decode(1 - NEAR) else None
