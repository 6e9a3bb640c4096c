"""The four answers that a reader wants first: found? how sure? at what cost? what next?

There is one function for each way a run can stand (going on, held up by a rule, decided, over
without a verdict) and for each run that only measures (a calibration, a check, a campaign). None
claims more than was measured.
"""

from statistics import fmean

from budgets.calibration import measure
from budgets.effects import CampaignReport
from budgets.events import Decided
from budgets.formatting import (
    better_when,
    command,
    counted,
    listed,
    one_line,
    percent,
    precise_duration,
    sentence_case,
    uncapitalized,
)
from budgets.proxy import LEAST_CANDIDATES, Certificate
from budgets.tiers import TIERS
from budgets.verdict import Findings, title, winner_means
from orchestrator.look import next_step, text
from orchestrator.look.campaign import campaign_sentence, differences
from orchestrator.look.files import measured_in
from orchestrator.look.next_step import AGAIN, NextStep, beginning, named, of_objective
from orchestrator.look.page import Answer, Mood
from orchestrator.look.run import Run
from orchestrator.plan.resolve import no_share


def answer(run: Run) -> Answer:
    """Return the answers as the run stands."""
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
    """Return the verdict, or the progress, in a line."""
    own = answer(run)
    return f"{own.title}: {own.sentence}"


def _answer(run: Run, title: str, mood: Mood, step: NextStep, sentence: str, **said: str) -> Answer:
    """Return an answer with what is the same for every run."""
    sure = "Not at all."
    if run.is_search:
        sure += " A search's own scores are no evidence of a gain: only fresh seeds are."
    found = "Not known: nothing is judged before all of it is over."
    if not run.counts.ok:
        found = "Nothing: no evaluation has a score."
    usual = {"found": found, "sure": sure, "cost": text.cost(run), "next": step.said}
    return Answer(
        title=title, mood=mood, sentence=sentence, commands=step.commands, **(usual | said)
    )


# Not over


def _going_on(run: Run) -> Answer:
    sentence, again = text.progress(run), NextStep(run.standing.way_on, beginning(run))
    if not run.state.opened:
        return _answer(run, "Planned, not begun", "open", again, sentence)
    if run.standing.way_on:
        return _answer(run, "Interrupted", "trouble", again, sentence)
    watch = f"{command('status', named(run))} --watch"
    step = NextStep(f"Watch it. If it was interrupted, {AGAIN}.", (watch,))
    return _answer(run, "In progress", "open", step, f"{sentence} {text.pace_line(run)}")


def _held_up(run: Run) -> Answer:
    triggers = run.ruling.triggers
    rules = listed(dict.fromkeys(trigger.rule for trigger in triggers))
    name = f"{'Paused' if run.decision == 'pause' else 'Stopped'} by rule {rules}"
    saw = "; ".join(text.rule(run.state, trigger) for trigger in triggers)
    return _answer(
        run, name, "trouble", next_step.way_on(run), f"{sentence_case(one_line(saw, 600))}."
    )


# Decided


def _decided(run: Run, found: Findings, own: Decided) -> Answer:
    is_go, but = own.grade != "no_go", uncapitalized(" ".join(text.cautions(run)))
    return _answer(
        run,
        title(own.grade, own.no_go),
        ("caution" if but else "good") if is_go else "bad",
        next_step.after_the_verdict(run),
        _verdict(run, found, own),
        but=but,
        found=_found(run, own),
        sure=_sure(found),
    )


