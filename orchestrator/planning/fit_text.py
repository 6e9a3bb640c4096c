"""What fits into a window, as text."""

from collections.abc import Sequence
from itertools import count

from budgets.formatting import duration, plain, sentence_case, table
from orchestrator.planning.fit import Choice, Room, best, too_short

COLUMNS = (">", "choice", "P x G x S", ">evaluations")


def to_markdown(found: Sequence[Choice], room: Room) -> str:
    """The choices side by side, ranked, and which one a run would take."""
    lines = [
        f"# What fits into {duration(3600 * room.hours)} ({room.text})",
        "",
        *table((*COLUMNS, ">takes", ">must be free", "fits"), map(_row, count(1), found)),
        "",
        *(_price(number, choice) for number, choice in enumerate(found, 1)),
        "",
        f"**{plain(_verdict(found, room))}**",
        "",
        "More must be free than a choice takes: the last evaluations' whole limits "
        "(evaluation.limit_seconds), so that none is begun that could end too late; the long "
        "run that follows a Go; and what nine in ten simulated runs stay within.",
    ]
    if any(choice.is_assumed for choice in found):
        lines += ["", "*assumed*: by a throughput that was not measured here, of which 0.7 counts."]
    return "\n".join(lines)


def _row(number: int, choice: Choice) -> tuple[object, ...]:
    shape, took = choice.plan.resolved, choice.forecast
    return (
        number,
        plain(choice.idea.what),
        shape.in_words,
        shape.evaluations,
        duration(3600 * took.hours_p50) + ", assumed" * choice.is_assumed,
        duration(3600 * took.hours_free),
        "yes" if choice.fits else "no",
    )


def _price(number: int, choice: Choice) -> str:
    said = "; ".join(choice.price()) or "what was asked for"
    return f"{number}. {plain(said)}."


def _verdict(found: Sequence[Choice], room: Room) -> str:
    chosen = best(found)
    if chosen is None:
        return f"{sentence_case(too_short(found, room))}."
    number = found.index(chosen) + 1
    said = f"Choice {number} fits: {chosen.idea.what}."
    unused = room.hours - chosen.forecast.hours_free
    if any(choice.idea.lever == "more" for choice in found):
        said += f" {duration(3600 * unused)} stay unused: more could be had, see below it."
    return f"{said} --out FILE writes it into a configuration; --choice N another one."
