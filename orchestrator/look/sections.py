"""A run as sections of blocks: the same for a terminal, Markdown and HTML.

A section with nothing to show is left out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from budgets.formatting import better_when, command, number, one_line, percent, plain, sentence_case
from budgets.measurements import CampaignReport, EndEffect, Liveness
from orchestrator.look import text
from orchestrator.look.answer import answer, beginning, named
from orchestrator.look.attempt_files import measured_in
from orchestrator.look.json_documents import flat
from orchestrator.look.page import Block, Page, Section, commands, items, table
from orchestrator.look.plots import Drawing, drawings
from orchestrator.look.run import Run
from orchestrator.plan.phase2 import beginning as begins_with

Figures = Mapping[str, Drawing]  # by name


def page_of(run: Run, *, with_plots: bool = True) -> Page:
    """Return everything there is to show of a run; its plots take seconds."""
    drawn = drawings(run) if with_plots else {}
    found = (Section(title, list(write(run, drawn))) for title, write in SECTIONS.items())
    return Page(run.plan.run_id, about(run), answer(run), [one for one in found if one.blocks])


def about(run: Run) -> str:
    """Return which run it is, and as of which record."""
    tier = "" if run.plan.tier is None else f", tier {run.plan.tier}"
    as_of = f"as of {run.last:%Y-%m-%d %H:%M} UTC, record {run.state.records}"
    return f"{run.plan.objective.name}, {run.plan.phase}{tier}, {as_of}"


def _shown(figures: Figures, *names: str) -> list[Block]:
    return [figures[name] for name in names if name in figures]


def _folded(title: str, blocks: Sequence[Block]) -> list[Block]:
    return [Section(title, blocks)] if blocks else []


# The verdict and the scores


def _verdict(run: Run, figures: Figures) -> Iterator[Block]:
    if follows := begins_with(run.plan):
        yield plain(follows)
    if run.campaign is not None:
        yield from _conditions(run, run.campaign)
    elif run.check is not None:
        yield from _check(run, run.check)
    yield from _gains(run)
    yield from _shown(figures, "gains", "effects")
    if run.findings is not None:
        rows = (
            {
                "a Go needs": one.rule.replace("_", " "),
                "met": "yes" if one.met else "no",
                "observed": plain(text.condition(one)),
            }
            for one in run.findings.conditions
        )
        yield from _folded("What a Go needs", table("", rows))


def _gains(run: Run) -> Iterator[Block]:
    rows = []
    for one in run.gains:
        gain = plain(text.interval(one.gain))
        gain = f"**{gain}**" if one.is_found else gain
        rows.append({"of": plain(one.name), "over": plain(one.against), ">gain": gain})
    sure = percent(1 - run.gains[0].gain.level) if rows else ""
    said = f"Gains on shared seeds; each end of an interval holds with {sure}; bold: beyond chance"
    yield from table(said, rows)


def _check(run: Run, found: Liveness) -> Iterator[Block]:
    unit = f"units of the noise, sd {found.noise:.4g}" if found.noise else "the score's unit"
    yield (
        f"The baseline scores {found.baseline:.5g} over {found.seeds} seeds; "
        f"{better_when(run.plan.direction)}. Each knob was moved alone, down and up, on the same "
        f"seeds. Effects are in {unit}."
    )
    rows = []
    for one in found.knobs:
        ends = {end.end: _end(end, found.noise or 1.0) for end in one.ends}
        moves = {f">{end}": ends.get(end, "baseline") for end in ("low", "high")}
        rows.append({"knob": one.knob, "verdict": one.verdict, **moves, "better": one.better or ""})
    yield from table("What each knob does to the score", rows)


def _end(end: EndEffect, unit: float) -> str:
    """Return an effect, or how its evaluations failed."""
    return _ended(end.statuses) if end.difference is None else f"{end.difference / unit:+.3g}"


def _ended(statuses: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {status}" for status, n in statuses.items())


def _conditions(run: Run, found: CampaignReport) -> Iterator[Block]:
    yield (
        f"{sentence_case(better_when(run.plan.direction))} (score); positive gains are better. "
        "Gains of factors are averages over the others, as shares of the first control's mean. "
        f"Of the gains beyond chance at most {run.plan.thresholds.alive_level:.0%} are chance."
    )
    rows = []
    for row in found.rows:
        own = {"condition": plain(row.name), "seeds": _ended(row.statuses)}
        rows.append(own | {">mean": number(row.mean), ">sd": number(row.sd, 3)})
    yield from table("Conditions", rows)


def _scores(run: Run, figures: Figures) -> Iterator[Block]:
    if not run.is_search:
        return
    yield f"{sentence_case(plain(measured_in(run.state)))}: {better_when(run.plan.direction)}."
    yield from _shown(figures, "scores")
    if scores := text.scores(run):
        yield f"{scores} A best score proves nothing: it is selected for its noise."


# The knobs, the evaluations and the plan


def knobs_table(run: Run, recommended: Mapping[str, float | None] | None = None) -> list[str]:
    """Return the knobs in their units: their ranges, the baseline and what is recommended.

    After a No-Go that is nothing, unless it is given.
    """
    values = recommended or {knob.name: knob.recommended for knob in run.knobs}
    rows = (
        {
            "knob": plain(knob.name),
            "scale": knob.kind,
            ">low": number(knob.low),
            ">high": number(knob.high),
            ">baseline": number(knob.baseline),
            ">recommended": number(values[knob.name], 6),
            ">moved": "-" if knob.moved is None else f"{knob.moved:+.0%}",
        }
        for knob in run.knobs
    )
    return table("Each knob, and how far it moved in its range", rows)


def _knobs(run: Run, figures: Figures) -> Iterator[Block]:
    if not run.is_search:
        return
    yield from knobs_table(run)
    yield from _shown(figures, "paths")
    own = _shown(figures, "marginals", "step_size", "correlations")
    yield from _folded("Scores over each knob, step size, and which knobs go together", own)


def _evaluations(run: Run, figures: Figures) -> Iterator[Block]:
    state, usage, said = run.state, run.usage, text.timing(run.pace)
    if total := sum(usage.values()):
        idle, wasted = usage["idle"] / total, usage["wasted"] / total
        said = f"Time of the slots: {idle:.0%} idle, {wasted:.0%} wasted. {said}"
    if said:
        yield said.rstrip()
    own = _shown(figures, "timeline", "device_time")
    yield from _folded("When the slots worked, and where device time went", own)
    yield from _shown(figures, "losses")
    rows = (
        {
            "cause": plain(kind.what),
            "whose": kind.whose,
            ">attempts": kind.attempts,
            "for example": plain(one_line(kind.example, 200)),
            "in": plain(kind.place),
        }
        for kind in run.failures
    )
    yield from table("Attempts that failed", rows)
    decided = [f"Rule {one}" for one in text.rules(state, state.fired)]
    decided += [f"Override of {one}" for one in text.rules(state, state.overridden)]
    decided += [f"Amendment: {text.amended(one)}" for one in state.amended]
    if decided:
        yield items(map(plain, decided))


def _provenance(run: Run, _: Figures) -> Iterator[Block]:
    yield (
        f"Head of the ledger `{run.state.head}`; fingerprint of the objective "
        f"`{run.plan.objective_fingerprint}`."
    )
    name = named(run)
    yield commands(command("verify", name), command("export", "table", name), *beginning(run))
    rows = (
        {"what": plain(name), "value": plain(said)}
        for name, said in facts(run).items()
        if not name.startswith("space.")
    )
    yield from _folded("What decides the scores, besides the knobs", table("", rows))


FACTS: Any = {  # parts of a plan
    **dict.fromkeys(("phase", "tier", "resolved", "objective", "evaluation_seed"), True),
    **dict.fromkeys(("provenance", "space"), True),
    "search": {"method", "seed", "sigma0"},
    "devices": {"name", "count", "threads"},
    "limits": {"wall_seconds"},
}


def facts(run: Run) -> dict[str, str]:
    """Return what decides the scores and the search, by dotted names, without secrets."""
    source, opened = run.plan.source, run.state.opened
    known = run.plan.model_dump(mode="json", include=FACTS) | {
        "follows": source and source.run_id,
        "versions": opened[-1].versions if opened else {},
    }
    return {
        name.replace("/", "."): said if isinstance(said, str) else f"{said:.15g}"
        for name, said in flat(known).items()
    }


SECTIONS: dict[str, Callable[[Run, Figures], Iterable[Block]]] = {
    "Verdict": _verdict,
    "Scores": _scores,
    "Knobs": _knobs,
    "Evaluations": _evaluations,
    "Provenance": _provenance,
}
