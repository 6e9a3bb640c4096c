"""Each fact of a run worded once: plain text, made of the numbers of `Run`, without any marks."""

from collections.abc import Iterator
from datetime import datetime

from budgets.accounts import MS_PER_HOUR
from budgets.campaign.text import campaign_sentence
from budgets.course import next_step
from budgets.events import Amended
from budgets.pace import GOOD_ACCURACY, Pace, Timing
from budgets.plain import PROGRAM
from budgets.proxy.text import proxy_sentence
from budgets.rules.table import Reading
from budgets.state import RunState
from budgets.statistics.comparison import Gain, better
from budgets.terms import Caps
from budgets.verdict.findings import title
from budgets.verdict.gains import incumbent_gain
from budgets.words import about, counted, duration, percent, rounded_up
from orchestrator.look.rows import Balance, Failures, Knob
from orchestrator.look.run import Run

BESIDE = (
    "The evaluations themselves took what was estimated: the rest is the machine, busy with "
    "something else, or the orchestrator's own work."
)
RECALIBRATE = (
    "The calibration is out of date for these evaluations: calibrate with --again before the next "
    "run is planned."
)
WORTH_SAYING = 0.1
"""Of all device time: a calibration that took less is no news."""

MOST_MOVES = 3
"""Knobs that are named."""

REPEAT = "the command that began it"

COMPARING = {
    "reference": "evaluating the baseline on fresh seeds",
    "finalists": "comparing the finalists on fresh seeds",
    "winner": "comparing the winner with the baseline on further fresh seeds",
    "rung": "trying the winner with more training",
}


# What was spent


def amount(balance: Balance, value: float | None) -> str:
    """A number of that currency: whole evaluations, hours to a third of a second."""
    if value is None:
        return "no cap"
    return f"{value:.0f}" if "evaluations" in balance.currency else f"{value:.4f}"


def spent(run: Run) -> str:
    """`8 of 16 evaluations; 0.0263 device-hours`, of every currency that counts."""
    return "; ".join(
        f"{amount(b, b.spent)}{'' if b.cap is None else f' of {amount(b, b.cap)}'} {b.currency}"
        for b in run.balances
        if b.counts
    )


def cost(run: Run) -> str:
    """Evaluations, the time they took, money; what is left where there is a cap; failures."""
    balances = {balance.currency: balance for balance in run.balances}
    clock, device, money = (balances[name] for name in ("hours open", "device-hours", "cost"))
    parts = [
        _evaluations(run, balances["evaluations"], balances.get("comparison evaluations")),
        f"{_time(clock)} of wall clock{_left(clock)}",
        f"{_time(device)} of device time on {devices(run)}{_left(device)}",
    ]
    if money.counts:
        of = "" if money.cap is None else f"of {money.cap:.4g} "
        parts.append(f"{money.spent:.4g} {of}in money")
    counts = run.counts
    if counts.settled:
        parts.append(f"{sum(counts.failed.values()) or 'none'} failed")
    if counts.settled and counts.lost:
        parts.append(f"{counted(counts.lost, 'attempt')} {_was(counts.lost)} lost")
    return f"{'; '.join(parts)}.{_paid_before(run)}"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def devices(run: Run) -> str:
    """`2 x AMD EPYC`."""
    return f"{run.plan.devices.count} x {run.plan.devices.name}"


def _evaluations(run: Run, own: Balance, compared: Balance | None) -> str:
    """`165 evaluations (120 of the search, 45 to compare on fresh seeds)`."""
    planned = run.plan.resolved.evaluations
    in_flight = f", and {run.counts.in_flight} in flight" if run.counts.in_flight else ""
    of_all = f"{own.spent:.0f}" if own.spent == planned else f"{own.spent:.0f} of {planned}"
    if compared is None:
        return f"{of_all} evaluations{in_flight}"
    what = "to compare on fresh seeds" if run.is_search else "beside them"
    if run.plan.proxy is not None:
        what = "in full beside short ones, and to compare on fresh seeds"
    at_most = "at most " if run.decision == "done" else ""
    is_all = compared.spent == compared.cap
    beside = f"{compared.spent:.0f}{'' if is_all else f' of {at_most}{compared.cap:.0f}'}"
    both = own.spent + compared.spent
    return f"{both:.0f} evaluations ({of_all} of the search, {beside} {what}){in_flight}"


def _time(balance: Balance) -> str:
    spent_time = about(3600 * balance.spent)
    return spent_time if balance.cap is None else f"{spent_time} of {about(3600 * balance.cap)}"


