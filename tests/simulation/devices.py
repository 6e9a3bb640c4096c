"""Simulated devices: an executor on a simulated clock, its faults, and what really happened.

An evaluation is computed at once and ends later. The executor writes the files that a supervisor
would write, so that the next orchestrator after a death finds them.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal, Self, TypeVar, get_args

import numpy as np

from budgets.events import Status
from budgets.plan import ComparisonName, Devices
from objectives import registry
from objectives.api import Context
from orchestrator.execution.api import Attempt, EngineError, Outcome, Started, write_model
from tests.simulation.session import SimulatedClock

Evaluation = tuple[ComparisonName | None, int, int, int]
"""The comparison or None, its or the generation's number, candidate, seed."""

Failure = Literal["ok", "error", "crash", "nan", "oom", "hang", "stall"]
"""How an evaluation ends on its own, in every attempt."""

FAILURES: dict[Failure, tuple[Status, str]] = {
    "error": (Status.ERROR, "ObjectiveError: failure on request"),
    "crash": (Status.ERROR, "killed by signal 11 SIGSEGV"),
    "nan": (Status.NAN, "DivergedError: the loss is not finite"),
    "oom": (Status.OOM, "OutOfMemoryError: out of memory"),
    "hang": (Status.TIMEOUT, "ran over its limit"),
    "stall": (Status.TIMEOUT, "stalled: no output, heartbeat or CPU time"),
}

Fault = Literal[
    "none", "lost", "unborn", "silent", "duplicate", "delayed", "unkillable", "killed", "broken",
    "unready",
]  # fmt: skip
"""What the machines do to one attempt.

lost: its node dies during it; unborn: before it starts. silent: its device does not answer until
the reservation is over, and the outcome comes later. duplicate: its outcome comes twice. delayed:
its outcome is on disk before it is delivered, and others overtake it. unkillable: it hangs and
survives the kill and its reservation. killed: by a signal from outside, at most once per
evaluation. broken: its device reports a failure. unready: a file that every evaluation needs is
missing, at most once per evaluation, until it is repaired.
"""

CAUSES: dict[Fault, str] = {
    "killed": "killed by signal 9 SIGKILL",
    "broken": "AcceleratorError: CUDA error: uncorrectable ECC error encountered",
    "unready": "SetupError: cannot read data 'text': No such file or directory",
}
NOTICE_SECONDS = 0.2  # from the orchestrator's death until a supervisor notices
DELIVERY_SECONDS = 0.01  # from the end of an evaluation until its outcome is delivered
Name = TypeVar("Name", bound=str)


@dataclass(frozen=True)
class FaultRates:
    """Probability of each fault, share of slow devices, and share of faults that never end."""

    faults: Mapping[Fault, float] = field(default_factory=dict)
    slow: float = 0.0
    permanent: float = 0.0


CALM = FaultRates()
STORM = FaultRates(
    {
        "lost": 0.07,
        "unborn": 0.03,
        "silent": 0.06,
        "duplicate": 0.08,
        "delayed": 0.08,
        "killed": 0.06,
        "broken": 0.02,
        "unready": 0.02,
    },
    slow=0.2,
    permanent=0.2,
)


def draw(rng: np.random.Generator, shares: Mapping[Name, float], otherwise: Name) -> Name:
    """Return a name with the probability of its share, else `otherwise`."""
    left = rng.random()
    for name, share in shares.items():
        left -= share
        if left < 0:
            return name
    return otherwise


def parse_attempt(attempt: Attempt) -> tuple[Evaluation, int]:
    """Return the evaluation and number of an attempt, from its directory."""
    seed, _, number = attempt.directory.name.partition(".")
    candidate, batch = attempt.directory.parent, attempt.directory.parent.parent
    names: tuple[ComparisonName, ...] = get_args(ComparisonName)
    comparison = next((name for name in names if batch.name.startswith(f"{name}_")), None)
    first, second, third = (
        int(name.rsplit("_", 1)[1]) for name in (batch.name, candidate.name, seed)
    )
    return (comparison, first, second, third), int(number or 1)


