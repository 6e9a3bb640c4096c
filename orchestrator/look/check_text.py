"""What a check found, for a person."""

from collections.abc import Iterator

from budgets.blocks import Block, Heading, Items, Table, Text
from budgets.liveness import MOST_SEEDS, Centre, EndEffect, KnobFinding, Liveness

_BAR = 16
"""Characters of the longest bar."""


def check_blocks(found: Liveness | None) -> list[Block]:
    """The section on knobs; `found` is None before the baseline is measured."""
    title = Heading("Knobs")
    if found is None:
        return [title, Text("The baseline is not measured yet.")]
    return [title, Text(_basis(found)), _table(found), Items(list(_advice(found)))]


def _basis(found: Liveness) -> str:
    whose = "the calibration's baseline"
    if found.noise_from == "check":
        whose = f"this check's own {found.centre}"
    unit = "Without noise, effects are in the score's own unit"
    if found.noise:
        unit = f"Effects are in units of the noise, sd {found.noise:.4g} over {whose} seeds"
    where = "goes to either end of its range"
    if found.centre == "recommendation":
        where = "goes a step down and a step up"
    return (
        f"The {found.centre} scores {found.baseline:.5g} over {found.seeds} seeds; lower is "
        f"better. Each knob {where}, all others at the {found.centre}, on the same seeds. "
        f"{unit}; t is an effect in standard errors. Beyond {found.t_limit:.1f} it "
        "counts as moving the score; of all that do, one in twenty at most is expected by chance."
    )


def _table(found: Liveness) -> Block:
    if not found.knobs:
        return Text("No knob has all its evaluations yet.")
    largest = max((f.size for f in found.knobs if f.size < float("inf")), default=0.0)
    better = "better end" if found.centre == "baseline" else "better side"
    return Table(
        "What each knob does to the score",
        ["knob", "verdict", ">low", ">t", ">high", ">t", better, "<effect"],
        [_row(finding, largest, found.centre) for finding in found.knobs],
    )


def _row(finding: KnobFinding, largest: float, centre: Centre) -> list[str]:
    cells = [finding.knob, finding.verdict]
    for name in ("low", "high"):
        end = next((end for end in finding.ends if end.end == name), None)
        cells += [centre, ""] if end is None else _cells(end)
    width = 0 if not largest else round(_BAR * min(finding.size / largest, 1.0))
    cells += [finding.better or "", "█" * width if finding.size < float("inf") else ""]
    return cells


def _cells(end: EndEffect) -> list[str]:
    """The effect and its t."""
    if end.difference is None:
        return [_failures(end), ""]
    size = end.difference if end.in_noise is None else end.in_noise
    shown = f"{size:+.3g}" if end.in_noise is None else f"{size:+.2f}"
    return [shown, _t(end)]


def _t(end: EndEffect) -> str:
    if end.t is None:
        return "∞" if end.difference else "0"
    return f"{end.t:+.1f}" if abs(end.t) < 1e6 else "∞"  # beyond it, the spread is rounding


def _failures(end: EndEffect) -> str:
    return ", ".join(f"{n} {status}" for status, n in end.statuses.items() if status != "ok")


def _advice(found: Liveness) -> Iterator[str]:
    """What it comes to and what to do about it, point by point."""
    if alive := found.names("alive"):
        yield f"Alive, {len(alive)} of {len(found.knobs)}: {', '.join(alive)}."
    if dead := found.names("dead"):
        same = "at both ends: a search wastes budget on them"
        if found.centre == "recommendation":
            same = "on both sides"
        yield f"Dead: {', '.join(dead)}. The score stays the same {same}."
    for finding in found.knobs:
        if finding.verdict == "unproven":
            yield _unproven(finding)
        for end in finding.ends:
            if failures := _failures(end):
                yield f"{finding.knob} fails at {end.end}: {failures} of {end.evaluations}."
    if found.pending:
        yield f"Not evaluated to the end: {', '.join(found.pending)}."


def _unproven(finding: KnobFinding) -> str:
    if finding.seeds_needed is None:
        more = f"even {MOST_SEEDS} seeds would not show it"
    else:
        more = f"--seeds {finding.seeds_needed} would show it"
    return f"Unproven: {finding.knob}. If its effect is as large as it looks here, {more}."
