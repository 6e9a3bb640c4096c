"""Slots shared on a host: never more than there are, free again whatever becomes of who had one."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Event, Reserved, Settled
from budgets.ledger.chain import LEDGER, read
from budgets.ledger.lock import processes_with
from budgets.state import RunState
from objectives.api import Objective
from orchestrator.capacity.host_files import locked
from orchestrator.capacity.peers import Peers
from orchestrator.capacity.slots import LOOK_SECONDS, HostSlots, default_directory, made
from orchestrator.capacity.terms import Pacing
from orchestrator.capacity.usl import Law
from orchestrator.execution.server import EngineError
from orchestrator.planning.request import Request
from orchestrator.running.searching import Searching
from tests.simulation.session import SimulatedClock

if TYPE_CHECKING:
    from tests.conftest import Cli
    from tests.orchestrator.capacity.conftest import World

HOLDER = Path(__file__).parent / "slot_holder.py"
REPOSITORY = Path(__file__).parents[3]
MakeWorld = Callable[..., "World"]
Sphere = Callable[..., Objective]


def flying(count: int) -> Any:
    """A state with so many evaluations in flight."""
    return SimpleNamespace(accounts=SimpleNamespace(holds=dict.fromkeys(range(count))))


@dataclass
class Host:
    """Orchestrators in this process, on a clock that only their own sleep moves."""

    directory: Path
    clock: SimulatedClock = field(default_factory=SimulatedClock)
    said: list[str] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    slots: list[HostSlots] = field(default_factory=list)

    def orchestrator(self, limit: int) -> HostSlots:
        own = HostSlots(
            limit,
            self.said.append,
            self.directory,
            rng=Random(len(self.slots)),  # noqa: S311 - it spreads looks
            sleep=self.sleep,
            monotonic=lambda: self.clock.seconds,
        )
        self.slots.append(own)
        return own

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance_to(self.clock.seconds + seconds)


@pytest.fixture
def host(place: Path) -> Iterator[Host]:
    made_here = Host(place / "slots")
    yield made_here
    for own in made_here.slots:
        own.close()


def taken(slots: HostSlots) -> int:
    """As many as there are, one after another."""
    count = 0
    while slots.admits(flying(count)):
        count += 1
    return count


def test_there_are_as_many_slots_as_was_said_and_all_share_them(host: Host) -> None:
    one, other = host.orchestrator(3), host.orchestrator(3)
    assert taken(one) == 3
    assert not other.admits(flying(0))


def test_a_settled_evaluation_gives_its_slot_back(host: Host) -> None:
    one, other = host.orchestrator(2), host.orchestrator(2)
    taken(one)
    one.look(flying(1))
    assert other.admits(flying(0))
    assert not other.admits(flying(1))


def test_what_was_admitted_and_not_reserved_is_given_back(host: Host) -> None:
    one, other = host.orchestrator(1), host.orchestrator(1)
    assert one.admits(flying(0))
    one.look(flying(0))
    assert other.admits(flying(0))


def test_its_own_slot_is_free_for_its_next_evaluation_at_once(host: Host) -> None:
    one = host.orchestrator(2)
    assert taken(one) == 2  # and the third was refused
    one.look(flying(1))
    assert one.admits(flying(1))
    assert host.slept == []


def test_who_has_none_and_nothing_in_flight_waits_a_jittered_moment(host: Host) -> None:
    one, other = host.orchestrator(1), host.orchestrator(1)
    one.admits(flying(0))
    for _ in range(20):
        assert not other.admits(flying(0))
        other.look(flying(0))
    assert all(0.5 * LOOK_SECONDS <= moment <= 1.5 * LOOK_SECONDS for moment in host.slept)
    assert len(set(host.slept)) == 20


def test_who_has_something_in_flight_does_not_sleep(host: Host) -> None:
    one, other = host.orchestrator(2), host.orchestrator(2)
    one.admits(flying(0))
    other.admits(flying(0))
    assert not other.admits(flying(1))
    other.look(flying(1))
    assert host.slept == []


def test_between_two_looks_nothing_is_looked_for(host: Host) -> None:
    one, other = host.orchestrator(1), host.orchestrator(1)
    one.admits(flying(0))
    assert not other.admits(flying(0))
    one.look(flying(0))
    assert not other.admits(flying(0))
    host.clock.advance_to(host.clock.seconds + 1.5 * LOOK_SECONDS)
    assert other.admits(flying(0))


def test_waiting_is_said_once_with_who_has_the_slots(host: Host) -> None:
    one, other = host.orchestrator(1), host.orchestrator(1)
    one.admits(flying(0))
    for _ in range(5):
        other.admits(flying(0))
        other.look(flying(0))
    [text] = host.said
    assert text.startswith("Waiting for a slot: all 1 of")
    assert f"pid {os.getpid()}" in text


def test_who_holds_slots_leaves_a_free_one_to_who_has_none(host: Host) -> None:
    rich, poor = host.orchestrator(2), host.orchestrator(2)
    assert taken(rich) == 2
    assert not poor.admits(flying(0))
    rich.look(flying(1))
    assert not rich.admits(flying(1))  # although it is free
    poor.look(flying(0))
    assert poor.admits(flying(0))
    host.clock.advance_to(host.clock.seconds + 1)
    rich.look(flying(1))
    assert not rich.admits(flying(1))
    assert len(host.slept) == 1


def test_two_that_want_one_slot_take_turns(host: Host) -> None:
    """Each evaluates as often as it may; none goes without for long."""
    both = [host.orchestrator(1), host.orchestrator(1)]
    turns: list[int] = []
    in_flight = [0, 0]
    for _ in range(200):
        for number, own in enumerate(both):
            if in_flight[number]:
                in_flight[number] = 0
                own.look(flying(0))
            if own.admits(flying(0)):
                in_flight[number] = 1
                turns.append(number)
        assert sum(in_flight) <= 1
        host.clock.advance_to(host.clock.seconds + 0.3)
    assert 0.3 < sum(turns) / len(turns) < 0.7


def test_another_limit_is_said_by_both_once(host: Host) -> None:
    few, many = host.orchestrator(2), host.orchestrator(4)
    taken(few)
    taken(many)
    few.look(flying(0))
    few.admits(flying(0))
    warnings = [text for text in host.said if text.startswith("Warning")]
    assert len(warnings) == 2
    assert "shares" in warnings[0]
    assert "backend.max_concurrent 4, this one has 2: up to 4 run at once" in warnings[0]
    assert "backend.max_concurrent 2, this one has 4" in warnings[1]


def test_the_file_of_a_dead_orchestrator_is_removed_and_not_believed(host: Host) -> None:
    one = host.orchestrator(2)
    (host.directory / "orchestrator-1-dead").write_text(
        '{"pid": 1, "max_concurrent": 9, "starving": true}'
    )
    assert taken(one) == 2
    assert host.said == []
    assert not (host.directory / "orchestrator-1-dead").exists()


def test_an_orchestrator_that_leaves_is_forgotten(host: Host) -> None:
    one = Peers(host.orchestrator(1).directory, 1, "token")
    assert len(one.others()) == 1
    host.slots.pop().close()
    assert one.others() == []
    one.leave()
    assert not list(host.directory.glob("orchestrator-*"))


def test_slots_are_of_one_user_alone(place: Path) -> None:
    directory = made(place / "a/slots")
    assert directory.stat().st_mode & 0o777 == 0o700
    assert str(os.getuid()) in str(default_directory())


def test_a_place_for_slots_that_is_none_is_refused(place: Path) -> None:
    (place / "file").write_text("")
    with pytest.raises(ValueError, match=r"backend\.slots_dir: "):
        made(place / "file")
    (place / "link").symlink_to(place)
    with pytest.raises(ValueError, match="expected a directory"):
        made(place / "link")


def test_slots_that_are_taken_away_end_the_run_with_a_way_out(host: Host) -> None:
    one = host.orchestrator(1)
    for path in host.directory.iterdir():
        path.unlink()
    host.directory.rmdir()
    with pytest.raises(EngineError, match="repeat the command"):
        one.admits(flying(0))


# With real processes


def start(
    directory: Path, limit: int, rounds: int, mode: str = "rounds"
) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, str(HOLDER), str(directory), str(limit), str(rounds), mode],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def most_at_once(spans: list[tuple[int, int]]) -> int:
    moments = sorted([(began, 1) for began, _ in spans] + [(ended, -1) for _, ended in spans])
    count = most = 0
    for _, change in moments:
        count += change
        most = max(most, count)
    return most


def test_processes_never_hold_more_than_there_are(place: Path) -> None:
    holders = [start(place / "slots", 2, 5) for _ in range(4)]
    said = [holder.communicate(timeout=120)[0] for holder in holders]
    lines = [line.split() for text in said for line in text.splitlines()]
    spans = [(int(began), int(ended)) for began, ended in lines]
    assert len(spans) == 20
    assert most_at_once(spans) <= 2


@pytest.mark.parametrize("mode", ["hold", "fork"])
def test_a_killed_process_frees_its_slot(host: Host, mode: str) -> None:
    holder = start(host.directory, 1, 1, mode)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    waits = host.orchestrator(1)
    assert not waits.admits(flying(0))
    children = _children(holder.pid)
    assert len(children) == (mode == "fork")

    holder.send_signal(signal.SIGKILL)
    holder.wait()

    waits.look(flying(0))
    assert waits.admits(flying(0))
    for child in children:
        os.kill(child, signal.SIGKILL)
    holder.communicate()


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]


SLOW = ("--objective", "sphere", "--set", "seconds=60", "--set", "noise=0.01", "--tier", "min")


def test_no_child_of_an_orchestrator_has_its_slots_and_a_kill_frees_them(
    cli: "Cli", host: Host
) -> None:
    options = ("--executor", "local", "--workers", "2", "--assume-eval-seconds", "60")
    shared = (
        "--set",
        "backend.max_concurrent=2",
        "--set",
        f"backend.slots_dir={host.directory!s}",
    )
    process = cli.start("phase1", *SLOW, *options, *shared)
    ledger = cli.cwd / "artifacts/cmaes/phase1/min-sphere-s1" / LEDGER
    run = ledger.parent
    deadline = time.monotonic() + 120
    while len(list(run.glob("eval/*/*/*/started.json"))) < 2 and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)

    slots = sorted(host.directory.glob("slot-*"))
    assert {pid for path in slots for pid in processes_with(path)} == {process.pid}
    waits = host.orchestrator(2)
    assert not waits.admits(flying(0))

    process.send_signal(signal.SIGKILL)
    process.communicate()
    host.clock.advance_to(10)
    assert taken(waits) == 2


def test_a_run_takes_a_slot_before_it_reserves_and_waits_uncharged(
    make_world: MakeWorld, sphere: Sphere, host: Host
) -> None:
    world, held = make_world(Law(3600, 0, 0), devices=4), list[tuple[int, int]]()
    pacing = Pacing(max_concurrent=2, slots_dir=host.directory)

    def watch(state: RunState, event: Event) -> None:
        if isinstance(event, Reserved | Settled):
            slots = sum(map(is_held, host.directory.glob("slot-*")))
            held.append((len(state.accounts.holds), slots))

    request = Request("phase1", "min", sphere(), population=4, max_evals=8)
    with world.session(observe=watch, pacing=pacing) as session:
        result = Searching(request, world.slots, assumed_seconds=1.0).carry_out(session)

    assert result.ruling.decision == "done"
    assert world.machines[0].most == 2
    assert all(in_flight <= slots <= 2 for in_flight, slots in held)
    assert result.state.accounts.device_ms == 8 * 1000
    assert all(end.status == "ok" for g in result.state.generations for end in g.results())


def test_a_session_that_dies_in_mid_evaluation_gives_its_slots_back(
    make_world: MakeWorld, sphere: Sphere, host: Host
) -> None:
    world, held = make_world(Law(3600, 0, 0), devices=4), list[Path]()

    def die(state: RunState, event: Event) -> None:
        if isinstance(event, Reserved):
            held.extend(filter(is_held, host.directory.glob("slot-*")))
            raise EngineError("the cluster is gone")

    pacing = Pacing(max_concurrent=2, slots_dir=host.directory)
    request = Request("phase1", "min", sphere(), population=4, max_evals=8)
    with (
        pytest.raises(EngineError),
        world.session(observe=die, pacing=pacing) as session,
    ):
        Searching(request, world.slots, assumed_seconds=1.0).carry_out(session)

    assert len(held) == 1
    assert not is_held(held[0])


def is_held(path: Path) -> bool:
    found = locked(path, fcntl.LOCK_EX)
    if found is not None:
        os.close(found)
    return found is None


def test_a_run_that_finds_no_slot_says_so_and_goes_on_when_there_is_one(
    make_world: MakeWorld, sphere: Sphere, host: Host
) -> None:
    world, other = make_world(Law(3600, 0, 0), devices=4), host.orchestrator(1)
    assert other.admits(flying(0))
    pacing = Pacing(max_concurrent=1, slots_dir=host.directory)

    def say(text: str) -> None:
        world.said.append(text)
        if text.startswith("Waiting for a slot"):
            other.close()
            host.slots.clear()

    request = Request("phase1", "min", sphere(), population=4, max_evals=8)
    with world.session(pacing=pacing, say=say) as session:
        result = Searching(request, world.slots, assumed_seconds=1.0).carry_out(session)

    assert result.ruling.decision == "done"
    assert sum(text.startswith("Waiting for a slot") for text in world.said) == 1
    records = read(result.directory / LEDGER).records
    assert sum(isinstance(record.event, Reserved) for record in records) == 8
    assert result.state.accounts.lost_ms == 0


def test_a_run_that_waits_keeps_to_its_deadline(
    make_world: MakeWorld, sphere: Sphere, host: Host
) -> None:
    world, other = make_world(Law(3600, 0, 0), devices=4), host.orchestrator(1)
    other.admits(flying(0))
    pacing = Pacing(max_concurrent=1, slots_dir=host.directory)

    def say(text: str) -> None:
        if text.startswith("Waiting for a slot"):
            world.clock.advance_to(world.clock.seconds + 100_000)

    request = Request("phase1", "min", sphere(), population=4, max_evals=8, max_hours=1.0)
    with world.session(pacing=pacing, say=say) as session:
        result = Searching(request, world.slots, assumed_seconds=1.0).carry_out(session)
    assert result.ruling.decision == "stop"
    assert "--max-hours" in result.ruling.reason
    assert result.state.accounts.device_ms == 0


def test_slots_without_their_number_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected max_concurrent too"):
        Pacing(slots_dir=tmp_path)
