"""The next step after a verdict (`budgets.verdict.advice`) with the commands that do just that."""

from collections.abc import Callable
from typing import Any, NamedTuple

from budgets.plain import command
from budgets.state import RunState
from budgets.statistics.detectable import detectable
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
from orchestrator.config.document import as_assigned
from orchestrator.report.answers.asked import Asked

NAME_CHARACTERS = 48
"""Of a run's id that the id of another begins with."""


class After(NamedTuple):
    """A decision, its command, and what another one is for."""

    said: str
    commands: tuple[str, ...]
    otherwise: str = ""


def afterwards(asked: Asked, found: Findings) -> After:
    """What to do after the decision there is."""
    step = advised(asked.state)
    assert step is not None, "it is decided"
    after = _AFTER[step.kind](asked, found, step)
    is_shown = found.gain is not None and found.gain.is_shown
    return wider(asked, after) if is_shown and step.kind not in ("control", "failures") else after


def wider(asked: Asked, after: After) -> After:
    """What to do where the best lies at the end of a range; else what there was to do anyway."""
    found = asked.widening
    if found is None:
        return after
    if found.is_whole:
        otherwise = f"Or {uncapitalized(after.said)}"
        return After(found.said, (found.command, *after.commands[:1]), otherwise)
    otherwise = f"Or {uncapitalized(found.said)}"
    return After(after.said, (*after.commands[:1], found.command), otherwise)


def _best(asked: Asked) -> str:
    return command("best", asked.run)


def _use(asked: Asked, found: Findings, _: Step) -> After:
    return After(_taking(found), (_best(asked),))


def _taking(found: Findings) -> str:
    if unbeaten(found):
        return "Look at what it found, and use the control instead if that is simpler."
    return "Use what it found: this shows the whole configuration, in every form."


def _follow(asked: Asked, found: Findings, _: Step) -> After:
    """The gain is there with more training too."""
    count = TIERS["phase2", "min"].evaluations
    words = ("phase2", "--variant", "robust", "--tier", "min", "--from", asked.run)
    said = (
        f"See whether it survives other seeds, and search on from there: some {count} evaluations "
        "in tier min of phase 2, three seeds a candidate."
    )
    otherwise = f"Or {uncapitalized(_taking(found))}"
    return After(said, (command(*words), _best(asked)), otherwise)


def _longer_evaluations(asked: Asked, found: Findings, step: Step) -> After:
    """More training in each evaluation: a search, or else one longer training of what there is."""
    settings = None if is_rung_uncertain(asked.state) else _settings_with_more(asked.state)
    show = "Or see what was compared:"
    if found.grade == "go":
        show = "Or take it as it is, for trainings as short as the search's:"
    if settings is not None:
        said = (
            f"Search again with {_named(settings)}, {_factor(asked.state):g} times the training: "
            f"{step.why}. It costs about {_factor(asked.state):g} times what this run did."
        )
        return After(said, (_again(asked, settings), _best(asked)), show)
    if found.grade == "go":
        said = (
            "Train it and the baseline 4 times as long on 8 fresh seeds before you rely on it: "
            f"{step.why}."
        )
        return After(said, (f"{_best(asked)} --train --seeds 8 --compare", _best(asked)), show)
    return After(f"Search with longer evaluations: {step.why}.", (_best(asked),), "")


def _settings_with_more(state: RunState) -> dict[str, Any] | None:
    """The settings with more training on which it was tried, if they are the search's own."""
    confirmation = state.plan.confirmation
    rung = None if confirmation is None else confirmation.rung
    known = state.plan.objective.get("settings", {})
    if rung is None or not rung.varied.settings or not set(rung.varied.settings) <= set(known):
        return None
    return rung.varied.settings


def _factor(state: RunState) -> float:
    assert state.plan.confirmation is not None, "it was compared"
    rung = state.plan.confirmation.rung
    return 1.0 if rung is None else rung.varied.length


def _named(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_short(value)}" for name, value in settings.items())


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else as_assigned(value)


