"""What a search, a check of knobs and a check of short evaluations have measured, as blocks."""

from collections.abc import Iterator, Sequence

from budgets.formatting import counted, number, percent, plain
from budgets.liveness import MOST_SEEDS, EndEffect, KnobFinding, Liveness
from budgets.proxy import LEAST_CANDIDATES, Certificate
from budgets.state import RunState
from budgets.stats import Gain, better, sd_interval
from budgets.verdict import Findings
from orchestrator.look.blocks import Block, Heading, Items, Table, Text, table_of
from orchestrator.look.rows import NamedGain
from orchestrator.look.words import condition

# A search that is compared with the baseline


def gain_in_words(gain: Gain) -> str:
    """`+1.59% (+0.42% to +2.76%, 8 seeds)`."""
    seeds = counted(gain.pairs, "seed")
    if gain.mean is None:
        return f"not measurable ({seeds})"
    ends = ""
    if gain.lower is not None and gain.upper is not None:
        ends = f"{gain.lower:+.2%} to {gain.upper:+.2%}, "
    return f"{gain.mean:+.2%} ({ends}{seeds})"


def gains_table(gains: Sequence[NamedGain]) -> list[Table]:
    """Every gain on fresh seeds, the one that decides first."""
    rows = []
    for own in gains:
        low, high = own.gain.lower, own.gain.upper
        name = f"**{plain(own.name)}**" if own.is_decisive else plain(own.name)
        cells = {">gain": "-" if own.gain.mean is None else f"{own.gain.mean:+.2%}"}
        ends = "-" if low is None or high is None else f"{low:+.2%} to {high:+.2%}"
        cells |= {">interval": ends, ">seeds": str(own.gain.pairs)}
        rows.append({"of": name, "over": plain(own.against), **cells})
    sure = percent(1 - gains[0].gain.level) if gains else ""
    return table_of(f"Gains on seeds that both have; each end with {sure} confidence", rows)


def seen_line(found: Findings) -> str:
    """What could have been seen on fresh seeds; empty where too few pairs say it.

    The detectable gain rests on few pairs: how well it is known is said with it.
    """
    gain = found.gain
    if gain is None:
        if found.grade is not None:
            return "No finalist has a score on fresh seeds: nothing was compared with the baseline."
        what = "The winner has not" if found.finalists else "Nothing has"
        return f"{what} been compared with the baseline on fresh seeds yet."
    if gain.detectable is None or gain.sd is None:
        return ""
    asked = f"A Go asks for {percent(found.asked)}."
    if gain.sd == 0:
        return f"The pairs do not differ, so any gain would show. {asked}"
    low, high = (gain.detectable * sd / gain.sd for sd in sd_interval(gain.sd, gain.pairs))
    return (
        f"Detectable gain at 80 % power on {gain.pairs} pairs with this noise: "
        f"{gain.detectable:.2%} (95%: {low:.2%} to {high:.2%}). {asked}"
    )


def incumbent_line(own: Gain) -> str:
    """Whether the winner of the run that a phase 2 follows is better than the baseline here."""
    survives = "survives" if own.is_shown else "does not survive"
    return f"The winner of phase 1 {survives}: {gain_in_words(own)} over the baseline."


def chance_line(found: Findings) -> str:
    """What the best score of the search is worth as evidence; empty where there is none."""
    if found.seemed is None:
        return ""
    noise = "what noise alone would show is not known, for it was not measured"
    if found.luck is not None:
        noise = f"by noise alone the best of as many baselines would seem {better(found.luck)}"
    return (
        f"The best score of the search seemed {better(found.seemed)} than the baseline; {noise}. "
        "A best score is no evidence."
    )


def conditions_table(state: RunState, found: Findings) -> list[Table]:
    """What a Go needs."""
    rows = (
        {
            "a Go needs": "long run, to persist" if one.rule == "rung" else one.rule,
            "met": "yes" if one.met else "**no**",
            "observed": plain(condition(state, one)),
        }
        for one in found.conditions
    )
    return table_of("What a Go needs, and what was observed", rows)


