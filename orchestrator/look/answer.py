"""The four answers that a person wants first: found? how sure? at what cost? what next?

One function for each way to stand: planned, running, interrupted, held up by a rule, decided, over
without a verdict; and for runs that only measure: a calibration, a check, a campaign.
"""

from datetime import timedelta
from math import sqrt
from statistics import fmean, stdev

from budgets.calibration import ONE_SCORE, measure
from budgets.campaign.effects import CampaignReport, Effect
from budgets.campaign.text import campaign_sentence
from budgets.campaign.words import in_words, name_of
from budgets.course import next_step
from budgets.events import Decided
from budgets.liveness import EndEffect, KnobFinding, Liveness
from budgets.plain import command, one_line
from budgets.rules.table import HOLDING_UP, Reading
from budgets.statistics.comparison import Gain, better
from budgets.statistics.detectable import detectable
from budgets.statistics.spread import sd_interval
from budgets.tiers import TIERS
from budgets.verdict.conditions import gain_in_words
from budgets.verdict.findings import Findings, title
from budgets.verdict.gains import winner_means
from budgets.words import (
    about,
    counted,
    first_few,
    listed,
    percent,
    quoted,
    sentence_case,
    uncapitalized,
)
from orchestrator.look import text
from orchestrator.look.blocks import Answer, Mood
from orchestrator.look.files import measured_in
from orchestrator.look.next_step import (
    NextStep,
    after_the_verdict,
    beginning,
    named,
    of_objective,
    overriding,
    wider,
)
from orchestrator.look.run import Run
from orchestrator.planning.plan import no_share
from orchestrator.planning.request import VERDICT_SEEDS
from orchestrator.records.cautions import kept

FOR_GOOD = ("too_few_healthy", "baseline_failed")
"""Rules about what is paid for and would be the same again."""

NO_EVIDENCE = "Not at all yet: a search's own scores are no evidence of a gain."
MOST_NAMED = 4
"""Knobs, effects or conditions in one sentence."""


def answer(run: Run) -> Answer:  # noqa: PLR0911 - one a way to stand
    """The answers of a run as it stands."""
    if run.state.decided is not None and run.findings is not None:
        return _decided(run, run.findings, run.state.decided)
    if not run.state.opened:
        return _planned(run)
    if run.decision == "continue":
        return _interrupted(run) if run.standing.kind == "interrupted" else _running(run)
    if run.decision in ("pause", "stop"):
        return _held_up(run)
    if run.campaign is not None:
        return _campaign(run, run.campaign)
    if run.plan.phase == "calibration":
        return _calibrated(run)
    if run.plan.phase == "check":
        return _checked(run)
    return _over(run)


# Not over


def _planned(run: Run) -> Answer:
    return Answer(
        title="Planned, not begun",
        sentence=f"The plan is on record; none of {run.counts.planned} evaluations has started.",
        found="Nothing yet.",
        sure="There is nothing to be sure of yet.",
        cost=text.cost(run),
        next=f"Repeat {text.REPEAT}.",
        commands=beginning(run),
        mood="open",
    )


def _running(run: Run) -> Answer:
    command_again = beginning(run)
    return Answer(
        title="In progress",
        sentence=sentence_case(text.progress(run)) + _to_come(run),
        meaning=(
            f"As of {run.last:%H:%M:%S} UTC. It may have been interrupted since: whether a process "
            "has it at this moment, status tells."
        ),
        luck=_luckiest(run),
        found=_nothing_yet(run),
        sure=_sure_so_far(run),
        cost=text.cost(run),
        next="Keep it running, and watch it.",
        commands=(f"{command('status', named(run))} --watch", *command_again),
        otherwise=(
            "If it was interrupted, this resumes it, and nothing paid is lost. Safe: it refuses to "
            "start while another process has the run."
            if command_again
            else ""
        ),
        mood="open",
    )


def _interrupted(run: Run) -> Answer:
    return Answer(
        title="Interrupted",
        sentence=f"{sentence_case(text.progress(run))} No process has it now.",
        luck=_luckiest(run),
        found=_nothing_yet(run),
        sure=_sure_so_far(run),
        cost=text.cost(run),
        next=f"Repeat {text.REPEAT}: it goes on where it stopped, and nothing paid is lost.",
        commands=beginning(run),
        mood="trouble",
    )


