"""What a person does next, with the commands that do just that."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from budgets.accounts import MS_PER_HOUR
from budgets.formatting import command, percent, quoted, rounded_up, sentence_case
from budgets.plan import Plan
from budgets.rules import Reading
from budgets.state import RunState
from budgets.stats import detectable
from budgets.tiers import TIERS
from budgets.verdict import Findings, average_gain, control_gains, rung, rung_gain, winner_gain
from objectives import secrets
from objectives.api import SetupError
from orchestrator.config import UntoldError, assign, objective_words
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
    words = _recorded(run, ONCE)
    return (command(*words),) if words else ()


def planning(run: Run) -> str:
    """The command that plans a search with the settings and on the machine of a calibration."""
    words = _recorded(run, (*ONCE, "--seeds"))
    if words[:1] == ["calibrate"]:
        return command("plan", *(word for word in words[1:] if word != "--again"))
    return of_objective(run, "plan")


def _recorded(run: Run, without: Sequence[str]) -> list[str]:
    """The words of the recorded command without those options; none where a secret is hidden."""
    own = next((one.command for one in reversed(run.state.opened) if one.command), ())
    if any(secrets.HIDDEN in word for word in own):
        return []
    values = [place + 1 for place, word in enumerate(own) if word in without]
    left_out = ("--json", *without)
    return [
        word
        for place, word in enumerate(own)
        if place not in values and word.partition("=")[0] not in left_out
    ]


def of_objective(run: Run, *words: str, settings: Mapping[str, Any] | None = None) -> str:
    """A command about what the run tunes, with these settings instead of the run's own.

    With a file's name to fill in where a ledger must not tell them.
    """
    changed, own = settings or {}, run.plan.objective
    objective = {**own, "settings": {**own["settings"], **changed}}
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
    accounts, limits = state.accounts, state.accounts.caps
    flag, device_hours = fired.flag or "--max-evals", accounts.used_device_hours
    cap, used = {
        "--max-device-hours": (limits.device_hours, device_hours),
        "--max-hours": (limits.hours, accounts.committed_wall_ms / MS_PER_HOUR),
        "--max-cost": (limits.cost, device_hours * accounts.price_per_device_hour),
    }.get(flag, (None, 0.0))
    if cap is None or fired.limit is None or fired.observed is None:
        return f"{flag} MORE"
    # what is free of a cap that is overdrawn is 0, not less
    return f"{flag} {rounded_up(max(cap - fired.limit, used) + fired.observed)}"


# After a verdict

StepKind = Literal[
    "use",  # train with what was found
    "follow",  # a phase 2 from here
    "longer_evaluations",  # the same search with more training in each evaluation
    "more_seeds",  # the same comparison with less noise
    "longer_search",  # more evaluations
    "other_knobs",
    "control",  # the simpler thing is better
    "failures",  # to be looked into first
]

MOST_SEEDS = 64
"""No verdict is advised to use more."""


class Step(NamedTuple):
    """What kind of thing to do after a verdict, and why."""

    kind: StepKind
    why: str = ""
    seeds: int | None = None  # of `more_seeds`: that are enough by the noise there was


def advised(state: RunState) -> Step:  # noqa: PLR0911 - a kind of verdict each
    """The step that follows from the decision there is."""
    own = state.decided
    assert own is not None, "it is decided"
    if own.no_go in ("pathological", "unstable"):
        return Step("failures")
    if named := _better_control(state):
        return Step("control", named)
    if own.grade == "go_persists":
        return Step("use" if state.plan.phase == "phase2" else "follow")
    if own.grade == "go":
        return Step("longer_evaluations", _why_not_lasting(state))
    if own.no_go == "below_noise":
        return _below_noise(state)
    if own.no_go == "too_small":
        taken = "the gain is smaller than asked; the winner's knobs are in best.json all the same"
        return Step("other_knobs" if state.plan.tier == "max" else "longer_search", taken)
    if own.no_go == "does_not_persist":
        found = average_gain(state)
        if found is None or found.mean is None or found.mean <= 0:
            why = "one candidate was better than the baseline, the mean of the search was not"
            return Step("longer_search", why)
        return Step("longer_evaluations", "what wins on a short training is lost there")
    return Step("other_knobs")


def _better_control(state: RunState) -> str:
    """The control that the winner is shown to be worse than by most; empty without one."""
    found = [(over.mean or 0.0, name) for name, _, over in control_gains(state) if over.is_loss]
    return min(found)[1] if found else ""


def _why_not_lasting(state: RunState) -> str:
    """Why a Go is not to be relied on yet with more training."""
    found = rung_gain(state)
    if found is None:
        return "the gain was not measured with more training"
    if found.mean is None:
        return "the gain with more training could not be measured"
    if is_kept_uncertain(state):
        return "what was kept of the gain with more training may be chance"
    return "with more training too little of the gain was kept"


def is_kept_uncertain(state: RunState) -> bool:
    """Whether enough of the gain was kept with more training, and only more seeds can show it."""
    kept = rung(state)
    if kept is None or kept.met or kept.observed is None or kept.limit is None:
        return False
    return kept.observed >= kept.limit


def _below_noise(state: RunState) -> Step:
    """More seeds if they could show the gain that was asked; else something else must change."""
    found, limits = winner_gain(state), state.plan.thresholds
    if found is None or found.sd is None:
        return Step("other_knobs")
    assert found.upper is not None, "it is known wherever the spread is"
    assert found.detectable is not None, "so is this"
    asked, least = percent(limits.go_gain), limits.go_seeds
    if found.pairs >= least and min(found.upper, found.detectable) <= limits.go_gain:
        why = f"a gain of {asked} would have been seen, so more seeds will not help"
        return Step("other_knobs", why)
    counts = range(max(found.pairs + 1, least), MOST_SEEDS + 1)
    enough = (n for n in counts if detectable(found.sd, n, found.level) <= limits.go_gain)
    seeds = next(enough, None)
    if seeds is None:
        why = f"the noise hides a gain of {asked}, and seeds differ less there"
        return Step("longer_evaluations", why)
    why = f"on about {seeds}, by the noise of these, a gain of {asked} would be seen"
    return Step("more_seeds", why, seeds)


def after_the_verdict(run: Run, found: Findings) -> NextStep:
    """What to do after the decision there is."""
    said, line = _after(run, advised(run.state))
    best = command("best", named(run))
    others = (best,) if found.grade != "no_go" and line != best else ()
    return NextStep(said, (line, *others), "The configuration that it found:")


def _after(run: Run, step: Step) -> tuple[str, str]:
    """What to do in words, and its command."""
    plan, best, kind = run.plan, command("best", named(run)), step.kind
    is_last = plan.phase == "phase2" or (kind == "longer_search" and plan.tier == "max")
    if is_last and kind in ("more_seeds", "longer_search"):
        kind = "other_knobs"
    match kind:
        case "follow":
            count = TIERS["phase2", "min"].evaluations
            said = f"See whether it survives other seeds, and search on: {count} evaluations."
            follow = ("--variant", "robust", "--tier", "min", "--from", named(run))
            line = command("phase2", *follow)
        case "longer_evaluations":
            said, line = _longer_evaluations(run, step, best)
        case "more_seeds":
            said = f"Repeat it with more seeds: {step.why}."
            words = ("--tier", str(plan.tier), *assign("verdict.confirm_seeds", step.seeds))
            line = _another(run, f"{step.seeds}-seeds", *words)
        case "longer_search":
            count = TIERS["phase1", "max"].evaluations
            said = f"Search longer, with {count} evaluations: {step.why}."
            line = _another(run, "max", "--tier", "max")
        case "use":
            said, line = "Use what it found: this shows the whole configuration.", best
        case "control":
            instead = f"Use {quoted(step.why)} instead, or tune knobs that it has as well."
            said, line = f"{instead} What was found:", best
        case "failures":
            said = "Look into the failures, narrow the ranges that lead there, and search again."
            line = command("export", "table", named(run))
        case "other_knobs":
            why = f"{sentence_case(step.why)}. " if step.why else ""
            said = f"{why}Check which knobs move the score at all before you search again."
            line = of_objective(run, "check", "knobs")
    return said, line


def _another(run: Run, name: str, *words: str, settings: Mapping[str, Any] | None = None) -> str:
    """A search for the same on seeds that nobody has looked at."""
    seed = assign("evaluation.seed", run.plan.evaluation_seed + 1)
    own = (*words, *seed, "--run-id", _id(run.plan, name))
    return of_objective(run, "phase1", *own, settings=settings)


def _id(plan: Plan, name: str) -> str:
    return f"{plan.run_id[:NAME_CHARACTERS]}-{name}"


def _longer_evaluations(run: Run, step: Step, best: str) -> tuple[str, str]:
    """More training in each evaluation, or one longer training of what was found."""
    plan = run.plan
    longer = None if plan.confirmation is None else plan.confirmation.rung
    settings = {} if longer is None else longer.variant.settings
    is_known = set(settings) <= set(plan.objective.get("settings", {}))
    if longer is not None and settings and is_known and not is_kept_uncertain(run.state):
        times = longer.variant.cost_factor
        words = ("--tier", str(plan.tier))
        said = f"Search again with {times:g} times the training, at that cost: {step.why}."
        return said, _another(run, f"x{times:g}", *words, settings=settings)
    anyway = "" if run.state.decided and run.state.decided.grade == "go" else " --anyway"
    said = f"Train it and the baseline longer, on 8 fresh seeds, to compare them: {step.why}."
    return said, f"{best}{anyway} --train --seeds 8"
