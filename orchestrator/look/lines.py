"""A record of a run as a line for a person; of a generation with what is spent and the pace."""

from budgets.events import (
    Decided,
    Event,
    Fired,
    GenerationTold,
    Guided,
    Late,
    Opened,
    Overridden,
    PanelAsked,
    Reserved,
    Settled,
    Withdrawn,
)
from budgets.liveness import label
from budgets.verdict.findings import title
from budgets.words import duration, precise_duration
from orchestrator.look import text
from orchestrator.look.run import Run, comparison_name

RETRIED = {"elsewhere": "on another device", "lighter": "lighter"}


def is_lasting(event: Event) -> bool:
    """Whether its line is worth keeping above a picture that counts evaluations itself."""
    if isinstance(event, Settled):
        return event.score is None
    return not isinstance(event, Reserved)


def line_of(  # noqa: PLR0911 - a kind of record each
    run: Run, event: Event, *, brief: bool = False
) -> str | None:
    """What a record says, the run being as of it; None of one that says nothing new.

    In `brief` without what a picture shows all the time: what is spent, and the pace.
    """
    match event:
        case Settled():
            return _evaluation(run, event)
        case GenerationTold():
            said = _generation(run, event)
            if brief:
                return said
            return f"{said}\n  Spent: {text.spent(run)}.\n  {text.pace_line(run.pace, run.now)}"
        case PanelAsked():
            return _comparison(run, event)
        case Opened():
            return _opened(run)
        case Late():
            return (
                f"{_batch(event)}, candidate {event.candidate}, attempt {event.attempt} came "
                f"late ({event.status}): charged, and not used by the search."
            )
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


def _opened(run: Run) -> str:
    done, planned = run.state.accounts.evaluations, run.plan.resolved.evaluations
    verb = "Starting" if len(run.state.opened) == 1 else "Resuming"
    return f"{verb} {run.plan.phase} {run.plan.run_id}: {done} of {planned} settled."


def _evaluation(run: Run, event: Settled) -> str:
    plan, accounts = run.plan, run.state.accounts
    done, planned = accounts.evaluations, plan.resolved.evaluations
    if event.panel is not None:
        done, planned = accounts.apart, plan.apart
    result = f"{event.status} {event.score:.5g}" if event.score is not None else event.status
    how = f"  ({event.cause})" if event.cause else ""
    recovered = "  recovered" if event.recovered and event.final else ""
    again = f"  to be retried {RETRIED[event.again]}" if event.again else ""
    return (
        f"[{done:{len(str(planned))}d}/{planned}]  {_where(run, event)}  {result}  in "
        f"{precise_duration(event.seconds)}{recovered}{how}{again}  {_left(run)}"
    )


def _where(run: Run, event: Settled) -> str:
    """Which evaluation it was, as wide as every other of the run."""
    if event.panel is not None:
        arms = run.state.panels[event.panel, event.generation].arms
        name = comparison_name(event.panel)
        return f"{name}  {arms[event.candidate].name}  seed {event.seed:10d}"
    if run.is_search or run.plan.proxy is not None:
        return f"generation {event.generation}  candidate {event.candidate:2d}"
    generation = run.state.generations[event.generation]
    labels = [label(run.plan, generation, place) for place in range(len(generation.points))]
    return f"{labels[event.candidate]:{max(map(len, labels))}s}  seed {event.seed:10d}"


def _left(run: Run) -> str:
    found = run.pace
    if found.remaining_hours is None:
        return ""
    off = text.on_track(found).removeprefix("on track")
    return f"{duration(3600 * found.remaining_hours)} left{', ' * bool(off)}{off}"


def _batch(event: Late) -> str:
    where = "Generation" if event.panel is None else f"Comparison {comparison_name(event.panel)}"
    return f"{where} {event.generation}"


def _comparison(run: Run, event: PanelAsked) -> str:
    count = sum(map(len, event.seeds))
    if event.panel == "proxy":
        return (
            f"Generation {event.number} short as well, to see if both agree: {count} evaluations."
        )
    names = ", ".join(arm.name for arm in event.arms)
    where = ", on workers that would be idle" if event.panel == "reference" else ""
    confirmation = run.plan.confirmation
    if event.panel == "rung" and confirmation is not None and confirmation.rung is not None:
        where = f", with {confirmation.rung.varied.label}"
    return f"On fresh seeds{where}: {names} ({count} evaluations)."


def _generation(run: Run, event: GenerationTold) -> str:
    generation = run.state.generations[event.generation]
    scores, baseline = run.healthy(generation), run.baseline
    known = baseline is not None and generation.is_full
    against = f", baseline {baseline.mean:.5g}" if baseline is not None and known else ""
    short = "" if generation.is_full else ", short"
    anew = f", descent {event.descent}" if event.descent else ""
    count = f"{event.generation + 1} of {run.plan.resolved.generations}"
    return (
        f"Generation {event.generation} ({count}){short}{anew}: best {min(scores):.5g}, mean "
        f"{sum(scores) / len(scores):.5g}{against}, {len(generation.failed)} failed, "
        f"step size {event.sigma:.3g}{_by_the_model(event.guided)}."
    )


def _by_the_model(guided: Guided | None) -> str:
    """Whether noise hides what the generation's candidates differ in, by the search's model."""
    return "" if guided is None or guided.sigma is None else " (held: noise hides the differences)"
