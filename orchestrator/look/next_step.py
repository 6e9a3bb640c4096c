"""What a person does next, with the commands that do just that."""

from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

from budgets.formatting import command, percent, quoted, rounded_up, sentence_case
from budgets.rules import Reading
from budgets.state import RunState
from budgets.stats import detectable
from budgets.tiers import TIERS, size
from budgets.verdict import Findings, average_gain, control_gains, long_run, winner_gain
from objectives import secrets
from objectives.api import SetupError
from orchestrator.config import VERDICT_SEEDS, UntoldError, assign, objective_words
from orchestrator.look.run import Run
from orchestrator.plan.resolve import found_as

NAME_CHARACTERS = 48
"""Of a run's id that the id of another begins with."""

ONCE = ("--override", "--reason")
"""Options with a value that a command has for once: to repeat it they are left out."""

AGAIN = "repeat the command that began it"


class NextStep(NamedTuple):
    """A decision, its command, and what another one is for."""

    said: str
    commands: tuple[str, ...] = ()
    otherwise: str = ""


def named(run: Run) -> str:
    """The word by which a command finds the run: its id where that is enough."""
    return run.plan.run_id if run.directory is None else found_as(run.directory, run.plan)


def beginning(run: Run) -> tuple[str, ...]:
    """The command that its last session was begun with; empty where its ledger does not say."""
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


def of_objective(run: Run, *words: str, settings: Mapping[str, Any] | None = None) -> str:
    """A command about what the run tunes, with these settings instead of the run's own.

    With a file's name to fill in where a ledger must not tell them.
    """
    changed, own = settings or {}, run.plan.objective
    objective = own.model_copy(update={"settings": {**own.settings, **changed}})
    with suppress(UntoldError, SetupError, ValueError):
        tuned = run.plan.model_copy(update={"objective": objective})
        return command(*words, *objective_words(tuned))
    sets = (word for key, value in changed.items() for word in assign(key, value))
    return command(*words, "FILE", *sets)


# Where a rule holds it up


def way_on(run: Run) -> NextStep:
    """What to do about the rules that hold it up, which ends with a command."""
    triggers, again, look = run.ruling.triggers, beginning(run), command("report", named(run))
    rules = list(dict.fromkeys(trigger.rule for trigger in triggers))
    budget = next((trigger for trigger in triggers if trigger.rule == "budget"), None)
    if budget is not None:
        more = more_needed(run.state, budget)
        said = f"If it is worth more, allow at least that much more, then {AGAIN}:"
        amend = f'{command("amend", named(run))} {more} --reason "WHY"'
        return NextStep(said, (amend, *again), "Then:")
    said, options = f"Fix what is named above, then {AGAIN}", ""
    if run.plan.phase == "calibration" and not run.counts.ok:
        said = f'{said} (with --again --reason "WHY" if nothing in it has changed)'
    elif "baseline_failed" in rules:  # it would be the same again
        said, again = "It cannot go on: fix what is named above, then start another run", ()
    elif rules and all(trigger.overridable for trigger in triggers):
        options = "".join(f" --override {rule}" for rule in rules) + ' --reason "WHY"'
        said = "Look into it first; a changed script needs another --run-id. To go on all the same"
        said = said if again else f"{said}, {AGAIN} with{options}"
    if not again:
        return NextStep(f"{said}. What the rules saw:", (look,))
    return NextStep(f"{said}:", (f"{again[0]}{options}", look), "What the rules saw:")


def more_needed(state: RunState, fired: Reading) -> str:
    """`--max-hours 0.0485`: the cap in the way of what fires now, and the least that would do."""
    flag = fired.flag or "--max-evals"
    times = (one for one in state.accounts.table.values() if one.unit != "evaluations")
    own = next((one for one in times if one.flag == flag), None)
    if own is None or own.cap is None or fired.limit is None or fired.observed is None:
        return f"{flag} MORE"
    cap, used = own.cap / own.per_unit, own.used / own.per_unit
    # what is free of a cap that is overdrawn is 0, not less
    return f"{flag} {rounded_up(max(cap - fired.limit, used) + fired.observed)}"


# After a verdict

MOST_SEEDS = 64
"""No verdict is advised to use more."""


def after_the_verdict(run: Run, found: Findings) -> NextStep:
    """What to do after the decision there is; and the configuration that a Go has found."""
    step, best = _after(run), command("best", named(run))
    if found.grade == "no_go" or best in step.commands:
        return step
    commands = (*step.commands, best)
    return NextStep(step.said, commands, "The configuration that it found:")


