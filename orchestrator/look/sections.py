"""A run as sections of blocks, the same for a terminal, Markdown and a page.

A terminal shows the first `ON_A_TERMINAL` of them. A section with nothing to show says why. What
few readers want is in `Details`, which a page shows folded.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import sqrt

from budgets.following import beginning as begins_with
from budgets.formatting import (
    command,
    counted,
    in_bytes,
    number,
    one_line,
    plain,
    precise_duration,
    sentence_case,
)
from budgets.verdict import IN_WORDS
from orchestrator.look import text
from orchestrator.look.blocks import (
    Block,
    Commands,
    Details,
    Figure,
    Heading,
    Items,
    Log,
    Section,
    Table,
    Text,
    ruler,
    table_of,
)
from orchestrator.look.campaign import campaign_blocks
from orchestrator.look.document import flat
from orchestrator.look.evidence import (
    check_blocks,
    conditions_table,
    gains_table,
    proxy_blocks,
    seen_line,
)
from orchestrator.look.files import log_end, measured_in
from orchestrator.look.next_step import beginning, named
from orchestrator.look.rows import Generation, Knob
from orchestrator.look.run import Run

ON_A_TERMINAL = 5

Figures = Mapping[str, Figure]


def sections(run: Run, figures: Iterable[Figure] = ()) -> tuple[Section, ...]:
    """Every section, with those figures where they belong."""
    drawn = {figure.name: figure for figure in figures}
    return tuple(Section(name, title, list(write(run, drawn))) for name, title, write in SECTIONS)


def summary(run: Run) -> tuple[Section, ...]:
    """What a terminal shows: the first sections, and of their details how a failure's log ends."""

    def is_shown(block: Block) -> bool:
        return not isinstance(block, Details) or isinstance(block.blocks[-1], Log)

    return tuple(
        Section(name, title, list(filter(is_shown, write(run, {}))))
        for name, title, write in SECTIONS[:ON_A_TERMINAL]
    )


def _shown(figures: Figures, *names: str) -> list[Figure]:
    return [figures[name] for name in names if name in figures]


def _folded(title: str, blocks: Sequence[Block]) -> list[Block]:
    """Those, if there are any, where a page folds them."""
    return [Details(title, blocks)] if blocks else []


# What was found


def _verdict(run: Run, figures: Figures) -> Iterator[Block]:
    if (follows := begins_with(run.plan)) is not None:
        yield Text(plain(follows))
    yield from _shown(figures, "effects")
    if run.campaign is not None:
        yield from campaign_blocks(run.campaign)
    elif run.plan.proxy is not None:
        yield from proxy_blocks(run.plan.proxy.variant.label, run.proxy)
    elif run.plan.phase == "check":
        yield from check_blocks(run.check)
    elif run.findings is not None:
        if seen := seen_line(run.findings):
            yield Text(seen)
        yield from gains_table(run.gains)
        yield from _shown(figures, "gains")
        yield from _folded("What a Go needs", conditions_table(run.findings))
    else:
        yield Text(
            "Nothing here is compared with the baseline on fresh seeds: there is no verdict."
        )


def _scores(run: Run, figures: Figures) -> Iterator[Block]:
    what, baseline = sentence_case(plain(measured_in(run.state))), run.baseline
    said = "No calibration says what the baseline scores, or how it varies."
    if baseline is not None:
        seeds = counted(len(baseline.scores), "seed")
        said = f"Baseline: {number(baseline.mean)}, the mean of {seeds}; standard deviation from "
        said += f"seed to seed {number(baseline.sd, 4)} (95%: {number(baseline.sd_low, 3)} to "
        said += f"{number(baseline.sd_high, 3)})."
    yield Text(f"{what}: lower is better. {said}")
    yield from _shown(figures, "scores")
    if run.is_search and run.generations:
        caption = "By chance: the best score to expect of as many candidates like the baseline"
        table = table_of(caption, map(_generation, run.generations))
        yield from _folded("Every generation", table)
    if run.best_so_far is not None and run.best_by_chance is not None:
        best, chance = number(run.best_so_far), number(run.best_by_chance)
        yield Text(f"Best score: {best}. By chance the best of as many baselines is near {chance}.")


