"""A phase 2, and a phase 1 with `search.warm_start`: what is taken over, and what forbids it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.events import Concluded, Decided, Event, Grade, Overridden, Planned, Status
from budgets.ledger import LEDGER, Ledger
from budgets.plan import Plan
from budgets.state import RunState
from budgets.verdict.finalists import recommendation
from objectives import registry
from objectives.analytic import AnalyticObjective
from objectives.api import Measurement, ObjectiveSpec
from objectives.space import Knob, SearchSpace
from orchestrator.execution.api import Attempt, Outcome
from orchestrator.execution.files import locked, write_summary
from orchestrator.execution.inline import InlineExecutor
from orchestrator.plan.seeds import confirmation_seeds, evaluation_seeds
from orchestrator.records.recorded import Result
from orchestrator.running.run import PlanChangedError
from orchestrator.running.session import system_clock
from orchestrator.search.landscape import landscape
from orchestrator.verify import verify
from orchestrator.warm_start import LEAST_STEP, MOST_STEP, WarmStart, carried, learned
from tests import ledgers
from tests.asking import config_for
from tests.imported import MAIN, imported_by
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
WARM: dict[str, Any] = {**COMMON, "warm_start": SOURCE, "run_id": "next"}
BOTH = pytest.mark.parametrize("options", [PHASE_2, WARM], ids=["phase2", "warm_start"])
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
    decided = Decided(grade=grade, no_go=None, point=point, evidence="it gains 3 %", **fields)
    return conclude_with(run, decided, Concluded(reason="it gains 3 %"))


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


@BOTH
def test_a_search_begins_where_the_earlier_one_ended(
    root: Path, run_search: RunSearch, options: dict[str, Any]
) -> None:
    earlier = state_of(root / "phase1" / SOURCE)
    seen = learned(earlier, accept_drift=False)

    result = run_search(root, **options)

    plan = plan_of(result)
    assert result.ruling.decision == "done"
    assert plan.search is not None
    assert plan.search.start == recommendation(earlier)
    assert np.array(plan.search.shape) == pytest.approx(np.array(seen.shape))
    assert plan.search.sigma0 == pytest.approx(seen.scale)
    assert LEAST_STEP < seen.scale < MOST_STEP
    named = plan.source or plan.search.inherited
    assert named is not None
    assert (named.run_id, named.head) == (SOURCE, earlier.head)
    held = verify(result.directory)
    assert held.divergence is None
    assert any(SOURCE in one for one in held.held)


def test_a_decisions_point_outweighs_the_searchs_own(root: Path, run_search: RunSearch) -> None:
    corner = (0.0, 0.25, 1.0)  # a finalist may lie at the ends of ranges
    decide(root / "phase1" / SOURCE, "go_persists", point=corner)
    result = run_search(root, **PHASE_2)
    plan = plan_of(result)
    assert plan.search is not None
    assert plan.search.start == corner
    assert plan.confirmation is not None
    assert plan.confirmation.incumbent == corner
    assert result.ruling.decision == "done"


def test_no_seed_of_an_earlier_run_is_used_again(root: Path, run_search: RunSearch) -> None:
    confirmed = {"tier": "target", "max_evals": 12, "confirm_seeds": 2, "rung_seeds": 1}
    plans = [
        plan_of(run_search(root, **{**WARM, "warm_start": start, "run_id": name}, **confirmed))
        for start, name in ((None, "cold"), ("cold", "second"), ("second", "third"))
    ]
    every = []
    for plan in plans:
        beside = confirmation_seeds(plan)
        searched = [seed for g in range(4) for seed in evaluation_seeds(plan, g)]
        every += [*searched, *beside.picking, *beside.verdict, *beside.rung]
    assert len(set(every)) == len(every)


def test_a_knob_whose_range_has_changed_keeps_its_value_as_far_as_it_can(root: Path) -> None:
    state = state_of(root / "phase1" / SOURCE)
    there = dict(zip(("x0", "x1", "x2"), recommendation(state) or (), strict=True))
    wide = Knob(name="x0", kind="linear", low=-3, high=3, baseline=0.0)
    far = Knob(name="x1", kind="linear", low=5, high=6, baseline=5.5)
    rebased = Knob(name="x2", kind="linear", low=-1, high=1, baseline=0.7)
    new = Knob(name="y", kind="linear", low=0, high=4, baseline=1.0)
    inherited, point = carried(SOURCE, state, SearchSpace(knobs=(rebased, far, wide, new)))
    assert (inherited.new, inherited.moved) == (("y",), ("x1", "x0"))
    assert (point[0], point[1], point[3]) == (there["x2"], 0.0, 0.25)
    assert wide.decode(point[2]) == pytest.approx(2 * there["x0"] - 1)
    with pytest.raises(ValueError, match="x0, x1, x2"):
        carried(SOURCE, state, SearchSpace(knobs=(new,)))


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
    moved = data.draw(st.sets(st.sampled_from(names[:3]), max_size=2))
    unlearned = (*moved, *names[3:])

    start = WarmStart(state, (0.5,) * dimension, unlearned)
    search = start.succession(request, seen).search

    assert search.shape is not None
    assert np.mean(np.diag(search.shape)) == pytest.approx(1.0)
    if search.sigma0 < 0.3:  # the largest there is
        covariance = search.sigma0**2 * np.array(search.shape)
        old = [place for place, name in enumerate(names) if name not in unlearned]
        new = [place for place, name in enumerate(names) if name in unlearned]
        step = min(max(seen.scale, LEAST_STEP), MOST_STEP)
        block = step**2 * np.array(seen.shape)[np.ix_(old, old)]
        assert covariance[np.ix_(old, old)] == pytest.approx(block)
        assert np.diag(covariance)[new] == pytest.approx(np.full(len(new), 0.15**2))
        assert not covariance[np.ix_(old, new)].any()


@pytest.mark.parametrize(
    ("first", "asked", "step"),
    [(0.01, None, LEAST_STEP), (0.3, None, MOST_STEP), (0.2, 0.07, 0.07), (0.2, 0.3, 0.3)],
)
def test_the_first_step_is_the_last_one_within_limits_or_the_one_asked_for(
    tmp_path: Path, run_search: RunSearch, first: float, asked: float | None, step: float
) -> None:
    run_search(tmp_path, **COMMON, sigma0=first, max_evals=6)
    for _ in range(2):  # begun, and resumed
        search = plan_of(run_search(tmp_path, **WARM, sigma0=asked)).search
        assert search is not None
        assert search.sigma0 == pytest.approx(step)


def test_known_settings_are_the_first_candidates_around_the_warm_start(
    root: Path, run_search: RunSearch
) -> None:
    known = root / "known.toml"
    known.write_text("settings = [{ x0 = 1.0, x1 = -0.25 }, { x2 = 0.5 }]")
    result = run_search(root, **WARM, known=str(known))
    search = plan_of(result).search
    assert search is not None
    start = search.start
    assert search.known == ((1.0, 0.375, start[2]), (start[0], start[1], 0.75))
    first = result.state.generations[0].points[:2]
    assert np.array(first) == pytest.approx(np.array(search.known), abs=1e-12)


# Killed, and resumed; asked for otherwise


@pytest.mark.parametrize(
    ("options", "records"), [*((PHASE_2, n) for n in (2, 60, 163)), (WARM, 1), (WARM, 20)]
)
def test_cut_anywhere_it_ends_alike_without_the_run_that_it_began_at(
    root: Path, run_search: RunSearch, found: Found, options: dict[str, Any], records: int
) -> None:
    run = run_search(root, **options).directory
    whole = found(run)
    cut(run, records)
    shutil.rmtree(root / "phase1" / SOURCE)
    assert run_search(root, **options).ruling.decision == "done"
    assert found(run) == whole
    assert verify(run).divergence is None


@pytest.mark.parametrize(
    ("options", "change", "named"),
    [
        (PHASE_2, {"follows": "other", "variant": "robust"}, f"source.run_id: {SOURCE} -> other"),
        (PHASE_2, {"follows": SOURCE, "variant": "expanded"}, "robust -> expanded"),
        (PHASE_2, {"sigma0": 0.19}, "search.sigma0: 0."),
        (PHASE_2, {"search_seed": 2}, "search.seed: 1 -> 2"),
        (WARM, {"warm_start": "other"}, f"search.inherited.run_id: {SOURCE} -> other"),
        (WARM, {"warm_start": None}, "search.inherited: {"),
        (WARM, {"run_id": SOURCE}, "search.inherited: None ->"),
    ],
)
def test_asked_for_otherwise_it_is_another_plan(
    root: Path,
    run_search: RunSearch,
    options: dict[str, Any],
    change: dict[str, Any],
    named: str,
) -> None:
    run_search(root, **options)
    with pytest.raises(PlanChangedError) as refused:
        run_search(root, **{**options, **change})
    assert named in str(refused.value)


@BOTH
def test_verify_finds_a_start_where_the_earlier_run_did_not_stand(
    root: Path, run_search: RunSearch, options: dict[str, Any]
) -> None:
    run = run_search(root, **options).directory
    plan = state_of(run).plan
    assert plan.search is not None
    search = plan.search.model_copy(update={"start": (0.5,) * 3})
    source = plan.source and plan.source.model_copy(update={"point": (0.5,) * 3})
    shutil.rmtree(run)
    run.mkdir()
    rewrite(run, Planned(plan=plan.model_copy(update={"search": search, "source": source})))
    assert verify(run).divergence is not None


# Without a Go


@pytest.mark.parametrize("records", [2, 3, 30])
def test_an_override_is_on_record_once_and_asked_for_until_it_is(
    root: Path, run_search: RunSearch, found: Found, records: int
) -> None:
    conclude_with(root / "phase1" / SOURCE, Concluded(reason="all is settled"))
    with pytest.raises(ValueError, match="--override go"):
        run_search(root, **PHASE_2)
    assert not (root / "phase2").exists()
    run = run_search(root, **PHASE_2, overrides=OVERRIDE).directory
    whole = found(run)
    assert state_of(run).plan.source is not None
    cut(run, records)

    without = run_search(root, **PHASE_2)
    if records < 3:  # the override is not on record yet
        assert without.ruling.decision == "pause"
        assert not without.state.generations
        run_search(root, **PHASE_2, overrides=OVERRIDE)
    assert found(run) == whole
    assert sum(isinstance(event, Overridden) for event in events_of(run)) == 1


def test_an_override_that_nothing_calls_for_is_refused(root: Path, run_search: RunSearch) -> None:
    for rule in ("go", "unproven_knobs"):
        with pytest.raises(ValueError, match=f"--override {rule}"):
            run_search(root, **PHASE_2, overrides=((rule, "so"),))
    assert not (root / "phase2").exists()


# What cannot be started from

EXPANDED = {"follows": SOURCE, "variant": "expanded"}


@pytest.mark.parametrize(
    ("options", "change", "said"),
    [
        (PHASE_2, {"follows": "nowhere", "variant": "robust"}, "no phase1 run 'nowhere'"),
        (PHASE_2, {"follows": "empty", "variant": "robust"}, "no generation"),
        (PHASE_2, {"settings": {**SMALL, "noise": 0.02}}, "noise: 0.01 -> 0.02"),
        (PHASE_2, {"objective": "ellipsoid"}, "sphere -> ellipsoid"),
        (PHASE_2, EXPANDED, "the same knobs"),
        (PHASE_2, {**EXPANDED, "settings": {**SMALL, "dimension": 4}}, "dimension: 3 -> 4"),
        (WARM, {"warm_start": "nowhere"}, "no run 'nowhere'"),
        (WARM, {"warm_start": "empty"}, "no generation"),
        (WARM, {"objective": "ellipsoid"}, "expected a search of ellipsoid"),
    ],
)
def test_a_run_that_gives_nothing_is_refused_before_anything_is_made(
    root: Path,
    run_search: RunSearch,
    options: dict[str, Any],
    change: dict[str, Any],
    said: str,
) -> None:
    shutil.copytree(root / "phase1" / SOURCE, root / "phase1/empty")
    cut(root / "phase1/empty", 4)
    with pytest.raises(ValueError, match=said):
        run_search(root, **{**options, **change})
    assert {path.name for path in root.glob("*/*")} == {SOURCE, "empty"}


def test_a_run_of_another_kind_is_refused(
    root: Path, run_search: RunSearch, run_check: RunSearch
) -> None:
    follower = run_search(root, **PHASE_2).directory
    with pytest.raises(ValueError, match="is a phase2 run"):
        run_search(
            root, **{**PHASE_2, "follows": str(follower), "variant": "robust", "run_id": "b"}
        )
    check = run_check(root, objective="sphere", settings=SMALL).directory
    with pytest.raises(ValueError, match="is a check run"):
        run_search(root, **{**WARM, "warm_start": str(check)})


def test_a_commit_makes_no_other_objective_and_other_data_or_code_do(
    root: Path, run_search: RunSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    monkeypatch.setattr(AnalyticObjective, "provenance", {"commit": "a" * 40, "dirty": 1})
    assert run_search(root, **PHASE_2).ruling.decision == "done"
    run_search(root, **WARM, say=notes.append)
    assert not any(line.startswith("Note: min") for line in notes)
    monkeypatch.setattr(AnalyticObjective, "provenance", {"commit": "a" * 40, "data_sha256": "d"})
    with pytest.raises(ValueError, match=r"provenance\.data_sha256: None -> d"):
        run_search(root, **{**PHASE_2, "run_id": "other"})
    run_search(root, **{**WARM, "run_id": "other"}, say=notes.append)
    assert any("provenance.data_sha256: None -> d" in line for line in notes)
    monkeypatch.undo()
    monkeypatch.setattr("objectives.analytic.VERSION", 99)
    with pytest.raises(ValueError, match="changed"):
        run_search(root, **{**PHASE_2, "run_id": "third"})


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
    assert f"check knobs --objective nanochat --set space={LARGER['space']}" in str(refused.value)
    assert f"--knobs {','.join(new)} --device cpu" in str(refused.value)
    assert not (nanochat / "phase2").exists()

    checked = tuple(name for name in new if name != "warmdown_ratio")
    options = {"objective": "nanochat", "settings": LARGER, "engine": SCORING, "seeds": 4}
    run_check(nanochat, **options, knobs=checked)
    with pytest.raises(ValueError, match=r"not to move it: momentum\..* --knobs warmdown_ratio "):
        expand(run_search, nanochat)
    source = plan_of(expand(run_search, nanochat, overrides=UNPROVEN)).source
    assert source is not None
    assert source.unproven == ("momentum", "warmdown_ratio")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"space": "optimizer"}, "none of"),
        ({"space": "synaptic"}, "the same knobs"),
        ({**LARGER, "n_layer": 3}, "n_layer: 2 -> 3"),
        ({**LARGER, "data": "builtin:kjv-v1"}, "data: builtin:wiki-v1 -> builtin:kjv-v1"),
    ],
)
def test_nothing_but_the_knobs_may_change(
    nanochat: Path, run_search: RunSearch, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        expand(run_search, nanochat, settings={**TINY, **settings})


# The command line

SPHERE = ("--objective", "sphere", "--set", "dimension=3", "--set", "noise=0.01")
FOLLOW = ("--from", SOURCE, "--variant", "robust")


@pytest.mark.parametrize("there", [False, True], ids=["gone", "damaged"])
def test_phase2_is_repeated_without_its_objective_when_phase_1_cannot_be_read(
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
    assert phase2().code == 0
    assert phase2("--run-id", "other").code != 0
    assert [path.name for path in (root / "phase2").iterdir()] == [f"robust-{SOURCE}"]


def test_plan_says_where_it_would_begin_and_writes_nothing(root: Path, command: "Command") -> None:
    before = sorted(root.rglob("*"))
    warm = ("--tier", "target", *SPHERE, "--set", f"search.warm_start={SOURCE}")
    for words in (FOLLOW, warm):
        answer = command("plan", *words, "--assume-eval-seconds", "1")
        assert answer.code == 0
        assert SOURCE in answer.out
    assert sorted(root.rglob("*")) == before
    conclude_with(root / "phase1" / SOURCE, Concluded(reason="all is settled"))
    assert "--override go" in command("plan", *FOLLOW, "--assume-eval-seconds", "1").out


def test_plan_imports_neither_torch_nor_ray_nor_cma(root: Path, tmp_path: Path) -> None:
    words = ("plan", *FOLLOW, *SPHERE, "--workers", "1")
    assert not imported_by(MAIN, *words, cwd=tmp_path) & {"torch", "ray", "cma"}