def _to_come(run: Run) -> str:
    """How long, and until when."""
    left = run.pace.remaining_hours
    if not left:
        return ""
    compared = "" if run.plan.confirmation is None else ", the comparison on fresh seeds included"
    end = run.last + timedelta(hours=left, seconds=30)  # to the nearest minute
    when = f"{end:%H:%M}" if end.date() == run.last.date() else f"{end:%Y-%m-%d %H:%M}"
    return (
        f" About {about(3600 * left)} of wall clock are left{compared}: until about {when} UTC if "
        "it goes on like this."
    )


def _luckiest(run: Run) -> str:
    """Why nobody should look at the best score; empty before there is one."""
    if not run.is_search or run.best_so_far is None:
        return ""
    return "The best of many noisy scores is always a lucky one. Only fresh seeds will tell."


def _nothing_yet(run: Run) -> str:
    settled = run.counts.settled
    if not settled:
        return "Nothing yet: no evaluation has ended."
    if not run.counts.ok:
        return f"Nothing: none of {settled} evaluations has a score."
    if not run.is_search:
        return (
            f"Not known yet: {settled} of {run.counts.planned} evaluations are settled, and "
            "nothing is judged before the last one is."
        )
    return "Not known yet: what the search found so far has still to be compared with the baseline."


def _sure_so_far(run: Run) -> str:
    if not run.is_search:
        return "Not at all yet: intervals are not valid while they are looked at again and again."
    if run.plan.confirmation is None:
        return f"{NO_EVIDENCE} And none is planned: see Next once it is over."
    if next_step(run.state) in ("finalists", "winner", "rung"):
        return (
            "Not at all yet: its comparison with the baseline on fresh seeds is under way, and is "
            "judged when it is complete."
        )
    return f"{NO_EVIDENCE} Its winner meets the baseline on fresh seeds when the search is over."


def _held_up(run: Run) -> Answer:
    """Paused by a rule until a person has looked; or stopped by one, and there is no verdict."""
    triggers = run.ruling.triggers
    what = "Paused" if run.decision == "pause" else "Stopped"
    rules = list(dict.fromkeys(trigger.rule for trigger in triggers))
    by = f" by rule{'s' * (len(rules) > 1)} {' and '.join(rules)}" if rules else ""
    why = "; ".join(trigger.evidence for trigger in triggers) or text.sentence(run)
    way = _way_on(run, triggers, rules)
    kept_paid = (
        "Nothing more starts until a person has looked"
        if what == "Paused"
        else ("Nothing more starts")
    )
    looks = "; ".join(["", *(f"rule {rule} looks at {_ABOUT[rule]}" for rule in rules)])
    sure = "There is nothing to be sure of: no evaluation has a score."
    if run.counts.ok:
        sure = "Not at all: a search's own scores are no evidence of a gain."
        sure = sure if run.is_search else "Not at all: it is not over."
    return Answer(
        title=f"{what}{by}",
        sentence=f"{sentence_case(one_line(why, 600))}.{_all_failed(run)}",
        meaning=f"{kept_paid}; what is paid is kept{looks}.",
        found=_nothing_yet(run).replace("Not known yet", "Not known"),
        sure=sure,
        cost=text.cost(run),
        next=way.said,
        commands=way.commands,
        otherwise=way.otherwise,
        mood="trouble",
    )


_ABOUT = {rule.name: rule.about.partition(";")[0] for rule in HOLDING_UP}
_ABOUT["crash_rate"] = "how many evaluations of a generation fail"


def _all_failed(run: Run) -> str:
    """That no evaluation has a score, and why the last of them has none."""
    failed = [result for batch in run.state.batches() for result in batch.failed]
    if not failed or run.counts.ok:
        return ""
    example = f", for example: {one_line(failed[-1].cause)}" if failed[-1].cause else ""
    return f" All {counted(len(failed), 'evaluation')} that ran failed{example}."


