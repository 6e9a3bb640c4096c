"""Two campaigns that people have planned by hand: written down, explained, priced and run."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from orchestrator.verification.verify import verify
from tests.ledgers import state_of

Command = Callable[..., Any]


EXAMPLES = Path(__file__).parent / "examples"

CELLS = ["model1B_rank4", "model1B_rank64", "model3B_rank4", "model3B_rank64"]
CONTROLS = ["default_base", "synapses-off_base"]


@pytest.fixture
def example(tmp_path: Path) -> Callable[[str], str]:
    """Copies one into the test's directory."""
    return lambda name: Path(shutil.copy(EXAMPLES / f"{name}.toml", tmp_path)).name


def test_a_2x2_factorial_is_four_runs_and_two_controls(
    example: Callable[[str], str], command: Command, tmp_path: Path
) -> None:
    file = example("factorial")

    document = orjson.loads(command("explain", file, "--json").out)["campaign"]
    text = command("explain", file).out

    assert (document["design"], document["total_runs"]) == ("2x2 factorial", 6)
    assert [one["name"] for one in document["conditions"]] == CELLS + CONTROLS
    assert [one["control"] for one in document["conditions"]] == 4 * [False] + 2 * [True]
    assert [one["levels"] for one in document["conditions"][:4]] == [
        {"model": "1B", "rank": "4"},
        {"model": "1B", "rank": "64"},
        {"model": "3B", "rank": "4"},
        {"model": "3B", "rank": "64"},
    ]
    assert document["runs"] == [f"{name}_s1" for name in CELLS + CONTROLS]
    assert "2x2 factorial, 6 conditions (2 of them controls) on 1 seeds = 6 evaluations." in text
    rows = [line.split() for line in text.splitlines() if " run " in f"{line} "]
    assert [row[:4] for row in rows if row[0].isdigit()] == [
        ["1", "model1B_rank4", "1B", "4"],
        ["2", "model1B_rank64", "1B", "64"],
        ["3", "model3B_rank4", "3B", "4"],
        ["4", "model3B_rank64", "3B", "64"],
    ]
    assert {path.name for path in tmp_path.iterdir()} == {file}


def test_the_2x2_factorial_runs_and_says_what_each_factor_does(
    example: Callable[[str], str], command: Command, tmp_path: Path
) -> None:
    file = example("factorial")

    answer = command("run", file)

    assert answer.code == 0, answer.err
    directory = tmp_path / "runs/campaign/cap-8l-80p"
    plan = state_of(directory).plan
    assert plan.campaign is not None
    assert [condition.name for condition in plan.campaign.conditions] == CELLS + CONTROLS
    assert verify(directory).divergence is None
    effects = orjson.loads((directory / "effects.json").read_bytes())["campaign"]
    assert [one["factors"] for one in effects["effects"]] == [
        ["model"],
        ["rank"],
        ["model", "rank"],
    ]
    for name in (*CELLS, *CONTROLS):
        assert name in answer.out
    assert command("run", file).code == 0
    assert state_of(directory).accounts.evaluations == 6


def test_a_campaign_of_several_workers_is_explained_and_priced(
    example: Callable[[str], str], command: Command, tmp_path: Path
) -> None:
    file = example("campaign")

    values = orjson.loads(command("explain", file, "--json").out)["values"]
    planned = command("plan", file, "--json")

    own = {"parallel": True, "max_workers": 4, "stagger_seconds": 8.0, "seeds": [42, 43, 44]}
    assert {key: values[f"campaign.{key}"]["value"] for key in own} == own
    assert planned.code == 0, planned.err
    assert orjson.loads(planned.out)["total_runs"] == 9
    assert {path.name for path in tmp_path.iterdir()} == {file}


def test_the_campaign_of_several_workers_runs(
    example: Callable[[str], str], command: Command, tmp_path: Path
) -> None:
    file = example("campaign")

    answer = command("run", file)

    assert answer.code == 0, answer.err
    state = state_of(tmp_path / "runs/campaign/campaign")
    assert state.accounts.evaluations == 9
    campaign = state.plan.campaign
    assert campaign is not None
    assert (campaign.seeds, campaign.max_workers, campaign.stagger_seconds) == ((42, 43, 44), 4, 8)
    assert state.generations[0].seeds == (42, 43, 44)
    status = command("status", "campaign", "--runs-dir", "runs")
    assert status.code == 0
    for name in ("plain", "entropy-mask", "default_base"):
        assert name in status.out