def _generation(one: Generation) -> dict[str, object]:
    marks = "" if one.is_told else ", unfinished"
    scores = {"best": one.best, "mean": one.mean, "sd": one.sd, "best so far": one.best_so_far}
    scores |= {"best by chance": one.best_by_chance, "step size": one.step_size}
    return {
        ">generation": f"{one.number}{marks}",
        **{f">{name}": number(value) for name, value in scores.items()},
        ">healthy": one.healthy,
        ">failed": one.failed,
        ">median time": "-" if one.eval_seconds is None else precise_duration(one.eval_seconds),
    }


# What was spent


def _budget(run: Run, figures: Figures) -> Iterator[Block]:
    yield balances(run)
    said = [f"Evaluations: {text.statuses(run)}."]
    if run.slot_hours:
        idle, wasted = (hours / run.slot_hours for hours in (run.idle_hours, run.wasted_hours))
        said.append(f"Slots: {idle:.0%} of their time passed idle, {wasted:.0%} gave no score.")
    if (deadline := run.deadline) is not None:
        said.append(f"Deadline: evaluations are over by {deadline:%Y-%m-%d %H:%M:%S} UTC.")
    said.append(text.timing(run.timing))
    yield Items([plain(line) for line in filter(None, said)])
    own = _shown(figures, "timeline", "device_time")
    yield from _folded("When the slots worked, and where device time went", own)


def balances(run: Run) -> Table:
    """Each currency that counts: what is spent, set aside, left, and its cap."""
    columns = ("spent", "reserved", "free", "cap")
    return table_of(
        "Spent, reserved for what is in flight, and left",
        (
            {"currency": text.currency(own)}
            | {f">{name}": text.amount(own, getattr(own, name)) for name in columns}
            for own in run.balances
            if own.counts
        ),
    )[0]


# The knobs, and the search


def _knobs(run: Run, figures: Figures) -> Iterator[Block]:
    if not run.knobs:
        yield Text("This run's objective has no knobs.")
        return
    decided = run.state.decided
    if decided is not None and decided.grade == "no_go":
        yield Text("The baseline stays. What was compared with it, this shows:")
        yield Commands([command("best", named(run))])
    elif decided is not None:
        won = IN_WORDS.get(decided.configuration.split()[0], decided.configuration)
        yield Text(f"What won on fresh seeds: {plain(won)}.")
    elif any(knob.recommended is not None for knob in run.knobs):
        yield Text("Recommended, not compared yet: the mean of the search over its last third.")
    yield from table_of("Each knob in its range", map(_knob, run.knobs))
    yield from _shown(figures, "paths")
    yield from _folded("Each knob by the scores of the search", _shown(figures, "marginals"))


def _knob(knob: Knob) -> dict[str, object]:
    moved = "-"
    if knob.recommended_unit is not None:
        end = "" if knob.at_end is None else f", {knob.at_end} end"
        moved = f"{knob.recommended_unit - knob.baseline_unit:+.0%}{end}"
    return {
        "knob": plain(knob.name),
        "scale": knob.kind,
        ">low": number(knob.low),
        ">high": number(knob.high),
        ">baseline": number(knob.baseline),
        ">recommended": number(knob.recommended, 4),
        ">moved": moved,
        "place in its range": ruler(knob.baseline_unit, knob.recommended_unit),
    }


def _search(run: Run, figures: Figures) -> Iterator[Block]:
    history, why = run.landscapes
    if not history:
        yield Text(f"{sentence_case(plain(why)).rstrip('.')}.")
        return
    last, limit = history[-1], sqrt(run.landscape_by_chance[1])
    yield Text(
        f"After generation {run.state.completed[-1].number} the step size is {last.sigma:.3g} and "
        f"the axis ratio, of the longest axis to the shortest, {sqrt(last.condition):.3g} (above "
        f"{limit:.3g} in 1 of 20 searches on noise)."
    )
    own = _shown(figures, "step_size", "correlations")
    yield from _folded("Step size, and which knobs go together", own)


