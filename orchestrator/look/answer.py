"""The four answers that a person wants first: found? how sure? at what cost? what next?

One function for each way to stand: going on, held up by a rule, decided, over without a verdict;
and for runs that only measure: a calibration, a check, a campaign.
"""

from math import sqrt

from budgets.calibration import measure
from budgets.effects import CampaignReport
from budgets.events import Decided
from budgets.formatting import (
    about,
    command,
    counted,
    listed,
    percent,
    sentence_case,
    uncapitalized,
)
from budgets.stats import detectable
from budgets.tiers import TIERS
from budgets.verdict import Findings, title, winner_means
from orchestrator.config import VERDICT_SEEDS
from orchestrator.look import text
from orchestrator.look.blocks import Answer, Mood
from orchestrator.look.files import measured_in
from orchestrator.look.next_step import (
    AGAIN,
    NextStep,
    after_the_verdict,
    beginning,
    named,
    of_objective,
    planning,
    way_on,
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
    measured = {"calibration": _calibrated, "check": _checked}
    return measured.get(run.plan.phase, _over)(run)


def _answer(run: Run, called: str, mood: Mood, way: NextStep, **said: str) -> Answer:
    """With what is said of every run alike."""
    unknown = "Not known: nothing is judged before all of it is over."
    usual = {
        "sentence": said.get("sentence") or text.outcome(run),
        "found": unknown if run.counts.ok else "Nothing: no evaluation has a score.",
        "sure": NO_EVIDENCE if run.is_search else "Not at all.",
        "cost": text.cost(run),
        "next": way.said,
        "otherwise": way.otherwise,
    }
    return Answer(title=called, mood=mood, commands=way.commands, **(usual | said))


# Not over


def _going_on(run: Run) -> Answer:
    sentence, again = text.progress(run), NextStep(run.standing.way_on, beginning(run))
    if not run.state.opened:
        return _answer(run, "Planned, not begun", "open", again, sentence=sentence)
    if run.standing.way_on:
        return _answer(run, "Interrupted", "trouble", again, sentence=sentence)
    watch = (f"{command('status', named(run))} --watch",)
    way = NextStep(f"Watch it. If it was interrupted, {AGAIN}.", watch)
    sentence = f"{sentence} {text.pace_line(run)}"
    return _answer(run, "In progress", "open", way, sentence=sentence)


def _held_up(run: Run) -> Answer:
    rules = listed(dict.fromkeys(trigger.rule for trigger in run.ruling.triggers))
    called = f"{'Paused' if run.decision == 'pause' else 'Stopped'} by rule {rules}"
    return _answer(run, called, "trouble", way_on(run), sentence=text.held_up(run))


# Decided


def _decided(run: Run, found: Findings, own: Decided) -> Answer:
    is_go, but = own.grade != "no_go", uncapitalized(" ".join(run.cautions))
    return _answer(
        run,
        title(own.grade, own.no_go),
        ("caution" if but else "good") if is_go else "bad",
        after_the_verdict(run, found),
        but=but,
        found=_found(run, own),
        sure=f"{_sure(found)} {text.best_by_chance(found)}".rstrip(),
    )


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
        seen = percent(gain.detectable, 3)
        missed = f" Detectable gain at 80 % power: {seen}."
    return f"{said}, on {counted(gain.pairs, 'seed')} that were not used to choose it.{missed}"


# Over, and not compared with the baseline


def _over(run: Run) -> Answer:
    failed, said = sum(run.counts.failed.values()), dict[str, str]()
    mood: Mood = "open" if run.counts.ok else "trouble"
    words = ("best", named(run), "--train", "--times", "1", "--seeds", "8")
    compare = "Compare it with the baseline on 8 fresh seeds, in 16 evaluations."
    called, way = "Finished, no verdict", NextStep(compare, (command(*words),))
    if run.counts.ok:
        said["but"] = uncapitalized(" ".join(run.cautions))
        said["found"] = f"Not compared with the baseline yet. {text.moves(run.knobs)}".rstrip()
    if run.plan.phase == "phase1" and run.plan.tier == "min":
        said["found"] = "Nothing: a smoke test only shows that everything works."
        called = f"Smoke test, {failed} of {run.counts.settled} failed"
        if not failed:
            called, mood = "Smoke test passed", "good"
        count = TIERS["phase1", "target"].evaluations
        earnest = f"Search in earnest: {count} evaluations, which end in a verdict."
        way = NextStep(earnest, (_search(run),))
    if text.same_scores(run):
        called, mood = "All scores are the same", "caution"
        check = of_objective(run, "check", "knobs")
        way = NextStep("Check which knobs move the score at all.", (check,))
    return _answer(run, called, mood, way, **said)


def _search(run: Run) -> str:
    return of_objective(run, "phase1", "--tier", "target")


# Runs that only measure


def _calibrated(run: Run) -> Answer:
    own, limits = run.baseline, run.plan.thresholds
    see = "See what a search would take, and what it could tell."
    way = NextStep(see, (planning(run),))
    if own is None:
        return _answer(run, "Baseline not measured", "trouble", way)
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
    return _answer(run, "Baseline measured", "good", way, found=found, sure=sure)


def _checked(run: Run) -> Answer:
    way = NextStep("Search over these knobs.", (_search(run),))
    if run.proxy is not None:
        is_good = run.proxy.holds
        found = "Yes: short evaluations may be used." if is_good else "No: use full evaluations."
        sure = "See the range of Kendall's tau-b."
        return _answer(run, "Checked", "good" if is_good else "bad", way, found=found, sure=sure)
    if run.check is None:
        return _answer(run, "Not checked", "trouble", way)
    own, alive, dead = run.check, run.check.names("alive"), run.check.names("dead")
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
    return _answer(run, "Knobs checked", mood, way, found=found, sure=sure)


def _campaign(run: Run, own: CampaignReport) -> Answer:
    """What a campaign's conditions and factors do to the score."""
    differences = [effect.difference for effect in own.effects]
    differences += [one.difference for row in own.rows for one in row.comparisons]
    count, shown = len(differences), sum(one.is_found for one in differences)
    use = "Use what is shown to be better. " if shown else ""
    way = NextStep(f"{use}The effects:", (f"{command('report', named(run))} --plot effects",))
    if own.unsettled:
        way = NextStep(f"Some conditions are not settled: {AGAIN}.", beginning(run))
    sure = (
        f"{1 - own.level:.0%} sure of each range, on {len(own.seeds)} seeds. Of all that is called "
        f"an effect {own.rate:.0%} at most are expected to be chance."
    )
    if len(own.seeds) == 1:
        sure = "Not at all: with one seed nothing can be told from chance."
    if shown:
        found = f"Yes: {shown} of {count} differences are beyond chance."
        return _answer(run, "Effects found", "good", way, found=found, sure=sure)
    found = f"No: of {count} differences none is beyond chance; more seeds would show smaller ones."
    return _answer(run, "No effect found", "open", way, found=found, sure=sure)
