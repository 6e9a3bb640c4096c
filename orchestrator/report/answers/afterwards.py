"""What to do after a verdict: one decision, why, and the command that does just that."""

from collections.abc import Callable
from typing import Any, NamedTuple

from budgets.events import Decided
from budgets.state import RunState
from budgets.statistics.detectable import detectable
from budgets.tiers import TIERS
from budgets.verdict.advice import MOST_SEEDS, advice, enough_seeds
from budgets.verdict.findings import Findings
from budgets.words import percent
from orchestrator.config.document import as_assigned
from orchestrator.report.answers.asked import Asked, command
from orchestrator.report.answers.cautions import unbeaten
from orchestrator.report.answers.words import sentence_case
from orchestrator.report.prose import unmarked

NAME_CHARACTERS = 48
"""Of a run's id that the id of another begins with."""


class After(NamedTuple):
    """A decision, its command, and what another one is for."""

    said: str
    commands: tuple[str, ...]
    otherwise: str = ""


def afterwards(asked: Asked, found: Findings, own: Decided) -> After:
    """What to do after that decision."""
    if own.grade == "go_persists":
        return _use(asked, found)
    if own.grade == "go":
        return _longer(asked, found)
    return _AFTER.get(own.no_go or "", _knobs)(asked, found)


def _best(asked: Asked) -> str:
    return command("best", asked.run)


def _use(asked: Asked, found: Findings) -> After:
    """The gain is there with more training too."""
    said = "Use what it found: this shows all of its settings, in every form."
    if unbeaten(found):
        said = "Look at what it found, and use the control instead if that is simpler."
    if asked.state.plan.phase == "phase2":
        return After(said, (_best(asked),))
    count = TIERS["phase2", "min"].evaluations
    words = ("phase2", "--variant", "robust", "--tier", "min", "--from", asked.run)
    other = (
        "Or, to see whether it survives other seeds and to search on from there (tier min of phase "
        f"2: {count} evaluations, three seeds a candidate):"
    )
    return After(said, (_best(asked), asked.of_objective(*words)), other)


def _longer(asked: Asked, found: Findings) -> After:
    """It is not shown to last: try with more training before anybody relies on it there."""
    settings = _more_training(asked.state)
    show = "Or take it as it is, for trainings as short as the search's:"
    if found.rung is None or settings is None:
        line = f"{_best(asked)} --train --seeds 8 --compare"
        said = (
            "Train it and the baseline 4 times as long on 8 fresh seeds before you rely on it: "
            f"{_why_longer(found)}."
        )
        return After(said, (line, _best(asked)), show)
    said = (
        f"Search again with {_named(settings)}, {_times(asked.state)}: what is best for short "
        "trainings is not shown to be good for longer ones. It costs about "
        f"{_factor(asked.state):g} times what this run did."
    )
    return After(said, (_again(asked, settings), _best(asked)), show)


def _why_longer(found: Findings) -> str:
    if found.rung is None:
        return "that was not tried"
    return "the search's comparison did not show that it lasts"


def _more_training(state: RunState) -> dict[str, Any] | None:
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


def _times(state: RunState) -> str:
    return f"{_factor(state):g} times the training"


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


def _knobs(asked: Asked, _: Findings) -> After:
    """The knobs hardly move the score."""
    said = (
        "Find out which knobs move the score at all before you search again: a check moves each "
        "of them alone."
    )
    check = asked.of_objective("space", "check")
    more = _more_seeds(asked)
    if more is None:
        return After(said, (check,))
    return After(said, (check, more.commands[0]), f"Or {more.said[:1].lower()}{more.said[1:]}")


def _seeds(asked: Asked, found: Findings) -> After:
    """The noise may hide a gain."""
    if (more := _more_seeds(asked)) is not None and enough_seeds(asked.state) is not None:
        return more
    settings = _more_training(asked.state)
    if settings is None:
        return _knobs(asked, found)
    said = (
        f"Search with {_named(settings)}, {_times(asked.state)}: seeds differ less there, and here "
        f"the noise hides a gain of {percent(found.asked)}."
    )
    return After(said, (_again(asked, settings),))


def _more_seeds(asked: Asked) -> After | None:
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


def _more(asked: Asked, _: Findings) -> After:
    """There is a gain, smaller than asked: a longer search may find more."""
    anyway = f"{_best(asked)} --anyway"
    said = "The gain is smaller than asked; who takes it all the same finds its settings here."
    longer = _longest(asked)
    if longer is None:
        return After(said, (anyway,))
    return After(
        f"Search longer for more: tier max has {_most()} evaluations.",
        (longer, anyway),
        "Or take what there is all the same:",
    )


def _most() -> int:
    return TIERS["phase1", "max"].evaluations


def _longest(asked: Asked) -> str | None:
    plan = asked.state.plan
    if plan.phase != "phase1" or plan.tier == "max":
        return None
    name = f"{plan.run_id[:NAME_CHARACTERS]}-max"
    seeds = ("--eval-seed", str(plan.evaluation_seed + 1))  # these were looked at
    return asked.of_objective("phase1", "--tier", "max", *seeds, "--run-id", name)


def _lost(asked: Asked, found: Findings) -> After:
    """The gain was lost with more training, or was never the search's as a whole."""
    average = next((c for c in found.conditions if c.rule == "persistence"), None)
    longer, settings = _longest(asked), _more_training(asked.state)
    show = "Or see what was compared:"
    if average is not None and not average.met and longer is not None:
        said = (
            f"Search longer, in tier max with {_most()} evaluations: as a whole this search did "
            "not get better than the baseline."
        )
        return After(said, (longer, _best(asked)), show)
    if settings is not None:
        said = (
            f"Search with {_named(settings)}, {_times(asked.state)}: what wins on a short training "
            "is lost there."
        )
        return After(said, (_again(asked, settings), _best(asked)), show)
    return After(_advised(asked), (_best(asked),))


def _look(asked: Asked, _: Findings) -> After:
    return After(_advised(asked), (command("ledger", "export", asked.run),))


def _advised(asked: Asked) -> str:
    return f"{sentence_case(unmarked(advice(asked.state) or '').removeprefix('Next: '))}"


_AFTER: dict[str, Callable[[Asked, Findings], After]] = {
    "dead_space": _knobs,
    "below_noise": _seeds,
    "too_small": _more,
    "does_not_persist": _lost,
    "pathological": _look,
    "unstable": _look,
}
