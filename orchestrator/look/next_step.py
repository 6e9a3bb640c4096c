"""What a person does next, with the commands that do just that."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import ceil
from typing import Any, NamedTuple

from pydantic import ValidationError

from budgets.plain import command
from budgets.statistics.detectable import detectable
from budgets.terms import Plan
from budgets.tiers import TIERS
from budgets.verdict.advice import (
    MOST_SEEDS,
    Step,
    StepKind,
    advised,
    enough_seeds,
    is_rung_uncertain,
)
from budgets.verdict.findings import Findings, unbeaten
from budgets.words import percent, quoted, sentence_case, uncapitalized
from objectives import secrets
from objectives.api import SetupError
from objectives.space import Knob
from orchestrator.config.asked import found_as
from orchestrator.config.command_words import UntoldError, objective_words
from orchestrator.config.document import as_assigned
from orchestrator.look.run import Run
from orchestrator.records.planned import space_of
from orchestrator.records.range_ends import RangeEnd, widened_in_words

NAME_CHARACTERS = 48
"""Of a run's id that the id of another begins with."""

WIDER = 0.5
"""By how much of its own scale a range is made wider: a proposal, to be changed at will."""

ONCE = ("--override", "--reason")
"""Options with a value that a command has for once: to repeat it they are left out."""


class NextStep(NamedTuple):
    """A decision, its command, and what another one is for."""

    said: str
    commands: tuple[str, ...]
    otherwise: str = ""


class Widening(NamedTuple):
    """What to do, and the command; `is_whole`: it widens the ranges itself."""

    said: str
    command: str
    is_whole: bool


def named(run: Run) -> str:
    """The word by which a command finds the run: its id where that is enough."""
    return run.plan.run_id if run.directory is None else found_as(run.directory, run.plan)


def beginning(run: Run) -> tuple[str, ...]:
    """The command that its last session was begun with; empty where its ledger does not say."""
    for session in reversed(run.state.opened):
        if session.command:
            words = list(_lasting(session.command))
            return () if any(secrets.HIDDEN in word for word in words) else (command(*words),)
    return ()


def _lasting(words: Sequence[str]) -> Sequence[str]:
    """The command without what it had for once, and as text for a person."""
    kept, is_value = list[str](), False
    for word in words:
        if not is_value and word != "--json" and word.partition("=")[0] not in ONCE:
            kept.append(word)
        is_value = word in ONCE
    return kept


def overriding(run: Run, rules: Sequence[str]) -> tuple[str, ...]:
    """The run taken up although these rules fired."""
    options = "".join(f" --override {rule}" for rule in rules)
    return tuple(f'{line}{options} --reason "WHY"' for line in beginning(run))


def of_objective(run: Run, *words: str, settings: Mapping[str, Any] | None = None) -> str:
    """A command about what the run tunes, with these settings instead of the run's own.

    With a file's name to fill in where a ledger must not tell them.
    """
    changed, own = settings or {}, run.plan.objective
    objective = {**own, "settings": {**own["settings"], **changed}}
    with suppress(UntoldError, SetupError, ValueError):
        tuned = run.plan.model_copy(update={"objective": objective})
        return command(*words, *objective_words(tuned))
    sets = (
        word for key, value in changed.items() for word in ("--set", f"{key}={as_assigned(value)}")
    )
    return command(*words, "--config", "FILE", *sets)


# After a verdict


def after_the_verdict(run: Run, found: Findings) -> NextStep:
    """What to do after the decision there is; a range that ends too early comes first."""
    step = advised(run.state)
    assert step is not None, "it is decided"
    after = _AFTER[step.kind](run, found, step)
    is_shown = found.gain is not None and found.gain.is_shown
    return wider(run, after) if is_shown and step.kind not in ("control", "failures") else after


def _best(run: Run) -> str:
    return command("best", named(run))


def _use(run: Run, found: Findings, _: Step) -> NextStep:
    return NextStep(_taking(found), (_best(run),))


def _taking(found: Findings) -> str:
    if unbeaten(found):
        return "Look at what it found, and use the control instead if that is simpler."
    return "Use what it found: this shows the whole configuration, in every form."


def _follow(run: Run, found: Findings, _: Step) -> NextStep:
    """The gain is there with more training too."""
    count = TIERS["phase2", "min"].evaluations
    words = ("phase2", "--variant", "robust", "--tier", "min", "--from", named(run))
    said = (
        f"See whether it survives other seeds, and search on from there: some {count} evaluations "
        "in tier min of phase 2, three seeds a candidate."
    )
    return NextStep(said, (command(*words), _best(run)), f"Or {uncapitalized(_taking(found))}")


