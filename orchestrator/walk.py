"""The walk of a run, readable aloud: ask, reserve, evaluate, settle, tell, judge."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Protocol

from budgets.accounts import Refusal
from budgets.events import Concluded, Fired, GenerationAsked, GenerationTold, Overridden
from budgets.state import Generation, RunState
from budgets.triggers import RULES, Trigger, Verdict, disk_full, judge, refused
from orchestrator.execution.evaluate import Executor
from orchestrator.plan import evaluation_seeds
from orchestrator.run import Run, has_begun, settle_one_abandoned

WAIT_SECONDS = 0.5
"""How long one look at the executor takes before signals and budgets are looked at again."""


class ReplayError(Exception):
    """The search no longer proposes what the ledger says it proposed.

    Named here, not beside the search, so that naming it does not import cma.
    """

    def __init__(self, generation: int, why: str) -> None:
        super().__init__(
            f"the replay diverges at generation {generation}: {why}. The ledger was written with "
            "another seed, another version of cma or numpy, or on another kind of processor"
        )
        self.generation = generation


class Stop(Protocol):
    """Whether a person, by a signal, wants the run to end."""

    requested: bool  # no new evaluations; those running may finish
    signum: int

    @property
    def now(self) -> bool:
        """Kill those too."""

    def install(self) -> None:
        """Begin to listen."""


class Proposer(Protocol):
    """Where the points of a generation come from, and who learns from them."""

    def ask(self) -> tuple[tuple[float, ...], ...]: ...

    def tell(self, generation: Generation) -> GenerationTold | None: ...


@dataclass(frozen=True)
class Given:
    """Proposes points that were known before, and learns nothing: a calibration, a check."""

    points: tuple[tuple[float, ...], ...]

    def ask(self) -> tuple[tuple[float, ...], ...]:
        return self.points

    def tell(self, generation: Generation) -> None:
        """There is nobody to learn."""


def conduct(
    run: Run, proposer: Proposer, executor: Executor, stop: Stop, closed: Callable[[Run], None]
) -> Verdict:
    """Propose, evaluate and learn until a rule, a budget, a signal or the plan ends it.

    `closed` is called after each generation.
    """
    while (verdict := judge(run.state)).decision == "continue":
        if run.state.current is None:
            run.record(_asked(run.state, proposer.ask()))
        if interruption := evaluate_owed(run, executor, stop):
            return interruption
        if judge(run.state).decision in ("continue", "done"):
            generation = run.state.current
            assert generation is not None, "it was evaluated, and is not told yet"
            if told := proposer.tell(generation):
                run.record(told)
            run.ledger.mark_head()
            closed(run)
    return verdict


def _asked(state: RunState, points: tuple[tuple[float, ...], ...]) -> GenerationAsked:
    number = state.asked
    return GenerationAsked(
        generation=number, points=points, seeds=evaluation_seeds(state.plan, number)
    )


def evaluate_owed(run: Run, executor: Executor, stop: Stop) -> Verdict | None:
    """Bring every evaluation of the current generation to its final result.

    Returns None when that is done, or else what ended it early: a rule that already fires, a cap
    that nothing more fits under, a signal. What is in flight then comes to its end first, unless
    `stop.now`.
    """
    while True:
        verdict = judge(run.state)
        halted = stop.requested or verdict.decision in ("pause", "stop")
        held_up = None if halted else _dispatch(run, executor)
        if stop.now or not (run.state.accounts.holds or _may_go_on(run, halted, held_up)):
            break
        for outcome in executor.wait(WAIT_SECONDS):
            run.take(outcome)
        for device in executor.withdrawn:
            if device not in run.state.withdrawn:
                run.record(device)
    if verdict.decision in ("pause", "stop"):
        return verdict
    if held_up is not None:
        return Verdict(held_up.decision, (held_up,), held_up.evidence)
    return Verdict("continue", (), "interrupted") if stop.requested else None


def _may_go_on(run: Run, halted: bool, held_up: Trigger | None) -> bool:
    """Whether something is owed that only waits for a slot."""
    generation = run.state.current
    return not halted and held_up is None and generation is not None and bool(generation.owed())


def _dispatch(run: Run, executor: Executor) -> Trigger | None:
    """Start what is owed while a slot is free; what holds it up, a cap or the disk."""
    while (generation := run.state.current) and (owed := generation.owed()):
        if not executor.free():
            return None
        if no_room := run.ledger.room():
            return disk_full(generation.number, no_room)
        attempt = run.reserve(generation, *owed[0])
        if isinstance(attempt, Refusal):
            return refused(generation, attempt)
        if has_begun(attempt):
            settle_one_abandoned(run, run.state.open_tries()[-1])
        else:
            executor.submit(attempt)
    return None


def conclude(run: Run, verdict: Verdict) -> Verdict:
    """Put the verdict on record, once: the rules that fired, or that the run is done."""
    known = {(fired.rule, fired.generation) for fired in run.state.fired}
    for trigger in verdict.triggers:
        if (trigger.rule, trigger.generation) not in known:
            fields = asdict(trigger)
            del fields["overridable"]
            run.record(Fired(**fields))
    if verdict.decision == "done" and run.state.concluded is None:
        run.record(Concluded(reason=verdict.reason))
        run.ledger.give_up_ballast()
    run.ledger.mark_head()
    return verdict


def override(run: Run, rule: str, reason: str) -> None:
    """Let the run go on although `rule` fired; once for each reason, so repeating is harmless.

    Raises ValueError unless that rule is what holds the run up.
    """
    if any(o.rule == rule and o.reason == reason for o in run.state.overridden):
        return
    if rule not in RULES:
        raise ValueError(f"--override {rule}: expected one of {', '.join(RULES)}")
    triggers = [t for t in judge(run.state).triggers if t.rule == rule]
    if not triggers:
        raise ValueError(f"--override {rule}: that rule does not hold this run up")
    for trigger in triggers:
        if not trigger.overridable:
            raise ValueError(f"--override {rule}: this rule cannot be overridden")
        run.record(Overridden(rule=rule, generation=trigger.generation, reason=reason))
