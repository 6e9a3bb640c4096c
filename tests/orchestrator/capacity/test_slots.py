"""Slots shared on a host: never more than there are, free again whatever becomes of who had one."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Event, Reserved
from budgets.state import RunState
from objectives.api import Objective
from orchestrator import capacity
from orchestrator.capacity import HostSlots, Law
from orchestrator.matrix.carry_out import carry_out_search
from tests.asking import config_for
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from tests.orchestrator.capacity.conftest import World

HOLDER = """
import sys
from pathlib import Path
from orchestrator import capacity
from tests.orchestrator.capacity.test_slots import NONE
capacity.SLOTS = Path(sys.argv[1])
slots = capacity.HostSlots(1, print)
assert slots.admits(NONE)
print("held", flush=True)
sys.stdin.read()
"""


def flying(count: int) -> Any:
    """A state with so many evaluations in flight."""
    return SimpleNamespace(accounts=SimpleNamespace(holds=range(count)))


NONE, ONE = flying(0), flying(1)
said: list[str] = []
sharers: list[HostSlots] = []


def sharer(limit: int) -> HostSlots:
    sharers.append(HostSlots(limit, said.append))
    return sharers[-1]


@pytest.fixture(autouse=True)
def slots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the slots of these tests are: others of this host have their own."""
    monkeypatch.setattr(capacity, "SLOTS", tmp_path / "slots")
    monkeypatch.setattr(capacity, "LOOK_SECONDS", 0.0)
    yield tmp_path / "slots"
    while sharers:
        sharers.pop().close()


def test_slots_are_shared_and_given_back() -> None:
    said.clear()
    one, other = sharer(2), sharer(2)
    assert one.admits(NONE)
    assert one.admits(ONE)
    assert not one.admits(flying(2))
    assert not other.admits(NONE)
    one.look(ONE)  # one of the two was settled
    assert not one.admits(ONE), "the other has none, and waits"
    other.look(NONE)
    assert other.admits(NONE)
    assert not other.admits(ONE)
    one.look(NONE)
    assert one.admits(NONE)
    other.close()
    assert one.admits(ONE)
    assert len(said) == 1, "waiting is said once, by who waits"


def test_those_that_want_one_slot_take_turns() -> None:
    three = [sharer(1) for _ in range(3)]
    turns, in_flight = list[int](), [0, 0, 0]
    for _ in range(100):
        for number, own in enumerate(three):
            own.look(NONE)
            in_flight[number] = own.admits(NONE)
            turns.extend([number] * in_flight[number])
            assert sum(in_flight) <= 1
    assert min(turns.count(number) for number in range(3)) > 15


def test_a_killed_process_frees_its_slot(slots: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(slots)]
    with Popen(command, cwd=REPOSITORY, stdin=PIPE, stdout=PIPE, text=True) as dies:
        assert dies.stdout is not None
        assert dies.stdout.readline() == "held\n"
        waits = sharer(1)
        assert not waits.admits(NONE)
        dies.kill()
        dies.wait()
        assert waits.admits(NONE)


def test_slots_are_this_users_alone(slots: Path) -> None:
    sharer(1)
    assert slots.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("comes", [True, False])
def test_a_run_waits_uncharged_for_a_slot_until_its_hours_are_over(
    make_world: Callable[..., "World"], sphere: Objective, comes: bool
) -> None:
    world, other = make_world(Law(3600, 0, 0), devices=4), sharer(2)
    assert other.admits(NONE)
    assert other.admits(ONE)

    def say(text: str) -> None:
        if text.startswith("Waiting"):
            world.clock.advance_to(world.clock.seconds + (60 if comes else 100_000))
            if comes:
                other.close()

    in_flight = [0]

    def watch(state: RunState, event: Event) -> None:
        in_flight.extend([len(state.accounts.holds)] * isinstance(event, Reserved))

    small = {"population": 4, "max_evals": 8, "max_hours": 1.0, "assumed_seconds": 1.0}
    request = config_for("phase1", "min", sphere, **small)
    with world.session(observe=watch, max_concurrent=2, say=say) as session:
        result = carry_out_search(session, request, world.slots)
    assert result.ruling.decision == ("done" if comes else "stop")
    assert result.state.accounts.device_ms == (8000 if comes else 0)
    assert max(in_flight) == (2 if comes else 0)
    other.close()
    assert sharer(1).admits(NONE), "a session that ended holds none"