def _way_on(run: Run, triggers: tuple[Reading, ...], rules: list[str]) -> NextStep:
    """What to do about what holds it up, and the commands."""
    budget = next((trigger for trigger in triggers if trigger.rule == "budget"), None)
    if budget is not None:
        amend = command("amend", named(run))
        more = f'{amend} {text.more_needed(run.state, budget)} --reason "WHY"'
        said = "Allow more, for a reason that goes on record, if it is worth more:"
        return NextStep(said, (more, *beginning(run)), "Then take it up:")
    look, anew = command("explain", named(run)), text.corrected(run)
    if any(rule in FOR_GOOD for rule in rules):
        said = "This run cannot go on: look into Failures, fix what leads there, start another."
        return NextStep(said, (look,))
    if anew and text.is_baseline_broken(run.state):
        return NextStep(f"Find out why, under Failures. {anew}.", (look, *beginning(run)))
    if not all(trigger.overridable for trigger in triggers):
        return NextStep("Mend what is named above.", (look, *beginning(run)), "Then take it up:")
    otherwise = "When it is fixed, or if it does no harm, go on (the reason goes on record):"
    if anew:
        otherwise = f"{anew}. If it does no harm, go on (the reason goes on record):"
    said = "Find out why, under Failures and with:"
    return NextStep(said, (look, *overriding(run, rules)), otherwise)


# Decided


def _decided(run: Run, found: Findings, own: Decided) -> Answer:
    called = title(own.grade, own.no_go)
    after = after_the_verdict(run, found)
    but = uncapitalized(" ".join(run.cautions))
    mood: Mood = "bad" if own.grade == "no_go" else "caution" if but else "good"
    return Answer(
        title=called,
        sentence=_verdict(run, found, own),
        but=but,
        meaning=f"{quoted(called)} means {_meaning(found, own)}.",
        luck=text.luck(found.seemed, found.luck),
        found=_found(run, own),
        sure=_sure(found),
        cost=text.cost(run),
        next=after.said,
        commands=after.commands,
        otherwise=after.otherwise,
        mood=mood,
    )


def _verdict(run: Run, found: Findings, own: Decided) -> str:
    """The gain with its bound, and what is left of it with more training."""
    gain = found.gain
    if gain is None:
        return f"{sentence_case(own.evidence)}."
    if own.no_go in ("dead_space", "below_noise") and gain.mean is not None:
        chance = ", which may be chance" if gain.upper is None or gain.upper > 0 else ""
        where = f"on {counted(gain.pairs, 'fresh seed')} the search's winner is"
        return f"No gain is shown: {where} {better(gain.mean)} than the baseline{chance}."
    said = f"{sentence_case(gain_in_words(run.state, gain))}."
    share = kept(found)
    if found.rung is None or share is None or own.grade == "go":
        return said
    held = "the gain is lost" if share <= 0 else f"{percent(share, 3)} of the gain is kept"
    return f"{said} With {found.rung_label} {held} ({counted(found.rung.pairs, 'seed')})."


def _meaning(found: Findings, own: Decided) -> str:
    which: str = own.no_go or own.grade
    is_average_met = all(one.met for one in found.conditions if one.rule == "persistence")
    if which == "does_not_persist" and not is_average_met:
        which = "one_candidate"
    more = found.rung_label or "more training"
    return _MEANING[which].format(asked=percent(found.asked), more=more)


_MEANING = {
    "go_persists": (
        "a gain of {asked} or more that luck does not explain, and most of it stays with {more}"
    ),
    "go": (
        "a gain of {asked} or more that luck does not explain, with as much training as the "
        "search's evaluations had"
    ),
    "dead_space": "that wherever the search set the knobs, scores differ by no more than chance",
    "below_noise": (
        "that no gain can be told from chance, because there is none or because the noise hides it"
    ),
    "too_small": "that there is a gain, but smaller than the {asked} that was asked",
    "does_not_persist": "that the gain is gone with {more}",
    "one_candidate": (
        "that one candidate gained and the search as a whole did not, which looks like its luck"
    ),
    "pathological": (
        "that the winner's own trainings fail, explode or are unstable: it cannot be relied on"
    ),
    "unstable": "that too many evaluations failed for the comparison to mean anything",
}


