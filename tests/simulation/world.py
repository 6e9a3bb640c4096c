"""One seed, one story: a search through storms, deaths and repairs, until it is done or held up.

The whole orchestrator runs for real, in this process, on a simulated executor, disk and clock. It
dies in the middle of whatever it does, as SIGKILL and power cuts would have it, and is started
again. `invariants` judges every record on the way.
"""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from budgets.events import Event, Owner
from budgets.ledger.writer import LedgerStorageError
from budgets.state import RunState
from orchestrator.execution import processes
from orchestrator.execution.attempts import CONFIG, SUMMARY, read, write_model
from orchestrator.execution.evaluate import Attempt, Slots
from orchestrator.execution.server import EngineError
from orchestrator.planning.request import Request, run_directory
from orchestrator.records.recorded import Result
from orchestrator.running.amend import Amendment, amend
from orchestrator.running.searching import Searching
from orchestrator.running.session import Session
from tests.simulation import beside
from tests.simulation.clock import SimulatedClock
from tests.simulation.disk import FaultyDisk
from tests.simulation.disturbance import Disturbance, draw
from tests.simulation.executor import SimulatedExecutor
from tests.simulation.fates import Weather
from tests.simulation.faults import PowerCut
from tests.simulation.invariants import Judge
from tests.simulation.journal import Journal
from tests.simulation.machines import Machines
from tests.simulation.must import must
from tests.simulation.reference import Reference
from tests.simulation.scenarios import Scenario
from tests.simulation.session import Killed, Person, SimulatedEngine

STORMY_SESSIONS = 5
"""After so many, nothing more goes wrong: the story must come to its end then."""

MOST_SESSIONS = STORMY_SESSIONS + 8
NO_PID = 1 << 23  # beyond what Linux gives out: whoever had it is gone

MakeExecutor = Callable[[Slots, Machines, Weather], SimulatedExecutor]


@dataclass
class Story:
    """One run under one seed, from its first session to its last."""

    scenario: Scenario
    request: Request
    root: Path
    rng: np.random.Generator
    reference: Reference | None = None
    disk: FaultyDisk = field(default_factory=FaultyDisk)
    clock: SimulatedClock = field(default_factory=SimulatedClock)
    make_executor: MakeExecutor = SimulatedExecutor
    disturb: Callable[[np.random.Generator], Disturbance] = draw
    faults: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    deaths: int = 0

    def __post_init__(self) -> None:
        self.journal = Journal()
        self.machines = Machines(
            self.clock, self.rng, self.journal, self.scenario.natures, self.faults,
            self._touch, lambda: self.disk.is_off,
        )  # fmt: skip
        directory = run_directory(self.root, self.request.phase, self.scenario.name)
        self.judge = Judge(directory, self.journal, self.clock, self.reference)
        self.journal.watch = self.judge.started
        self._executor: SimulatedExecutor | None = None
        self._now, self._person = Disturbance(), Person()
        self._touches = self._records = 0
        self._overrides: tuple[tuple[str, str], ...] = ()

    def tell(self) -> RunState:
        """The state that the run comes to. Raises InvariantError, and what must not be raised."""
        while self.sessions < MOST_SESSIONS:
            result = self._session()
            if result is not None and self._is_over(result):
                self.judge.ends(result.state)
                return result.state
        must(False, f"the run does not end in {MOST_SESSIONS} sessions")
        raise AssertionError

    def _session(self) -> Result | None:
        """How a session ended; None if it died."""
        self.sessions += 1
        self._begin()
        try:
            with self._opened() as session:
                slots, seconds = self.scenario.slots, self.scenario.assumed_seconds
                result = Searching(self.request, slots, seconds, self._overrides).carry_out(session)
        except (PowerCut, Killed):
            self._bury()
        except LedgerStorageError:
            self.faults["storage error"] += 1
            self._bury()
        except EngineError:
            self.faults["no slot left"] += 1
        except ValueError as error:  # it died after it was let through, and where it came to
            must("give another --reason" in str(error), str(error))
            self._overrides = ()
        else:
            self.judge.closes(result.state)
            return result
        return None

    def _begin(self) -> None:
        calm = self.sessions > STORMY_SESSIONS
        self._now, self._person = Disturbance() if calm else self.disturb(self.rng), Person()
        self.faults[self._now.kind] += self._now.kind != "none"
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
        return Session(
            self.root,
            SimulatedEngine(kind="inline", make=self._make),
            self._observe,
            say=lambda _: None,
            clock=self.clock.clock,
            stop=self._person,
            storage=self.disk,
            owner=self._owner,
        )

    def _make(self, slots: Slots) -> SimulatedExecutor:
        self._executor = self.make_executor(slots, self.machines, self._now.weather)
        return self._executor

    def _owner(self) -> Owner:
        return Owner(boot_id=processes.boot_id(), pid=NO_PID + self.sessions, start_ticks=1)

    def _observe(self, state: RunState, event: Event) -> None:
        self._records += 1
        self.judge.observe(state, event)
        self._set_the_wall_clock()
        if self._records == self._now.interrupted_at:
            self._person.requested, self._person.now = True, self._now.at_once
        if self._records == self._now.fills_up_at:
            self.disk.capacity = self.disk.used_bytes
        self._touch()

    def _touch(self) -> None:
        """The process dies here if its time has come."""
        self._touches += 1
        if self._touches == self._now.dies_at:
            self.disk.is_off = True
            raise Killed

    def _bury(self) -> None:
        """What a dead process or machine leaves behind."""
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
        """Whoever ran before ran on another boot of the machine."""
        for path in sorted(self.judge.directory.glob(f"eval/*/*/*/{CONFIG}")):
            attempt = read(Attempt, path)
            if attempt is not None and not path.with_name(SUMMARY).exists():
                owner = attempt.owner.model_copy(update={"boot_id": "before the power cut"})
                write_model(path, attempt.model_copy(update={"owner": owner}), durable=False)

    def _is_over(self, result: Result) -> bool:
        """Whether a person would leave it at that; or what they do about it."""
        self._overrides = ()
        verdict = result.ruling
        if verdict.decision == "continue":  # it was interrupted
            return False
        if verdict.decision == "stop":
            beside.stops(result.state)
        if verdict.decision == "stop" and self.scenario.raised:
            return self._raise_caps(result.directory)
        if verdict.decision != "pause":
            return True
        for trigger in verdict.triggers:
            self.faults[f"paused: {trigger.rule}"] += 1
            if trigger.overridable:
                reason = f"generation {trigger.generation} may fail"
                self._overrides += ((trigger.rule, reason),)
            elif trigger.rule not in ("setup_failed", "infrastructure", "storage"):
                return True
        return False

    def _raise_caps(self, directory: Path) -> bool:
        """Somebody lets the run spend more, once: that is enough."""
        must(not self.faults["amended"], "a run with every cap raised has stopped again")
        self.faults["amended"] += 1
        amendment = Amendment("it may cost more", **self.scenario.raised)
        amend(directory, amendment, self.clock.clock)
        return False


