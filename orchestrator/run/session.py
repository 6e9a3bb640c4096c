"""Carry out runs in one process: with an executor, ledgers, and reports for people."""

import platform
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Self

from budgets.events import Concluded, Opened, Overridden, Owner
from budgets.formatting import counted
from budgets.ledger import SYSTEM_CLOCK, Clock, Ledger
from budgets.plan import Devices, Plan
from budgets.rules import Ruling, ruling_of
from budgets.state import Observer, RunState
from budgets.storage import DISK, Storage
from objectives import registry
from objectives.api import Objective, SetupError
from orchestrator.capacity import BackPressure, HostSlots, Pace
from orchestrator.execution.api import Executor
from orchestrator.execution.devices import Engine, resized, versions
from orchestrator.execution.processes import this_owner
from orchestrator.plan.resolve import Overrides
from orchestrator.records.runs import Result, recorded_state
from orchestrator.run.directory import check_same_plan, lets_through, open_run
from orchestrator.run.loop import Loop, Moment, Proposer, Run, Stop


@dataclass
class Session:
    """One command's work on runs below `root`: how evaluations are run, and what is told to whom.

    A context manager. The executor is started when first needed and serves every run.
    """

    root: Path
    engine: Engine
    observe: Observer
    say: Callable[[str], None]
    clock: Clock = SYSTEM_CLOCK
    stop: Stop = field(default_factory=Stop)
    storage: Storage = DISK
    owner: Callable[[], Owner] = this_owner
    max_concurrent: int | None = None  # evaluations of all runs of this user on this host
    backpressure: bool = False  # run fewer evaluations at once while more would do less
    look: Callable[[Run], None] = lambda run: None  # noqa: ARG005 - called when a run waits
    report: Callable[[Path, RunState, Moment], None] = lambda *_: None  # writes files for people
    command: tuple[str, ...] = ()  # the command line, without secrets
    executor: Executor | None = None  # started when first needed
    _warnings_said: int = 0
    _shared: HostSlots | None = None  # slots shared with other runs of this host

    def __enter__(self) -> Self:
        if self.max_concurrent is not None:
            self._shared = HostSlots(self.max_concurrent, self.say)
        return self

    def __exit__(self, *_: object) -> None:
        self._end_executor()
        if self._shared is not None:
            self._shared.close()

    def carry_out(  # noqa: PLR0913 - what is run, on what, and how
        self,
        directory: Path,
        plan: Plan,
        slots: Devices,
        proposer: Callable[[RunState], Proposer],
        overrides: Overrides = (),
        *,
        pace: Pace | None = None,
    ) -> Result:
        """Begin or resume the run of `plan` in `directory`; return where it stands at the end.

        `proposer` makes what proposes points, at the recorded state. `pace` limits this run besides
        what limits the session.
        """
        recorded = recorded_state(directory)
        if recorded is not None and recorded.concluded is not None:
            check_same_plan(directory, recorded, plan)
            for rule, reason in overrides:
                lets_through(recorded, rule, reason)
            with suppress(OSError):  # it may be read-only
                self.report(directory, recorded, "begun")  # its process may have died before
            return Result(directory, recorded, ruling_of(recorded))
        if slots.kind != (kind := plan.devices.kind):  # scores could not be compared
            raise ValueError(
                f"{directory} was planned for {kind}, this machine offers {slots.kind}: choose "
                f"with --device {kind}"
            )
        slots = resized(slots, threads=plan.devices.threads)  # scores depend on them
        objective = registry.load(plan.objective)
        for warning in preflight(objective, plan):
            self.say(f"Warning: {warning}.")
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with Ledger(directory, self.clock, self.storage) as ledger:
            run = open_run(ledger, plan, self.owner(), [self.observe])
            if ledger.repair:
                self.say(f"{ledger.path}: {ledger.repair}.")
            ruling = ruling_of(run.state)
            if run.state.concluded is None:  # else another process has concluded it since
                proposes = proposer(run.state)  # a search that diverges is refused before it writes
                self._take_up(run, slots, overrides)
                ruling = self._to_its_end(run, slots, objective, proposes, pace)
            return Result(directory, run.state, ruling)

    def _take_up(self, run: Run, slots: Devices, overrides: Overrides) -> None:
        """Record this session, settle what earlier ones left running, apply overrides."""
        if not run.state.accounts.holds:  # otherwise their ends may make a rule fire
            for rule, reason in overrides[:1]:
                lets_through(run.state, rule, reason)  # before anything is written
        run.record(
            Opened(
                host=platform.node(),
                owner=run.owner,
                workers=slots.count,
                versions=versions(),
                command=self.command,
            )
        )
        run.settle_abandoned()
        self.report(run.directory, run.state, "begun")
        for rule, reason in overrides:
            for trigger in lets_through(run.state, rule, reason):
                generation = trigger.generation
                run.record(Overridden(rule=rule, generation=generation, reason=reason))

    def _to_its_end(
        self, run: Run, slots: Devices, objective: Objective, proposes: Proposer, pace: Pace | None
    ) -> Ruling:
        """Run the loop and record how it ended."""
        paces, ruling = self._paced(run, slots, pace), ruling_of(run.state)
        if ruling.decision == "continue":
            executor = self._started(slots, objective)
            report = partial(self.report, run.directory, run.state)
            stop, look, warn = self.stop, self.look, self._warn
            ruling = Loop(run, proposes, executor, stop, report, paces, look, warn).to_its_end()
        if self.stop.now:  # this kills what is running, so it can be settled
            self._end_executor()
            run.settle_abandoned()
        for each in paces:
            each.look(run.state)
        run.put_on_record(ruling)
        if ruling.decision == "done":
            run.record(Concluded())
        self.report(run.directory, run.state, "left")
        return ruling

    def _started(self, slots: Devices, objective: Objective) -> Executor:
        """Return the session's executor, started with these slots."""
        if self.executor is not None and self.executor.slots != slots:
            self._end_executor()
        if self.executor is None:
            workers = f"{counted(slots.count, 'worker')} ({self.engine.kind})"
            self.say(f"Starting {workers} ...")
            self.executor = self.engine.executor(slots, objective).__enter__()
        return self.executor

    def _paced(self, run: Run, slots: Devices, own: Pace | None) -> list[Pace]:
        """Return the run's own pace and the session's."""
        paces = [] if own is None else [own]
        if self.backpressure and run.state.plan.phase != "calibration":  # it would change the times
            controlled = BackPressure(slots.count, run.directory, self.say)
            run.observers.append(controlled.follow)
            paces.append(controlled)
        if self._shared is not None:
            paces.append(self._shared)  # last: asking it takes a slot
        return paces

    def _warn(self) -> None:
        """Say the executor's warnings that are new."""
        warnings = () if self.executor is None else self.executor.warnings
        for warning in warnings[self._warnings_said :]:
            self.say(f"Warning: {warning}.")
        self._warnings_said = len(warnings)

    def _end_executor(self) -> None:
        try:
            if self.executor is not None:
                self.executor.__exit__(None, None, None)
                self._warn()
        finally:
            self.executor, self._warnings_said = None, 0


def preflight(objective: Objective, plan: Plan) -> Iterator[str]:
    """Yield warnings of the objective and of the plan's conditions, which are named.

    Raises SetupError as well if one of them cannot be evaluated at all.
    """
    yield from objective.preflight()
    others = [] if plan.campaign is None else list(plan.campaign.conditions)
    for other in (*others, *filter(None, [plan.proxy])):
        try:
            own = registry.load(registry.varied(objective.spec, other.settings))
            yield from (f"{other.name}: {warning}" for warning in own.preflight())
        except SetupError as error:
            raise SetupError(f"{other.name}: {error}") from error
