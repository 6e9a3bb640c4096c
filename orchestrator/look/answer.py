"""The four answers that a reader wants first: found? how sure? at what cost? what next?

There is one function for each way a run can stand (going on, held up by a rule, decided, over
without a verdict) and for each kind that only measures (a calibration, a check, a campaign).
"""

from itertools import chain
from pathlib import Path

from budgets.events import Decided
from budgets.formatting import (
    better_when,
    command,
    counted,
    duration,
    listed,
    one_line,
    percent,
    sentence_case,
)
from budgets.measurements import LEAST_CANDIDATES, LEVEL
from budgets.rules import OVERRIDABLE
from budgets.stats import Gain
from budgets.tiers import TIERS
from budgets.verdict import Findings, title, winner_means
from objectives import secrets
from orchestrator.config import assign
from orchestrator.look import text
from orchestrator.look.attempt_files import measured_in
from orchestrator.look.page import Answer, Mood
from orchestrator.look.run import Run
from orchestrator.records.runs import RUNS_DIR

FLAGS = ("--json", "--again")  # options without a value
ONCE = ("--json", "--override", "--reason")  # a repeated command leaves them out
KEPT = (
    *("--objective=", "--preset=", "--set=", "--executor=", "--address="),
    *("--device=", "--workers=", "--runs-dir="),
)
LEFT = ("--set=search.", "--set=evaluation.seed=")
"""Beginnings of options that a proposed command keeps, and of those among them that it drops."""

AGAIN, SEARCH = "repeat the command that began it", "Search over these knobs."

Step = tuple[str, ...]
"""What to do next, and the commands for it."""


def answer(run: Run) -> Answer:
    """Return the answers as the run stands."""
    if run.state.decided is not None and run.findings is not None:
        return _decided(run, run.findings, run.state.decided)
    if run.decision == "continue" or not run.state.opened:
        return _going_on(run)
    if run.decision != "done":
        return _held_up(run)
    kinds = {"calibration": _calibration, "check": _check, "campaign": _campaign}
    said = (_proxy if run.plan.proxy else kinds.get(run.plan.phase, _over))(run)
    if said is not None:
        return said
    step = "Look into the failures.", command("report", named(run))
    return _answer(run, "Nothing measured", "trouble", step, "Too few evaluations have a score.")


def _answer(run: Run, title: str, mood: Mood, step: Step, sentence: str, **said: str) -> Answer:
    """Return an answer with what is the same for every run."""
    sure = "Not at all."
    if run.is_search:
        sure += " A search's own scores do not show a gain; only scores on fresh seeds do."
    found = f"Not known until the run is over. {text.scores(run)}".rstrip()
    if not run.counts.ok:
        found = "Nothing: no evaluation has a score."
    cost = f"{'; '.join([text.counts(run), *text.balances(run)])}."
    own = {"found": found, "sure": sure, "cost": cost, "next": step[0]} | said
    return Answer(title=title, mood=mood, sentence=sentence, commands=step[1:], **own)


# Not over


def _going_on(run: Run) -> Answer:
    sentence = text.progress(run)
    if run.standing.way_on:
        step = (run.standing.way_on, *beginning(run))
        if not run.state.opened:
            return _answer(run, "Planned, not begun", "open", step, sentence)
        return _answer(run, "Interrupted", "trouble", step, sentence)
    watch = f"{command('status', named(run))} --watch"
    step = f"Watch it. If it was interrupted, {AGAIN}.", watch
    return _answer(run, "In progress", "open", step, f"{sentence} {text.pace_line(run)}")


def _held_up(run: Run) -> Answer:
    triggers = run.ruling.triggers
    rules = listed(dict.fromkeys(trigger.rule for trigger in triggers))
    name = f"{'Paused' if run.decision == 'pause' else 'Stopped'} by rule {rules}"
    saw = one_line("; ".join(text.rule(run.state, trigger) for trigger in triggers), 600)
    return _answer(run, name, "trouble", _way_on(run), f"{sentence_case(saw)}.")


def _way_on(run: Run) -> Step:
    """Return what to do about the rules that paused or stopped the run."""
    triggers, again, look = run.ruling.triggers, beginning(run), command("report", named(run))
    rules = {trigger.rule: trigger for trigger in triggers}
    if "budget" in rules:
        flag = rules["budget"].facts.get("flag") or "--max-evals"
        more = f'{command("amend", named(run))} {flag} MORE --reason "WHY"'
        return f"To spend more, raise the cap, then {AGAIN}:", more, *again
    if "baseline_failed" in rules:
        return "It cannot continue: fix the cause named above, then start another run.", look
    if rules and set(rules) <= set(OVERRIDABLE):
        options = "".join(f" --override {rule}" for rule in rules) + ' --reason "WHY"'
        said = f"Look into it first. To go on anyway, {AGAIN} with{options}:"
        return said, *(f"{one}{options}" for one in again), look
    return f"Fix what is named above, then {AGAIN}.", *again, look


# Decided


