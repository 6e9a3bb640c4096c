"""Runs side by side as sections: what of each can be compared, found, spent and recommended."""

from collections.abc import Iterator, Sequence

from budgets.blocks import Heading, Items, Table, Text
from budgets.plain import plain
from budgets.report.markdown import amount
from budgets.report.model import Balance
from budgets.statistics.comparison import Gain, better
from budgets.words import listed, number, percent, precise_duration
from objectives.settings import cut
from orchestrator.compare.model import Compared, Fact, Part, Side
from orchestrator.compare.plots import plots
from orchestrator.report.contents.blocks import Block, Figure, Lead, Section

PARTS: dict[Part, str] = {
    "objective": "objective",
    "data": "data",
    "space": "knob's range",
    "search": "search",
    "budget": "budget",
    "machine": "where it ran",
}

TIMES = ("device-hours", "hours open")
"""Currencies that are said as time: of hours a short run has too few."""

LONGEST_SAME = 40
"""Characters of a value that all have."""

MOST_NAMED = 3


def lead(compared: Compared) -> Lead:
    """How the page begins: whether scores can be compared, and what was found."""
    own = compared.scores
    if own.are_comparable:
        heading = "These scores can be compared"
    elif len(own.groups) < len(compared.runs):
        heading = "Only some of these scores can be compared"
    else:
        heading = "These scores cannot be compared"
    return Lead(
        name=" · ".join(run.name for run in compared.runs),
        about=f"{len(compared.runs)} runs side by side",
        heading=heading,
        sentence=_found(compared.runs),
        mood="open" if own.are_comparable else "trouble",
    )


def _found(runs: Sequence[Side]) -> str:
    """Which runs gained anything, each over its own baseline."""
    shown = [(run, run.gain) for run in runs if run.gain is not None and run.gain.is_shown]
    if not shown:
        compared = sum(run.gain is not None for run in runs)
        why = "" if compared else ": nothing was compared on them yet"
        return f"None of these runs shows a gain on fresh seeds{why}."
    shown.sort(key=lambda pair: -(pair[1].mean or 0.0))
    named = (
        f"{run.name} {better(own.mean or 0.0)} (at least {percent(own.lower or 0.0, 3)})"
        for run, own in shown
    )
    return (
        "More than chance, each over its own baseline on fresh seeds: "
        f"{listed(named, MOST_NAMED + 1)}."
    )


def sections(compared: Compared, *, has_plots: bool = True) -> list[Section]:
    """All of them; without plots for a terminal."""
    runs = compared.runs
    drawn = {plot.name: [Figure(plot)] for plot in plots(compared)} if has_plots else {}
    gains, knobs = drawn.get("gains", []), drawn.get("knobs", [])
    return [
        Section("scores", "Can the scores be compared?", list(_scores(compared))),
        Section("runs", "What each run found", [_runs(runs), *gains, _places(runs)]),
        *_duel_section(compared),
        Section("cost", "What each run cost", list(_cost(runs))),
        *([Section("progress", "How each search went", drawn["progress"])]
          if "progress" in drawn else []),
        Section("differences", "What was asked for", list(_differences(compared))),
        Section("knobs", "What each run recommends", [*knobs, *_knobs(runs)]),
    ]  # fmt: skip


def _scores(compared: Compared) -> Iterator[Block]:
    own = compared.scores
    if own.are_comparable:
        yield Text(
            "Yes: the fingerprint of the objective is the same in all runs, and with it everything "
            "that decides a score."
        )
    else:
        no = "No" if len(own.groups) == len(compared.runs) else "Not all of them"
        yield Text(
            f"**{no}.** Scores are of one measure only where the fingerprint of the objective is "
            "the same: of its settings, its space, its data and its code. A gain is relative to "
            "the run's own baseline, and of that measure too."
        )
        yield Items([f"What differs: {plain(why)}." for why in own.why_not])
        yield Table(
            "Runs whose scores can be compared with each other",
            ["group", "runs", "objective", "fingerprint"],
            [
                [str(number), *_group([compared.runs[place] for place in group])]
                for number, group in enumerate(own.groups, 1)
            ],
        )
    if own.mind:
        yield Items([f"Mind that {plain(what)}." for what in own.mind])


def _group(runs: Sequence[Side]) -> list[str]:
    listed = ", ".join(plain(run.name) for run in runs)
    return [listed, plain(runs[0].identity.objective), f"`{runs[0].fingerprint[:12]}`"]


def _runs(runs: Sequence[Side]) -> Table:
    numbers = [">baseline", ">noise (sd)", ">gain", ">interval", ">seeds"]
    columns = ["run", "what", "verdict", *numbers]
    levels = _levels(runs)
    missed = f"; each end of an interval is missed with a probability of {levels}" if levels else ""
    return Table(
        f"Gains are over the run's own baseline on fresh seeds{missed}",
        columns,
        [_run(run) for run in runs],
    )


def _places(runs: Sequence[Side]) -> Table:
    return Table(
        "How evaluations ended, and where each run lies",
        ["run", "evaluations by status", "directory"],
        [[plain(run.name), _statuses(run), plain(run.directory)] for run in runs],
    )


def _statuses(run: Side) -> str:
    counts = (f"{count} {plain(status)}" for status, count in run.statuses.items())
    return ", ".join(counts) or "none settled"


