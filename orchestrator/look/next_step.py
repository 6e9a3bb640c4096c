"""What to do next, with the commands that do it."""

from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from budgets.events import NoGo
from budgets.formatting import command, percent, quoted, rounded_up
from budgets.rules import Reading
from budgets.state import RunState
from budgets.stats import detectable
from budgets.tiers import TIERS, size
from budgets.verdict import control_gains, winner_gain
from objectives import secrets
from objectives.api import SetupError
from orchestrator.config import VERDICT_SEEDS, UntoldError, assign, objective_words
from orchestrator.look.run import Run
from orchestrator.plan.resolve import found_as

NAME_CHARACTERS = 48  # of a run's id that begins the id of the next run
MOST_SEEDS = 64  # no verdict is advised to use more

ONCE = ("--override", "--reason")
"""Options with a value that are meant for one session: a repeated command leaves them out."""

AGAIN = "repeat the command that began it"


class NextStep(NamedTuple):
    """What to do, and the commands for it."""

    said: str
    commands: tuple[str, ...] = ()


def named(run: Run) -> str:
    """Return the word by which a command finds the run: its id where that is enough."""
    return run.plan.run_id if run.directory is None else found_as(run.directory, run.plan)


def beginning(run: Run) -> tuple[str, ...]:
    """Return the command that began the last session; empty where the ledger does not have it."""
    own = next((one.command for one in reversed(run.state.opened) if one.command), ())
    if not own or any(secrets.HIDDEN in word for word in own):
        return ()
    values = {place + 1 for place, word in enumerate(own) if word in ONCE}
    left_out = {"--json", *ONCE}
    kept = (
        word
        for place, word in enumerate(own)
        if place not in values and word.partition("=")[0] not in left_out
    )
    return (command(*kept),)


MACHINE = ("--executor", "--address", "--device", "--workers")


def machine_words(run: Run) -> tuple[str, ...]:
    """Return the options of the command that began the run which say where it evaluates."""
    words = next((one.command for one in reversed(run.state.opened) if one.command), ())
    found = []
    for option, value in pairwise((*words, "")):
        name, equals, _ = option.partition("=")
        if name in MACHINE or (name == "--set" and value.startswith("backend.")):
            found += [option] if equals else [option, value]
    return tuple(found)


def of_objective(run: Run, *words: str) -> str:
    """Return a command about the run's objective, on its devices.

    FILE stands for settings that a command must not show.
    """
    words += machine_words(run)
    with suppress(UntoldError, SetupError, ValueError):
        return command(*words, *objective_words(run.plan))
    return command(*words, "FILE")


# When a rule holds the run up


def way_on(run: Run) -> NextStep:
    """Return what to do about the rules that paused or stopped the run."""
    triggers, again, look = run.ruling.triggers, beginning(run), command("report", named(run))
    rules = list(dict.fromkeys(trigger.rule for trigger in triggers))
    budget = next((trigger for trigger in triggers if trigger.rule == "budget"), None)
    if budget is not None:
        said = f"To spend more, raise the cap by at least that much, then {AGAIN}:"
        more = f"{command('amend', named(run))} {more_needed(run.state, budget)}"
        return NextStep(said, (f'{more} --reason "WHY"', *again))
    said, options = f"Fix what is named above, then {AGAIN}", ""
    if run.plan.phase == "calibration" and not run.counts.ok:
        said = f'{said} (with --again --reason "WHY" if nothing in it has changed)'
    elif "baseline_failed" in rules:
        said, again = "It cannot go on: fix what is named above, then start another run", ()
    elif rules and all(trigger.overridable for trigger in triggers):
        options = "".join(f" --override {rule}" for rule in rules) + ' --reason "WHY"'
        anyway = "the first command" if again else f"{AGAIN} with{options}"
        said = "Look into it first; a changed script needs another --run-id. To go on anyway: "
        said += anyway
    if not again:
        return NextStep(f"{said}. What the rules saw:", (look,))
    said = f"{said}. The second command shows what the rules saw."
    return NextStep(said, (f"{again[0]}{options}", look))


def more_needed(state: RunState, fired: Reading) -> str:
    """Return `--max-hours 0.0485`: the cap in the way, and the least that would be enough."""
    flag = fired.flag or "--max-evals"
    times = (one for one in state.accounts.table.values() if one.unit != "evaluations")
    own = next((one for one in times if one.flag == flag), None)
    if own is None or own.cap is None or fired.limit is None or fired.observed is None:
        return f"{flag} MORE"
    cap, used = own.cap / own.per_unit, own.used / own.per_unit
    # nothing is free of a cap that is overdrawn: the limit is 0 then
    return f"{flag} {rounded_up(max(cap - fired.limit, used) + fired.observed)}"