def undisturbed(attempt: Attempt, rates: Mapping[Failure, float]) -> tuple[Failure, Outcome]:
    """Return how an undisturbed attempt ends: it depends only on knobs and seed."""
    text = json.dumps([sorted(attempt.knobs.items()), attempt.seed])
    rng = np.random.default_rng(list(hashlib.sha256(text.encode()).digest()[:8]))
    failure, seconds = draw(rng, rates, "ok"), 0.2 + 0.8 * rng.random()
    seconds *= attempt.objective.settings.get("effort", 1.0)
    limits = attempt.limits
    if failure == "hang":
        seconds = limits.wall_seconds + limits.grace_seconds * rng.random()
    elif failure == "stall":
        seconds = (limits.stall_seconds or limits.wall_seconds) + rng.random()
    outcome = Outcome(
        attempt_id=attempt.attempt_id, status=Status.OK, seconds=seconds, startup_seconds=0.1
    )
    if failure != "ok":
        status, cause = FAILURES[failure]
        return failure, outcome.model_copy(update={"status": status, "cause": cause})
    context = Context(attempt.directory, "cpu", 1, lambda _: None)
    measured = registry.load(attempt.objective).evaluate(attempt.knobs, attempt.seed, context)
    timed = measured.model_copy(update={"train_seconds": seconds - 0.1})
    return failure, outcome.model_copy(update={"measurement": timed})


def ended(outcome: Outcome, status: Status, cause: str, seconds: float) -> Outcome:
    """Return the outcome with another end, after `seconds`."""
    changed = {"status": status, "cause": cause, "seconds": seconds, "measurement": None}
    return outcome.model_copy(update=changed)


def poisoned(outcome: Outcome) -> Outcome:
    """Return the outcome with a wrong score, which shows if it is used by mistake."""
    if outcome.measurement is None:
        return outcome
    worse = outcome.measurement.model_copy(update={"score": outcome.measurement.score + 1000})
    return outcome.model_copy(update={"measurement": worse})


@dataclass
class Use:
    """What really happened on a device for an attempt, whatever was reported."""

    evaluation: Evaluation
    attempt: int
    device: str
    began: float
    ended: float | None = None
    seen_at: float = 0.0  # when its summary could be read
    status: Status | None = None  # of its summary; None if it died without one


@dataclass
class Device:
    """One device, and when it cannot be used."""

    name: str
    factor: float = 1.0  # on the time of evaluations
    gone_at: float = inf
    back_at: float = inf

    def is_usable(self, now: float) -> bool:
        return not self.gone_at <= now < self.back_at

    def is_lost(self, now: float) -> bool:
        """Whether it is gone and never comes back."""
        return self.gone_at <= now and self.back_at == inf


@dataclass
class Running:
    """An attempt on its device, its outcome, and the deliveries of outcomes."""

    attempt: Attempt
    device: Device
    began: float
    ends: float
    outcome: Outcome  # written to its directory when it is over
    deliveries: list[tuple[float, Outcome]] = field(default_factory=list)
    seen_at: float = 0.0  # its files cannot be read before, even if it has ended
    leaves_summary: bool = True
    is_over: bool = False
    is_released: bool = False  # over and delivered: its device is free

    @property
    def over_at(self) -> float:
        """When its summary is there and its processes have ended."""
        return max(self.ends, self.seen_at)

    def moments(self) -> list[float]:
        """Return the times at which something happens to it."""
        return [at for at, _ in self.deliveries] + ([] if self.is_over else [self.over_at])


@dataclass
class Machines:
    """What the executors of a simulated run share: time, randomness, and what really happened."""

    clock: SimulatedClock
    rng: np.random.Generator
    failures: Mapping[Failure, float]
    touch: Callable[[], None]  # the process may die in this call
    is_dead: Callable[[], bool]  # then its further actions have no effect
    started: Callable[[Use], None] = lambda _: None
    counts: Counter[str] = field(default_factory=Counter)
    met: set[tuple[Fault, Evaluation]] = field(default_factory=set)  # faults that occur once
    uses: list[Use] = field(default_factory=list)

    def start(self, attempt: Attempt, device: str) -> None:
        """Record that an attempt starts on a device."""
        self.uses.append(Use(*parse_attempt(attempt), device, self.clock.seconds))
        self.started(self.uses[-1])

    def end(self, running: Running, summary: Outcome | None) -> None:
        """Record the end of an attempt with its summary, if it has started."""
        for use in self.uses_of(*parse_attempt(running.attempt))[-1:]:
            use.ended, use.seen_at = running.ends, self.clock.seconds
            use.status = None if summary is None else summary.status

    def uses_of(self, evaluation: Evaluation, attempt: int) -> list[Use]:
        """Return the uses of devices by one attempt: more than one is a defect."""
        return [u for u in self.uses if (u.evaluation, u.attempt) == (evaluation, attempt)]