def _decided(run: Run, found: Findings, own: Decided) -> Answer:
    but = " ".join(text.cautions(run))
    mood: Mood = "bad" if own.grade == "no_go" else "caution" if but else "good"
    said = f"{sentence_case(text.decision(run.state, own))}."
    if (before := found.one("incumbent")) is not None:
        survives = "survives" if before.is_shown else "does not survive"
        said += f" The winner of phase 1 {survives}: {text.interval(before)} over the baseline."
    step, what, sure = after_the_verdict(run), _found(run, own), _sure(found.one("winner"))
    name = title(own.grade, own.no_go)
    return _answer(run, name, mood, step, said, but=but, found=what, sure=sure)


def _found(run: Run, own: Decided) -> str:
    means = winner_means(run.state)
    if own.grade == "no_go" and own.no_go != "too_small":
        return "No. Nothing is recommended: the baseline stays."
    said = "Too little: the baseline stays." if own.grade == "no_go" else "Yes, better knobs."
    if means is not None:
        what, better = sentence_case(measured_in(run.state)), better_when(run.plan.direction)
        said += f" {what} ({better}): {means[1]:.5g}, the baseline's {means[0]:.5g}."
    return f"{said} {text.moves(run.knobs)}".rstrip()


def _sure(gain: Gain | None) -> str:
    if gain is None or gain.lower is None:
        return "Not at all: too few seeds have a score of both it and the baseline."
    on = f"on {counted(gain.pairs, 'seed')} that were not used to choose it."
    if gain.is_shown:
        return f"{percent(1 - gain.level)} sure of {percent(gain.lower, 3)} or more, {on}"
    said = f"Not sure of any gain, {on}"
    if gain.detectable:
        said += f" Detectable gain at 80 % power: {percent(gain.detectable, 3)}."
    return said


def after_the_verdict(run: Run) -> Step:
    """Return what to do after the verdict; `best` shows what a Go found."""
    plan, own = run.plan, run.state.decided
    assert own is not None, "it is decided"
    controls = [] if run.findings is None else run.findings.of("over_control")
    best, beaten_by = command("best", named(run)), [one for one in controls if one.gain.is_loss]
    is_first = plan.phase == "phase1"
    if beaten_by:
        name = min(beaten_by, key=lambda one: one.gain.mean or 0.0).against
        return f'Use "{name}" instead, or tune knobs that it has too. What was found:', best
    if own.grade == "go_persists" and is_first:
        count = TIERS["phase2", "min"].evaluations
        words = ("--variant", "robust", "--tier", "min", "--from", named(run))
        said = f"Search on with more seeds ({count} evaluations); or see the result:"
        return said, command("phase2", *words), best
    if own.grade != "no_go":
        return "Use what it found: this shows the whole configuration.", best
    if own.no_go in ("pathological", "unstable"):
        said = "Look into the failures, narrow the ranges that lead there, and search again."
        return said, command("export", "table", named(run))
    is_open = run.gain is not None and (run.gain.upper or 0.0) > plan.thresholds.go_gain
    if (is_open or own.no_go != "below_noise") and is_first and plan.tier != "max":
        seed = assign("evaluation.seed", plan.evaluation_seed + 1)
        said = f"Search longer, with {TIERS['phase1', 'max'].evaluations} evaluations."
        return said, *_of_objective(run, "phase1", "--tier", "max", *seed)
    said = "Check which knobs move the score at all before you search again."
    # the command of a phase 2 may not name the objective
    return said, *(_of_objective(run, "check", "knobs") if is_first else ())


# Over without a verdict


def _over(run: Run) -> Answer | None:
    """Return the answers of a search that was not compared with the baseline."""
    if not run.counts.ok:
        return None
    sentence, ended = text.progress(run), run.state.ended
    if ended is not None:
        sentence += f" {sentence_case(one_line(text.rule(run.state, ended)))}."
    if run.plan.tier == "min" and run.plan.phase == "phase1":
        count, is_healthy = TIERS["phase1", "target"].evaluations, not run.counts.failed
        step = _search(run, f"Search for a verdict, with {count} evaluations.")
        name = "Smoke test passed" if is_healthy else "Smoke test with failures"
        found = "Nothing: a smoke test only shows that everything works."
        sentence += " Tier min cannot end in a Go."
        return _answer(run, name, "good" if is_healthy else "open", step, sentence, found=found)
    step = "What it found:", command("best", named(run))
    sentence += " Nothing was compared with the baseline on fresh seeds, so this is not a Go yet."
    found = f"Not compared with the baseline. {text.moves(run.knobs)}".rstrip()
    but = " ".join(text.cautions(run))
    return _answer(run, "Finished, no verdict", "open", step, sentence, found=found, but=but)


# Runs that only measure