def _verdict(run: Run, found: Findings, own: Decided) -> str:
    """Return the gain with its bound and what is left with more training, or what spoke against."""
    gain, share = found.gain, text.kept(found)
    if gain is None or own.no_go not in (None, "too_small", "below_noise"):
        return f"{sentence_case(text.decision(run.state, own))}."
    said = text.winner_in_words(run.state, gain)
    if own.no_go == "below_noise":
        chance = "" if gain.is_loss else ", and the difference may be chance"
        said = f"no gain is shown{chance}: {said}"
    parts = [f"{sentence_case(said)}."]
    if own.grade == "go_persists" and found.long_run is not None and share is not None:
        seeds = counted(found.long_run.pairs, "seed")
        kept = f"{percent(share, 3)} of the gain is kept"
        parts.append(f"With {found.long_run_label} {kept} ({seeds}).")
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
        ours, theirs = f"{means[1]:.5g}", f"{means[0]:.5g}"
        parts.append(
            f"{what} ({better_when(run.plan.direction)}): {ours}, the baseline's {theirs}."
        )
    return " ".join([*parts, text.moves(run.knobs)]).rstrip()


def _sure(found: Findings) -> str:
    gain = found.gain
    if gain is None or gain.lower is None or gain.upper is None:
        return "Not at all: too few seeds have a score of both it and the baseline."
    sure = f"{percent(1 - gain.level)} sure"
    said = f"{sure} of {percent(gain.lower, 3)} or more"
    if not gain.is_shown:
        said = f"{sure} that there is no gain" if gain.upper <= 0 else "Not sure of any gain"
    said += f", on {counted(gain.pairs, 'seed')} that were not used to choose it."
    return said if gain.is_shown else f"{said} {text.detectable(gain)}".rstrip()


# Over without a verdict


def _over(run: Run) -> Answer:
    state, said, is_min = run.state, dict[str, str](), run.plan.tier == "min"
    failed = sum(len(generation.failed) for generation in state.generations)
    parts = [f"All {state.accounts.evaluations} evaluations are settled, {failed} of them failed."]
    if state.ended is not None:
        why = one_line(text.rule(state, state.ended))
        parts.append(f"Rule {state.ended.rule} ended the search: {why}.")
    mood: Mood
    name, mood = "Finished, no verdict", "open" if run.counts.ok else "trouble"
    step = next_step.with_a_verdict(run)
    if run.counts.ok:
        said["but"] = uncapitalized(" ".join(text.cautions(run)))
        said["found"] = f"Not compared with the baseline yet. {text.moves(run.knobs)}".rstrip()
    if is_min and run.plan.phase == "phase1":
        said["found"] = "Nothing: a smoke test only shows that everything works."
        name = f"Smoke test, {failed} of {run.counts.settled} failed"
        if not failed:
            name, mood = "Smoke test passed", "good"
        count = TIERS["phase1", "target"].evaluations
        step = NextStep(f"Search for a verdict, with {count} evaluations.", (_search(run),))
    if len(run.scores) > 1 and len(set(run.scores)) == 1:
        name, mood = "All scores are the same", "caution"
        parts.append(f"All are {run.scores[0]:.5g}: the knobs do not seem to reach the score.")
        check = of_objective(run, "check", "knobs")
        step = NextStep("Check which knobs move the score at all.", (check,))
    no_go = "Nothing was compared with the baseline on fresh seeds, so this is no Go yet."
    if is_min:
        no_go = "Tier min only tests whether everything works: it cannot end in a Go."
    return _answer(run, name, mood, step, " ".join([*parts, no_go]), **said)


def _search(run: Run) -> str:
    return of_objective(run, "phase1", "--tier", "target")


# Runs that only measure


def _calibrated(run: Run) -> Answer:
    own = run.baseline
    plan = of_objective(run, "plan")
    step = NextStep("Plan a search: what it would take, and what gain it could show.", (plan,))
    if own is None:
        sentence = f"All {run.counts.settled} evaluations of the baseline failed."
        return _answer(run, "Baseline not measured", "trouble", step, sentence)
    found, sure = "The baseline's score.", "How far scores differ from seed to seed is not known."
    if why := no_share(measure(run.state)):
        sure = f"No gain can be told: {why}."
    elif own.sd and (bounds := own.sd_limits) is not None:
        noise, low, high = (percent(sd / abs(own.mean), 3) for sd in (own.sd, *bounds))
        found = f"The baseline's score, and its noise from seed to seed: {noise} (sd {own.sd:.3g})."
        sure = f"95% sure that the noise is {low} to {high}."
    found = f"{found} One evaluation takes {precise_duration(run.eval_seconds or 0.0)}."
    mean, seeds = f"{fmean(run.scores):.5g}", counted(len(run.scores), "seed")
    sentence = f"{sentence_case(measured_in(run.state))} of the baseline: {mean}, mean of {seeds}."
    return _answer(run, "Baseline measured", "good", step, sentence, found=found, sure=sure)


