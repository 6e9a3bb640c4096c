"""A run's records as lines for a person: one an evaluation, a short budget a generation."""

from budgets.events import (
    Again,
    Amended,
    Concluded,
    Decided,
    Event,
    Fired,
    GenerationAsked,
    GenerationTold,
    Guided,
    Late,
    Opened,
    Overridden,
    PanelAsked,
    Planned,
    Reserved,
    Salvaged,
    Settled,
    Withdrawn,
)
from budgets.liveness import label
from budgets.pace import pace
from budgets.report.markdown import spent
from budgets.report.model import balances
from budgets.report.pace_text import pace_line, track
from budgets.state import RunState
from budgets.verdict.findings import title
from budgets.words import duration, precise_duration

RETRIED: dict[Again, str] = {"elsewhere": "on another device", "lighter": "lighter"}


def is_lasting(event: Event) -> bool:
    """Whether it has a line worth keeping where a view shows what evaluations come to."""
    if isinstance(event, Settled):
        return event.score is None
    return not isinstance(event, Reserved)


def line_of(state: RunState, event: Event, *, brief: bool = False) -> str | None:
    """What a record says, `state` being as of it; None of one that says nothing new.

    In `brief` without what a view shows all the time: what is spent, and the pace.
    """
    match event:
        case Settled():
            return _evaluation(state, event)
        case GenerationTold():
            said, paid = _generation(state, event), spent(balances(state))
            return said if brief else f"{said}\n  Spent: {paid}.\n  {pace_line(pace(state))}"
        case PanelAsked():
            return _panel(state, event)
        case Opened():
            return _opened(state)
        case Late() | Fired() | Decided() | Overridden() | Withdrawn():
            return _rarer(event)
        case Amended() | Salvaged():  # by commands that say it themselves
            pass
        case Planned() | GenerationAsked() | Reserved() | Concluded():
            pass
    return None


def _rarer(event: Late | Fired | Decided | Overridden | Withdrawn) -> str:
    match event:
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


def _opened(state: RunState) -> str:
    done, planned = state.accounts.evaluations, state.plan.resolved.evaluations
    verb = "Starting" if len(state.opened) == 1 else "Resuming"
    return f"{verb} {state.plan.phase} {state.plan.run_id}: {done} of {planned} settled."


def _left(state: RunState) -> str:
    found = pace(state)
    if found.remaining_hours is None:
        return ""
    off = track(found).removeprefix("on track")
    return f"{duration(3600 * found.remaining_hours)} left{', ' * bool(off)}{off}"


def _evaluation(state: RunState, event: Settled) -> str:
    plan, accounts = state.plan, state.accounts
    done, planned = accounts.evaluations, plan.resolved.evaluations
    if event.panel is not None:
        done, planned = accounts.apart, plan.apart
    where = _where(state, event)
    result = f"{event.status} {event.score:.5g}" if event.score is not None else event.status
    how = f"  ({event.cause})" if event.cause else ""
    recovered = "  recovered" if event.recovered and event.final else ""
    again = f"  to be retried {RETRIED[event.again]}" if event.again else ""
    return (
        f"[{done:{len(str(planned))}d}/{planned}]  {where}  {result}  in "
        f"{precise_duration(event.seconds)}{recovered}{how}{again}  {_left(state)}"
    )


def _batch(event: Late) -> str:
    where = "Generation" if event.panel is None else f"Panel {event.panel}"
    return f"{where} {event.generation}"


def _panel(state: RunState, event: PanelAsked) -> str:
    count = sum(map(len, event.seeds))
    if event.panel == "proxy":
        return (
            f"Generation {event.number} short as well, to see if both agree: {count} evaluations."
        )
    names = ", ".join(arm.name for arm in event.arms)
    where = ", on workers that would be idle" if event.panel == "reference" else ""
    if event.panel == "rung" and (rung := state.plan.confirmation and state.plan.confirmation.rung):
        where = f", with {rung.varied.label}"
    return f"On fresh seeds{where}: {names} ({count} evaluations)."


def _where(state: RunState, event: Settled) -> str:
    """Which evaluation it was, as wide as every other of the run."""
    if event.panel is not None:
        arms = state.panels[event.panel, event.generation].arms
        return f"{event.panel}  {arms[event.candidate].name}  seed {event.seed:10d}"
    if state.plan.search is not None or state.plan.proxy is not None:
        return f"generation {event.generation}  candidate {event.candidate:2d}"
    generation = state.generations[event.generation]
    labels = [label(state.plan, generation, c) for c in range(len(generation.points))]
    width = max(map(len, labels))
    return f"{labels[event.candidate]:{width}s}  seed {event.seed:10d}"


def _generation(state: RunState, event: GenerationTold) -> str:
    generation = state.generations[event.generation]
    healthy = generation.healthy
    mean, best = sum(healthy) / len(healthy), min(healthy)
    calibration = state.plan.calibration
    baseline = calibration.mean_score if calibration else None
    against = "" if baseline is None or not generation.is_full else f", baseline {baseline:.5g}"
    short = "" if generation.is_full else ", short"
    anew = f", descent {event.descent}" if event.descent else ""
    count = f"{event.generation + 1} of {state.plan.resolved.generations}"
    return (
        f"Generation {event.generation} ({count}){short}{anew}: "
        f"best {best:.5g}, mean {mean:.5g}{against}, {len(generation.failed)} failed, "
        f"step size {event.sigma:.3g}{_by_the_model(event.guided)}."
    )


def _by_the_model(guided: Guided | None) -> str:
    """Whether noise hides what the generation's candidates differ in, by the search's model."""
    return "" if guided is None or guided.sigma is None else " (held: noise hides the differences)"
