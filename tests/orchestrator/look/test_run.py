"""What a run's slots did and do, and what its attempts left, read with suspicion."""

import os
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from orchestrator.execution.api import METRICS, STARTED
from orchestrator.look.attempt_files import CURVE_POINTS, HEARTBEAT_BYTES, MOST_NAME, curve
from orchestrator.look.plots import drawings
from tests.orchestrator.look.golden import RUNS, golden, moments

pytestmark = pytest.mark.usefixtures("carried_out")
BEATS = (b'{"step": 3, "loss": 2.5, "progress": 7}', b"[1]", b'{"loss": "low", "step": true}')


@pytest.mark.parametrize("name", RUNS)
def test_what_slots_did_adds_up(name: str) -> None:
    for run in moments(name):
        sessions = zip(run.state.accounts.sessions_ms, run.state.opened, strict=True)
        there = sum(ms * opened.workers for ms, opened in sessions) / 3.6e6
        ends, holds = run.state.accounts.sessions_ms, run.state.accounts.holds.values()
        running = sum(ends[one.session] - one.reserved_ms for one in holds) / 3.6e6
        assert sum(run.usage.values()) + running == pytest.approx(there)


@pytest.mark.parametrize("name", RUNS)
def test_a_slot_does_one_thing_for_as_long_as_it_is_in_flight(name: str) -> None:
    for run in moments(name):
        busy = [slot for slot in run.slots if slot.doing != "idle"]
        in_flight = {f"eval/{one.reserved.place}" for one in run.state.accounts.holds.values()}
        assert {slot.place for slot in busy} == in_flight
        assert len({slot.slot for slot in run.slots}) == len(run.slots)
        assert all(slot.seconds is None or slot.seconds > 0.9 for slot in run.slots)


def _linked(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def _folder_linked(path: Path) -> None:
    _linked(path.parent.parent)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("spoil", [None, _linked, _folder_linked, _pipe])
def test_a_heartbeat_is_believed_as_far_as_it_can_be(
    spoil: Callable[[Path], None] | None, tmp_path: Path
) -> None:
    run = next(run for run in moments("go", tmp_path) if run.state.accounts.holds)
    place = tmp_path / "eval" / next(iter(run.state.accounts.holds.values())).reserved.place
    place.mkdir(parents=True)
    (place / STARTED).write_text('{"device": "' + "a" * 500 + '"}')
    (place / METRICS).write_bytes(b"\n".join([b"x" * HEARTBEAT_BYTES, *BEATS, b'{"st']))
    if spoil is not None:
        spoil(place / STARTED)
    slot = next(slot for slot in run.slots if slot.doing != "idle")
    if spoil is not None:
        assert (slot.doing, slot.step, slot.loss) == ("starting", None, None)
        return
    assert (slot.doing, slot.step, slot.loss) == ("running", 3, 2.5)
    assert slot.progress is None or 0 <= slot.progress <= 1
    assert len(slot.device) == MOST_NAME


def test_curves_are_bounded_and_drawn_as_far_as_they_can_be_read(tmp_path: Path) -> None:
    run = golden("go")
    run.directory = tmp_path
    for at, one in enumerate(run.state.ends()):
        place = tmp_path / "eval" / one.place
        place.mkdir(parents=True)
        losses = [[3 - step / 50, 10.0 ** (step % 99), "nan"][at % 3] for step in range(1001)]
        beats = [orjson.dumps({"step": step, "loss": loss}) for step, loss in enumerate(losses)]
        (place / METRICS).write_bytes(b"\n".join(beats))
        found = curve(tmp_path, run.state, f"eval/{one.place}")
        assert found is None or (found[0][-1] == 1000 and len(found[0]) <= CURVE_POINTS)
        assert (found is None) == (at % 3 == 2)
    assert drawings(run)["losses"].file("png")