def _checked(run: Run) -> Answer:
    step, own = NextStep("Search over these knobs.", (_search(run),)), run.check
    if own is None:
        sentence = "The baseline is not measured, so nothing can be compared with it."
        return _answer(run, "Not checked", "trouble", step, sentence)
    alive, dead = own.names("alive"), own.names("dead")
    if dead:
        step = step._replace(said=f"Search without the dead knobs: {listed(dead, 5)}.")
    elif own.names("unproven") and not alive:
        again = of_objective(run, "check", "knobs", "--seeds", str(2 * own.seeds))
        step = NextStep("Check again on more seeds.", (again,))
    kinds = {"dead": dead, "unproven": own.names("unproven"), "unstable": own.unstable_ends}
    others = "".join(f"; {kind}: {', '.join(names)}" for kind, names in kinds.items() if names)
    return _answer(
        run,
        "Knobs checked",
        "good" if alive else "bad",
        step,
        f"{len(alive)} of {len(own.knobs)} knobs move the score{others}.",
        found=f"Yes, the largest first: {listed(alive, 5)}." if alive else "No.",
        sure=f"Measured on {counted(own.seeds, 'seed')}. Of the knobs said to move the score, at "
        f"most {percent(run.plan.thresholds.alive_level)} are expected to be chance.",
    )


def _short_evaluations(run: Run, label: str, own: Certificate | None) -> Answer:
    """Return whether the short evaluation of that label may stand in for the full one."""
    step = NextStep("Search over these knobs.", (_search(run),))
    if own is None:
        return _answer(run, "Not checked", "trouble", step, f"{label}: nothing was compared.")
    tau, sure = "none: one of the two tells no candidates apart", "Not at all."
    if own.tau is not None and own.lower is not None and own.upper is not None:
        tau, sure = f"{own.tau:.2f}", f"{1 - own.level:.0%} sure of "
        sure += f"a Kendall's tau-b of {own.lower:.2f} to {own.upper:.2f}."
    sentence = (
        f"{label} is {'' if own.holds else 'not '}good enough to stand in for the full evaluation: "
        f"over {own.compared} candidates on the same seeds Kendall's tau-b is {tau} (its lower "
        f"bound must be {own.asked:g} or more, over {LEAST_CANDIDATES} candidates or more)."
    )
    found = "Yes: short evaluations may be used." if own.holds else "No: use full evaluations."
    mood: Mood = "good" if own.holds else "bad"
    return _answer(run, "Checked", mood, step, sentence, found=found, sure=sure)


def _campaign(run: Run, own: CampaignReport) -> Answer:
    judged = differences(own)
    shown = sum(one.is_found for one in judged)
    effects = command("report", named(run), "--html")
    step = NextStep("Use what is better. The effects:" if shown else "The effects:", (effects,))
    if own.unsettled:
        step = NextStep(f"Some conditions are not settled: {AGAIN}.", beginning(run))
    sure = (
        f"{1 - own.level:.0%} sure of each range, on {len(own.seeds)} seeds. Of all that is called "
        f"an effect, at most {own.rate:.0%} are expected to be chance."
    )
    if len(own.seeds) == 1:
        sure = "Not at all: with one seed nothing can be told from chance."
    return _answer(
        run,
        "Effects found" if shown else "No effect found",
        "good" if shown else "open",
        step,
        campaign_sentence(own),
        found=f"Yes: {shown} of {len(judged)} differences are beyond chance."
        if shown
        else f"No: none of {len(judged)} differences is beyond chance.",
        sure=sure,
    )
