"""The four answers that a person wants first: found? how sure? at what cost? what next?

One function for each way to stand: going on, held up by a rule, decided, over without a verdict;
and for runs that only measure: a calibration, a check, a campaign. None claims more than was
measured.
"""

from math import sqrt
from statistics import fmean

from budgets.calibration import measure
from budgets.effects import CampaignReport
from budgets.events import Decided
from budgets.formatting import (
    about,
    command,
    counted,
    listed,
    one_line,
    percent,
    sentence_case,
    uncapitalized,
)
from budgets.liveness import Liveness
from budgets.proxy import LEAST_CANDIDATES, Certificate
from budgets.stats import detectable
from budgets.tiers import TIERS
from budgets.verdict import Findings, title, winner_means
from orchestrator.config import VERDICT_SEEDS
from orchestrator.look import text, words
from orchestrator.look.blocks import Answer, Mood
from orchestrator.look.campaign import campaign_sentence, differences
from orchestrator.look.files import measured_in
from orchestrator.look.next_step import (
    AGAIN,
    NextStep,
    after_the_verdict,
    beginning,
    machine_words,
    named,
    of_objective,
    way_on,
    with_a_verdict,
)
from orchestrator.look.run import Run
from orchestrator.plan.resolve import no_share

NO_EVIDENCE = "Not at all: a search's own scores are no evidence of a gain, only fresh seeds are."


def answer(run: Run) -> Answer:
    """The answers of a run as it stands."""
    if run.state.decided is not None and run.findings is not None:
        return _decided(run, run.findings, run.state.decided)
    if run.decision == "continue" or not run.state.opened:
        return _going_on(run)
    if run.decision != "done":
        return _held_up(run)
    if run.campaign is not None:
        return _campaign(run, run.campaign)
    if run.plan.proxy is not None:
        return _short_evaluations(run, run.plan.proxy.variant.label, run.proxy)
    measured = {"calibration": _calibrated, "check": _checked}
    return measured.get(run.plan.phase, _over)(run)


def in_short(run: Run) -> str:
    """The verdict or how far it is, in a line."""
    own = answer(run)
    return f"{own.title}: {own.sentence}"


def _answer(run: Run, called: str, mood: Mood, way: NextStep, sentence: str, **said: str) -> Answer:
    """With what is said of every run alike."""
    unknown = "Not known: nothing is judged before all of it is over."
    usual = {
        "found": unknown if run.counts.ok else "Nothing: no evaluation has a score.",
        "sure": NO_EVIDENCE if run.is_search else "Not at all.",
        "cost": text.cost(run),
        "next": way.said,
        "otherwise": way.otherwise,
    }
    return Answer(
        title=called, mood=mood, sentence=sentence, commands=way.commands, **(usual | said)
    )


# Not over


def _going_on(run: Run) -> Answer:
    sentence, again = text.progress(run), NextStep(run.standing.way_on, beginning(run))
    if not run.state.opened:
        return _answer(run, "Planned, not begun", "open", again, sentence)
    if run.standing.way_on:
        return _answer(run, "Interrupted", "trouble", again, sentence)
    watch = (f"{command('status', named(run))} --watch",)
    way = NextStep(f"Watch it. If it was interrupted, {AGAIN}.", watch)
    return _answer(run, "In progress", "open", way, f"{sentence} {text.pace_line(run)}")


def _held_up(run: Run) -> Answer:
    rules = listed(dict.fromkeys(trigger.rule for trigger in run.ruling.triggers))
    called = f"{'Paused' if run.decision == 'pause' else 'Stopped'} by rule {rules}"
    seen = sentence_case(one_line(words.held_up(run.state, run.ruling), 600))
    return _answer(run, called, "trouble", way_on(run), f"{seen}.")


# Decided


def _decided(run: Run, found: Findings, own: Decided) -> Answer:
    is_go, but = own.grade != "no_go", uncapitalized(" ".join(text.cautions(run)))
    return _answer(
        run,
        title(own.grade, own.no_go),
        ("caution" if but else "good") if is_go else "bad",
        after_the_verdict(run, found),
        _verdict(run, found, own),
        but=but,
        found=_found(run, own),
        sure=_sure(found),
    )


