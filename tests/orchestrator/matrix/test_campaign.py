"""`run FILE` of a campaign: one run, one ledger, and all that a ledger promises."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from orchestrator.verify import verify
from tests.ledgers import state_of

Command = Callable[..., Any]
Tamper = Callable[[Path, Callable[[list[dict[str, Any]]], Any]], None]

CAMPAIGN = """
objective = "sphere"
runs_dir = "runs"
[training]
dimension = 2
noise = 0.01
[campaign]
name = "toy"
seeds = [3, 5]
[[campaign.conditions]]
name = "loud"
training.noise = 0.03
[[campaign.conditions]]
name = "wide"
training.dimension = 4
[backend]
executor = "inline"
workers = 1
"""
"""Two conditions and the control on two seeds."""


Run = Callable[..., Any]


@pytest.fixture
def run(command: Command, tmp_path: Path) -> Run:
    """`run(text, "--seed", ...)`: `orchestrator run` of a file of that text."""

    def run_file(text: str = CAMPAIGN, *arguments: str) -> Any:
        (tmp_path / "c.toml").write_text(text)
        return command("run", "c.toml", *arguments)

    return run_file


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """Where the campaign lies."""
    return tmp_path / "runs/campaign/toy"


@pytest.mark.parametrize(
    ("more", "workers"),
    [("", 2), ("max_workers = 1", 1), ("parallel = false", 1)],
)
def test_no_more_run_at_once_than_the_campaign_allows(
    more: str, workers: int, run: Run, toy: Path
) -> None:
    answer = run(CAMPAIGN.replace("[campaign]\n", f"[campaign]\n{more}\n"), "--workers", "2")
    assert answer.code == 0, answer.err
    assert [session.workers for session in state_of(toy).opened] == [workers]


# Budgets


def test_a_campaign_that_a_cap_on_evaluations_does_not_pay_for_does_not_begin(
    run: Run, tmp_path: Path
) -> None:
    assert run(CAMPAIGN, "--max-evals", "5").code == 2
    assert not (tmp_path / "runs").exists()


def test_a_longer_condition_has_longer_limits(run: Run, toy: Path) -> None:
    """What takes twice the FLOPs is not killed for taking twice as long."""
    text = """
objective = "nanochat"
runs_dir = "runs"
campaign = { name = "toy", controls = false }
factors.target_flops = [2e8, 4e8]
training = { target_flops = 2e8, n_embd = 16, sequence_len = 32, val_windows = 8 }
backend = { executor = "inline", workers = 1 }
"""
    answer = run(text, "--set", "evaluation.limit_seconds=100")
    assert answer.code == 0, answer.err
    configs = sorted(toy.glob("eval/gen_0000/cand_*/seed_*/config.json"))
    limits = [orjson.loads(path.read_bytes())["limits"]["wall_seconds"] for path in configs]
    assert limits[0] == 100
    assert 150 < limits[1] < 210  # the evaluation at its end is no longer


# What it would take


@pytest.mark.parametrize(("cap", "verdict"), [(0.035, "fail"), (0.045, "pass")])
def test_a_stated_time_is_scaled_to_each_condition_and_the_longest_must_find_its_limit_free(
    cap: float, verdict: str, command: Command, tmp_path: Path
) -> None:
    """Expected 43 s; reserved are 30 s for the short and 20 * 4.6 + 10 = 103 s."""
    (tmp_path / "file.toml").write_text(f"""
objective = "nanochat"
training = {{ n_layer = 2, n_embd = 32, sequence_len = 64, target_flops = 3e9 }}
factors.target_flops = [3e9, 2.4e10]
campaign = {{ seeds = [1, 2], controls = false }}
evaluation = {{ limit_seconds = 20.0, assume_eval_seconds = 5.0 }}
budget.max_device_hours = {cap}
backend.workers = 2
""")
    answer = command("plan", "file.toml", "--json")
    assert answer.code == 0, answer.err
    found = orjson.loads(answer.out)
    short, long = found["conditions"]
    assert short["cost_factor"] == 1.0
    assert long["cost_factor"] == pytest.approx(4.64, abs=0.02)  # 8 x the training, scored once
    # on two devices, after 10 s of start-up: the long one beside 5 + 5 + 23.2 s
    assert found["forecast"]["hours_p50"] == pytest.approx((10 + 5 + 5 + 23.2) / 3600, rel=0.01)
    (fits,) = (one for one in found["checklist"] if "under the caps" in one["question"])
    assert fits["verdict"] == verdict, fits


# Verification

Line = dict[str, Any]


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    """To do harm to."""
    return Path(shutil.copytree(made, tmp_path / "campaign" / made.name))


def forged_plan(change: Callable[[dict[str, Any]], Any]) -> Callable[[list[Line]], None]:
    return lambda lines: change(lines[0]["event"]["plan"]["campaign"])


@pytest.mark.parametrize(
    ("forge", "named"),
    [
        (forged_plan(lambda plan: plan["conditions"][1]["settings"].update(noise=9)), "attempt"),
        (forged_plan(lambda plan: plan["conditions"].reverse()), "attempt"),
        (forged_plan(lambda plan: plan.update(seeds=[1, 3])), "seeds"),
    ],
    ids=["setting", "order", "seeds"],
)
def test_a_forged_campaign_is_found(
    forge: Callable[[list[Line]], Any], named: str, copy: Path, tamper: Tamper
) -> None:
    tamper(copy, forge)
    assert named in str(verify(copy).divergence)
