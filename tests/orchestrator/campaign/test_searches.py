"""`run FILE` of a campaign of searches: each cell a run of its own, with its share of the caps."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from budgets.ledger.chain import LEDGER
from orchestrator.campaign.searches import search_cells
from orchestrator.config import Config, Layers, resolve
from orchestrator.planning.configured import request_of
from orchestrator.verification.verify import verify
from tests.ledgers import state_of

Command = Callable[..., Any]


CAMPAIGN = """
objective = "sphere"
runs_dir = "runs"
[training]
dimension = 2
[search]
tier = "min"
population = 4
[evaluation]
assume_eval_seconds = 1.0
[campaign]
cell = "search"
name = "race"
seeds = [1, 2]
[[campaign.conditions]]
name = "Plain"
search.method = "plain"
[[campaign.conditions]]
name = "noisy"
training.noise = 0.01
[backend]
executor = "inline"
workers = 1
"""
"""Two conditions and the control, each a search of 16 evaluations on two seeds."""

RUNS = ["race.plain_s1", "race.plain_s2", "race.noisy_s1", "race.noisy_s2"]
RUNS += ["race.default_base_s1", "race.default_base_s2"]

TWO = CAMPAIGN.replace("seeds = [1, 2]", "seeds = [1]\ncontrols = false")

FAILING = TWO.replace("training.noise = 0.01", "training.failure_rate = 0.25").replace(
    "population = 4", "population = 8"
)
"""The second of two searches fails so often that a rule pauses it."""


LIMITS = (
    *("--set", "evaluation.limit_seconds=60", "--max-device-hours", "0.0418"),
    *("--assume-eval-seconds", "0.1"),
)
"""Of 75.2 s for each of two: an attempt reserves 70, and a busy machine takes its time."""


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_text(text: str = CAMPAIGN) -> Path:
        file = tmp_path / "c.toml"
        file.write_text(text)
        return file

    return write_text


@pytest.fixture
def cells(write: Callable[..., Path]) -> Callable[..., Any]:
    """`cells(text, "a.b=c")`: the searches that such a file describes."""
    return lambda text=CAMPAIGN, *sets: search_cells(resolve(Layers(write(text), assignments=sets)))


@pytest.fixture
def run(command: Command, write: Callable[..., Path]) -> Command:
    def run_file(text: str = CAMPAIGN, *arguments: str) -> Any:
        write(text)
        return command("run", "c.toml", *arguments)

    return run_file


def ledgers(root: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in root.glob(f"phase1/*/{LEDGER}")}


# What the searches are


def test_each_cell_is_a_search_of_its_own_name_and_seed(cells: Callable[..., Any]) -> None:
    made = cells()

    assert [cell.run_id for cell in made] == RUNS
    assert [cell.seed for cell in made] == 3 * [1, 2]
    assert [cell.control for cell in made] == 4 * [False] + 2 * [True]
    requests = [request_of(cell.resolved) for cell in made]
    assert [r.run_id for r in requests] == RUNS
    assert [r.search_seed for r in requests] == 3 * [1, 2]
    assert [r.method for r in requests] == 2 * ["plain"] + 4 * [None]
    noise = [r.objective.spec.settings["noise"] for r in requests]
    assert noise == [0.0, 0.0, 0.01, 0.01, 0.0, 0.0]
    assert {r.phase for r in requests} == {"phase1"}


@pytest.mark.parametrize(
    ("key", "cap", "share"),
    [
        ("max_evals", "96", 16),
        ("max_evals", "100", 16),
        ("max_device_hours", "6.0", 1.0),
        ("max_hours", "3.0", 0.5),
        ("max_cost", "12.0", 2.0),
    ],
)
def test_caps_are_shared_out_equally(
    key: str, cap: str, share: float, cells: Callable[..., Any]
) -> None:
    made = cells(CAMPAIGN, f"budget.{key}={cap}", "budget.price_per_device_hour=2.0")

    assert {getattr(cell.resolved.budget, key) for cell in made} == {share}
    others = {"max_evals", "max_device_hours", "max_hours", "max_cost"} - {key}
    for cell in made:
        assert all(getattr(cell.resolved.budget, other) is None for other in others)
        assert cell.resolved.budget.price_per_device_hour == 2.0


@pytest.mark.parametrize("window", ["12h", "90m", "2d", " 7200s "])
def test_a_window_of_hours_is_refused(window: str, run: Command, tmp_path: Path) -> None:
    """It would begin anew with each search."""
    answer = run(CAMPAIGN, "--window", window)

    assert answer.code == 2
    assert "expected a moment such as 2026-11-27T18:00 for a campaign of searches" in answer.err
    assert not (tmp_path / "runs").exists()


def test_a_window_that_is_a_moment_is_every_searchs_own(cells: Callable[..., Any]) -> None:
    made = cells(CAMPAIGN, "budget.window=2126-11-27T18:00")

    windows = {request_of(cell.resolved).window for cell in made}
    assert len(windows) == 1
    assert None not in windows


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("[search]\n", "[budget]\nmax_evals = 5\n[search]\n", "max_evals: 5 cannot be shared by 6"),
        (
            "[search]\n",
            "[budget]\nmax_evals = 12\n[search]\n",
            "condition Plain: --max-evals 2 does",
        ),
        (
            "population = 4",
            "population = 5",
            "condition Plain: search.population must be even",
        ),
        (
            "search.method",
            "search.population = 7 #",
            "condition Plain: search.population must be even",
        ),
        ('tier = "min"\n', "", "--tier, or tier in [search]: say how much each search may spend"),
        ("search.method", "search.seed", "condition Plain: search.seed is the same for all cells"),
        ("search.method", "search.run_id", "condition Plain: search.run_id is the same for all"),
        (
            "search.method",
            "search.phase",
            "condition Plain: search.phase is the same for all cells",
        ),
        ("search.method", "budget.window", "condition Plain: budget.window is the same for all"),
        ("search.method", "backend.device", "condition Plain: backend.device is the same for all"),
        ('"plain"', '"fast"', "condition Plain: search.method: Input should be 'guided', "),
        ("noise = 0.01", "noise = 9.0", "condition noisy: sphere settings: noise: Input should be"),
        ("noise = 0.01", "nose = 0.1", "condition noisy: unknown sphere setting 'nose'"),
        ('name = "race"', 'name = "Race"', "[campaign] name: expected 1 to 64 of a-z"),
        ('name = "Plain"', f'name = "{"x" * 60}"', "its run's name: expected 1 to 64 of a-z"),
        ("seeds = [1, 2]", "seeds = [1, 1]", "campaign.seeds: expected each seed once"),
    ],
)
def test_a_search_that_cannot_be_is_named_before_any_begins(
    old: str, new: str, named: str, run: Command, tmp_path: Path
) -> None:
    answer = run(CAMPAIGN.replace(old, new, 1))

    assert answer.code == 2
    assert named in answer.err
    assert answer.err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_levels_that_no_run_may_be_called_after_are_spelt_otherwise(
    cells: Callable[..., Any],
) -> None:
    own = '[factors.space]\n"1+2" = {noise = 0.02}\n[campaign]'
    text = CAMPAIGN.replace("[campaign]", own)

    names = {cell.run_id for cell in cells(text, "campaign.conditions=[]")}
    assert names >= {"race.space1-2_s1", "race.space1-2_s2"}

    twins = text.replace('"1+2" =', '1-2 = {noise = 0.03}\n"1+2" =')
    with pytest.raises(ValueError, match=r"two searches would be called 'race\.space1-2_s1'"):
        cells(twins, "campaign.conditions=[]")


# Carrying it out


def test_every_search_is_made_and_made_once(run: Command, tmp_path: Path) -> None:
    answer = run()

    assert answer.code == 0, answer.err
    made = ledgers(tmp_path / "runs")
    assert sorted(made) == sorted(RUNS)
    for name in RUNS:
        directory = tmp_path / "runs/phase1" / name
        state = state_of(directory)
        assert state.concluded is not None
        assert state.accounts.evaluations == 16
        assert state.plan.search is not None
        assert state.plan.search.seed == int(name[-1])
        assert verify(directory).divergence is None
    assert "Search 6 of 6: race.default_base_s2." in answer.out

    again = run()

    assert again.code == 0
    assert ledgers(tmp_path / "runs") == made


def test_a_search_of_a_campaign_is_the_one_that_flags_would_have_made(
    run: Command, command: Command, tmp_path: Path
) -> None:
    """It can be looked at, amended and taken up by itself."""
    run(TWO)
    before = ledgers(tmp_path / "runs")

    sphere = ("--objective", "sphere", "--set", "dimension=2", "--set", "noise=0.01")
    how = (
        "--executor",
        "inline",
        "--workers",
        "1",
        "--runs-dir",
        "runs",
        "--set",
        "search.population=4",
    )
    own = (
        "--tier",
        "min",
        "--run-id",
        "race.noisy_s1",
        "--seed",
        "1",
        "--assume-eval-seconds",
        "1",
    )
    answer = command("phase1", *sphere, *how, *own)

    assert answer.code == 0, answer.err
    assert ledgers(tmp_path / "runs") == before
    assert command("status", "race.plain_s1", "--runs-dir", "runs").code == 0


def test_after_one_is_finished_the_others_are_made(
    run: Command, command: Command, tmp_path: Path
) -> None:
    run(TWO)
    whole = ledgers(tmp_path / "runs")
    second = tmp_path / "runs/phase1/race.noisy_s1"
    for path in sorted(second.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    second.rmdir()

    answer = run(TWO)

    assert answer.code == 0, answer.err
    again = ledgers(tmp_path / "runs")
    assert again["race.plain_s1"] == whole["race.plain_s1"]
    assert state_of(second).accounts.evaluations == 16


def test_one_that_is_paused_does_not_stop_the_others_and_the_exit_code_says_so(
    run: Command, tmp_path: Path
) -> None:
    text = FAILING.replace("seeds = [1]", "seeds = [1, 2]")
    text = text.replace('name = "Plain"\nsearch.method = "plain"', 'name = "Plain"', 1)

    answer = run(text)

    assert answer.code == 3, answer.err
    ended = {name: state_of(tmp_path / "runs/phase1" / name) for name in ledgers(tmp_path / "runs")}
    paused = {name for name, state in ended.items() if state.concluded is None}
    assert paused == {"race.noisy_s1", "race.noisy_s2"}
    assert {name for name in ended if name not in paused} == {"race.plain_s1", "race.plain_s2"}
    assert "--override" in answer.out


def test_an_override_reaches_the_searches_that_the_rule_holds_up_and_no_other(
    run: Command, tmp_path: Path
) -> None:
    assert run(FAILING).code == 3
    plain = (tmp_path / "runs/phase1/race.plain_s1" / LEDGER).read_bytes()
    why = ("--override", "crash_rate", "--reason")

    answers = [run(FAILING, *why, "it is asked to fail"), run(FAILING, *why, "and once more")]

    assert answers[-1].code == 0, answers[-1].err
    noisy = state_of(tmp_path / "runs/phase1/race.noisy_s1")
    assert noisy.concluded is not None
    assert [(o.generation, o.reason) for o in noisy.overridden] == [
        (0, "it is asked to fail"),
        (1, "and once more"),
    ]
    assert (tmp_path / "runs/phase1/race.plain_s1" / LEDGER).read_bytes() == plain


def test_an_override_that_holds_up_no_search_is_refused(run: Command, tmp_path: Path) -> None:
    run(TWO)
    before = ledgers(tmp_path / "runs")

    answer = run(TWO, "--override", "crash_rate", "--reason", "why not")

    assert answer.code == 2
    assert "--override crash_rate: that rule holds up no search of these" in answer.err
    assert ledgers(tmp_path / "runs") == before


UNMEASURED = TWO.replace("assume_eval_seconds = 1.0\n", "")


def test_each_objective_is_calibrated_once(run: Command, tmp_path: Path) -> None:
    answer = run(UNMEASURED.replace("seeds = [1]", "seeds = [1, 2]"))

    assert answer.code == 0, answer.err
    assert len(ledgers(tmp_path / "runs")) == 4
    assert len(list(tmp_path.glob(f"runs/calibration/*/{LEDGER}"))) == 2


def test_a_calibration_that_is_paused_stops_no_other_search_and_can_be_overridden(
    run: Command, tmp_path: Path
) -> None:
    text = UNMEASURED.replace("training.noise = 0.01", "training.failure_rate = 0.5")
    paused = run(text)
    assert paused.code == 3, paused.err
    assert set(ledgers(tmp_path / "runs")) == {"race.plain_s1"}

    run(text, "--override", "crash_rate", "--reason", "it is asked to fail")

    assert set(ledgers(tmp_path / "runs")) == {"race.plain_s1", "race.noisy_s1"}


def test_a_budget_that_stops_one_gives_exit_code_4_and_the_others_their_turn(
    run: Command, tmp_path: Path
) -> None:
    text = TWO.replace('search.method = "plain"', "training.seconds = 0.6")

    answer = run(text, *LIMITS)

    assert answer.code == 4, answer.err
    assert 0 < state_of(tmp_path / "runs/phase1/race.plain_s1").accounts.evaluations < 16
    assert state_of(tmp_path / "runs/phase1/race.noisy_s1").concluded is not None


def test_a_paused_one_weighs_more_than_a_stopped_one(run: Command, tmp_path: Path) -> None:
    text = FAILING.replace('search.method = "plain"', "training.seconds = 0.6")

    answer = run(text, *LIMITS)

    assert answer.code == 3


def test_a_changed_condition_is_refused_where_that_search_was_made(
    run: Command, tmp_path: Path
) -> None:
    run(TWO)
    before = ledgers(tmp_path / "runs")

    answer = run(TWO.replace("noise = 0.01", "noise = 0.02"))

    assert answer.code == 2
    assert "race.noisy_s1 holds another plan" in answer.err
    assert "objective.settings.noise: 0.01 -> 0.02" in answer.err
    assert ledgers(tmp_path / "runs") == before


def test_other_seeds_are_other_searches(run: Command, tmp_path: Path) -> None:
    run(TWO)

    answer = run(TWO.replace("seeds = [1]", "seeds = [2]"))

    assert answer.code == 0
    assert len(ledgers(tmp_path / "runs")) == 4


def test_it_answers_in_json(run: Command) -> None:
    answer = run(TWO, "--json")

    document = orjson.loads(answer.out)
    assert [one["decision"] for one in document["runs"]] == ["done", "done"]
    assert document["runs"][0]["directory"].endswith("phase1/race.plain_s1")


def test_explain_lists_every_search_and_touches_nothing(
    write: Callable[..., Path], command: Command, tmp_path: Path
) -> None:
    write()

    document = orjson.loads(command("explain", "c.toml", "--json").out)["campaign"]
    text = command("explain", "c.toml").out

    assert document["total_runs"] == 6
    assert document["runs"] == [
        *("Plain_s1", "Plain_s2", "noisy_s1", "noisy_s2", "default_base_s1", "default_base_s2")
    ]
    assert "3 conditions (1 of them controls) on 2 seeds = 6 searches." in text
    assert {path.name for path in tmp_path.iterdir()} == {"c.toml"}


def test_a_file_that_may_not_be_explained_may_not_be_run(cells: Callable[..., Any]) -> None:
    """What a cell resolves to has its own layer, and it is named."""
    resolved: Config = cells()[0].resolved

    assert resolved.source("search.method") == "condition Plain"
    assert resolved.source("search.tier").startswith("file ")
    assert resolved.source("search.run_id") == "condition Plain"
