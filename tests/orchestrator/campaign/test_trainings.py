"""`run FILE` of a campaign of trainings: one run, one ledger, and all that a ledger promises."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from budgets.events import Settled, Status
from budgets.ledger.chain import LEDGER
from objectives import registry
from objectives.api import Context, ObjectiveSpec
from orchestrator.verification.verify import verify
from tests.ledgers import events_of, every, state_of

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

FAILING = CAMPAIGN.replace(
    "[backend]", '[[campaign.conditions]]\nname = "broken"\nfailure_rate = 1.0\n[backend]'
)
"""The same with a condition whose evaluations all fail."""

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


def test_every_condition_is_evaluated_on_every_seed_as_the_objective_has_it(
    run: Run, toy: Path
) -> None:
    answer = run()

    assert answer.code == 0, answer.err
    own: dict[str, dict[str, Any]] = {
        "default_base": {},
        "loud": {"noise": 0.03},
        "wide": {"dimension": 4},
    }
    common = {"dimension": 2, "noise": 0.01}
    assert scores(toy) == {
        (name, seed): measured({**common, **settings}, seed)
        for name, settings in own.items()
        for seed in (3, 5)
    }
    configs = sorted(toy.glob("eval/gen_0000/cand_*/seed_*/config.json"))
    asked = [orjson.loads(path.read_bytes()) for path in configs]
    assert [one["seed"] for one in asked] == 3 * [3, 5]
    assert [one["objective"]["settings"]["noise"] for one in asked] == 2 * [0.03] + 4 * [0.01]
    assert [len(one["knobs"]) for one in asked] == 2 * [2] + 2 * [4] + 2 * [2]


def test_the_same_command_evaluates_nothing_again(run: Run, toy: Path) -> None:
    run()
    before = (toy / LEDGER).read_bytes()

    answer = run()

    assert answer.code == 0
    assert (toy / LEDGER).read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("seeds = [3, 5]", "seeds = [3, 7]", "campaign.seeds"),
        ("seeds = [3, 5]", "seeds = [3, 5, 7]", "seeds_per_candidate: 2 -> 3"),
        ("noise = 0.03", "noise = 0.04", "campaign.conditions"),
        ('name = "loud"', 'name = "louder"', "campaign.conditions"),
        ("dimension = 2", "dimension = 3", "objective.settings.dimension: 2 -> 3"),
        ("[campaign]\n", "[campaign]\ncontrols = false\n", "population: 3 -> 2"),
        ("[campaign]\n", "[campaign]\nstagger_seconds = 1.0\n", "campaign.stagger_seconds"),
        ("[backend]", "[thresholds]\nalive_level = 0.2\n[backend]", "thresholds.alive_level"),
        ("[backend]", "[evaluation]\nseed = 4\n[backend]", "evaluation_seed: 123 -> 4"),
    ],
)
def test_a_file_that_says_something_else_is_another_plan_and_refused(
    old: str, new: str, named: str, run: Run, toy: Path
) -> None:
    run()
    before = (toy / LEDGER).read_bytes()

    answer = run(CAMPAIGN.replace(old, new, 1))

    assert answer.code == 2
    assert "holds another plan" in answer.err
    assert named in answer.err
    assert answer.err.count("\n") == 1
    assert (toy / LEDGER).read_bytes() == before


def test_a_condition_that_fails_is_a_finding_and_pauses_nothing(run: Run, toy: Path) -> None:
    answer = run(FAILING)

    assert answer.code == 0, answer.err
    state = state_of(toy)
    assert state.concluded is not None
    assert not state.fired
    results = state.generations[0].results()
    assert [r.status for r in results if r.candidate == 2] == 2 * [Status.ERROR]
    assert [r.status for r in results if r.candidate != 2] == 6 * [Status.OK]
    assert "failure on request" in answer.out


def test_overrides_that_can_apply_to_nothing_are_refused(run: Run, tmp_path: Path) -> None:
    for more in (("--override", "crash_rate", "--reason", "why not"), ("--fork-run",)):
        answer = run(FAILING, *more)
        assert answer.code == 2
        assert more[0] in answer.err
        assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("more", "workers"),
    [("", 2), ("max_workers = 1", 1), ("max_workers = 4", 2), ("parallel = false", 1)],
)
def test_no_more_run_at_once_than_the_campaign_allows(
    more: str, workers: int, run: Run, toy: Path
) -> None:
    answer = run(CAMPAIGN.replace("[campaign]\n", f"[campaign]\n{more}\n"), "--workers", "2")

    assert answer.code == 0, answer.err
    assert [session.workers for session in state_of(toy).opened] == [workers]


def test_its_own_limits_are_in_its_plan(run: Run, toy: Path) -> None:
    text = CAMPAIGN + "[thresholds]\nalive_level = 0.2\n"

    assert run(text).code == 0
    assert run(text).code == 0

    assert state_of(toy).plan.thresholds.alive_level == 0.2


# Budgets


def test_a_campaign_that_a_cap_on_evaluations_does_not_pay_for_does_not_begin(
    run: Run, tmp_path: Path
) -> None:
    answer = run(CAMPAIGN, "--max-evals", "5")

    assert answer.code == 2
    assert "--max-evals 5 does not pay for the campaign's 6 evaluations" in answer.err
    assert not (tmp_path / "runs").exists()


def test_a_cap_on_device_hours_stops_it_and_an_amendment_lets_it_go_on(
    run: Run, toy: Path, command: Command
) -> None:
    limits = (
        "--set",
        "evaluation.limit_seconds=60",
        "--max-device-hours",
        "0.0195833",
        "--set",
        "seconds=0.2",
    )
    stopped = run(CAMPAIGN, *limits)  # 70.5 s: one attempt reserves 70
    assert stopped.code == 4, stopped.err
    assert 0 < state_of(toy).accounts.evaluations < 6
    assert "--max-device-hours" in stopped.out

    raised = ("--max-device-hours", "1", "--reason", "it is worth it")
    assert command("amend", "toy", *raised, "--runs-dir", "runs").code == 0
    answer = run(CAMPAIGN, *limits)

    assert answer.code == 0, answer.err
    assert state_of(toy).accounts.evaluations == 6
    assert verify(toy).divergence is None


def test_a_cap_on_money_counts_too(run: Run, toy: Path) -> None:
    answer = run(CAMPAIGN, "--max-cost", "0.0001", "--set", "budget.price_per_device_hour=1")

    assert answer.code == 4
    assert state_of(toy).accounts.evaluations == 0


def test_a_window_ends_a_campaign(run: Run, toy: Path) -> None:
    limits = (
        "--set",
        "evaluation.limit_seconds=60",
        "--window",
        "61s",
        "--set",
        "budget.safety_margin=0s",
    )
    answer = run(CAMPAIGN, *limits)

    assert answer.code == 4
    assert "--window" in answer.out


def test_an_assumed_time_gives_it_limits_and_a_forecast(run: Run, toy: Path) -> None:
    assert run(CAMPAIGN, "--assume-eval-seconds", "30").code == 0

    plan = state_of(toy).plan
    assert plan.calibration is not None
    assert plan.calibration.assumed_seconds == 30.0
    assert plan.limits.wall_seconds == 180.0


def test_a_longer_condition_has_longer_limits(run: Run, toy: Path) -> None:
    """What takes four times the FLOPs is not killed for taking four times as long."""
    text = """
