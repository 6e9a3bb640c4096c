"""A phase 2: what it takes over, and what forbids it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Concluded, Decided
from budgets.ledger import LEDGER, SYSTEM_CLOCK, Ledger
from budgets.verdict import recommendation, stood_for, winner
from objectives import registry
from orchestrator.plan.phase2 import followed
from orchestrator.plan.resolve import SIGMA0
from orchestrator.records.runs import Result
from orchestrator.verify import verify
from tests import ledgers
from tests.asking import config_for
from tests.ledgers import state_of

if TYPE_CHECKING:
    from tests.conftest import Answer, Command

RunSearch = Callable[..., Result]

GOLDEN = Path(__file__).parents[2] / "golden/runs"
SMALL = {"dimension": 3, "noise": 0.01}
SOURCE = "min-sphere-s1"
PHASE_2: dict[str, Any] = {
    "settings": SMALL,
    "assumed_seconds": 1.0,
    "phase": "phase2",
    "follows": SOURCE,
    "variant": "robust",
    "max_evals": 36,
    "run_id": "next",
}


@pytest.fixture(scope="session")
def decided_root(tmp_path_factory: pytest.TempPathFactory, run_search: RunSearch) -> Path:
    """Where a small phase 1 says Go."""
    root = tmp_path_factory.mktemp("decided")
    run = run_search(root, settings=SMALL, assumed_seconds=1.0).directory
    point = recommendation(state_of(run))
    ledgers.cut(run, state_of(run).records - 1)  # its conclusion
    with Ledger(run, SYSTEM_CLOCK) as ledger:
        for _ in ledger.replay():
            pass
        for event in (Decided(grade="go", no_go=None, point=point), Concluded()):
            ledger.append(ledger.seal(event))
    return root


@pytest.fixture
def root(decided_root: Path, tmp_path: Path) -> Path:
    """A copy of it, where the command line finds it."""
    return Path(shutil.copytree(decided_root, tmp_path / "artifacts/cmaes"))


# What is taken over


def test_a_search_begins_where_the_earlier_one_ended(root: Path, run_search: RunSearch) -> None:
    earlier = state_of(root / "phase1" / SOURCE)
    result = run_search(root, **PHASE_2)
    plan = result.state.plan
    assert plan.search is not None
    assert plan.source is not None
    assert plan.search.start == recommendation(earlier)
    assert plan.search.sigma0 == SIGMA0[plan.search.method] / 2
    assert plan.source.run_id == SOURCE
    assert verify(result.directory).divergence is None


def test_after_a_no_go_a_search_begins_at_its_mean_not_at_the_winner(tmp_path: Path) -> None:
    """Where all scores put it: the winner was picked from a few points on a few seeds."""
    shutil.copytree(GOLDEN / "no_go_noise", tmp_path / "phase1/first")
    earlier = state_of(tmp_path / "phase1/first")
    own = registry.load(earlier.plan.objective)
    config = config_for("phase2", "min", own, follows="first", variant="robust")
    source, best = followed(tmp_path, config, "cpu"), winner(earlier)
    assert source is not None
    assert best is not None
    assert source.point == stood_for(earlier) != best.point


# What cannot be started from

EXPANDED = {"follows": SOURCE, "variant": "expanded"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"follows": "nowhere", "variant": "robust"}, "no phase1 run 'nowhere'"),
        ({"follows": "empty", "variant": "robust"}, "no generation"),
        ({"settings": {**SMALL, "noise": 0.02}}, "noise: 0.01 -> 0.02"),
        ({"objective": "ellipsoid"}, "'sphere' -> 'ellipsoid'"),
        (EXPANDED, "and more"),
        ({**EXPANDED, "settings": {**SMALL, "dimension": 4}}, "dimension: 3 -> 4"),
    ],
)
def test_a_run_that_gives_nothing_is_refused_before_anything_is_made(
    root: Path,
    run_search: RunSearch,
    change: dict[str, Any],
    said: str,
) -> None:
    shutil.copytree(root / "phase1" / SOURCE, root / "phase1/empty")
    ledgers.cut(root / "phase1/empty", 4)
    with pytest.raises(ValueError, match=said):
        run_search(root, **{**PHASE_2, **change})
    assert {path.name for path in root.glob("*/*")} == {SOURCE, "empty"}


# More knobs

LAW = """
def law(knobs, seed):
    return 1 + knobs["a"] ** 2 + knobs.get("b", 0) ** 2 + 0.001 * (seed % 7)
"""


def described(*names: str) -> str:
    knobs = (f"knobs.{name} = {{ min = -1.0, max = 1.0, baseline = 0.5 }}\n" for name in names)
    return f'objective = "python:law:law"\n[training]\n{"".join(knobs)}'


def test_new_knobs_begin_at_their_baseline_once_a_check_shows_them_alive(
    command: "Command", tmp_path: Path
) -> None:
    (tmp_path / "law.py").write_text(LAW)
    (tmp_path / "few.toml").write_text(described("a", "z"))
    (tmp_path / "more.toml").write_text(described("a", "z", "b", "idle"))
    local = ("--executor", "inline", "--workers", "1")
    timed = (*local, "--tier", "min", "--assume-eval-seconds", "1")
    assert command("phase1", "few.toml", *timed, "--run-id", "first").code == 0
    follows = ("--from", "first", "--variant", "expanded", "--run-id", "second")
    few = ("--max-evals", "12", "--set", "search.sigma0=0.1")
    again = ("phase2", "more.toml", *timed, *follows, *few)
    expanded = (*again, "--reason", "why")

    refused = command(*expanded, "--override", "go")
    assert refused.code == 2
    assert "check knobs --knobs b,idle`" in refused.err
    assert not (tmp_path / "artifacts/cmaes/phase2").exists()
    assert command("check", "knobs", "more.toml", *local, "--seeds", "3").code == 0
    both = ("--override", "go", "--override", "unproven_knobs")
    done = command(*expanded, *both)
    assert done.code == 0, done.err

    plan = state_of(tmp_path / "artifacts/cmaes/phase2/second").plan
    stood = recommendation(state_of(tmp_path / "artifacts/cmaes/phase1/first"))
    assert plan.source is not None
    assert plan.source.point == (*(stood or ()), 0.75, 0.75)
    assert (plan.source.added, plan.source.unproven) == (("b", "idle"), ("idle",))
    assert plan.resolved.seeds_per_candidate == 1
    assert verify(tmp_path / "artifacts/cmaes/phase2/second").divergence is None
    assert command(*again).code == 0


# Repeated without phase 1

SPHERE = ("--objective", "sphere", "--set", "dimension=3", "--set", "noise=0.01")
FOLLOW = ("--from", SOURCE, "--variant", "robust")


@pytest.mark.parametrize("there", [False, True], ids=["gone", "damaged"])
def test_phase2_is_repeated_when_phase_1_cannot_be_read(
    root: Path, command: "Command", there: bool
) -> None:
    def phase2(*more: str) -> "Answer":
        options = ("--tier", "min", "--max-evals", "36", "--assume-eval-seconds", "1")
        return command("phase2", *FOLLOW, *options, "--executor", "inline", *more)

    assert phase2().code == 0
    if there:
        (root / "phase1" / SOURCE / LEDGER).write_text("{}\n{}\n")
    else:
        shutil.rmtree(root / "phase1" / SOURCE)
    assert phase2().code != 0  # what it tuned is not known
    assert phase2(*SPHERE).code == 0
    assert phase2(*SPHERE, "--run-id", "other").code != 0
    assert [path.name for path in (root / "phase2").iterdir()] == [f"robust-{SOURCE}"]
