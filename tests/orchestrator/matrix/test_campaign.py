"""Campaigns as people write them, and `run FILE`: one ledger with all that it promises."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from orchestrator.config import Config, resolve
from orchestrator.matrix.campaign import SAFE_NAME, Staggered, campaign_from, factors_of
from orchestrator.verify import verify
from tests.ledgers import state_of
from tests.orchestrator.conftest import forge

Command = Callable[..., Any]

CAMPAIGN = """
objective = "sphere"
runs_dir = "runs"
training.dimension = 2
campaign = { name = "toy", seeds = [3, 5] }
backend = { executor = "inline", workers = 2 }
factors.noise = [0.01, 0.03]
"""


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
    ("more", "workers"), [("controls=true", 2), ("max_workers=1", 1), ("parallel=false", 1)]
)
def test_no_more_run_at_once_than_the_campaign_allows(
    more: str, workers: int, run: Run, toy: Path
) -> None:
    answer = run(CAMPAIGN, "--set", f"campaign.{more}")
    assert answer.code == 0, answer.err
    assert [session.workers for session in state_of(toy).opened] == [workers]


def test_a_campaign_leaves_a_manifest_of_all_its_runs(run: Run, toy: Path) -> None:
    run()
    found = orjson.loads((toy / "manifest.json").read_bytes())
    assert (found["name"], found["total_runs"]) == ("toy", 6)
    assert [one["control"] for one in found["runs"]].count(True) == 2
    assert all((toy / one["directory"]).is_dir() for one in found["runs"])


# Budgets


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


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda own: own["conditions"][1]["settings"].update(noise=9), "configurations"),
        (lambda own: own["conditions"].reverse(), "configurations"),
        (lambda own: own.update(seeds=[1, 3]), "seeds"),
    ],
    ids=["setting", "order", "seeds"],
)
def test_a_forged_campaign_is_found(
    change: Callable[..., object], named: str, run: Run, toy: Path
) -> None:
    run()
    forge(toy, lambda plan: change(plan["campaign"]))
    assert named in str(verify(toy).divergence)


Describe = Callable[..., Config]

SPHERE = 'objective = "sphere"\n[training]\ndimension = 2\n'


@pytest.fixture
def describe(tmp_path: Path) -> Describe:
    """`describe(text)`: what a file of that text, about a sphere, comes to."""

    def of(text: str) -> Config:
        (tmp_path / "c.toml").write_text(f"{SPHERE}{text}", encoding="utf-8")
        return resolve(tmp_path / "c.toml")

    return of


def entry(name: str, *settings: str) -> str:
    return "\n".join(["[[campaign.conditions]]", f'name = "{name}"', *settings, ""])


# Factorials


@pytest.mark.parametrize(
    ("value", "name"),
    [
        *((True, "true"), (3, "3"), (0.0, "0"), (1e-5, "1e-05"), (3e10, "3e10")),
        *((0.1234567, "0.1234567"), ("a+b", "a+b")),
    ],
)
def test_a_level_is_called_after_its_value(value: Any, name: str) -> None:
    factors = factors_of({"x": [value]})
    assert factors == {"x": {name: {"x": value}}}
    assert SAFE_NAME.fullmatch(f"x{name}")


# Together


def test_conditions_come_first_then_the_factorial_then_the_controls(describe: Describe) -> None:
    factors = "[factors]\nnoise = [0.01, 0.02]\n[campaign]\nseeds = [5, 7]\n"
    campaign = campaign_from(describe(factors + entry("own", "available = 0.2")))
    names = ["own", "noise0.01", "noise0.02", "default_base"]
    assert [cell.name for cell in campaign.conditions] == names
    assert [cell.control for cell in campaign.conditions] == [False, False, False, True]
    assert campaign.conditions[0].settings == {"available": 0.2}
    assert [run for *_, run in campaign.runs][:3] == ["own_s5", "own_s7", "noise0.01_s5"]


@pytest.mark.parametrize(
    "text",
    ["[factors]\nnoise = [0.0, 0.01]\n", "[factors.hard]\nno = {}\nyes = { noise = 0.01 }\n"],
)
def test_a_cell_that_is_the_configuration_itself_is_the_control(
    text: str, describe: Describe
) -> None:
    assert [(bool(c.levels), c.control) for c in campaign_from(describe(text)).conditions] == [
        (True, True),
        (True, False),
    ]


# What is refused


HOSTILE = ["", "..", "a/b", "a b", "a\\nb", "caf\\u00e9", "-x"]


@pytest.mark.parametrize(
    "text",
    [
        *(entry(name, "noise = 0.01") for name in [*HOSTILE, "x" * 101, "$(ls)"]),
        '[factors]\nnoise = ["../x"]',
        '[factors.hard]\n"a/b" = { noise = 0.01 }',
    ],
)
def test_a_condition_that_no_file_can_be_called_after_is_refused(
    text: str, describe: Describe
) -> None:
    with pytest.raises(ValueError, match=r"^condition '"):
        campaign_from(describe(text))


@pytest.mark.parametrize(
    "text",
    [
        entry("a") + entry("A"),
        entry("noise0.01", "available = 0.1") + "[factors]\nnoise=[0.01]",
        "[factors.a]\n1_b2 = {noise=0.1}\n1={noise=0.02}\n[factors.b]\n2_b2={noise=0.05}\n2={}\n",
    ],
)
def test_names_that_a_file_system_takes_for_one_are_refused(text: str, describe: Describe) -> None:
    with pytest.raises(ValueError, match="cannot be told apart"):
        campaign_from(describe(text))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[factors]\nnoise = 3\n", "factors.noise: expected a list"),
        ("[factors]\nnoise = [[0.1]]\n", "condition 'noise.0.1.': expected a name"),
        ("[factors]\nnosie = [0.1]\n", "condition nosie0.1: .*'nosie'"),
        ("[[campaign.conditions]]\nnoise = 0.1\n", "condition '': expected a name"),
        (entry("a", "noise = 0.1") + entry("b", "noise = 0.1"), "a and b are the same"),
        (entry("a", "budget.max_evals = 3"), "condition a: .*budget.max_evals"),
        (entry("a", 'objective = "cliff"'), "'objective'"),
    ],
)
def test_what_makes_no_campaign_is_refused_by_name(
    text: str, named: str, describe: Describe
) -> None:
    with pytest.raises(ValueError, match=named):
        campaign_from(describe(text))


# What they take


def test_one_more_is_admitted_every_so_many_seconds() -> None:
    now = 100.0
    pace = Staggered(8.0, lambda: now)

    def admits(in_flight: int) -> bool:
        holds = dict.fromkeys(range(in_flight))
        state: Any = SimpleNamespace(accounts=SimpleNamespace(holds=holds))
        return pace.admits(state)

    assert (admits(0), admits(1)) == (True, False)
    now += 7.9
    assert not admits(1)
    now += 0.1
    assert (admits(1), admits(2)) == (True, False)
