"""An executor on a clock of its own: slots, what their machines suffer, and what is heard of it.

It evaluates at once and lets the outcome happen later. It writes the files that a supervisor would
write, so that whoever comes after a dead orchestrator finds what it would find.
"""

from math import inf
from typing import Self

from budgets.events import Status, Withdrawn
from orchestrator.execution.attempts import CONFIG, STARTED, SUMMARY, Started, write_model
from orchestrator.execution.evaluate import Attempt, Outcome, Slots
from orchestrator.execution.server import EngineError
from tests.simulation.fates import (
    Trouble,
    Weather,
    drawn,
    ended,
    of_its_own,
    poisoned,
)
from tests.simulation.journal import place_of
from tests.simulation.machines import Flight, Machines, Slot

SAID = {
    "killed": "killed by signal 9 SIGKILL",
    "broken": "AcceleratorError: CUDA error: uncorrectable ECC error encountered",
    "unready": "SetupError: cannot read data 'text': No such file or directory",
}
NOTICED_SECONDS = 0.2  # from the orchestrator's death until a supervisor sees it
HEARD_SECONDS = 0.01  # from the end of an evaluation until the orchestrator knows


class SimulatedExecutor:
    """`slots.count` slots under a weather. The contract is `Executor`'s."""

    def __init__(self, slots: Slots, machines: Machines, weather: Weather) -> None:
        self.slots = slots
        self.warnings: tuple[str, ...] = ()
        self.withdrawn: tuple[Withdrawn, ...] = ()
        self.flights: list[Flight] = []
        self._machines, self._weather = machines, weather
        self._slots = [Slot(f"sim-{n}", self._factor()) for n in range(slots.count)]

    def _factor(self) -> float:
        return 1.8 if self._machines.rng.random() < self._weather.slow else 1.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Supervisors end what runs, and say so."""
        if self._machines.is_dead():
            return
        now = self._machines.clock.seconds
        for flight in self.flights:
            if not flight.is_over and flight.began <= now:
                flight.ends = max(flight.began, min(flight.ends, now))
                cancelled = ended(
                    flight.outcome, Status.CANCELLED, "cancelled", flight.ends - flight.began
                )
                self._write(flight, cancelled)
        self.flights = []

    def free(self, avoid: str = "") -> int:
        self._machines.touch()
        self._notice()
        if not self.flights and len(self.withdrawn) == len(self._slots):
            raise EngineError("no slot is left")
        usable = self._usable()
        others = [slot for slot in usable if slot.name != avoid]
        if others or any(flight.slot.name != avoid for flight in self._in_flight()):
            return len(others)
        return len(usable)

    def _notice(self) -> None:
        """Withdraw what is gone for good."""
        now, known = self._machines.clock.seconds, {device.device for device in self.withdrawn}
        lost = [slot for slot in self._slots if slot.is_lost(now) and slot.name not in known]
        why = "its node does not come back"
        self.withdrawn += tuple(Withdrawn(device=slot.name, why=why) for slot in lost)

    def _in_flight(self) -> list[Flight]:
        return [flight for flight in self.flights if not flight.is_given_back]

    def _usable(self) -> list[Slot]:
        busy = {flight.slot.name for flight in self._in_flight()}
        now = self._machines.clock.seconds
        return [s for s in self._slots if s.is_usable(now) and s.name not in busy]

    def submit(self, attempt: Attempt) -> None:
        if not (usable := self._usable()):
            raise EngineError("no slot is free")
        others = [slot for slot in usable if slot.name != attempt.avoid]
        write_model(attempt.directory / CONFIG, attempt, durable=False)
        self._machines.touch()
        flight = self._launched(attempt, (others or usable)[0])
        self.flights.append(flight)
        self._machines.touch()

    def _launched(self, attempt: Attempt, slot: Slot) -> Flight:
        machines, now = self._machines, self._machines.clock.seconds
        trouble = self._drawn(attempt)
        nature, outcome = of_its_own(attempt, machines.natures)
        if trouble == "unborn":
            machines.faults[trouble] += 1
            self._strike(slot, now)
            unborn = ended(outcome, Status.LOST, "it was never started", 0.0)
            return Flight(attempt, slot, now, now, unborn, [(now + HEARD_SECONDS, unborn)])
        started = Started(attempt_id=attempt.attempt_id, **attempt.owner.model_dump())
        write_model(attempt.directory / STARTED, started, durable=False)
        seconds = outcome.seconds
        if nature not in ("hang", "stall"):
            seconds *= slot.factor
        elif self._weather.troubles and machines.rng.random() < 0.3:
            trouble, seconds = "unkillable", attempt.limits.reserve_ms / 1000 + 3 * seconds
        outcome = outcome.model_copy(update={"seconds": seconds, "device": slot.name})
        flight = Flight(attempt, slot, now, now + seconds, outcome)
        self._trouble(flight, trouble)
        machines.faults[nature] += nature != "ok"
        machines.faults[trouble] += trouble != "none"
        machines.journal.start(flight.attempt, slot.name, now)
        return flight

    def _drawn(self, attempt: Attempt) -> Trouble:
        trouble = drawn(self._machines.rng, self._weather.troubles, "none")
        evaluation, _ = place_of(attempt)
        if trouble not in ("killed", "unready"):
            return trouble
        if (trouble, evaluation) in self._machines.met:
            return "none"
        self._machines.met.add((trouble, evaluation))
        return trouble

    def _trouble(self, flight: Flight, trouble: Trouble) -> None:
        """Decide which news come of the attempt, and when."""
        rng, outcome, heard = self._machines.rng, flight.outcome, flight.ends + HEARD_SECONDS
        given_up = flight.began + flight.attempt.limits.reserve_ms / 1000
        match trouble:
            case "lost":
                seconds = outcome.seconds * float(rng.random())
                flight.ends = flight.began + seconds
                flight.outcome = ended(outcome, Status.LOST, "its node died", seconds)
                flight.news = [(flight.ends + float(rng.random()), flight.outcome)]
                flight.leaves_summary = rng.random() < 0.5
                self._strike(flight.slot, flight.ends)
            case "killed" | "broken" | "unready":
                seconds = outcome.seconds * float(rng.random())
                flight.ends = flight.began + seconds
                flight.outcome = ended(outcome, Status.ERROR, SAID[trouble], seconds)
                flight.news = [(flight.ends + HEARD_SECONDS, flight.outcome)]
                if trouble == "broken":
                    flight.slot.gone_at, flight.slot.back_at = flight.ends, inf
            case "silent":
                self._fall_silent(flight, given_up)
            case "duplicate":
                again = (heard + 2 * float(rng.random()), poisoned(outcome))
                flight.news = [(heard, outcome), again]
            case "delayed":
                flight.news = [(heard + 2 * float(rng.random()), outcome)]
            case "unkillable":
                flight.news = [(heard, outcome)]
                self._strike(flight.slot, flight.ends)
            case _:
                flight.news = [(heard, outcome)]

    def _fall_silent(self, flight: Flight, given_up: float) -> None:
        """It is given up; what it comes to is seen later, if ever. Some really take so long."""
        rng, cause = self._machines.rng, "its slot is silent"
        lost = ended(flight.outcome, Status.LOST, cause, flight.attempt.limits.reserve_ms / 1000)
        flight.news = [(given_up, lost)]
        flight.seen_at = max(flight.ends, given_up) + 2 * float(rng.random())
        if rng.random() < 0.3:
            flight.ends = flight.seen_at
            seconds = flight.ends - flight.began
            flight.outcome = flight.outcome.model_copy(update={"seconds": seconds})
        if rng.random() < self._weather.for_good:
            flight.slot.gone_at, flight.slot.back_at = given_up, inf
        else:
            flight.news.append((flight.seen_at + HEARD_SECONDS, poisoned(flight.outcome)))

    def _strike(self, slot: Slot, at: float) -> None:
        """The slot is gone from then on, for a while or for good."""
        rng = self._machines.rng
        slot.gone_at, slot.back_at = at, at + 5 * float(rng.random())
        if rng.random() < self._weather.for_good:
            slot.back_at = inf

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        machines = self._machines
        machines.touch()
        deadline = machines.clock.seconds + timeout_seconds
        arrived: list[Outcome] = []
        while not arrived and (self.flights or not self._usable()):
            following = min((at for f in self.flights for at in f.moments()), default=inf)
            machines.clock.advance_to(min(following, deadline))
            arrived = self._happen()
            if following > deadline:
                break
        self._notice()
        machines.touch()
        return [arrived[n] for n in machines.rng.permutation(len(arrived))]

    def _happen(self) -> list[Outcome]:
        """All that is due: results on disk, outcomes heard of."""
        now, arrived = self._machines.clock.seconds, []
        for flight in list(self.flights):
            if not flight.is_over and flight.over_at <= now:
                self._write(flight, flight.outcome)
            arrived += [outcome for at, outcome in flight.news if at <= now]
            flight.news = [(at, outcome) for at, outcome in flight.news if at > now]
            flight.is_given_back |= flight.is_over and any(
                outcome.attempt_id == flight.attempt.attempt_id for outcome in arrived
            )
            if flight.is_over and not flight.news:
                self.flights.remove(flight)
        return arrived

    def _write(self, flight: Flight, outcome: Outcome) -> None:
        flight.is_over = True
        summary = outcome if flight.leaves_summary else None
        if summary is not None:
            write_model(flight.attempt.directory / SUMMARY, summary, durable=False)
        now = self._machines.clock.seconds
        self._machines.journal.end(flight.attempt, flight.ends, now, summary)

    def abandon(self) -> None:
        """The orchestrator is dead: each supervisor ends what it runs, finishes it, or dies too."""
        rng, now = self._machines.rng, self._machines.clock.seconds
        for flight in self.flights:
            if flight.is_over:
                continue
            end = rng.choice(["ended", "finished", "dead"])
            if end == "finished":
                self._machines.clock.advance_to(flight.over_at)
                self._write(flight, flight.outcome)
                continue
            flight.ends = max(flight.began, min(flight.ends, now + NOTICED_SECONDS))
            flight.leaves_summary &= end == "ended"
            cause, seconds = "the orchestrator's process is gone", flight.ends - flight.began
            self._write(flight, ended(flight.outcome, Status.LOST, cause, seconds))
        self.flights = []
        self._machines.clock.advance_to(now + NOTICED_SECONDS)