@dataclass
class World:
    """Tells stories by their seeds, in directories under `place`."""

    place: Path
    scenarios: tuple[Scenario, ...]
    make_disk: Callable[[], FaultyDisk] = FaultyDisk
    make_executor: MakeExecutor = SimulatedExecutor
    disturb: Callable[[np.random.Generator], Disturbance] = draw
    references: dict[str, Reference] = field(default_factory=dict)

    def story(self, seed: int) -> Story:
        """The story of that seed, not told yet."""
        scenario = self.scenarios[seed % len(self.scenarios)]
        root = self.place / str(seed)
        shutil.rmtree(root, ignore_errors=True)
        return Story(
            scenario,
            scenario.request(),
            root,
            np.random.default_rng(seed),
            self._reference(scenario),
            self.make_disk(),
            make_executor=self.make_executor,
            disturb=self.disturb,
        )

    def _reference(self, scenario: Scenario) -> Reference:
        if scenario.name not in self.references:
            root = self.place / f"reference-{scenario.name}"
            request = scenario.request(capped=False)
            undisturbed = Story(
                scenario, request, root, np.random.default_rng(0), disturb=lambda _: Disturbance()
            )
            self.references[scenario.name] = Reference.of(undisturbed.tell())
            shutil.rmtree(root)
        return self.references[scenario.name]


class StoryError(AssertionError):
    """A story went wrong: says which one, how, and how to hear it again."""

    def __init__(self, story: Story, seed: int, error: Exception) -> None:
        super().__init__(
            f"seed {seed} ({story.scenario.name}), session {story.sessions}, after "
            f"{story.deaths} deaths: {type(error).__name__}: {error}\n"
            f"Replay it with: .venv/bin/python scripts/simulate --first {seed} --seeds 1"
        )


def tell(world: World, seed: int) -> Story:
    """The story of that seed, told to its end. Raises StoryError."""
    story = world.story(seed)
    try:
        story.tell()
    except Exception as error:
        raise StoryError(story, seed, error) from error
    shutil.rmtree(story.root)
    return story
