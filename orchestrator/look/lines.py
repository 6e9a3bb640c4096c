"""A record of a run as a line for a person."""

from budgets.events import (
    Decided,
    Event,
    Fired,
    GenerationTold,
    Late,
    Opened,
    Overridden,
    PanelAsked,
    Settled,
    Withdrawn,
)
from budgets.verdict.findings import title
from budgets.words import duration, precise_duration
from orchestrator.look import text
from orchestrator.look.run import Run, comparison_name


def line_of(  # noqa: PLR0911 - a kind of record each
    run: Run, event: Event, *, brief: bool = False
) -> str | None:
    """What a record says, the run being as of it; None of one that says nothing new.

    In `brief` without what a picture shows: healthy evaluations, what is spent, the pace.
    """
    match event:
        case Settled():
            return None if brief and event.score is not None else _evaluation(run, event)
        case GenerationTold():
            pace = text.pace_line(run.pace, run.now)
            also = "" if brief else f"\n  Spent: {text.spent(run)}.\n  {pace}"
            return f"{_generation(run, event)}{also}"
        case PanelAsked():
            names = [arm.name for arm in event.arms]
            said = ", ".join(names) if len(names) < 7 else f"{len(names)} configurations"
            count = sum(map(len, event.seeds))
            return f"Comparison ({comparison_name(event.panel)}): {said} ({count} evaluations)."
        case Opened():
            done, planned = run.state.accounts.evaluations, run.plan.resolved.evaluations
            verb = "Starting" if len(run.state.opened) == 1 else "Resuming"
            return f"{verb} {run.plan.phase} {run.plan.run_id}: {done} of {planned} settled."
        case Late():
            where = f"{comparison_name(event.panel) or 'generation'} {event.generation}"
            which = f"{where}, candidate {event.candidate}, attempt {event.attempt}"
            return f"Late ({event.status}), charged and not used: {which}."
        case Fired():
            return f"Rule {event.rule}: {event.evidence}."
        case Decided():
            return f"{title(event.grade, event.no_go)}: {event.evidence}."
        case Overridden():
            return f"Rule {event.rule} is overridden: {event.reason}"
        case Withdrawn():
            return f"Device {event.device} gets no more work: {event.why}."
        case _:  # said by the commands that write it, or by the next record
            return None


def _evaluation(run: Run, event: Settled) -> str:
    plan, accounts, pace = run.plan, run.state.accounts, run.pace
    done, planned = accounts.evaluations, plan.resolved.evaluations
    if event.panel is not None:
        done, planned = accounts.apart, plan.apart
    seed = "" if run.is_search and event.panel is None else f", seed {event.seed}"
    parts = [
        f"[{done:{len(str(planned))}d}/{planned}]",
        f"{'baseline' if plan.phase == 'calibration' else run.which(event)}{seed}",
        event.status if event.score is None else f"{event.status} {event.score:.5g}",
        f"in {precise_duration(event.seconds)}",
    ]
    if event.recovered and event.final:
        parts.append("recovered")
    if event.cause:
        parts.append(f"({event.cause})")
    if event.again:
        parts.append(f"to be retried: {event.again}")
    if pace.remaining_hours is not None:
        off = text.on_track(pace).removeprefix("on track")
        parts.append(f"{duration(3600 * pace.remaining_hours)} left{', ' * bool(off)}{off}")
    return "  ".join(parts)


def _generation(run: Run, event: GenerationTold) -> str:
    generation = run.state.generations[event.generation]
    scores, baseline = run.healthy(generation), run.baseline
    known = baseline is not None and generation.is_full
    against = f", baseline {baseline.mean:.5g}" if baseline is not None and known else ""
    short = "" if generation.is_full else ", short"
    restarted = f", restart {event.descent}" if event.descent else ""
    count = f"{event.generation + 1} of {run.plan.resolved.generations}"
    return (
        f"Generation {event.generation} ({count}){short}{restarted}: best {min(scores):.5g}, mean "
        f"{sum(scores) / len(scores):.5g}{against}, {len(generation.failed)} failed, "
        f"step size {event.sigma:.3g}."
    )