objective = "nanochat"
runs_dir = "runs"
[campaign]
name = "toy"
[factors]
target_flops = [2e8, 4e8]
[training]
target_flops = 2e8
n_embd = 16
sequence_len = 32
val_windows = 8
[backend]
executor = "inline"
workers = 1
"""
    answer = run(text, "--set", "campaign.controls=false", "--set", "evaluation.limit_seconds=100")

    assert answer.code == 0, answer.err
    configs = sorted(toy.glob("eval/gen_0000/cand_*/seed_*/config.json"))
    limits = [orjson.loads(path.read_bytes())["limits"]["wall_seconds"] for path in configs]
    assert limits[0] == 100
    assert 150 < limits[1] <= 200  # the evaluation at its end is no longer


# Verification


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    """To do harm to."""
    (made / "reports").mkdir(exist_ok=True)
    return Path(shutil.copytree(made, tmp_path / "campaign" / made.name))


Line = dict[str, Any]


def plan_in(lines: list[Line]) -> dict[str, Any]:
    plan: dict[str, Any] = lines[0]["event"]["plan"]
    return plan


def test_an_untouched_campaign_holds(made: Path) -> None:
    before = {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}

    found = verify(made)

    assert found.divergence is None
    assert "conditions: 3 have the knobs that their settings give" in found.held
    assert "evaluation seeds: 1 generations use the plan's" in found.held
    assert "settlements: 6 attempts' own files agree" in found.held
    assert {path: path.read_bytes() for path in made.rglob("*") if path.is_file()} == before


def test_a_forged_score_is_found(copy: Path, tamper: Tamper) -> None:
    def forge(lines: list[Line]) -> None:
        next(line for line in lines if line["event"]["kind"] == "settled")["event"]["score"] = 0.5

    tamper(copy, forge)

    assert "score 0.5" in str(verify(copy).divergence)
    assert "cand_0000/seed_1/summary.json" in str(verify(copy).divergence)


@pytest.mark.parametrize(
    ("forge", "named"),
    [
        (
            lambda plan: plan["campaign"]["conditions"][1]["knobs"].update(x0=0.5),
            "noise0.02 is eval",
        ),
        (lambda plan: plan["campaign"]["conditions"][1]["settings"].update(noise=9), "noise0.02: "),
        (lambda plan: plan["campaign"]["conditions"][0]["settings"].update(nose=1), "noise0.01: "),
        (lambda plan: plan["campaign"]["conditions"][1]["settings"].update(noise=0.03), "attempt"),
        (lambda plan: plan["campaign"]["conditions"].reverse(), "attempt"),
        (lambda plan: plan["objective"]["settings"].update(noise=0.05), "attempt"),
        (
            lambda plan: plan["campaign"].update(seeds=[1, 3]),
            "seeds (1, 2), the campaign has (1, 3)",
        ),
        (
            lambda plan: plan["campaign"]["conditions"].pop() and None,
            "is not the shape of the plan's campaign",
        ),
        (lambda plan: plan["campaign"]["conditions"][0].update(name="default_base"), "got twice"),
    ],
    ids=["knobs", "range", "unknown", "setting", "order", "objective", "seeds", "number", "name"],
)
def test_a_forged_condition_is_found(
    forge: Callable[[dict[str, Any]], Any], named: str, copy: Path, tamper: Tamper
) -> None:
    tamper(copy, lambda lines: forge(plan_in(lines)))

    assert named in str(verify(copy).divergence)


def test_a_forged_seed_or_point_is_found(copy: Path, tamper: Tamper) -> None:
    def forge(lines: list[Line]) -> None:
        asked = next(line for line in lines if line["event"]["kind"] == "generation_asked")
        asked["event"]["points"][1] = [0.25, 0.25]

    tamper(copy, forge)

    assert "another point than the space's baseline" in str(verify(copy).divergence)


def test_verify_says_so_on_the_command_line(copy: Path, tamper: Tamper, command: Command) -> None:
    assert command("verify", str(copy)).code == 0
    tamper(copy, lambda lines: plan_in(lines)["campaign"]["conditions"][1]["knobs"].update(x0=0.1))

    answer = command("verify", str(copy))

    assert answer.code == 6
    assert "FAIL" in answer.out


# Other commands


def test_status_report_and_export_know_a_campaign(run: Run, toy: Path, command: Command) -> None:
    run()
    runs = ("--runs-dir", "runs")

    status = command("status", "toy", *runs)
    report = command("report", "toy", *runs)
    rows = orjson.loads(command("ledger", "export", "toy", "--format", "json", *runs).out)

    assert status.code == report.code == 0
    for name in ("loud", "wide", "default_base"):
        assert name in status.out
        assert name in report.out
    assert len(rows) == 6
    assert [row["arm"] for row in rows] == ["loud", "loud", "wide", "wide"] + 2 * ["default_base"]
    assert [row["score"] for row in rows] == list(scores(toy).values())
    assert [row.get("knob.x3") for row in rows] == [None, None, 0.0, 0.0, None, None]
    text = command("ledger", "export", "toy", "--format", "csv", *runs).out
    assert len(text.splitlines()) == 7


def test_every_file_but_the_ledger_can_be_made_again(run: Run, toy: Path, command: Command) -> None:
    run()
    made = {
        p: p.read_bytes()
        for p in toy.iterdir()
        if p.is_file() and p.suffix in (".json", ".csv", ".md", ".jsonl")
    }
    made.pop(toy / "head.json")
    for path in made:
        if path.name != LEDGER:
            path.unlink()

    assert command("report", "toy", "--rebuild", "--runs-dir", "runs").code == 0

    again = {path: path.read_bytes() for path in made}
    assert {p.name for p in made if made[p] != again[p]} <= {
        "manifest.json"
    }  # which named its file


def test_a_check_and_a_search_of_the_same_name_do_not_meet(run: Run, tmp_path: Path) -> None:
    run()

    assert (tmp_path / "runs/campaign/toy").is_dir()
    assert not (tmp_path / "runs/phase1").exists()


def test_a_campaign_of_searches_and_one_of_trainings_do_not_share_a_directory(
    run: Run, toy: Path
) -> None:
    searches = CAMPAIGN.replace("[campaign]\n", '[campaign]\ncell = "search"\n')
    small = (
        "--tier",
        "min",
        "--assume-eval-seconds",
        "1",
        "--set",
        "search.population=4",
        "--max-evals",
        "64",
    )
    assert run(searches, *small).code == 0
    manifest = (toy / "manifest.json").read_bytes()

    answer = run(CAMPAIGN)

    assert answer.code == 2
    assert "is a campaign of searches: give this one another name in [campaign]" in answer.err
    assert (toy / "manifest.json").read_bytes() == manifest
    assert not (toy / LEDGER).exists()


def test_what_was_settled_is_never_settled_again(run: Run, toy: Path) -> None:
    run()
    events = events_of(toy)
    ends = [(e.candidate, e.seed) for e in events if isinstance(e, Settled)]

    assert len(ends) == len(set(ends)) == 6


# What an evaluation says of more than its score


def test_one_that_finds_nothing_to_evaluate_holds_the_campaign_up_until_it_is_mended(
    run: Run, toy: Path, lack: Callable[..., Any], tmp_path: Path
) -> None:
    lack("cand_0001/seed_3")

    held_up = run()
    assert held_up.code == 3
    assert "setup_failed" in {fired.rule for fired in state_of(toy).fired}
    lost = [e for e in every(Settled, toy) if e.status is Status.LOST]
    assert [(e.candidate, e.seed, e.cause) for e in lost] == [
        (1, 3, "SetupError: the text is gone: put it back")
    ]
    assert run().code == 0

    whole = scores(toy)
    shutil.rmtree(tmp_path / "runs")
    run()
    assert whole == scores(toy)
    assert None not in whole.values()
