"""A run as sections of blocks, the same for a terminal, Markdown and a page.

A terminal shows the first `ON_A_TERMINAL` of them. A section with nothing to show says why. What
few readers want is in `Details`, which a page shows folded.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import orjson

from budgets.blocks import Heading, Items, Table, Text
from budgets.campaign.text import campaign_blocks
from budgets.events import Status
from budgets.following import beginning as begins_with
from budgets.plain import command, one_line, plain, printable
from budgets.proxy.text import proxy_blocks
from budgets.state import RunState
from budgets.terms import Caps, Limits, Plan
from budgets.verdict.finalists import IN_WORDS
from budgets.verdict.findings import Findings
from budgets.verdict.findings_text import gain_lines, judged
from budgets.words import (
    counted,
    duration,
    in_bytes,
    number,
    precise_duration,
    sentence_case,
)
from objectives import secrets
from orchestrator.look import text
from orchestrator.look.blocks import (
    Block,
    Commands,
    Details,
    Figure,
    Log,
    Ruler,
    Section,
)
from orchestrator.look.check_text import check_blocks
from orchestrator.look.files import log_end, measured_in
from orchestrator.look.next_step import beginning, named
from orchestrator.look.rows import Attempt, Distribution, Failures, Generation, Knob
from orchestrator.look.run import Run

ON_A_TERMINAL = 5

SLOWEST, MOST_FAILED = 8, 20
MOST_PAIRS = 5
MOST_KINDS = 12
"""Rows of a table that need not be whole."""

IN_SECONDS_BELOW = 1.0
"""Device-hours in all: less is told in device-seconds."""

Figures = Mapping[str, Figure]


def sections(run: Run, figures: Iterable[Figure] = ()) -> tuple[Section, ...]:
    """Every section, with those figures where they belong."""
    drawn = {figure.name: figure for figure in figures}
    return tuple(Section(name, title, list(write(run, drawn))) for name, title, write in SECTIONS)


def summary(run: Run) -> tuple[Section, ...]:
    """What a terminal shows: the first sections, without the details that a page folds.

    How a failure's log ends is no detail.
    """
    return tuple(
        Section(name, title, [block for block in write(run, {}) if not _is_folded(block)])
        for name, title, write in SECTIONS[:ON_A_TERMINAL]
    )


def _is_folded(block: Block) -> bool:
    return isinstance(block, Details) and not any(isinstance(own, Log) for own in block.blocks)


def _code(line: str) -> str:
    """As code in a text."""
    return f"`{printable(line).replace('`', chr(39))}`"


def _shown(figures: Figures, *names: str) -> list[Figure]:
    return [figures[name] for name in names if name in figures]


def _folded(title: str, blocks: Sequence[Block]) -> Iterator[Block]:
    """Those, if there are any, where a page folds them."""
    if blocks:
        yield Details(title, blocks)


# What was found


def _verdict(run: Run, figures: Figures) -> Iterator[Block]:
    if run.state.decided is not None:
        yield Text(f"On record: {plain(text.sentence(run))}")
    if (follows := begins_with(run.plan)) is not None:
        yield Text(plain(follows))
    if run.campaign is not None:
        yield from (*_shown(figures, "effects"), *_untitled(campaign_blocks(run.campaign)))
    elif run.plan.phase == "check":
        found = check_blocks(run.check) if run.proxy is None else proxy_blocks(run.proxy)
        yield from (*_shown(figures, "effects"), *_untitled(found))
    elif run.findings is not None:
        yield from _evidence(run, run.findings, figures)
    elif run.plan.phase == "calibration":
        yield Text("A calibration compares nothing: it measures what others are compared with.")
    else:
        yield Text(
            "No comparison with the baseline on fresh seeds is part of this run, so it cannot end "
            "in a Go or a No-Go."
        )


def _untitled(blocks: Iterable[Block]) -> Iterator[Block]:
    """Those that stand in a section, which has a title of its own."""
    return (block for block in blocks if not isinstance(block, Heading))


def _evidence(run: Run, found: Findings, figures: Figures) -> Iterator[Block]:
    yield Items(list(gain_lines(found, is_drawn="gains" not in figures)))
    yield from _shown(figures, "gains")
    yield from _folded("What a Go needs, and what was compared", list(judged(found)))
    arms = [arm for arm in run.arms if arm.comparison != "short evaluations"]
    titles = list(dict.fromkeys(arm.name for arm in arms))
    if not titles:
        return
    longer = {"long run": found.rung_label or "more training"}
    rows = []
    for comparison in dict.fromkeys(arm.comparison for arm in arms):
        own = {arm.name: arm.scores for arm in arms if arm.comparison == comparison}
        for seed in dict.fromkeys(seed for scores in own.values() for seed in scores):
            cells = [
                number(own[name][seed], none="none") if seed in own.get(name, {}) else ""
                for name in titles
            ]
            rows.append([str(seed), longer.get(comparison, comparison), *cells])
    caption = "Scores on fresh seeds, which no candidate of the search was evaluated on"
    columns = ["seed", "of the comparison", *(f">{plain(title)}" for title in titles)]
    yield Details(f"Every score on fresh seeds ({len(rows)})", [Table(caption, columns, rows)])


def _scores(run: Run, figures: Figures) -> Iterator[Block]:
    what, baseline = measured_in(run.state), run.baseline
    basis = "Lower is better."
    if what != "score":
        basis = f"{sentence_case(plain(what))}: lower is better."
    if baseline is None:
        basis += " No calibration says what the baseline scores, or how it varies."
    else:
        basis += f" The baseline scores {baseline.mean:.5g}, the mean of "
        basis += counted(len(baseline.scores), "seed")
        if baseline.sd is not None:
            basis += f"; from seed to seed it varies with a standard deviation of {baseline.sd:.4g}"
        if baseline.sd_low is not None and baseline.sd_high is not None:
            basis += f" (95% interval {baseline.sd_low:.3g} to {baseline.sd_high:.3g})"
        basis += "."
    yield Text(basis)
    yield from _shown(figures, "scores")
    if not run.counts.settled:
        yield Text("No evaluation has ended yet.")
    if run.is_search and run.generations:
        yield from _by_generation(run)
    if run.best_so_far is not None and run.luck_so_far is not None:
        yield Text(
            f"Best score: {run.best_so_far:.5g}. Were every candidate just the baseline, the best "
            f"would be expected near {run.luck_so_far:.5g}: how much of the rest is true, only "
            "fresh seeds tell."
        )
    if run.proxy is not None and run.plan.phase != "check":
        yield from _untitled(proxy_blocks(run.proxy))


def _by_generation(run: Run) -> Iterator[Block]:
    table = generations_table(run.generations)
    is_short = len(run.generations) <= SLOWEST
    yield table if is_short else Details(f"All {len(run.generations)} generations", [table])


def generations_table(generations: Sequence[Generation]) -> Table:
    """The scores of those generations, a row each."""
    columns = [">generation", ">best", ">mean", ">sd", ">best so far", ">by luck alone"]
    columns += [">healthy", ">failed", ">step size", ">eval seconds"]
    return Table(
        "By luck alone: the best score to expect of as many candidates that equal the baseline",
        columns,
        [_generation(one) for one in generations],
    )


def _generation(one: Generation) -> list[str]:
    name = f"{one.number}{', short' if one.is_short else ''}{'' if one.is_told else ', unfinished'}"
    scores = (one.best, one.mean, one.sd, one.best_so_far, one.luck_so_far)
    return [
        name,
        *(number(score) for score in scores),
        str(one.healthy),
        str(one.failed),
        number(one.step_size, 4),
        number(one.eval_seconds, 4),
    ]


# What was spent


def _budget(run: Run, figures: Figures) -> Iterator[Block]:
    yield balances(run)
    yield Items([plain(line) for line in _spending(run)])
    yield from _folded("When the slots worked", _shown(figures, "timeline"))
    yield from _folded("Where device time went", [*_shown(figures, "device_time"), *_usage(run)])


def balances(run: Run) -> Table:
    """Each currency that counts: what is spent, set aside, left, and its cap."""
    rows = [
        (b.currency, *(text.amount(b, value) for value in (b.spent, b.reserved, b.free, b.cap)))
        for b in run.balances
        if b.counts
    ]
    caption = "Each currency: what is spent, set aside for what is in flight, and left"
    return Table(caption, ["currency", ">spent", ">reserved", ">free", ">cap"], rows)


def _spending(run: Run) -> Iterator[str]:
    """How evaluations ended, what was lost, how long they take, how much passed idle, warnings."""
    yield f"Evaluations: {text.statuses(run)}."
    if run.failures is not None:
        yield from text.failure_rates(run.failures)
    if run.counts.lost:
        cost = text.device_time(run.lost_hours)
        yield f"{counted(run.counts.lost, 'attempt')} lost or cancelled, at {cost}."
    if run.overrun_device_hours:
        yield f"{text.device_time(run.overrun_device_hours)} went beyond their reservation."
    if run.overrun_hours:
        yield f"The run was open for {duration(3600 * run.overrun_hours)} beyond its cap."
    if run.eval_seconds is not None:
        expected = run.expected_seconds
        against = "" if expected is None else f" (expected: {precise_duration(expected)})"
        yield f"A healthy evaluation takes {precise_duration(run.eval_seconds)}{against}."
    if run.slot_hours:
        yield (
            f"The slots were there for {text.device_time(run.slot_hours)}: "
            f"{run.idle_hours / run.slot_hours:.0%} of it passed idle, "
            f"{run.wasted_hours / run.slot_hours:.0%} gave no score."
        )
    if said := text.timing(run.timing):
        yield said
    if (deadline := run.deadline) is not None:
        yield f"Deadline: evaluations are over by {deadline:%Y-%m-%d %H:%M:%S} UTC."
    if late := len(run.state.late):
        yield f"{counted(late, 'attempt')} given up as lost came late: charged, and not used."
    if jumps := run.state.clock_jumps_ms:
        said = ", ".join(f"{ms / 1000:+.0f} s" for ms in jumps)
        yield (
            f"The wall's clock jumped ({said}), or the machine slept: times of day are off, "
            "durations and charges are not."
        )


def _usage(run: Run) -> Iterator[Block]:
    parts = run.usage
    rows = [(one.planned, one.useful, one.wasted, one.idle, one.reserved) for one in parts]
    if not any(value for row in rows for value in row):
        yield Text("No slot has been there yet: the run was not begun.")
        return
    whole = [_sum(column) for column in zip(*rows, strict=True)]
    is_short = sum(sum(row[1:4]) for row in rows) < IN_SECONDS_BELOW
    scale, unit = (3600.0, "device-seconds") if is_short else (1.0, "device-hours")
    cells = [[one.part, *_cells(row, scale)] for one, row in zip(parts, rows, strict=True)]
    caption = f"In {unit}: useful gave a score, wasted gave none, idle is when nothing ran"
    columns = ["part", ">planned", ">useful", ">wasted", ">idle", ">reserved"]
    in_all = ["**in all**", *_cells(whole, scale)]
    yield Table(caption, columns, [*cells, in_all])


def _sum(hours: Iterable[float | None]) -> float | None:
    known = [own for own in hours if own is not None]
    return sum(known) if known else None


def _cells(hours: Iterable[float | None], scale: float) -> Iterator[str]:
    return ("-" if own is None else f"{scale * own:.4g}" for own in hours)


# The knobs, and the search


def _knobs(run: Run, figures: Figures) -> Iterator[Block]:
    if not run.knobs:
        yield Text("This run's objective has no knobs.")
        return
    decided = run.state.decided
    is_any = any(knob.recommended is not None for knob in run.knobs)
    if decided is not None and decided.grade == "no_go":
        shows = command("best", named(run))
        yield Text(
            "Nothing is recommended: the baseline stays. What was compared with it, "
            f"{_code(shows)} shows."
        )
    elif not is_any:
        yield Text("Nothing is recommended yet, or by this kind of run.")
    elif decided is not None:
        won = IN_WORDS.get(decided.arm.split()[0], decided.arm)
        yield Text(f"What won on fresh seeds: {plain(won)}.")
    else:
        yield Text(
            "The mean of the search distribution over its last third of generations. It has not "
            "been scored on fresh seeds."
        )
    moves = [">recommended", ">moved"] if is_any else []
    columns = ["knob", "scale", ">low", ">high", ">baseline", *moves, "place in its range"]
    caption = "Knobs: baseline and recommendation" if is_any else "Knobs: ranges and baseline"
    yield Table(caption, columns, [_knob(knob, is_any=is_any) for knob in run.knobs])
    yield from _shown(figures, "paths")
    yield from _folded("Each knob by the scores of the search", _shown(figures, "marginals"))


def _knob(knob: Knob, *, is_any: bool) -> list[object]:
    cells: list[object] = [plain(knob.name), knob.kind]
    cells += [number(value) for value in (knob.low, knob.high, knob.baseline)]
    if is_any:
        moved = "-"
        if knob.recommended_unit is not None:
            end = "" if knob.at_end is None else f", {knob.at_end} end"
            moved = f"{knob.recommended_unit - knob.baseline_unit:+.0%}{end}"
        cells += [number(knob.recommended, 4), moved]
    return [*cells, Ruler(knob.baseline_unit, knob.recommended_unit)]


def _search(run: Run, figures: Figures) -> Iterator[Block]:
    found, why = run.replayed
    if found is None:
        yield Text(f"{sentence_case(plain(why)).rstrip('.')}.")
        return
    explained = Text(
        "CMA-ES draws candidates from a normal distribution over the knobs, and moves and reshapes "
        "it by their scores. Its step size says how far it looks; an axis ratio above 1 that it "
        "has learned to look further in one direction than in another. Standard deviations (sd) "
        "are in units of a knob's range."
    )
    yield Details("Step size and axis ratio", [explained, *_shown(figures, "step_size")])
    yield from _folded("Correlations", _shown(figures, "correlations"))
    last = found.history[-1]
    chance = ""
    if found.condition_by_chance is not None:
        lowest = found.eigenvalues[-1]
        condition = found.eigenvalues[0] / lowest if lowest else float("inf")
        chance = (
            f" Its longest axis has {condition:.3g} times the variance of the shortest; on pure "
            "noise one search of this size in twenty reaches more than "
            f"{found.condition_by_chance:.3g}."
        )
    yield Text(
        f"After generation {last.generation} the step size is {last.step_size:.3g} and the axis "
        f"ratio {last.axis_ratio:.3g}.{chance}"
    )
    yield from _slopes(run)
    yield from _pairs(found, [knob.name for knob in run.knobs])


def _slopes(run: Run) -> Iterator[Block]:
    rows = [
        [
            plain(one.knob),
            f"{one.slope:+.3g}",
            number(one.slope_error, 2),
            {True: "yes", False: "no", None: "-"}[one.stands],
        ]
        for one in run.marginals
        if one.slope is not None
    ]
    if rows:
        caption = (
            "The change of the score where a knob goes up by one standard deviation of the "
            "candidates: an estimate, not an experiment"
        )
        table = Table(caption, ["knob", ">slope", ">error", "above its error"], rows)
        yield Details("What the search's evaluations say of each knob", [table])


def _pairs(found: Distribution, names: Sequence[str]) -> Iterator[Block]:
    pairs = [
        (found.correlations[a][b], names[a], names[b]) for a in range(len(names)) for b in range(a)
    ]
    if not pairs:
        return
    pairs.sort(key=lambda pair: -abs(pair[0]))
    limit = found.correlation_by_chance
    rows = [
        [
            f"{plain(one)} and {plain(other)}",
            f"{value:+.2f}",
            "-" if limit is None else "yes" if abs(value) > limit else "no",
        ]
        for value, one, other in pairs[:MOST_PAIRS]
    ]
    caption = "Correlations of the search's distribution, the strongest first"
    blocks: list[Block] = [Table(caption, ["two knobs", ">correlation", "beyond chance"], rows)]
    if limit is not None:
        blocks.append(
            Text(
                "On pure noise one search of this size in twenty has a correlation beyond "
                f"{limit:.2f}."
            )
        )
    yield Details("Which knobs go together", blocks)


# Evaluations


def _evaluations(run: Run, _: Figures) -> Iterator[Block]:
    ended = run.ended
    if not ended and not run.counts.in_flight:
        yield Text("No evaluation has begun yet.")
        return
    yield Text(
        "The files of each attempt lie in the run's directory, under eval/. Every attempt, one a "
        f"row: {_code(command('ledger', 'export', named(run)))}"
    )
    in_flight = [one for one in run.attempts if one.in_flight]
    if in_flight:
        columns = ["evaluation", ">seed", ">attempt", ">began", ">reserved"]
        rows = [
            [
                plain(one.what),
                str(one.seed),
                str(one.attempt),
                precise_duration(one.began),
                precise_duration(one.reserved_seconds),
            ]
            for one in in_flight
        ]
        yield Table("In flight, as of the last record", columns, rows)
    healthy = sorted((one for one in ended if one.status is Status.OK), key=lambda e: -e.seconds)
    if healthy:
        title = f"The {min(SLOWEST, len(healthy))} slowest that gave a score"
        yield Details(title, [_attempts(healthy[:SLOWEST])])
    failed = [one for one in ended if one.status is not Status.OK][-MOST_FAILED:]
    if failed:
        title = f"The last {counted(len(failed), 'attempt')} that gave no score"
        yield Details(title, [_attempts(failed)])


def _attempts(own: Sequence[Attempt]) -> Table:
    columns = ["evaluation", ">seed", "status", ">score", ">took", ">memory", "on", ">began"]
    is_caused = any(one.cause for one in own)
    rows = []
    for one in own:
        slot = "" if one.slot is None else f", slot {one.slot}"
        again = "" if one.attempt == 1 else f", attempt {one.attempt}"
        cells = [plain(one.what), f"{one.seed}{again}", str(one.status), number(one.score)]
        cells += [precise_duration(one.seconds), in_bytes(one.peak_memory_bytes)]
        cells += [f"{plain(one.device)}{slot}", precise_duration(one.began)]
        rows.append([*cells, plain(one_line(one.cause, 160))] if is_caused else cells)
    return Table("Began: after the run did", columns + ["cause"] * is_caused, rows)


def _training(_: Run, figures: Figures) -> Iterator[Block]:
    yield from _shown(figures, "losses")
    if "losses" not in figures:
        yield Text("No evaluation that was looked at left its steps with a loss.")


def _failed(run: Run) -> Iterator[Block]:
    found = run.failures
    if found is None or not found.kinds:
        yield Text("Nothing has failed.")
        return
    yield _kinds(found)
    for kind in found.kinds[:MOST_KINDS]:
        blocks: list[Block] = []
        if kind.places:
            places = ", ".join(
                f"`{printable(place).replace('`', chr(39))}`" for place in kind.places
            )
            blocks.append(Text(f"For example {places}."))
        end = None if run.directory is None else log_end(run.directory, kind.places)
        if end is not None and end.lines:
            blocks.append(Log(end.place, end.lines))
        if blocks:
            yield Details(plain(f"Where: {kind.what}"), blocks)


def _kinds(found: Failures) -> Table:
    rows = [
        [
            plain(kind.what),
            kind.whose,
            str(kind.attempts),
            str(kind.final),
            plain(one_line(kind.example, 200)),
        ]
        for kind in found.kinds[:MOST_KINDS]
    ]
    columns = ["cause", "whose", ">attempts", ">final", "for example"]
    return Table(
        "Attempts that failed, by whose doing it was and by cause; final: not tried again",
        columns,
        rows,
    )


def _what_happened(run: Run, _: Figures) -> Iterator[Block]:
    yield from _failed(run)
    yield from _rules(run.state)
    yield Text(f"Every rule and what it sees: {_code(command('explain', named(run)))}")


def _rules(state: RunState) -> Iterator[Block]:
    """What rules and people decided, and what happened to the ledger and the devices."""
    parts = {
        "Rules that fired": [
            f"{one.rule}, generation {one.generation}: {one.evidence}" for one in state.fired
        ],
        "Overrides: a person let it go on": [
            f"{one.rule}, generation {one.generation}: {one.reason}" for one in state.overridden
        ],
        "Amendments: a person changed its caps": [text.amended(one) for one in state.amended],
        "Salvaged: records of a damaged ledger": [
            f"{one.lost_records} records lost: {one.why}" for one in state.salvaged
        ],
        "Devices withdrawn": [f"{one.device}: {one.why}" for one in state.withdrawn],
    }
    for title, entries in parts.items():
        if entries:
            yield Heading(title)
            yield Items([plain(entry) for entry in entries])
    if not any(parts.values()):
        yield Text("No rule fired, and nothing was overridden, amended, salvaged or withdrawn.")


# Records


def _provenance(run: Run, _: Figures) -> Iterator[Block]:
    plan, state = run.plan, run.state
    own = plan.devices
    each = f"{counted(own.threads, 'thread')} and {in_bytes(own.memory_bytes)} each"
    yield Text(plain(f"On {text.devices(run)}, {each}. {_calibration(plan)}"))
    yield Commands([command("verify", named(run)), *beginning(run)])
    found: list[Block] = []
    for title, pairs in facts(run).items():
        rows = [[plain(name), plain(one_line(value, 400))] for name, value in pairs.items()]
        found += [Table(title, ["what", "value"], rows)] if rows else []
    if changed := [plain(line) for line in _changed_versions(state)]:
        found.append(Items(changed))
    yield Details("Everything that decides the scores", found)


def facts(run: Run) -> dict[str, dict[str, str]]:
    """What decides the scores, by its title and its name, without secrets."""
    plan, state = run.plan, run.state
    return {
        "Settings of the objective": dict(_settings(plan.objective["settings"])),
        "Data": {name: str(value) for name, value in plan.provenance.items()},
        "Search": dict(_terms(plan)),
        "Caps": dict(_caps(plan.caps, plan.price_per_device_hour)),
        "Limits of one evaluation": dict(_limits(plan.limits)),
        "Versions": state.opened[-1].versions if state.opened else {},
    }


def _calibration(plan: Plan) -> str:
    calibration = plan.calibration
    if calibration is None:
        return ""
    if calibration.assumed_seconds is not None:
        return f"No calibration: {calibration.assumed_seconds:g} s an evaluation were assumed."
    seeds = counted(len(calibration.samples), "seed")
    failed = f", {calibration.failed} failed" if calibration.failed else ""
    return (
        f"Noise and times are the baseline's on {seeds}{failed}; head of that ledger "
        f"{calibration.ledger}."
    )


def _settings(settings: Mapping[str, object], table: str = "") -> Iterator[tuple[str, str]]:
    """By dotted name, without secrets."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and value and not table:
            yield from _settings(value, f"{name}.")
        elif table == "environment." and secrets.is_secret_name(name):
            yield f"{table}{name}", secrets.HIDDEN
        else:
            shown = value if isinstance(value, str) else orjson.dumps(value).decode()
            yield f"{table}{name}", _safe(name, shown)