# After a verdict


def after_the_verdict(run: Run) -> NextStep:
    """Return what to do after the verdict; after a Go `best` shows what was found."""
    own, best = run.state.decided, command("best", named(run))
    assert own is not None, "it is decided"
    better = [one for one in control_gains(run.state) if one.winner_gain.is_loss]
    if better:
        name = quoted(min(better, key=lambda one: one.winner_gain.mean or 0.0).name)
        said = f"Use {name} instead, or tune knobs that it has too. What was found:"
        return NextStep(said, (best,))
    if own.no_go is not None:
        return _after_a_no_go(run, own.no_go)
    step = _after_a_go(run, own.grade)
    return NextStep(step.said, (*step.commands, best))


def _after_a_go(run: Run, grade: str) -> NextStep:
    plan = run.plan
    if grade == "go_persists" and plan.phase == "phase2":
        return NextStep("Use what it found: this shows the whole configuration.")
    if grade == "go_persists":
        sizing = size("phase2", "min", len(plan.space.knobs), plan.devices.count)
        count = sizing.resolved.evaluations
        follow = ("--variant", "robust", "--tier", "min", "--from", named(run))
        said = f"Check it on more seeds and search on, with {count} evaluations; or see what it "
        return NextStep(f"{said}found:", (command("phase2", *follow),))
    if plan.confirmation is None or plan.confirmation.long_run is None:
        return NextStep("Use what it found: this shows the whole configuration.")
    words = ("--tier", str(plan.tier), *assign("verdict.long_run_seeds", VERDICT_SEEDS))
    said = f"Search again with {VERDICT_SEEDS} seeds in the long run; or see what it found:"
    return NextStep(said, (_another(run, "long-run", *words),))


def _after_a_no_go(run: Run, no_go: NoGo) -> NextStep:
    plan = run.plan
    if no_go in ("pathological", "unstable"):
        said = "Look into the failures, narrow the ranges that lead there, and search again."
        return NextStep(said, (command("export", "table", named(run)),))
    if no_go == "below_noise" and plan.phase == "phase1" and (seeds := _seeds_needed(run)):
        gain, words = percent(plan.thresholds.go_gain), assign("verdict.confirm_seeds", seeds)
        said = f"Repeat it with more seeds: with this noise, about {seeds} would show {gain}."
        again = _another(run, f"{seeds}-seeds", "--tier", str(plan.tier), *words)
        return NextStep(said, (again,))
    is_extendable = plan.phase == "phase1" and plan.tier != "max"
    if no_go in ("too_small", "does_not_persist") and is_extendable:
        count = TIERS["phase1", "max"].evaluations
        said = f"Search longer, with {count} evaluations."
        return NextStep(said, (_another(run, "max", "--tier", "max"),))
    said = "Check which knobs move the score at all before you search again."
    return NextStep(said, (of_objective(run, "check", "knobs"),))


def _seeds_needed(run: Run) -> int | None:
    """Return how many seeds could show the gain that was asked for; None where more do not help."""
    found, limits = winner_gain(run.state), run.plan.thresholds
    if found is None or found.sd is None or found.upper is None or found.detectable is None:
        return None
    if found.pairs >= limits.go_seeds and min(found.upper, found.detectable) <= limits.go_gain:
        return None
    counts = range(max(found.pairs + 1, limits.go_seeds), MOST_SEEDS + 1)
    enough = (n for n in counts if detectable(found.sd, n, found.level) <= limits.go_gain)
    return next(enough, None)


def with_a_verdict(run: Run) -> NextStep:
    """Return how to compare with the baseline after a search without a verdict."""
    if run.plan.phase == "phase2":
        said = "It was not compared with the baseline. What it found:"
        return NextStep(said, (command("best", named(run)),))
    said = f"Search again, and compare with the baseline on {VERDICT_SEEDS} fresh seeds."
    words = ("--tier", str(run.plan.tier), *assign("verdict.confirm_seeds", VERDICT_SEEDS))
    return NextStep(said, (_another(run, "verdict", *words),))


def _another(run: Run, name: str, *words: str) -> str:
    """Return a search for the same on other seeds."""
    seed = assign("evaluation.seed", run.plan.evaluation_seed + 1)
    run_id = f"{run.plan.run_id[:NAME_CHARACTERS]}-{name}"
    return of_objective(run, "phase1", *words, *seed, "--run-id", run_id)