def _found(run: Run, own: Decided) -> str:
    if own.grade != "no_go":
        gain = "" if own.gain is None else f" {better(own.gain)} than the baseline"
        moved = text.moves(run.knobs)
        parts = [f"Yes: knobs{gain}.", _scores(run), f"Largest moves: {moved}." if moved else ""]
        return " ".join(filter(None, parts))
    if own.no_go == "too_small" and own.gain is not None:
        return f"Too little: {better(own.gain)} than the baseline, which stays. {_scores(run)}"
    return "No. Nothing is recommended: the baseline stays."


def _scores(run: Run) -> str:
    """`Held-out bits per byte (lower is better): 3.1094 against the baseline's 3.1699.`"""
    means = winner_means(run.state)
    if means is None:
        return ""
    what = sentence_case(measured_in(run.state))
    return f"{what} (lower is better): {means[1]:.5g} against the baseline's {means[0]:.5g}."


def _sure(found: Findings) -> str:
    gain = found.gain
    if gain is None or gain.mean is None:
        return "Not at all: there is no seed on which both it and the baseline have a score."
    if gain.lower is None or gain.upper is None:
        return f"Hardly: it was seen on {counted(gain.pairs, 'seed')} only."
    size = percent(gain.mean, 3) if gain.mean >= 0 else better(gain.mean)
    best = (
        f"Best estimate {size}, measured on {counted(gain.pairs, 'new seed')} (other random "
        "numbers) that were not used to choose it."
    )
    missed = ""
    if not gain.is_shown and gain.detectable:
        missed = (
            f" A true gain of {percent(gain.detectable, 3)} would have been seen 8 times of 10."
        )
    return f"{_bound(gain, gain.lower, gain.upper)} {best}{missed}"


def _bound(gain: Gain, lower: float, upper: float) -> str:
    sure = percent(1 - gain.level)
    if gain.is_shown:
        return f"{sure} sure of {percent(lower, 3)} or more."
    if upper <= 0:
        return f"{sure} sure that there is no gain."
    return "Not sure that there is any gain."


# Over, and not compared with the baseline


def _over(run: Run) -> Answer:
    is_smoke = run.plan.phase == "phase1" and run.plan.tier == "min"
    same, counts = text.same_scores(run), run.counts
    way = _compared_by(run, same=same, is_smoke=is_smoke)
    if counts.ok and not same and not is_smoke:
        way = wider(run, way)
    called, mood = _title_of_over(run, same=same, is_smoke=is_smoke)
    found = f"Nothing: all {counts.settled} evaluations failed."
    if counts.ok:
        moved = text.moves(run.knobs)
        found = same or (
            "Everything works. Whether better settings exist is not what a smoke test asks."
            if is_smoke
            else "Knobs that are not compared with the baseline yet."
            + (f" Largest moves: {moved}." if moved else "")
        )
    return Answer(
        title=called,
        sentence=_settled(run),
        but=uncapitalized(" ".join(run.cautions)) if counts.ok else "",
        meaning=(
            "A smoke test (tier min) tries out whether everything works; it is too small to find "
            "anything."
            if is_smoke
            else "No comparison with the baseline on fresh seeds was planned."
        ),
        found=found,
        sure=(
            "Of better settings not at all: nothing was compared with the baseline on fresh seeds, "
            "and a search's own scores are no evidence."
        ),
        cost=text.cost(run),
        next=way.said,
        commands=way.commands,
        otherwise=way.otherwise,
        mood=mood,
    )


def _title_of_over(run: Run, *, same: str, is_smoke: bool) -> tuple[str, Mood]:
    counts, failed = run.counts, sum(run.counts.failed.values())
    if not counts.ok:
        return ("Smoke test failed" if is_smoke else "Finished, no verdict"), "trouble"
    if same:
        return "All scores are the same", "caution"
    if not is_smoke:
        return "Finished, no verdict", "open"
    if failed:
        return f"Smoke test over, {failed} of {counts.settled} failed", "open"
    return "Smoke test passed", "good"


def _settled(run: Run) -> str:
    """How many ran, and why no more of them."""
    count, failed = run.counts.settled, sum(run.counts.failed.values())
    scored = f"All {count} evaluations gave a score."
    if failed:
        scored = f"{count - failed} of {count} evaluations gave a score, {failed} failed."
    ended = run.state.ended
    if ended is None:
        return scored
    return f"{scored} Rule {ended.rule} ended the search: {one_line(ended.evidence)}."


