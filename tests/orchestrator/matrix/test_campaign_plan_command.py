"""`plan`: times on somebody's word, and what the longest condition must find free."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Command

LENGTHS = """
objective = "nanochat"
[training]
n_layer = 2
n_embd = 32
sequence_len = 64
target_flops = 3e9
[factors]
target_flops = [3e9, 2.4e10]
[campaign]
seeds = [1, 2]
controls = false
[evaluation]
limit_seconds = 20.0
[budget]
max_device_hours = {cap}
[backend]
workers = 2
"""


@pytest.fixture
def plan(command: "Command", tmp_path: Path) -> "Callable[..., dict[str, Any]]":
    def page(cap: float, *more: str) -> dict[str, Any]:
        (tmp_path / "file.toml").write_text(LENGTHS.format(cap=cap))
        answer = command("plan", "file.toml", "--json", *more)
        assert answer.code == 0, answer.err
        return dict(orjson.loads(answer.out))

    return page


def test_somebodys_word_is_scaled_to_each_condition_and_named(
    plan: "Callable[..., dict[str, Any]]",
) -> None:
    found = plan(1.0, "--assume-eval-seconds", "5")
    short, long = found["conditions"]
    assert short["seconds"] == 5.0
    assert long["seconds"] == pytest.approx(22.1, abs=0.1)  # 8 x the training, scored once as well
    forecast = found["forecast"]
    assert forecast["device_hours_p50"] == pytest.approx(2 * (5 + 22.1) / 3600, rel=0.01)
    # on two devices, after 10 s of start-up: the long one beside 5 + 5 + 22.1 s
    assert forecast["hours_p50"] == pytest.approx((10 + 5 + 5 + 22.1) / 3600, rel=0.01)


def test_the_longest_condition_must_find_its_whole_reservation_free(
    plan: "Callable[..., dict[str, Any]]",
) -> None:
    """Expected 54 s; 30 s are reserved for the short one, 20 * 4.4 + 10 = 99 s for the long one."""
    for cap, verdict in ((0.035, "fail"), (0.045, "pass")):
        items = plan(cap, "--assume-eval-seconds", "5")["checklist"]
        fits = next(
            item
            for item in items
            if item["question"] == "Does it fit under the caps on device time and cost?"
        )
        assert fits["verdict"] == verdict, fits