def _longer_evaluations(run: Run, found: Findings, step: Step) -> NextStep:
    """More training in each evaluation: a search, or else one longer training of what there is."""
    settings = None if is_rung_uncertain(run.state) else _settings_with_more(run)
    is_go = found.grade == "go"
    show = "Or see what was compared:"
    if is_go:
        show = "Or take it as it is, for trainings as short as the search's:"
    if settings is not None:
        names = ", ".join(f"{name} {_short(value)}" for name, value in settings.items())
        said = (
            f"Search again with {names}, {_factor(run):g} times the training: {step.why}. It costs "
            f"about {_factor(run):g} times what this run did."
        )
        return NextStep(said, (_again_with(run, settings), _best(run)), show)
    if is_go:
        said = (
            "Train it and the baseline 4 times as long on 8 fresh seeds before you rely on it: "
            f"{step.why}."
        )
        return NextStep(said, (f"{_best(run)} --train --seeds 8 --compare", _best(run)), show)
    return NextStep(f"Search with longer evaluations: {step.why}.", (_best(run),))


def _settings_with_more(run: Run) -> dict[str, Any] | None:
    """The settings with more training on which it was tried, if they are the search's own."""
    confirmation = run.plan.confirmation
    longer = None if confirmation is None else confirmation.rung
    known = run.plan.objective.get("settings", {})
    if (
        longer is None
        or not longer.varied.settings
        or not set(longer.varied.settings) <= set(known)
    ):
        return None
    return longer.varied.settings


def _factor(run: Run) -> float:
    confirmation = run.plan.confirmation
    longer = None if confirmation is None else confirmation.rung
    return 1.0 if longer is None else longer.varied.length


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else as_assigned(value)


def _again_with(run: Run, settings: dict[str, Any]) -> str:
    """The same search with more training; of a phase 2, a search that begins where it stands."""
    name = f"{run.plan.run_id[:NAME_CHARACTERS]}-x{_factor(run):g}"
    from_there = ("--warm-start", named(run)) if run.plan.phase == "phase2" else ()
    words = ("phase1", "--tier", str(run.plan.tier), "--run-id", name, *from_there)
    return of_objective(run, *words, settings=settings)


def _other_knobs(run: Run, _: Findings, step: Step) -> NextStep:
    """The knobs hardly move the score, or more of the same will not help."""
    why = f"{sentence_case(step.why)}. " if step.why else ""
    said = (
        f"{why}Find out which knobs move the score at all before you search again: a check moves "
        "each of them alone."
    )
    check = of_objective(run, "space", "check")
    more = None if step.why else _confirmed_on_more(run)
    if more is None:
        return NextStep(said, (check,))
    return NextStep(said, (check, more.commands[0]), f"Or {uncapitalized(more.said)}")


def _more_seeds(run: Run, found: Findings, step: Step) -> NextStep:
    return _confirmed_on_more(run) or _other_knobs(run, found, step)


def _confirmed_on_more(run: Run) -> NextStep | None:
    """A run of its own with so many seeds that smaller gains would show; None where none would."""
    plan, gain = run.plan, run.findings and run.findings.gain
    if plan.phase != "phase1" or not gain or gain.sd is None or gain.pairs >= MOST_SEEDS:
        return None
    if gain.upper is None or gain.upper <= plan.thresholds.go_gain:
        return None
    count = enough_seeds(run.state) or MOST_SEEDS
    seen = max(detectable(gain.sd, count, gain.level), plan.thresholds.go_gain)
    again = ("--confirm-seeds", str(count), "--eval-seed", str(plan.evaluation_seed + 1))
    name = ("--run-id", f"{plan.run_id[:NAME_CHARACTERS]}-{count}-seeds")
    said = (
        f"Repeat it with --confirm-seeds {count}, on other seeds: by the noise of these they would "
        f"show a true gain of {percent(seen, 3)} 8 times of 10."
    )
    return NextStep(said, (of_objective(run, "phase1", "--tier", str(plan.tier), *again, *name),))


def _longer_search(run: Run, _: Findings, step: Step) -> NextStep:
    """More evaluations may find more, if there is a larger tier."""
    plan, show = run.plan, _best(run)
    if run.state.decided is not None and run.state.decided.no_go == "too_small":
        show = f"{show} --anyway"
    if plan.phase != "phase1" or plan.tier == "max":
        return NextStep(f"{sentence_case(step.why)}.", (show,))
    name = f"{plan.run_id[:NAME_CHARACTERS]}-max"
    seeds = ("--eval-seed", str(plan.evaluation_seed + 1))  # these were looked at
    most = TIERS["phase1", "max"].evaluations
    return NextStep(
        f"Search longer, in tier max with {most} evaluations: {step.why}.",
        (of_objective(run, "phase1", "--tier", "max", *seeds, "--run-id", name), show),
        "Or see what was compared:",
    )