def _verdict(run: Run, found: Findings, own: Decided) -> str:
    """The gain with its bound, and what is left of it with more training; or what spoke against."""
    gain, share = found.gain, text.kept(found)
    if gain is None or own.no_go not in (None, "too_small", "below_noise"):
        return f"{sentence_case(words.decision(run.state, own))}."
    said = words.gain_in_words(run.state, gain)
    if own.no_go == "below_noise":
        chance = "" if gain.is_loss else ", and the difference may be chance"
        said = f"no gain is shown{chance}: {said}"
    parts = [f"{sentence_case(said)}."]
    if own.grade == "go_persists" and found.long_run is not None and share is not None:
        seeds = counted(found.long_run.pairs, "seed")
        parts.append(
            f"With {found.long_run_label} {percent(share, 3)} of the gain is kept ({seeds})."
        )
    if found.incumbent is not None:
        survives = "survives" if found.incumbent.is_shown else "does not survive"
        gained = text.interval(found.incumbent)
        parts.append(f"The winner of phase 1 {survives}: {gained} over the baseline.")
    return " ".join(parts)


def _found(run: Run, own: Decided) -> str:
    if own.grade == "no_go" and own.no_go != "too_small":
        return "No. Nothing is recommended: the baseline stays."
    means = winner_means(run.state)
    parts = ["Too little: the baseline stays." if own.grade == "no_go" else "Yes, better knobs."]
    if means is not None:
        what = sentence_case(measured_in(run.state))
        parts.append(f"{what} (lower is better): {means[1]:.5g}, the baseline's {means[0]:.5g}.")
    return " ".join([*parts, text.moves(run.knobs)]).rstrip()


def _sure(found: Findings) -> str:
    gain = found.gain
    if gain is None or gain.lower is None or gain.upper is None:
        return "Not at all: too few seeds have a score of both it and the baseline."
    sure, missed = f"{percent(1 - gain.level)} sure", ""
    said = f"{sure} of {percent(gain.lower, 3)} or more"
    if not gain.is_shown:
        said = f"{sure} that there is no gain" if gain.upper <= 0 else "Not sure of any gain"
    if not gain.is_shown and gain.detectable:
        missed = f" Detectable gain at 80 % power: {percent(gain.detectable, 3)}."
    return f"{said}, on {counted(gain.pairs, 'seed')} that were not used to choose it.{missed}"


# Over, and not compared with the baseline


def _over(run: Run) -> Answer:
    state, said = run.state, dict[str, str]()
    failed = sum(len(generation.failed) for generation in state.generations)
    parts = [f"All {state.accounts.evaluations} evaluations are settled, {failed} of them failed."]
    if state.ended is not None:
        why = one_line(words.seen(state, state.ended))
        parts.append(f"Rule {state.ended.rule} ended the search: {why}.")
    called, way = "Finished, no verdict", with_a_verdict(run)
    mood: Mood = "open" if run.counts.ok else "trouble"
    no_go = "Nothing was compared with the baseline on fresh seeds, so this is no Go yet."
    if run.counts.ok:
        said["but"] = uncapitalized(" ".join(text.cautions(run)))
        said["found"] = f"Not compared with the baseline yet. {text.moves(run.knobs)}".rstrip()
    if run.plan.tier == "min":
        no_go = "Tier min only tests whether everything works: it cannot end in a Go."
    if run.plan.phase == "phase1" and run.plan.tier == "min":
        said["found"] = "Nothing: a smoke test only shows that everything works."
        called = f"Smoke test, {failed} of {run.counts.settled} failed"
        if not failed:
            called, mood = "Smoke test passed", "good"
        count = TIERS["phase1", "target"].evaluations
        earnest = f"Search in earnest: {count} evaluations, which end in a verdict."
        way = NextStep(earnest, (_search(run),))
    if len(run.scores) > 1 and len(set(run.scores)) == 1:
        called, mood = "All scores are the same", "caution"
        parts.append(f"All are {run.scores[0]:.5g}: the knobs do not seem to reach the score.")
        check = of_objective(run, "check", "knobs")
        way = NextStep("Check which knobs move the score at all.", (check,))
    return _answer(run, called, mood, way, " ".join([*parts, no_go]), **said)


def _search(run: Run) -> str:
    return of_objective(run, "phase1", "--tier", "target")


# Runs that only measure


def _calibrated(run: Run) -> Answer:
    own, limits = run.baseline, run.plan.thresholds
    plan = of_objective(run, "plan", *machine_words(run))
    way = NextStep("See what a search would take, and what it could tell.", (plan,))
    if own is None:
        sentence = f"All {run.counts.settled} evaluations of the baseline failed."
        return _answer(run, "Baseline not measured", "trouble", way, sentence)
    found, sure = "The baseline's score.", "How far scores differ from seed to seed is not known."
    if why := no_share(measure(run.state)):
        sure = f"No gain can be told: {why}."
    elif own.sd and own.sd_low is not None and own.sd_high is not None:
        noise, low, high = (
            percent(sd / abs(own.mean), 3) for sd in (own.sd, own.sd_low, own.sd_high)
        )
        error = sqrt(2) * own.sd / abs(own.mean)
        seen = percent(detectable(error, VERDICT_SEEDS, limits.go_level), 3)
        found = f"The baseline's score, and its noise from seed to seed: {noise} (sd {own.sd:.3g})."
        sure = (
            f"95% sure that the noise is {low} to {high}. With it as measured, the detectable gain "
            f"on {VERDICT_SEEDS} fresh seeds is {seen} at 80 % power; a Go needs "
            f"{percent(limits.go_gain)}."
        )
    found = f"{found} One evaluation takes {about(run.eval_seconds or 0.0)}."
    mean, seeds = f"{fmean(run.scores):.5g}", counted(len(run.scores), "seed")
    sentence = f"{sentence_case(measured_in(run.state))} of the baseline: {mean}, mean of {seeds}."
    return _answer(run, "Baseline measured", "good", way, sentence, found=found, sure=sure)