def _compared_by(run: Run, *, same: str, is_smoke: bool) -> NextStep:
    if same:
        lines = (of_objective(run, "dry-run"), of_objective(run, "space", "check"))
        said = "See what an evaluation is given, and whether a knob moves the score."
        return NextStep(said, lines)
    if is_smoke:
        count = TIERS["phase1", "target"].evaluations
        said = f"Search in earnest: tier target has {count} evaluations and ends in a verdict."
        search = of_objective(run, "phase1", "--tier", "target")
        plan = of_objective(run, "plan", "phase1")
        return NextStep(said, (search, plan), "To see first what that takes:")
    words = ("best", named(run), "--train", "--times", "1", "--seeds", "8", "--compare")
    seconds = run.eval_seconds
    price = "" if seconds is None else f", about {about(16 * seconds)} of device time in all"
    said = (
        "Train the recommendation and the baseline on the same 8 fresh seeds, which "
        f"compares them (16 evaluations{price})."
    )
    return NextStep(said, (command(*words),))


# Runs that only measure


def _calibrated(run: Run) -> Answer:
    scores = run.scores
    return Answer(
        title="Baseline measured" if scores else "Baseline not measured",
        sentence=_baseline(run, scores),
        meaning="The baseline was evaluated, for searches to be compared with.",
        found=_noise(run, scores),
        sure=_spread(run, scores),
        cost=text.cost(run),
        next="See what a search would take, and what it could tell.",
        commands=(of_objective(run, "plan", "phase1"),),
        mood="good" if scores else "trouble",
    )


def _baseline(run: Run, scores: list[float]) -> str:
    if not scores:
        return f"All {run.counts.settled} evaluations of the baseline failed."
    what = sentence_case(measured_in(run.state))
    return (
        f"{what} of the baseline: {fmean(scores):.5g}, the mean of {counted(len(scores), 'seed')} "
        "(lower is better)."
    )


def _noise(run: Run, scores: list[float]) -> str:
    if not scores:
        return "Nothing: no evaluation has a score."
    took = "" if run.eval_seconds is None else f" One evaluation takes {about(run.eval_seconds)}."
    if len(scores) < 2 or no_share(measure(run.state)):
        return f"The baseline's score.{took}"
    noise, sd = abs(stdev(scores) / fmean(scores)), stdev(scores)
    return (
        f"The baseline's score, and its noise: from seed to seed it varies by {percent(noise, 3)} "
        f"(a standard deviation of {sd:.3g}).{took}"
    )


def _spread(run: Run, scores: list[float]) -> str:
    """How well the noise is known, and what gain stands out from it."""
    if len(scores) < 2:
        return "One seed says nothing of how far scores differ from seed to seed."
    mean, sd = abs(fmean(scores)), stdev(scores)
    if why := no_share(measure(run.state)):
        return f"No gain can be told: {why}."
    if not sd:
        return f"All {len(scores)} seeds gave one score: {ONE_SCORE}."
    low, high = (percent(bound / mean, 3) for bound in sd_interval(sd, len(scores)))
    limits = run.plan.thresholds
    seen = percent(detectable(sqrt(2) * sd / mean, VERDICT_SEEDS, limits.go_level), 3)
    return (
        f"95% sure that the noise is from {low} to {high}. With the noise as measured, a search's "
        f"comparison on {VERDICT_SEEDS} fresh seeds would see a true gain of {seen} 8 times of 10; "
        f"a Go needs {percent(limits.go_gain)}."
    )


def _checked(run: Run) -> Answer:
    found = run.check
    if found is None:
        return _proxy_checked(run)
    alive, count = found.names("alive"), len(found.knobs)
    way = _search_over(run, found)
    move = "moves" if len(alive) == 1 else "move"
    rate = percent(run.plan.thresholds.alive_level)
    return Answer(
        title=f"{len(alive) or 'None'} of {counted(count, 'knob')} {move} the score",
        sentence=_moving(found),
        meaning="Each knob was moved alone, either way, on the same seeds.",
        found=_sizes(found),
        sure=(
            f"Measured on {counted(found.seeds, 'seed')}, each compared with the {found.centre} "
            f"there. Of the knobs said to move the score {rate} at most are expected to be luck."
        ),
        cost=text.cost(run),
        next=way.said,
        commands=way.commands,
        mood="good" if alive else "bad",
    )


