"""`Run`: everything people are shown of a run, one definition of each number, made when asked for.

A run is a function of its ledger's records and of the moment. Nothing here reads the disk but
`slots`, which asks the attempts in flight how far they are.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Literal

from budgets import calibration as calibrations
from budgets.accounts import MS_PER_HOUR
from budgets.campaign.effects import CampaignReport, campaign_of
from budgets.causes import cause_of, is_lost
from budgets.course import search_is_over, still_apart
from budgets.events import Reserved, Settled, Status
from budgets.liveness import Liveness, label, liveness
from budgets.pace import (
    Pace,
    Timing,
    expected_seconds,
    idle_hours,
    last_seen,
    pace,
    slot_hours,
    timing,
)
from budgets.proxy.report import ProxyReport, proxy_report
from budgets.rules.triggers import Decision, Ruling
from budgets.state import Batch, Moment, Panel, RunState, Try
from budgets.state import Generation as Asked
from budgets.statistics.spread import sd_interval
from budgets.terms import Calibration, Plan
from budgets.verdict.finalists import BASELINE, INCUMBENT, recommendation
from budgets.verdict.findings import Findings, findings
from objectives.space import SearchSpace
from orchestrator.look.files import with_heartbeat
from orchestrator.look.learned import marginals, replayed
from orchestrator.look.rows import (
    Arm,
    Attempt,
    Balance,
    Baseline,
    Counts,
    Distribution,
    FailureKind,
    Failures,
    Generation,
    Knob,
    MadeAgain,
    Marginal,
    NamedGain,
    Session,
    Slot,
    Usage,
)
from orchestrator.look.usage import LONG_RUN, begins, slots, usage
from orchestrator.records.attempts import attempt_place
from orchestrator.records.cautions import cautions
from orchestrator.records.export import arm_of
from orchestrator.records.planned import knobs_of, space_of
from orchestrator.records.range_ends import RangeEnd, range_ends
from orchestrator.records.standing import OVER, Standing, standing_of

_NAMES = {"rung": LONG_RUN, "proxy": "short evaluations"}
MOST_PLACES = 5
"""Directories that are named of attempts that failed alike."""


class Run:
    """A run at a moment.

    `directory` is where its attempts' files are; without it no heartbeat is read. `ruling` is what
    its session came to, where no record says it: a disk that is full.
    """

    def __init__(
        self,
        state: RunState,
        now: datetime,
        directory: Path | None = None,
        ruling: Ruling | None = None,
    ) -> None:
        self.state = state
        self.now = now
        self.directory = directory
        self._ruling = ruling

    # Which run it is, and how it stands

    @property
    def plan(self) -> Plan:
        return self.state.plan

    @property
    def objective(self) -> str:
        return str(self.plan.objective["name"])

    @cached_property
    def space(self) -> SearchSpace:
        return space_of(self.plan)

    @cached_property
    def standing(self) -> Standing:
        """Whether somebody carries it out; what its rules say."""
        return standing_of(self.state, self.now)

    @property
    def ruling(self) -> Ruling:
        return self._ruling or self.standing.ruling

    @property
    def decision(self) -> Decision:
        return self.ruling.decision

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens unless a person does something."""
        return self.standing.kind in OVER

    @property
    def is_search(self) -> bool:
        """Whether it looks for something, and does not only measure."""
        return self.plan.search is not None

    @property
    def began(self) -> datetime:
        return datetime.fromtimestamp(self.state.began_ms / 1000, UTC)

    @property
    def last(self) -> datetime:
        """The moment of its last record."""
        return last_seen(self.state)

    @cached_property
    def sessions(self) -> tuple[Session, ...]:
        state, edges = self.state, self.edges_ms
        return tuple(
            Session(
                number=number,
                opened=datetime.fromtimestamp(state.opened_ms[number] / 1000, UTC),
                began=edges[number] / 1000,
                ended=edges[number + 1] / 1000,
                host=opened.host,
                workers=opened.workers,
                versions=dict(opened.versions),
                command=opened.command,
            )
            for number, opened in enumerate(state.opened)
        )

    # What was spent

    @cached_property
    def balances(self) -> tuple[Balance, ...]:
        """Each currency: spent, reserved, free and the cap. Without a cap nothing is free."""
        accounts, caps = self.state.accounts, self.state.accounts.caps
        compared = sum(hold.apart for hold in accounts.holds.values())
        searched = len(accounts.holds) - compared
        spent_hours = accounts.device_ms / MS_PER_HOUR
        reserved_hours = accounts.reserved_device_ms / MS_PER_HOUR
        open_hours = accounts.wall_ms / MS_PER_HOUR
        committed_hours = accounts.committed_wall_ms / MS_PER_HOUR
        price = accounts.price_per_device_hour
        rows = {
            "evaluations": (accounts.evaluations, searched, accounts.evaluations_free),
            "comparison evaluations": (accounts.apart, compared, accounts.apart_free),
            "device-hours": (spent_hours, reserved_hours, accounts.device_hours_free),
            "hours open": (open_hours, committed_hours - open_hours, accounts.hours_free),
            "cost": (accounts.cost, reserved_hours * price, accounts.cost_free),
        }
        limits = (caps.evaluations, accounts.apart_cap, caps.device_hours, caps.hours, caps.cost)
        return tuple(
            Balance(currency=name, spent=spent, reserved=reserved, free=free, cap=cap)
            for (name, (spent, reserved, free)), cap in zip(rows.items(), limits, strict=True)
            if name != "comparison evaluations" or cap
        )

    @property
    def deadline(self) -> datetime | None:
        """When the last evaluation must be over."""
        calendar = self.state.accounts.calendar
        return (
            None if calendar is None else datetime.fromtimestamp(calendar.deadline_ms / 1000, UTC)
        )

    @property
    def slot_hours(self) -> float:
        """Device-hours that the sessions' slots were there for."""
        return slot_hours(self.state)

    @property
    def idle_hours(self) -> float:
        """... of which nothing ran: start-up, waiting for the last of a generation."""
        return idle_hours(self.state)

    @property
    def wasted_hours(self) -> float:
        """Device-hours of attempts that gave no score."""
        failed = sum(end.charged_ms for end in self.state.ends() if end.status is not Status.OK)
        return (failed + sum(late.charged_ms for late in self.state.late)) / MS_PER_HOUR

    @property
    def lost_hours(self) -> float:
        """... of these, of attempts that were lost or cancelled."""
        again = sum(end.charged_ms for end in self.state.ends() if end.again is not None)
        return (self.state.accounts.lost_ms - again) / MS_PER_HOUR

    @property
    def overrun_device_hours(self) -> float:
        """Beyond what attempts had reserved."""
        return self.state.accounts.overrun_ms / MS_PER_HOUR

    @property
    def overrun_hours(self) -> float:
        """That it was open beyond its cap."""
        return self.state.accounts.hours_overrun

    @cached_property
    def usage(self) -> tuple[Usage, ...]:
        """What the slots did in each part of the run's time, in order."""
        return tuple(usage(self))

    # Time

    @cached_property
    def ledger_pace(self) -> Pace:
        """Where it stood in time at its last record."""
        return pace(self.state)

    @cached_property
    def pace(self) -> Pace:
        """Where it stands in time now: what runs has come so much nearer to its end."""
        state, now = self.state, self.now
        if self.is_over:
            return self.ledger_pace.model_copy(update={"eta": None})
        if self.standing.kind != "running":
            return pace(state, now)
        hours = max(0.0, (now - self.last).total_seconds()) / 3600
        found, most = self.ledger_pace, (expected_seconds(state) or 0.0) / 3600
        update: dict[str, float | datetime] = {"elapsed_hours": found.elapsed_hours + hours}
        if found.remaining_hours is not None:
            remaining = max(0.0, found.remaining_hours - min(hours, most))
            update |= {"remaining_hours": remaining, "eta": now + timedelta(hours=remaining)}
        return found.model_copy(update=update)

    @cached_property
    def timing(self) -> Timing | None:
        """Estimated and actual, where something was estimated."""
        return timing(self.state)

    @property
    def eval_seconds(self) -> float | None:
        """Median of healthy full evaluations."""
        seconds = [
            end.seconds
            for generation in self.state.generations
            if generation.is_full
            for end in generation.results()
            if end.status is Status.OK
        ]
        return median(seconds) if seconds else None

    @property
    def expected_seconds(self) -> float | None:
        """Of an evaluation, as calibrated or assumed."""
        calibration = self.plan.calibration
        return None if calibration is None else calibration.median_seconds

    # Evaluations

    @cached_property
    def counts(self) -> Counts:
        state = self.state
        ends = list(state.ends())
        statuses = Counter(end.status for end in ends if end.final)
        healthy = statuses.pop(Status.OK, 0)
        return Counts(
            settled=state.accounts.evaluations + state.accounts.apart,
            ok=healthy,
            failed={str(status): number for status, number in sorted(statuses.items())},
            lost=sum(not end.final for end in ends),
            in_flight=len(state.accounts.holds),
            to_come=_to_come(state),
            planned=self.plan.resolved.evaluations + self.plan.apart,
        )

    @cached_property
    def evaluations_by_status(self) -> dict[str, int]:
        """Of the search, the check, the calibration or the campaign: comparisons left out."""
        results = (end for generation in self.state.generations for end in generation.results())
        return dict(Counter(str(end.status) for end in results))

    @cached_property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every attempt, in the order in which they began."""
        found = [
            self._attempt(batch, attempt)
            for batch in self.state.batches()
            for tries in batch.tries.values()
            for attempt in tries
        ]
        return tuple(sorted(found, key=lambda one: one.began))

    @property
    def ended(self) -> list[Attempt]:
        """Those that are over, in the order in which they ended."""
        over = [one for one in self.attempts if one.ended is not None]
        return sorted(over, key=lambda one: one.ended or 0.0)

    def _attempt(self, batch: Batch, attempt: Try) -> Attempt:
        reserved, end = attempt.reserved, attempt.settled
        began_ms = self.at_ms(Moment(attempt.session, attempt.reserved_ms))
        found = Attempt(
            what=self.which(reserved),
            comparison=comparison_name(reserved.panel),
            generation=reserved.generation,
            candidate=reserved.candidate,
            arm=arm_of(batch, reserved.candidate),
            seed=reserved.seed,
            attempt=reserved.attempt,
            place=f"eval/{attempt_place(reserved)}",
            point=batch.points[reserved.candidate],
            knobs=knobs_of(batch, reserved.candidate, self.space),
            is_short=is_short(batch),
            session=attempt.session,
            slot=reserved.slot,
            began=began_ms / 1000,
            reserved_seconds=reserved.reserve_ms / 1000,
        )
        if end is None:
            return found
        cause = cause_of(end.status, end.cause)
        return replace(
            found,
            status=end.status,
            is_final=end.final,
            is_recovered=end.recovered,
            score=end.score,
            ended=self.ended_ms(attempt, end, began_ms) / 1000,
            device=end.device,
            seconds=end.seconds,
            startup_seconds=end.startup_seconds,
            train_seconds=end.train_seconds,
            charged_seconds=end.charged_ms / 1000,
            peak_memory_bytes=end.peak_memory_bytes,
            steps=end.steps,
            tokens=end.tokens,
            train_flops=end.train_flops,
            eval_flops=end.eval_flops,
            cause=end.cause,
            whose="" if cause is None else cause.whose,
            metrics=dict(end.metrics),
        )

    def ended_ms(self, attempt: Try, end: Settled, began_ms: int) -> int:
        """By its own time: it may be heard of later, by another session even."""
        limit_ms = self.edges_ms[min(attempt.session + 1, len(self.edges_ms) - 1)]
        if attempt.settled_at is not None and attempt.settled_at.session == attempt.session:
            limit_ms = self.at_ms(attempt.settled_at)
        return max(began_ms, min(began_ms + round(1000 * end.seconds), limit_ms))

    def which(self, place: Reserved | Settled) -> str:
        """An evaluation in words: `generation 3, candidate 2`; `winner, average`; `lr low`."""
        batch, plan = self.state.batch(place), self.plan
        if isinstance(batch, Panel):
            return f"{comparison_name(batch.name)}, {batch.arms[place.candidate].name}"
        assert isinstance(batch, Asked), "it is one or the other"
        if plan.campaign is not None or (plan.phase == "check" and plan.proxy is None):
            return label(plan, batch, place.candidate)
        return f"generation {place.generation}, candidate {place.candidate}"

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """What each slot does; of a run that nobody carries out, what was in flight when it ended.

        With what the attempts say themselves, where their files are.
        """
        rows = slots(self)
        if self.directory is None or not self.standing.goes_on:
            return rows
        return tuple(with_heartbeat(self.directory, row) for row in rows)

    @cached_property
    def failures(self) -> Failures | None:
        """None: nothing has ended."""
        return _failures(self.state)

    # What the search has learned

    @cached_property
    def _calibration(self) -> Calibration | None:
        """The run's; of a calibration, as it has measured so far."""
        if self.plan.phase != "calibration":
            return self.plan.calibration
        try:
            return calibrations.measure(self.state)
        except ValueError:  # nothing healthy yet
            return None

    @cached_property
    def baseline(self) -> Baseline | None:
        found = self._calibration
        if found is None or not found.samples:
            return None
        sd = found.sd_score
        low, high = (None, None) if sd is None else sd_interval(sd, len(found.samples))
        scores = tuple(sample.score for sample in found.samples)
        return Baseline(
            mean=fmean(scores),
            sd=sd,
            sd_low=low,
            sd_high=high,
            scores=scores,
            seconds=tuple(sample.seconds for sample in found.samples),
            peak_memory_bytes=tuple(sample.peak_memory_bytes for sample in found.samples),
            median_seconds=found.median_seconds,
            p90_seconds=found.p90_seconds,
        )

    @property
    def seeds_each(self) -> int:
        """Of how many evaluations a candidate's score is the mean."""
        return self.plan.resolved.seeds_per_candidate if self.is_search else 1

    @cached_property
    def noise_band(self) -> tuple[float, float] | None:
        """Where a candidate's score lies if it equals the baseline: its mean -+ 2 sd."""
        return calibrations.noise_band(self._calibration, self.seeds_each)

    def by_luck(self, candidates: int) -> float | None:
        """The expected best score of so many candidates that all equal the baseline."""
        if not self.is_search and self.plan.phase != "calibration":
            return None
        return calibrations.luck(self._calibration, candidates, self.seeds_each)

    @cached_property
    def generations(self) -> tuple[Generation, ...]:
        """Every generation, in order; a check, a calibration or a campaign is one of them."""
        return tuple(_generations(self))

    @property
    def scores(self) -> list[float]:
        """Of every full candidate that has one; of a run that only measures, of evaluations."""
        full = [generation for generation in self.state.generations if generation.is_full]
        return [score for generation in full for score in self.healthy(generation)]

    def healthy(self, generation: Asked) -> list[float]:
        """The generation's scores: of candidates, or of single evaluations (see `Generation`)."""
        if self.is_search:
            return generation.healthy
        return [end.score for end in generation.results() if end.score is not None]

    @cached_property
    def best_so_far(self) -> float | None:
        """The lowest of `scores`: the luckiest, which is evidence of luck."""
        return min(self.scores, default=None)

    @cached_property
    def luck_so_far(self) -> float | None:
        """What it would be expected to be if every candidate equalled the baseline."""
        return self.by_luck(len(self.scores))

    @cached_property
    def knobs(self) -> tuple[Knob, ...]:
        point = recommendation(self.state)
        units = [None] * self.space.dimension if point is None else point
        ends = {end.knob: end.end for end in self.range_ends}
        return tuple(
            Knob(
                name=knob.name,
                kind=knob.kind,
                step=knob.step,
                low=knob.decode(0.0),
                high=knob.decode(1.0),
                baseline=knob.typed(knob.baseline),
                recommended=None if unit is None else knob.decode(unit),
                baseline_unit=knob.encode(knob.baseline),
                recommended_unit=unit,
                at_end=ends.get(knob.name),
            )
            for knob, unit in zip(self.space.knobs, units, strict=True)
        )

    @cached_property
    def range_ends(self) -> tuple[RangeEnd, ...]:
        """Knobs of which the search's best lies at an end of their range."""
        return range_ends(self.state) if self.is_search else ()

    @cached_property
    def marginals(self) -> tuple[Marginal, ...]:
        """One a knob; none before a generation is told."""
        return tuple(marginals(self)) if self.is_search else ()

    @cached_property
    def replayed(self) -> tuple[Distribution | None, str]:
        """The search's distribution after each generation; or None, and why there is none."""
        return replayed(self.state)

    # Verdicts

    @cached_property
    def findings(self) -> Findings | None:
        """Of a search that is compared with the baseline."""
        return findings(self.state)

    @cached_property
    def cautions(self) -> tuple[str, ...]:
        """What speaks against relying on it, the weightiest first."""
        return cautions(self.state)

    @cached_property
    def arms(self) -> tuple[Arm, ...]:
        """Every configuration that is compared, comparison by comparison."""
        return tuple(
            Arm(
                comparison=comparison_name(panel.name) or "",
                number=panel.number,
                name=arm.name,
                scores={**dict.fromkeys(panel.seeds[place]), **panel.scores_by_seed(place)},
                settled=sum(panel.result(place, seed) is not None for seed in panel.seeds[place]),
                mean=_mean(list(panel.scores_by_seed(place).values())),
            )
            for panel in self.state.panels.values()
            for place, arm in enumerate(panel.arms)
        )

    @cached_property
    def gains(self) -> tuple[NamedGain, ...]:
        """Every gain on fresh seeds that is known, the one that decides first."""
        return () if self.findings is None else tuple(_gains(self.findings))

    @cached_property
    def check(self) -> Liveness | None:
        """Of a check that has measured its baseline."""
        return liveness(self.state)

    @cached_property
    def proxy(self) -> ProxyReport | None:
        return proxy_report(self.state)

    @cached_property
    def campaign(self) -> CampaignReport | None:
        return campaign_of(self.state, is_over=self.decision in ("done", "stop"))

    # The run's clock

    @cached_property
    def edges_ms(self) -> tuple[int, ...]:
        """Where each session begins, and where the last one ends."""
        return (0, *accumulate(self.state.own_sessions_ms))

    def at_ms(self, moment: Moment) -> int:
        """A record that was written without a session belongs to the end of the last one."""
        session = min(moment.session, max(0, len(self.edges_ms) - 2))
        end = self.edges_ms[min(session + 1, len(self.edges_ms) - 1)]
        return min(self.edges_ms[session] + moment.ms, end)


