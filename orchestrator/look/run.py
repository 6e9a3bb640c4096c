"""`Run`: everything people are shown of a run, one definition of each number, made when asked for.

A run is a function of its ledger's records and of the moment. Nothing here reads the disk but
`slots`, which asks the attempts in flight how far they are.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import accumulate, count, pairwise
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Literal

from budgets import calibration as calibrations
from budgets import pace as paces
from budgets.accounts import MS_PER_HOUR
from budgets.effects import CampaignReport, campaign_of
from budgets.events import Reserved, Settled, Status
from budgets.failures import cause_of
from budgets.liveness import Liveness, label, liveness
from budgets.matrix import Matrix, matrix_of
from budgets.plan import Calibration, ComparisonName, Plan
from budgets.proxy import Certificate, certificate
from budgets.rules import Decision, Ruling
from budgets.schedule import left_for_the_verdict, search_is_over
from budgets.state import Attempt, Batch, Moment, RunState
from budgets.verdict import BASELINE, Findings, findings, recommendation
from objectives.space import Knob as Scale
from objectives.space import SearchSpace
from orchestrator.look import rows
from orchestrator.look.files import heartbeat
from orchestrator.matrix.manifest import in_flight
from orchestrator.records.objective import best_point
from orchestrator.records.runs import ReplayError, attempt_place
from orchestrator.records.standing import OVER, Standing, standing_of

if TYPE_CHECKING:
    from orchestrator.search.landscape import Landscape

NEAR = 0.01  # of a knob's range: no further from an end counts as there

_NAMES: dict[ComparisonName, str] = {"long_run": "long run", "proxy": "short evaluations"}


@dataclass(eq=False)
class Run:
    """A run at a moment."""

    state: RunState
    now: datetime
    directory: Path | None = None  # of its attempts' files; without it no heartbeat is read
    session_ruling: Ruling | None = None  # that no record says: of a disk that is full

    # Which run it is, and how it stands

    @property
    def plan(self) -> Plan:
        return self.state.plan

    @property
    def objective(self) -> str:
        return self.plan.objective.name

    @cached_property
    def space(self) -> SearchSpace:
        return self.plan.space

    @cached_property
    def standing(self) -> Standing:
        """Whether somebody carries it out; what its rules say."""
        return standing_of(self.state, self.now)

    @property
    def ruling(self) -> Ruling:
        return self.session_ruling or self.standing.ruling

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
    def last(self) -> datetime:
        """The moment of its last record."""
        return paces.last_seen(self.state)

    # What was spent

    @cached_property
    def balances(self) -> tuple[rows.Balance, ...]:
        """Each currency: spent, reserved, free and the cap. Without a cap nothing is free."""
        names = {"device time": "device-hours", "wall clock": "wall-clock hours", "money": "cost"}
        caps = self.state.accounts.caps
        limits = {"device time": caps.device_hours, "wall clock": caps.hours, "money": caps.cost}
        return tuple(
            rows.Balance(
                currency=names.get(name, name),
                spent=one.spent / one.per_unit,
                reserved=one.reserved / one.per_unit,
                free=one.free,
                cap=limits.get(name, one.cap),
            )
            for name, one in self.state.accounts.table.items()
            if name != "comparison evaluations" or one.cap
        )

    @property
    def deadline(self) -> datetime | None:
        """When the last evaluation must be over."""
        calendar = self.state.accounts.calendar
        return calendar and datetime.fromtimestamp(calendar.deadline_ms / 1000, UTC)

    @cached_property
    def usage(self) -> tuple[rows.Usage, ...]:
        """Of each part what its evaluations took: those that began in it.

        Slots are idle while they are there, less that; what it takes beyond is of the next part.
        """
        parts = self._parts()
        names, begins = list(parts), [*parts.values(), self.edges_ms[-1]]
        took = defaultdict[tuple[str, str], float](float)
        for batch in self.state.batches():
            for attempt in (one for every in batch.attempts.values() for one in every):
                began_ms = self.at_ms(Moment(attempt.session, attempt.reserved_ms))
                part = names[bisect_right(begins, began_ms, hi=len(names)) - 1]
                if attempt.reserved.attempt == 1:
                    factor = batch.configurations[attempt.reserved.candidate].cost_factor
                    took[part, "planned"] += 1000 * factor * (self.eval_seconds or 0.0)
                if (end := attempt.settled) is not None:
                    took[part, "useful" if end.status is Status.OK else "wasted"] += end.charged_ms
        open_ms = list(zip(self.state.opened, pairwise(self.edges_ms), strict=True))
        spilled, found = 0.0, list[rows.Usage]()
        for part, (began, ended) in zip(names, pairwise(begins), strict=True):
            there = sum(
                one.workers * max(0.0, min(end, ended) - max(start, began))
                for one, (start, end) in open_ms
            )
            left = there - took[part, "useful"] - took[part, "wasted"] - spilled
            spilled = max(0.0, -left)
            kinds = ("planned", "useful", "wasted")
            hours = {kind: took[part, kind] / MS_PER_HOUR for kind in kinds}
            found.append(rows.Usage(part=part, idle=max(0.0, left) / MS_PER_HOUR, **hours))
        return tuple(found)

    def _parts(self) -> dict[str, int]:
        """The parts of a run's time and when each began, in milliseconds on its clock.

        Each has the time until the next one begins. What is compared before the finalists are fills
        slots that the search leaves idle.
        """
        names = {"finalists": "comparison", "long_run": "long run"}
        found = {"start-up": 0}
        for batch in self.state.batches():
            if batch.comparison is None:
                found[f"generation {batch.number}"] = self.at_ms(batch.asked_at)
            elif (name := names.get(batch.comparison)) is not None:
                found[name] = self.at_ms(batch.asked_at)
        return found

    # Time

    @cached_property
    def pace(self) -> paces.Pace:
        """Where it stands in time now: what runs has come so much nearer to its end."""
        state, now, found = self.state, self.now, paces.pace(self.state)
        if self.is_over:
            return found.model_copy(update={"eta": None})
        if self.standing.kind != "running":
            return paces.pace(state, now)
        hours = max(0.0, (now - self.last).total_seconds()) / 3600
        update: dict[str, Any] = {"elapsed_hours": found.elapsed_hours + hours}
        if found.eta is not None:
            eta = max(now, found.eta)
            update |= {"remaining_hours": (eta - now).total_seconds() / 3600, "eta": eta}
        return found.model_copy(update=update)

    @cached_property
    def timing(self) -> paces.Timing | None:
        """Estimated and actual, where something was estimated."""
        return paces.timing(self.state)

    @property
    def eval_seconds(self) -> float | None:
        """Of an evaluation, as calibrated or assumed; of a calibration as measured so far."""
        return None if self._calibration is None else self._calibration.median_seconds

    # Evaluations

    @cached_property
    def counts(self) -> rows.Counts:
        state, ends = self.state, list(self.state.ends())
        statuses = Counter(end.status for end in ends if end.final)
        healthy = statuses.pop(Status.OK, 0)
        return rows.Counts(
            settled=state.accounts.evaluations + state.accounts.comparisons,
            ok=healthy,
            failed={str(status): number for status, number in sorted(statuses.items())},
            lost=sum(not end.final for end in ends),
            in_flight=len(state.accounts.holds),
            to_come=_to_come(state),
            planned=self.plan.resolved.evaluations + self.plan.comparison_evaluations,
        )

    @cached_property
    def evaluations_by_status(self) -> dict[str, int]:
        """Of the search, the check, the calibration or the campaign: comparisons left out."""
        results = (end for generation in self.state.generations for end in generation.results())
        return dict(Counter(str(end.status) for end in results))

    @cached_property
    def attempts(self) -> tuple[rows.Attempt, ...]:
        """Every attempt, in the order in which they began."""
        found = [
            self.attempt(batch, attempt)
            for batch in self.state.batches()
            for every in batch.attempts.values()
            for attempt in every
        ]
        return tuple(sorted(found, key=lambda one: one.began))

    def attempt(self, batch: Batch, attempt: Attempt) -> rows.Attempt:
        """One of them. It ended by its own time: it may be heard of later, by another session."""
        reserved, end = attempt.reserved, attempt.settled
        own = ("generation", "candidate", "seed", "attempt", "slot")
        found: dict[str, Any] = {name: getattr(reserved, name) for name in own}
        began = self.at_ms(Moment(attempt.session, attempt.reserved_ms)) / 1000
        if end is not None:
            limit = self.at_ms(Moment(attempt.session + 1, 0)) / 1000
            found |= {name: getattr(end, name) for name in ("status", "score", "cause")}
            found |= {"is_final": end.final, "ended": round(min(began + end.seconds, limit), 3)}
        return rows.Attempt(
            what=self.which(reserved),
            comparison=comparison_name(reserved.comparison),
            configuration=batch.configurations[reserved.candidate].name,
            place=f"eval/{attempt_place(reserved)}",
            point=batch.points[reserved.candidate],
            session=attempt.session,
            began=began,
            limit_seconds=reserved.reserve_ms / 1000,
            **found,
        )

    def which(self, place: Reserved | Settled) -> str:
        """An evaluation in words: `generation 3, candidate 2`; `winner, average`; `lr low`."""
        batch, plan = self.state.batch(place), self.plan
        if batch.comparison is not None:
            name = batch.configurations[place.candidate].name
            return f"{comparison_name(batch.comparison)}, {name}"
        if plan.campaign is not None or (plan.phase == "check" and plan.proxy is None):
            return label(plan, batch, place.candidate)
        return f"generation {place.generation}, candidate {place.candidate}"

    @cached_property
    def slots(self) -> tuple[rows.Slot, ...]:
        """One a slot, in order; of an attempt that is in flight with what it says of itself."""
        state, goes_on, session = self.state, self.standing.goes_on, len(self.state.opened) - 1
        now = self.edges_ms[-1] / 1000 + (self.now - self.last).total_seconds()
        device = "cpu" if state.plan.devices.kind == "cpu" else ""  # all are alike
        expected, found = paces.expected_seconds(state), dict[int, rows.Slot]()
        for attempt in state.running_attempts():
            batch = state.batch(attempt.reserved)
            one = self.attempt(batch, attempt)
            length = batch.configurations[one.candidate].cost_factor
            said: dict[str, Any] = {"device": device, "doing": "running"}
            if self.directory is not None and goes_on:
                said |= heartbeat(self.directory, one.place)
            free = next(slot for slot in count() if slot not in found)
            number = free if one.slot is None or one.slot in found else one.slot
            found[number] = rows.Slot(
                slot=number,
                what=one.what,
                place=one.place,
                attempt=one.attempt,
                seconds=max(0.0, now - one.began) if goes_on and one.session == session else None,
                expected_seconds=None if expected is None else expected * length,
                limit_seconds=one.limit_seconds,
                **said,
            )
        workers = state.opened[-1].workers if goes_on and state.opened else 0
        for slot in set(range(workers)) - found.keys():
            found[slot] = rows.Slot(slot=slot, device=device)
        return tuple(found[slot] for slot in sorted(found))

    @cached_property
    def failures(self) -> tuple[rows.FailureKind, ...]:
        """Attempts that failed, by what failed and whose fault it is, the most frequent first."""
        by_kind: dict[tuple[str, str], list[rows.Attempt]] = defaultdict(list)
        for one in self.attempts:
            if one.status and (cause := cause_of(one.status, one.cause)) is not None:
                by_kind[cause.whose, cause.what].append(one)
        kinds = (
            rows.FailureKind(
                whose=whose,
                what=what,
                attempts=len(own),
                final=sum(one.is_final for one in own),
                example=own[0].cause,
                place=own[0].place,
            )
            for (whose, what), own in by_kind.items()
        )
        return tuple(sorted(kinds, key=lambda kind: -kind.attempts))

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
    def baseline(self) -> calibrations.Noise | None:
        """The default configuration as calibrated, and how far its scores spread over seeds."""
        return None if self._calibration is None else calibrations.noise(self._calibration)

    @property
    def _seeds_each(self) -> int:  # of which a score is the mean
        return self.plan.resolved.seeds_per_candidate if self.is_search else 1

    @cached_property
    def noise_band(self) -> tuple[float, float] | None:
        """Where a candidate's score lies if it equals the baseline: its mean -+ 2 sd."""
        return calibrations.noise_band(self._calibration, self._seeds_each)

    def _by_chance(self, candidates: int) -> float | None:
        """The expected best score of so many candidates that all equal the baseline."""
        if not self.is_search and self.plan.phase != "calibration":
            return None
        return calibrations.luck(self._calibration, candidates, self._seeds_each)

    @cached_property
    def generations(self) -> tuple[rows.Generation, ...]:
        """Every generation, in order; a check, a calibration or a campaign is one of them."""
        so_far, found = list[float](), list[rows.Generation]()
        for generation in self.state.generations:
            scores, told = self.healthy(generation), generation.told
            so_far += scores
            one = rows.Generation(
                number=generation.number,
                is_told=told is not None,
                began=self.at_ms(generation.asked_at) / 1000,
                ended=self.at_ms(generation.told_at) / 1000,
                healthy=len(scores),
                failed=len(generation.failed),
                best=min(scores, default=None),
                mean=fmean(scores) if scores else None,
                sd=stdev(scores) if len(scores) > 1 else None,
                best_so_far=min(so_far, default=None),
                best_by_chance=self._by_chance(len(so_far)),
                step_size=told.sigma if told else None,
                axis_ratio=told.axis_ratio if told else None,
                mean_point=told.mean if told else None,
            )
            found.append(one)
        return tuple(found)

    @property
    def scores(self) -> list[float]:
        """Of every candidate that has one; of a run that only measures, of evaluations."""
        return [score for one in self.state.generations for score in self.healthy(one)]

    def healthy(self, generation: Batch) -> list[float]:
        """The generation's scores: of candidates, or of single evaluations (see `Generation`)."""
        if self.is_search:
            return generation.healthy
        return [end.score for end in generation.results() if end.score is not None]

    @cached_property
    def best_so_far(self) -> float | None:
        """The lowest of `scores`, which is selected for its noise: no evidence."""
        return min(self.scores, default=None)

    @cached_property
    def best_by_chance(self) -> float | None:
        """What the lowest would be expected to be if every candidate equalled the baseline."""
        return self._by_chance(len(self.scores))

    @cached_property
    def knobs(self) -> tuple[rows.Knob, ...]:
        point = recommendation(self.state)
        best = best_point(self.state, compared=True) if self.is_search else None
        nothing = [None] * self.space.dimension
        return tuple(
            rows.Knob(
                name=knob.name,
                kind=knob.kind,
                step=knob.step,
                low=knob.decode(0.0),
                high=knob.decode(1.0),
                baseline=knob.typed(knob.baseline),
                recommended=None if unit is None else knob.decode(unit),
                baseline_unit=knob.encode(knob.baseline),
                recommended_unit=unit,
                at_end=None if at is None else _at_end(knob, at),
            )
            for knob, unit, at in zip(
                self.space.knobs, point or nothing, best or nothing, strict=True
            )
        )

    @cached_property
    def landscapes(self) -> tuple[tuple["Landscape", ...], str]:
        """The search's distribution after each finished generation; or none, and why."""
        if not self.is_search:
            return (), f"a {self.plan.phase} run searches nothing"
        if not self.state.completed:
            return (), "no generation is finished yet"
        try:
            from orchestrator.plan.phase2 import landscapes

            return tuple(landscapes(self.state)[1:]), ""
        except (ImportError, ReplayError, ValueError, ArithmeticError) as error:
            return (), f"the search cannot be replayed here: {error}"

    @cached_property
    def landscape_by_chance(self) -> tuple[float, float]:
        """The strongest correlation and the largest condition of some searches on noise."""
        from orchestrator.search import landscape_by_chance

        assert self.plan.search is not None, "it searches"
        population, generations = self.plan.resolved.population, self.state.finished
        return landscape_by_chance(self.plan.search, population, generations)

    # Verdicts

    @cached_property
    def findings(self) -> Findings | None:
        """Of a search that is compared with the baseline."""
        return findings(self.state)

    @cached_property
    def gains(self) -> tuple[rows.NamedGain, ...]:
        """Every gain on fresh seeds that is known, the one that decides first."""
        return () if self.findings is None else tuple(_gains(self.findings))

    @cached_property
    def check(self) -> Liveness | None:
        """Of a check that has measured its baseline."""
        return liveness(self.state)

    @cached_property
    def proxy(self) -> Certificate | None:
        """How far short and full evaluations agree, once both are measured."""
        return certificate(self.state)

    @cached_property
    def campaign(self) -> CampaignReport | None:
        return campaign_of(self.state, is_over=self.decision in ("done", "stop"))

    @cached_property
    def matrix(self) -> Matrix | None:
        """Of a campaign its cells, condition by seed, as they stand now."""
        if self.plan.campaign is None:
            return None
        return in_flight(matrix_of(self.state), self.standing)

    # The run's clock

    @cached_property
    def edges_ms(self) -> tuple[int, ...]:
        """Where each session begins, and where the last one ends."""
        return (0, *accumulate(self.state.own_sessions_ms))

    def at_ms(self, moment: Moment | None) -> int:
        """The end of the clock for what has not happened, or was recorded without a session."""
        edges = self.edges_ms
        if moment is None or moment.session + 1 >= len(edges):
            return edges[-1]
        return min(edges[moment.session] + moment.ms, edges[moment.session + 1])