def _proxy_checked(run: Run) -> Answer:
    """Of a check of short evaluations; or of one whose baseline was not measured."""
    said = text.sentence(run) if run.proxy is not None else "The baseline was not measured."
    return Answer(
        title="Checked" if run.proxy is not None else "Not checked",
        sentence=said,
        meaning="Candidates were evaluated short and in full, on the same seeds.",
        found=said,
        sure="See Verdict for what the comparison rests on.",
        cost=text.cost(run),
        next="Search over these knobs.",
        commands=(of_objective(run, "phase1", "--tier", "target"),),
        mood="good" if run.proxy is not None else "bad",
    )


def _moving(found: Liveness) -> str:
    """`x9 and x8 move the score; x1 does nothing to it; the other 7 are not shown to.`"""
    alive, dead = found.names("alive"), found.names("dead")
    left = len(found.knobs) - len(alive) - len(dead)
    if not alive and not dead:
        return "None of the knobs is shown to move the score."
    said = []
    if alive:
        said.append(f"{listed(alive)} {'moves' if len(alive) == 1 else 'move'} the score")
    if dead:
        does = "does" if len(dead) == 1 else "do"
        said.append(f"{listed(dead)} {does} nothing to {'it' if alive else 'the score'}")
    if left:
        said.append(f"the other {left} {'is' if left == 1 else 'are'} not shown to move it")
    return f"{'; '.join(said)}."


def _sizes(found: Liveness) -> str:
    """By how much each knob moves it, which way; the largest first."""
    alive = [one for one in found.knobs if one.verdict == "alive"]
    if not alive:
        return f"No: none of {counted(len(found.knobs), 'knob')} is shown to move the score."
    sizes = first_few([_size(one, found) for one in alive], MOST_NAMED)
    return f"Yes: {sizes}. Lower scores are better."


def _size(own: KnobFinding, found: Liveness) -> str:
    return f"{own.knob} {', '.join(_at(end, found) for end in own.ends if end.moves)}"


def _at(end: EndEffect, found: Liveness) -> str:
    """`3.1% worse at its low end`."""
    where = f"at its {end.end} end"
    if found.centre == "recommendation":
        where = f"a step {'down' if end.end == 'low' else 'up'}"
    difference = end.difference or 0.0
    side = "better" if difference < 0 else "worse"
    if not found.baseline:
        return f"{abs(difference):.3g} {side} {where}"
    return f"{percent(abs(difference / found.baseline), 3)} {side} {where}"


def _search_over(run: Run, found: Liveness) -> NextStep:
    search = (of_objective(run, "phase1", "--tier", "target"),)
    if dead := found.names("dead"):
        return NextStep(f"Search, and leave out what does nothing: {listed(dead, 5)}.", search)
    unproven = [one for one in found.knobs if one.verdict == "unproven"]
    if not unproven:
        return NextStep("Search over these knobs.", search)
    needed = [one.seeds_needed for one in unproven if one.seeds_needed is not None]
    if not found.names("alive") and needed:
        said = f"Check again with more seeds: {min(needed)} would show the first, if it is real."
        again = of_objective(run, "space", "check", "--seeds", str(min(needed)))
        return NextStep(said, (again,))
    return NextStep(
        f"Search over all {len(found.knobs)}: the other {len(unproven)} may matter too, by less "
        f"than {counted(found.seeds, 'seed')} can show.",
        search,
    )