class SimulatedExecutor:
    """An `Executor` on `slots.count` devices that fail at the given rates."""

    def __init__(self, slots: Devices, machines: Machines, rates: FaultRates) -> None:
        self.slots = slots
        self.warnings: tuple[str, ...] = ()
        self._lost: tuple[str, ...] = ()
        self.running: list[Running] = []
        self._machines, self._rates = machines, rates
        self._devices = [Device(f"sim-{n}", self._factor()) for n in range(slots.count)]

    def _factor(self) -> float:
        return 1.8 if self._machines.rng.random() < self._rates.slow else 1.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill what is running, with a summary for each."""
        if self._machines.is_dead():
            return
        now = self._machines.clock.seconds
        for one in self.running:
            if not one.is_over and one.began <= now:
                one.ends = max(one.began, min(one.ends, now))
                seconds = one.ends - one.began
                self._finish(one, ended(one.outcome, Status.CANCELLED, "cancelled", seconds))
        self.running = []

    def free(self) -> int:
        self._machines.touch()
        self._notice_lost_devices()
        if not self.running and len(self._lost) == len(self._devices):
            raise EngineError("no slot is left")
        return len(self._usable())

    def _notice_lost_devices(self) -> None:
        now = self._machines.clock.seconds
        self._lost = tuple(one.name for one in self._devices if one.is_lost(now))
        self.warnings = tuple(f"{name} is not used any more" for name in self._lost)

    def _usable(self) -> list[Device]:
        busy = {one.device.name for one in self.running if not one.is_released}
        now = self._machines.clock.seconds
        return [d for d in self._devices if d.is_usable(now) and d.name not in busy]

    def submit(self, attempt: Attempt) -> None:
        if not (usable := self._usable()):
            raise EngineError("no slot is free")
        self._machines.touch()
        self.running.append(self._launch(attempt, usable[0]))
        self._machines.touch()

    def _launch(self, attempt: Attempt, device: Device) -> Running:
        machines, now = self._machines, self._machines.clock.seconds
        fault = self._draw_fault(attempt)
        failure, outcome = undisturbed(attempt, machines.failures)
        if fault == "unborn":
            machines.counts[fault] += 1
            self._take_away(device, now)
            unborn = ended(outcome, Status.LOST, "it was never started", 0.0)
            return Running(attempt, device, now, now, unborn, [(now + DELIVERY_SECONDS, unborn)])
        started = Started(attempt_id=attempt.attempt_id, **attempt.owner.model_dump())
        write_model(attempt.directory, started, durable=False)
        seconds = outcome.seconds
        if failure not in ("hang", "stall"):
            seconds *= device.factor
        elif self._rates.faults and machines.rng.random() < 0.3:
            fault, seconds = "unkillable", attempt.limits.reserve_ms / 1000 + 3 * seconds
        outcome = outcome.model_copy(update={"seconds": seconds, "device": device.name})
        running = Running(attempt, device, now, now + seconds, outcome)
        self._plan_deliveries(running, fault)
        machines.counts[failure] += failure != "ok"
        machines.counts[fault] += fault != "none"
        machines.start(attempt, device.name)
        return running

    def _draw_fault(self, attempt: Attempt) -> Fault:
        fault = draw(self._machines.rng, self._rates.faults, "none")
        if fault not in ("killed", "unready"):
            return fault
        evaluation, _ = parse_attempt(attempt)
        if (fault, evaluation) in self._machines.met:
            return "none"
        self._machines.met.add((fault, evaluation))
        return fault

    def _plan_deliveries(self, one: Running, fault: Fault) -> None:
        """Decide which outcomes of an attempt are delivered, and when."""
        rng, outcome, at = self._machines.rng, one.outcome, one.ends + DELIVERY_SECONDS
        one.deliveries = [(at, outcome)]
        match fault:
            case "lost" | "killed" | "broken" | "unready":
                seconds = outcome.seconds * float(rng.random())
                one.ends = one.began + seconds
                if fault == "lost":
                    one.outcome = ended(outcome, Status.LOST, "its node died", seconds)
                    one.leaves_summary = rng.random() < 0.5
                    self._take_away(one.device, one.ends)
                else:
                    one.outcome = ended(outcome, Status.ERROR, CAUSES[fault], seconds)
                if fault == "broken":
                    one.device.gone_at, one.device.back_at = one.ends, inf
                one.deliveries = [(one.ends + DELIVERY_SECONDS, one.outcome)]
            case "silent":
                self._fall_silent(one)
            case "duplicate":
                one.deliveries.append((at + 2 * float(rng.random()), poisoned(outcome)))
            case "delayed":
                one.deliveries = [(at + 2 * float(rng.random()), outcome)]
            case "unkillable":
                self._take_away(one.device, one.ends)

    def _fall_silent(self, one: Running) -> None:
        """Deliver a lost outcome first; the true end comes later, if at all."""
        rng, reserved = self._machines.rng, one.attempt.limits.reserve_ms / 1000
        deadline = one.began + reserved
        lost = ended(one.outcome, Status.LOST, "its slot is silent", reserved)
        one.deliveries = [(deadline, lost)]
        one.seen_at = max(one.ends, deadline) + 2 * float(rng.random())
        if rng.random() < 0.3:
            one.ends = one.seen_at
            one.outcome = one.outcome.model_copy(update={"seconds": one.ends - one.began})
        one.deliveries.append((one.seen_at, poisoned(one.outcome)))
        if rng.random() < self._rates.permanent:
            one.device.gone_at, one.device.back_at = deadline, inf

    def _take_away(self, device: Device, at: float) -> None:
        """Make the device unusable from then on, for a while or forever."""
        rng = self._machines.rng
        device.gone_at, device.back_at = at, at + 5 * float(rng.random())
        if rng.random() < self._rates.permanent:
            device.back_at = inf

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        machines = self._machines
        machines.touch()
        deadline = machines.clock.seconds + timeout_seconds
        arrived: list[Outcome] = []
        while not arrived and (self.running or not self._usable()):
            following = min((at for one in self.running for at in one.moments()), default=inf)
            machines.clock.advance_to(min(following, deadline))
            arrived = self._deliver()
            if following > deadline:
                break
        self._notice_lost_devices()
        machines.touch()
        return [arrived[n] for n in machines.rng.permutation(len(arrived))]

    def _deliver(self) -> list[Outcome]:
        """Write the summaries and return the outcomes that are due."""
        now, arrived = self._machines.clock.seconds, []
        for one in list(self.running):
            if not one.is_over and one.over_at <= now:
                self._finish(one, one.outcome)
            arrived += [outcome for at, outcome in one.deliveries if at <= now]
            one.deliveries = [(at, outcome) for at, outcome in one.deliveries if at > now]
            one.is_released |= one.is_over and any(
                outcome.attempt_id == one.attempt.attempt_id for outcome in arrived
            )
            if one.is_over and not one.deliveries:
                self.running.remove(one)
        return arrived

    def _finish(self, one: Running, outcome: Outcome) -> None:
        one.is_over = True
        if one.leaves_summary:
            write_model(one.attempt.directory, outcome, durable=False)
        self._machines.end(one, outcome if one.leaves_summary else None)

    def abandon(self) -> None:
        """After the orchestrator's death: each attempt is killed, finishes, or dies unrecorded."""
        rng, now = self._machines.rng, self._machines.clock.seconds
        for one in (one for one in self.running if not one.is_over):
            end = rng.choice(["ended", "finished", "dead"])
            if end == "finished":
                self._machines.clock.advance_to(one.over_at)
                self._finish(one, one.outcome)
                continue
            one.ends = max(one.began, min(one.ends, now + NOTICE_SECONDS))
            one.leaves_summary &= end == "ended"
            cause, seconds = "the orchestrator's process is gone", one.ends - one.began
            self._finish(one, ended(one.outcome, Status.LOST, cause, seconds))
        self.running = []
        self._machines.clock.advance_to(now + NOTICE_SECONDS)
