"""A run's state as the budget report: everything it says, as one model. No disk."""

from collections import Counter
from datetime import UTC, datetime
from statistics import median

from budgets import following
from budgets.accounts import MS_PER_HOUR, Accounts
from budgets.calibration import luck
from budgets.campaign.effects import CampaignReport, campaign_of
from budgets.events import Amended, Status
from budgets.frozen import Frozen
from budgets.liveness import Liveness, liveness
from budgets.pace import Timing, remaining_hours, timing
from budgets.proxy.report import ProxyReport, proxy_report
from budgets.report.failures import Failures, failures
from budgets.report.sentence import sentence
from budgets.report.usage import idle_hours, slot_hours, wasted_hours
from budgets.rules.triggers import Ruling, ruling_of
from budgets.state import Generation, RunState
from budgets.statistics.totals import total
from budgets.terms import Caps
from budgets.verdict.finalists import recommendation
from budgets.verdict.findings import Findings, findings


class Balance(Frozen):
    """One currency."""

    currency: str
    spent: float
    reserved: float
    free: float | None  # None without a cap
    cap: float | None

    @property
    def counts(self) -> bool:
        """Whether there is anything to say: money only where it has a price or a cap."""
        return self.currency != "cost" or self.cap is not None or self.spent > 0

    @property
    def label(self) -> str:
        """What people are shown: `comparison evaluations` compare on fresh seeds, or lengths."""
        return "comparison evaluations" if self.currency == "evaluations apart" else self.currency


class GenerationRow(Frozen):
    """One generation's scores over its healthy candidates, lower is better."""

    generation: int
    healthy: int
    failed: int
    best: float | None
    mean: float | None
    sigma: float | None  # the search's step size after it was told
    eval_seconds: float | None  # median
    short: bool = False  # evaluated by a proxy: comparable with its like only


class Baseline(Frozen):
    """The default configuration, as calibrated."""

    mean: float
    sd: float | None
    seeds: int


class BudgetReport(Frozen):
    """Everything a generation's report says."""

    run_id: str
    phase: str
    tier: str | None
    objective: str
    devices: str
    decision: str
    sentence: str
    generations_finished: int
    generations_planned: int
    evaluations_by_status: dict[str, int]
    lost_attempts: int
    balances: tuple[Balance, ...]
    lost_device_hours: float
    overrun_device_hours: float
    overrun_hours: float
    eval_seconds: float | None
    expected_seconds: float | None  # calibrated or assumed
    remaining_hours: float | None
    baseline: Baseline | None
    luckiest_score: float | None
    luckiest_of_noise: float | None
    rows: tuple[GenerationRow, ...]
    recommendation: tuple[float, ...] | None
    triggers: tuple[str, ...]
    overrides: tuple[str, ...]
    records: int
    head: str
    check: Liveness | None = None  # of a check that has measured its baseline
    amendments: tuple[str, ...] = ()
    deadline: datetime | None = None  # of the last evaluation's end
    deadline_hours: float | None = None  # until then, as of the last record
    late_attempts: int = 0  # given up as lost, and heard of after all
    withdrawn: tuple[str, ...] = ()  # devices that got no more work
    salvaged: tuple[str, ...] = ()
    failures: Failures | None = None  # None: of a run that knew no second tries
    findings: Findings | None = None  # of a search that is compared with the baseline, or decided
    slot_hours: float = 0.0  # device-hours that the sessions' slots were there for
    idle_hours: float = 0.0  # ... of which nothing ran
    wasted_hours: float = 0.0  # of attempts that gave no score
    clock_jumps_seconds: tuple[float, ...] = ()
    proxy: ProxyReport | None = None
    follows: str | None = None  # which run or known settings the search begins with
    campaign: CampaignReport | None = None
    timing: Timing | None = None  # estimated and actual, where something was estimated


def budget_report(state: RunState, ruling: Ruling | None = None) -> BudgetReport:
    """The report of a run as it stands: with this ruling, or the one that its records allow.

    Only a full disk gives a ruling that the records do not.
    """
    plan, accounts, ruling = state.plan, state.accounts, ruling or ruling_of(state)
    results = [r for g in state.generations for r in g.results()]
    campaign = campaign_of(state, is_over=ruling.decision in ("done", "stop"))
    calibration = plan.calibration
    mean = calibration.mean_score if calibration else None
    sd = calibration.sd_score if calibration else None
    scores, seeds_each = comparable_scores(state)
    full = [r for g in state.generations if g.is_full for r in g.results()]
    seconds = [r.seconds for r in full if r.status is Status.OK]
    return BudgetReport(
        run_id=plan.run_id,
        phase=plan.phase,
        tier=plan.tier,
        objective=plan.objective["name"],
        devices=f"{plan.devices.count} x {plan.devices.name}",
        decision=ruling.decision,
        sentence=sentence(state, ruling, campaign),
        generations_finished=state.finished,
        generations_planned=plan.resolved.generations,
        evaluations_by_status=dict(Counter(str(r.status) for r in results)),
        lost_attempts=_lost_attempts(state),
        balances=balances(state),
        lost_device_hours=(accounts.lost_ms - _tried_again_ms(state)) / MS_PER_HOUR,
        overrun_device_hours=accounts.overrun_ms / MS_PER_HOUR,
        overrun_hours=accounts.hours_overrun,
        eval_seconds=median(seconds) if seconds else None,
        expected_seconds=calibration.median_seconds if calibration else None,
        remaining_hours=remaining_hours(state),
        baseline=None
        if calibration is None or mean is None
        else Baseline(mean=mean, sd=sd, seeds=len(calibration.samples)),
        luckiest_score=min(scores, default=None),
        luckiest_of_noise=luck(calibration, len(scores), seeds_each),
        rows=tuple(_row(g) for g in state.generations),
        recommendation=recommendation(state),
        triggers=tuple(f"{f.rule}, generation {f.generation}: {f.evidence}" for f in state.fired),
        overrides=tuple(
            f"{o.rule}, generation {o.generation}: {o.reason}" for o in state.overridden
        ),
        records=state.records,
        head=state.head,
        check=liveness(state),
        failures=failures(state),
        findings=findings(state),
        slot_hours=slot_hours(state),
        idle_hours=idle_hours(state),
        wasted_hours=wasted_hours(state),
        amendments=tuple(f"{in_words(a)}: {a.reason}" for a in state.amended),
        deadline=_deadline(accounts),
        deadline_hours=accounts.window_hours_free,
        late_attempts=len(state.late),
        withdrawn=tuple(f"{w.device}: {w.why}" for w in state.withdrawn),
        salvaged=tuple(f"{s.lost_records} records lost: {s.why}" for s in state.salvaged),
        clock_jumps_seconds=tuple(ms / 1000 for ms in state.clock_jumps_ms),
        proxy=proxy_report(state),
        follows=following.beginning(plan),
        campaign=campaign,
        timing=timing(state),
    )