def comparison_name(panel: str | None) -> str | None:
    """What people know the ledger's panels as."""
    return None if panel is None else _NAMES.get(panel, panel)


def is_short(batch: Batch) -> bool:
    """Whether a proxy evaluates it."""
    return not batch.is_full if isinstance(batch, Asked) else batch.panel == "proxy"


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None


def _to_come(state: RunState) -> int:
    """Of the search what its plan has left, beside it what the verdict needs at most."""
    if state.decided is not None or state.concluded is not None:
        return 0
    accounts, of_search = state.accounts, 0
    if not search_is_over(state):
        of_search = state.plan.resolved.evaluations - accounts.evaluations
    return max(0, of_search + still_apart(state).evaluations - len(accounts.holds))


def _generations(run: Run) -> Iterator[Generation]:
    so_far: list[float] = []
    band = run.noise_band
    parts = dict(begins(run))
    for generation in run.state.generations:
        scores, told = run.healthy(generation), generation.told
        so_far += scores if generation.is_full else []
        mean = _mean(scores)
        outside: Literal["better", "worse"] | None = None
        if mean is not None and band is not None and generation.is_full:
            outside = "better" if mean < band[0] else "worse" if mean > band[1] else None
        seconds = [end.seconds for end in generation.results()]
        end_ms = run.edges_ms[-1]
        if generation.told_at is not None:
            end_ms = run.at_ms(generation.told_at)
        yield Generation(
            number=generation.number,
            is_short=not generation.is_full,
            is_told=told is not None,
            began=parts[f"generation {generation.number}"] / 1000,
            ended=end_ms / 1000,
            candidates=len(generation.points),
            healthy=len(scores),
            failed=len(generation.failed),
            best=min(scores, default=None),
            mean=mean,
            sd=stdev(scores) if len(scores) > 1 else None,
            best_so_far=min(so_far, default=None),
            luck_so_far=run.by_luck(len(so_far)),
            outside=outside,
            eval_seconds=median(seconds) if seconds else None,
            step_size=told.sigma if told else None,
            axis_ratio=told.axis_ratio if told else None,
            mean_point=told.favourite if told else None,
        )