def _calibration(run: Run) -> Answer | None:
    own, measured = run.baseline, run.calibration
    if own is None or measured is None:
        return None
    seeds, sure = counted(own.seeds, "seed"), "The noise from seed to seed is not known."
    if own.sd:
        noise = "" if own.is_about_zero else f"{percent(own.sd / abs(own.mean), 3)} of the score, "
        sure = f"Noise from seed to seed: {noise}sd {own.sd:.3g} ({seeds})."
    what = sentence_case(measured_in(run.state))
    sentence = f"{what} of the baseline: {own.mean:.5g}, mean of {seeds}."
    found = f"One evaluation takes {duration(measured.median_seconds)}."
    plan = _of_objective(run, "plan")
    step = "Plan a search: its time and the gain that it could show.", *plan
    return _answer(run, "Baseline measured", "good", step, sentence, found=found, sure=sure)


def _check(run: Run) -> Answer | None:
    if (own := run.check) is None:
        return None
    alive, dead = own.names("alive"), own.names("dead")
    found = f"Yes, the largest first: {listed(alive, 5)}." if alive else "No."
    sure = f"Measured on {counted(own.seeds, 'seed')}. Of the knobs said to move the score, at "
    sure += f"most {percent(run.plan.thresholds.alive_level)} are expected to be chance."
    said = f"Search without the dead knobs: {listed(dead, 5)}." if dead else SEARCH
    sentence, step = f"{len(alive)} of {len(own.knobs)} knobs move the score.", _search(run, said)
    mood: Mood = "good" if alive else "bad"
    return _answer(run, "Knobs checked", mood, step, sentence, found=found, sure=sure)


def _proxy(run: Run) -> Answer | None:
    """Return whether a short evaluation may stand in for the full one."""
    own, check = run.proxy, run.plan.proxy
    if own is None or check is None or own.lower is None or own.upper is None:
        return None
    sentence = (
        f"{check.name} is {'' if own.holds else 'not '}good enough to stand in for the "
        f"full evaluation: over {own.compared} candidates on the same seeds Kendall's tau-b is "
        f"{own.tau:.2f} (its lower bound must be {own.asked:g} or more, over {LEAST_CANDIDATES} "
        "candidates or more)."
    )
    sure = f"{1 - own.level:.0%} sure of a Kendall's tau-b of {own.lower:.2f} to {own.upper:.2f}."
    found = "Yes: short evaluations may be used." if own.holds else "No: use full evaluations."
    mood: Mood = "good" if own.holds else "bad"
    return _answer(run, "Checked", mood, _search(run), sentence, found=found, sure=sure)


def _campaign(run: Run) -> Answer | None:
    if (own := run.campaign) is None:
        return None
    seeds = len(own.rows[0].scores)
    shown, found = [one for one in own.gains if one.is_found], "Nothing is beyond chance."
    if shown:
        gains = (f"{g.name} over {g.against} {text.interval(g.gain)}" for g in shown[:4])
        found = f"Beyond chance ({len(shown)}; positive is better): {'; '.join(gains)}."
    sure = f"{1 - LEVEL:.0%} sure of each range, on {counted(seeds, 'seed')}."
    if seeds == 1:
        sure = "Not at all: with one seed nothing can be told from chance."
    step = "The effects:", command("report", named(run), "--html")
    name = "Effects found" if shown else "No effect found"
    mood: Mood = "good" if shown else "open"
    return _answer(run, name, mood, step, text.progress(run), found=found, sure=sure)


# Commands


def named(run: Run) -> str:
    """Return the word by which a command finds the run: its id where that is enough."""
    usual = Path(RUNS_DIR, run.plan.phase, run.plan.run_id).absolute()
    is_enough = run.directory is None or run.directory.absolute() == usual
    return run.plan.run_id if is_enough else str(run.directory)


def _recorded(run: Run) -> list[tuple[str, ...]]:
    """Return the last command on record, options with their values; empty if it hides a secret."""
    own = next((one.command for one in reversed(run.state.opened) if one.command), ())
    if any(secrets.HIDDEN in word for word in own):
        return []
    found, words = list[tuple[str, ...]](), iter(own)
    for word in words:
        has_value = word.startswith("--") and "=" not in word and word not in FLAGS
        found.append((word, next(words, "")) if has_value else (word,))
    return found


def beginning(run: Run) -> tuple[str, ...]:
    """Return the command to repeat; empty where the ledger does not have it."""
    kept = [one for one in _recorded(run) if one[0].partition("=")[0] not in ONCE]
    return (command(*chain(*kept)),) if kept else ()


def _of_objective(run: Run, *words: str) -> tuple[str, ...]:
    """Return another command with the objective and the devices of the last one on record.

    Empty without one, as after a search in Python: there another call follows.
    """
    recorded = _recorded(run)
    options = recorded[1 + (("check",) in recorded[:1]) :]  # after `phase1`, or `check knobs`
    said = [("=".join(one), one) for one in options]
    kept = (
        ("--set", option.removeprefix("--")) if option.startswith("--preset=") else one
        for option, one in said
        if not option.startswith("-") or (option.startswith(KEPT) and not option.startswith(LEFT))
    )
    return (command(*words, *chain(*kept)),) if recorded else ()


def _search(run: Run, said: str = SEARCH) -> Step:
    return said, *_of_objective(run, "phase1", "--tier", "target")