def comparison_name(kind: ComparisonName | None) -> str | None:
    """What people know a comparison of the ledger as."""
    return None if kind is None else _NAMES.get(kind, kind)


def _at_end(knob: Scale, unit: float) -> Literal["lower", "upper"] | None:
    """The end of its range that it is at: an int knob exactly, another one nearly."""
    if knob.kind == "int":
        ends = knob.decode(unit) == knob.decode(0.0), knob.decode(unit) == knob.decode(1.0)
    else:
        ends = unit <= NEAR, unit >= 1 - NEAR
    return "lower" if ends[0] else "upper" if ends[1] else None


def _to_come(state: RunState) -> int:
    """Of the search what its plan has left, beside it what the verdict needs at most."""
    if state.decided is not None or state.concluded is not None:
        return 0
    accounts, of_search = state.accounts, 0
    if not search_is_over(state):
        of_search = state.plan.resolved.evaluations - accounts.evaluations
    return max(0, of_search + left_for_the_verdict(state).evaluations - len(accounts.holds))


def _gains(found: Findings) -> Iterator[rows.NamedGain]:
    before = "winner of phase 1"
    named = [
        ("winner", BASELINE, found.gain),
        (f"winner, {found.long_run_label}", BASELINE, found.long_run),
        (before, BASELINE, found.incumbent),
        ("winner", before, found.over_incumbent),
    ]
    for control in found.controls:
        name = f"{control.name} (control)"
        named.append((name, BASELINE, control.gain))
        named.append(("winner", name, control.winner_gain if control.winner_gain.pairs else None))
    named += [(f"{one.name} (picking seeds)", BASELINE, one.gain) for one in found.finalists]
    for name, against, gain in named:
        if gain is not None:
            decisive = gain is found.gain
            yield rows.NamedGain(name=name, against=against, gain=gain, is_decisive=decisive)