def _after(run: Run) -> NextStep:  # noqa: PLR0911 - a kind of verdict each
    state, plan, own = run.state, run.plan, run.state.decided
    assert own is not None, "it is decided"
    if own.no_go in ("pathological", "unstable"):
        said = "Look into the failures, narrow the ranges that lead there, and search again."
        return NextStep(said, (command("export", "table", named(run)),))
    if better := [
        (one.winner_gain.mean, one.name) for one in control_gains(state) if one.winner_gain.is_loss
    ]:
        name = quoted(min(better)[1])
        said = f"Use {name} instead, or tune knobs that it has as well. What was found:"
        return NextStep(said, (command("best", named(run)),))
    if own.grade == "go_persists" and plan.phase == "phase2":
        said = "Use what it found: this shows the whole configuration."
        return NextStep(said, (command("best", named(run)),))
    if own.grade == "go_persists":
        sizing = size("phase2", "min", len(plan.space.knobs), plan.devices.count)
        count = sizing.resolved.evaluations
        said = f"See whether it survives other seeds, and search on: {count} evaluations."
        follow = ("--variant", "robust", "--tier", "min", "--from", named(run))
        return NextStep(said, (command("phase2", *follow),))
    if own.grade == "go":
        return _longer_evaluations(run, "that the gain stays with more training is not shown")
    if own.no_go == "below_noise":
        return _below_noise(run)
    if own.no_go == "too_small":
        why = "the gain is smaller than asked; the winner's knobs are in best.json all the same"
        return _longer_search(run, why)
    if own.no_go == "does_not_persist":
        found = average_gain(state)
        if found is None or found.mean is None or found.mean <= 0:
            why = "one candidate was better than the baseline, the mean of the search was not"
            return _longer_search(run, why)
        return _longer_evaluations(run, "what wins on a short training is lost there")
    return _other_knobs(run)


def _is_kept_uncertain(state: RunState) -> bool:
    """Whether enough of the gain was kept with more training, and only more seeds can show it."""
    kept = long_run(state)
    if kept is None or kept.met or kept.observed is None or kept.limit is None:
        return False
    return kept.observed >= kept.limit


def _below_noise(run: Run) -> NextStep:
    """More seeds if they could show the gain that was asked; else something else must change."""
    found, limits = winner_gain(run.state), run.plan.thresholds
    if found is None or found.sd is None:
        return _other_knobs(run)
    assert found.upper is not None, "it is known wherever the spread is"
    assert found.detectable is not None, "so is this"
    asked, least = percent(limits.go_gain), limits.go_seeds
    if found.pairs >= least and min(found.upper, found.detectable) <= limits.go_gain:
        why = f"a gain of {asked} would have been seen, so more seeds will not help"
        return _other_knobs(run, why)
    counts = range(max(found.pairs + 1, least), MOST_SEEDS + 1)
    enough = (n for n in counts if detectable(found.sd, n, found.level) <= limits.go_gain)
    seeds = next(enough, None)
    if seeds is None:
        why = f"the noise hides a gain of {asked}, and seeds differ less there"
        return _longer_evaluations(run, why)
    why = f"on about {seeds}, by the noise of these, a gain of {asked} would be seen"
    if run.plan.phase == "phase2":
        return _other_knobs(run, why)
    words = ("--tier", str(run.plan.tier), *assign("verdict.confirm_seeds", seeds))
    line = _another(run, f"{seeds}-seeds", *words)
    return NextStep(f"Repeat it with more seeds: {why}.", (line,))


def _longer_search(run: Run, why: str) -> NextStep:
    """More evaluations, where there is a larger tier."""
    if run.plan.phase == "phase2" or run.plan.tier == "max":
        return _other_knobs(run, why)
    count = TIERS["phase1", "max"].evaluations
    said = f"Search longer, with {count} evaluations: {why}."
    return NextStep(said, (_another(run, "max", "--tier", "max"),))


def _other_knobs(run: Run, why: str = "") -> NextStep:
    because = f"{sentence_case(why)}. " if why else ""
    said = f"{because}Check which knobs move the score at all before you search again."
    return NextStep(said, (of_objective(run, "check", "knobs"),))


def _longer_evaluations(run: Run, why: str) -> NextStep:
    """More training in each evaluation, or more seeds in the long run."""
    plan = run.plan
    longer = None if plan.confirmation is None else plan.confirmation.long_run
    settings = {} if longer is None else longer.variant.settings
    is_known = set(settings) <= set(plan.objective.settings)
    if longer is not None and settings and is_known and not _is_kept_uncertain(run.state):
        times = longer.variant.cost_factor
        said = f"Search again with {times:g} times the training, at that cost: {why}."
        tier = ("--tier", str(plan.tier))
        return NextStep(said, (_another(run, f"x{times:g}", *tier, settings=settings),))
    words = ("--tier", str(plan.tier), *assign("verdict.long_run_seeds", VERDICT_SEEDS))
    said = f"Search again with {VERDICT_SEEDS} seeds in the long run: {why}."
    return NextStep(said, (_another(run, "long-run", *words),))


def with_a_verdict(run: Run) -> NextStep:
    """Compare a search with the baseline that ended without a verdict."""
    if run.plan.phase == "phase2":
        said = "It was not compared with the baseline. What it found:"
        return NextStep(said, (command("best", named(run)),))
    words = ("--tier", str(run.plan.tier), *assign("verdict.confirm_seeds", VERDICT_SEEDS))
    said = f"Search again, and compare with the baseline on {VERDICT_SEEDS} fresh seeds."
    return NextStep(said, (_another(run, "verdict", *words),))


def _another(run: Run, name: str, *words: str, settings: Mapping[str, Any] | None = None) -> str:
    """A search for the same on seeds that nobody has looked at."""
    seed = assign("evaluation.seed", run.plan.evaluation_seed + 1)
    run_id = f"{run.plan.run_id[:NAME_CHARACTERS]}-{name}"
    return of_objective(run, "phase1", *words, *seed, "--run-id", run_id, settings=settings)
