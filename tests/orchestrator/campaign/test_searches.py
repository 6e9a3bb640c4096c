"""`run FILE` of a campaign of searches: each cell a run of its own, with its share of the caps."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from budgets.ledger import LEDGER
from orchestrator.campaign.searches import search_cells
from orchestrator.config import Layers, resolve
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

RUNS = [f"race.{name}_s{seed}" for name in ("plain", "noisy", "default_base") for seed in (1, 2)]

TWO = CAMPAIGN.replace("seeds = [1, 2]", "seeds = [1]\ncontrols = false")
UNMEASURED = TWO.replace("assume_eval_seconds = 1.0\n", "")
FAILING = TWO.replace("training.noise = 0.01", "training.failure_rate = 0.25").replace(
    "population = 4", "population = 8"
)
"""The second of two searches fails so often that a rule pauses it."""

WHY = ("--override", "crash_rate", "--reason")
SLOW = ('search.method = "plain"', "training.seconds = 0.6")
LIMITS = (
    *("--set", "evaluation.limit_seconds=60", "--max-device-hours", "0.0418"),
    *("--assume-eval-seconds", "0.1"),
)
"""Of 75.2 s for each of two: an attempt reserves 70, and a busy machine takes its time."""


@pytest.fixture
def cells(tmp_path: Path) -> Callable[..., Any]:
    """`cells(text, "a.b=c")`: the searches that such a file describes."""

    def described(text: str = CAMPAIGN, *sets: str) -> Any:
        (tmp_path / "c.toml").write_text(text)
        return search_cells(resolve(Layers(tmp_path / "c.toml", assignments=sets)))

    return described


@pytest.fixture
def run(command: Command, tmp_path: Path) -> Command:
    def run_file(text: str = CAMPAIGN, *arguments: str) -> Any:
        (tmp_path / "c.toml").write_text(text)
        return command("run", "c.toml", *arguments)

    return run_file


def ledgers(root: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in root.glob(f"runs/phase1/*/{LEDGER}")}


# What the searches are


def test_each_cell_is_a_search_of_its_own_name_seed_and_settings(
    cells: Callable[..., Any],
) -> None:
    made = cells()
    assert [cell.control for cell in made] == 4 * [False] + 2 * [True]
    searches = [cell.resolved.search for cell in made]
    assert [(s.run_id, s.seed) for s in searches] == list(zip(RUNS, 3 * [1, 2], strict=True))
    assert [s.method for s in searches] == 2 * ["plain"] + 4 * [None]
    noise = [cell.resolved.tuned.spec.settings["noise"] for cell in made]
    assert noise == [0.0, 0.0, 0.01, 0.01, 0.0, 0.0]
    assert made[0].resolved.source("search.method") == "condition Plain"
    assert made[0].resolved.source("search.tier").startswith("file ")


@pytest.mark.parametrize(
    ("key", "cap", "share"),
    [
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
    assert {cell.resolved.budget.price_per_device_hour for cell in made} == {2.0}


def test_a_window_is_a_moment_that_all_share(cells: Callable[..., Any]) -> None:
    made = cells(CAMPAIGN, "budget.window=2126-11-27T18:00")
    assert len({cell.resolved.budget.window for cell in made} - {None}) == 1
    for window in ("12h", "90m", " 7200s "):
        with pytest.raises(ValueError, match="a moment"):
            cells(CAMPAIGN, f"budget.window={window}")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("[search]\n", "[budget]\nmax_evals = 5\n[search]\n", "max_evals: 5"),
        ("[search]\n", "[budget]\nmax_evals = 12\n[search]\n", "condition Plain: --max-evals 2"),
        ("population = 4", "population = 5", "condition Plain: search.population"),
        ('tier = "min"\n', "", "--tier"),
        ("search.method", "search.seed", "condition Plain: search.seed is the same"),
        ("search.method", "budget.window", "condition Plain: budget.window is the same"),
        ('"plain"', '"fast"', "condition Plain: search.method"),
        ("noise = 0.01", "noise = 9.0", "condition noisy: "),
        ('name = "Plain"', f'name = "{"x" * 60}"', "its run's name"),
    ],
)
def test_a_search_that_cannot_be_is_named_before_any_begins(
    old: str, new: str, named: str, run: Command, tmp_path: Path
) -> None:
    answer = run(CAMPAIGN.replace(old, new, 1))
    assert answer.code == 2
    assert named in answer.err
    assert not (tmp_path / "runs").exists()


def test_levels_that_no_run_may_be_called_after_are_spelt_otherwise(
    cells: Callable[..., Any],
) -> None:
    own = '[factors.space]\n"1+2" = {noise = 0.02}\n[campaign]'
    text = CAMPAIGN.replace("[campaign]", own)
    assert "race.space1-2_s1" in {cell.run_id for cell in cells(text, "campaign.conditions=[]")}
    twins = text.replace('"1+2" =', '1-2 = {noise = 0.03}\n"1+2" =')
    with pytest.raises(ValueError, match=r"race\.space1-2_s1"):
        cells(twins, "campaign.conditions=[]")


# Running it


def test_every_search_is_made_once_and_is_one_that_flags_would_have_made(
    run: Command, command: Command, tmp_path: Path
) -> None:
    answer = run(CAMPAIGN, "--json")
    assert answer.code == 0, answer.err
    assert [one["decision"] for one in orjson.loads(answer.out)["runs"]] == 6 * ["done"]
    made = ledgers(tmp_path)
    assert sorted(made) == sorted(RUNS)
    for name in RUNS:
        directory = tmp_path / "runs/phase1" / name
        assert state_of(directory).accounts.evaluations == 16
        assert verify(directory).divergence is None
    assert run().code == 0
    by_flags = (
        *("phase1", "--objective", "sphere", "--set", "dimension=2", "--set", "noise=0.01"),
        *("--executor", "inline", "--workers", "1", "--runs-dir", "runs", "--tier", "min"),
        *("--set", "search.population=4", "--assume-eval-seconds", "1"),
        *("--run-id", "race.noisy_s1", "--seed", "1"),
    )
    assert command(*by_flags).code == 0
    assert ledgers(tmp_path) == made


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (FAILING, (), 3),
        (TWO.replace(*SLOW), LIMITS, 4),
        (FAILING.replace(*SLOW), LIMITS, 3),  # paused weighs more than stopped
    ],
)
def test_one_that_is_paused_or_stopped_keeps_no_other_from_being_made(
    text: str, options: tuple[str, ...], code: int, run: Command, tmp_path: Path
) -> None:
    answer = run(text, *options)
    assert answer.code == code, answer.err
    assert set(ledgers(tmp_path)) == {"race.plain_s1", "race.noisy_s1"}


def test_an_override_reaches_the_searches_that_the_rule_holds_up_and_no_other(
    run: Command, tmp_path: Path
) -> None:
    assert run(FAILING).code == 3
    plain = ledgers(tmp_path)["race.plain_s1"]
    answers = [run(FAILING, *WHY, "it is asked to fail"), run(FAILING, *WHY, "and once more")]
    assert answers[-1].code == 0, answers[-1].err
    noisy = state_of(tmp_path / "runs/phase1/race.noisy_s1")
    assert noisy.concluded is not None
    assert [o.reason for o in noisy.overridden] == ["it is asked to fail", "and once more"]
    assert ledgers(tmp_path)["race.plain_s1"] == plain


def test_an_override_that_holds_up_no_search_is_refused(run: Command, tmp_path: Path) -> None:
    run(TWO)
    before = ledgers(tmp_path)
    answer = run(TWO, *WHY, "why not")
    assert (answer.code, "crash_rate" in answer.err) == (2, True)
    assert ledgers(tmp_path) == before


def test_each_objective_is_calibrated_once(run: Command, tmp_path: Path) -> None:
    assert run(UNMEASURED.replace("seeds = [1]", "seeds = [1, 2]")).code == 0
    assert len(ledgers(tmp_path)) == 4
    assert len(list(tmp_path.glob(f"runs/calibration/*/{LEDGER}"))) == 2


def test_a_calibration_that_is_paused_stops_no_other_search_and_can_be_overridden(
    run: Command, tmp_path: Path
) -> None:
    text = UNMEASURED.replace("training.noise = 0.01", "training.failure_rate = 0.5")
    assert run(text).code == 3
    assert set(ledgers(tmp_path)) == {"race.plain_s1"}
    run(text, *WHY, "it is asked to fail")
    assert set(ledgers(tmp_path)) == {"race.plain_s1", "race.noisy_s1"}


def test_a_changed_condition_is_refused_where_that_search_was_made(
    run: Command, tmp_path: Path
) -> None:
    run(TWO)
    before = ledgers(tmp_path)
    answer = run(TWO.replace("noise = 0.01", "noise = 0.02"))
    assert answer.code == 2
    assert "objective.settings.noise: 0.01 -> 0.02" in answer.err
    assert ledgers(tmp_path) == before
