"""One process's work on runs: devices and executor on one side, ledger and artefacts on the other.

`Session.calibrate`, `check` and `search` compose the parts; `walk` is the walk itself.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from budgets.events import Owner
from budgets.fold import ImpossibleEventError
from budgets.ledger.chain import LEDGER, LedgerCorruptError
from budgets.ledger.storage import DISK, Storage, read_plain
from budgets.ledger.writer import BALLAST, Clock, Ledger
from budgets.rules.triggers import verdict_of
from budgets.state import Generation, Observer, RunState
from budgets.terms import Calibration, Plan, Window
from budgets.words import counted
from objectives import registry
from objectives.api import Objective
from orchestrator.capacity.pace import Pace
from orchestrator.capacity.terms import Pacing
from orchestrator.checks.space import Check
from orchestrator.execution.engine import Engine, devices_of, opened
from orchestrator.execution.evaluate import Executor, Slots
from orchestrator.execution.processes import this_owner
from orchestrator.planning.calibrations import (
    CALIBRATION_SEEDS,
    calibration_again,
    calibration_here,
    find_calibration,
    measured_for,
    with_its_cost,
)
from orchestrator.planning.history import note
from orchestrator.planning.known_knobs import known_knobs
from orchestrator.planning.panels import Confirming
from orchestrator.planning.plan import Succession, calibration_plan, search_plan, why_no_go
from orchestrator.planning.request import Overrides, Request, run_directory, run_name
from orchestrator.records import metrics
from orchestrator.records.planned import objective_of
from orchestrator.records.recorded import (
    Result,
    recorded_plan,
    recorded_state,
)
from orchestrator.running import artifacts
from orchestrator.running.fork import forked, planned_again
from orchestrator.running.pacing import MEASURES, Paces
from orchestrator.running.place import check_place, make_directory
from orchestrator.running.preflight import preflight
from orchestrator.running.run import Run, check_same_plan, note_the_late, open_run, settle_abandoned
from orchestrator.running.signals import SignalStop
from orchestrator.running.walk import (
    Course,
    Given,
    Proposer,
    Stop,
    conclude,
    judge_on_record,
    override,
)
from orchestrator.trackers.followers import Followers
from orchestrator.warm.distribution import learned
from orchestrator.warm.succession import predecessor

if TYPE_CHECKING:
    from orchestrator.search import Search


def system_clock() -> Clock:
    return Clock(monotonic=time.monotonic, now=lambda: datetime.now(UTC))


@dataclass
class Session:
    """One command's work: where runs live, how evaluations are run, and whom to tell.

    A context manager: the executor is started when first needed and serves every run of the
    session.
    """

    root: Path
    engine: Engine
    observe: Observer
    say: Callable[[str], None]
    clock: Clock = field(default_factory=system_clock)
    stop: Stop = field(default_factory=SignalStop)
    storage: Storage = DISK
    owner: Callable[[], Owner] = this_owner
    allow_network_fs: bool = False
    source: Mapping[str, str] | None = None  # the file that describes a campaign
    pacing: Pacing = field(default_factory=Pacing)
    look: Callable[[Run], None] = lambda run: None  # noqa: ARG005 - whenever a run waits
    trackers: Sequence[str] = ()
    _executor: Executor | None = None
    _warnings_said: int = 0
    _paces: Paces = field(init=False)
    _followers: Followers = field(init=False)

    def __post_init__(self) -> None:
        self._paces = Paces(self.pacing, self.say)
        self._followers = Followers(self.trackers, self.say)

    def __enter__(self) -> Self:
        self.stop.install()
        return self

    def __exit__(self, *_: object) -> None:
        self._followers.release()
        self._end_executor()
        self._paces.close()
        self._followers.close(lambda: self.stop.now)

    def calibrate(
        self,
        objective: Objective,
        slots: Slots,
        repeats: int = CALIBRATION_SEEDS,
        overrides: Overrides = (),
        request: Request | None = None,
    ) -> Result:
        """Measure the baseline, or read the measurement there is for it on these devices.

        Made for a `request`, it keeps within that request's limits and caps.
        """
        if known := find_calibration(self.root, objective, devices_of(slots)):
            return known
        plan = calibration_plan(objective, devices_of(slots), repeats, request)
        return self._measured(plan, objective, slots, overrides)

    def calibrate_again(
        self, objective: Objective, slots: Slots, repeats: int, overrides: Overrides, reason: str
    ) -> Result:
        """Measure the baseline anew beside what there is, or take up what that reason began.

        From then on new runs are planned with it; those there are keep theirs.
        """
        plan = calibration_again(self.root, objective, devices_of(slots), repeats, reason)
        recorded = recorded_state(run_directory(self.root, "calibration", plan.run_id))
        if recorded is None and overrides:
            raise ValueError(
                f"--override: nothing was calibrated again for the reason {reason!r}, so no rule "
                "holds it up. One --reason serves both: repeat the one given with --again at first"
            )
        if recorded is not None and recorded.concluded is not None:
            self.say(f"{plan.run_id} was made for this reason. Another reason calibrates anew.")
        return self._measured(plan, objective, slots, overrides)

    def calibrate_aside(self, objective: Objective, slots: Slots, repeats: int) -> Result:
        """What the baseline takes, on few seeds; no run is planned with it.

        A whole calibration that there is serves as well.
        """
        devices = devices_of(slots)
        if known := find_calibration(self.root, objective, devices):
            return known
        plan = calibration_plan(objective, devices, repeats)
        aside = plan.model_copy(update={"run_id": f"memory-{plan.run_id}"})
        return self._measured(aside, objective, slots, ())

    def _measured(
        self, plan: Plan, objective: Objective, slots: Slots, overrides: Overrides
    ) -> Result:
        directory = run_directory(self.root, "calibration", plan.run_id)
        baseline = Given((objective.space.baseline,))
        return self.carry_out(directory, plan, slots, lambda _: baseline, overrides)

    def check(
        self,
        request: Check,
        slots: Slots,
        assumed_seconds: float | None = None,
        pace: Pace | None = None,
        calibration: Calibration | None = None,
    ) -> Result:
        """Begin or take up the check or the campaign that `request` describes, at its own `pace`.

        A calibration there is gives it limits and the unit of noise, unless a time is assumed or
        whoever asks has a `calibration`. Raises ValueError on a request that cannot be planned.
        """
        directory = run_directory(self.root, request.terms.phase, request.name(slots.device))
        if (recorded := recorded_plan(directory)) is not None:
            plan = request.plan(recorded.devices, recorded.calibration)
            limits = recorded.thresholds  # whatever the defaults have become
            if plan.campaign is not None:
                limits = limits.model_copy(update=dict(request.terms.thresholds))
            plan = plan.model_copy(update={"thresholds": limits, "parent": recorded.parent})
        else:
            devices = devices_of(slots)
            if calibration is None:
                objective = request.terms.objective
                calibration = calibration_here(self.root, objective, devices, assumed_seconds)
            plan = request.plan(devices, calibration)
            self.say(request.in_words(plan))
        proposer = Given(request.points())
        same_bits = replace(slots, threads=plan.devices.threads)
        return self.carry_out(directory, plan, same_bits, lambda _: proposer, pace=pace)

    def search(
        self,
        request: Request,
        slots: Slots,
        assumed_seconds: float | None = None,
        overrides: Overrides = (),
        *,
        accept_drift: bool = False,
    ) -> Result:
        """Begin or take up the run that `request` names; calibrates first if nobody has.

        When the calibration does not end well, its result is returned instead. Raises ValueError
        on a request that cannot be planned or that differs from the recorded run.
        """
        request, parent = forked(self.root, request) if request.fork else (request, None)
        directory = run_directory(self.root, request.phase, run_name(request))
        if (recorded := recorded_plan(directory)) is not None:
            plan = planned_again(request, recorded)
        else:
            devices = devices_of(slots)
            begun = self._succeeding(request, devices.kind, overrides, accept_drift=accept_drift)
            succession, permits, overrides = begun
            source = None if succession is None else succession.source
            # what cannot be planned is not calibrated either
            outline = search_plan(request, devices, None, None, succession)
            refuse_the_past(request.window, self.clock.now())
            for reason in why_no_go(outline.resolved, outline.confirmation, outline.thresholds):
                self.say(f"Warning: {reason}.")
            if source is None or not source.added:
                self._say_what_checks_found(request.objective, devices.kind)
            calibration = self._calibration(request, slots, assumed_seconds, overrides)
            if isinstance(calibration, Result):
                return calibration
            plan = search_plan(request, devices, calibration, parent, succession)
            overrides = permits
        if slots.device != plan.devices.kind:
            raise ValueError(
                f"{directory} was planned for {plan.devices.kind}, this machine offers "
                f"{slots.device}: choose with --device {plan.devices.kind}"
            )
        same_bits = replace(slots, threads=plan.devices.threads)
        proposer = partial(replayed, accept_drift=accept_drift)
        return self.carry_out(directory, plan, same_bits, proposer, overrides)

    def _succeeding(
        self, request: Request, kind: str, overrides: Overrides, *, accept_drift: bool
    ) -> tuple[Succession | None, Overrides, Overrides]:
        """What a new run takes over from the one it follows or starts from, if it does.

        Then the overrides that let it begin, and the others. Raises ValueError where it may not.
        """
        earlier = predecessor(self.root, request, kind)
        if earlier is None:
            return None, (), overrides
        for said in earlier.notes:
            self.say(f"Note: {said}.")
        permits, others = earlier.permits(overrides)
        seen = learned(earlier.state, accept_drift=accept_drift)
        return earlier.succession(request, seen), permits, others

    def _say_what_checks_found(self, objective: Objective, kind: str) -> None:
        """What checks have shown or left open: a note, whatever it says and cannot read."""
        try:
            shown = known_knobs(self.root, objective, kind)
        except (LedgerCorruptError, ImpossibleEventError, ValueError) as error:
            self.say(f"Warning: {error}.")
            return
        for line in shown.lines():
            self.say(line)

    def _calibration(
        self,
        request: Request,
        slots: Slots,
        assumed_seconds: float | None,
        overrides: Overrides,
    ) -> Calibration | Result:
        """The calibration to plan with, or how making it ended instead."""
        objective = request.objective
        known = None
        if assumed_seconds is not None:
            known = Calibration(assumed_seconds=assumed_seconds)
        elif found := find_calibration(self.root, objective, devices_of(slots)):
            known = measured_for(self.root, found, request)
        if known is not None:
            if overrides:
                raise ValueError("--override: there is no such run yet, so no rule holds it up")
            return known
        kind, where = registry.kind(objective.spec), f"{slots.count} x {slots.device_name}"
        self.say(
            f"No calibration of {kind} on {where} yet: evaluating the baseline on "
            f"{CALIBRATION_SEEDS} seeds first."
        )
        result = self.calibrate(objective, slots, CALIBRATION_SEEDS, overrides, request)
        if result.verdict.decision != "done":
            return result
        return with_its_cost(result.state)

    def carry_out(  # noqa: PLR0913 - what is run, on what, and how
        self,
        directory: Path,
        plan: Plan,
        slots: Slots,
        proposer: Callable[[RunState], Proposer],
        overrides: Overrides = (),
        *,
        pace: Pace | None = None,
    ) -> Result:
        """Begin or take up the run of `plan` in `directory`, as far as it goes now.

        `proposer` brings what proposes its points to where the recorded run stands. `pace` is its
        own, beside the session's.
        """
        recorded = recorded_state(directory)
        if recorded is not None and recorded.concluded is not None:
            check_same_plan(directory, recorded, plan)
            refuse_late_overrides(recorded, overrides)
            self._finish_off(directory, recorded)
            self._track(directory, recorded)
            return self._noted(Result(directory, recorded, verdict_of(recorded)))
        objective = objective_of(plan)
        for warning in preflight(objective, plan):  # before there is anything to clean up
            self.say(f"Warning: {warning}.")
        check_place(directory, allow_network=self.allow_network_fs)
        self._paces.share()
        make_directory(directory)
        with Ledger(directory, self.clock, self.storage) as ledger:
            observe = metrics.recording(directory, self._followers.looking(self.observe))
            run = open_run(ledger, plan, self.owner(), observe)
            for repair in ledger.repairs:
                self.say(f"{ledger.path}: {repair}.")
            proposes = proposer(run.state)  # a search that diverges is refused before it writes
            run.record(opened(run.owner, slots))
            self._track(directory, run.state)
            settle_abandoned(run)
            note_the_late(run)
            artifacts.write_missing(directory, run.state, self.source)
            for rule, reason in overrides:
                override(run, rule, reason)
            verdict = judge_on_record(run)
            paces = self._paces.of(run, slots, pace)
            if verdict.decision == "continue":
                executor = self._started(slots, objective, plan.run_id)
                is_beside = plan.search is not None or plan.proxy is not None
                panels = Confirming(plan) if is_beside else None
                course = Course(
                    run, proposes, panels, executor, self.stop, self._closed, paces, self.look
                )
                verdict = course.conduct()
            if self.stop.now:  # what was in flight is killed here, so it can be settled
                self._end_executor()
                settle_abandoned(run)
            paces.look(run.state)
            conclude(run, verdict)
            artifacts.write_run(directory, run.state)
            self._followers.release()
            return self._noted(Result(directory, run.state, verdict))

    def _track(self, directory: Path, state: RunState) -> None:
        """Let trackers be told of the run; of none whose evaluations are there to be timed."""
        if state.plan.phase not in MEASURES:
            self._followers.begin(directory)

    def _noted(self, result: Result) -> Result:
        """The result, once the history has what the run took."""
        note(self.root, result.state, result.verdict, self.say)
        return result

    def _finish_off(self, directory: Path, state: RunState) -> None:
        """Do what the process that concluded the run may have died before."""
        if not read_plain(directory / LEDGER).endswith(b"\n"):
            with Ledger(directory, self.clock, self.storage) as ledger:
                for _ in ledger.replay():
                    pass
                for repair in ledger.repairs:
                    self.say(f"{ledger.path}: {repair}.")
        with suppress(OSError):  # of a run that may only be read
            (directory / BALLAST).unlink(missing_ok=True)
            artifacts.write_stale(directory, state)

    def _closed(self, run: Run, generation: Generation | None) -> None:
        self._say_new_warnings()
        if run.state.plan.search is not None and generation is not None:
            artifacts.write_generation(run.directory, run.state)
        artifacts.write_run(run.directory, run.state)

    def _started(self, slots: Slots, objective: Objective, name: str) -> Executor:
        if self._executor is None:
            workers = f"{counted(slots.count, 'worker')} ({self.engine.kind})"
            self.say(f"Starting {workers}{self.engine.patience} ...")
            self._executor = self.engine.executor(slots, objective, name).__enter__()
            self.stop.install()  # again: Ray has installed its own
            self._say_new_warnings()
        return self._executor

    def _say_new_warnings(self) -> None:
        warnings = () if self._executor is None else self._executor.warnings
        for warning in warnings[self._warnings_said :]:
            self.say(f"Warning: {warning}.")
        self._warnings_said = len(warnings)

    def _end_executor(self) -> None:
        self._say_new_warnings()
        executor, self._executor, self._warnings_said = self._executor, None, 0
        if executor is not None:
            executor.__exit__(None, None, None)


def refuse_late_overrides(state: RunState, overrides: Overrides) -> None:
    """Raises ValueError on one that is not on record: nothing holds up a run that is over."""
    known = {(overridden.rule, overridden.reason) for overridden in state.overridden}
    for rule, reason in overrides:
        if (rule, reason) not in known:
            raise ValueError(
                f"--override {rule}: {state.plan.run_id} is over, and no rule holds it up"
            )


def refuse_the_past(window: Window | None, now: datetime) -> None:
    """Raises ValueError where no evaluation could be over in time, however short."""
    if window is None or window.until is None:
        return
    left = (window.until - now).total_seconds() - window.margin_seconds
    if left <= 0:
        raise ValueError(
            f"--window: expected a moment more than {window.margin_seconds:g} s ahead (the "
            f"--safety-margin), got {window.until.isoformat(timespec='minutes')}"
        )


def replayed(state: RunState, *, accept_drift: bool) -> "Search":
    """The search that the ledger has brought this far."""
    from orchestrator.search import Search  # imports cma

    assert state.plan.search is not None
    search = Search(state.plan.search, state.plan.resolved.population)
    search.replay(state.generations, accept_drift=accept_drift)
    return search
