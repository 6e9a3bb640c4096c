"""The view fits whatever it is shown on, and says in words what matters."""

import os
import re
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from rich.cells import cell_len

from budgets.events import Fired, Status, Withdrawn
from budgets.terms import Plan
from orchestrator.watch.later import later
from orchestrator.watch.snapshot import Snapshot
from orchestrator.watch.view import View
from tests.budgets.conftest import confirmed_plan, small_plan
from tests.orchestrator.watch.conftest import BEGAN, NOBODY, Watched, shown

SIZES = [(80, 24), (100, 30), (40, 12), (20, 5), (10, 3), (1, 1), (200, 60), (500, 100)]


def many(devices: int, **fields: object) -> Plan:
    envelope = {"population": 2 * devices, "generations": 50, "seeds_per_candidate": 1}
    return small_plan(resolved=envelope, caps={"evaluations": 100 * devices}, **fields)


def busy(devices: int) -> Snapshot:
    """A run in its third generation with everything that can be said of one."""
    run = Watched(many(devices), workers=devices)
    for generation in range(2):
        outcomes = [1.0 - 0.2 * generation + 0.01 * c for c in range(2 * devices)]
        run.score(*outcomes)
        run.tell()
    run.ask()
    run.evaluate(0, Status.OOM, cause="the GPU ran out of memory")
    run.evaluate(1, Status.LOST)
    for candidate in range(1, 1 + devices):
        run.at(0.01 * candidate).reserve(candidate)
    fired = Fired(
        rule="crash_rate", generation=2, decision="pause", observed=1, limit=0, evidence="so many"
    )
    run.say(fired)
    return run.snapshot(2.0)


@pytest.mark.parametrize("devices", [1, 2, 8, 64, 300])
@pytest.mark.parametrize(("columns", "height"), SIZES)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_it_fits(devices: int, columns: int, height: int, encoding: str) -> None:
    lines = shown(busy(devices), columns, height, encoding=encoding)
    assert 0 < len(lines) <= height
    assert all(cell_len(line) <= columns for line in lines)
    if encoding == "ascii":
        assert all(line.isascii() for line in lines)


def test_a_screen_of_80_by_24_has_room_for_all_that_matters() -> None:
    text = "\n".join(shown(busy(2), 80, 20))
    for said in (
        "phase1 small",
        "generation 2 (3 of 50)",
        "left, ends at",
        "8 ok, 1 failed (1 oom), 1 lost, 2 in flight, 189 left",
        "of 200",
        "cpu 1  candidate 1",
        "cpu 2  candidate 2",
        "crash_rate: so many",
    ):
        assert said in text


def test_without_a_height_it_takes_all_the_room_it_needs() -> None:
    lines = shown(busy(64), 120)
    assert sum("candidate" in line and "cpu" in line for line in lines) == 64


def test_where_there_are_too_many_devices_the_rest_is_counted() -> None:
    text = "\n".join(shown(busy(300), 100, 24))
    assert "more: " in text
    assert " running" in text


def test_overdue_devices_are_shown_first_and_named_in_words() -> None:
    run = Watched(many(20), workers=20)
    run.ask()
    for candidate in (13, *range(13)):
        run.reserve(candidate)
        run.at(90.0)
    lines = shown(run.snapshot(91.0), 100, 12)
    first = next(line for line in lines if "devices" in line)
    assert "candidate 13" in first
    assert "overdue, ends at 12 s" in first


def test_idle_devices_are_the_least_interesting() -> None:
    run = Watched(many(8), workers=8)
    run.ask()
    run.reserve(0)
    text = "\n".join(shown(run.snapshot(1.0), 100, 11))
    assert "candidate 0" in text
    assert "and 6 more: 6 idle" in text


def test_no_colour_says_nothing_that_words_do_not() -> None:
    found = busy(2)
    options: dict[str, Any] = {"force_terminal": True, "color_system": "standard", "_environ": {}}
    coloured = shown(found, **options)
    plain = shown(found, no_color=True, **options)
    assert any("\x1b[31m" in line or "\x1b[1;31m" in line for line in coloured)
    assert not any("31m" in line or "33m" in line or "32m" in line for line in plain)
    assert [_bare(line) for line in coloured] == shown(found)