def _failures(state: RunState) -> Failures | None:
    evaluations = [
        [attempt.settled for attempt in tries if attempt.settled is not None]
        for batch in state.batches()
        for tries in batch.tries.values()
    ]
    ends = [end for tries in evaluations for end in tries if end.status is not Status.CANCELLED]
    if not ends:
        return None
    final = [end for end in ends if end.final]
    again = (_made_again(evaluations, how) for how in ("elsewhere", "lighter"))
    by_kind: dict[tuple[str, str], list[Settled]] = defaultdict(list)
    for end in ends:
        if (cause := cause_of(end.status, end.cause)) is not None:
            by_kind[cause.whose, cause.what].append(end)
    return Failures(
        evaluations=len(final),
        failed=sum(end.status is not Status.OK for end in final),
        attempts=len(ends),
        lost=sum(is_lost(end.status, end.cause) for end in ends),
        again=tuple(one for one in again if one.healthy + one.failed + one.owed),
        kinds=tuple(
            FailureKind(
                whose=whose,
                what=what,
                attempts=len(own),
                final=sum(end.final for end in own),
                example=own[0].cause,
                places=tuple(dict.fromkeys(f"eval/{attempt_place(end)}" for end in own))[
                    :MOST_PLACES
                ],
            )
            for (whose, what), own in sorted(by_kind.items(), key=lambda one: -len(one[1]))
        ),
    )


def _made_again(evaluations: list[list[Settled]], how: str) -> MadeAgain:
    concerned = [ends for ends in evaluations if any(end.again == how for end in ends)]
    results = [ends[-1].status for ends in concerned if ends[-1].final]
    healthy = results.count(Status.OK)
    owed = len(concerned) - len(results)
    return MadeAgain(how=how, healthy=healthy, failed=len(results) - healthy, owed=owed)


def _gains(found: Findings) -> Iterator[NamedGain]:
    before = f"{INCUMBENT} of the run before"
    rows = [
        ("winner", BASELINE, found.gain),
        (f"winner, {found.rung_label}", BASELINE, found.rung),
        (before, BASELINE, found.incumbent),
        ("winner", before, found.over_incumbent),
    ]
    for control in found.controls:
        name = f"{control.name} (control)"
        rows.append((name, BASELINE, control.gain))
        rows.append(("winner", name, control.winner_gain if control.winner_gain.pairs else None))
    rows += [(f"{one.name} (picking seeds)", BASELINE, one.gain) for one in found.finalists]
    for name, against, gain in rows:
        if gain is not None:
            is_decisive = gain is found.gain
            yield NamedGain(name=name, against=against, gain=gain, is_decisive=is_decisive)
