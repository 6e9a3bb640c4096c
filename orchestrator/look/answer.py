"""The four answers that a reader wants first: found? how sure? at what cost? what next?

There is one function for each way a run can stand (going on, held up by a rule, decided, over
without a verdict) and for each run that only measures (a calibration, a check, a campaign). None
claims more than was measured. What to do next comes with the commands that do it.
"""

from contextlib import suppress
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from budgets.checks import LEAST_CANDIDATES, Certificate, measure
from budgets.effects import CampaignReport
from budgets.events import Decided, NoGo
from budgets.formatting import (
    better_when,
    command,
    counted,
    listed,
    one_line,
    percent,
    precise_duration,
    quoted,
    rounded_up,
    sentence_case,
    uncapitalized,
)
from budgets.rules import OVERRIDABLE, Reading
from budgets.state import RunState
from budgets.tiers import TIERS, size
from budgets.verdict import Findings, title, winner_gain, winner_means
from objectives import secrets
from objectives.api import SetupError
from orchestrator.config import VERDICT_SEEDS, assign, objective_words
from orchestrator.look import text
from orchestrator.look.files import measured_in
from orchestrator.look.page import Answer, Mood
from orchestrator.look.run import Run
from orchestrator.plan.resolve import found_as, no_share

NAME_CHARACTERS = 48  # of a run's id that begins the id of the next run

ONCE = ("--json", "--override", "--reason")
"""Options that are meant for one session: a repeated command leaves them out."""

MACHINE = ("--executor", "--address", "--device", "--workers")
"""Options that say where evaluations run."""

AGAIN = "repeat the command that began it"


class NextStep(NamedTuple):
    """What to do, and the commands for it."""

    said: str
    commands: tuple[str, ...] = ()


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
        sure += " A search's own scores do not show a gain: only fresh seeds are."
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
    saw = one_line("; ".join(text.rule(run.state, trigger) for trigger in triggers), 600)
    return _answer(run, name, "trouble", _way_on(run), f"{sentence_case(saw)}.")


def _way_on(run: Run) -> NextStep:
    """Return what to do about the rules that paused or stopped the run."""
    triggers, again, look = run.ruling.triggers, beginning(run), command("report", named(run))
    rules = list(dict.fromkeys(trigger.rule for trigger in triggers))
    budget = next((trigger for trigger in triggers if trigger.rule == "budget"), None)
    if budget is not None:
        more = f"{command('amend', named(run))} {_more_needed(run.state, budget)}"
        said = f"To spend more, raise the cap by at least that much, then {AGAIN}:"
        return NextStep(said, (f'{more} --reason "WHY"', *again))
    said, options = f"Fix what is named above, then {AGAIN}", ""
    if run.plan.phase == "calibration" and not run.counts.ok:
        said = f"{said} (with --again if nothing in it has changed)"
    elif "baseline_failed" in rules:
        said, again = "It cannot go on: fix what is named above, then start another run", ()
    elif rules and set(rules) <= set(OVERRIDABLE):
        options = "".join(f" --override {rule}" for rule in rules) + ' --reason "WHY"'
        anyway = "the first command" if again else f"{AGAIN} with{options}"
        said = "Look into it first; a changed script needs another --run-id. To go on anyway: "
        said += anyway
    said += ". The second command shows what the rules saw." if again else ". What the rules saw:"
    return NextStep(said, (*(f"{one}{options}" for one in again), look))


def _more_needed(state: RunState, fired: Reading) -> str:
    """Return `--max-hours 0.0485`: the cap in the way, and the least that would be enough."""
    flag = fired.facts.get("flag") or "--max-evals"
    times = (one for one in state.accounts.table.values() if one.unit != "evaluations")
    own = next((one for one in times if one.flag == flag), None)
    if own is None or own.cap is None or fired.limit is None or fired.observed is None:
        return f"{flag} MORE"
    cap, used = own.cap / own.per_unit, own.used / own.per_unit
    # nothing is free of a cap that is overdrawn: the limit is 0 then
    return f"{flag} {rounded_up(max(cap - fired.limit, used) + fired.observed)}"


# Decided