def _levels(runs: Sequence[Side]) -> str:
    levels = sorted({run.gain.level for run in runs if run.gain is not None})
    return " or ".join(map(percent, levels))


def _run(run: Side) -> list[str]:
    own = run.identity
    what = own.phase if own.tier is None else f"{own.phase}, {own.tier}"
    return [
        plain(run.name),
        what,
        plain(run.answer.title),
        number(run.baseline),
        number(run.sd, 4),
        *_gain(run.gain),
    ]


def _gain(own: Gain | None) -> tuple[str, str, str]:
    if own is None or own.mean is None:
        return "-", "-", "-" if own is None else str(own.pairs)
    sure = "-"
    if own.lower is not None and own.upper is not None:
        sure = f"{100 * own.lower:+.2f} to {100 * own.upper:+.2f}%"
    return f"{100 * own.mean:+.2f}%", sure, str(own.pairs)


def _duel_section(compared: Compared) -> Iterator[Section]:
    if not compared.duels:
        return
    rows = []
    for duel in compared.duels:
        one, other = compared.runs[duel.run], compared.runs[duel.against]
        shown = "above chance" if duel.gain.is_shown else _other_way(duel.gain)
        rows.append([plain(one.name), plain(other.name), *_gain(duel.gain), shown])
    yield Section(
        "duels",
        "Winner against winner",
        [
            Table(
                "The winner of the one over the winner of the other, on fresh seeds that both were "
                "evaluated on",
                ["winner of", "over that of", ">gain", ">interval", ">seeds", "is it chance"],
                rows,
            ),
            *_many(len(rows)),
        ],
    )  # fmt: skip


def _other_way(own: Gain) -> str:
    return "worse, above chance" if own.is_loss else "may be chance"


def _many(count: int) -> Iterator[Block]:
    if count > 1:
        yield Text(
            f"Each interval is of one comparison: of {count} some may look like more than chance "
            "by chance."
        )


def _cost(runs: Sequence[Side]) -> Iterator[Block]:
    currencies = {
        balance.currency: balance.label
        for run in runs
        for balance in run.balances
        if balance.counts
    }
    titles = [*currencies.values(), "estimated time", "actual time", "time accuracy"]
    yield Table(
        "Spent, and of how much; time accuracy is estimated / actual, good from 85 to 115%",
        ["run", *(f">{title}" for title in titles)],
        [[plain(run.name), *(_spent(run, name) for name in currencies), *_timing(run)]
         for run in runs],
    )  # fmt: skip


def _spent(run: Side, currency: str) -> str:
    own = next((b for b in run.balances if b.currency == currency and b.counts), None)
    if own is None:
        return "-"
    cap = "" if own.cap is None else f" of {_amount(own, own.cap)}"
    return f"{_amount(own, own.spent)}{cap}"


def _amount(own: Balance, value: float) -> str:
    return precise_duration(3600 * value) if own.currency in TIMES else amount(own, value)


def _timing(run: Side) -> tuple[str, str, str]:
    own = run.timing
    if own is None:
        return "-", "-", "-"
    hours = (own.estimated_hours, own.actual_hours)
    estimated, actual = (precise_duration(3600 * each) for each in hours)
    return estimated, actual, f"{own.accuracy:.0f}%"


def _differences(compared: Compared) -> Iterator[Block]:
    differences = compared.differences
    if differences:
        yield Table(
            "What differs; -: not on record, or not there",
            ["of", "what", *(plain(run.name) for run in compared.runs)],
            [_fact(fact) for fact in differences],
        )
    same = [fact for fact in compared.facts if not fact.differs]
    if same:
        yield Heading("The same in all of them")
        yield Items(list(_same(same)))


def _fact(fact: Fact) -> list[str]:
    values = (("-" if value is None else plain(value)) for value in fact.values)
    return [PARTS[fact.part], plain(fact.name), *values]


def _same(facts: Sequence[Fact]) -> Iterator[str]:
    """`objective: dimension 10, noise 0.005`: what is long is cut."""
    for part, title in PARTS.items():
        own = [fact for fact in facts if fact.part == part]
        if own:
            said = ", ".join(plain(one.name) if part == "space" else _same_fact(one) for one in own)
            yield f"**{title}**: {'range and baseline of ' * (part == 'space')}{said}"


def _same_fact(fact: Fact) -> str:
    return plain(f"{fact.name} {cut(fact.values[0] or '', LONGEST_SAME)}")


def _knobs(runs: Sequence[Side]) -> Iterator[Block]:
    own = [run for run in runs if run.recommends]
    if not own:
        yield Text("None of these runs recommends anything: the baselines stay.")
        return
    rows = dict.fromkeys(knob.name for run in own for knob in run.knobs)
    yield Table(
        "The value that each run recommends, and its place in the knob's range from 0 to 100%",
        ["knob", *(f">{plain(run.name)}" for run in own)],
        [[plain(name), *(_knob(run, name) for run in own)] for name in rows],
    )
    none = [run.name for run in runs if run not in own]
    if none:
        yield Text(f"Nothing is recommended by {plain(', '.join(none))}.")


def _knob(run: Side, name: str) -> str:
    own = next((knob for knob in run.knobs if knob.name == name), None)
    if own is None:
        return "not searched"
    if own.recommended is None or own.recommended_unit is None:
        return "-"
    return f"{number(own.recommended, 4)} ({own.recommended_unit:.0%})"