def _again(asked: Asked, settings: dict[str, Any]) -> str:
    """The same search with more training; of a phase 2, a search that begins where it stands."""
    plan = asked.state.plan
    name = f"{plan.run_id[:NAME_CHARACTERS]}-x{_factor(asked.state):g}"
    from_there = ("--warm-start", asked.run) if plan.phase == "phase2" else ()
    words = ("phase1", "--tier", str(plan.tier), "--run-id", name, *from_there)
    return asked.of_objective(*words, settings=settings)


def _other_knobs(asked: Asked, _: Findings, step: Step) -> After:
    """The knobs hardly move the score, or more of the same will not help."""
    why = f"{sentence_case(step.why)}. " if step.why else ""
    said = (
        f"{why}Find out which knobs move the score at all before you search again: a check moves "
        "each of them alone."
    )
    check = asked.of_objective("space", "check")
    more = None if step.why else _confirmed_on_more(asked)
    if more is None:
        return After(said, (check,))
    return After(said, (check, more.commands[0]), f"Or {uncapitalized(more.said)}")


def _more_seeds(asked: Asked, found: Findings, step: Step) -> After:
    return _confirmed_on_more(asked) or _other_knobs(asked, found, step)


def _confirmed_on_more(asked: Asked) -> After | None:
    """A run of its own with so many seeds that smaller gains would show; None where none would."""
    plan, gain = asked.state.plan, asked.report.findings and asked.report.findings.gain
    if plan.phase != "phase1" or not gain or gain.sd is None or gain.pairs >= MOST_SEEDS:
        return None
    if gain.upper is None or gain.upper <= plan.thresholds.go_gain:
        return None
    count = enough_seeds(asked.state) or MOST_SEEDS
    seen = max(detectable(gain.sd, count, gain.level), plan.thresholds.go_gain)
    again = ("--confirm-seeds", str(count), "--eval-seed", str(plan.evaluation_seed + 1))
    name = ("--run-id", f"{plan.run_id[:NAME_CHARACTERS]}-{count}-seeds")
    said = (
        f"Repeat it with --confirm-seeds {count}, on other seeds: by the noise of these they would "
        f"show a true gain of {percent(seen, 3)} 8 times of 10."
    )
    return After(said, (asked.of_objective("phase1", "--tier", str(plan.tier), *again, *name),))


def _longer_search(asked: Asked, _: Findings, step: Step) -> After:
    """More evaluations may find more, if there is a larger tier."""
    plan, show = asked.state.plan, _best(asked)
    said = f"{sentence_case(step.why)}."
    if asked.state.decided is not None and asked.state.decided.no_go == "too_small":
        show = f"{show} --anyway"
    if plan.phase != "phase1" or plan.tier == "max":
        return After(said, (show,))
    name = f"{plan.run_id[:NAME_CHARACTERS]}-max"
    seeds = ("--eval-seed", str(plan.evaluation_seed + 1))  # these were looked at
    words = ("phase1", "--tier", "max", *seeds, "--run-id", name)
    most = TIERS["phase1", "max"].evaluations
    return After(
        f"Search longer, in tier max with {most} evaluations: {step.why}.",
        (asked.of_objective(*words), show),
        "Or see what was compared:",
    )


def _control(asked: Asked, _: Findings, step: Step) -> After:
    said = (
        f"Use {quoted(step.instead)} instead: it is simpler and better than the winner. Or tune "
        "knobs that it has as well. To see what was found:"
    )
    return After(said, (_best(asked),))


def _failures(asked: Asked, _: Findings, __: Step) -> After:
    said = "Look into the failures, narrow the ranges that lead there, and search again."
    return After(said, (command("ledger", "export", asked.run),))


_AFTER: dict[StepKind, Callable[[Asked, Findings, Step], After]] = {
    "use": _use,
    "follow": _follow,
    "longer_evaluations": _longer_evaluations,
    "more_seeds": _more_seeds,
    "longer_search": _longer_search,
    "other_knobs": _other_knobs,
    "control": _control,
    "failures": _failures,
}