def _control(run: Run, _: Findings, step: Step) -> NextStep:
    said = (
        f"Use {quoted(step.instead)} instead: it is simpler and better than the winner. Or tune "
        "knobs that it has as well. To see what was found:"
    )
    return NextStep(said, (_best(run),))


def _failures(run: Run, _: Findings, __: Step) -> NextStep:
    said = "Look into the failures, narrow the ranges that lead there, and search again."
    return NextStep(said, (command("ledger", "export", named(run)),))


_AFTER: dict[StepKind, Callable[[Run, Findings, Step], NextStep]] = {
    "use": _use,
    "follow": _follow,
    "longer_evaluations": _longer_evaluations,
    "more_seeds": _more_seeds,
    "longer_search": _longer_search,
    "other_knobs": _other_knobs,
    "control": _control,
    "failures": _failures,
}


# Where the best lies at the end of a range


def wider(run: Run, after: NextStep) -> NextStep:
    """What to do where the best lies at the end of a range; else what there was to do anyway."""
    found = widening(run.plan, named(run), run.range_ends)
    if found is None:
        return after
    if found.is_whole:
        otherwise = f"Or {uncapitalized(after.said)}"
        return NextStep(found.said, (found.command, *after.commands[:1]), otherwise)
    return NextStep(
        after.said, (*after.commands[:1], found.command), f"Or {uncapitalized(found.said)}"
    )


def widening(plan: Plan, run: str, ends: Sequence[RangeEnd]) -> Widening | None:
    """The way on from a run, as a command finds it; None without knobs at an end.

    A range that is written into an objective's source no setting changes: what is said names that.
    None too where the ledger does not tell what the run tuned.
    """
    if not ends:
        return None
    ranges = _ranges(plan, ends)
    settings = {**plan.objective["settings"], **({} if ranges is None else {"knobs": ranges})}
    if ranges is not None and "space" in settings:  # of ready knobs: all of them are declared now
        del settings["space"]
    tuned = plan.model_copy(update={"objective": {**plan.objective, "settings": settings}})
    tier = str(plan.tier) if plan.phase == "phase1" and plan.tier != "min" else "target"
    name = f"{plan.run_id[:NAME_CHARACTERS]}-wider"
    with suppress(UntoldError, SetupError, ValueError):
        words = ("phase1", "--tier", tier, "--run-id", name, "--warm-start", run)
        line = command(*words, *objective_words(tuned))
        where = "" if ranges is not None else " (its source has the range)"
        said = f"Widen {widened_in_words(ends)}{where}, then continue from this run."
        return Widening(said, line, ranges is not None)
    return None


def _ranges(plan: Plan, ends: Sequence[RangeEnd]) -> dict[str, Mapping[str, Any]] | None:
    """All knobs as a setting declares them, those at an end wider; None where no setting does."""
    name, settings = plan.objective["name"], plan.objective["settings"]
    if not (name == "command" or name.startswith("python:") or "checkout" in settings):
        return None
    way = {end.knob: end.end for end in ends}
    return {
        knob.name: _declared(knob if knob.name not in way else _wider(knob, way[knob.name]))
        for knob in space_of(plan).knobs
    }


def _wider(knob: Knob, end: str) -> Knob:
    """By half of its range on that side; as it is where there are no values beyond."""
    by = WIDER * (knob.high - knob.low)
    if knob.kind == "int":
        by = knob.step * ceil(by / knob.step)
    low, high = knob.low, knob.high
    if end == "upper":
        high = high / 2 if _crosses_zero(knob, high, high + by) else high + by
    else:
        low = low / 2 if _crosses_zero(knob, low, low - by) else low - by
    with suppress(ValidationError):
        return Knob.model_validate({**knob.model_dump(), "low": low, "high": high})
    return knob


def _crosses_zero(knob: Knob, edge: float, beyond: float) -> bool:
    """Whether a range of one sign would get values of the other."""
    return knob.kind == "linear" and edge * beyond <= 0 and edge != 0


def _declared(knob: Knob) -> dict[str, Any]:
    low, high, baseline = (
        float(f"{value:.12g}") for value in (knob.decode(0.0), knob.decode(1.0), knob.baseline)
    )
    step = {"step": knob.step} if knob.step != 1 else {}
    return {"kind": knob.kind, "min": low, "max": high, **step, "baseline": baseline}