def _left(balance: Balance) -> str:
    if balance.cap is None or balance.free is None:
        return ""
    return f" ({about(3600 * balance.free)} left)"


def _paid_before(run: Run) -> str:
    """What the calibration was paid, where that is a good part of it."""
    calibration, device_ms = run.state.planned.calibration, run.state.accounts.device_ms
    if calibration is None or calibration.charged_ms < max(1000, WORTH_SAYING * device_ms):
        return ""
    share = percent(round(calibration.charged_ms / device_ms, 2))
    paid = about(3600 * calibration.charged_ms / MS_PER_HOUR)
    return f" {paid} of the device time ({share}) went to measure the baseline first."


def device_time(hours: float) -> str:
    """In seconds where hours would be next to nothing."""
    return f"{hours:.4g} device-hours" if hours >= 0.001 else f"{3600 * hours:.2g} device-seconds"


def caps(own: Caps) -> dict[str, str]:
    """Those there are, by name, to the last digit."""
    values = own.model_dump(mode="json", exclude={"window"}, exclude_none=True)
    said = {name.replace("_", " "): str(v).removesuffix(".0") for name, v in values.items()}
    if (window := own.window) is not None:
        said["window"] = f"{window.until or f'{window.hours} hours'}"
    return said


def caps_changed(before: Caps, after: Caps) -> str:
    """`evaluations 120 -> 60, hours no cap -> 9`; empty where nothing is."""
    old, new = caps(before), caps(after)
    if before.window is not None and after.window is not None:
        for said, window in ((old, before.window), (new, after.window)):
            said["safety margin"] = f"{window.margin_seconds:.9g} s"
    named = [name for name in new if old.get(name) != new[name]]
    return ", ".join(f"{name} {old.get(name, 'no cap')} -> {new[name]}" for name in named)


def amended(event: Amended) -> str:
    """The caps that an amendment leaves in force, and why."""
    said = [f"{name} {value}" for name, value in caps(event.caps).items()]
    return f"{event.generations} generations, {', '.join(said)}: {event.reason}"


# Time


def pace_line(found: Pace, now: datetime) -> str:
    """On track or not, elapsed, left, when it ends, progress, evaluations an hour."""
    parts = [f"{duration(3600 * found.elapsed_hours)} open"]
    if found.remaining_hours is not None:
        parts.append(f"{duration(3600 * found.remaining_hours)} left")
    if found.remaining_hours and found.eta is not None:
        parts.append(f"ends at {clock(found.eta, now)}")
    parts.append(f"{per_cent(found.progress)} done")
    if found.evals_per_hour is not None:
        parts.append(f"{found.evals_per_hour:,.0f} evaluations an hour")
    said = on_track(found)
    return f"{said[:1].upper()}{said[1:]}{': ' * bool(said)}{', '.join(parts)}."


def on_track(found: Pace) -> str:
    """`on track`, or `off track by 6 s (--window)`: what leaves too little; empty if unknown."""
    if found.slack_hours is None:
        return ""
    short = -3600 * found.slack_hours
    return f"off track by {duration(short)} ({found.binding})" if short >= 0.5 else "on track"


def per_cent(share: float) -> str:
    """All of it only when all of it is done."""
    return f"{min(int(100 * share), 99)}%" if share < 1 else "100%"


def clock(moment: datetime, now: datetime) -> str:
    """Its time of day; with the date, if that is not today's. In the machine's time zone."""
    local, today = moment.astimezone(), now.astimezone()
    return f"{local:%H:%M:%S}" if local.date() == today.date() else f"{local:%Y-%m-%d %H:%M}"


def timing(found: Timing | None) -> str:
    """Estimated, actual and accuracy, and what to do where that is out of bounds; or nothing."""
    if found is None:
        return ""
    said = (
        f"Estimated {duration(3600 * found.estimated_hours)} for what is done, it took "
        f"{duration(3600 * found.actual_hours)} (and {duration(3600 * found.startup_hours)} to "
        f"start): accuracy {found.accuracy:.0f}%. Device time: "
        f"{device_time(found.estimated_device_hours)} estimated, "
        f"{device_time(found.actual_device_hours)} used."
    )
    if found.is_good:
        return said
    if not found.is_telling:
        return f"{said} Of less than a minute that says nothing."
    low, high = GOOD_ACCURACY
    mend = BESIDE if found.is_good_on_devices else RECALIBRATE
    return f"{said} Good is {low:.0f} to {high:.0f}%. {mend}"


# Evaluations


