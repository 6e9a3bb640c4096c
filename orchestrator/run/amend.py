"""Changes of a run by a person, on record: other caps, and the override of a rule."""

from collections.abc import Mapping
from pathlib import Path

from budgets.events import Amended, Overridden
from budgets.ledger import Clock, Ledger
from budgets.plan import Caps, Plan, Window
from budgets.rules import OVERRIDABLE, held_up_by
from budgets.state import ImpossibleEventError, RunState, apply, fold
from orchestrator.records.runs import load_state
from orchestrator.run.attempts import Run


def amend(
    directory: Path, changes: Mapping[str, float | Window | None], reason: str, clock: Clock
) -> RunState:
    """Record other caps in the ledger in `directory`; return the state afterwards.

    `changes` are fields of `Caps`; a cap that is None or not named stays. Raises ValueError if it
    is not possible: more is spent already, or the tier allows no more.
    """
    if not reason.strip():
        raise ValueError("amend needs --reason: why may the run spend that?")
    load_state(directory)  # raises, before anything is touched, if there is no run
    with Ledger(directory, clock) as ledger:
        state = fold(ledger.replay())
        before, changed = state.plan.caps, {k: v for k, v in changes.items() if v is not None}
        caps = Caps.model_validate({**dict(before), **changed})
        if caps == before:
            raise ValueError("amend: expected a cap other than the run's own, e.g. --max-evals 480")
        generations = affordable_generations(state.plan, caps)
        record = ledger.seal(Amended(caps=caps, generations=generations, reason=reason))
        try:
            apply(state, record)
        except ImpossibleEventError as error:
            raise ValueError(f"amend: {error.why}") from error
        ledger.append(record)
        return state


def affordable_generations(plan: Plan, caps: Caps) -> int:
    """Return G under other caps. Raises ValueError beyond the tier's number of evaluations."""
    most = plan.nominal.evaluations
    if caps.evaluations > most:
        where = plan.phase if plan.tier is None else f"tier {plan.tier}"
        raise ValueError(
            f"--max-evals: expected at most the {most} evaluations of {where}, got "
            f"{caps.evaluations}; begin a run of a larger tier for more"
        )
    if plan.search is None or caps.evaluations == plan.caps.evaluations:
        return plan.resolved.generations
    return max(1, caps.evaluations // plan.resolved.per_generation)


def override(run: Run, rule: str, reason: str) -> None:
    """Record that the run goes on although `rule` fired; repeating it has no effect.

    Raises ValueError as `refuse_override` does.
    """
    refuse_override(run.state, rule, reason)
    for trigger in held_up_by(run.state, rule):
        run.record(Overridden(rule=rule, generation=trigger.generation, reason=reason))


def refuse_override(state: RunState, rule: str, reason: str) -> None:
    """Raise ValueError unless that rule holds the run up and can be overridden.

    A reason is valid for one generation: if the rule fires again, a person has to look again.
    """
    is_passed = (rule, reason) in {(one.rule, one.reason) for one in state.overridden}
    triggers = held_up_by(state, rule)
    if not triggers and not is_passed:
        raise ValueError(f"--override {rule}: that rule does not hold this run up")
    if triggers and rule not in OVERRIDABLE:
        raise ValueError(
            f"--override {rule}: this rule cannot be overridden. Remove its cause, or amend the "
            "cap, and repeat the command without --override"
        )
    if triggers and is_passed:
        raise ValueError(
            f"--override {rule}: the rule fires again in generation {triggers[0].generation}: "
            "look, and give another --reason"
        )
