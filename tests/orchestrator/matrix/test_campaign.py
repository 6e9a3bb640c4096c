"""`run FILE` of a campaign: one run, one ledger, and all that a ledger promises."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from budgets.ledger import LEDGER
from objectives import registry
from objectives.api import Context, ObjectiveSpec
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


def scores(directory: Path) -> dict[tuple[str, int], float | None]:
    state = state_of(directory)
    assert state.plan.campaign is not None
    names = [condition.name for condition in state.plan.campaign.conditions]
    return {(names[r.candidate], r.seed): r.score for r in state.generations[0].results()}


def measured(settings: dict[str, Any], seed: int) -> float:
    """What the objective itself says of its baseline."""
    objective = registry.load(ObjectiveSpec(name="sphere", settings=settings))
    knobs = objective.space.decode(objective.space.baseline)
    context = Context(Path(), device="cpu", threads=1, heartbeat=lambda metrics: None)
    return objective.evaluate(knobs, seed, context).score


def test_every_condition_is_evaluated_once_on_every_seed_as_the_objective_has_it(
    run: Run, toy: Path, command: Command
) -> None:
    answer = run()
    assert answer.code == 0, answer.err
    common = {"dimension": 2, "noise": 0.01}
    own: dict[str, dict[str, Any]] = {
        "loud": {"noise": 0.03},
        "wide": {"dimension": 4},
        "default_base": {},
    }
    assert scores(toy) == {
        (name, seed): measured({**common, **settings}, seed)
        for name, settings in own.items()
        for seed in (3, 5)
    }
    before = (toy / LEDGER).read_bytes()
    assert run().code == 0
    assert (toy / LEDGER).read_bytes() == before
    exported = command("export", "table", "toy", "--json", "--runs-dir", "runs").out
    rows = orjson.loads(exported)
    assert [row["configuration"] for row in rows] == [name for name in own for _ in range(2)]
    assert [row["score"] for row in rows] == list(scores(toy).values())


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
    assert 150 < limits[1] <= 200  # the evaluation at its end is no longer


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
        (forged_plan(lambda plan: plan["conditions"][1]["knobs"].update(x0=0.5)), "attempt"),
        (forged_plan(lambda plan: plan["conditions"][1]["settings"].update(noise=9)), "attempt"),
        (forged_plan(lambda plan: plan["conditions"].reverse()), "attempt"),
        (forged_plan(lambda plan: plan.update(seeds=[1, 3])), "seeds"),
        (forged_plan(lambda plan: plan["conditions"].__delitem__(-1)), "cannot follow"),
    ],
    ids=["knobs", "setting", "order", "seeds", "number"],
)
def test_a_forged_campaign_is_found(
    forge: Callable[[list[Line]], Any], named: str, copy: Path, tamper: Tamper
) -> None:
    tamper(copy, forge)
    assert named in str(verify(copy).divergence)