# A check of knobs


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


def check_blocks(found: Liveness | None) -> Iterator[Block]:
    """What each knob does to the score; `found` is None before the baseline is measured."""
    yield Heading("Knobs")
    if found is None:
        yield Text(check_sentence(found))
        return
    unit = f"units of the noise, sd {found.noise:.4g}" if found.noise else "the score's unit"
    yield Text(
        f"The {found.centre} scores {found.baseline:.5g} over {found.seeds} seeds; lower is better."
        f" Each knob was moved alone, down and up, on the same seeds. Effects are in {unit}; t is "
        f"an effect in standard errors, and beyond {found.t_limit:.1f} it moves the score."
    )
    columns = ["knob", "verdict", ">low", ">t", ">high", ">t", "better end"]
    rows = [_knob(one, found.centre) for one in found.knobs]
    yield Table("What each knob does to the score", columns, rows)
    notes = [_more_seeds(one) for one in found.knobs if one.verdict == "unproven"]
    if found.pending:
        notes.append(f"Not evaluated to the end: {', '.join(found.pending)}.")
    if notes:
        yield Items(notes)


def _knob(finding: KnobFinding, centre: str) -> list[str]:
    ends = {end.end: _end(end) for end in finding.ends}
    cells = [cell for name in ("low", "high") for cell in ends.get(name, [centre, ""])]
    return [finding.knob, finding.verdict, *cells, finding.better or ""]


def _end(end: EndEffect) -> list[str]:
    """The effect and its t; how its evaluations failed, where it has none."""
    if end.difference is None:
        failed = {status: n for status, n in end.statuses.items() if status != "ok"}
        return [", ".join(f"{n} {status}" for status, n in failed.items()), ""]
    size = end.difference if end.in_noise is None else end.in_noise
    is_exact = end.t is None or abs(end.t) >= 1e6  # beyond it, the spread is rounding
    return [f"{size:+.3g}", "exact" if is_exact else f"{end.t:+.1f}"]


def _more_seeds(one: KnobFinding) -> str:
    needed = one.seeds_needed
    more = f"over {MOST_SEEDS} seeds" if needed is None else f"--seeds {needed}"
    return f"Unproven: {one.knob}. An effect as large as seen would take {more} to show."


# A check of short evaluations


def proxy_sentence(label: str, own: Certificate | None) -> str:
    """Whether the short evaluation of that label may stand in for the full one."""
    if own is None:
        return f"{label}: nothing was compared."
    verdict = "good enough to stand in for" if own.holds else "not good enough to stand in for"
    tau = "none: one of the two tells no candidates apart"
    if own.tau is not None and own.lower is not None and own.upper is not None:
        sure = f"{own.lower:.2f} to {own.upper:.2f} with {1 - own.level:.0%} confidence"
        tau = f"{own.tau:.2f}, {sure}"
    return (
        f"{label} is {verdict} the full evaluation: over {own.compared} candidates on the same "
        f"seeds Kendall's tau-b is {tau} (asked of the lower bound: {own.asked:g}, over "
        f"{LEAST_CANDIDATES} or more)."
    )


def proxy_blocks(label: str, own: Certificate | None) -> Iterator[Block]:
    """What was compared, and how far it agrees."""
    yield Heading("Short evaluations")
    yield Text(
        f"{label}, a run of its own with its own schedule, beside the full evaluation of the same "
        "candidates on the same seeds. Scores of the two are never ranked together."
    )
    if own is not None:
        shares = (own.top_half, own.top_quarter, own.seconds_ratio)
        half, quarter, time = ("-" if share is None else f"{share:.0%}" for share in shares)
        cells = {
            ">top half": half,
            ">top quarter": quarter,
            ">mean error": number(own.error, 3),
            ">healthy": f"{own.healthy} of {own.candidates}",
            ">time": time,
        }
        caption = "Short and full evaluations of the same candidates"
        yield from table_of(caption, [cells])
