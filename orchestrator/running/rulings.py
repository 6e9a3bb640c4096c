"""What rules decide, put on record: that they fired, were overridden, that the run is done."""

from budgets.events import Concluded, Overridden
from budgets.rules import Ruling, held_up_by, judge, only_ends_the_search
from budgets.state import RunState
from orchestrator.running.run import Run


def judge_on_record(run: Run) -> Ruling:
    """The ruling; what only ends a search goes on record, and what it found is still compared."""
    ruling = judge(run.state)
    if not only_ends_the_search(run.state, ruling):
        return ruling
    put_on_record(run, ruling)
    return judge(run.state)


def put_on_record(run: Run, ruling: Ruling) -> None:
    """Put the rules that fired on record, each once a generation; a stop again after new caps."""
    known = {(fired.rule, fired.generation) for fired in run.state.fired}
    for trigger in ruling.triggers:
        is_known = (trigger.rule, trigger.generation) in known
        if not is_known or (trigger.decision == "stop" and run.state.ended is None):
            run.record(trigger.fired())


def conclude(run: Run, ruling: Ruling) -> None:
    """Put the ruling on record: the rules that fired, or that the run is done."""
    put_on_record(run, ruling)
    if ruling.decision == "done":
        run.record(Concluded(reason=ruling.reason))


def override(run: Run, rule: str, reason: str) -> None:
    """Let the run go on although `rule` fired; where it fires no longer, repeating is harmless.

    Raises ValueError as `refuse_override` does.
    """
    refuse_override(run.state, rule, reason)
    for trigger in held_up_by(run.state, rule):
        run.record(Overridden(rule=rule, generation=trigger.generation, reason=reason))


def refuse_override(state: RunState, rule: str, reason: str) -> None:
    """Raises ValueError unless that rule is what holds the run up.

    Also where the reason was given for an earlier generation: it lets through only what somebody
    had looked at.
    """
    passed = [o for o in state.overridden if (o.rule, o.reason) == (rule, reason)]
    triggers = held_up_by(state, rule)
    if not triggers and not passed:
        raise ValueError(f"--override {rule}: that rule does not hold this run up")
    for trigger in triggers:
        if not trigger.overridable:
            way_on = " Repeat the command without it: that tries again"
            tries_again = rule in ("infrastructure", "setup_failed")
            raise ValueError(
                f"--override {rule}: this rule cannot be overridden.{way_on if tries_again else ''}"
            )
        if passed:
            raise ValueError(
                f"--override {rule}: this reason let generation {passed[-1].generation} through; "
                f"the rule fires again in generation {trigger.generation}: look, and give another "
                "--reason"
            )
