"""What each device does, and for how long."""

from budgets.accounts import Key
from budgets.events import PanelAsked, Status, Withdrawn
from budgets.terms import Arm
from tests.budgets.conftest import confirmed_plan, reserved, small_plan
from tests.orchestrator.watch.conftest import NOBODY, Watched


def test_a_device_runs_an_evaluation_for_so_long_of_what_is_expected(watched: Watched) -> None:
    watched.ask()
    watched.at(1.0).reserve(3)
    busy, idle = watched.snapshot(2.5).devices
    assert (busy.doing, busy.what, busy.attempt) == ("running", "candidate 3", 1)
    assert (busy.seconds, busy.expected_seconds, busy.limit_seconds) == (1.5, 2.0, 12.0)
    assert busy.place == "gen_0000/cand_0003/seed_5"
    assert (busy.device, busy.expected_steps) == ("cpu", 10)
    assert (idle.doing, idle.what, idle.seconds) == ("idle", "", None)


def test_a_device_is_idle_since_its_last_evaluation(watched: Watched) -> None:
    watched.ask()
    watched.reserve(0)
    watched.at(2.0).end(0)
    first, second = watched.snapshot(5.0).devices
    assert (first.doing, first.seconds) == ("idle", 3.0)
    assert (second.doing, second.seconds) == ("idle", None)


def test_a_second_try_says_which_it_is(watched: Watched) -> None:
    watched.ask()
    watched.reserve(0)
    watched.end(0, Status.LOST)
    watched.reserve(0)
    assert watched.snapshot().devices[0].attempt == 2


def test_far_beyond_what_is_expected_is_overdue(watched: Watched) -> None:
    watched.ask()
    watched.reserve(0)
    assert not watched.snapshot(3.9).devices[0].is_overdue  # 2 s are expected
    assert watched.snapshot(4.1).devices[0].is_overdue


def test_nothing_is_overdue_where_no_time_is_known() -> None:
    run = Watched(small_plan(calibration=None))
    run.ask()
    run.reserve(0)
    row = run.snapshot(1000).devices[0]
    assert (row.expected_seconds, row.is_overdue, row.share) == (None, False, 0.0)


def test_a_longer_arm_is_expected_to_take_longer() -> None:
    run = Watched(confirmed_plan())
    arm = Arm(name="winner", point=(0.5, 0.5), length=4.0)
    run.say(PanelAsked(panel="rung", arms=(arm,), seeds=((31,),)))
    run.say(reserved(0, panel="rung", seed=31))
    row = run.snapshot().devices[0]
    assert (row.what, row.expected_seconds, row.expected_steps) == ("winner, seed 31", 8.0, 40.0)


def test_of_a_run_that_nobody_carries_out_only_what_was_in_flight_is_told() -> None:
    run = Watched(owner=NOBODY)
    run.ask()
    run.reserve(0)
    (row,) = run.snapshot(100).devices
    assert (row.what, row.seconds) == ("candidate 0", None)


def test_an_attempt_of_an_earlier_session_has_no_time_of_its_own(watched: Watched) -> None:
    watched.ask()
    watched.reserve(0)
    watched.at(3).open()
    assert watched.snapshot(5).devices[0].seconds is None


def test_a_withdrawn_device_is_no_idle_one() -> None:
    run = Watched(workers=3)
    run.ask()
    run.reserve(0)
    run.say(Withdrawn(device="GPU-1", why="why not"))
    assert [row.doing for row in run.snapshot().devices] == ["running", "idle"]


def test_a_gpu_has_no_name_before_somebody_says_it() -> None:
    devices = {"count": 2, "kind": "cuda", "name": "H200", "threads": 1, "memory_bytes": 1 << 30}
    run = Watched(small_plan(devices=devices))
    run.ask()
    run.reserve(0)
    assert [row.device for row in run.snapshot().devices] == ["", ""]


def test_what_is_reserved_before_its_device_is_settled_is_not_one_device_more(
    watched: Watched,
) -> None:
    watched.ask()
    for candidate in range(3):
        watched.reserve(candidate)
    assert [row.what for row in watched.snapshot().devices] == ["candidate 0", "candidate 1"]
    key: Key = (None, 0, 2, 5)
    watched.end(0)
    assert watched.noted.slot_of(key) == 0
    assert [row.what for row in watched.snapshot().devices] == ["candidate 2", "candidate 1"]


def test_hundreds_of_devices_have_a_row_each_in_the_order_of_their_slots() -> None:
    envelope = {"population": 300, "generations": 1, "seeds_per_candidate": 1}
    run = Watched(small_plan(resolved=envelope, caps={"evaluations": 300}), workers=300)
    run.ask()
    for candidate in range(250):
        run.reserve(candidate)
    rows = run.snapshot(1.0).devices
    assert [row.slot for row in rows] == list(range(300))
    assert [row.doing for row in rows] == 250 * ["running"] + 50 * ["idle"]
