"""What a check found, for a person."""

from collections.abc import Iterator

from budgets.blocks import Block, Heading, Items, Table, Text
from budgets.liveness import MOST_SEEDS, EndEffect, KnobFinding, Liveness


def check_sentence(found: Liveness | None) -> str:
    """`3 of 4 knobs move the score; dead: x3.`"""
    if found is None:
        return "The baseline is not measured, so nothing can be compared with it."
    parts = {
        "dead": found.names("dead"),
        "unproven": found.names("unproven"),
        "unstable": found.unstable_ends,
    }
    named = "".join(f"; {what}: {', '.join(names)}" for what, names in parts.items() if names)
    where = " around the recommendation" if found.centre == "recommendation" else ""
    return f"{len(found.names('alive'))} of {len(found.knobs)} knobs move the score{where}{named}."


def check_blocks(found: Liveness | None) -> list[Block]:
    """The section on knobs; `found` is None before the baseline is measured."""
    if found is None:
        return [Heading("Knobs"), Text(check_sentence(found))]
    unit = f"units of the noise, sd {found.noise:.4g}" if found.noise else "the score's unit"
    basis = (
        f"The {found.centre} scores {found.baseline:.5g} over {found.seeds} seeds; lower is better."
        f" Each knob was moved alone, down and up, on the same seeds. Effects are in {unit}; t is "
        f"an effect in standard errors, and beyond {found.t_limit:.1f} it moves the score."
    )
    table = Table(
        "What each knob does to the score",
        ["knob", "verdict", ">low", ">t", ">high", ">t", "better end"],
        [_row(finding, found.centre) for finding in found.knobs],
    )
    notes = list(_notes(found))
    return [Heading("Knobs"), Text(basis), table, *([Items(notes)] if notes else [])]


def _row(finding: KnobFinding, centre: str) -> list[str]:
    ends = {end.end: _cells(end) for end in finding.ends}
    cells = [cell for name in ("low", "high") for cell in ends.get(name, [centre, ""])]
    return [finding.knob, finding.verdict, *cells, finding.better or ""]


def _cells(end: EndEffect) -> list[str]:
    """The effect and its t; how it failed, where it has none."""
    if end.difference is None:
        failed = {status: n for status, n in end.statuses.items() if status != "ok"}
        return [", ".join(f"{n} {status}" for status, n in failed.items()), ""]
    size = end.difference if end.in_noise is None else end.in_noise
    is_exact = end.t is None or abs(end.t) >= 1e6  # beyond it, the spread is rounding
    return [f"{size:+.3g}", "exact" if is_exact else f"{end.t:+.1f}"]


def _notes(found: Liveness) -> Iterator[str]:
    """How many seeds more it takes, what is still to come."""
    for one in found.knobs:
        if one.verdict == "unproven":
            needed = one.seeds_needed
            more = f"over {MOST_SEEDS} seeds" if needed is None else f"--seeds {needed}"
            yield f"Unproven: {one.knob}. An effect as large as seen would take {more} to show."
    if found.pending:
        yield f"Not evaluated to the end: {', '.join(found.pending)}."
