"""A phase 2 follows a phase 1's Go: it begins where that one stood, and survives its loss."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from budgets.events import Concluded, Decided, Event, Grade, NoGo, Overridden, Status
from budgets.ledger.chain import LEDGER, read
from budgets.ledger.writer import Ledger
from budgets.state import RunState
from budgets.verdict.finalists import recommendation
from objectives import registry
from objectives.analytic import AnalyticObjective
from objectives.api import Measurement, ObjectiveSpec
from orchestrator.execution.attempts import locked, write_summary
from orchestrator.execution.evaluate import Attempt, Outcome
from orchestrator.execution.inline import InlineExecutor
from orchestrator.look import text
from orchestrator.look.run import Run
from orchestrator.planning.request import Follows, Request
from orchestrator.records.recorded import Result
from orchestrator.running.run import PlanChangedError
from orchestrator.running.session import system_clock
from orchestrator.search import Search
from orchestrator.verification.verify import verify
from orchestrator.warm.distribution import LEAST_STEP, MOST_STEP
from orchestrator.warm.succession import predecessor
from tests.imported import MAIN, imported_by
from tests.ledgers import cut, events_of, state_of
from tests.simulation.session import SimulatedEngine

if TYPE_CHECKING:
    from tests.conftest import Answer, Command

RunSearch = Callable[..., Result]
RunCheck = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]

SMALL = {"dimension": 3, "noise": 0.01}
RUN = "min-sphere-s1"
FOLLOWER = f"robust-{RUN}"
ROBUST = Follows(RUN, "robust")


def conclude_with(run: Path, *events: Event) -> RunState:
    """Put other last words in the place of what the run came to."""
    said = enumerate(events_of(run))
    cut(run, next(n for n, event in said if isinstance(event, Decided | Concluded)))
    with Ledger(run, system_clock()) as ledger:
        for _ in ledger.replay():
            pass
        for event in events:
            ledger.append(ledger.seal(event))
        ledger.mark_head()
    return state_of(run)


def decide(run: Path, grade: Grade = "go", no_go: NoGo | None = None, **fields: Any) -> RunState:
    """What a run that was compared with its baseline on fresh seeds ends with."""
    point = recommendation(state_of(run))
    decided = Decided(
        grade=grade,
        no_go=no_go,
        point=fields.pop("point", point),
        evidence="it gains 3 % on 5 fresh seeds",
        **fields,
    )
    return conclude_with(run, decided, Concluded(reason=decided.evidence))


@pytest.fixture(scope="session")
def decided_root(tmp_path_factory: pytest.TempPathFactory, run_search: RunSearch) -> Path:
    """Where a small phase 1 said Go."""
    root = tmp_path_factory.mktemp("decided")
    decide(run_search(root, settings=SMALL, assumed_seconds=1.0).directory)
    return root


@pytest.fixture
def root(decided_root: Path, tmp_path: Path) -> Path:
    """A copy of it, where the command line finds it."""
    return Path(shutil.copytree(decided_root, tmp_path / "artifacts/cmaes"))


@pytest.fixture
def run_phase2(run_search: RunSearch) -> RunSearch:
    """Runs, or resumes, a phase 2 of two generations on an analytic objective."""

    def run(root: Path, follows: Follows = ROBUST, **options: Any) -> Result:
        values = {"settings": SMALL, "assumed_seconds": 1.0, "max_evals": 36, **options}
        return run_search(root, phase="phase2", follows=follows, **values)

    return run


# What it takes over


def test_a_robust_search_begins_where_phase_1_stood(
    root: Path, run_phase2: RunSearch, run_search: RunSearch
) -> None:
    phase1 = state_of(root / "phase1" / RUN)
    assert phase1.plan.search is not None
    earlier = Search(phase1.plan.search, phase1.plan.resolved.population)
    earlier.replay(phase1.generations)
    seen = earlier.landscape()

    result = run_phase2(root)

    plan = result.state.plan
    assert result.ruling.decision == "done"
    assert result.directory == root / "phase2" / FOLLOWER
    assert plan.source is not None
    assert plan.search is not None
    assert plan.source.model_dump() == {
        "run_id": RUN,
        "head": phase1.head,
        "variant": "robust",
        "grade": "go",
        "point": recommendation(phase1),
        "added": (),
        "unproven": (),
    }
    assert plan.search.start == plan.source.point
    assert plan.search.shape == seen.shape
    assert LEAST_STEP < plan.search.sigma0 == seen.scale < MOST_STEP
    assert verify(result.directory).divergence is None
    assert f"source: {RUN} recommends" in verify(result.directory).held[-2]


def test_its_candidates_share_three_seeds_that_no_search_has_seen(
    root: Path, run_phase2: RunSearch
) -> None:
    earlier = {seed for g in state_of(root / "phase1" / RUN).generations for seed in g.seeds}
    found = run_phase2(root).state.generations
    assert [len(set(g.seeds)) for g in found] == [3, 3]
    assert len({seed for g in found for seed in g.seeds} | earlier) == 6 + len(earlier)


@pytest.mark.parametrize(
    ("first", "asked", "step"),
    [(0.01, None, LEAST_STEP), (0.3, None, MOST_STEP), (0.2, 0.07, 0.07), (0.2, 0.3, 0.3)],
)
def test_its_first_step_is_phase_1s_last_within_limits_or_the_one_asked_for(
    tmp_path: Path,
    run_search: RunSearch,
    run_phase2: RunSearch,
    first: float,
    asked: float | None,
    step: float,
) -> None:
    started = {"settings": SMALL, "assumed_seconds": 1.0, "sigma0": first, "max_evals": 8}
    decide(run_search(tmp_path, **started).directory)
    for _ in range(2):  # begun, and taken up
        search = run_phase2(tmp_path, sigma0=asked).state.plan.search
        assert search is not None
        assert search.sigma0 == step


def test_the_decisions_point_outweighs_the_searchs_own(root: Path, run_phase2: RunSearch) -> None:
    corner = (0.0, 0.25, 1.0)  # a finalist may lie at the ends of ranges
    decide(root / "phase1" / RUN, "go_persists", point=corner)
    result = run_phase2(root)
    assert result.state.plan.search is not None
    assert result.state.plan.search.start == corner
    assert result.ruling.decision == "done"


def test_a_run_is_found_by_its_directory_too(root: Path, run_phase2: RunSearch) -> None:
    moved = root.parent / "elsewhere/kept"
    moved.parent.mkdir()
    (root / "phase1" / RUN).rename(moved)
    follows = Follows(str(moved), "robust")
    result = run_phase2(root, follows)
    assert result.state.plan.source is not None
    assert result.state.plan.source.run_id == "kept"
    assert run_phase2(root, follows).directory == result.directory


def test_without_a_calibration_the_baseline_is_measured_first_or_phase_1s_is_taken(
    root: Path, run_phase2: RunSearch
) -> None:
    said: list[str] = []
    first = run_phase2(root, assumed_seconds=None, say=said.append)
    again = run_phase2(root, assumed_seconds=None, run_id="again", say=said.append)
    assert sum(line.startswith("No calibration") for line in said) == 1
    calibrations = [result.state.plan.calibration for result in (first, again)]
    assert len({None if c is None else c.ledger for c in calibrations}) == 1


# What becomes of phase 1's winner


def test_a_phase_1_that_says_go_is_followed_and_its_winner_survives(
    tmp_path: Path, run_search: RunSearch, run_phase2: RunSearch
) -> None:
    first = run_search(tmp_path, settings=SMALL, tier="target", max_evals=48)
    assert first.state.decided is not None
    assert first.state.decided.grade == "go_persists"

    result = run_phase2(tmp_path, Follows(first.directory.name, "robust"), assumed_seconds=None)

    state = result.state
    assert state.plan.source is not None
    assert state.plan.source.grade == "go_persists"
    assert state.plan.confirmation is not None
    assert state.plan.confirmation.incumbent == first.state.decided.point
    assert "The winner of phase 1 survives: +" in text.sentence(Run(state, datetime.now(UTC)))
    assert "The winner of phase 1 survives: +" in (result.directory / "summary.md").read_text()
    assert verify(result.directory).divergence is None


def test_a_winner_that_luck_made_does_not_survive(root: Path, run_phase2: RunSearch) -> None:
    decide(root / "phase1" / RUN, point=(0.4, 0.6, 0.4))  # the optimum is on the other side
    result = run_phase2(root)
    assert "The winner of phase 1 does not survive: -" in (
        text.sentence(Run(result.state, datetime.now(UTC)))
    )


# Killed, and taken up again


@pytest.fixture(scope="session")
def whole(
    decided_root: Path, tmp_path_factory: pytest.TempPathFactory, run_search: RunSearch
) -> Path:
    """A phase 2 that nobody disturbed."""
    result = run_search(
        Path(shutil.copytree(decided_root, tmp_path_factory.mktemp("whole") / "runs")),
        phase="phase2",
        follows=ROBUST,
        settings=SMALL,
        assumed_seconds=1.0,
        max_evals=36,
    )
    assert result.state.records == 164
    return result.directory


@pytest.mark.parametrize(
    "records",
    [
        *(2, 4, 60, 140, 163),
        *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3, 30, 90, 120, 160, 162)),
    ],
)
def test_a_phase_2_cut_after_any_record_ends_like_one_that_was_not_without_its_phase_1(
    whole: Path, tmp_path: Path, run_phase2: RunSearch, found: Found, records: int
) -> None:
    root = Path(shutil.copytree(whole.parent.parent, tmp_path / "runs"))
    run = root / whole.relative_to(whole.parent.parent)
    cut(run, records)
    shutil.rmtree(run / "eval")
    shutil.rmtree(root / "phase1")

    assert run_phase2(root).ruling.decision == "done"

    assert found(run) == found(whole)
    held = verify(run)
    assert held.divergence is None
    assert held.held[-2] == f"source: the ledger of {RUN} is not beside this run, or another one"


def test_verify_finds_a_source_that_is_not_what_its_ledger_says(
    root: Path, run_phase2: RunSearch
) -> None:
    run = run_phase2(root).directory
    state = state_of(run)
    assert state.plan.source is not None
    other = state.plan.source.model_copy(update={"point": (0.5, 0.5, 0.5)})
    planned = read(run / LEDGER).records[0].event
    assert planned.kind == "planned"
    shutil.rmtree(run)
    run.mkdir()
    with Ledger(run, system_clock()) as ledger:
        for _ in ledger.replay():
            pass
        forged = planned.plan.model_copy(update={"source": other})
        ledger.append(ledger.seal(type(planned)(plan=forged)))
    assert verify(run).divergence == (
        f"the plan's source is not what {root / 'phase1' / RUN / LEDGER} says"
    )


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"follows": Follows("other", "robust")}, f"source.run_id: {RUN} -> other"),
        ({"sigma0": 0.19}, "search.sigma0: 0."),
        ({"search_seed": 2, "run_id": FOLLOWER}, "search.seed: 1 -> 2"),
        ({"settings": {**SMALL, "noise": 0.02}}, "objective.settings.noise: 0.01 -> 0.02"),
        ({"follows": Follows(RUN, "expanded"), "run_id": FOLLOWER}, "robust -> expanded"),
    ],
)
def test_asked_for_otherwise_it_is_another_plan(
    whole: Path, run_phase2: RunSearch, options: dict[str, Any], named: str
) -> None:
    with pytest.raises(PlanChangedError, match="holds another plan") as refused:
        run_phase2(whole.parent.parent, **options)
    assert named in str(refused.value)


def test_another_source_may_begin_a_child(root: Path, run_phase2: RunSearch) -> None:
    run_phase2(root)
    shutil.copytree(root / "phase1" / RUN, root / "phase1/other")
    other = Follows("other", "robust")
    for _ in range(2):
        child = run_phase2(root, other, fork=True)
        assert child.directory.name == f"{FOLLOWER}-fork1"
        assert child.state.plan.source is not None
        assert child.state.plan.source.run_id == "other"


# Without a Go

OVERRIDE = (("go", "the deadline is near"),)


def undecided(root: Path) -> RunState:
    return conclude_with(root / "phase1" / RUN, Concluded(reason="all is settled"))


def test_an_override_is_on_record_before_anything_else_and_once(
    root: Path, run_phase2: RunSearch
) -> None:
    phase1 = undecided(root)
    first = run_phase2(root, overrides=OVERRIDE)
    again = run_phase2(root, overrides=OVERRIDE)
    resumed = run_phase2(root)

    assert first.ruling.decision == "done"
    records = read(first.directory / LEDGER).records
    assert records[2].event == Overridden(rule="go", generation=0, reason="the deadline is near")
    assert sum(isinstance(r.event, Overridden) for r in records) == 1
    assert again.state.head == resumed.state.head == first.state.head
    source = first.state.plan.source
    assert source is not None
    assert (source.grade, source.point) == ("", recommendation(phase1))
    assert verify(first.directory).divergence is None


@pytest.mark.parametrize(
    "records", [2, 3, 30, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 4))]
)
def test_cut_anywhere_it_goes_on_by_the_same_command_and_once_on_record_without_the_override(
    root: Path, run_phase2: RunSearch, found: Found, records: int
) -> None:
    undecided(root)
    run = run_phase2(root, overrides=OVERRIDE).directory
    whole = found(run)
    cut(run, records)

    without = run_phase2(root)
    if records < 3:  # the override is not on record yet
        assert without.ruling.decision == "pause"
        assert "phase 2 follows a Go" in without.ruling.reason
        assert not without.state.generations
        assert run_phase2(root, overrides=OVERRIDE).ruling.decision == "done"
    assert found(run) == whole
    assert sum(isinstance(r.event, Overridden) for r in read(run / LEDGER).records) == 1


@pytest.mark.parametrize(
    ("grade", "no_go", "said"),
    [
        ("no_go", "below_noise", "said No-Go (below_noise): it gains 3 % on 5 fresh seeds. Follow"),
        ("no_go", "unstable", "said No-Go (unstable): it gains 3 % on 5 fresh seeds. Follow"),
    ],
)
def test_a_run_that_said_no_go_is_followed_on_a_persons_word_alone(
    root: Path, run_phase2: RunSearch, grade: Grade, no_go: NoGo | None, said: str
) -> None:
    decide(root / "phase1" / RUN, grade, no_go)
    with pytest.raises(ValueError, match="phase 2 follows a Go") as refused:
        run_phase2(root)
    assert f"{RUN} {said}" in str(refused.value)
    assert str(refused.value).endswith(
        'Follow a run that says Go, or begin all the same with --override go --reason "..."'
    )
    assert not (root / "phase2").exists()
    source = run_phase2(root, overrides=OVERRIDE).state.plan.source
    assert source is not None
    assert source.grade == grade


def test_a_run_without_a_verdict_says_how_it_stands(root: Path, run_phase2: RunSearch) -> None:
    undecided(root)
    with pytest.raises(ValueError, match=f"{RUN} has come to no verdict: all is settled. Follow"):
        run_phase2(root)
    conclude_with(root / "phase1" / RUN)
    with pytest.raises(
        ValueError, match=r"no verdict\. Let it come to its end with its own command"
    ):
        run_phase2(root)
    assert run_phase2(root, overrides=OVERRIDE).ruling.decision == "done"


def test_a_run_that_was_decided_and_died_before_it_concluded_is_followed(
    root: Path, run_phase2: RunSearch
) -> None:
    run = root / "phase1" / RUN
    decided = state_of(run).decided
    assert decided is not None
    conclude_with(run, decided)
    assert run_phase2(root).ruling.decision == "done"


# What cannot be followed


def test_an_override_that_nothing_calls_for_is_refused(root: Path, run_phase2: RunSearch) -> None:
    for rule in ("go", "unproven_knobs"):
        with pytest.raises(ValueError, match=f"--override {rule}: that rule does not hold this"):
            run_phase2(root, overrides=((rule, "so"),))
    assert not (root / "phase2").exists()


@pytest.mark.parametrize(
    ("follows", "options", "said"),
    [
        (Follows("nowhere", "robust"), {}, "no phase1 run 'nowhere' in "),
        (Follows("empty", "robust"), {}, "--from: empty has told no generation yet: there is"),
        (
            ROBUST,
            {"settings": {**SMALL, "noise": 0.02}},
            f"--variant robust changes nothing of what {RUN} tuned (there -> asked): "
            "noise: 0.01 -> 0.02. Repeat its file, or its --objective and --set options",
        ),
        (ROBUST, {"objective": "ellipsoid"}, "objective: sphere -> ellipsoid"),
        (Follows(RUN, "expanded"), {}, f"adds knobs to those of {RUN}, and these are the same"),
        (
            Follows(RUN, "expanded"),
            {"settings": {**SMALL, "dimension": 4}},
            f"changes nothing but --set space of what {RUN} tuned (there -> asked): dimension: 3",
        ),
    ],
)
def test_a_run_that_cannot_be_followed_is_refused_before_anything_is_made(
    root: Path, run_phase2: RunSearch, follows: Follows, options: dict[str, Any], said: str
) -> None:
    shutil.copytree(root / "phase1" / RUN, root / "phase1/empty")
    cut(root / "phase1/empty", 4)

    with pytest.raises(ValueError, match=r".") as refused:
        run_phase2(root, follows, overrides=() if follows.run == RUN else OVERRIDE, **options)

    assert said in str(refused.value)
    assert sorted(path.name for path in root.iterdir() if path.is_dir()) == ["phase1"]


def test_a_run_of_another_phase_is_not_followed(root: Path, run_phase2: RunSearch) -> None:
    follower = run_phase2(root).directory
    with pytest.raises(ValueError, match=f"expected a phase 1 run, {FOLLOWER} is a phase2 run"):
        run_phase2(root, Follows(str(follower), "robust"), run_id="next")


def test_of_two_runs_with_one_name_the_phase_1_is_followed(
    root: Path, run_phase2: RunSearch
) -> None:
    run_phase2(root, run_id=RUN)
    again = run_phase2(root, run_id="again").state.plan.source
    assert again is not None
    assert again.head == state_of(root / "phase1" / RUN).head


def test_an_objective_whose_code_has_changed_is_not_followed(
    root: Path, run_phase2: RunSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("objectives.analytic.VERSION", 99)
    with pytest.raises(ValueError, match=f"its code or its space has changed since {RUN} was"):
        run_phase2(root)


def test_a_run_is_followed_whatever_has_been_committed_since(
    root: Path, run_phase2: RunSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AnalyticObjective, "provenance", {"commit": "a" * 40, "dirty": 1})
    assert run_phase2(root).ruling.decision == "done"
    monkeypatch.setattr(AnalyticObjective, "provenance", {"commit": "a" * 40, "data_sha256": "d"})
    with pytest.raises(ValueError, match=r"provenance\.data_sha256: None -> d\. Repeat"):
        run_phase2(root, run_id="other")


# More knobs

TINY = {"target_flops": 3e9, "val_windows": 32}
LARGER = {**TINY, "space": "synaptic+optimizer"}
NANOCHAT = "min-nanochat-s1"
EXPANDED = Follows(NANOCHAT, "expanded")


class Scoring(InlineExecutor):
    """Gives every evaluation a score without training: a bowl around the knobs' baselines.

    Every knob matters but `momentum`.
    """

    def _evaluate(self, attempt: Attempt) -> Outcome:
        space = registry.load(attempt.objective).space
        baseline, point = np.array(space.baseline), np.array(space.encode(attempt.knobs))
        counts = np.array([knob.name != "momentum" for knob in space.knobs])
        noise = np.random.default_rng(attempt.seed).normal(0, 0.01)
        score = 3 + float(np.sum(((point - baseline) * counts) ** 2)) + noise
        measurement = Measurement(score=score, train_seconds=1.0, steps=1, tokens=1)
        outcome = Outcome(
            attempt_id=attempt.attempt_id, status=Status.OK, seconds=1.0, measurement=measurement
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
    values = {
        "objective": "nanochat",
        "settings": LARGER,
        "engine": SCORING,
        "assumed_seconds": 1.0,
        "max_evals": 20,
        **options,
    }
    return run_search(root, phase="phase2", follows=EXPANDED, **values)


def nanochat_request(**settings: Any) -> Request:
    objective = registry.load(ObjectiveSpec(name="nanochat", settings={**TINY, **settings}))
    return Request("phase2", "min", objective, follows=EXPANDED)


UNPROVEN = (("unproven_knobs", "they matter elsewhere"),)


def test_more_knobs_begin_at_their_baseline_and_the_known_ones_where_they_stood(
    nanochat: Path, run_search: RunSearch
) -> None:
    phase1 = state_of(nanochat / "phase1" / NANOCHAT)
    result = expand(run_search, nanochat, overrides=UNPROVEN)

    plan = result.state.plan
    assert result.directory.name == f"expanded-{NANOCHAT}"
    assert result.ruling.decision == "done"
    assert result.state.overridden == [
        Overridden(rule="unproven_knobs", generation=0, reason="they matter elsewhere")
    ]
    space = registry.load(ObjectiveSpec(name="nanochat", settings=LARGER)).space
    assert plan.source is not None
    assert plan.search is not None
    assert plan.search.shape is not None
    assert plan.source.point == (*(recommendation(phase1) or ()), *space.baseline[10:])
    assert plan.source.added == plan.source.unproven == tuple(k.name for k in space.knobs[10:])
    covariance = plan.search.sigma0**2 * np.array(plan.search.shape)
    assert np.sqrt(np.diag(covariance)[10:]) == pytest.approx(np.full(9, 0.15))
    assert np.sqrt(np.mean(np.diag(covariance)[:10])) < 0.15
    assert np.count_nonzero(covariance[:10, 10:]) == 0
    assert np.count_nonzero(covariance[:10, :10]) == 100
    assert verify(result.directory).divergence is None


def test_more_knobs_have_one_seed_each(nanochat: Path, run_search: RunSearch) -> None:
    plan = expand(run_search, nanochat, overrides=UNPROVEN).state.plan
    assert plan.nominal.evaluations == plan.caps.evaluations + 40 == 60
    assert plan.resolved.seeds_per_candidate == 1
    assert "more knobs, each candidate on 1 seed instead of 3" in plan.reasons[0]


def test_it_is_taken_up_with_or_without_the_first_step_it_was_given(
    nanochat: Path, run_search: RunSearch
) -> None:
    first = expand(run_search, nanochat, overrides=UNPROVEN, sigma0=0.1)
    assert first.state.plan.search is not None
    for sigma0 in (0.1, None):
        assert expand(run_search, nanochat, sigma0=sigma0).state.head == first.state.head
    with pytest.raises(PlanChangedError, match=r"\(recorded -> asked\): search.sigma0: 0\.1\d* ->"):
        expand(run_search, nanochat, sigma0=0.2)


def test_new_knobs_that_no_check_has_shown_alive_are_refused_with_the_check(
    nanochat: Path, run_search: RunSearch
) -> None:
    names = ",".join(
        knob.name for knob in nanochat_request(space="optimizer").objective.space.knobs
    )
    with pytest.raises(ValueError, match="no finished check has shown") as refused:
        expand(run_search, nanochat)
    assert str(refused.value) == (
        "no finished check has shown that these knobs move the score: "
        f"{names.replace(',', ', ')}. Check with `python -m orchestrator check knobs --objective "
        "nanochat --set space=synaptic+optimizer --set val_windows=32 --set "
        f"target_flops=3000000000.0 --knobs {names} --device cpu --runs-dir {nanochat}`, or begin "
        'all the same with --override unproven_knobs --reason "..."'
    )
    assert not (nanochat / "phase2").exists()


def test_new_knobs_that_a_check_has_shown_alive_need_nobodys_word_and_the_dead_are_named(
    nanochat: Path, run_search: RunSearch, run_check: RunCheck
) -> None:
    objective = nanochat_request(space="synaptic+optimizer").objective
    new = tuple(knob.name for knob in objective.space.knobs[10:])
    checking = {"objective": "nanochat", "settings": LARGER, "engine": SCORING, "seeds": 4}
    checked = tuple(name for name in new if name != "warmdown_ratio")
    run_check(nanochat, **checking, knobs=checked)

    with pytest.raises(ValueError, match="no finished check has shown") as refused:
        expand(run_search, nanochat)
    assert (
        "move the score: momentum, warmdown_ratio. Checked, and found not to move it: momentum"
        in str(refused.value)
    )
    assert " --knobs warmdown_ratio " in str(refused.value)

    source = expand(run_search, nanochat, overrides=UNPROVEN).state.plan.source
    assert source is not None
    assert source.unproven == ("momentum", "warmdown_ratio")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"space": "optimizer"}, f"keeps every knob of {NANOCHAT}, and tau_c is missing: --set sp"),
        ({"space": "synaptic"}, "adds knobs to those of"),
        (
            {"space": "synaptic+optimizer", "n_layer": 3},
            f"changes nothing but --set space of what {NANOCHAT} tuned (there -> asked): "
            "n_layer: 2 -> 3.",
        ),
        (
            {"space": "synaptic+optimizer", "data": "builtin:kjv-v1"},
            "data: builtin:wiki-v1 -> builtin:kjv-v1; provenance.data: builtin:wiki-v1 -> ",
        ),
    ],
)
def test_nothing_but_the_space_may_change(
    nanochat: Path, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match="--variant expanded") as refused:
        predecessor(nanochat, nanochat_request(**settings), "cpu")
    assert said in str(refused.value)


# The command line

SPHERE = ("--objective", "sphere", "--set", "dimension=3", "--set", "noise=0.01")
INLINE = ("--executor", "inline", "--workers", "1")


def phase2(command: "Command", *more: str, tuned: tuple[str, ...] = SPHERE) -> "Answer":
    source = ("--from", RUN, "--variant", "robust")
    options = ("--tier", "min", "--max-evals", "36", "--assume-eval-seconds", "1")
    return command("phase2", *source, *options, *tuned, *INLINE, *more)


def test_phase2_runs_reports_and_resumes(root: Path, command: "Command") -> None:
    answer = phase2(command)
    assert answer.code == 0
    follows = f"It follows {RUN}, which said Go, the same knobs on more seeds."
    assert follows in " ".join(answer.out.split())
    summary = (root / "phase2" / FOLLOWER / "summary.md").read_text()
    assert follows in summary
    assert command("verify", FOLLOWER).code == 0
    again = phase2(command)
    assert again.code == 0
    assert "[" not in again.out


@pytest.mark.parametrize("there", [False, True], ids=["gone", "damaged"])
def test_phase2_is_repeated_without_its_objective_when_phase_1_cannot_be_read(
    root: Path, command: "Command", there: bool
) -> None:
    first = phase2(command, tuned=())
    assert first.code == 0
    if there:
        (root / "phase1" / RUN / LEDGER).write_text("{}\n{}\n")
    else:
        shutil.rmtree(root / "phase1" / RUN)
    again = phase2(command, tuned=())
    assert again.code == 0
    assert f"Files: artifacts/cmaes/phase2/{FOLLOWER}" in again.out

    other = phase2(command, "--run-id", "other", tuned=())
    assert other.code != 0
    assert RUN in other.err
    assert [path.name for path in (root / "phase2").iterdir()] == [FOLLOWER]


def test_phase2_without_a_go_is_one_line_with_both_ways_on(root: Path, command: "Command") -> None:
    undecided(root)
    refused = phase2(command)
    assert refused.code == 2
    assert refused.err == (
        f"error: phase 2 follows a Go, and {RUN} has come to no verdict: all is settled. Follow a "
        'run that says Go, or begin all the same with --override go --reason "..."\n'
    )
    assert not (root / "phase2").exists()
    allowed = phase2(command, "--override", "go", "--reason", "the deadline is near")
    assert allowed.code == 0
    assert "go, generation 0: the deadline is near" in allowed.out
    assert phase2(command).code == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("phase2", "--from", RUN), "--variant: expected robust (the same knobs) or expanded"),
        (("phase2", "--variant", "robust"), "--from: which phase 1"),
        (("phase2", "--variant", "robust", "--from", RUN), "orchestrator plan"),
        (("phase2", "--variant", "both", "--from", RUN), "'both' is not one of 'robust'"),
        (("plan", "--variant", "robust", "--from", "x"), "no phase1 run 'x'"),
        (("phase1", "--from", RUN), "--from"),
    ],
)
def test_what_phase2_misses_is_named(
    root: Path, command: "Command", arguments: tuple[str, ...], named: str
) -> None:
    answer = command(*arguments, *SPHERE, *INLINE)
    assert answer.code == 2
    assert named in answer.err
    assert answer.err.count("\n") == 1
    assert sorted(path.name for path in root.iterdir() if path.is_dir()) == ["phase1"]


def test_plan_phase2_says_what_it_would_take_and_what_is_missing(
    root: Path, command: "Command"
) -> None:
    def plan(variant: str = "robust") -> "Answer":
        words = ("--from", RUN, "--variant", variant, "--assume-eval-seconds", "60")
        return command("plan", *words, *SPHERE, "--workers", "2")

    answer = plan()
    assert answer.code == 0
    text = " ".join(answer.out.split())
    assert f"It follows {RUN}, which said Go, the same knobs on more seeds." in text
    assert "It begins at that one's recommendation" in text
    assert "6 x 10 x 3" in text
    assert "min: whether the phase 1 winner survives several seeds. As written 12 x 5 x 3" in text
    assert "Warning" not in text

    undecided(root)
    text = plan().out
    assert "Warning: phase 2 follows a Go" in text
    assert "--override go" in text
    assert sorted(path.name for path in root.iterdir() if path.is_dir()) == ["phase1"]


def test_plan_phase2_imports_neither_torch_nor_ray_nor_cma(root: Path, tmp_path: Path) -> None:
    words = ("plan", "--from", RUN, "--variant", "robust", *SPHERE, "--workers", "1")
    assert not imported_by(MAIN, *words, cwd=tmp_path) & {"torch", "ray", "cma"}


def test_plan_phase2_of_more_knobs_names_them_and_the_check(
    nanochat: Path, command: "Command"
) -> None:
    settings = ("--set", "target_flops=3e9", "--set", "val_windows=32")
    source = ("--from", NANOCHAT, "--variant", "expanded")
    answer = command(
        "plan", *source, *settings, "--set", "space=synaptic+optimizer", "--workers", "1"
    )
    assert answer.code == 0
    text = " ".join(answer.out.split())
    assert "which said Go, with 9 more knobs, matrix_lr, embedding_lr," in text
    assert "10 x 6 x 1" in text
    assert (
        "As written 12 x 5 x 1 = 60. more knobs, each candidate on 1 seed instead of 3: 60" in text
    )
    assert "Check with `python -m orchestrator check knobs" in text
    assert "Not calibrated here" in text