def comparable_scores(state: RunState) -> tuple[list[float], int]:
    """All scores of full length so far, and of how many seeds each is the mean.

    Of a search its candidates'; a run that only measures has single evaluations.
    """
    full = [g for g in state.generations if g.is_full]
    if state.plan.search is not None:
        scores = [score for g in full for score in g.healthy]
        return scores, state.plan.resolved.seeds_per_candidate
    return [r.score for g in full for r in g.results() if r.score is not None], 1


def in_words(event: Amended) -> str:
    """The caps that an amendment leaves in force."""
    said = [f"{name} {value}" for name, value in _caps(event.caps).items()]
    return f"{event.generations} generations, {', '.join(said)}"


def changed(before: Caps, after: Caps) -> str:
    """`evaluations 120 -> 60, hours no cap -> 9`; empty where nothing is."""
    old, new = _caps(before), _caps(after)
    if before.window is not None and after.window is not None:
        for said, window in ((old, before.window), (new, after.window)):
            said["safety margin"] = f"{window.margin_seconds:.9g} s"
    named = [name for name in new if old.get(name) != new[name]]
    return ", ".join(f"{name} {old.get(name, 'no cap')} -> {new[name]}" for name in named)


def _caps(caps: Caps) -> dict[str, str]:
    """Those there are, by name, to the last digit."""
    values = caps.model_dump(mode="json", exclude={"window"}, exclude_none=True)
    said = {name.replace("_", " "): str(v).removesuffix(".0") for name, v in values.items()}
    if (window := caps.window) is not None:
        said["window"] = f"{window.until or f'{window.hours} hours'}"
    return said


def _deadline(accounts: Accounts) -> datetime | None:
    if accounts.calendar is None:
        return None
    return datetime.fromtimestamp(accounts.calendar.deadline_ms / 1000, UTC)


def balances(state: RunState) -> tuple[Balance, ...]:
    """Each currency: spent, reserved, free and the cap."""
    accounts, caps = state.accounts, state.accounts.caps
    reserved_hours = accounts.reserved_device_ms / MS_PER_HOUR
    price = accounts.price_per_device_hour
    apart = sum(hold.apart for hold in accounts.holds.values())
    beside = Balance(
        currency="evaluations apart",
        spent=accounts.apart,
        reserved=apart,
        free=accounts.apart_free,
        cap=accounts.apart_cap,
    )
    return (
        Balance(
            currency="evaluations",
            spent=accounts.evaluations,
            reserved=len(accounts.holds) - apart,
            free=accounts.evaluations_free,
            cap=caps.evaluations,
        ),
        *((beside,) if accounts.apart_cap else ()),
        Balance(
            currency="device-hours",
            spent=accounts.device_ms / MS_PER_HOUR,
            reserved=reserved_hours,
            free=accounts.device_hours_free,
            cap=caps.device_hours,
        ),
        Balance(
            currency="hours open",
            spent=accounts.wall_ms / MS_PER_HOUR,
            reserved=(accounts.committed_wall_ms - accounts.wall_ms) / MS_PER_HOUR,
            free=accounts.hours_free,
            cap=caps.hours,
        ),
        Balance(
            currency="cost",
            spent=accounts.cost,
            reserved=reserved_hours * price,
            free=accounts.cost_free,
            cap=caps.cost,
        ),
    )


def _lost_attempts(state: RunState) -> int:
    return sum(not end.status.final for end in state.ends())


def _tried_again_ms(state: RunState) -> int:
    """Device time of failures that were not final, though nobody lost them."""
    return sum(end.charged_ms for end in state.ends() if end.again is not None)


def _row(generation: Generation) -> GenerationRow:
    healthy = generation.healthy
    seconds = [r.seconds for r in generation.results()]
    return GenerationRow(
        generation=generation.number,
        healthy=len(healthy),
        failed=len(generation.failed),
        best=min(healthy, default=None),
        mean=total(healthy) / len(healthy) if healthy else None,
        sigma=generation.told.sigma if generation.told else None,
        eval_seconds=median(seconds) if seconds else None,
        short=not generation.is_full,
    )