def _safe(name: str, value: str) -> str:
    return secrets.redacted(f"{name}={value}", os.environ).removeprefix(f"{name}=")


def _changed_versions(state: RunState) -> Iterator[str]:
    """What was otherwise in a session before the last one."""
    last = state.opened[-1].versions if state.opened else {}
    for session, opened in enumerate(state.opened[:-1], 1):
        for name in sorted({*last, *opened.versions}):
            then, now = opened.versions.get(name, "none"), last.get(name, "none")
            if then != now:
                yield f"session {session}: {name} {then}, at last {now}"


def _caps(caps: Caps, price: float) -> Iterator[tuple[str, str]]:
    yield from text.caps(caps).items()
    if price:
        yield "price of a device-hour", f"{price:g}"
    if caps.window is not None:
        yield "safety margin", f"{caps.window.margin_seconds:g} s"


def _limits(limits: Limits) -> Iterator[tuple[str, str]]:
    yield "time limit", f"{limits.wall_seconds:g} s, and {limits.grace_seconds:g} s to end"
    if limits.stall_seconds is not None:
        yield "silence", f"{limits.stall_seconds:g} s"
    if limits.memory_bytes is not None:
        yield "memory", in_bytes(limits.memory_bytes)
    yield "log", f"{in_bytes(limits.log_bytes)} of each stream"