def _evaluations(run: Run, figures: Figures) -> Iterator[Block]:
    if not run.attempts:
        yield Text("No evaluation has begun yet.")
        return
    yield Text("Files of attempts: under eval/ in the run's directory. Every attempt as a table:")
    yield Commands([command("export", "table", named(run))])
    yield from _shown(figures, "losses")


def _failures(run: Run, _: Figures) -> Iterator[Block]:
    """What failed, why, and what rules and people decided."""
    kinds, state = run.failures, run.state
    yield from table_of(
        "Attempts that failed; final: not retried",
        (
            {
                "cause": plain(kind.what),
                "whose": kind.whose,
                ">attempts": kind.attempts,
                ">final": kind.final,
                "for example": plain(one_line(kind.example, 200)),
            }
            for kind in kinds
        ),
    )
    for kind in kinds:
        blocks: list[Block] = [Items([plain(place) for place in kind.places])]
        if run.directory is not None:
            blocks += log_end(run.directory, kind.places)
        yield Details(plain(f"Where: {kind.what}"), blocks)
    parts = {
        "Rules that fired": text.rules(state.fired),
        "Overrides": text.rules(state.overridden),
        "Amendments": [text.amended(one) for one in state.amended],
    }
    for title, entries in parts.items():
        if entries:
            yield from (Heading(title), Items([plain(entry) for entry in entries]))
    if not kinds and not any(parts.values()):
        yield Text("Nothing failed, no rule fired, and nobody changed anything.")


def _provenance(run: Run, _: Figures) -> Iterator[Block]:
    yield Text(
        f"{run.state.records} records of {counted(len(run.sessions), 'session')}, the last of "
        f"{run.last:%Y-%m-%d %H:%M:%S} UTC; head `{run.state.head}`; fingerprint of the objective "
        f"`{run.plan.objective_fingerprint}`."
    )
    yield Commands([command("verify", named(run)), *beginning(run)])
    rows = ({"what": plain(name), "value": plain(said)} for name, said in facts(run).items())
    yield from _folded("Everything that decides the scores", table_of("", rows))


def facts(run: Run) -> dict[str, str]:
    """What decides the scores and the search, by its dotted name, without secrets."""
    plan, opened, search = run.plan, run.state.opened, run.plan.search
    versions = dict.fromkeys(name for one in opened for name in one.versions)
    found = flat(
        {
            "objective": plan.objective,
            "data": plan.provenance,
            "space": {
                knob.name: f"{knob.kind}, {number(knob.low)} to {number(knob.high)}, "
                f"baseline {number(knob.baseline)}"
                for knob in run.knobs
            },
            "search": {
                **plan.model_dump(include={"phase", "tier", "evaluation_seed"}),
                **plan.resolved.model_dump(),
                **(search.model_dump(include={"method", "seed", "sigma0"}) if search else {}),
                "follows": plan.source and plan.source.run_id,
            },
            "machine": {
                "devices": text.devices(run),
                "time_limit": precise_duration(plan.limits.wall_seconds),
                "memory": in_bytes(plan.devices.memory_bytes),
                "calibration": plan.calibration and plan.calibration.ledger,
            },
            "versions": {
                name: ", ".join(dict.fromkeys(one.versions.get(name, "none") for one in opened))
                for name in versions
            },
        }
    )
    return {
        name.replace("/", "."): said if isinstance(said, str) else f"{said:.15g}"
        for name, said in found.items()
    }


SECTIONS: tuple[tuple[str, str, Callable[[Run, Figures], Iterator[Block]]], ...] = (
    ("verdict", "Verdict", _verdict),
    ("budget", "Budget", _budget),
    ("scores", "Scores", _scores),
    ("knobs", "Knobs", _knobs),
    ("failures", "Failures, rules and decisions", _failures),
    ("search", "Search", _search),
    ("evaluations", "Evaluations", _evaluations),
    ("provenance", "Provenance", _provenance),
)