def _campaign(run: Run, found: CampaignReport) -> Answer:
    """What a campaign's conditions and factors do to the score."""
    is_compared = any(row.comparisons for row in found.rows) or bool(found.effects)
    is_any = bool(found.found) or any(
        one.difference.is_found for row in found.rows for one in row.comparisons
    )
    plot = "effects"
    return Answer(
        title=_title_of_campaign(found, is_any=is_any) if is_compared else "Scores measured",
        sentence=campaign_sentence(found),
        meaning=(
            "Conditions were evaluated on the same seeds"
            f"{' and compared seed by seed' if is_compared else ''}."
        ),
        found=_effects(found, is_any=is_any),
        sure=_certainty(found, is_compared=is_compared),
        cost=text.cost(run),
        next=_after_a_campaign(found, is_any=is_any, is_compared=is_compared),
        commands=(f"{command('report', named(run))} --png {plot}",),
        mood="good" if is_any else "open",
    )


def _factors(found: CampaignReport) -> list[str]:
    """Factors with an effect, the largest first."""
    return list(dict.fromkeys(e.factors[0] for e in found.found if not e.is_interaction))


def _title_of_campaign(found: CampaignReport, *, is_any: bool) -> str:
    factors = _factors(found)
    if not is_any:
        return "No effect found"
    if not factors or len(factors) >= MOST_NAMED:
        return "Effects found"
    return f"{listed(factors)} {'moves' if len(factors) == 1 else 'move'} the score"


def _effects(found: CampaignReport, *, is_any: bool) -> str:
    """The effects with direction and size, then what has none."""
    said = []
    if own := [f"{_named(effect)}: {_effect_size(effect)}" for effect in found.found]:
        said.append(first_few(own, MOST_NAMED))
    if others := [_named(e) for e in found.effects if not e.difference.is_found]:
        said.append(f"no effect is shown of {listed(others, 5)}")
    sides: dict[str, list[str]] = {"better": [], "worse": [], "not shown to differ": []}
    for row in found.rows:
        for one in row.comparisons:
            if one.control == found.controls[0]:
                mean = one.difference.mean if one.difference.is_found else None
                side = "not shown to differ" if mean is None else "better" if mean < 0 else "worse"
                sides[side].append(row.name)
    if told := [f"{side} {listed(names, 5)}" for side, names in sides.items() if names]:
        said.append(f"against {found.controls[0]}: {', '.join(told)}")
    if not said:
        return "There is no control and no factor to compare by: only the scores."
    return f"{'Yes' if is_any else 'No'}: {'; '.join(said)}."


def _named(effect: Effect) -> str:
    """`matrix_lr 0.04 against 0.01`."""
    return name_of(effect).replace(": ", " ", 1)


def _effect_size(effect: Effect) -> str:
    own = in_words(effect.difference)
    return f"{own} than the two add up to" if effect.is_interaction else own


def _certainty(found: CampaignReport, *, is_compared: bool) -> str:
    if len(found.seeds) == 1:
        return "Not at all: with one seed nothing can be told from luck."
    said = f"{1 - found.level:.0%} sure of each range, on {len(found.seeds)} seeds."
    if not is_compared:
        return said
    said += (
        f" Of all that is called an effect here {found.rate:.0%} at most are expected to be luck."
    )
    if found.detectable_percent is None:
        return said
    return f"{said} An effect of {found.detectable_percent:.2g}% would be seen 8 times of 10."


def _after_a_campaign(found: CampaignReport, *, is_any: bool, is_compared: bool) -> str:
    if found.unsettled:
        return "Some conditions are not settled: repeat the command that began it. What there is:"
    if not is_compared:
        return "To show the scores, draw them:"
    if not is_any:
        return "More seeds in its file would show smaller effects. To show these, draw them:"
    levels = [f"{factor} {_level(found, factor)}" for factor in _factors(found)]
    if not levels:
        return "Take the condition with the best score. To show it, draw the effects:"
    apart = "each is the better level, averaged over the other factors"
    if any(effect.is_interaction for effect in found.found):
        apart = "they act together too, so look at the conditions before you mix them"
    return f"Take {listed(levels)}: {apart}. To show it, draw the effects:"


def _level(found: CampaignReport, factor: str) -> str:
    """The level with the lowest score: the first one, unless another is shown to be better."""
    own = [e for e in found.found if e.factors == (factor,) and e.difference.mean is not None]
    best = min(own, key=lambda effect: effect.difference.mean or 0.0)
    return best.levels[0] if (best.difference.mean or 0.0) < 0 else best.against[0]