def _terms(plan: Plan) -> Iterator[tuple[str, str]]:
    shape, search = plan.resolved, plan.search
    if search is not None:
        yield "method", search.method
        yield "seed", str(search.seed)
        yield "first step size", f"{search.sigma0:g}"
        if search.inherited is not None:
            yield "begins where", f"{search.inherited.run_id} ended"
        if search.known:
            yield "known settings", str(len(search.known))
    if plan.source is not None:
        yield "follows", f"{plan.source.run_id}, {plan.source.variant}"
    yield "candidates a generation", str(shape.population)
    yield "generations", str(shape.generations)
    yield "seeds a candidate", str(shape.seeds_per_candidate)
    yield "evaluation seed", str(plan.evaluation_seed)
    if plan.proxy is not None:
        yield "proxy", plan.proxy.varied.label
    yield "objective's fingerprint", plan.objective_fingerprint


def _ledger(run: Run, _: Figures) -> Iterator[Block]:
    rows = [
        [
            str(one.number + 1),
            f"{one.opened:%Y-%m-%d %H:%M:%S} UTC",
            precise_duration(one.ended - one.began),
            plain(one.host),
            str(one.workers),
        ]
        for one in run.sessions
    ]
    if rows:
        columns = [">session", "opened", ">open for", "host", ">slots"]
        yield Table("Sessions: processes that had the ledger", columns, rows)
    yield Text(
        f"{run.state.records} records, the last of {run.last:%Y-%m-%d %H:%M:%S} UTC; head "
        f"`{run.state.head}`. Everything here follows from them and from the files of the attempts."
    )


Write = Callable[[Run, Figures], Iterator[Block]]

SECTIONS: tuple[tuple[str, str, Write], ...] = (
    ("verdict", "Verdict", _verdict),
    ("budget", "Budget", _budget),
    ("scores", "Scores", _scores),
    ("knobs", "Knobs", _knobs),
    ("failures", "Failures, rules and decisions", _what_happened),
    ("search", "Search", _search),
    ("evaluations", "Evaluations", _evaluations),
    ("training", "Training", _training),
    ("provenance", "Provenance", _provenance),
    ("ledger", "Ledger", _ledger),
)