def _decided(run: Run, found: Findings, own: Decided) -> Answer:
    is_go, but = own.grade != "no_go", uncapitalized(" ".join(text.cautions(run)))
    return _answer(
        run,
        title(own.grade, own.no_go),
        ("caution" if but else "good") if is_go else "bad",
        after_the_verdict(run),
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
        kept = f"{percent(share, 3)} of the gain is kept"
        seeds = counted(found.long_run.pairs, "seed")
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
        what, better = sentence_case(measured_in(run.state)), better_when(run.plan.direction)
        parts.append(f"{what} ({better}): {means[1]:.5g}, the baseline's {means[0]:.5g}.")
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


def after_the_verdict(run: Run) -> NextStep:
    """Return what to do after the verdict; after a Go `best` shows what was found."""
    own, best = run.state.decided, command("best", named(run))
    assert own is not None, "it is decided"
    controls = () if run.findings is None else run.findings.controls
    better = [one for one in controls if one.winner_gain.is_loss]
    if better:
        name = quoted(min(better, key=lambda one: one.winner_gain.mean or 0.0).name)
        said = f"Use {name} instead, or tune knobs that it has too. What was found:"
        return NextStep(said, (best,))
    if own.no_go is not None:
        return _after_a_no_go(run, own.no_go)
    step = _after_a_go(run, own.grade)
    return NextStep(step.said, (*step.commands, best))


def _after_a_go(run: Run, grade: str) -> NextStep:
    plan, use = run.plan, NextStep("Use what it found: this shows the whole configuration.")
    if grade == "go_persists":
        if plan.phase == "phase2":
            return use
        count = size("phase2", "min", len(plan.space.knobs), plan.devices.count).resolved
        follow = ("--variant", "robust", "--tier", "min", "--from", named(run))
        said = f"Check it on more seeds and search on, with {count.evaluations} evaluations; or "
        return NextStep(f"{said}see what it found:", (command("phase2", *follow),))
    if plan.confirmation is None or plan.confirmation.long_run is None:
        return use
    words = ("--tier", str(plan.tier), *assign("verdict.long_run_seeds", VERDICT_SEEDS))
    said = f"Search again with {VERDICT_SEEDS} seeds in the long run; or see what it found:"
    return NextStep(said, (_another(run, "long-run", *words),))


def _after_a_no_go(run: Run, no_go: NoGo) -> NextStep:
    plan = run.plan
    if no_go in ("pathological", "unstable"):
        said = "Look into the failures, narrow the ranges that lead there, and search again."
        return NextStep(said, (command("export", "table", named(run)),))
    found, limits = winner_gain(run.state), plan.thresholds
    is_open = found is not None and (found.upper or 0.0) > limits.go_gain
    if found is not None and is_open and no_go == "below_noise" and plan.phase == "phase1":
        words = assign("verdict.confirm_seeds", max(2 * found.pairs, limits.go_seeds))
        again = _another(run, "more-seeds", "--tier", str(plan.tier), *words)
        return NextStep("Repeat it with more seeds, which show a smaller gain.", (again,))
    is_extendable = plan.phase == "phase1" and plan.tier != "max"
    if no_go in ("too_small", "does_not_persist") and is_extendable:
        said = f"Search longer, with {TIERS['phase1', 'max'].evaluations} evaluations."
        return NextStep(said, (_another(run, "max", "--tier", "max"),))
    said = "Check which knobs move the score at all before you search again."
    return NextStep(said, (_of_objective(run, "check", "knobs"),))


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
    step = _with_a_verdict(run)
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
    parts.append(
        "Tier min only tests whether everything works: it cannot end in a Go."
        if is_min
        else "Nothing was compared with the baseline on fresh seeds, so this is not a Go yet."
    )
    return _answer(run, name, mood, step, " ".join(parts), **said)


def _with_a_verdict(run: Run) -> NextStep:
    if run.plan.phase == "phase2":
        return NextStep("What it found:", (command("best", named(run)),))
    said = f"Search again, and compare with the baseline on {VERDICT_SEEDS} fresh seeds."
    words = ("--tier", str(run.plan.tier), *assign("verdict.confirm_seeds", VERDICT_SEEDS))
    return NextStep(said, (_another(run, "verdict", *words),))


# Runs that only measure


def _calibrated(run: Run) -> Answer:
    own = run.baseline
    plan = _of_objective(run, "plan")
    step = NextStep("Plan a search: what it would take, and what gain it could show.", (plan,))
    if own is None:
        sentence = f"All {run.counts.settled} evaluations of the baseline failed."
        return _answer(run, "Baseline not measured", "trouble", step, sentence)
    found, sure = "The baseline's score.", "How far scores differ from seed to seed is not known."
    if why := no_share(measure(run.state)):
        sure = f"No gain can be told: {why}."
    elif own.sd:
        noise, sure = percent(own.sd / abs(own.mean), 3), f"Measured on {own.seeds} seeds."
        found = f"The baseline's score, and its noise from seed to seed: {noise} (sd {own.sd:.3g})."
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
        again = _of_objective(run, "check", "knobs", "--seeds", str(2 * own.seeds))
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
    judged = [one.difference for one in own.effects]
    judged += [one.difference for row in own.rows for one in row.comparisons]
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
        text.campaign(own),
        found=f"Yes: {shown} of {len(judged)} differences are beyond chance."
        if shown
        else f"No: none of {len(judged)} differences is beyond chance.",
        sure=sure,
    )


# Commands


def named(run: Run) -> str:
    """Return the word by which a command finds the run: its id where that is enough."""
    return run.plan.run_id if run.directory is None else found_as(run.directory, run.plan)


def _words(run: Run) -> tuple[str, ...]:
    """Return the last command on record that carried the run out."""
    return next((one.command for one in reversed(run.state.opened) if one.command), ())


def beginning(run: Run) -> tuple[str, ...]:
    """Return the command to repeat; empty where the ledger does not have it."""
    own = _words(run)
    if not own or any(secrets.HIDDEN in word for word in own):
        return ()
    kept = (
        word
        for before, word in pairwise(("", *own))
        if before not in ONCE[1:] and word.partition("=")[0] not in ONCE
    )
    return (command(*kept),)


def _of_objective(run: Run, *words: str) -> str:
    """Return a command about the run's objective, on its devices.

    FILE stands for settings that a command must not show.
    """
    for option, value in pairwise((*_words(run), "")):
        name, equals, _ = option.partition("=")
        if name in MACHINE or (name == "--set" and value.startswith("backend.")):
            words += (option,) if equals else (option, value)
    with suppress(SetupError, ValueError):
        return command(*words, *objective_words(run.plan))
    return command(*words, "FILE")


def _search(run: Run) -> str:
    return _of_objective(run, "phase1", "--tier", "target")


def _another(run: Run, name: str, *words: str) -> str:
    """Return a search for the same on other seeds."""
    seed = assign("evaluation.seed", run.plan.evaluation_seed + 1)
    run_id = f"{run.plan.run_id[:NAME_CHARACTERS]}-{name}"
    return _of_objective(run, "phase1", *words, *seed, "--run-id", run_id)
