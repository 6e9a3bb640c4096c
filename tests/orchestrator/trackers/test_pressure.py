"""Back-pressure's signals beside the records that they belong to."""

import os
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest

from budgets.events import Settled
from orchestrator.capacity.backpressure import SIGNALS as WRITTEN
from orchestrator.capacity.control import Action
from orchestrator.capacity.usl import Regime
from orchestrator.trackers.pressure import ACTIONS, REGIMES, SIGNALS, Signals
from tests.ledgers import every

SAID = {"bp_action": "throttle", "bp_regime": "retrograde", "bp_p_star": 3.5, "bp_throughput": 90.0}


@pytest.fixture(scope="module")
def settled(finished_run: Path) -> list[Settled]:
    return every(Settled, finished_run)


def line(event: Settled, **said: Any) -> bytes:
    names = ("panel", "generation", "candidate", "seed", "attempt")
    place = {name: getattr(event, name) for name in names}
    return orjson.dumps(
        {**place, "bp_allowed": 2, **SAID, **said}, option=orjson.OPT_APPEND_NEWLINE
    )


def test_every_word_of_the_controller_is_a_number() -> None:
    assert set(ACTIONS) == set(get_args(Action))
    assert set(REGIMES) == set(get_args(Regime))
    assert SIGNALS == WRITTEN


def test_an_attempt_has_the_signals_of_its_line(tmp_path: Path, settled: list[Settled]) -> None:
    path = tmp_path / SIGNALS
    path.write_bytes(line(settled[0]) + line(settled[1], bp_action="hold", bp_p_star=None))
    signals = Signals(path)
    assert signals.of(0, settled[0]) == {
        "bp_action": -1.0,
        "bp_regime": 3.0,
        "bp_p_star": 3.5,
        "bp_throughput": 90.0,
        "bp_allowed": 2.0,
    }
    second = signals.of(1, settled[1])
    assert (second["bp_action"], "bp_p_star" in second) == (0.0, False)
    assert signals.of(2, settled[2]) == {}


def test_a_line_is_seen_once_it_is_whole(tmp_path: Path, settled: list[Settled]) -> None:
    path = tmp_path / SIGNALS
    signals, whole = Signals(path), line(settled[0])
    assert signals.of(0, settled[0]) == {}
    path.write_bytes(whole[:-5])
    assert signals.of(0, settled[0]) == {}
    path.write_bytes(whole)
    assert signals.of(0, settled[0])["bp_action"] == -1.0


def test_a_file_that_was_written_again_is_read_again(
    tmp_path: Path, settled: list[Settled]
) -> None:
    path = tmp_path / SIGNALS
    path.write_bytes(line(settled[0]))
    signals = Signals(path)
    signals.of(0, settled[0])
    (tmp_path / "aside").write_bytes(line(settled[0]) + line(settled[1]))
    (tmp_path / "aside").rename(path)
    assert signals.of(1, settled[1])["bp_allowed"] == 2.0


@pytest.mark.parametrize(
    "content", [b"no json\n", b"[]\n", b"{}\n", b'{"bp_action": "hold"}\n', b'{"panel": null}\n']
)
def test_what_is_no_line_of_the_attempt_says_nothing(
    tmp_path: Path, settled: list[Settled], content: bytes
) -> None:
    (tmp_path / SIGNALS).write_bytes(content)
    assert Signals(tmp_path / SIGNALS).of(0, settled[0]) == {}


def test_a_pipe_or_a_link_in_its_place_is_not_waited_for(
    tmp_path: Path, settled: list[Settled]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "other").write_bytes(line(settled[0]))
    (tmp_path / "link").symlink_to(tmp_path / "other")
    for name in ("pipe", "link"):
        assert Signals(tmp_path / name).of(0, settled[0]) == {}
