"""Simulate a run from a seed: sessions are disturbed, die and are repeated until the run ends.

The whole orchestrator runs for real, in this process, on a simulated executor, disk and clock. It
dies at any point, as after SIGKILL or a power cut, and is started again. The judge checks every
record. Seeds cross every scenario with every kind of disturbance.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import numpy as np

from budgets.events import Event, Owner
from budgets.ledger import LedgerStorageError
from budgets.plan import Devices
from budgets.rules import OVERRIDABLE
from budgets.state import RunState
from orchestrator.config import Config
from orchestrator.execution import processes
from orchestrator.execution.api import CONFIG, SUMMARY, Attempt, EngineError, read, write_model
from orchestrator.matrix.carry_out import carry_out_search
from orchestrator.records.runs import Result
from orchestrator.run.directory import amend
from orchestrator.run.loop import Stop
from orchestrator.run.session import Session
from tests.simulation.devices import FaultRates, Machines, SimulatedExecutor
from tests.simulation.disk import FaultyDisk, PowerCut
from tests.simulation.judge import Judge, must
from tests.simulation.scenarios import KINDS, SCENARIOS, Disturbance, Scenario, disturbed
from tests.simulation.session import Killed, SimulatedClock, SimulatedEngine

DISTURBED_SESSIONS = 5
"""Later sessions are undisturbed, so the run must end."""

MOST_SESSIONS = DISTURBED_SESSIONS + 8
NO_PID = 1 << 23  # larger than any pid of Linux: that process does not exist
SEEDS = len(SCENARIOS) * len(KINDS)
"""This many consecutive seeds have every scenario with every kind of disturbance."""

Disturb = Callable[[np.random.Generator], Disturbance]
MakeExecutor = Callable[[Devices, Machines, FaultRates], SimulatedExecutor]


@dataclass
class SimulatedRun:
    """One run with one seed, from its first session to its last."""

    scenario: Scenario
    request: Config
    root: Path
    rng: np.random.Generator
    disturb: Disturb
    reference: RunState | None = None
    disk: FaultyDisk = field(default_factory=FaultyDisk)
    make_executor: MakeExecutor = SimulatedExecutor
    sessions: int = 0
    deaths: int = 0

    def __post_init__(self) -> None:
        self.clock = SimulatedClock()
        self.machines = Machines(
            self.clock, self.rng, self.scenario.failures, self._touch, lambda: self.disk.is_off
        )
        self.counts = self.machines.counts
        directory = self.root / self.request.search.phase / self.scenario.name
        self.judge = Judge(directory, self.machines, self.reference)
        self.machines.started = self.judge.started
        self._executor: SimulatedExecutor | None = None
        self._now, self._person = Disturbance(), Stop()
        self._touches = self._records = 0
        self._overrides: tuple[tuple[str, str], ...] = ()

    def run(self) -> RunState:
        """Run to the end and return the final state. Raises InvariantError."""
        while self.sessions < MOST_SESSIONS:
            result = self._session()
            if result is not None and self._is_over(result):
                self.judge.ends(result.state)
                return result.state
        must(False, f"the run does not end in {MOST_SESSIONS} sessions")
        raise AssertionError

    def _session(self) -> Result | None:
        """Run a session and return its result; None if it died."""
        self.sessions += 1
        self._begin()
        try:
            with self._opened() as session:
                result = carry_out_search(
                    session, self.request, self.scenario.slots, self._overrides
                )
        except (PowerCut, Killed):
            self._after_death()
        except LedgerStorageError:
            self.counts["storage error"] += 1
            if self._records and any(one.call == "sync" for one in self._now.faults):
                self.judge.refuses()
            self._after_death()
        except EngineError:
            self.counts["no slot left"] += 1
        except ValueError as error:  # an override was recorded before the session died
            must("give another --reason" in str(error), str(error))
            self._overrides = ()
        else:
            self.judge.closes(result.state)
            return result
        return None

    def _begin(self) -> None:
        calm = self.sessions > DISTURBED_SESSIONS
        self._now, self._person = Disturbance() if calm else self.disturb(self.rng), Stop()
        self.counts[self._now.kind or "undisturbed"] += 1
        self.clock.advance_to(self.clock.seconds + 30 * float(self.rng.random()))
        self._touches = self._records = 0
        self._executor = None
        self.disk.capacity = None
        self.disk.schedule(*self._now.faults)
        self._set_the_wall_clock()

    def _set_the_wall_clock(self) -> None:
        if self._now.wall_clock_seconds and self._records == self._now.set_at:
            self.clock.set_wall(self._now.wall_clock_seconds)

    def _opened(self) -> Session:
        owner = Owner(boot_id=processes.boot_id(), pid=NO_PID + self.sessions, start_ticks=1)
        return Session(
            self.root,
            SimulatedEngine(kind="inline", make=self._make),
            self._observe,
            say=lambda _: None,
            clock=self.clock.clock,
            stop=self._person,
            storage=self.disk,
            owner=lambda: owner,
        )

    def _make(self, slots: Devices) -> SimulatedExecutor:
        self._executor = self.make_executor(slots, self.machines, self._now.rates)
        return self._executor

    def _observe(self, state: RunState, event: Event) -> None:
        self._records += 1
        self.judge.observe(state, event)
        self._set_the_wall_clock()
        if self._records == self._now.interrupted_at:
            self._person.requested = True
            self._person.kill_at = 0.0 if self._now.at_once else inf
        if self._records == self._now.fills_up_at:
            self.disk.capacity = self.disk.used_bytes
        self._touch()

    def _touch(self) -> None:
        """Count a moment at which the process may die, and die if it is the chosen one."""
        self._touches += 1
        if self._touches == self._now.dies_at:
            self.disk.is_off = True
            raise Killed

    def _after_death(self) -> None:
        """Put the world into the state after the process, or the machine, has died."""
        self.deaths += 1
        if self._executor is not None:
            self._executor.abandon()
        if self._now.cuts_power:
            self.disk.power_cut(self.rng)
            self._reboot()
        else:
            self.disk.restart()
        self.judge.reopens()

    def _reboot(self) -> None:
        """Change the boot id of the unfinished attempts: the machine has been restarted."""
        for path in sorted(self.judge.directory.glob(f"eval/*/*/*/{CONFIG}")):
            attempt = read(Attempt, path.parent)
            if attempt is not None and not path.with_name(SUMMARY).exists():
                owner = attempt.owner.model_copy(update={"boot_id": "before the power cut"})
                own = attempt.model_copy(update={"owner": owner})
                write_model(path.parent, own, durable=False)

    def _is_over(self, result: Result) -> bool:
        """Whether the run is over. If not, prepare what a user would do: override, raise caps."""
        self._overrides = ()
        ruling = result.ruling
        if ruling.decision == "continue":  # it was interrupted
            return False
        if ruling.decision == "stop":
            self.judge.stops(result.state)
        if ruling.decision == "stop" and self.scenario.raised:
            return self._raise_caps(result.directory)
        if ruling.decision != "pause":
            return True
        for trigger in ruling.triggers:
            self.counts[f"paused: {trigger.rule}"] += 1
            if trigger.rule in OVERRIDABLE:
                reason = f"generation {trigger.generation} may fail"
                self._overrides += ((trigger.rule, reason),)
            elif trigger.rule not in ("setup_failed", "infrastructure", "storage"):
                return True
        return False

    def _raise_caps(self, directory: Path) -> bool:
        """Raise every cap, once."""
        must(not self.counts["amended"], "a run with every cap raised has stopped again")
        self.counts["amended"] += 1
        amend(directory, self.scenario.raised, "it may cost more", self.clock.clock)
        return False


class SimulationError(AssertionError):
    """A simulated run failed: the message says which one, how, and how to replay it."""

    def __init__(self, run: SimulatedRun, seed: int, error: Exception) -> None:
        super().__init__(
            f"seed {seed} ({run.scenario.name}), session {run.sessions}, after "
            f"{run.deaths} deaths: {type(error).__name__}: {error}\n"
            f"Replay it with: .venv/bin/python scripts/simulate --first {seed} --seeds 1"
        )


@dataclass
class World:
    """Simulates runs from their seeds, in directories under `place`."""

    place: Path
    scenarios: tuple[Scenario, ...] = SCENARIOS
    make_disk: Callable[[], FaultyDisk] = FaultyDisk
    make_executor: MakeExecutor = SimulatedExecutor
    disturb: Disturb | None = None  # None: as the seed says
    references: dict[str, RunState] = field(default_factory=dict)

    def prepare(self, seed: int) -> SimulatedRun:
        """Return the run of a seed, not started."""
        scenario = self.scenarios[seed % len(self.scenarios)]
        root = self.place / str(seed)
        shutil.rmtree(root, ignore_errors=True)
        return SimulatedRun(
            scenario,
            scenario.request(),
            root,
            np.random.default_rng(seed),
            self.disturb or _by_seed(seed // len(self.scenarios)),
            self._reference(scenario),
            self.make_disk(),
            self.make_executor,
        )

    def _reference(self, scenario: Scenario) -> RunState:
        """Return the final state of the same search without caps and disturbances."""
        if scenario.name not in self.references:
            root = self.place / f"reference-{scenario.name}"
            request, rng = scenario.request(capped=False), np.random.default_rng(0)
            run = SimulatedRun(scenario, request, root, rng, lambda _: Disturbance())
            self.references[scenario.name] = run.run()
            shutil.rmtree(root)
        return self.references[scenario.name]

    def simulate(self, seed: int) -> SimulatedRun:
        """Return the finished run of a seed. Raises SimulationError."""
        run = self.prepare(seed)
        try:
            run.run()
        except Exception as error:
            raise SimulationError(run, seed, error) from error
        shutil.rmtree(run.root)
        return run


def _by_seed(number: int) -> Disturb:
    """Return a function that alternates the seed's kind of disturbance with random ones."""
    kinds = iter([KINDS[number % len(KINDS)], None] * MOST_SESSIONS)

    def disturb(rng: np.random.Generator) -> Disturbance:
        kind = next(kinds) or KINDS[int(rng.integers(len(KINDS)))]
        return disturbed(rng, kind)

    return disturb