def statuses(run: Run) -> str:
    """`7 ok, 1 oom`."""
    found = ", ".join(f"{n} {status}" for status, n in run.evaluations_by_status.items())
    return found or "none settled"


def failure_rates(found: Failures) -> Iterator[str]:
    """How many evaluations failed, how many attempts were lost, and what was tried again."""
    failed, lost = found.failed / max(1, found.evaluations), found.lost / max(1, found.attempts)
    yield (
        f"{found.failed} of {found.evaluations} evaluations failed by their configuration "
        f"({failed:.1%}), {found.lost} of {found.attempts} attempts by the infrastructure "
        f"({lost:.1%})."
    )


# What was found


def moves(knobs: tuple[Knob, ...]) -> str:
    """`lr 0.02 to 0.035, tau_c 0.85 to 0.9, and 8 more`: the largest shares of a range first."""
    moved = sorted(filter(_share_moved, knobs), key=_share_moved, reverse=True)
    said = [
        f"{knob.name} {knob.baseline:.3g} to {knob.recommended:.3g}" for knob in moved[:MOST_MOVES]
    ]
    more = len(moved) - MOST_MOVES
    return ", ".join(said) + (f", and {more} more" if more > 0 else "")


def _share_moved(knob: Knob) -> float:
    if knob.recommended is None or knob.recommended_unit is None:
        return 0.0
    if f"{knob.recommended:.3g}" == f"{knob.baseline:.3g}":
        return 0.0
    return abs(knob.recommended_unit - knob.baseline_unit)


def luck(seemed: float | None, by_luck: float | None) -> str:
    """What the best score of a search is worth, beside what luck alone would show."""
    if seemed is None:
        return ""
    said = f"The best single score of the search seemed {better(seemed)}"
    if by_luck is None:
        return f"{said}; the noise was not measured, so that says nothing."
    return (
        f"{said}; by luck alone the best of as many baselines would seem about {better(by_luck)}. "
        "Neither is evidence: only fresh seeds count."
    )


def gain(found: Gain) -> str:
    """`+1.59% (+0.42% to +2.76%, 8 seeds)`."""
    if found.mean is None:
        return f"not measurable ({counted(found.pairs, 'seed')})"
    sure = ""
    if found.lower is not None and found.upper is not None:
        sure = f"{found.lower:+.2%} to {found.upper:+.2%}, "
    return f"{found.mean:+.2%} ({sure}{counted(found.pairs, 'seed')})"


def same_scores(run: Run) -> str:
    """That the knobs change nothing, where all scores of a search are one number; else nothing."""
    results = [end for generation in run.state.generations for end in generation.results()]
    scores = [end.score for end in results if end.score is not None]
    if len(scores) < 2 or len(set(scores)) > 1:
        return ""
    return (
        f"All {len(scores)} scores are the same number, {scores[0]:.5g}: the knobs do not seem to "
        "reach the score. See: dry-run, space check."
    )


# Where it stands


def sentence(run: Run) -> str:
    """Where the run stands, claiming no more than was measured; of one that goes on, how far it is.

    No process is asked whether somebody has it: the standing says that.
    """
    ruling = run.ruling
    match ruling.decision:
        case "continue":
            return progress(run)
        case "pause":
            return f"Paused: {ruling.reason}.{_way_on(run)}"
        case "stop":
            return f"Stopped: {ruling.reason}.{_way_on(run)}{_way_to_more(run)}"
        case "done":
            return _finished(run) if run.campaign is None else campaign_sentence(run.campaign)


def progress(run: Run) -> str:
    """`4 of 15 generations finished, comparing the finalists on fresh seeds.`"""
    state, resolved = run.state, run.plan.resolved
    if run.plan.phase in ("check", "campaign"):
        return f"{run.counts.settled} of {run.counts.planned} evaluations settled."
    said = f"{state.finished} of {resolved.generations} generations finished"
    comparing = COMPARING.get(next_step(state))
    if comparing is None:
        return f"{said}."
    ended = "" if state.ended is None else f" ({state.ended.rule} ended the search)"
    return f"{said}{ended}, {comparing}."


OF_FAILURES = ("crash_rate", "sustained_nan", "too_few_healthy")


def corrected(run: Run) -> str:
    """What becomes of a mended script, where that is what failures ask for."""
    if all(trigger.rule not in OF_FAILURES for trigger in run.ruling.triggers):
        return ""
    if is_baseline_broken(run.state):
        return (
            "Mend it and repeat the command: a changed script or setting is calibrated anew; if "
            'something else was wrong, calibrate with the same options and --again --reason "..."'
        )
    if "code" not in run.plan.objective.get("settings", {}):
        return ""
    return "A corrected script is another plan: begin it with --fork-run, or --run-id NAME"