def _bare(line: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", line)


def test_a_mean_outside_the_noise_is_said_in_words_and_marked() -> None:
    run = Watched()
    for score in (1.0, 0.5):
        run.score(*(4 * [score]))
        run.tell()
    text = "\n".join(shown(run.snapshot()))
    assert "mean 0.5, better than the noise of the baseline, 1 ± 0.2" in text
    assert "-v  v better than the baseline's noise" in text


def test_a_generation_in_progress_says_that_its_mean_is_so_far(watched: Watched) -> None:
    watched.ask()
    watched.evaluate(0, 1.05)
    text = "\n".join(shown(watched.snapshot()))
    assert "mean so far 1.05, in the noise of the baseline" in text


def test_the_best_score_stands_beside_what_luck_alone_would_give(watched: Watched) -> None:
    watched.score(0.9, 1.0, 1.0, 1.1)
    assert "best 0.9; luck alone would give 0.8" in "\n".join(shown(watched.snapshot()))


@pytest.mark.parametrize(("columns", "filled"), [(120, 24), (100, 24), (90, 19), (70, 0)])
def test_a_bar_of_the_budget_leaves_room_for_its_numbers(columns: int, filled: int) -> None:
    found = busy(2)
    (line,) = (line for line in shown(found, columns) if "of 200" in line)
    assert sum(line.count(shape) for shape in "█▒░") == filled
    assert line.endswith("9 spent + 2 reserved, of 200")


def test_it_says_when_it_is_off_track() -> None:
    run = Watched(small_plan(caps={"evaluations": 8, "hours": 0.001}))
    run.ask()
    assert "off track by" in "\n".join(shown(run.snapshot(1.0)))
    assert "(--max-hours)" in "\n".join(shown(run.snapshot(1.0)))


def test_a_run_that_nobody_carries_out_says_so_and_how_it_goes_on() -> None:
    run = Watched(owner=NOBODY)
    run.ask()
    run.reserve(0)
    text = "\n".join(shown(run.snapshot(5.0)))
    assert ": interrupted\n" in text
    assert "Repeat the command that began it to go on." in text
    assert "candidate 0  interrupted" in text


def test_a_paused_run_says_why_in_its_own_words() -> None:
    run = Watched(owner=NOBODY)
    run.score(Status.ERROR, Status.ERROR, 1.0, 1.0)
    text = " ".join(" ".join(line.split()) for line in shown(run.snapshot(), 80))
    assert "Paused: 2 of 4 evaluations" in text
    assert "--override" in text


def test_what_is_compared_on_fresh_seeds_is_told_arm_by_arm() -> None:
    run = Watched(confirmed_plan())
    run.finish()
    run.panel({"average": (11, 12, 13), "mean": (11, 12, 13)})
    run.compare_one(0, 11, 0.5)
    text = "\n".join(shown(run.snapshot()))
    assert "the finalists on fresh seeds" in text
    assert "average: 1 of 3, mean 0.5" in text
    assert "mean: 0 of 3" in text


def test_heartbeats_are_told_where_there_are_any(watched: Watched) -> None:
    watched.ask()
    watched.reserve(0)
    found = watched.snapshot(1.0)
    row = replace(found.devices[0], step=60, loss=2.84, progress=0.5, device="0 on here")
    found = found.model_copy(update={"devices": (row,)})
    wide, narrow = ("\n".join(shown(found, width)) for width in (120, 80))
    assert "gpu 0  candidate 0  1.0 s of ~2.0 s   █████░░░░░  step 60, loss 2.84" in wide
    assert "gpu 0  candidate 0  1.0 s of ~2.0 s   step 60, 50%, loss 2.84" in narrow


def test_hosts_are_named_only_where_there_are_several(watched: Watched) -> None:
    watched.ask()
    watched.reserve(0)
    watched.reserve(1)
    found = watched.snapshot(1.0)

    def on(*hosts: str) -> str:
        rows = [
            replace(row, device=f"cpu on {host}")
            for row, host in zip(found.devices, hosts, strict=True)
        ]
        return "\n".join(shown(found.model_copy(update={"devices": tuple(rows)})))

    assert "cpu 1  candidate 0" in on("one", "one")
    assert "cpu 1 on one  candidate 0" in on("one", "two")


HOSTILE = "x\x1b[2J\x1b]0;gone\x07\n\u202e[red]</b>日本"


def test_names_from_anywhere_steer_no_terminal_and_break_no_line() -> None:
    run = Watched(small_plan(run_id=HOSTILE, objective={"name": HOSTILE, "settings": {}}))
    run.ask()
    run.evaluate(0, Status.ERROR, cause=HOSTILE)
    run.say(Withdrawn(device=HOSTILE, why=HOSTILE))
    found = run.snapshot()
    lines = shown(found, 100, force_terminal=True, color_system=None)
    text = "".join(lines)
    assert "\x1b" not in text.replace("\x1b[2m", "").replace("\x1b[0m", "").replace("\x1b[1m", "")
    assert "\u202e" not in text
    assert "[red]" in text
    assert all(cell_len(line) <= 100 for line in shown(found, 100))


def test_a_time_is_of_the_zone_of_whoever_looks(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Etc/GMT-2")
    time.tzset()
    try:
        watched.ask()
        watched.reserve(0)
        assert "ends at 02:00:08" in "\n".join(shown(watched.snapshot(1.0)))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "TZ" not in os.environ or os.environ["TZ"] != "Etc/GMT-2"


def test_drawing_it_changes_nothing_of_it() -> None:
    found = busy(8)
    before = found.model_dump_json()
    shown(later(found, BEGAN + timedelta(seconds=5)), 80, 20)
    assert found.model_dump_json() == before
    assert shown(found) == shown(found)
    assert isinstance(View(found), View)
