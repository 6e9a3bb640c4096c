"""Changes of a run by a person, on record: other caps, and the override of a rule."""

from dataclasses import dataclass
from pathlib import Path

from budgets.events import Amended, Overridden
from budgets.ledger import Clock, Ledger
from budgets.plan import Caps, Plan, Window
from budgets.rules import OVERRIDABLE, held_up_by
from budgets.state import ImpossibleEventError, RunState, apply, fold
from orchestrator.plan.resolve import Overrides
from orchestrator.records.runs import load_state
from orchestrator.run.attempts import Run


@dataclass(frozen=True)
class Amendment:
    """New caps of a run; `None` leaves a cap as it is."""

    reason: str
    evaluations: int | None = None
    device_hours: float | None = None
    hours: float | None = None
    cost: float | None = None
    window: Window | None = None

    def caps(self, before: Caps) -> Caps:
        """Return the caps after the amendment. Raises ValueError if they are the same."""
        changed = {k: v for k, v in vars(self).items() if k != "reason" and v is not None}
        after = Caps.model_validate({**dict(before), **changed})
        if after == before:
            raise ValueError("amend: expected a cap other than the run's own, e.g. --max-evals 480")
        return after


def amend(directory: Path, amendment: Amendment, clock: Clock) -> RunState:
    """Record the amendment in the ledger in `directory`; return the state afterwards.

    Raises ValueError if it is not possible: more is spent already, or the tier allows no more.
    """
    if not amendment.reason.strip():
        raise ValueError("amend needs --reason: why may the run spend that?")
    load_state(directory)  # raises, before anything is touched, if there is no run
    with Ledger(directory, clock) as ledger:
        state = fold(ledger.replay())
        caps = amendment.caps(state.plan.caps)
        generations = affordable_generations(state.plan, caps)
        record = ledger.seal(Amended(caps=caps, generations=generations, reason=amendment.reason))
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


def refuse_late_overrides(state: RunState, overrides: Overrides) -> None:
    """Raise ValueError on an override that is not on record: the run is over."""
    known = {(overridden.rule, overridden.reason) for overridden in state.overridden}
    for rule, reason in overrides:
        if (rule, reason) not in known:
            raise ValueError(f"--override {rule}: this run is over: no rule holds it up")
