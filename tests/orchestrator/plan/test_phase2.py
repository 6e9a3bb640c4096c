"""A phase 2: what it takes over, and what forbids it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.events import Concluded, Decided, Event, Grade, Status
from budgets.ledger import LEDGER, Ledger
from budgets.plan import Plan, Source
from budgets.state import RunState
from budgets.verdict import recommendation
from objectives import registry
from objectives.api import Measurement, ObjectiveSpec
from orchestrator.execution.api import Attempt, Outcome
from orchestrator.execution.files import locked, write_summary
from orchestrator.execution.inline import InlineExecutor
from orchestrator.plan.phase2 import LEAST_STEP, MOST_STEP, Followed, landscapes
from orchestrator.records.runs import Result
from orchestrator.run.files import PlanChangedError
from orchestrator.run.session import system_clock
from orchestrator.search.landscape import landscape
from orchestrator.verify import verify
from tests import ledgers
from tests.asking import config_for
from tests.ledgers import events_of, state_of
from tests.simulation.session import SimulatedEngine

if TYPE_CHECKING:
    from tests.conftest import Answer, Command

RunSearch = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]

SMALL = {"dimension": 3, "noise": 0.01}
SOURCE = "min-sphere-s1"
COMMON: dict[str, Any] = {"settings": SMALL, "assumed_seconds": 1.0}
PHASE_2: dict[str, Any] = {
    **COMMON,
    "phase": "phase2",
    "follows": SOURCE,
    "variant": "robust",
    "max_evals": 36,
    "run_id": "next",
}
OVERRIDE = (("go", "the deadline is near"),)


def cut(run: Path, records: int) -> None:
    """Leave the run as if its process had died after so many records."""
    ledgers.cut(run, records)
    shutil.rmtree(run / "eval", ignore_errors=True)


def rewrite(run: Path, *events: Event) -> None:
    with Ledger(run, system_clock()) as ledger:
        for _ in ledger.replay():
            pass
        for event in events:
            ledger.append(ledger.seal(event))


def conclude_with(run: Path, *events: Event) -> RunState:
    """Put other last words in the place of what the run came to."""
    ledgers.cut(
        run, next(n for n, e in enumerate(events_of(run)) if isinstance(e, Decided | Concluded))
    )
    rewrite(run, *events)
    return state_of(run)


def decide(run: Path, grade: Grade = "go", **fields: Any) -> RunState:
    point = fields.pop("point", recommendation(state_of(run)))
    decided = Decided(grade=grade, no_go=None, point=point, **fields)
    return conclude_with(run, decided, Concluded())


@pytest.fixture(scope="session")
def decided_root(tmp_path_factory: pytest.TempPathFactory, run_search: RunSearch) -> Path:
    """Where a small phase 1 said Go."""
    root = tmp_path_factory.mktemp("decided")
    decide(run_search(root, **COMMON).directory)
    return root


@pytest.fixture
def root(decided_root: Path, tmp_path: Path) -> Path:
    """A copy of it, where the command line finds it."""
    return Path(shutil.copytree(decided_root, tmp_path / "artifacts/cmaes"))


def plan_of(result: Result) -> Plan:
    assert result.state.plan.search is not None
    return result.state.plan


# What is taken over


def test_a_search_begins_where_the_earlier_one_ended(root: Path, run_search: RunSearch) -> None:
    earlier = state_of(root / "phase1" / SOURCE)
    seen = landscapes(earlier)[-1]

    result = run_search(root, **PHASE_2)

    plan = plan_of(result)
    assert result.ruling.decision == "done"
    assert plan.search is not None
    assert plan.search.start == recommendation(earlier)
    assert np.array(plan.search.shape) == pytest.approx(np.array(seen.shape))
    assert plan.search.sigma0 == pytest.approx(seen.scale)
    assert LEAST_STEP < seen.scale < MOST_STEP
    assert plan.source is not None
    assert (plan.source.run_id, plan.source.head) == (SOURCE, earlier.head)
    held = verify(result.directory)
    assert held.divergence is None
    assert any(SOURCE in one for one in held.held)


@given(data=st.data(), scale=st.floats(1e-3, 1.0))
def test_learned_knobs_keep_their_block_and_the_others_get_the_first_step(
    decided_root: Path, data: st.DataObject, scale: float
) -> None:
    state = state_of(decided_root / "phase1" / SOURCE)
    factor = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=9, max_size=9))).reshape(3, 3)
    seen = landscape((0.5,) * 3, scale, scale**2 * (factor @ factor.T + 0.1 * np.eye(3)))
    dimension = data.draw(st.integers(3, 5))
    spec = ObjectiveSpec(name="sphere", settings={"dimension": dimension})
    request = config_for("phase1", "min", registry.load(spec))
    names = [knob.name for knob in request.tuned.space.knobs]
    source = Source(
        run_id=SOURCE,
        head=state.head,
        variant="expanded",
        grade="go",
        point=(0.5,) * dimension,
        added=tuple(names[3:]),
    )
    search = Followed(state, source, {}).succession(request, seen).search

    assert search.shape is not None
    assert np.mean(np.diag(search.shape)) == pytest.approx(1.0)
    if search.sigma0 < 0.3:  # the largest there is
        covariance = search.sigma0**2 * np.array(search.shape)
        old = [place for place, name in enumerate(names) if name not in source.added]
        new = [place for place, name in enumerate(names) if name in source.added]
        step = min(max(seen.scale, LEAST_STEP), MOST_STEP)
        block = step**2 * np.array(seen.shape)[np.ix_(old, old)]
        assert covariance[np.ix_(old, old)] == pytest.approx(block)
        assert np.diag(covariance)[new] == pytest.approx(np.full(len(new), 0.15**2))
        assert not covariance[np.ix_(old, new)].any()


# Killed, and resumed; asked for otherwise


# Without a Go


# What cannot be started from

EXPANDED = {"follows": SOURCE, "variant": "expanded"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"follows": "nowhere", "variant": "robust"}, "no phase1 run 'nowhere'"),
        ({"follows": "empty", "variant": "robust"}, "no generation"),
        ({"settings": {**SMALL, "noise": 0.02}}, "noise: 0.01 -> 0.02"),
        ({"objective": "ellipsoid"}, "sphere -> ellipsoid"),
        (EXPANDED, "the same knobs"),
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
    cut(root / "phase1/empty", 4)
    with pytest.raises(ValueError, match=said):
        run_search(root, **{**PHASE_2, **change})
    assert {path.name for path in root.glob("*/*")} == {SOURCE, "empty"}


# More knobs

TINY = {"target_flops": 3e9, "val_windows": 32}
LARGER = {**TINY, "space": "synaptic+optimizer"}
NANOCHAT = "min-nanochat-s1"


class Scoring(InlineExecutor):
    """Gives a score without training: a bowl around the baselines; `momentum` does nothing."""

    def _evaluate(self, attempt: Attempt) -> Outcome:
        space = registry.load(attempt.objective).space
        away = np.array(space.encode(attempt.knobs)) - np.array(space.baseline)
        counts = np.array([knob.name != "momentum" for knob in space.knobs])
        noise = np.random.default_rng(attempt.seed).normal(0, 0.01)
        score = 3 + float(np.sum((away * counts) ** 2)) + noise
        outcome = Outcome(
            attempt_id=attempt.attempt_id,
            status=Status.OK,
            seconds=1.0,
            measurement=Measurement(score=score, train_seconds=1.0, steps=1, tokens=1),
        )
        with locked(attempt.directory):
            return write_summary(attempt.directory, outcome)


SCORING = SimulatedEngine("inline", workers=1, make=Scoring)


@pytest.fixture(scope="session")
def nanochat_root(tmp_path_factory: pytest.TempPathFactory, run_search: RunSearch) -> Path:
    """Where a phase 1 of the ten synaptic knobs said Go."""
    root = tmp_path_factory.mktemp("nanochat")
    options = {"objective": "nanochat", "settings": TINY, "engine": SCORING}
    decide(run_search(root, assumed_seconds=1.0, **options).directory)
    return root


@pytest.fixture
def nanochat(nanochat_root: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(nanochat_root, tmp_path / "artifacts/cmaes"))


def expand(run_search: RunSearch, root: Path, **options: Any) -> Result:
    values = {"objective": "nanochat", "settings": LARGER, "assumed_seconds": 1.0, "max_evals": 20}
    values |= {"follows": NANOCHAT, "variant": "expanded", "phase": "phase2"}
    return run_search(root, engine=SCORING, **values | options)


UNPROVEN = (("unproven_knobs", "they matter elsewhere"),)


def test_more_knobs_begin_at_their_baseline_and_are_resumed_with_the_step_they_were_given(
    nanochat: Path, run_search: RunSearch
) -> None:
    stood = recommendation(state_of(nanochat / "phase1" / NANOCHAT))
    result = expand(run_search, nanochat, overrides=UNPROVEN, sigma0=0.1)

    plan = plan_of(result)
    space = registry.load(ObjectiveSpec(name="nanochat", settings=LARGER)).space
    assert plan.source is not None
    assert plan.source.point == (*(stood or ()), *space.baseline[10:])
    assert plan.source.added == plan.source.unproven == tuple(k.name for k in space.knobs[10:])
    assert plan.resolved.seeds_per_candidate == 1
    assert verify(result.directory).divergence is None
    for sigma0 in (0.1, None):
        assert expand(run_search, nanochat, sigma0=sigma0).state.head == result.state.head
    with pytest.raises(PlanChangedError, match=r"search\.sigma0"):
        expand(run_search, nanochat, sigma0=0.2)


def test_new_knobs_need_a_check_that_shows_them_alive(
    nanochat: Path, run_search: RunSearch, run_check: RunSearch
) -> None:
    new = [
        knob.name
        for knob in registry.load(ObjectiveSpec(name="nanochat", settings=LARGER)).space.knobs[10:]
    ]
    with pytest.raises(ValueError, match="unproven_knobs") as refused:
        expand(run_search, nanochat)
    assert f"check knobs --knobs {','.join(new)}`" in str(refused.value)
    assert not (nanochat / "phase2").exists()

    checked = tuple(name for name in new if name != "warmdown_ratio")
    options = {"objective": "nanochat", "settings": LARGER, "engine": SCORING, "seeds": 4}
    run_check(nanochat, **options, knobs=checked)
    with pytest.raises(ValueError, match=r"Leave out momentum.* --knobs warmdown_ratio`"):
        expand(run_search, nanochat)
    source = plan_of(expand(run_search, nanochat, overrides=UNPROVEN)).source
    assert source is not None
    assert source.unproven == ("momentum", "warmdown_ratio")


# The command line

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