def _checked(run: Run) -> Answer:
    way, own = NextStep("Search over these knobs.", (_search(run),)), run.check
    if own is None:
        sentence = "The baseline is not measured, so nothing can be compared with it."
        return _answer(run, "Not checked", "trouble", way, sentence)
    alive, dead = own.names("alive"), own.names("dead")
    needed = [one.seeds_needed for one in own.knobs if one.seeds_needed is not None]
    if dead:
        way = way._replace(said=f"Search, and leave out what does nothing: {listed(dead, 5)}.")
    elif needed and not alive:
        said = f"Check again: {min(needed)} seeds would show the first, if it is real."
        seeds = ("--seeds", str(min(needed)))
        way = NextStep(said, (of_objective(run, "check", "knobs", *seeds),))
    sure = (
        f"Measured on {counted(own.seeds, 'seed')}. Of the knobs said to move the score "
        f"{percent(run.plan.thresholds.alive_level)} at most are expected to be chance."
    )
    found = f"Yes, the largest first: {listed(alive, 5)}." if alive else "No."
    mood: Mood = "good" if alive else "bad"
    return _answer(run, "Knobs checked", mood, way, _knobs(own), found=found, sure=sure)


def _knobs(found: Liveness) -> str:
    """`3 of 4 knobs move the score; dead: x3.`"""
    parts = {
        "dead": found.names("dead"),
        "unproven": found.names("unproven"),
        "unstable": found.unstable_ends,
    }
    named = "".join(f"; {what}: {', '.join(names)}" for what, names in parts.items() if names)
    return f"{len(found.names('alive'))} of {len(found.knobs)} knobs move the score{named}."


def _short_evaluations(run: Run, label: str, own: Certificate | None) -> Answer:
    """Whether the short evaluation of that label may stand in for the full one."""
    way = NextStep("Search over these knobs.", (_search(run),))
    if own is None:
        return _answer(run, "Not checked", "trouble", way, f"{label}: nothing was compared.")
    tau, sure = "none: one of the two tells no candidates apart", "Not at all."
    if own.tau is not None and own.lower is not None and own.upper is not None:
        tau, sure = f"{own.tau:.2f}", f"{1 - own.level:.0%} sure of "
        sure += f"a Kendall's tau-b of {own.lower:.2f} to {own.upper:.2f}."
    sentence = (
        f"{label} is {'' if own.holds else 'not '}good enough to stand in for the full evaluation: "
        f"over {own.compared} candidates on the same seeds Kendall's tau-b is {tau} (asked of the "
        f"lower bound: {own.asked:g}, over {LEAST_CANDIDATES} or more)."
    )
    found = "Yes: short evaluations may be used." if own.holds else "No: use full evaluations."
    mood: Mood = "good" if own.holds else "bad"
    return _answer(run, "Checked", mood, way, sentence, found=found, sure=sure)


def _campaign(run: Run, own: CampaignReport) -> Answer:
    """What a campaign's conditions and factors do to the score."""
    judged, sentence = differences(own), campaign_sentence(own)
    shown = sum(one.is_found for one in judged)
    use = "Use what is shown to be better. " if shown else ""
    way = NextStep(f"{use}The effects:", (command("report", named(run), "--html"),))
    if own.unsettled:
        way = NextStep(f"Some conditions are not settled: {AGAIN}.", beginning(run))
    sure = (
        f"{1 - own.level:.0%} sure of each range, on {len(own.seeds)} seeds. Of all that is called "
        f"an effect {own.rate:.0%} at most are expected to be chance."
    )
    if len(own.seeds) == 1:
        sure = "Not at all: with one seed nothing can be told from chance."
    if shown:
        found = f"Yes: {shown} of {len(judged)} differences are beyond chance."
        return _answer(run, "Effects found", "good", way, sentence, found=found, sure=sure)
    found = f"No: of {len(judged)} differences none is beyond chance."
    return _answer(run, "No effect found", "open", way, sentence, found=found, sure=sure)
