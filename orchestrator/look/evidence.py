"""What a search, a check of knobs and a check of short evaluations have measured, as blocks."""

from collections.abc import Iterator

from budgets.formatting import counted, number, percent, plain
from budgets.liveness import MOST_SEEDS, EndEffect, KnobFinding, Liveness
from budgets.proxy import LEAST_CANDIDATES, Certificate
from budgets.stats import Gain, better, sd_interval
from budgets.verdict import IN_WORDS, Finalist, Findings, beating, unbeaten
from orchestrator.look.blocks import Block, Heading, Items, Table, Text, yes_or_no

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


def gain_lines(found: Findings) -> Iterator[str]:
    """Every gain with its interval, what could have been seen, and what chance would show."""
    if found.gain is None:
        yield _nothing_compared(found)
    else:
        yield f"The search's winner over the baseline: {gain_in_words(found.gain)}."
        yield from _detectable_line(found.gain, found.asked)
    if found.rung is not None:
        yield f"The same with {plain(found.rung_label or '')}: {gain_in_words(found.rung)}."
    if found.incumbent is not None:
        yield incumbent_line(found.incumbent)
    if found.over_incumbent is not None and found.over_incumbent.mean is not None:
        yield f"This search's winner over that one: {gain_in_words(found.over_incumbent)}."
    if by_chance := chance_line(found):
        yield by_chance
    if found.gain is not None:
        yield (
            "A gain is a share of the other's score, on seeds that both have. The true one is "
            "above the lower end of its interval, and below the upper, each with "
            f"{percent(1 - found.gain.level)} confidence."
        )


def _nothing_compared(found: Findings) -> str:
    if found.grade is not None:
        return "No finalist has a score on fresh seeds: nothing was compared with the baseline."
    if found.finalists:
        return "The winner has not been compared with the baseline on fresh seeds yet."
    return "Nothing has been compared with the baseline on fresh seeds yet."


def _detectable_line(gain: Gain, asked: float) -> Iterator[str]:
    """The detectable gain and, as it rests on few pairs, how well it is known itself."""
    if gain.detectable is None or gain.sd is None:
        return
    if gain.sd == 0:
        yield f"The pairs do not differ, so any gain would show. A Go asks for {percent(asked)}."
        return
    low, high = (gain.detectable * sd / gain.sd for sd in sd_interval(gain.sd, gain.pairs))
    yield (
        f"Detectable gain at 80 % power on {gain.pairs} pairs with this noise: "
        f"{gain.detectable:.2%} (95%: {low:.2%} to {high:.2%}). A Go asks for {percent(asked)}."
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


def verdict_tables(found: Findings) -> Iterator[Block]:
    """What a Go needs, which finalists were compared, and the controls."""
    if found.conditions:
        conditions = (("long run, to persist" if one.rule == "rung" else one.rule, one)
                      for one in found.conditions)  # fmt: skip
        yield Table(
            "What a Go needs, and what was observed",
            ["a Go needs", "met", "observed"],
            [(name, yes_or_no(one.met), plain(one.evidence)) for name, one in conditions],
        )
    if found.finalists:
        yield Table(
            "Finalists that were compared",
            ["finalist", "what it is", ">gain on the picking seeds", "goes on"],
            list(map(_finalist, found.finalists)),
        )
    if found.controls:
        rows = [(plain(one.name), gain_in_words(one.gain), _over(one.winner_gain))
                for one in found.controls]  # fmt: skip
        columns = ["control", "its gain over the baseline", "the winner's gain over it"]
        yield Table("Controls: with something switched off, at the baseline's knobs", columns, rows)
    for one in beating(found):
        sure = percent(1 - one.winner_gain.level)
        yield Text(f"The winner is worse than {plain(one.name)}, with {sure} confidence.")
    unsure = [plain(one.name) for one in unbeaten(found) if not one.winner_gain.is_loss]
    if unsure:  # the gain may only repair what was switched off there
        yield Text(
            f"The winner is not shown to be better than {', '.join(unsure)}: what was tuned is not "
            "shown to be worth having."
        )


def _over(gain: Gain) -> str:
    return "-" if gain.mean is None else gain_in_words(gain)


def _finalist(one: Finalist) -> tuple[str, ...]:
    mean = "-" if one.gain.mean is None else f"{one.gain.mean:+.2%}"
    seen = f"{mean} ({counted(one.gain.pairs, 'seed')})"
    what = IN_WORDS.get(one.name.split()[0], "")
    return plain(one.name), what, seen, "yes" if one.is_winner else ""


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
            ">tau-b": "-" if own.tau is None else f"{own.tau:.2f}",
            "interval": "-" if own.lower is None else f"{own.lower:.2f} to {own.upper:.2f}",
            "agree": yes_or_no(own.holds),
            ">top half": half,
            ">top quarter": quarter,
            ">mean error": number(own.error, 3),
            ">healthy": f"{own.healthy} of {own.candidates}",
            ">time": time,
        }
        caption = "Short and full evaluations of the same candidates"
        yield Table(caption, list(cells), [list(cells.values())])