def is_baseline_broken(state: RunState) -> bool:
    """Whether a calibration has no score at all: there is nothing to let through."""
    results = (result for generation in state.generations for result in generation.results())
    return state.plan.phase == "calibration" and all(result.score is None for result in results)


def _way_on(run: Run) -> str:
    anew = corrected(run)
    if anew and is_baseline_broken(run.state):
        return f" {anew}."
    said = f" Look into it. {anew}." if anew else ""
    rules = [trigger.rule for trigger in run.ruling.triggers if trigger.overridable]
    if not rules:
        return said
    options = " ".join(f"--override {rule}" for rule in rules)
    way = f'o go on all the same, repeat the command with {options} --reason "..."'
    return f"{said} T{way}." if said else f" Look into it; t{way}."


def _way_to_more(run: Run) -> str:
    budget = next((trigger for trigger in run.ruling.triggers if trigger.rule == "budget"), None)
    if budget is None:
        return ""
    more = more_needed(run.state, budget)
    least = "" if more.endswith("MORE") else " (that much at least)"
    return (
        f' To allow more: {PROGRAM} amend {run.plan.run_id} {more} --reason "..."{least}; then '
        "repeat the command."
    )


def more_needed(state: RunState, fired: Reading) -> str:
    """`--max-hours 0.0485`: the cap in the way of what fires now, and the least that would do."""
    accounts, limits = state.accounts, state.accounts.caps
    flag = fired.flag or "--max-evals"
    device_hours = accounts.used_device_hours
    cap, used = {
        "--max-device-hours": (limits.device_hours, device_hours),
        "--max-hours": (limits.hours, accounts.committed_wall_ms / MS_PER_HOUR),
        "--max-cost": (limits.cost, device_hours * accounts.price_per_device_hour),
    }.get(flag, (None, 0.0))
    if cap is None or fired.limit is None or fired.observed is None:
        return f"{flag} MORE"
    # what is free of a cap that is overdrawn is 0, not less
    return f"{flag} {rounded_up(max(cap - fired.limit, used) + fired.observed)}"


def _finished(run: Run) -> str:
    state, evaluations = run.state, run.state.accounts.evaluations
    failed = sum(len(generation.failed) for generation in state.generations)
    if run.plan.phase == "calibration":
        if failed == evaluations:
            return f"Not calibrated: all {evaluations} evaluations of the baseline failed."
        return f"Calibrated: {evaluations - failed} healthy evaluations of the baseline."
    if run.plan.phase == "check":
        return checked(run)
    if (decided := state.decided) is not None:
        return f"{title(decided.grade, decided.no_go)}: {decided.evidence}.{_survival(run)}"
    settled = f"All {evaluations} evaluations are settled, {failed} of them failed."
    works = same_scores(run) or ("Everything works." if run.plan.tier == "min" else "")
    said = f"{settled} {works}".rstrip()
    if run.plan.tier == "min":
        return f"{said} Tier min is too small to say Go."
    return (
        f"{said} The recommendation has not been scored on fresh seeds against the baseline, so "
        "this is not a Go yet."
    )


def _survival(run: Run) -> str:
    """Whether the winner of the followed run is better than the baseline on fresh seeds too."""
    found = incumbent_gain(run.state)
    if found is None:
        return ""
    seeds = counted(found.pairs, "fresh seed")
    if found.is_shown:
        return f" The winner of phase 1 survives on {seeds}."
    why = f"its gain on {seeds} may be chance"
    if found.is_loss:
        why = f"it is worse than the baseline on {seeds}"
    if not found.pairs:
        why = "it has no score on fresh seeds"
    return f" The winner of phase 1 does not survive: {why}."


def checked(run: Run) -> str:
    """What a check that is over has found."""
    if run.proxy is not None:
        return proxy_sentence(run.proxy)
    found = run.check
    assert found is not None, "no check is finished without its baseline"
    parts = {
        "dead": found.names("dead"),
        "unproven": found.names("unproven"),
        "unstable": found.unstable_ends,
    }
    named = "".join(f"; {what}: {', '.join(names)}" for what, names in parts.items() if names)
    where = " around the recommendation" if found.centre == "recommendation" else ""
    return f"{len(found.names('alive'))} of {len(found.knobs)} knobs move the score{where}{named}."
